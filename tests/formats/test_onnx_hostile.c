/* Tests damaged and hostile ONNX files. Each is loaded or rejected with a message, without a crash. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "formats/onnx/onnx.h"
#include "onnx_models.h"

/* Loads a model and destroys the graph. Checks that all memory is released, and that an error has a message. */
static clv_status try_load(const void *data, size_t size_bytes, clv_error *error) {
  test_allocator counting;
  test_allocator_init(&counting);
  clv_graph *graph = NULL;
  memset(error, 0, sizeof *error);
  clv_status status = clv__onnx_load_memory(&counting.allocator, data, size_bytes, false, &graph, error);
  if (status == CLV_OK) {
    assert_non_null(graph);
    clv__graph_destroy(graph);
  } else {
    assert_null(graph);
    assert_int_equal(error->status, status);
    assert_true(strlen(error->message) > 10);
    assert_true(status != CLV_INTERNAL_ERROR);
  }
  assert_int_equal(counting.live, 0);
  return status;
}

static void begin(clv__text *model) {
  clv__text_init(model, clv__allocator_default());
}

static void expect(clv__text *model, clv_status wanted, const char *text) {
  clv_error error;
  clv_status status = try_load(model->data, model->size_bytes, &error);
  clv__text_finish(model);
  if (status != wanted || strstr(error.message, text) == NULL) {
    fail_msg("the error is %s: '%s', expected %s with '%s'", clv_status_name(status), error.message, clv_status_name(wanted),
             text);
  }
}

/* Loads prefixes of a model from blocks of exactly their size, so that the address sanitizer sees reads beyond the end. */
static void every_prefix_gets_a_status(void **state) {
  (void)state;
  clv__text model;
  begin(&model);
  model_everything(&model);
  for (size_t size_bytes = 0; size_bytes < model.size_bytes; size_bytes += size_bytes % 64 == 0 ? 63 : 1) {
    uint8_t *exact = malloc(size_bytes > 0 ? size_bytes : 1);
    memcpy(exact, model.data, size_bytes);
    clv_error error;
    clv_status status = try_load(exact, size_bytes, &error);
    (void)status; /* CLV_OK is possible: a prefix that ends between fields may be a valid model */
    free(exact);
  }
  clv__text_finish(&model);
}

static void mutate(uint64_t *seed, uint8_t *bytes, size_t *size_bytes) {
  unsigned edits = 1 + (unsigned)(test_random(seed) % 4);
  while (edits-- > 0 && *size_bytes > 8) {
    size_t at = test_random(seed) % *size_bytes, length = 1 + test_random(seed) % 8;
    if (at + length > *size_bytes) length = *size_bytes - at;
    switch (test_random(seed) % 6) {
      case 0:
        bytes[at] ^= (uint8_t)(1u << (test_random(seed) % 8));
        break;
      case 1:
        bytes[at] = (uint8_t)test_random(seed);
        break;
      case 2:
        memset(bytes + at, 0xff, length);
        break;
      case 3: /* remove a part */
        memmove(bytes + at, bytes + at + length, *size_bytes - at - length);
        *size_bytes -= length;
        break;
      case 4: /* repeat a part */
        memmove(bytes + at + length, bytes + at, *size_bytes - at);
        *size_bytes += length;
        break;
      default: /* overwrite a part with another */
        memmove(bytes + at, bytes + test_random(seed) % (*size_bytes - length + 1), length);
        break;
    }
  }
}

static void mutations_get_a_status(void **state) {
  (void)state;
  clv__text model;
  begin(&model);
  model_everything(&model);
  uint8_t *bytes = malloc(model.size_bytes + 64);
  uint64_t seed = 20240607;
  unsigned loaded = 0;
  for (unsigned i = 0; i < 20000; ++i) {
    size_t size_bytes = model.size_bytes;
    memcpy(bytes, model.data, size_bytes);
    mutate(&seed, bytes, &size_bytes);
    clv_error error;
    loaded += try_load(bytes, size_bytes, &error) == CLV_OK;
  }
  free(bytes);
  clv__text_finish(&model);
  assert_in_range(loaded, 100, 19900); /* some mutated models must load and others must fail */
}

static void write_with_failures(const clv_graph *graph, test_allocator *counting) {
  for (size_t fail_at = 1;; ++fail_at) {
    counting->calls = 0;
    counting->fail_at = fail_at;
    void *data;
    size_t size_bytes;
    clv_error error = {0};
    clv_status status = clv__onnx_write(graph->whole, SIZE_MAX, &counting->allocator, &data, &size_bytes, &error);
    if (status == CLV_OK) {
      assert_true(counting->calls < fail_at);
      clv__release(&counting->allocator, data);
      return;
    }
    assert_int_equal(status, CLV_OUT_OF_MEMORY);
    assert_null(data);
  }
}

static void every_failed_allocation_gets_a_status(void **state) {
  (void)state;
  clv__text model;
  begin(&model);
  model_everything(&model);
  clv_graph *whole;
  clv__hash whole_hash;
  clv_error whole_error = {0};
  assert_ok(clv__onnx_load_memory(clv__allocator_default(), model.data, model.size_bytes, true, &whole, &whole_error),
            whole_error);
  clv__graph_hash(whole, &whole_hash);
  clv__graph_destroy(whole);
  for (int copy = 0; copy < 2; ++copy) {
    for (size_t fail_at = 1;; ++fail_at) {
      test_allocator counting;
      test_allocator_init(&counting);
      counting.fail_at = fail_at;
      clv_graph *graph;
      clv_error error = {0};
      clv_status status = clv__onnx_load_memory(&counting.allocator, model.data, model.size_bytes, copy != 0, &graph, &error);
      if (status == CLV_OK) {
        if (counting.calls >= fail_at) { /* only the graph's name, which is for people, may be lost */
          clv__hash hash;
          clv__graph_hash(graph, &hash);
          assert_memory_equal(&hash, &whole_hash, sizeof hash);
          clv__graph_destroy(graph);
          assert_int_equal(counting.live, 0);
          continue;
        }
        write_with_failures(graph, &counting);
        clv__graph_destroy(graph);
        assert_int_equal(counting.live, 0);
        break;
      }
      assert_int_equal(status, CLV_OUT_OF_MEMORY);
      assert_null(graph);
      assert_int_equal(counting.live, 0);
    }
  }
  clv__text_finish(&model);
}

static void nesting_is_limited(void **state) {
  (void)state;
  enum { DEEP = 3000 };
  size_t *marks = malloc(3 * DEEP * sizeof *marks);
  clv__text model;
  begin(&model);
  model_nested(&model, DEEP, marks);
  assert_true(model.size_bytes < 100000);
  expect(&model, CLV_NOT_SUPPORTED, "nested more than 64 levels deep");
  begin(&model);
  model_nested(&model, CLV__ONNX_MAX_DEPTH, marks);
  clv_error error;
  assert_int_equal(try_load(model.data, model.size_bytes, &error), CLV_OK);
  clv__text_finish(&model);
  free(marks);
}

static void add_function(clv__text *out, const char *name, const char *calls, unsigned times) {
  size_t function = clv__proto_begin(out, MODEL_FUNCTIONS, 0);
  clv__proto_write_string(out, FUNCTION_NAME, name);
  clv__proto_write_string(out, FUNCTION_DOMAIN, "local");
  for (unsigned i = 0; i < times; ++i) clv__proto_end(out, model_node(out, FUNCTION_NODE, "", "local", calls, "", ""), 0);
  clv__proto_end(out, function, 0);
}

static void functions_cannot_run_away(void **state) {
  (void)state;
  clv__text model;
  begin(&model);
  size_t graph = model_open(&model, 9);
  clv__proto_end(&model, model_node(&model, GRAPH_NODE, "", "local", "f", "", ""), 0);
  model_close(&model, graph);
  add_function(&model, "f", "f", 1);
  expect(&model, CLV_NOT_SUPPORTED, "nested more than 64 levels deep");

  begin(&model);
  graph = model_open(&model, 9);
  clv__proto_end(&model, model_node(&model, GRAPH_NODE, "", "local", "a", "", ""), 0);
  model_close(&model, graph);
  for (char name[] = "a", next[] = "b"; name[0] < 'z'; ++name[0], ++next[0]) add_function(&model, name, next, 4);
  add_function(&model, "z", "", 0);
  expect(&model, CLV_NOT_SUPPORTED, "expand to more than");
}

static void cycles_are_named(void **state) {
  (void)state;
  static const int64_t dims[] = {1};
  clv__text model;
  begin(&model);
  size_t graph = model_open(&model, 8);
  model_plain_node(&model, "Add", "X,b", "a");
  model_plain_node(&model, "Neg", "a", "b");
  model_value(&model, GRAPH_INPUT, "X", CLV_F32, dims, 1);
  model_value(&model, GRAPH_OUTPUT, "b", CLV_F32, dims, 1);
  model_close(&model, graph);
  expect(&model, CLV_INVALID_MODEL, "cycle");
}

static void missing_and_doubled_values_are_named(void **state) {
  (void)state;
  static const int64_t dims[] = {1};
  static const float one = 1;
  clv__text model;
  begin(&model);
  size_t graph = model_open(&model, 8);
  clv__proto_end(&model, model_node(&model, GRAPH_NODE, "n", "", "Neg", "nowhere", "b"), 0);
  model_value(&model, GRAPH_OUTPUT, "b", CLV_F32, dims, 1);
  model_close(&model, graph);
  expect(&model, CLV_INVALID_MODEL, "'nowhere'");

  begin(&model);
  graph = model_open(&model, 8);
  clv__proto_end(&model, model_node(&model, GRAPH_NODE, "n", "", "Neg", "w", "b"), 0);
  clv__proto_end(&model, model_node(&model, GRAPH_NODE, "m", "", "Abs", "w", "b"), 0);
  model_tensor(&model, GRAPH_INITIALIZER, "w", CLV_F32, dims, 1, &one, sizeof one);
  model_close(&model, graph);
  expect(&model, CLV_INVALID_MODEL, "node 'm' (Abs)");

  begin(&model);
  graph = model_open(&model, 8);
  model_tensor(&model, GRAPH_INITIALIZER, "w", CLV_F32, dims, 1, &one, sizeof one);
  model_tensor(&model, GRAPH_INITIALIZER, "w", CLV_F32, dims, 1, &one, sizeof one);
  model_close(&model, graph);
  expect(&model, CLV_INVALID_MODEL, "initializer 'w' appears twice");
}

static void expect_tensor(int dtype, const int64_t *dims, size_t rank, size_t raw_bytes, clv_status wanted, const char *text) {
  static const uint8_t bytes[64];
  clv__text model;
  begin(&model);
  size_t graph = model_open(&model, 8);
  model_tensor(&model, GRAPH_INITIALIZER, "w", dtype, dims, rank, bytes, raw_bytes);
  model_close(&model, graph);
  expect(&model, wanted, text);
}

static void absurd_tensors_are_refused(void **state) {
  (void)state;
  static const int64_t huge[] = {1LL << 40, 1LL << 40}, large[] = {1LL << 40}, negative[] = {-1},
                       ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  static const int64_t two[] = {2};
  expect_tensor(CLV_F32, huge, 2, 16, CLV_INVALID_MODEL,
                "tensor 'w': f32[1099511627776,1099511627776] is too large for any memory");
  expect_tensor(CLV_F32, large, 1, 16, CLV_INVALID_MODEL, "has 16 bytes of raw_data");
  expect_tensor(CLV_F32, negative, 1, 16, CLV_INVALID_MODEL, "dimension 0 is -1");
  expect_tensor(CLV_F32, ones, 9, 4, CLV_NOT_SUPPORTED, "rank 9");
  expect_tensor(CLV_F32, two, 1, 9, CLV_INVALID_MODEL, "has 9 bytes of raw_data, but f32[2] needs 8");
  expect_tensor(14, two, 1, 2, CLV_NOT_SUPPORTED, "tensor 'w': elements of type 14 (complex64)");
  expect_tensor(27, two, 1, 2, CLV_NOT_SUPPORTED, "float6e2m3");
  expect_tensor(CLV_F8E4M3FN, two, 1, 3, CLV_INVALID_MODEL, "has 3 bytes of raw_data, but f8e4m3fn[2] needs 2");
  expect_tensor(CLV_I4, two, 1, 2, CLV_INVALID_MODEL, "has 2 bytes of raw_data, but i4[2] needs 1");
  expect_tensor(CLV_U2, two, 1, 0, CLV_INVALID_MODEL, "has 0 bytes of data, but its shape needs 1");
  expect_tensor(99, two, 1, 2, CLV_NOT_SUPPORTED, "99");
  expect_tensor(0, two, 1, 2, CLV_INVALID_MODEL, "no element type");
  expect_tensor(CLV_STRING, two, 1, 2, CLV_INVALID_MODEL, "strings in raw_data");
  expect_tensor(CLV_F32, two, 1, 0, CLV_INVALID_MODEL, "has 0 elements of data, but its shape needs 2");
}

static void models_that_are_none_are_refused(void **state) {
  (void)state;
  clv__text model;
  begin(&model);
  expect(&model, CLV_INVALID_MODEL, "empty");
  begin(&model);
  clv__text_append(&model, "\x89PNG\r\n\x1a\n");
  expect(&model, CLV_INVALID_MODEL, "byte");
  begin(&model);
  clv__proto_end(&model, model_open(&model, 15), 0);
  expect(&model, CLV_NOT_SUPPORTED, "IR version 15 is above 14");
  begin(&model);
  clv__proto_write_varint(&model, MODEL_IR_VERSION, 8);
  expect(&model, CLV_INVALID_MODEL, "no graph");
  begin(&model);
  clv__text_append(&model, "\x0b");
  expect(&model, CLV_INVALID_MODEL, "group");
  begin(&model);
  size_t graph = model_open(&model, 8);
  clv__proto_end(&model, model_node(&model, GRAPH_NODE, "a\xff", "", "Neg", "x", "y"), 0);
  model_close(&model, graph);
  expect(&model, CLV_INVALID_MODEL, "UTF-8");
  begin(&model);
  graph = model_open(&model, 8);
  clv__proto_end(&model, clv__proto_begin(&model, GRAPH_SPARSE_INITIALIZER, 0), 0);
  model_close(&model, graph);
  expect(&model, CLV_NOT_SUPPORTED, "sparse");
}

/* An unknown operator domain may be imported. A node of an unknown domain without an import is an error. */
static void unknown_domains_matter_where_they_are_used(void **state) {
  (void)state;
  for (int used = 0; used < 2; ++used) {
    clv__text model;
    begin(&model);
    size_t graph = model_open(&model, 8);
    if (used) clv__proto_end(&model, model_node(&model, GRAPH_NODE, "n", "nowhere", "Op", "", "y"), 0);
    model_close(&model, graph);
    model_import(&model, MODEL_OPSET_IMPORT, "elsewhere", 1);
    if (used) {
      expect(&model, CLV_INVALID_MODEL, "'nowhere'");
    } else {
      clv_error error;
      assert_int_equal(try_load(model.data, model.size_bytes, &error), CLV_OK);
      clv__text_finish(&model);
    }
  }
}

/* ---- External data ---- */

static char folder[64];

static void in_folder(char path[256], const char *name) {
  int length = snprintf(path, 256, "%s/%s", folder, name);
  assert_true(length > 0 && length < 256);
}

static void write_in_folder(const char *name, const void *data, size_t size_bytes) {
  char path[256];
  clv_error error = {0};
  in_folder(path, name);
  assert_ok(clv__file_write(path, data, size_bytes, &error), error);
}

static clv_status load_external(const char *location, const char *offset, const char *length, clv_error *error) {
  static const int64_t dims[] = {3};
  clv__text model;
  begin(&model);
  size_t graph = model_open(&model, 8);
  model_external(&model, "w", CLV_F32, dims, 1, location, offset, length);
  model_external(&model, "v", CLV_F32, dims, 1, location, offset, length);
  model_close(&model, graph);
  write_in_folder("model/m.onnx", model.data, model.size_bytes);
  clv_graph *memory_graph;
  assert_int_not_equal(clv__onnx_load_memory(clv__allocator_default(), model.data, model.size_bytes, true, &memory_graph, error),
                       CLV_OK);
  clv__text_finish(&model);
  char path[256];
  in_folder(path, "model/m.onnx");
  test_allocator counting;
  test_allocator_init(&counting);
  clv_graph *graph_read;
  clv_status status = clv__onnx_load_file(&counting.allocator, path, &graph_read, error);
  if (status == CLV_OK) {
    clv_value_id value = clv__graph_find_value(graph_read, "w");
    assert_memory_equal(graph_read->values[value].type.data, ((const float[]){1, 2, 3}), 12);
    clv__graph_destroy(graph_read);
  }
  assert_int_equal(counting.live, 0);
  return status;
}

static int make_folder(void **state) {
  (void)state;
  strcpy(folder, "/tmp/cleave-test-XXXXXX");
  if (mkdtemp(folder) == NULL) return -1;
  char path[256], target[256];
  in_folder(path, "model");
  if (mkdir(path, 0700) != 0) return -1;
  static const float bytes[] = {0, 1, 2, 3};
  write_in_folder("model/w.bin", bytes, sizeof bytes);
  write_in_folder("outside.bin", bytes, sizeof bytes);
  in_folder(path, "model/link.bin");
  in_folder(target, "outside.bin");
  if (symlink(target, path) != 0) return -1;
  in_folder(path, "model/up");
  if (symlink("..", path) != 0) return -1;
  in_folder(path, "model/good.bin");
  return symlink("w.bin", path);
}

static int remove_folder(void **state) {
  (void)state;
  static const char *const names[] = {"model/w.bin",    "model/link.bin", "model/up",
                                      "model/good.bin", "model/m.onnx",   "outside.bin"};
  char path[256];
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    in_folder(path, names[i]);
    unlink(path);
  }
  in_folder(path, "model");
  rmdir(path);
  return rmdir(folder);
}

static void expect_external(const char *location, const char *offset, const char *length, clv_status wanted, const char *text) {
  clv_error error = {0};
  clv_status status = load_external(location, offset, length, &error);
  if (status != wanted || (wanted != CLV_OK && strstr(error.message, text) == NULL)) {
    fail_msg("the location '%s' gives %s: '%s', expected %s with '%s'", location != NULL ? location : "", clv_status_name(status),
             error.message, clv_status_name(wanted), wanted == CLV_OK ? "" : text);
  }
}

static void external_data_stays_in_the_folder(void **state) {
  (void)state;
  expect_external("w.bin", "4", "12", CLV_OK, "");
  expect_external("./w.bin", "4", NULL, CLV_OK, "");
  expect_external("good.bin", "4", "12", CLV_OK, "");
  expect_external("../outside.bin", "4", "12", CLV_INVALID_MODEL, "not in the model's folder");
  expect_external("a/../../outside.bin", "4", "12", CLV_INVALID_MODEL, "not in the model's folder");
  expect_external("/etc/passwd", "0", "12", CLV_INVALID_MODEL, "not in the model's folder");
  expect_external("link.bin", "4", "12", CLV_INVALID_MODEL, "is outside the model's folder");
  expect_external("up/outside.bin", "4", "12", CLV_INVALID_MODEL, "is outside the model's folder");
  expect_external("up", "0", "12", CLV_INVALID_MODEL, "is outside the model's folder");
  expect_external("absent.bin", "4", "12", CLV_NOT_FOUND, "absent.bin");
  expect_external(NULL, "4", "12", CLV_INVALID_MODEL, "");
  expect_external(".", "0", "12", CLV_INVALID_MODEL, "");
}

static void external_data_has_the_right_size(void **state) {
  (void)state;
  expect_external("w.bin", "8", "12", CLV_INVALID_MODEL, "has 16 bytes, but 12 are needed from byte 8");
  expect_external("w.bin", "18446744073709551615", "12", CLV_INVALID_MODEL, "has 16 bytes");
  expect_external("w.bin", "18446744073709551616", "12", CLV_INVALID_MODEL, "not a size in bytes");
  expect_external("w.bin", "-4", "12", CLV_INVALID_MODEL, "not a size in bytes");
  expect_external("w.bin", "4", "13", CLV_INVALID_MODEL, "has 13 bytes of external data, but its type needs 12");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_prefix_gets_a_status),
      cmocka_unit_test(mutations_get_a_status),
      cmocka_unit_test(every_failed_allocation_gets_a_status),
      cmocka_unit_test(nesting_is_limited),
      cmocka_unit_test(functions_cannot_run_away),
      cmocka_unit_test(cycles_are_named),
      cmocka_unit_test(missing_and_doubled_values_are_named),
      cmocka_unit_test(absurd_tensors_are_refused),
      cmocka_unit_test(models_that_are_none_are_refused),
      cmocka_unit_test(unknown_domains_matter_where_they_are_used),
      cmocka_unit_test(external_data_stays_in_the_folder),
      cmocka_unit_test(external_data_has_the_right_size),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
