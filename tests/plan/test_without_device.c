/* Plans made again without some of their devices: nodes of other devices stay, nodes of the lost devices move, pins are kept or
 * rejected, the properties of all plans hold, and no function of a lost device is called. */
#include "backends/vnpu/vnpu.h"
#include "base/text.h"
#include "machine.h"
#include "plan/make.h"
#include "problem_checks.h"
#include "report/explain.h"
#include "report/steps.h"

#define ADDS "{\"name\": \"adds\", \"operators\": {\"Add\": {}, \"Sub\": {}, \"Identity\": {}, \"Relu\": {}, \"Max\": {}}}"
#define FEW "{\"name\": \"few\", \"operators\": \"all\", \"max_partition_nodes\": 3, \"max_partition_inputs\": 4}"
#define NEAR "{\"name\": \"near\", \"operators\": \"all\", \"memory_space\": \"one\"}"
#define CLOSE "{\"name\": \"close\", \"operators\": {\"MatMul\": {}, \"Mul\": {}, \"Tanh\": {}}, \"memory_space\": \"one\"}"
#define NARROW "{\"name\": \"narrow\", \"operators\": \"all\", \"memory\": \"4500K\"}"
#define WIDE "{\"name\": \"wide\", \"operators\": \"all\"}"

static const char *const splits[] = {NULL, "linear", "convex", "fewest"};
static const char *const objectives[] = {"latency", "overlap", "throughput"};

typedef struct way {
  const char *list;
  uint32_t spec_count;
  const char *specs[3];
} way;
static const way ways[] = {
    {"npu,cpu", 0, {NULL}},
    {"adds,few,cpu", 2, {ADDS, FEW}},
    {"cpu,adds,few", 2, {ADDS, FEW}}, /* the last device does not use host memory */
    {"close,near,cpu", 2, {CLOSE, NEAR}},
    {"near,close,adds,cpu", 3, {CLOSE, NEAR, ADDS}},
};
enum { WAYS = sizeof ways / sizeof *ways };

static void check_plan(const clv_plan *plan, uint64_t seed, const char *what) {
  test_problem_at(plan->problem, seed, what);
  test_check_placement(plan->problem, plan->problem_devices);
  test_check_cut(plan->problem, plan->problem_devices, NULL, &plan->cut);
  test_check_moves(plan->problem, &plan->cut, plan->streamed, &plan->copies);
  test_check_price(plan->problem, &plan->cut, &plan->copies, &plan->price);
  test_problem_at(NULL, 0, NULL);
  assert_true(plan->lower_bound_ns <= plan->predicted_ns);
  for (uint32_t i = 0; i < plan->transfer_count; ++i) assert_true((plan->gone >> plan->transfers[i].device & 1u) == 0);
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) {
    assert_true(plan->placement.causes[n] != NULL && plan->placement.causes[n][0] != '\0');
    uint32_t device = plan->placement.devices[n];
    assert_true(device == CLV__NO_ID ||
                ((plan->gone >> device & 1u) == 0 && clv__capability_reason(&plan->capability, n, device) == NULL));
  }
}

/* Returns whether a plan without the lost devices is possible: every node has another device that supports it, and no node is
 * pinned to a lost device. */
static bool can_be(const clv_plan *old, uint32_t lost) {
  for (clv_node_id n = 0; n < old->graph->node_count; ++n) {
    uint32_t at = old->problem_nodes[n];
    if (at == CLV__NONE) continue;
    uint32_t pin = old->problem->pins[at], yes = 0;
    for (uint32_t d = 0; d < old->devices->count; ++d) {
      yes |= clv__capability_reason(&old->capability, n, d) == NULL ? 1u << d : 0;
    }
    if ((yes & ~lost) == 0 || (pin != CLV__NONE && (lost >> pin & 1u) != 0)) return false;
  }
  return true;
}

/* Checks that all partitions of other devices continue unchanged. Returns how many there are. */
static uint32_t check_same(const clv_plan *old, const clv_plan *plan, uint32_t lost, const char *what) {
  uint32_t same = 0, most = 0;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    if (plan->same_partitions[p] == CLV__NO_ID) continue;
    const clv__partition *is = &plan->partitions[p], *was = &old->partitions[plan->same_partitions[p]];
    assert_true(is->device == was->device && is->node_count == was->node_count && (lost >> is->device & 1u) == 0);
    assert_memory_equal(is->nodes, was->nodes, is->node_count * sizeof *is->nodes);
    assert_true(is->view->input_count == was->view->input_count && is->view->output_count == was->view->output_count);
    ++same;
  }
  for (uint32_t p = 0; p < old->partition_count; ++p) most += (lost >> old->partitions[p].device & 1u) == 0;
  if (same != most) fail_msg("%s: only %u of %u partitions are unchanged", what, same, most);
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) {
    uint32_t before = old->placement.devices[n];
    if (before == CLV__NO_ID || (lost >> before & 1u) == 0) {
      assert_true(plan->placement.devices[n] == before && plan->placement.causes[n] == old->placement.causes[n]);
    } else {
      assert_string_equal(plan->placement.causes[n], "lost");
      assert_non_null(strstr(plan->placement.notes[n], "removed: it broke"));
    }
  }
  return same;
}

/* Checks that making the plan twice gives the same plan, and that its file can be read back. */
static void check_file(machine *m, const clv_plan *old, const clv_plan *plan, uint32_t lost, const char *what) {
  clv_error error = {0};
  clv_plan *again, *read;
  assert_ok(clv__plan_without_devices(old, lost, "it broke", &again, &error), error);
  char *a = json_of(plan), *b = json_of(again);
  if (strcmp(a, b) != 0) fail_msg("%s: two plans made in the same way differ", what);
  assert_ok(clv__plan_parse(plan->graph, m->devices, a, strlen(a), NULL, &read, &error), error);
  assert_int_equal(read->partition_count, plan->partition_count);
  clv__release(plan->graph->allocator, b);
  clv__release(plan->graph->allocator, a);
  clv_plan_destroy(read);
  clv_plan_destroy(again);
}

static void lose(machine *m, const clv_plan *old, uint32_t lost, uint64_t seed, const char *what) {
  clv_error error = {0};
  clv_plan *plan = (clv_plan *)&error;
  static char text[256]; /* for the messages of the checks */
  snprintf(text, sizeof text, "%s, without %x", what, lost);
  clv_status status = clv__plan_without_devices(old, lost, "it broke", &plan, &error);
  if (!can_be(old, lost)) {
    assert_int_equal(status, CLV_NOT_SUPPORTED);
    assert_null(plan);
    assert_non_null(strstr(error.message, "removed: it broke"));
    return;
  }
  if (status != CLV_OK) fail_msg("%s: %s", text, error.message);
  assert_int_equal(plan->gone, old->gone | lost);
  check_plan(plan, seed, text);
  (void)check_same(old, plan, lost, text);
  if (seed % 4 == 0) check_file(m, old, plan, lost, text);
  if (seed % 8 == 0) machine_check_random(plan, text);
  clv_plan_destroy(plan);
}

static clv_plan *random_plan(machine *m, const clv_graph *graph, uint64_t seed, char what[160], const char *list) {
  uint64_t random = seed;
  clv_error error = {0};
  clv_plan *plan;
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  const char *first = m->devices->items[0].name;
  clv_assignment pin = {"n/1*", m->devices->items[m->devices->count - 1].name}, value = {"v1", first}, weight = {"w", first};
  const char *keep = "v4";
  options.strategy = clv__strategies[test_random(&random) % strategy_count()]->name;
  options.split = splits[test_random(&random) % 4];
  options.objective = objectives[test_random(&random) % 3];
  options.pins = &pin, options.pin_count = test_random(&random) % 4 == 0;
  options.values = &value, options.value_count = test_random(&random) % 3 == 0;
  options.weights = &weight, options.weight_count = test_random(&random) % 3 == 0;
  options.keeps = &keep, options.keep_count = test_random(&random) % 4 == 0;
  snprintf(what, 160, "%s, seed %llu, %s, split %s, %s", list, (unsigned long long)seed, options.strategy,
           options.split == NULL ? "its own" : options.split, options.objective);
  clv_status status = clv_plan_make(graph, m->devices, &options, &plan, &error);
  if (status != CLV_NOT_SUPPORTED && status != CLV_INVALID_ARGUMENT && status != CLV_OK) fail_msg("%s: %s", what, error.message);
  return status == CLV_OK ? plan : NULL; /* NULL: a pin is impossible or matches no node */
}

static void every_device_in_turn(void **state) {
  (void)state;
  uint32_t planned = 0;
  for (uint32_t w = 0; w < WAYS; ++w) {
    machine m;
    machine_open(&m, ways[w].list, ways[w].spec_count, ways[w].specs);
    for (uint64_t seed = 1; seed <= test_some(60); ++seed) {
      char what[160];
      clv_graph *graph = test_random_graph(&m.counting.allocator, seed, 4 + (uint32_t)(seed % 30));
      clv_plan *plan = random_plan(&m, graph, seed, what, ways[w].list);
      planned += plan != NULL;
      for (uint32_t lost = 1; plan != NULL && lost < 1u << m.devices->count; ++lost) lose(&m, plan, lost, seed, what);
      clv_plan_destroy(plan);
      clv_graph_destroy(graph);
    }
    machine_close(&m);
  }
  assert_true(planned > test_some(40) * WAYS);
}

static void one_after_the_other(void **state) {
  (void)state;
  uint32_t chains = 0;
  for (uint64_t seed = 1; seed <= test_some(60); ++seed) {
    const way *w = &ways[4];
    clv_error error = {0};
    char what[160];
    uint64_t random = seed;
    machine m;
    machine_open(&m, w->list, w->spec_count, w->specs);
    clv_graph *graph = test_random_graph(&m.counting.allocator, seed, 4 + (uint32_t)(seed % 40));
    clv_plan *first = random_plan(&m, graph, seed, what, w->list), *now = first;
    uint32_t lost = 0;
    while (now != NULL) {
      clv_plan *next;
      uint32_t device = (uint32_t)(test_random(&random) % m.devices->count), bit = 1u << device;
      if ((lost & bit) != 0) continue;
      bool can = can_be(now, bit);
      clv_status status = clv__plan_without_devices(now, bit, lost == 0 ? "it broke" : "it broke as well", &next, &error);
      assert_int_equal(status, can ? CLV_OK : CLV_NOT_SUPPORTED);
      if (now != first && status != CLV_OK) clv_plan_destroy(now);
      if (status != CLV_OK) break;
      (void)check_same(now, next, bit, what);
      if (now != first) clv_plan_destroy(now); /* only the first is kept, for later plans */
      now = next;
      lost |= bit;
      ++chains;
      check_plan(now, seed, what);
      for (uint32_t d = 0; d < m.devices->count; ++d) {
        if ((lost >> d & 1u) != 0) assert_non_null(strstr(now->note, m.devices->items[d].name));
      }
      if (seed % 4 == 0) machine_check_random(now, what);
    }
    clv_plan_destroy(first);
    clv_graph_destroy(graph);
    machine_close(&m);
  }
  assert_true(chains > test_some(60));
}

/* Plans that were read from files are made again with their pins, even if the strategy's name is unknown. */
static void plans_from_files(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= test_some(40); ++seed) {
    clv_error error = {0};
    char what[160];
    machine m;
    machine_open(&m, ways[1].list, ways[1].spec_count, ways[1].specs);
    clv_graph *graph = test_random_graph(&m.counting.allocator, seed, 4 + (uint32_t)(seed % 20));
    clv_plan *made = random_plan(&m, graph, seed, what, ways[1].list), *plan;
    if (made != NULL) {
      if (seed % 2 == 0) made->placement.strategy = "one that we do not know";
      char *text = json_of(made);
      assert_ok(clv__plan_parse(graph, m.devices, text, strlen(text), NULL, &plan, &error), error);
      for (uint32_t lost = 1; lost < 8; ++lost) lose(&m, plan, lost, seed, what);
      clv__release(graph->allocator, text);
      clv_plan_destroy(plan);
    }
    clv_plan_destroy(made);
    clv_graph_destroy(graph);
    machine_close(&m);
  }
}

static void refusals_and_explanations(void **state) {
  (void)state;
  clv_error error = {0};
  machine m;
  machine_open(&m, "npu,cpu", 0, NULL);
  clv_graph *graph = test_seven_nodes(&m.counting.allocator);
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  clv_plan *plan = machine_plan(&m, graph, "conv=npu,matmul=npu", options), *without;
  assert_int_equal(clv__plan_without_devices(plan, 1, "no answer for 2 s", &without, &error), CLV_NOT_SUPPORTED);
  assert_string_equal(error.message,
                      "node 'conv' (Conv) is pinned to npu, which was removed: no answer for 2 s; remove the pin to continue "
                      "without this device");
  assert_null(without);
  clv_plan_destroy(plan);

  plan = machine_plan(&m, graph, NULL, options);
  assert_ok(clv__plan_without_devices(plan, 1, "no answer for 2 s", &without, &error), error);
  assert_string_equal(without->note, "npu: removed: no answer for 2 s");
  clv__text text;
  clv__text_init(&text, &m.counting.allocator);
  assert_int_equal(clv__report_explain(without, "conv", &text), 1);
  assert_non_null(
      strstr(text.data, "on cpu, partition 0: lost: its device was removed: it was on npu, which was removed: no answer"));
  assert_non_null(strstr(text.data, "npu: cannot run it: removed: no answer for 2 s"));
  clv__text_finish(&text);
  clv_plan *nothing;
  assert_int_equal(clv__plan_without_devices(without, 2, "fire", &nothing, &error),
                   CLV_NOT_SUPPORTED); /* removes the last device, too */
  assert_string_equal(error.message,
                      "node 'conv' (Conv): no device can run it: npu: removed: no answer for 2 s; cpu: removed: fire");
  clv_plan_destroy(without);
  assert_int_equal(clv__plan_without_devices(plan, 3, "fire", &nothing, &error), CLV_NOT_SUPPORTED);
  assert_ok(clv__plan_without_devices(plan, 0, "nothing", &without, &error), error); /* no device removed: the same plan */
  assert_int_equal(without->partition_count, plan->partition_count);
  for (uint32_t p = 0; p < plan->partition_count; ++p) assert_int_equal(without->same_partitions[p], p);
  assert_true(without->predicted_ns == plan->predicted_ns);
  clv_plan_destroy(without);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

static void lost_devices_are_not_called(void **state) {
  (void)state;
  clv_error error = {0};
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    interposer *faulty = interposer_create(&(interposer_options){
        .name = "faulty", .query = clv__vnpu_backend_query, .spec = "{\"operators\": \"all\", \"memory\": \"18M\"}"});
    machine m;
    machine_open_with(&m, faulty, "faulty,npu,cpu", 0, NULL);
    clv_graph *graph = test_random_graph(&m.counting.allocator, seed, 20);
    options.strategy = clv__strategies[seed % strategy_count()]->name;
    clv_plan *plan, *without;
    assert_ok(clv_plan_make(graph, m.devices, &options, &plan, &error), error);
    uint64_t calls = interposer_calls(faulty);
    assert_ok(clv__plan_without_devices(plan, 1, "it broke", &without, &error), error);
    assert_int_equal(interposer_calls(faulty), calls);
    clv_plan_destroy(without);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    machine_close(&m);
    interposer_destroy(faulty);
  }
}

/* Four layers with weights of 1 MiB: they do not fit into the narrow device's memory together with other data. */
static clv_graph *layers(const clv_allocator *allocator) {
  test_graph g;
  char name[32], in[64], out[32];
  test_graph_begin(&g, allocator, 3);
  test_graph_input(&g, "v0", CLV_F32, 2, DIMS(4, 512));
  for (uint32_t i = 0; i < 4; ++i) {
    snprintf(name, sizeof name, "w%u", i);
    test_graph_weight(&g, name, 2, DIMS(512, 512));
    snprintf(in, sizeof in, "v%u,w%u", i, i);
    snprintf(out, sizeof out, "v%u", i + 1);
    snprintf(name, sizeof name, "n/%u", i);
    test_graph_node(&g, name, "MatMul", in, out);
  }
  return test_graph_end(&g, out);
}

static void check_streamed(const clv_plan *plan, uint32_t seed, const char *what) {
  static float data[4 * 512];
  for (uint32_t k = 0; k < 4 * 512; ++k) data[k] = (float)(k % 31) / 31;
  clv_tensor input = f32(2, DIMS(4, 512), data);
  check_plan(plan, seed, what);
  if (plan->streamed == NULL) fail_msg("%s: the plan streams no weights", what);
  clv_session *session = machine_session(plan);
  machine_check_run(session, plan, &input, what);
  clv_session_destroy(session);
}

static void what_is_streamed(void **state) {
  (void)state;
  static const char *const specs[] = {NARROW, WIDE};
  static const char *const pins[] = {NULL, "n/0=wide,n/2=wide", "n/3=narrow", "n/*=narrow"};
  clv_error error = {0};
  machine m;
  machine_open(&m, "wide,narrow", 2, specs);
  clv_graph *graph = layers(&m.counting.allocator);
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  for (uint32_t s = 0; s < strategy_count(); ++s) {
    for (uint32_t p = 0; p < 4; ++p) {
      options.strategy = clv__strategies[s]->name;
      char what[64];
      snprintf(what, sizeof what, "%s, pins %u", clv__strategies[s]->name, p);
      clv_plan *plan = machine_plan(&m, graph, pins[p], options), *without;
      clv_status status = clv__plan_without_devices(plan, 1, "it broke", &without, &error);
      if (p == 1) assert_int_equal(status, CLV_NOT_SUPPORTED);
      if (p != 1 && status != CLV_OK) fail_msg("%s: %s", what, error.message);
      if (status == CLV_OK) check_streamed(without, s, what);
      for (uint32_t i = 0; status == CLV_OK && i < without->partition_count;
           ++i) { /* input_count includes streamed weights, in both plans */
        uint32_t is = without->same_partitions[i];
        if (is == CLV__NO_ID) continue;
        assert_int_equal(without->partitions[i].view->input_count, plan->partitions[is].view->input_count);
      }
      clv_plan_destroy(without);
      assert_ok(clv__plan_without_devices(plan, 0, "", &without, &error), error); /* streamed weights stay streamed */
      for (uint32_t i = 0; i < plan->partition_count; ++i) assert_int_equal(without->same_partitions[i], i);
      if (p == 3) check_streamed(without, s, what);
      clv_plan_destroy(without);
      clv_plan_destroy(plan);
    }
  }
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* If the nodes that move do not fit beside those that stay, everything is placed again. Here the narrow device has room for two
 * of the three weights, cannot stream them, and is the only remaining device that can run the last node. */
static void no_room_beside_what_stays(void **state) {
  (void)state;
  static const char *const specs[] = {
      "{\"name\": \"narrow\", \"operators\": {\"MatMul\": {\"constant_inputs\": [1]}, \"Gemm\": {\"constant_inputs\": [1]}}, "
      "\"memory\": \"3M\"}",
      WIDE, "{\"name\": \"third\", \"operators\": {\"MatMul\": {}}}"};
  clv_error error = {0};
  machine m;
  machine_open(&m, "narrow,wide,third", 3, specs);
  test_graph g;
  test_graph_begin(&g, &m.counting.allocator, 3);
  test_graph_input(&g, "v0", CLV_F32, 2, DIMS(4, 512));
  for (const char *w = "a\0b\0c\0"; *w != '\0'; w += 2) test_graph_weight(&g, w, 2, DIMS(512, 512));
  test_graph_node(&g, "one", "MatMul", "v0,a", "v1");
  test_graph_node(&g, "two", "MatMul", "v1,b", "v2");
  test_graph_node(&g, "last", "Gemm", "v2,c", "y");
  clv_graph *graph = test_graph_end(&g, "y");
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "optimal";
  clv_plan *made = machine_plan(&m, graph, "one=narrow,two=narrow,last=wide", options), *plan, *without;
  char *text = json_of(made);
  for (char *at = text; (at = strstr(at, "\"usr\"")) != NULL;) memcpy(at, "\"cut\"", 5); /* so that these nodes are not pinned */
  assert_ok(clv__plan_parse(graph, m.devices, text, strlen(text), NULL, &plan, &error), error);
  assert_ok(clv__plan_without_devices(plan, 1u << 1, "it broke", &without, &error), error);
  check_plan(without, 0, "no room");
  clv_node_id last = 2;
  assert_string_equal(without->graph->nodes[last].name, "last");
  assert_int_equal(without->placement.devices[last], 0);
  assert_non_null(strstr(without->placement.notes[last], "it was on wide, which was removed: it broke"));
  assert_string_equal(without->note, "wide: removed: it broke");
  assert_true(without->placement.devices[0] == 2 || without->placement.devices[1] == 2);
  clv_plan_destroy(without);
  clv_plan_destroy(plan);
  clv__release(graph->allocator, text);
  clv_plan_destroy(made);
  clv_graph_destroy(graph);
  machine_close(&m);
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  bool reached = true;
  machine m;
  machine_open(&m, ways[1].list, ways[1].spec_count, ways[1].specs);
  clv_graph *graph = test_random_graph(&m.counting.allocator, 3, 20);
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  clv_plan *plan = machine_plan(&m, graph, NULL, options);
  for (size_t fail_at = 1; reached; ++fail_at) {
    clv_error error = {0};
    clv_plan *without;
    size_t live = m.counting.live;
    m.counting.fail_at = m.counting.calls + fail_at;
    clv_status status = clv__plan_without_devices(plan, 1, "it broke", &without, &error);
    reached = m.counting.calls >= m.counting.fail_at;
    m.counting.fail_at = 0;
    if (reached) assert_true(status == CLV_OUT_OF_MEMORY && without == NULL);
    clv_plan_destroy(without);
    assert_int_equal(m.counting.live, live);
  }
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_device_in_turn),
      cmocka_unit_test(one_after_the_other),
      cmocka_unit_test(plans_from_files),
      cmocka_unit_test(refusals_and_explanations),
      cmocka_unit_test(lost_devices_are_not_called),
      cmocka_unit_test(what_is_streamed),
      cmocka_unit_test(no_room_beside_what_stays),
      cmocka_unit_test(every_allocation_fails_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
