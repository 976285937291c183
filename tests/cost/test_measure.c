/* Tests measurements of devices: which entries the tables get, that a device of known speed is measured at about that speed,
 * and that equal blocks are measured once. Exact times are not checked, because other programs may be running. */
#include "backends/vnpu/spec/spec.h"
#include "machine.h"

#include "cost/cost.h"
#include "cost/measure.h"

static const clv__measure_options quick = {.runs = 3, .day = "2026-11-21"};

typedef struct measured {
  machine m;
  clv__profile *profile;
  clv_graph *graph;
  clv__shapes *shapes;
} measured;

static void begin(measured *s, const char *devices, const char *spec, clv_graph *(*make)(const clv_allocator *)) {
  clv_error error = {0};
  const char *const specs[] = {spec};
  machine_open(&s->m, devices, 1, specs);
  s->graph = make(&s->m.counting.allocator);
  assert_ok(clv__shapes_infer(s->graph, NULL, 0, SIZE_MAX, &s->shapes, &error), error);
  assert_ok(clv__profile_create(&s->m.counting.allocator, &s->profile, &error), error);
}

static clv__profile_device *measure(measured *s, uint32_t device, uint32_t *count) {
  clv_error error = {0};
  assert_ok(clv__measure_device(s->m.devices, device, &quick, s->profile, &error), error);
  assert_ok(clv__measure_graph(s->m.devices, device, s->graph, s->shapes, &quick, s->profile, count, &error), error);
  uint32_t found = clv__profile_find_device(s->profile, s->m.devices->items[device].info.fingerprint);
  assert_int_not_equal(found, CLV__NO_ID);
  return s->profile->devices[found];
}

static void done(measured *s) {
  clv__profile_destroy(s->profile);
  clv__shapes_destroy(s->shapes);
  clv__graph_destroy(s->graph);
  machine_close(&s->m);
}

static void fills_the_tables(void **state) {
  (void)state;
  measured s;
  begin(&s, "npu,cpu", "default", test_seven_nodes);
  for (uint32_t d = 0; d < 2; ++d) {
    uint32_t count;
    const clv__profile_device *tables = measure(&s, d, &count);
    assert_int_equal(count, 7);
    assert_int_equal(tables->operator_count, 6); /* the two Relus have the same signature */
    assert_true(tables->launch.runs > 0 && tables->launch.time_ns > 0);
    assert_true(tables->flops_per_second > 0 && tables->bytes_per_second > 0);
    assert_int_equal(tables->copy_counts[CLV__COPY_IN] > 0, d == 0); /* the CPU works in host memory: no copies */
    assert_int_equal(tables->copy_counts[CLV__COPY_OUT] > 0, d == 0);
    assert_string_equal(tables->measured, "2026-11-21");
    assert_int_equal(tables->saving_count,
                     6); /* the edges of a chain of 7 nodes; concat reads one value twice, which counts once */
    for (uint32_t i = 0; i < tables->operator_count; ++i) {
      assert_true(tables->operators[i].alone.runs >= 3 && tables->operators[i].has_within && !tables->operators[i].infeasible);
    }
    assert_true(tables->block_count >= 8); /* each of the 7 nodes, and the whole graph */
  }
  done(&s);
}

/* The tables, which were measured on single nodes and blocks, predict the time of the whole graph in one partition. */
static void whole_is_predicted(void **state) {
  (void)state;
  measured s;
  uint32_t count;
  begin(&s, "npu", "{\"operators\": \"all\", \"speed\": {\"launch_overhead_us\": 300, \"bytes_per_second\": 5e7}}",
        test_seven_nodes);
  const clv__profile_device *tables = measure(&s, 0, &count);
  clv__arena arena;
  clv_graph_view *whole;
  clv__cost_model *stated, *told;
  clv_error error = {0};
  clv__arena_init(&arena, s.graph->allocator);
  assert_ok(clv__view_create_whole(s.graph, s.shapes->types, &arena, &whole, &error), error);
  assert_ok(clv__cost_model_create(s.m.devices, whole, NULL, NULL, &stated, &error), error);
  assert_ok(clv__cost_model_create(s.m.devices, whole, NULL, s.profile, &told, &error), error);
  uint64_t stated_ns = clv__cost_launch(stated, 0), told_ns = clv__cost_launch(told, 0);
  for (uint32_t n = 0; n < s.graph->node_count; ++n) {
    stated_ns += clv__cost_node(stated, n, 0).time_ns;
    told_ns += clv__cost_node(told, n, 0).time_ns;
    assert_int_equal(clv__cost_node(told, n, 0).source, CLV__COST_MEASURED);
    if (n > 0) told_ns -= clv__cost_saving(told, n - 1, n, 0);
  }
  /* The device sleeps until the time that its speed model states is over. A run therefore never takes less; it takes more if
   * the machine is busy, but not ten times as much. */
  if (told_ns < stated_ns * 97 / 100 || told_ns > stated_ns * 10)
    fail_msg("the measured time is %llu ns, but the device's speed model states %llu ns", (unsigned long long)told_ns,
             (unsigned long long)stated_ns);
  assert_true(tables->launch.time_ns >= 300000);
  clv__cost_model_destroy(stated);
  clv__cost_model_destroy(told);
  clv__arena_finish(&arena);
  done(&s);
}

/* A chain that repeats the same pair of nodes eight times: it has only two signatures and many equal blocks. */
static clv_graph *repeated(const clv_allocator *allocator) {
  test_graph g;
  test_graph_begin(&g, allocator, 1);
  test_graph_input(&g, "v0", CLV_F32, 2, DIMS(4, 8));
  for (uint32_t n = 0; n < 16; ++n) {
    char in[16], out[16];
    snprintf(in, sizeof in, "v%u", n);
    snprintf(out, sizeof out, "v%u", n + 1);
    test_graph_node(&g, "", n % 2 == 0 ? "Tanh" : "Relu", in, out);
  }
  return test_graph_end(&g, "v16");
}

static void alike_is_measured_once(void **state) {
  (void)state;
  measured s;
  uint32_t count;
  begin(&s, "npu", "all", repeated);
  const clv__profile_device *tables = measure(&s, 0, &count);
  assert_int_equal(count, 16);
  assert_int_equal(tables->operator_count, 2);
  assert_int_equal(tables->saving_count, 2);
  if (tables->block_count > 32)
    fail_msg("%u blocks were measured, more than 32: equal blocks should be measured once", tables->block_count);
  uint32_t blocks = tables->block_count;
  (void)measure(&s, 0, &count); /* measuring again updates the entries and adds at most a few */
  assert_int_equal(tables->operator_count, 2);
  assert_true(tables->block_count <= blocks + 16);
  done(&s);
}

/* Nodes that the device does not support are not measured. */
static void leaves_out_what_it_cannot(void **state) {
  (void)state;
  measured s;
  uint32_t count;
  begin(&s, "npu", "{\"operators\": {\"Relu\": {}, \"Softmax\": {}}}", test_seven_nodes);
  const clv__profile_device *tables = measure(&s, 0, &count);
  assert_int_equal(count, 3); /* relu, relu2, softmax */
  assert_int_equal(tables->operator_count, 2);
  assert_int_equal(tables->saving_count, 0);
  done(&s);
}

static void common_graphs(void **state) {
  (void)state;
  test_allocator counting;
  clv_error error = {0};
  clv_graph *graph;
  uint32_t count = 0;
  test_allocator_init(&counting);
  for (;; ++count) {
    assert_ok(clv__measure_common(&counting.allocator, count, &graph, &error), error);
    if (graph == NULL) break;
    clv__shapes *shapes;
    assert_ok(clv__shapes_infer(graph, NULL, 0, SIZE_MAX, &shapes, &error), error);
    for (uint32_t v = 0; v < graph->value_count; ++v) assert_true(clv__tensor_is_static(&shapes->types[v]));
    clv__shapes_destroy(shapes);
    clv__graph_destroy(graph);
  }
  assert_true(count >= 8);
  assert_int_equal(counting.live, 0);
}

static void medians(void **state) {
  (void)state;
  uint64_t odd[] = {9, 1, 5, 100, 3}, even[] = {4, 2, 8, 6};
  clv__measure m = clv__measure_of(odd, 5);
  assert_true(m.time_ns == 5 && m.runs == 5 && m.spread_ns == 3);
  m = clv__measure_of(even, 4);
  assert_true(m.time_ns == 5 && m.runs == 4);
  assert_int_equal(clv__measure_of(odd, 0).runs, 0);
  assert_int_equal(clv__measure_runs(15, 1000000000), 3); /* if a run takes 1 s, 3 runs, which is the minimum, suffice */
  assert_int_equal(clv__measure_runs(2, 1000000000), 2);
  assert_true(clv__measure_runs(15, 1000) > 15 && clv__measure_runs(15, 0) <= CLV__MEASURE_MOST_RUNS);
}

int main(void) {
  clv__vnpu_guard_default = false; /* guarding memory at each launch interrupts the runs that are measured */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fills_the_tables),          cmocka_unit_test(whole_is_predicted), cmocka_unit_test(alike_is_measured_once),
      cmocka_unit_test(leaves_out_what_it_cannot), cmocka_unit_test(common_graphs),      cmocka_unit_test(medians),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
