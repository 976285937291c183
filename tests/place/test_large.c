/* The time of planning is not quadratic: plans 100,000 nodes whose pins alternate between two devices. Measures and prints CPU
 * time, so other load does not matter; the limits are far above the usual times. */
#include "machine.h"

#include <time.h>

#define NODES test_some(100000)
enum { BOUND_S = 30 };

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* v[i + 1] = op(v[i], u), where u is an earlier value (near or, if `far`, any) or, for every fourth node, a weight of its own. */
static clv_graph *large_graph(const clv_allocator *allocator, bool far) {
  test_graph g;
  uint64_t state = 11;
  test_graph_begin(&g, allocator, 1);
  test_graph_input(&g, "v0", CLV_F32, 1, DIMS(2));
  for (uint32_t n = 0; n < NODES; ++n) {
    char name[16], inputs[40], output[16], weight[16];
    snprintf(name, sizeof name, "%c%u", n % 2 == 0 ? 'a' : 'b', n);
    snprintf(output, sizeof output, "v%u", n + 1);
    if (n % 4 == 3) {
      snprintf(weight, sizeof weight, "w%u", n);
      test_graph_weight(&g, weight, 1, DIMS(2));
      snprintf(inputs, sizeof inputs, "v%u,%s", n, weight);
    } else {
      uint32_t back = (uint32_t)(test_random(&state) % (far ? n + 1 : n < 8 ? 1 : 8));
      snprintf(inputs, sizeof inputs, "v%u,v%u", n, n - back);
    }
    test_graph_node(&g, name, n % 3 == 0 ? "Max" : "Min", inputs, output);
  }
  char last[16];
  snprintf(last, sizeof last, "v%u", NODES);
  return test_graph_end(&g, last);
}

static double passed(double *start, const char *what) {
  double seconds = now_s() - *start;
  print_message("%-28s %7.3f s\n", what, seconds);
  if (seconds > BOUND_S) fail_msg("%s took %.1f s for %u nodes, at most %d s are allowed", what, seconds, NODES, BOUND_S);
  *start = now_s();
  return seconds;
}

static void alternate(bool far, bool by_name, bool run, const char *spec) {
  clv_error error = {0};
  machine m;
  double start = now_s();
  machine_open(&m, "npu,cpu", 1, &spec);
  clv_graph *graph = large_graph(&m.counting.allocator, far);
  passed(&start, "making the graph");
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  clv_assignment patterns[] = {{"a*", "npu"}, {"b*", "cpu"}};
  clv_assignment *pins = patterns;
  uint32_t pin_count = 2;
  if (by_name) {
    pins = malloc(NODES * sizeof *pins);
    pin_count = NODES;
    for (uint32_t n = 0; n < NODES; ++n) pins[n] = (clv_assignment){graph->nodes[n].name, n % 2 == 0 ? "npu" : "cpu"};
  }
  options.pins = pins;
  options.pin_count = pin_count;
  clv_plan *plan, *again;
  assert_ok(clv_plan_make(graph, m.devices, &options, &plan, &error), error);
  assert_int_equal(plan->partition_count, NODES);
  passed(&start, "the plan");
  print_message("    shapes %.0f ms, capability %.0f ms, place %.0f ms, split %.0f ms; %u transfers\n", plan->time_load_ms,
                plan->time_capability_ms, plan->time_place_ms, plan->time_split_ms, plan->transfer_count);
  char path[] = "/tmp/cleave-plan-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  assert_ok(clv_plan_write(plan, path, &error), error);
  passed(&start, "writing the plan's file");
  assert_ok(clv_plan_read(graph, m.devices, path, NULL, &again, &error), error);
  unlink(path);
  assert_int_equal(again->step_count, plan->step_count);
  clv_plan_destroy(again);
  passed(&start, "reading the plan's file");
  if (run) {
    clv_session *session;
    assert_ok(clv_session_create(plan, NULL, &session, &error), error);
    passed(&start, "the session");
    float data[2] = {1, -1};
    clv_tensor input = f32(1, DIMS(2), data);
    machine_check_run(session, plan, &input, "partitions that alternate");
    passed(&start, "a run");
    clv_session_destroy(session);
    passed(&start, "destroying the session");
  }
  clv_plan_destroy(plan);
  if (by_name) free(pins);
  clv_graph_destroy(graph);
  machine_close(&m);
}

static void near_branches(void **state) {
  (void)state;
  alternate(false, false, true, "all");
}

static void far_branches_pinned_one_by_one(void **state) {
  (void)state;
  alternate(true, true, false, "all");
}

/* The NPU has a memory limit, so the plan's memory must be counted. */
static void limited_memory(void **state) {
  (void)state;
  alternate(false, false, false, "default");
}

/* First a plan in which one node reads the values of 20,000 nodes, half of them on the other device; then a plan on one device,
 * whose only partition reads 20,000 constants. */
static void wide(void **state) {
  (void)state;
  enum { WIDTH = 20000 };
  clv_error error = {0};
  static const char *const all[] = {"all"};
  machine m;
  machine_open(&m, "npu,cpu", 1, all);
  double start = now_s();
  test_graph g;
  test_graph_begin(&g, &m.counting.allocator, 1);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(2));
  clv__builder *builder = g.builder;
  clv_value_id *parts = malloc(WIDTH * sizeof *parts), sum;
  for (uint32_t n = 0; n < WIDTH; ++n) {
    char name[16], inputs[40];
    snprintf(name, sizeof name, "w%u", n);
    snprintf(inputs, sizeof inputs, "x,w%u", n);
    test_graph_weight(&g, name, 1, DIMS(2));
    name[0] = n % 2 == 0 ? 'a' : 'b';
    test_graph_node(&g, name, "Add", inputs, name);
    assert_ok(clv__builder_value(builder, name, &parts[n], &error), error);
  }
  assert_ok(clv__builder_value(builder, "sum", &sum, &error), error);
  assert_ok(clv__builder_node(builder, "sum", "", "Sum", parts, WIDTH, &sum, 1, NULL, 0, &error), error);
  clv_graph *graph = test_graph_end(&g, "sum");
  free(parts);
  passed(&start, "a wide graph");
  static const char *const pins[] = {"a*=npu,b*=cpu,sum=cpu", "*=npu"};
  for (int i = 0; i < 2; ++i) {
    clv_plan *plan = machine_plan(&m, graph, pins[i], (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    passed(&start, "its plan");
    if (i == 1) {
      clv_session *session = machine_session(plan);
      passed(&start, "its session on one device");
      clv_session_destroy(session);
    }
    clv_plan_destroy(plan);
  }
  clv_graph_destroy(graph);
  machine_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(near_branches),
      cmocka_unit_test(far_branches_pinned_one_by_one),
      cmocka_unit_test(limited_memory),
      cmocka_unit_test(wide),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
