/* Tests the safetensors reader: valid files are read in place, invalid ones give an error that names the tensor. Also tests
 * reading the weights of IR JSON models from files. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/text.h"
#include "formats/arrays/npz.h"
#include "formats/arrays/safetensors.h"
#include "formats/irjson/irjson.h"
#include "irjson_text.h"

typedef struct bytes {
  uint8_t data[4096];
  size_t size_bytes;
} bytes;

static bytes make(const char *header, size_t data_bytes) {
  bytes made = {.size_bytes = 8 + strlen(header) + data_bytes};
  assert_true(made.size_bytes <= sizeof made.data);
  uint64_t length = strlen(header);
  for (int i = 0; i < 8; ++i) made.data[i] = (uint8_t)(length >> 8 * i);
  memcpy(made.data + 8, header, length);
  for (size_t i = 0; i < data_bytes; ++i) made.data[8 + length + i] = (uint8_t)i;
  return made;
}

#define HEADER(text) make("{" text "}", 32)
#define ENTRY(name, dtype, shape, from, to) \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" from "," to "]}"

static void reads(void **state) {
  (void)state;
  bytes file = HEADER("\"__metadata__\":{\"format\":\"pt\"}," ENTRY("b", "BF16", "2,3", "16", "28") "," ENTRY(
      "a", "F32", "4", "0", "16") "," ENTRY("none", "I64", "0,5", "28", "28") "," ENTRY("s", "I32", "", "28", "32"));
  clv_error error = {0};
  clv__safetensors *opened;
  assert_ok(clv__safetensors_open_memory(clv__allocator_default(), file.data, file.size_bytes, &opened, &error), error);
  assert_int_equal(clv__safetensors_count(opened), 4);
  const uint8_t *start = file.data + file.size_bytes - 32;
  clv_tensor tensor;
  assert_ok(clv__safetensors_read(opened, "b", &tensor, &error), error);
  assert_int_equal(tensor.dtype, CLV_BF16);
  assert_int_equal(tensor.rank, 2);
  assert_int_equal(tensor.dims[1], 3);
  assert_ptr_equal(tensor.data, start + 16);
  assert_ok(clv__safetensors_read(opened, "a", &tensor, &error), error);
  assert_ptr_equal(tensor.data, start);
  assert_ok(clv__safetensors_read(opened, "none", &tensor, &error), error);
  assert_int_equal(tensor.dims[0], 0);
  assert_ok(clv__safetensors_read(opened, "s", &tensor, &error), error);
  assert_int_equal(tensor.rank, 0);
  assert_true(clv__safetensors_has(opened, "a"));
  assert_false(clv__safetensors_has(opened, "__metadata__"));
  assert_int_equal(clv__safetensors_read(opened, "c", &tensor, &error), CLV_NOT_FOUND);
  assert_non_null(strstr(error.message, "no tensor 'c'; the 4 tensors are:"));
  clv__safetensors_close(opened);
}

typedef struct bad {
  const char *header;
  size_t data_bytes;
  const char *message;
} bad;

static void refuses(void **state) {
  (void)state;
  static const bad files[] = {
      {"{" ENTRY("a", "F32", "8", "0", "33") "}", 32, "bytes 0 to 33 are outside the data of 32"},
      {"{" ENTRY("a", "F32", "8", "8", "4") "}", 32, "bytes 8 to 4"},
      {"{" ENTRY("a", "F32", "7", "0", "32") "}", 32, "it has 32 bytes, but its dtype and shape need 28"},
      {"{" ENTRY("a", "F32", "8", "0", "-32") "}", 32, "not two whole numbers"},
      {"{" ENTRY("a", "F32", "8", "0", "32.0") "}", 32, "not two whole numbers"},
      {"{" ENTRY("a", "F32", "-8", "0", "32") "}", 32, "an entry of its shape is not a whole number"},
      {"{" ENTRY("a", "F32", "4294967296,4294967296", "0", "32") "}", 32, "too large for any memory"},
      {"{" ENTRY("a", "F32", "4611686018427387904,0,4", "0", "0") "}", 0, "too large for any memory"},
      {"{" ENTRY("a", "F32", "4", "0", "16") "," ENTRY("b", "F32", "5", "12", "32") "}", 32, "'b' starts at byte 12"},
      {"{" ENTRY("a", "F32", "4", "0", "16") "," ENTRY("b", "F32", "3", "20", "32") "}", 32, "'b' starts at byte 20"},
      {"{" ENTRY("a", "F32", "4", "0", "16") "}", 32, "end at byte 16, but there are 32"},
      {"{" ENTRY("a", "F32", "4", "0", "16") "," ENTRY("a", "F32", "4", "16", "32") "}", 32, "duplicate"},
      {"{\"a\":3}", 0, "it is not an object"},
      {"{\"a\":{\"dtype\":7,\"shape\":[],\"data_offsets\":[0,4]}}", 4, "its dtype is not a string"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":4,\"data_offsets\":[0,4]}}", 4, "its shape is not a list"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "not two numbers"},
      {"{\"a\"", 0, "in the header, byte"},
      {" {}", 0, "not a JSON object"},
      {"{}", 1, "end at byte 0, but there are 1"},
  };
  for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
    bytes file = make(files[i].header, files[i].data_bytes);
    clv_error error = {0};
    clv__safetensors *opened = NULL;
    assert_int_equal(clv__safetensors_open_memory(clv__allocator_default(), file.data, file.size_bytes, &opened, &error),
                     CLV_INVALID_MODEL);
    assert_null(opened);
    if (strstr(error.message, files[i].message) == NULL)
      fail_msg("the header %s gives the error message '%s', which must contain '%s'", files[i].header, error.message,
               files[i].message);
  }
}

/* Tensors with an unsupported dtype or rank are an error only when they are read. Bools must be 0 or 1. */
static void refuses_when_read(void **state) {
  (void)state;
  bytes file = HEADER(ENTRY("f8", "F4", "16", "0", "8") "," ENTRY("new", "Q3", "5", "8", "16") "," ENTRY(
      "deep", "U8", "1,1,1,1,1,1,1,1,8", "16", "24") "," ENTRY("truth", "BOOL", "8", "24", "32"));
  clv_error error = {0};
  clv__safetensors *opened;
  clv_tensor tensor;
  assert_ok(clv__safetensors_open_memory(clv__allocator_default(), file.data, file.size_bytes, &opened, &error), error);
  assert_int_equal(clv__safetensors_read(opened, "f8", &tensor, &error), CLV_NOT_SUPPORTED);
  assert_int_equal(clv__safetensors_read(opened, "new", &tensor, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "Q3"));
  assert_int_equal(clv__safetensors_read(opened, "deep", &tensor, &error), CLV_NOT_SUPPORTED);
  assert_int_equal(clv__safetensors_read(opened, "truth", &tensor, &error), CLV_INVALID_MODEL);
  assert_non_null(strstr(error.message, "element 0 is 24, which is not a bool"));
  clv__safetensors_close(opened);
}

/* A header of deeply nested lists, every prefix of a file, and every file with one changed byte are rejected or read, without a
 * crash. */
static void damaged(void **state) {
  (void)state;
  enum { DEEP = 200000 };
  uint8_t *deep = malloc(DEEP + 8);
  assert_non_null(deep);
  memset(deep, '[', DEEP + 8);
  for (int i = 0; i < 8; ++i) deep[i] = (uint8_t)((uint64_t)DEEP >> 8 * i);
  memcpy(deep + 8, "{\"a\":", 5);
  clv_error error = {0};
  clv__safetensors *opened;
  assert_int_equal(clv__safetensors_open_memory(clv__allocator_default(), deep, DEEP + 8, &opened, &error), CLV_INVALID_MODEL);
  free(deep);
  const bytes good = HEADER(ENTRY("a", "F32", "4", "0", "16") "," ENTRY("b", "F32", "4", "16", "32"));
  uint64_t seed = 3;
  for (size_t i = 0; i < 20 * good.size_bytes; ++i) {
    bytes copy = good;
    if (i < good.size_bytes)
      copy.size_bytes = i;
    else
      copy.data[test_random(&seed) % copy.size_bytes] ^= (uint8_t)(1 + test_random(&seed) % 255);
    error.message[0] = '\0';
    if (clv__safetensors_open_memory(clv__allocator_default(), copy.data, copy.size_bytes, &opened, &error) != CLV_OK) {
      assert_true(error.message[0] != '\0');
      continue;
    }
    for (size_t k = 0; k < clv__safetensors_count(opened); ++k) {
      clv_tensor tensor;
      size_t size_bytes;
      if (clv__safetensors_read(opened, clv__safetensors_name(opened, k), &tensor, &error) != CLV_OK) continue;
      assert_true(clv__tensor_size_bytes(&tensor, &size_bytes));
      assert_true((uint8_t *)tensor.data + size_bytes <= copy.data + copy.size_bytes);
    }
    clv__safetensors_close(opened);
  }
}

/* ---- Weights of IR JSON ---- */

#define LAYER_WEIGHTS ENTRY("fc.weight", "F32", "4,3", "0", "48")

static char path[] = "/tmp/cleave-safetensors-XXXXXX";

static void save(const void *data, size_t size_bytes) {
  clv_error error = {0};
  assert_ok(clv__file_write(path, data, size_bytes, &error), error);
}

static clv_status load_with(const clv_allocator *allocator, clv_graph **graph, clv_error *error) {
  const char *const paths[] = {path};
  clv__params *params;
  *graph = NULL;
  clv_status status = clv__params_open(allocator, paths, 1, &params, error);
  if (status != CLV_OK) return status;
  status = clv__irjson_load(allocator, "m.json", IR_LAYER, strlen(IR_LAYER), params, graph, error);
  clv__params_close(params);
  return status;
}

/* Weights stay in the mapped file, which the graph owns, so the file may be deleted. */
static void binds(void **state) {
  (void)state;
  bytes file = make("{" LAYER_WEIGHTS "}", 48);
  save(file.data, file.size_bytes);
  clv_error error = {0};
  clv_graph *graph;
  assert_ok(load_with(clv__allocator_default(), &graph, &error), error);
  unlink(path);
  assert_ok(clv__graph_check_bound(graph, &error), error);
  const clv__value *weight = &graph->values[clv__graph_find_value(graph, "fc.weight")];
  assert_non_null(weight->type.data);
  assert_memory_equal(weight->type.data, file.data + file.size_bytes - 48, 48);
  clv__graph_destroy(graph);
}

/* In a weight file, a weight may have the name that it has in the model ("fc.weight"), or, as here, the one that nodes use for
 * it. */
static void binds_other_name(void **state) {
  (void)state;
  bytes file = make("{" ENTRY("p_fc_weight", "F32", "4,3", "0", "48") "}", 48);
  save(file.data, file.size_bytes);
  clv_error error = {0};
  clv_graph *graph;
  assert_ok(load_with(clv__allocator_default(), &graph, &error), error);
  assert_ok(clv__graph_check_bound(graph, &error), error);
  clv__graph_destroy(graph);
}

static void refuses_weights(void **state) {
  (void)state;
  static const struct {
    const char *header, *message;
    clv_status status;
  } files[] = {
      {"{" ENTRY("other", "F32", "4,3", "0", "48") "}", "no weight file has a tensor 'fc.weight'", CLV_NOT_FOUND},
      {"{" ENTRY("fc.weight", "F32", "3,4", "0", "48") "}", "is f32[3,4], but the model needs f32[4,3]", CLV_INVALID_MODEL},
      {"{" ENTRY("fc.weight", "I32", "4,3", "0", "48") "}", "is i32[4,3], but the model needs f32[4,3]", CLV_INVALID_MODEL}};
  for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
    bytes file = make(files[i].header, 48);
    save(file.data, file.size_bytes);
    clv_error error = {0};
    clv_graph *graph;
    assert_int_equal(load_with(clv__allocator_default(), &graph, &error), files[i].status);
    if (strstr(error.message, files[i].message) == NULL)
      fail_msg("the error message '%s' does not contain '%s'", error.message, files[i].message);
  }
}

static void binds_npz(void **state) {
  (void)state;
  float numbers[12];
  for (int i = 0; i < 12; ++i) numbers[i] = (float)i / 4;
  static const int64_t dims[] = {4, 3};
  const clv_tensor tensor = clv__tensor_make(CLV_F32, 2, dims, numbers);
  const char *const names[] = {"fc.weight"};
  clv_error error = {0};
  clv_graph *graph;
  assert_ok(clv__npz_write(clv__allocator_default(), path, names, &tensor, 1, true, &error), error);
  assert_ok(load_with(clv__allocator_default(), &graph, &error), error);
  assert_memory_equal(graph->values[clv__graph_find_value(graph, "fc.weight")].type.data, numbers, sizeof numbers);
  clv__graph_destroy(graph);
}

/* Makes each allocation fail once. This must give an error, and all memory must be released. */
static void no_memory(void **state) {
  (void)state;
  bytes file = make("{" LAYER_WEIGHTS "}", 48);
  save(file.data, file.size_bytes);
  test_allocator counting;
  test_allocator_init(&counting);
  clv_error error = {0};
  clv_graph *graph;
  assert_ok(load_with(&counting.allocator, &graph, &error), error);
  clv__graph_destroy(graph);
  assert_int_equal(counting.live, 0);
  size_t calls = counting.calls;
  for (size_t at = 1; at <= calls; ++at) {
    test_allocator_init(&counting);
    counting.fail_at = at;
    assert_int_equal(load_with(&counting.allocator, &graph, &error), CLV_OUT_OF_MEMORY);
    assert_null(graph);
    assert_int_equal(counting.live, 0);
  }
}

static int make_path(void **state) {
  (void)state;
  int file = mkstemp(path);
  return file < 0 ? -1 : close(file);
}

static int remove_path(void **state) {
  (void)state;
  unlink(path);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads),           cmocka_unit_test(refuses),   cmocka_unit_test(refuses_when_read),
      cmocka_unit_test(damaged),         cmocka_unit_test(binds),     cmocka_unit_test(binds_other_name),
      cmocka_unit_test(refuses_weights), cmocka_unit_test(binds_npz), cmocka_unit_test(no_memory),
  };
  return cmocka_run_group_tests(tests, make_path, remove_path);
}
