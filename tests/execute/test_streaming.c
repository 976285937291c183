/* If weights do not fit into a device's memory together, they are copied to it in every run, before the partition that reads
 * them. */
#include "execute/session.h"
#include "machine.h"

enum { LAYERS = 4, WIDTH = 512 };

static clv_graph *chain(const clv_allocator *allocator) {
  test_graph g;
  const int64_t square[] = {WIDTH, WIDTH};
  test_graph_begin(&g, allocator, 7);
  test_graph_input(&g, "v0", CLV_F32, 2, DIMS(4, WIDTH));
  for (int i = 0; i < LAYERS; ++i) {
    char weight[8], inputs[16], output[8];
    snprintf(weight, sizeof weight, "w%d", i);
    snprintf(inputs, sizeof inputs, "v%d,w%d", i, i);
    snprintf(output, sizeof output, "v%d", i + 1);
    test_graph_weight(&g, weight, 2, square);
    test_graph_node(&g, output, "MatMul", inputs, output);
  }
  char last[8];
  snprintf(last, sizeof last, "v%d", LAYERS);
  return test_graph_end(&g, last);
}

static void run_twice(const clv_plan *plan, const clv_graph *graph) {
  float data[4 * WIDTH];
  uint64_t seed = 3;
  for (size_t i = 0; i < sizeof data / sizeof *data; ++i) data[i] = test_random_float(&seed);
  clv_tensor input = f32(2, DIMS(4, WIDTH), data);
  clv_session *session = machine_session(plan);
  machine_check_run(session, plan, &input, "streamed");
  for (size_t i = 0; i < sizeof data / sizeof *data; ++i) data[i] = test_random_float(&seed);
  machine_check_run(session, plan, &input, "streamed again");
  clv__mismatch mismatch;
  clv_error error = {0};
  assert_ok(clv__session_verify(session, &input, graph->input_count, &mismatch, &error), error);
  assert_int_equal(mismatch.partition, CLV__NO_ID);
  clv_session_destroy(session);
}

/* Nodes are pinned to the NPU, whose memory is too small for the four weights and other data. */
static void pinned_nodes_are_streamed(void **state) {
  (void)state;
  machine m;
  clv_error error = {0};
  test_allocator_init(&m.counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &m.counting.allocator;
  assert_ok(clv_context_create(&context, &m.context, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  const char *memory = "npu:memory=4500K";
  devices.list = "npu,cpu";
  devices.device_options = &memory;
  devices.device_option_count = 1;
  assert_ok(clv_devices_open(m.context, &devices, &m.devices, &error), error);
  clv_graph *graph = chain(&m.counting.allocator);
  clv_plan *plan = machine_plan(&m, graph, "v*=npu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_true(streamed_of(plan) > 0);
  for (uint32_t p = 0; p < plan->partition_count; ++p) assert_int_equal(plan->partitions[p].device, 0);
  assert_true(plan->price.serial_ns > plan->bounds.serial_ns); /* the price includes streaming */
  run_twice(plan, graph);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pinned_nodes_are_streamed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
