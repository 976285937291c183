/* Tests splits of graphs made by hand. There is at most one copy per value and memory space, steps have the right
 * dependencies, constants are neither inputs nor outputs of partitions, and the limits of devices hold. Also tests that
 * invalid plan files are rejected. */
#include "machine.h"

static const char *const all[] = {"all"};

static uint32_t transfers_of(const clv_plan *plan, const char *value) {
  uint32_t count = 0;
  for (uint32_t t = 0; t < plan->transfer_count; ++t) {
    count += strcmp(plan->graph->values[plan->transfers[t].value].name, value) == 0;
  }
  return count;
}

/* Several partitions of the NPU read x, but it is copied in only once. Several of the CPU read v, but it is copied out only
 * once. */
static void a_value_is_copied_once(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "npu,cpu", 1, all);
  test_graph g;
  test_graph_begin(&g, &m.counting.allocator, 1);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(4));
  test_graph_node(&g, "n0", "Exp", "x", "v");
  test_graph_node(&g, "n0b", "Tanh", "v", "t");
  test_graph_node(&g, "c0", "Add", "v,x", "a");
  test_graph_node(&g, "n1", "Add", "a,x", "b");
  test_graph_node(&g, "c1", "Add", "v,b", "c");
  test_graph_node(&g, "n2", "Sum", "c,v,t",
                  "d"); /* reads two values of the first partition, which must be listed once as a dependency */
  test_graph_node(&g, "c2", "Add", "v,d", "e");
  clv_graph *graph = test_graph_end(&g, "e,v");
  clv_plan *plan = machine_plan(&m, graph, "n*=npu,c*=cpu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_int_equal(plan->partition_count, 6);
  assert_int_equal(transfers_of(plan, "x"), 1);
  assert_int_equal(transfers_of(plan, "v"), 1);
  assert_int_equal(transfers_of(plan, "e"), 0);
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const clv__step *step = &plan->steps[s];
    for (uint32_t i = 0; i < step->dependency_count; ++i) {
      assert_true(step->dependencies[i] < s);
      assert_true(i == 0 || step->dependencies[i] > step->dependencies[i - 1]);
    }
  }
  clv_session *session = machine_session(plan);
  float x[4] = {1, 2, -3, 0};
  clv_tensor input = f32(1, DIMS(4), x);
  machine_check_run(session, plan, &input, "copied once");
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* A device states limits of three nodes and two inputs per partition. Every partition must keep both, and the results must be
 * right. */
static void limits_cut(void **state) {
  (void)state;
  static const char *const spec[] = {
      "{\"name\": \"small\", \"operators\": \"all\", \"max_partition_nodes\": 3, \"max_partition_inputs\": 2}"};
  machine m;
  machine_open(&m, "small,cpu", 1, spec);
  test_graph g;
  test_graph_begin(&g, &m.counting.allocator, 1);
  for (int i = 0; i < 6; ++i) {
    char name[8];
    snprintf(name, sizeof name, "x%d", i);
    test_graph_input(&g, name, CLV_F32, 1, DIMS(4));
  }
  test_graph_node(&g, "", "Add", "x0,x1", "a");
  test_graph_node(&g, "", "Neg", "a", "b");
  test_graph_node(&g, "", "Exp", "b", "c");
  test_graph_node(&g, "", "Tanh", "c", "d"); /* a fourth node begins a partition */
  test_graph_node(&g, "", "Add", "d,x2", "e");
  test_graph_node(&g, "", "Add", "e,x3", "f"); /* a third input begins a partition */
  clv_graph *graph = test_graph_end(&g, "f");
  clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_int_equal(plan->partition_count, 3);
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    assert_true(plan->partitions[p].node_count <= 3);
    assert_true(plan->partitions[p].view->input_count <= 2);
  }
  clv_session *session = machine_session(plan);
  float x[6][4] = {{1, 2, 3, 4}, {0, 1, 0, 1}, {1, 1, 1, 1}, {2, 2, 2, 2}};
  clv_tensor inputs[6];
  for (int i = 0; i < 6; ++i) inputs[i] = f32(1, DIMS(4), x[i]);
  machine_check_run(session, plan, inputs, "limits");
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* Nodes computed at planning time are in no partition, and their outputs are not inputs of partitions. */
static void constants_stay_outside(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "npu,cpu", 1, all);
  test_graph g;
  test_graph_begin(&g, &m.counting.allocator, 1);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(2, 3));
  test_graph_weight(&g, "w", 2, DIMS(2, 3));
  test_graph_node(&g, "fold", "Add", "w,w", "w2");
  test_graph_node(&g, "shape", "Shape", "x", "s");
  test_graph_node(&g, "n", "Add", "x,w2", "a");
  test_graph_node(&g, "c", "Mul", "a,w2", "b");
  test_graph_node(&g, "r", "Reshape", "b,s", "y");
  clv_graph *graph = test_graph_end(&g, "y,s,w2");
  clv_plan *plan = machine_plan(&m, graph, "n=npu,c=cpu,r=npu,fold=npu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_int_equal(plan->partition_count, 3);
  for (uint32_t p = 0; p < 3; ++p) {
    assert_int_equal(plan->partitions[p].view->input_count, 1);
    assert_int_equal(plan->partitions[p].view->output_count, 1);
  }
  clv_session *session = machine_session(plan);
  float x[6] = {1, 2, 3, 4, 5, 6};
  clv_tensor input = f32(2, DIMS(2, 3), x);
  machine_check_run(session, plan, &input, "constants");
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* Rejects texts that are not JSON, that are not plans, or that are incomplete plans. */
static void poor_files(void **state) {
  (void)state;
  static const char *const texts[] = {"",
                                      "{",
                                      "[]",
                                      "null",
                                      "3",
                                      "{}",
                                      "{\"cleave_plan\": 1}",
                                      "{\"cleave_plan\": \"1\"}",
                                      "{\"cleave_plan\": 1, \"model_hash\": 7}",
                                      "\xff\xfe"};
  machine m;
  machine_open(&m, "npu,cpu", 1, all);
  clv_graph *graph = test_seven_nodes(&m.counting.allocator);
  char path[] = "/tmp/cleave-plan-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    clv_error error = {0};
    clv_plan *plan;
    assert_ok(clv__file_write(path, texts[i], strlen(texts[i]), &error), error);
    assert_int_equal(clv_plan_read(graph, m.devices, path, NULL, &plan, &error), CLV_INVALID_MODEL);
    assert_null(plan);
    assert_non_null(strstr(error.message, path));
  }
  unlink(path);
  clv_graph_destroy(graph);
  machine_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_value_is_copied_once),
      cmocka_unit_test(limits_cut),
      cmocka_unit_test(constants_stay_outside),
      cmocka_unit_test(poor_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
