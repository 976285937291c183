/* ONNX Runtime as a device: the position of every API function in the table, all dtypes and unusual shapes, outputs whose size
 * depends on data, dynamic shapes, options, threads, verdicts, and files that are not a usable library. Skipped if ONNX Runtime
 * is not installed. */
#include "backends/onnxruntime/device.h"
#include "framework.h"

static bool skipped(void) {
  return framework_skipped("ONNX Runtime", "CLEAVE_ONNXRUNTIME");
}

/* ---- The API ---- */

/* Checks the positions of functions in the API table, by calling those that no other test here calls, or whose position could
 * be confused with a neighbour's. */
static void places(void **state) {
  (void)state;
  if (skipped()) return;
  machine m;
  clv_error error = {0};
  void *loaded;
  open_machine(&m, "cpu", NULL);
  assert_ok(clv__ort_load(clv__context_host(m.context), &loaded, &error), error);
  const clv__ort_library *library = loaded;
  const clv__ort_api *api = library->api;
  assert_true(strncmp(library->version, "1.", 2) == 0);
  clv__ort_options *options;
  assert_null(api->CreateSessionOptions(&options));
  clv__ort_status *status = api->SessionOptionsAppendExecutionProvider(options, "NoSuchThing", NULL, NULL, 0);
  assert_non_null(status);
  assert_int_not_equal(api->GetErrorCode(status), 0);
  assert_non_null(strstr(api->GetErrorMessage(status), "NoSuchThing"));
  api->ReleaseStatus(status);
  /* If the library has no CUDA, the call fails with an error that names CUDA. Otherwise it creates options, which must be
   * released. */
  clv__ort_cuda *cuda = NULL;
  status = api->CreateCUDAProviderOptions(&cuda);
  if (status == NULL) {
    const char *const key = "device_id", *const value = "0";
    assert_null(api->UpdateCUDAProviderOptions(cuda, &key, &value, 1));
    api->ReleaseCUDAProviderOptions(cuda);
  } else {
    assert_non_null(strstr(api->GetErrorMessage(status), "CUDA"));
    api->ReleaseStatus(status);
  }
  assert_null(api->AddSessionConfigEntry(options, "session.disable_cpu_ep_fallback", "1"));
  status = api->AddSessionConfigEntry(options, "", "1"); /* an empty key is an error */
  assert_non_null(status);
  assert_ok(clv__ort_check(api, NULL, "nothing", &error), error);
  assert_int_not_equal(clv__ort_check(api, status, "AddSessionConfigEntry", &error), CLV_OK);
  assert_non_null(strstr(error.message, "AddSessionConfigEntry: "));
  assert_null(api->SetDeterministicCompute(options, true));
  assert_null(api->SetIntraOpNumThreads(options, 1));
  assert_null(api->SetSessionLogSeverityLevel(options, CLV__ORT_LOG_ERROR));
  api->ReleaseSessionOptions(options);
  machine_close(&m);
}

/* ---- Values ---- */

static void dtypes(void **state) {
  (void)state;
  static const clv_dtype all[] = {CLV_F32, CLV_F64, CLV_F16, CLV_BF16, CLV_I8,  CLV_I16, CLV_I32,
                                  CLV_I64, CLV_U8,  CLV_U16, CLV_U32,  CLV_U64, CLV_BOOL};
  static const int64_t shapes[][3] = {{2, 3, 4}, {1, 1, 1}, {2, 0, 4}};
  if (skipped()) return;
  for (size_t d = 0; d < sizeof all / sizeof *all; ++d) {
    for (int32_t s = 0; s < 4; ++s) { /* the last shape is a scalar */
      machine m;
      test_graph g;
      uint64_t random = d * 7 + (uint64_t)s, data[24] = {0};
      int32_t rank = s == 3 ? 0 : 3;
      clv_tensor input = clv__tensor_make(all[d], rank, shapes[s % 3], data);
      for (size_t i = 0; i < (s == 0 ? 24 : 1); ++i) {
        double number = (double)(test_random(&random) % 100);
        clv__tensor_put(&input, i, number, (int64_t)number, number > 50);
      }
      open_machine(&m, "onnxruntime:CPU", s == 1 ? "onnxruntime:CPU:async=yes" : NULL);
      test_graph_begin(&g, &m.counting.allocator, 1);
      test_graph_input(&g, "x", all[d], rank, shapes[s % 3]);
      test_graph_node(&g, "copy", "Identity", "x", "y");
      clv_graph *graph = test_graph_end(&g, "y");
      check_graph(&m, graph, &input, clv_dtype_name(all[d]));
      clv_graph_destroy(graph);
      machine_close(&m);
    }
  }
}

static void sized_by_data(void **state) {
  (void)state;
  if (!skipped()) check_sized_by_data("onnxruntime:CPU");
}

static void open_sizes(void **state) {
  (void)state;
  if (!skipped()) check_open_sizes("onnxruntime:CPU,cpu");
}

/* ---- Options, threads, logs ---- */

static void options(void **state) {
  (void)state;
  static const char *const good[] = {"optimize=off", "optimize=basic", "optimize=extended", "optimize=all",
                                     "spin=no",      "spin=yes",       "provider="};
  static const char *const bad[] = {"optimize=most", "spin=perhaps", "provider=x", "provider==1", "provider=a=1;b"};
  if (skipped()) return;
  check_options("onnxruntime:CPU", good, sizeof good / sizeof *good, bad, sizeof bad / sizeof *bad);
}

/* Two devices with different numbers of threads in one process both give the right results. After the first is closed, closing
 * the second must work too. */
static void two_devices(void **state) {
  (void)state;
  if (skipped()) return;
  machine a, b;
  uint64_t random = 4;
  static float x[3 * 8 * 8];
  for (size_t i = 0; i < sizeof x / sizeof *x; ++i) x[i] = test_random_float(&random);
  open_machine(&a, "onnxruntime", NULL);
  open_machine(&b, "cpu", NULL);
  clv_devices *devices;
  clv_error error = {0};
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  options.list = "onnxruntime:CPU";
  options.thread_count = 2;
  assert_ok(clv_devices_open(b.context, &options, &devices, &error), error);
  clv_devices_close(b.devices);
  b.devices = devices;
  machine *both[] = {&a, &b};
  for (int i = 0; i < 2; ++i) {
    test_graph g;
    test_graph_begin(&g, &both[i]->counting.allocator, 1);
    test_graph_input(&g, "x", CLV_F32, 4, DIMS(1, 3, 8, 8));
    test_graph_weight(&g, "w", 4, DIMS(8, 3, 3, 3));
    test_graph_node(&g, "conv", "Conv", "x,w", "a");
    test_graph_node(&g, "relu", "Relu", "a", "y");
    clv_graph *graph = test_graph_end(&g, "y");
    clv_tensor input = clv__tensor_make(CLV_F32, 4, DIMS(1, 3, 8, 8), x);
    check_graph(both[i], graph, &input, "two devices");
    clv_graph_destroy(graph);
  }
  machine_close(&a);
  machine_close(&b); /* `b` is now the only user of ONNX Runtime's environment, which a process has once */
}

static void reasons(void **state) {
  (void)state;
  if (skipped()) return;
  machine m;
  test_graph g;
  clv_error error = {0};
  clv_plan *plan = NULL;
  open_machine(&m, "onnxruntime:CPU", NULL);
  test_graph_begin(&g, &m.counting.allocator, 1);
  test_graph_input(&g, "x", CLV_BF16, 1, DIMS(4));
  test_graph_node(&g, "tangent", "Atan", "x", "y");
  clv_graph *graph = test_graph_end(&g, "y");
  assert_int_equal(clv_plan_make(graph, m.devices, NULL, &plan, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "Atan")); /* the name is in ONNX Runtime's message */
  assert_null(strchr(error.message, '\n'));
  clv_graph_destroy(graph);
  test_graph_begin(&g, &m.counting.allocator, 1);
  test_graph_input(&g, "from", CLV_I64, 1, DIMS(1));
  test_graph_input(&g, "to", CLV_I64, 0, DIMS(1));
  test_graph_input(&g, "step", CLV_I64, 0, DIMS(1));
  test_graph_node(&g, "range", "Range", "from,to,step", "y");
  graph = test_graph_end(&g, "y");
  assert_int_equal(clv_plan_make(graph, m.devices, NULL, &plan, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "operands that are not known to be scalars"));
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* ---- Products of u8 and s8, with the largest values of both types ---- */

enum { ROWS = 8, DEPTH = 64, COLUMNS = 16 };

static clv_graph *product_of_integers(machine *m) {
  test_graph g;
  test_graph_begin(&g, &m->counting.allocator, 1);
  test_graph_input(&g, "x", CLV_U8, 2, DIMS(ROWS, DEPTH));
  test_graph_input(&g, "w", CLV_I8, 2, DIMS(DEPTH, COLUMNS));
  test_graph_node(&g, "product", "MatMulInteger", "x,w", "y");
  return test_graph_end(&g, "y");
}

/* A product of dequantised floats, which ONNX Runtime's optimiser turns into a product of integers. */
static clv_graph *product_of_floats(machine *m) {
  test_graph g;
  test_graph_begin(&g, &m->counting.allocator, 1);
  test_graph_input(&g, "x", CLV_U8, 2, DIMS(ROWS, DEPTH));
  test_graph_input(&g, "w", CLV_I8, 2, DIMS(DEPTH, COLUMNS));
  test_graph_weight(&g, "x_scale", 0, NULL);
  test_graph_weight(&g, "w_scale", 0, NULL);
  test_graph_node(&g, "x_floats", "DequantizeLinear", "x,x_scale", "a");
  test_graph_node(&g, "w_floats", "DequantizeLinear", "w,w_scale", "b");
  test_graph_node(&g, "product", "MatMul", "a,b", "y");
  return test_graph_end(&g, "y");
}

/* If products of u8 and s8 saturate on this processor, planning an integer product for ONNX Runtime alone must fail. In all
 * other cases, the results must be right. */
static void integers(void **state) {
  (void)state;
  if (skipped()) return;
  static uint8_t x[ROWS * DEPTH];
  static int8_t w[DEPTH * COLUMNS];
  memset(x, 255, sizeof x);
  memset(w, 127, sizeof w);
  const clv_tensor inputs[2] = {clv__tensor_make(CLV_U8, 2, DIMS(ROWS, DEPTH), x),
                                clv__tensor_make(CLV_I8, 2, DIMS(DEPTH, COLUMNS), w)};
  for (int i = 0; i < 3; ++i) {
    const bool is_refused = i == 0 && clv__ort_saturates();
    machine m;
    clv_error error = {0};
    clv_plan *plan = NULL;
    open_machine(&m, i == 1 ? "onnxruntime:CPU,cpu" : "onnxruntime:CPU", NULL);
    clv_graph *graph = i == 2 ? product_of_floats(&m) : product_of_integers(&m);
    if (is_refused) {
      assert_int_equal(clv_plan_make(graph, m.devices, NULL, &plan, &error), CLV_NOT_SUPPORTED);
      assert_non_null(strstr(error.message, "products of u8 and s8 may saturate on a processor without VNNI"));
    } else {
      check_graph(&m, graph, inputs, "u8 times s8");
    }
    clv_graph_destroy(graph);
    machine_close(&m);
  }
}

/* ---- Files that are not usable libraries. These tests run before the real library is loaded ---- */

static void refuse(const char *said, const char *expected) {
  check_wrong_library("onnxruntime:CPU", "CLEAVE_ONNXRUNTIME", said, expected);
}

static void wrong_libraries(void **state) {
  (void)state;
  char garbage[] = "/tmp/cleave-garbage-XXXXXX";
  int file = mkstemp(garbage);
  assert_true(file >= 0);
  assert_int_equal(write(file, "no library", 10), 10);
  close(file);
  refuse(garbage, garbage);
  unlink(garbage);
  refuse("/no/such/folder/libonnxruntime.so", "No such file");
  refuse("/proc/self/task", "does not contain libonnxruntime.so*");
  refuse("libonnxruntime.so", "is not a path");
  refuse(OLD_LIBRARY, "ONNX Runtime 1.2.0; expected version 1.17 or later");
  refuse(NO_LIBRARY, "lacks OrtGetApiBase");
  if (library_folder != NULL) setenv("CLEAVE_ONNXRUNTIME", library_folder, 1);
}

int main(void) {
  framework_find("CLEAVE_ONNXRUNTIME", "onnxruntime/capi");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wrong_libraries), cmocka_unit_test(places),     cmocka_unit_test(dtypes),
      cmocka_unit_test(sized_by_data),   cmocka_unit_test(open_sizes), cmocka_unit_test(options),
      cmocka_unit_test(two_devices),     cmocka_unit_test(reasons),    cmocka_unit_test(integers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
