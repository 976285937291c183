/* Makes and runs plans for devices with memories of many sizes. Every plan must run: nodes that do not fit are placed on
 * another device. The results must not change. */
#include "machine.h"

enum { ELEMENTS = 1 * 8 * 8 * 8, INPUT_ELEMENTS = 3 * 8 * 8 };

/* Plans and runs test_seven_nodes() with Concat on the CPU. Returns the number of partitions on the NPU. */
static uint32_t run_with(const char *list, const char *option, float result[ELEMENTS]) {
  clv_error error = {0};
  clv_context *context;
  clv_devices *devices;
  clv_plan *plan;
  clv_session *session;
  assert_ok(clv_context_create(NULL, &context, &error), error);
  clv_devices_options devices_options = CLV_DEVICES_OPTIONS_INIT;
  devices_options.list = list;
  devices_options.device_options = &option;
  devices_options.device_option_count = option != NULL;
  assert_ok(clv_devices_open(context, &devices_options, &devices, &error), error);
  clv_graph *graph = test_seven_nodes(clv__allocator_default());
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  clv_assignment force = {"Concat", "cpu"};
  options.forces = &force;
  options.force_count = 1;
  assert_ok(clv_plan_make(graph, devices, &options, &plan, &error), error);
  assert_ok(clv_session_create(plan, NULL, &session, &error), error);
  float data[INPUT_ELEMENTS];
  uint64_t seed = 3;
  for (size_t i = 0; i < INPUT_ELEMENTS; ++i) data[i] = test_random_float(&seed);
  clv_tensor input = *clv_graph_input_type(graph, 0), output = {0};
  input.data = data;
  assert_ok(clv_session_run(session, &input, 1, &output, 1, &error), error);
  memcpy(result, output.data, ELEMENTS * sizeof *result);
  uint32_t on_npu = 0;
  for (uint32_t p = 0; p < plan->partition_count; ++p)
    on_npu += strcmp(devices->items[plan->partitions[p].device].name, "npu") == 0;
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  clv_devices_close(devices);
  clv_context_destroy(context);
  return on_npu;
}

static void every_memory_size(void **state) {
  (void)state;
  float expected[ELEMENTS], result[ELEMENTS];
  uint32_t least = UINT32_MAX, most = 0;
  run_with("cpu", NULL, expected);
  for (uint32_t kibibytes = 1; kibibytes <= 96; kibibytes += kibibytes < 24 ? 1 : 8) {
    char option[32];
    snprintf(option, sizeof option, "npu:memory=%uK", kibibytes);
    uint32_t on_npu = run_with("npu,cpu", option, result);
    least = on_npu < least ? on_npu : least;
    most = on_npu > most ? on_npu : most;
    for (size_t i = 0; i < ELEMENTS; ++i) {
      if (fabsf(result[i] - expected[i]) > 1e-5f)
        fail_msg("%s: element %zu is %g, expected %g", option, i, (double)result[i], (double)expected[i]);
    }
  }
  assert_int_equal(least, 0); /* the smallest memory fits no partition */
  assert_true(most >= 2);     /* the largest memory fits two partitions */
}

/* If pieces of partitions do not fit either, they are cut again. This ends with a plan or with an error. */
static void pieces_of_pieces(void **state) {
  (void)state;
  enum { LAYERS = 6 };
  clv_error error = {0};
  const char *specs[] = {
      "{\"name\": \"narrow\", \"operators\": \"all\", \"memory\": \"160K\", \"speed\": {\"flops_per_second\": "
      "1e12, \"bytes_per_second\": 1e12, \"copy_bytes_per_second\": 1e11}}",
      "{\"name\": \"wide\", \"operators\": \"all\"}"};
  const int64_t row[] = {1, 128}, square[] = {128, 128};
  clv_context *context;
  clv_devices *devices;
  assert_ok(clv_context_create(NULL, &context, &error), error);
  clv_devices_options devices_options = CLV_DEVICES_OPTIONS_INIT;
  devices_options.list = "wide,narrow";
  devices_options.npu_specs = specs;
  devices_options.npu_spec_count = 2;
  assert_ok(clv_devices_open(context, &devices_options, &devices, &error), error);
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 3);
  test_graph_input(&g, "v0", CLV_F32, 2, row);
  for (uint32_t i = 0; i < LAYERS; ++i) {
    char weight[16], inputs[32], output[16];
    snprintf(weight, sizeof weight, "w%u", i);
    snprintf(inputs, sizeof inputs, "v%u,w%u", i, i);
    snprintf(output, sizeof output, "v%u", i + 1);
    test_graph_weight(&g, weight, 2, square);
    test_graph_node(&g, output, "MatMul", inputs, output);
  }
  clv_graph *graph = test_graph_end(&g, "v6");
  clv_plan *plan;
  clv_status status = clv_plan_make(graph, devices, NULL, &plan, &error);
  if (status != CLV_OK && (status != CLV_NOT_SUPPORTED || strstr(error.message, "narrow would need") == NULL)) {
    fail_msg("expected a plan, or CLV_NOT_SUPPORTED with 'narrow would need'; got %s: %s", clv_status_name(status),
             error.message);
  }
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  clv_devices_close(devices);
  clv_context_destroy(context);
}

/* The virtual NPU stores weights of up to 4 KiB in its program. They count as memory of the program, and not again as
 * weights. */
static void small_weights_count_once(void **state) {
  (void)state;
  machine m;
  test_graph g;
  machine_open(&m, "npu", 1, (const char *const[]){"{\"operators\": \"all\", \"memory\": \"64K\"}"});
  test_graph_begin(&g, &m.counting.allocator, 3);
  test_graph_input(&g, "v0", CLV_F32, 2, DIMS(4, 64));
  test_graph_weight(&g, "large", 2, DIMS(64, 32));
  test_graph_weight(&g, "small", 2, DIMS(32, 16));
  test_graph_node(&g, "m0", "MatMul", "v0,large", "v1");
  test_graph_node(&g, "m1", "MatMul", "v1,small", "v2");
  clv_graph *graph = test_graph_end(&g, "v2");
  clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_int_equal(plan->needs[0].weight_bytes, 64 * 32 * 4);
  assert_int_equal(plan->needs[0].held_bytes, 32 * 16 * 4);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* Two products on the second of two NPUs that share a memory, which is too small. No node is on the first NPU, so all that
 * moves or is streamed must be the second NPU's. */
static void a_shared_memory_is_relieved(void **state) {
  (void)state;
  static const char spec[] = "{\"operators\": \"all\", \"memory\": \"112K\", \"memory_space\": \"shared\"}";
  machine m;
  test_graph g;
  machine_open(&m, "npu,npu1", 2, (const char *const[]){spec, spec});
  test_graph_begin(&g, &m.counting.allocator, 3);
  test_graph_input(&g, "v0", CLV_F32, 2, DIMS(4, 96));
  test_graph_weight(&g, "w0", 2, DIMS(96, 96));
  test_graph_weight(&g, "w1", 2, DIMS(96, 96));
  test_graph_node(&g, "m0", "MatMul", "v0,w0", "v1");
  test_graph_node(&g, "m1", "MatMul", "v1,w1", "v2");
  clv_graph *graph = test_graph_end(&g, "v2");
  for (uint32_t s = 0; s < strategy_count(); ++s) {
    clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
    options.strategy = clv__strategies[s]->name;
    clv_plan *plan = machine_plan(&m, graph, "*=npu1", options);
    assert_true(streamed_of(plan) > 0 && plan->needs[1].total_bytes <= 112 << 10);
    clv_plan_destroy(plan);
  }
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* Products that are forced onto a device that is too small for them, with views between them. If planning moves the partition
 * of a view to the other device, the next split moves the view back to the device of its source. Planning must end all the
 * same. */
static void views_do_not_move_forever(void **state) {
  (void)state;
  uint32_t planned = 0, refused = 0;
  for (uint32_t bytes = 1024; bytes <= 16384; bytes += 512) {
    for (uint32_t s = 0; s < strategy_count(); ++s) {
      machine m;
      test_graph g;
      char spec[128], name[16], in[16], out[16];
      clv_error error = {0};
      clv_plan *plan;
      snprintf(spec, sizeof spec, "{\"operators\": \"all\", \"memory\": %u, \"max_partition_nodes\": 1}", bytes);
      machine_open(&m, "npu,npu1", 2, (const char *const[]){spec, spec});
      test_graph_begin(&g, &m.counting.allocator, 3);
      test_graph_input(&g, "v0", CLV_F32, 2, DIMS(8, 16));
      test_graph_weight(&g, "w", 2, DIMS(16, 16));
      for (uint32_t n = 0; n < 6; ++n) {
        snprintf(name, sizeof name, "n%u", n);
        snprintf(in, sizeof in, "v%u%s", n, n % 2 == 0 ? ",w" : "");
        snprintf(out, sizeof out, "v%u", n + 1);
        test_graph_node(&g, name, n % 2 == 0 ? "MatMul" : "Identity", in, out);
      }
      clv_graph *graph = test_graph_end(&g, "v2,v4,v6");
      clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
      options.strategy = clv__strategies[s]->name;
      options.forces = &(clv_assignment){"MatMul", "npu"};
      options.force_count = 1;
      clv_status status = clv_plan_make(graph, m.devices, &options, &plan, &error);
      if (status != CLV_OK && status != CLV_NOT_SUPPORTED)
        fail_msg("%u bytes, %s: expected a plan or CLV_NOT_SUPPORTED, got %s: %s", bytes, options.strategy,
                 clv_status_name(status), error.message);
      planned += status == CLV_OK;
      refused += status != CLV_OK;
      clv_plan_destroy(plan);
      clv_graph_destroy(graph);
      machine_close(&m);
    }
  }
  assert_true(planned > 50 && refused > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_memory_size), cmocka_unit_test(pieces_of_pieces),
                                     cmocka_unit_test(small_weights_count_once), cmocka_unit_test(a_shared_memory_is_relieved),
                                     cmocka_unit_test(views_do_not_move_forever)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
