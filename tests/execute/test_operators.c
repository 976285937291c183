/* Times of the steps inside a partition, as devices report them: on random graphs every node that does work is in a step, with
 * and without fusion, whether the CPU plans a partition ahead or runs it node by node. Also tests devices that cannot report
 * these times, and failing calls. Timing does not change the results. */
#include "backends/cpu/cpu.h"
#include "cost/signature.h"
#include "execute/session.h"
#include "machine.h"

enum { MOST_NODES = 256 };

typedef struct told {
  uint32_t node_count, step_count, fused_count;
  uint8_t seen[MOST_NODES];
  uint64_t sum_ns, executions;
  char words[512];
} told;

static clv_status listen(void *cookie, const clv_step_info *step) {
  told *t = cookie;
  assert_true(step->what != NULL && step->implementation != NULL);
  for (uint32_t i = 0; i < step->node_count; ++i) {
    assert_true(step->nodes[i] < t->node_count);
    assert_true(i == 0 || step->nodes[i] > step->nodes[i - 1]);
    assert_int_equal(t->seen[step->nodes[i]]++, 0);
  }
  if (t->step_count > 0) assert_int_equal(step->executions, t->executions);
  t->executions = step->executions;
  t->fused_count += step->node_count > 1;
  t->sum_ns += step->time_ns;
  ++t->step_count;
  const size_t length = strlen(t->words);
  snprintf(t->words + length, sizeof t->words - length, "%s%s", length > 0 ? " " : "", step->what);
  return CLV_OK;
}

static told ask(clv_session *session, uint32_t partition) {
  clv_error error = {0};
  told t = {.node_count = clv__session_plan(session)->partitions[partition].node_count};
  assert_true(t.node_count <= MOST_NODES);
  assert_ok(clv__session_operators(session, partition, listen, &t, &error), error);
  return t;
}

static void time_operators(clv_session *session, bool on) {
  clv_error error = {0};
  assert_ok(clv__session_time_operators(session, on, &error), error);
  clv__session_time_steps(session, on);
}

/* Devices, a graph, its plan and a session. */
typedef struct running {
  machine m;
  clv_graph *graph;
  clv_plan *plan;
  clv_session *session;
} running;

static void run_on(running *r, clv_graph *graph) {
  r->graph = graph;
  r->plan = machine_plan(&r->m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  r->session = machine_session(r->plan);
}

static void end(running *r) {
  clv_session_destroy(r->session);
  clv_plan_destroy(r->plan);
  clv_graph_destroy(r->graph);
  machine_close(&r->m);
}

static void fill(float *data, size_t count, uint64_t seed) {
  for (size_t k = 0; k < count; ++k) data[k] = test_random_float(&seed);
}

/* ---- Random graphs ---- */

/* Returns whether an output depends on the node. */
static bool is_needed(const clv_graph *graph, clv_node_id id) {
  const clv__node *node = &graph->nodes[id];
  for (uint32_t i = 0; i < node->output_count; ++i) {
    const clv_value_id value = node->outputs[i];
    if (graph->values[value].is_output) return true;
    for (uint32_t u = graph->use_offsets[value]; u < graph->use_offsets[value + 1]; ++u) {
      if (is_needed(graph, graph->use_nodes[u])) return true;
    }
  }
  return false;
}

static void expect_all_nodes(clv_session *session, const told *t, uint32_t partition, const char *what) {
  const clv_plan *plan = clv__session_plan(session);
  for (uint32_t i = 0; i < t->node_count; ++i) {
    const clv_node_id id = plan->partitions[partition].nodes[i];
    const clv__node *node = &plan->graph->nodes[id];
    if (t->seen[i] > 0 || clv__node_is_view(node) || !is_needed(plan->graph, id)) continue;
    fail_msg("%s: no step lists the node '%s' (%s)", what, node->name, node->op);
  }
}

static void open_cpu(machine *m, const char *option) {
  clv_error error = {0};
  char text[32];
  const char *set = text;
  snprintf(text, sizeof text, "cpu:%s=0", option != NULL ? option : "");
  test_allocator_init(&m->counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &m->counting.allocator;
  assert_ok(clv_context_create(&context, &m->context, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = "cpu";
  devices.device_option_count = option != NULL ? 1 : 0;
  devices.device_options = &set;
  assert_ok(clv_devices_open(m->context, &devices, &m->devices, &error), error);
}

static void check_random(const char *option, uint64_t seed, uint32_t *fused) {
  running r;
  char what[64];
  snprintf(what, sizeof what, "seed %d, without %s", (int)seed, option != NULL ? option : "nothing");
  open_cpu(&r.m, option);
  clv_graph *graph = test_random_graph(&r.m.counting.allocator, seed, 8 + (uint32_t)(seed % 40));
  run_on(&r, graph);
  float data[8][32];
  clv_tensor inputs[8];
  assert_true(graph->input_count <= 8);
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    fill(data[i], 32, seed * 8 + i);
    inputs[i] = *clv_graph_input_type(graph, i);
    inputs[i].data = data[i];
  }
  machine_check_run(r.session, r.plan, inputs, what);
  time_operators(r.session, true);
  for (uint32_t p = 0; p < r.plan->partition_count; ++p) assert_int_equal(ask(r.session, p).executions, 0);
  for (uint32_t run = 0; run < 2; ++run)
    machine_check_run(r.session, r.plan, inputs, what); /* timing must not change the outputs */
  for (uint32_t p = 0; p < r.plan->partition_count; ++p) {
    const told t = ask(r.session, p);
    expect_all_nodes(r.session, &t, p, what);
    if (t.step_count > 0) assert_true(t.executions >= 2 && t.sum_ns > 0);
    *fused += t.fused_count;
  }
  time_operators(r.session, true);
  for (uint32_t p = 0; p < r.plan->partition_count; ++p) assert_int_equal(ask(r.session, p).sum_ns, 0);
  time_operators(r.session, false);
  machine_check_run(r.session, r.plan, inputs, what);
  for (uint32_t p = 0; p < r.plan->partition_count; ++p) assert_int_equal(ask(r.session, p).sum_ns, 0);
  end(&r);
}

static void every_node_is_in_one_step(void **state) {
  (void)state;
  uint32_t fused = 0, apart = 0, portable = 0;
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    check_random(NULL, seed, &fused);
    check_random("fuse", seed, &apart);
    check_random("onednn", seed, &portable);
  }
  assert_true(fused > 0);
  assert_int_equal(apart, 0);
}

/* ---- Known graphs ---- */

/* Conv and Relu are one step, and a view is in no step. */
static void fused_nodes_are_named(void **state) {
  (void)state;
  running r;
  test_graph g;
  open_cpu(&r.m, NULL);
  test_graph_begin(&g, &r.m.counting.allocator, 3);
  test_graph_input(&g, "x", CLV_F32, 4, DIMS(1, 16, 8, 8));
  test_graph_weight(&g, "w", 4, DIMS(16, 16, 3, 3));
  test_graph_ints(&g, "shape", 2, DIMS(1, 576));
  test_graph_node(&g, "conv", "Conv", "x,w", "a");
  test_graph_node(&g, "relu", "Relu", "a", "b");
  test_graph_node(&g, "twice", "Add", "b,b", "c");
  test_graph_node(&g, "view", "Reshape", "c,shape", "y");
  clv_graph *graph = test_graph_end(&g, "y");
  run_on(&r, graph);
  float data[16 * 64];
  fill(data, 16 * 64, 1);
  clv_tensor input = f32(4, DIMS(1, 16, 8, 8), data);
  time_operators(r.session, true);
  machine_check_run(r.session, r.plan, &input, "fused");
  const told t = ask(r.session, 0);
  expect_all_nodes(r.session, &t, 0, "fused");
  assert_int_equal(t.seen[3], 0); /* the view does no work */
  assert_non_null(strstr(t.words, "Conv"));
  assert_int_equal(t.fused_count, 1);
  end(&r);
}

/* If sizes depend on data, the CPU runs node by node. It must report times of all nodes then too. */
static void node_by_node(void **state) {
  (void)state;
  running r;
  test_graph g;
  open_cpu(&r.m, NULL);
  test_graph_begin(&g, &r.m.counting.allocator, 3);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(4, 8));
  test_graph_node(&g, "relu", "Relu", "x", "a");
  test_graph_node(&g, "where", "NonZero", "a", "i");
  test_graph_node(&g, "abs", "Abs", "i", "y");
  clv_graph *graph = test_graph_end(&g, "y");
  run_on(&r, graph);
  float data[32];
  fill(data, 32, 1);
  clv_tensor input = f32(2, DIMS(4, 8), data);
  machine_check_run(r.session, r.plan, &input, "before timing is turned on");
  time_operators(r.session, true);
  for (uint32_t run = 0; run < 3; ++run) machine_check_run(r.session, r.plan, &input, "timed");
  for (uint32_t p = 0; p < r.plan->partition_count; ++p) {
    const told t = ask(r.session, p);
    assert_int_equal(t.step_count, r.plan->partitions[p].node_count);
    assert_true(t.sum_ns > 0 && t.executions >= 3);
  }
  time_operators(r.session, false);
  machine_check_run(r.session, r.plan, &input, "after timing is turned off");
  end(&r);
}

/* ---- Devices without step times, and calls that fail ---- */

static interposer_fate fail_slot(void *user_data, const interposer_call *call) {
  const interposer_slot *failing = user_data;
  return (interposer_fate){.action = call->slot == *failing ? INTERPOSER_FAIL : INTERPOSER_PASS};
}

static void silent_and_failing(void **state) {
  (void)state;
  static const uint64_t without[] = {0, INTERPOSER_TIMING};
  for (size_t i = 0; i < 2; ++i) {
    interposer_slot failing = INTERPOSER_SLOT_COUNT;
    running r;
    clv_error error = {0};
    interposer *between = interposer_create(&(interposer_options){
        .name = "between", .query = clv__cpu_backend_query, .without = without[i], .hook = fail_slot, .user_data = &failing});
    machine_open_with(&r.m, between, "between,cpu", 0, NULL);
    clv_graph *graph = test_random_graph(&r.m.counting.allocator, 4, 12);
    run_on(&r, graph);
    told t = {.node_count = MOST_NODES};
    assert_ok(clv__session_time_operators(r.session, true, &error), error);
    assert_int_equal(clv__session_operators(r.session, 0, listen, &t, &error), i == 0 ? CLV_OK : CLV_NOT_SUPPORTED);
    if (i > 0) assert_string_equal(error.message, "between does not report times of its steps");
    assert_int_equal(clv__session_operators(r.session, r.plan->partition_count, listen, &t, &error), CLV_INVALID_ARGUMENT);
    if (i == 0) {
      failing = INTERPOSER_instance_time_steps;
      assert_int_equal(clv__session_time_operators(r.session, true, &error), CLV_DEVICE_ERROR);
      assert_non_null(strstr(error.message, "partition 0 on between: cannot turn the timing of its steps on or off: "));
      failing = INTERPOSER_instance_steps;
      assert_int_equal(clv__session_operators(r.session, 0, listen, &t, &error), CLV_DEVICE_ERROR);
      assert_non_null(strstr(error.message, "partition 0 on between: cannot read the times of its steps: "));
    }
    end(&r);
    interposer_destroy(between);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_node_is_in_one_step),
      cmocka_unit_test(fused_nodes_are_named),
      cmocka_unit_test(node_by_node),
      cmocka_unit_test(silent_and_failing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
