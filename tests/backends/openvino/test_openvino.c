/* OpenVINO as a device: dtypes and unusual shapes, outputs that are the same tensor as an input or as another output, dynamic
 * shapes and sizes that depend on data, saved models, options, verdicts with their reasons, and files that are not a usable
 * library. Skipped if OpenVINO is not installed. */
#include "analysis/shapes.h"
#include "backends/openvino/device.h"
#include "framework.h"

static bool skipped(void) {
  return framework_skipped("OpenVINO", "CLEAVE_OPENVINO");
}

/* ---- Values ---- */

/* Plans one node of operator `op` with an input of the given dtype. `is_taken`: whether the device must support the node; if so,
 * its results are checked too. */
static void check_node(clv_dtype dtype, const char *op, const char *inputs, bool is_taken, const char *option) {
  machine m;
  test_graph g;
  clv_error error = {0};
  uint64_t random = (uint64_t)dtype, data[24] = {0};
  int64_t shape[] = {2, 3, 4};
  clv_tensor input = clv__tensor_make(dtype, 3, shape, data);
  for (size_t i = 0; i < 24; ++i) {
    double number = (double)(test_random(&random) % 100);
    clv__tensor_put(&input, i, number, (int64_t)number, number > 50);
  }
  open_machine(&m, "openvino:CPU", option);
  test_graph_begin(&g, &m.counting.allocator, 1);
  test_graph_input(&g, "x", dtype, 3, shape);
  test_graph_node(&g, "node", op, inputs, "y");
  clv_graph *graph = test_graph_end(&g, "y");
  clv_plan *plan = NULL;
  clv_status status = clv_plan_make(graph, m.devices, NULL, &plan, &error);
  if (is_taken != (status == CLV_OK))
    fail_msg("%s of %s: %s%s", op, clv_dtype_name(dtype),
             is_taken ? "planning must succeed, but fails: " : "planning must fail, but succeeds", is_taken ? error.message : "");
  clv_plan_destroy(plan);
  if (is_taken) check_graph(&m, graph, &input, clv_dtype_name(dtype));
  clv_graph_destroy(graph);
  machine_close(&m);
}

static void dtypes(void **state) {
  (void)state;
  static const clv_dtype kept[] = {CLV_F32, CLV_F16, CLV_BF16, CLV_I8, CLV_I16, CLV_I32, CLV_U8, CLV_U16, CLV_U32, CLV_BOOL};
  static const clv_dtype narrowed[] = {CLV_F64, CLV_I64, CLV_U64};
  if (skipped()) return;
  for (size_t i = 0; i < sizeof kept / sizeof *kept; ++i) check_node(kept[i], "Transpose", "x", true, NULL);
  for (size_t i = 0; i < sizeof narrowed / sizeof *narrowed; ++i) check_node(narrowed[i], "Transpose", "x", false, NULL);
  check_node(CLV_I64, "Transpose", "x", true, "openvino:CPU:integers=narrow");
  check_node(CLV_F32, "Greater", "x,x", false, NULL);
  check_node(CLV_I32, "Greater", "x,x", true, NULL);
  check_node(CLV_F32, "Relu", "x", true, NULL);
  check_node(CLV_F32, "Relu", "x", false, "openvino:CPU:nan=keep");
  check_node(CLV_U8, "Add", "x,x", false, NULL);
  check_node(CLV_I64, "Shape", "x", true, NULL);
}

/* Outputs that OpenVINO reduces to the same tensor as an input or another output: each has its own memory with the right values,
 * and inputs are not overwritten. */
static void one_tensor(void **state) {
  (void)state;
  if (skipped()) return;
  for (int open = 0; open < 2; ++open) {
    machine m;
    test_graph g;
    float x[1] = {1.5f}, other[1] = {4};
    open_machine(&m, "openvino:CPU", NULL);
    test_graph_begin(&g, &m.counting.allocator, 1);
    int64_t n = open == 1 ? test_graph_symbol(&g, "N") : 1;
    test_graph_input(&g, "unread", CLV_F32, 2, DIMS(n, 1));
    test_graph_input(&g, "x", CLV_F32, 2, DIMS(n, 1));
    test_graph_node(&g, "passed", "Max", "x", "a");
    test_graph_node(&g, "again", "Sum", "a", "b");
    test_graph_node(&g, "negative", "Neg", "a", "c");
    test_graph_node(&g, "same", "Sum", "c", "d");
    test_graph_node(&g, "dead", "Abs", "unread", "e");
    clv_graph *graph = test_graph_end(&g, "a,b,c,d");
    clv_tensor inputs[] = {clv__tensor_make(CLV_F32, 2, DIMS(1, 1), other), clv__tensor_make(CLV_F32, 2, DIMS(1, 1), x)};
    check_graph(&m, graph, inputs, "one tensor");
    assert_true(x[0] == 1.5f && other[0] == 4);
    clv_graph_destroy(graph);
    machine_close(&m);
  }
}

static void sized_by_data(void **state) {
  (void)state;
  if (!skipped()) check_sized_by_data("openvino:CPU");
}

static void open_sizes(void **state) {
  (void)state;
  if (!skipped()) check_open_sizes("openvino:CPU,cpu");
}

/* ---- Compiled models as bytes ---- */

typedef struct bytes {
  uint8_t *data;
  size_t size_bytes;
} bytes;

static clv_status append(void *cookie, const void *data, size_t size_bytes) {
  bytes *b = cookie;
  b->data = realloc(b->data, b->size_bytes + size_bytes);
  memcpy(b->data + b->size_bytes, data, size_bytes);
  b->size_bytes += size_bytes;
  return CLV_OK;
}

/* Saves a compiled model as bytes, loads these into another OpenVINO core, overwrites the bytes, and runs the loaded model.
 * Damaged bytes must be rejected. */
static void kept_models(void **state) {
  (void)state;
  if (skipped()) return;
  machine m;
  test_graph g;
  clv_error error = {0};
  void *library = NULL, *devices[2], *model = NULL, *loaded = NULL, *request = NULL;
  open_machine(&m, "cpu", NULL);
  const clv_host *host = clv__context_host(m.context);
  assert_ok(clv__openvino_load(host, &library, &error), error);
  const clv_compile_options compile = {.struct_size = sizeof compile};
  clv_device_config config = {.struct_size = sizeof config, .name = "openvino:CPU", .thread_count = 1};
  clv__framework_device_info info;
  for (int i = 0; i < 2; ++i) {
    assert_ok(clv__openvino_device_open(library, host, "CPU", &config, &devices[i], &info, &error), error);
  }
  test_graph_begin(&g, &m.counting.allocator, 1);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(2, 4));
  test_graph_weight(&g, "w", 2, DIMS(4, 4));
  test_graph_node(&g, "product", "MatMul", "x,w", "a");
  test_graph_node(&g, "passed", "Max", "x", "b");
  clv_graph *graph = test_graph_end(&g, "a,b");
  clv__arena arena;
  clv__shapes *shapes = NULL;
  clv_graph_view *view = NULL;
  clv__arena_init(&arena, &m.counting.allocator);
  assert_ok(clv__shapes_infer(graph, NULL, 0, 0, &shapes, &error), error);
  assert_ok(clv__view_create_whole(graph, shapes->types, &arena, &view, &error), error);
  assert_ok(clv__openvino_model_compile(devices[0], host, view, &compile, &model, &error), error);
  bytes b = {NULL, 0};
  assert_ok(clv__openvino_model_save(model, append, &b, &error), error);
  float x[8] = {1, -2, 3, -4, 5, -6, 7, -8}, outputs[2][2][8];
  for (int i = 0; i < 2; ++i) {
    if (i == 1) {
      assert_ok(clv__openvino_model_load(devices[1], b.data, b.size_bytes, &loaded, &error), error);
      memset(b.data, 0x5a, b.size_bytes); /* the loaded model must not read the bytes any more */
    }
    clv_tensor type = clv__tensor_make(CLV_F32, 2, DIMS(2, 4), x);
    clv_binding in = {.type = type}, out[2] = {{.type = type}, {.type = type}};
    out[0].type.data = outputs[i][0];
    out[1].type.data = outputs[i][1];
    clv__framework_run run = {.struct_size = sizeof run, .input_count = 1, .output_count = 2, .inputs = &in, .outputs = out};
    assert_ok(clv__openvino_request_create(i == 0 ? model : loaded, &type, 1, &request, &error), error);
    for (int k = 0; k < 3; ++k) assert_ok(clv__openvino_request_run(request, &run, &error), error);
    clv__openvino_request_destroy(request);
  }
  assert_memory_equal(outputs[0], outputs[1], sizeof outputs[0]);
  assert_memory_equal(outputs[0][1], x, sizeof x);
  bytes again = {NULL, 0};
  assert_ok(clv__openvino_model_save(model, append, &again, &error), error);
  for (size_t length = 0; length < 200; length += 7) {
    void *none = NULL;
    assert_int_not_equal(clv__openvino_model_load(devices[1], again.data, length, &none, &error), CLV_OK);
    assert_null(none);
  }
  again.data[8] ^= 1; /* changes the library's version in the file */
  assert_int_equal(clv__openvino_model_load(devices[1], again.data, again.size_bytes, &request, &error), CLV_NOT_SUPPORTED);
  free(again.data);
  free(b.data);
  clv__openvino_model_destroy(loaded);
  clv__openvino_model_destroy(model);
  for (int i = 0; i < 2; ++i) clv__openvino_device_close(devices[i]);
  clv__arena_finish(&arena);
  clv__shapes_destroy(shapes);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* ---- Options, reasons ---- */

static void options(void **state) {
  (void)state;
  static const char *const good[] = {"threads=2", "precision=exact", "precision=default", "integers=exact", "integers=narrow",
                                     "nan=lose",  "shapes=open",     "shapes=fixed",      "pinning=yes",    "pinning=no"};
  static const char *const bad[] = {"threads=0", "threads=x",  "precision=f32", "integers=64",
                                    "nan=",      "shapes=any", "pinning=1",     "spin=no"};
  if (skipped()) return;
  check_options("openvino:CPU", good, sizeof good / sizeof *good, bad, sizeof bad / sizeof *bad);
  machine m;
  clv_error error = {0};
  clv_devices *devices = NULL;
  open_machine(&m, "cpu", NULL);
  assert_int_equal(open_devices(m.context, "openvino:TPU", NULL, &devices, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "its devices are CPU"));
  machine_close(&m);
}

/* OpenVINO's messages may have several lines. The error of a failed call names the call and quotes the message on one line. */
static void reasons(void **state) {
  (void)state;
  if (skipped()) return;
  machine m;
  clv_error error = {0};
  void *library = NULL, *device = NULL, *model = NULL;
  open_machine(&m, "cpu", NULL);
  const clv_host *host = clv__context_host(m.context);
  assert_ok(clv__openvino_load(host, &library, &error), error);
  const clv__openvino *ov = library;
  clv_device_config config = {.struct_size = sizeof config, .name = "openvino:CPU"};
  clv__framework_device_info info;
  assert_ok(clv__openvino_device_open(library, host, "CPU", &config, &device, &info, &error), error);
  assert_string_equal(info.kind, "cpu");
  assert_non_null(strstr(info.fingerprint, ov->build));
  ov_model *read = NULL;
  int code = ov->core_read_model_from_memory_buffer(((clv__openvino_device *)device)->core, "nothing", 7, NULL, &read);
  assert_int_not_equal(code, 0);
  assert_int_equal(clv__openvino_failed(ov, &error, "ov_core_read_model_from_memory_buffer", code), CLV_DEVICE_ERROR);
  assert_non_null(strstr(error.message, "OpenVINO: ov_core_read_model_from_memory_buffer: "));
  assert_null(strchr(error.message, '\n'));
  assert_int_not_equal(clv__openvino_model_load(device, "nothing", 7, &model, &error), CLV_OK);
  clv__openvino_device_close(device);
  machine_close(&m);
}

/* ---- Files that are not usable libraries. These tests run before the real library is loaded ---- */

static void refuse(const char *said, const char *expected) {
  check_wrong_library("openvino:CPU", "CLEAVE_OPENVINO", said, expected);
}

static void wrong_libraries(void **state) {
  (void)state;
  refuse("/no/such/folder/libopenvino_c.so", "No such file");
  refuse("/proc/self/task", "does not contain libopenvino_c.so*");
  refuse("libopenvino_c.so", "is not a path");
  refuse(OLD_OPENVINO, "is version '2023.3.0-13775-ceeafaf64f3'; expected 2025.4 or later, but before 2027.0");
  refuse(NO_LIBRARY, "lacks ov_get_openvino_version");
  if (library_folder != NULL) setenv("CLEAVE_OPENVINO", library_folder, 1);
}

int main(void) {
  setenv("TBB_ENABLE_SANITIZERS", "1", 1); /* otherwise OpenVINO's TBB loads a library in a way that the sanitizers reject */
  framework_find("CLEAVE_OPENVINO", "openvino/libs");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wrong_libraries), cmocka_unit_test(dtypes),     cmocka_unit_test(one_tensor),
      cmocka_unit_test(sized_by_data),   cmocka_unit_test(open_sizes), cmocka_unit_test(kept_models),
      cmocka_unit_test(options),         cmocka_unit_test(reasons),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
