/* Tests the verdicts of devices without a plan (cleave/support.h): they must be those of a plan where there is one, and also
 * exist where no plan does, because no device can run some node. */
#include "machine.h"

enum { GRAPHS = 60 };

static void verdicts_are_those_of_the_plan(void **state) {
  (void)state;
  for (uint32_t seed = 0; seed < test_some(GRAPHS); ++seed) {
    machine m;
    clv_error error = {0};
    clv_support *support;
    machine_open(&m, "npu,cpu", 0, NULL);
    clv_graph *graph = test_random_graph(&m.counting.allocator, seed, 3 + seed % 30);
    clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    assert_ok(clv_support_ask(graph, m.devices, NULL, &support, &error), error);
    assert_int_equal(clv_support_node_count(support), graph->node_count);
    for (uint32_t n = 0; n <= graph->node_count; ++n) {
      clv_node_support info = {.struct_size = sizeof info};
      clv_placed_node_info placed = {.struct_size = sizeof placed};
      assert_int_equal(clv_support_node(support, n, &info), clv_plan_node(plan, n, &placed));
      assert_int_equal(info.is_folded, n < graph->node_count && placed.device == CLV_NO_INDEX);
      assert_int_equal(info.can_run, n < graph->node_count); /* the CPU runs every node of these graphs */
      assert_ptr_equal(info.name, placed.name);
      assert_ptr_equal(info.op, placed.op);
      for (uint32_t d = 0; d <= 2; ++d) {
        const char *expected = clv_plan_node_refusal(plan, n, d), *actual = clv_support_refusal(support, n, d);
        assert_int_equal(expected == NULL, actual == NULL);
        if (actual != NULL) assert_string_equal(actual, expected);
      }
    }
    clv_support_destroy(support);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    machine_close(&m);
  }
}

/* y = Relu(Unknown(Relu(x))), where x is f32[N,4]. */
static clv_graph *with_unknown(machine *m) {
  clv_error error = {0};
  clv_graph_builder *builder;
  clv_graph *graph;
  const clv_tensor type = {.dtype = CLV_F32, .rank = 2, .dims = {-1, 4}};
  const char *const symbols[] = {"N", NULL}, *const names[] = {"x", "a", "b", "y"};
  assert_ok(clv_graph_builder_create(m->context, 17, &builder, &error), error);
  assert_ok(clv_graph_builder_import(builder, "mine", 1, &error), error);
  assert_ok(clv_graph_builder_input(builder, "x", &type, symbols, &error), error);
  for (uint32_t i = 0; i < 3; ++i) {
    const clv_builder_node node = {.struct_size = sizeof node,
                                   .op = i == 1 ? "Unknown" : "Relu",
                                   .domain = i == 1 ? "mine" : "",
                                   .inputs = &names[i],
                                   .input_count = 1,
                                   .outputs = &names[i + 1],
                                   .output_count = 1};
    assert_ok(clv_graph_builder_node(builder, &node, &error), error);
  }
  assert_ok(clv_graph_builder_value(builder, "b", &type, symbols, &error), error);
  assert_ok(clv_graph_builder_output(builder, "y", NULL, &error), error);
  assert_ok(clv_graph_builder_finish(builder, &graph, &error), error);
  return graph;
}

static void unknown_operators_are_refused(void **state) {
  (void)state;
  machine m;
  clv_error error = {0};
  clv_plan *plan;
  clv_support *support;
  machine_open(&m, "cpu", 0, NULL);
  clv_graph *graph = with_unknown(&m);
  const clv_tensor *type = clv_graph_output_type(graph, 0); /* known only because the type of `b` was declared */
  assert_int_equal(type->dtype, CLV_F32);
  assert_int_equal(type->rank, 2);
  assert_int_equal(type->dims[0], clv_graph_input_type(graph, 0)->dims[0]);
  assert_int_equal(type->dims[1], 4);
  assert_int_equal(clv_plan_make(graph, m.devices, NULL, &plan, &error), CLV_NOT_SUPPORTED);
  assert_ok(clv_support_ask(graph, m.devices, NULL, &support, &error), error);
  for (uint32_t n = 0; n < 3; ++n) {
    clv_node_support info = {.struct_size = sizeof info};
    assert_true(clv_support_node(support, n, &info));
    assert_int_equal(info.can_run, n != 1);
    assert_int_equal(clv_support_refusal(support, n, 0) != NULL, n == 1);
  }
  assert_non_null(strstr(clv_support_refusal(support, 1, 0), "mine.Unknown"));
  struct {
    uint32_t struct_size;
    bool is_folded;
  } older = {.struct_size = sizeof older};
  assert_true(clv_support_node(support, 1, (clv_node_support *)&older));
  clv_support_destroy(support);
  clv_graph_destroy(graph);
  machine_close(&m);
}

static bool refuse_all(void *user_data, const char *device, const clv_node_info *node, char reason[160]) {
  (void)user_data;
  (void)device;
  snprintf(reason, 160, "no %s today", node->op);
  return false;
}

static void options_count(void **state) {
  (void)state;
  machine m;
  clv_error error = {0};
  clv_support *support;
  machine_open(&m, "cpu", 0, NULL);
  clv_graph *graph = with_unknown(&m);
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.support = refuse_all;
  assert_ok(clv_support_ask(graph, m.devices, &options, &support, &error), error);
  assert_string_equal(clv_support_refusal(support, 0, 0), "no Relu today");
  clv_support_destroy(support);
  assert_int_equal(clv_support_ask(graph, NULL, NULL, &support, &error), CLV_INVALID_ARGUMENT);
  assert_null(support);
  assert_int_equal(clv_support_ask(graph, m.devices, NULL, NULL, &error), CLV_INVALID_ARGUMENT);
  clv_support_destroy(NULL);
  clv_graph_destroy(graph);
  machine_close(&m);
}

static void memory_failures(void **state) {
  (void)state;
  machine m;
  clv_error error = {0};
  machine_open(&m, "npu,cpu", 0, NULL);
  clv_graph *graph = with_unknown(&m);
  for (size_t at = 1;; ++at) {
    clv_support *support = (clv_support *)&m;
    m.counting.calls = 0, m.counting.fail_at = at;
    clv_status status = clv_support_ask(graph, m.devices, NULL, &support, &error);
    m.counting.fail_at = 0;
    assert_int_equal(support == NULL, status != CLV_OK);
    clv_support_destroy(support);
    if (status == CLV_OK && m.counting.calls < at) break;
    assert_int_equal(status == CLV_OK || status == CLV_OUT_OF_MEMORY, true);
  }
  clv_graph_destroy(graph);
  machine_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(verdicts_are_those_of_the_plan),
                                     cmocka_unit_test(unknown_operators_are_refused), cmocka_unit_test(options_count),
                                     cmocka_unit_test(memory_failures)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
