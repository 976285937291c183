/* If weights do not fit into a device's memory together, they are copied to it in every run, before the partition that reads
 * them. */
#include "backends/vnpu/vnpu.h"
#include "execute/session.h"
#include "machine.h"

enum { LAYERS = 4, WIDTH = 512 };

/* v<i+1> = Relu(v<i> @ w<i>), for i = 0 to LAYERS - 1 */
static clv_graph *chain(const clv_allocator *allocator, bool is_open) {
  test_graph g;
  const int64_t square[] = {WIDTH, WIDTH};
  test_graph_begin(&g, allocator, 7);
  test_graph_input(&g, "v0", CLV_F32, 2, DIMS(is_open ? test_graph_symbol(&g, "N") : 4, WIDTH));
  for (int i = 0; i < LAYERS; ++i) {
    char weight[8], inputs[16], product[8], output[8];
    snprintf(weight, sizeof weight, "w%d", i);
    snprintf(inputs, sizeof inputs, "v%d,w%d", i, i);
    snprintf(product, sizeof product, "vw%d", i);
    snprintf(output, sizeof output, "v%d", i + 1);
    test_graph_weight(&g, weight, 2, square);
    test_graph_node(&g, product, "MatMul", inputs, product);
    test_graph_node(&g, output, "Relu", product, output);
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
  machine_check_run(session, plan, &input, "a run with streamed weights");
  for (size_t i = 0; i < sizeof data / sizeof *data; ++i) data[i] = test_random_float(&seed);
  machine_check_run(session, plan, &input, "a second run with streamed weights");
  clv__mismatch mismatch;
  clv_error error = {0};
  assert_ok(clv__session_verify(session, &input, graph->input_count, NULL, &mismatch, &error), error);
  assert_int_equal(mismatch.partition, CLV__NO_ID);
  clv_session_destroy(session);
}

/* Nodes are pinned to the NPU, whose memory is too small for the four weights and other data. A streamed weight is an input of
 * its partition, but `max_partition_inputs` does not count it: neither in the planner nor in the compiler. */
static void run_pinned(const char *spec, bool is_open, interposer_hook hook) {
  machine m;
  interposer *wrapped =
      interposer_create(&(interposer_options){.name = "wrapped", .query = clv__vnpu_backend_query, .spec = spec, .hook = hook});
  machine_open_with(&m, wrapped, "wrapped,cpu", 0, NULL);
  clv_graph *graph = chain(&m.counting.allocator, is_open);
  clv_plan *plan = machine_plan(&m, graph, "v*=wrapped", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  uint32_t both = 0;
  assert_true(streamed_of(plan) > 0);
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    assert_int_equal(plan->partitions[p].device, 0);
    both += plan->partitions[p].view->input_count > 1 && plan->partitions[p].node_count > 1;
  }
  assert_true(both > 0);
  assert_true(plan->price.serial_ns > plan->bounds.serial_ns); /* the price includes streaming */
  run_twice(plan, graph);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
  interposer_destroy(wrapped);
}

/* Rejects every other instance_create(). The session then compiles the partition again, for the sizes of the run, and creates
 * the instance from the new executable. */
static interposer_fate refuse_sizes(void *user_data, const interposer_call *call) {
  (void)user_data;
  if (call->slot != INTERPOSER_instance_create || call->slot_number % 2 == 0) return (interposer_fate){0};
  return (interposer_fate){.action = INTERPOSER_FAIL, .status = CLV_NOT_SUPPORTED, .message = "other sizes"};
}

static void pinned_nodes_are_streamed(void **state) {
  (void)state;
  run_pinned("{\"operators\": \"all\", \"memory\": \"4500K\"}", false, NULL);
}

static void streamed_weights_are_not_counted(void **state) {
  (void)state;
  static const char any[] = "{\"operators\": \"all\", \"memory\": \"4000K\", \"max_partition_inputs\": 1}",
                    fixed[] =
                        "{\"operators\": \"all\", \"memory\": \"4500K\", \"max_partition_inputs\": 1, \"static_shapes\": true}";
  run_pinned(any, false, NULL);
  run_pinned(any, true, refuse_sizes);
  run_pinned(fixed, true, NULL); /* padded to a bucket */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pinned_nodes_are_streamed),
                                     cmocka_unit_test(streamed_weights_are_not_counted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
