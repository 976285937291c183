/* Tests the output of --explain-passes for small plans, as text and as JSON, and that running out of memory is handled. */
#include "machine.h"
#include "place/place.h"
#include "report/passes.h"

static clv_plan *propagate(machine *m, const clv_graph *graph, const char *pins) {
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "propagate";
  options.record_passes = true;
  return machine_plan(m, graph, pins, options);
}

/* mul = a * b, where the user has placed no value: the inputs are on the last device, and the node has no device until pass 3
 * assigns it to the device of its inputs. */
static void nothing_allocated(void **state) {
  (void)state;
  static const char *const all[] = {"all"};
  machine m;
  test_graph g;
  machine_open(&m, "npu,cpu", 1, all);
  test_graph_begin(&g, &m.counting.allocator, 3);
  test_graph_input(&g, "a", CLV_F32, 1, DIMS(4));
  test_graph_input(&g, "b", CLV_F32, 1, DIMS(4));
  test_graph_node(&g, "product", "Mul", "a,b", "mul");
  clv_graph *graph = test_graph_end(&g, "mul");
  clv_plan *plan = propagate(&m, graph, NULL);
  clv__text text;
  clv__text_init(&text, clv__allocator_default());
  clv__report_passes(plan, &text);
  assert_false(text.failed);
  char expected[4096] = "";
  static const char *const titles[] = {
      "1: assign nodes by pins, and by the memory of their outputs and weights",
      "2a: give nodes without a device that of the nearest earlier node, unless it is the last device",
      "2b: give nodes without a device that of the nearest later node, unless it is the last device",
      "2c: give nodes without a device that of the nearest earlier node",
      "2d: give nodes without a device that of the nearest later node",
      "3: assign each other node to the device that can read most of its inputs; then move nodes to devices of higher priority "
      "that share the memory",
      "4: assign views to the device of their source, and weights to that of their first reader",
      "5: cut the list of nodes into partitions",
  };
  for (int i = 0; i < 8; ++i) {
    const char *place = i < 5 ? "-1" : "cpu  3.best";
    snprintf(expected + strlen(expected), sizeof expected - strlen(expected),
             "\nafter pass %s\n  value  a        cpu  1.inp\n  value  b        cpu  1.inp\n  value  mul      %s\n  node   "
             "product  %s\n",
             titles[i], place, place);
  }
  strcat(expected, "  partition 0 on cpu: 1 node, inputs []\n");
  assert_string_equal(text.data, expected);
  clv__text_finish(&text);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

static const json_t *find(const json_t *array, const char *key, const char *name) {
  for (size_t i = 0; i < json_array_size(array); ++i) {
    const json_t *item = json_array_get(array, i);
    if (strcmp(json_string_value(json_object_get(item, key)), name) == 0) return item;
  }
  fail_msg("no entry has the %s '%s'", key, name);
  return NULL;
}

static void expect_place(const json_t *item, const char *device, const char *cause) {
  const json_t *is = json_object_get(item, "device");
  if (device == NULL)
    assert_int_equal(json_integer_value(is), -1);
  else
    assert_string_equal(json_string_value(is), device);
  assert_string_equal(json_string_value(json_object_get(item, "cause")), cause);
}

static clv_graph *with_weight(const clv_allocator *allocator) {
  test_graph g;
  test_graph_begin(&g, allocator, 3);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(4, 4));
  test_graph_weight(&g, "w", 2, DIMS(4, 4));
  test_graph_node(&g, "first", "Relu", "x", "r");
  test_graph_node(&g, "second", "MatMul", "r,w", "p");
  test_graph_node(&g, "third", "Add", "p,r", "s");
  return test_graph_end(&g, "s");
}

static void as_json(void **state) {
  (void)state;
  static const char *const all[] = {"all"};
  machine m;
  machine_open(&m, "npu,cpu", 1, all);
  clv_graph *graph = with_weight(&m.counting.allocator);
  clv_plan *plan = propagate(&m, graph, "third=npu,second=cpu");
  json_t *passes = clv__report_passes_json(plan);
  assert_int_equal(json_array_size(passes), 8);
  const json_t *one = find(passes, "pass", "1"), *down = find(passes, "pass", "2c"), *last = find(passes, "pass", "5");
  expect_place(find(json_object_get(one, "values"), "name", "x"), "cpu", "1.inp");
  expect_place(find(json_object_get(one, "weights"), "name", "w"), "cpu", "1.dst");
  expect_place(find(json_object_get(one, "nodes"), "name", "first"), NULL, "");
  expect_place(find(json_object_get(one, "nodes"), "name", "second"), "cpu", "usr");
  expect_place(find(json_object_get(down, "values"), "name", "r"), NULL, "");
  expect_place(find(json_object_get(last, "nodes"), "name", "first"), "cpu", "2d.up");
  assert_null(json_object_get(one, "partitions"));
  assert_null(json_object_get(find(json_object_get(one, "nodes"), "name", "third"), "partition"));
  assert_int_equal(json_integer_value(json_object_get(find(json_object_get(last, "nodes"), "name", "third"), "partition")), 1);
  const json_t *partitions = json_object_get(last, "partitions");
  assert_int_equal(json_array_size(partitions), 2);
  const json_t *inputs = json_object_get(json_array_get(partitions, 1), "inputs");
  assert_string_equal(json_string_value(json_object_get(json_array_get(partitions, 1), "device")), "npu");
  assert_int_equal(json_array_size(inputs), 2);
  assert_int_equal(json_array_size(json_object_get(json_array_get(partitions, 0), "inputs")), 0);
  json_decref(passes);
  clv_plan_destroy(plan);

  clv_plan_options options = CLV_PLAN_OPTIONS_INIT; /* without a record of the passes, there is no output */
  options.strategy = "propagate";
  plan = machine_plan(&m, graph, NULL, options);
  passes = clv__report_passes_json(plan);
  assert_int_equal(json_array_size(passes), 0);
  json_decref(passes);
  clv__text text;
  clv__text_init(&text, clv__allocator_default());
  clv__report_passes(plan, &text);
  assert_int_equal(text.size_bytes, 0);
  clv__text_finish(&text);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

static size_t allocations, failing;
static void *failing_malloc(size_t size) {
  return ++allocations == failing ? NULL : malloc(size);
}

/* Makes every allocation of the JSON library fail once, and every allocation of the text. The result must be complete or an
 * error. */
static void out_of_memory(void **state) {
  (void)state;
  static const char *const all[] = {"all"};
  machine m;
  machine_open(&m, "npu,cpu", 1, all);
  clv_graph *graph = with_weight(&m.counting.allocator);
  clv_plan *plan = propagate(&m, graph, "third=npu");
  json_malloc_t old_malloc;
  json_free_t old_free;
  json_get_alloc_funcs(&old_malloc, &old_free);
  json_set_alloc_funcs(failing_malloc, free);
  json_t *whole = clv__report_passes_json(plan);
  size_t failures = 0;
  bool is_through = false;
  for (failing = 1; !is_through; failing += failing < 200 ? 1 : 37) {
    allocations = 0;
    json_t *passes = clv__report_passes_json(plan);
    is_through = allocations < failing;
    failures += passes == NULL;
    assert_true(passes != NULL || !is_through);
    size_t kept = failing;
    failing = 0;
    if (passes != NULL) assert_true(json_equal(passes, whole)); /* the JSON library tried the failed allocation again */
    json_decref(passes);
    failing = kept;
  }
  assert_true(failures > 150);
  json_decref(whole);
  json_set_alloc_funcs(old_malloc, old_free);

  test_allocator counting;
  bool failed = true;
  for (size_t at = 1; failed; ++at) {
    clv__text text;
    test_allocator_init(&counting);
    counting.fail_at = at;
    clv__text_init(&text, &counting.allocator);
    clv__report_passes(plan, &text);
    failed = text.failed;
    assert_int_equal(failed, counting.calls >= at);
    clv__text_finish(&text);
    assert_int_equal(counting.live, 0);
  }
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_allocated),
      cmocka_unit_test(as_json),
      cmocka_unit_test(out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
