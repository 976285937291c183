/* Tests the functions of cleave/plan_contents.h, which read a plan: every figure must equal that in the plan file, which is
 * written by separate code. */
#include <jansson.h>

#include "machine.h"

enum { PLANS = 120 };

static void assert_text(const json_t *object, const char *key, const char *actual) {
  const char *expected = json_string_value(json_object_get(object, key));
  if ((expected == NULL) != (actual == NULL) || (expected != NULL && strcmp(expected, actual) != 0))
    fail_msg("%s is '%s', expected '%s'", key, actual == NULL ? "NULL" : actual, expected == NULL ? "NULL" : expected);
}

static void assert_time(const json_t *object, const char *key, double time_ns) {
  double expected = json_number_value(json_object_get(object, key));
  if (fabs(expected - time_ns / 1e6) > 1e-9) fail_msg("%s is %.9g, expected %.9g", key, time_ns / 1e6, expected);
}

static void check_steps(const clv_plan *plan, const json_t *steps) {
  for (uint32_t i = 0; i < json_array_size(steps); ++i) {
    clv_plan_step_info info = {.struct_size = sizeof info};
    const json_t *step = json_array_get(steps, i), *after = json_object_get(step, "after");
    assert_true(clv_plan_step(plan, i, &info));
    assert_int_equal(info.index, json_integer_value(json_object_get(step, info.is_transfer ? "transfer" : "partition")));
    assert_null(json_object_get(step, info.is_transfer ? "partition" : "transfer"));
    assert_int_equal(info.dependency_count, json_array_size(after));
    for (uint32_t k = 0; k < info.dependency_count; ++k)
      assert_int_equal(info.dependencies[k], json_integer_value(json_array_get(after, k)));
  }
}

static void check_partitions(const clv_plan *plan, const clv_devices *devices, const json_t *partitions) {
  for (uint32_t i = 0; i < json_array_size(partitions); ++i) {
    clv_partition_info info = {.struct_size = sizeof info};
    const json_t *partition = json_array_get(partitions, i), *nodes = json_object_get(partition, "nodes");
    const json_t *inputs = json_object_get(partition, "inputs"), *outputs = json_object_get(partition, "outputs");
    assert_true(clv_plan_partition(plan, i, &info));
    assert_text(partition, "device", clv_devices_name(devices, info.device));
    assert_int_equal(info.weight_bytes, json_integer_value(json_object_get(partition, "weight_bytes")));
    assert_time(partition, "predicted_ms", (double)info.predicted_ns);
    assert_int_equal(info.node_count, json_array_size(nodes));
    for (uint32_t k = 0; k < info.node_count; ++k) {
      clv_placed_node_info node = {.struct_size = sizeof node};
      assert_true(clv_plan_node(plan, info.nodes[k], &node));
      assert_string_equal(node.name, json_string_value(json_array_get(nodes, k)));
      assert_int_equal(node.partition, i);
    }
    assert_int_equal(info.input_count, json_array_size(inputs));
    for (uint32_t k = 0; k < info.input_count; ++k)
      assert_string_equal(clv_plan_partition_input(plan, i, k), json_string_value(json_array_get(inputs, k)));
    assert_int_equal(info.output_count, json_array_size(outputs));
    for (uint32_t k = 0; k < info.output_count; ++k)
      assert_string_equal(clv_plan_partition_output(plan, i, k), json_string_value(json_array_get(outputs, k)));
    assert_null(clv_plan_partition_input(plan, i, info.input_count));
    assert_null(clv_plan_partition_output(plan, i, info.output_count));
  }
}

static void check_transfers(const clv_plan *plan, const json_t *transfers) {
  static const char *const kinds[] = {"inner", "input", "output", "weight"};
  for (uint32_t i = 0; i < json_array_size(transfers); ++i) {
    clv_transfer_info info = {.struct_size = sizeof info};
    const json_t *transfer = json_array_get(transfers, i);
    assert_true(clv_plan_transfer(plan, i, &info));
    assert_text(transfer, "value", info.value);
    assert_text(transfer, "from", info.from);
    assert_text(transfer, "to", info.to);
    assert_text(transfer, "boundary", kinds[info.kind]);
    assert_int_equal(info.size_bytes, json_integer_value(json_object_get(transfer, "bytes")));
    assert_time(transfer, "predicted_ms", (double)info.predicted_ns);
  }
}

static void check_nodes(const clv_plan *plan, const clv_devices *devices, const json_t *nodes) {
  for (uint32_t i = 0; i < json_array_size(nodes); ++i) {
    clv_placed_node_info info = {.struct_size = sizeof info};
    const json_t *node = json_array_get(nodes, i);
    assert_true(clv_plan_node(plan, i, &info));
    assert_text(node, "name", info.name);
    assert_text(node, "op", info.op);
    assert_text(node, "cause", info.cause);
    assert_text(node, "note", info.note);
    assert_text(node, "device", info.device == CLV_NO_INDEX ? NULL : clv_devices_name(devices, info.device));
    assert_int_equal(info.partition == CLV_NO_INDEX, info.device == CLV_NO_INDEX);
    for (uint32_t d = 0; d <= clv_devices_count(devices); ++d) {
      const char *name = d < clv_devices_count(devices) ? clv_devices_name(devices, d) : "";
      const json_t *move = json_object_get(json_object_get(node, "move_ms"), name);
      int64_t delta_ns;
      assert_text(json_object_get(node, "refused_by"), name, clv_plan_node_refusal(plan, i, d));
      bool moves = clv_plan_move_ns(plan, i, d, &delta_ns) && d != info.device;
      assert_int_equal(moves, move != NULL);
      if (moves) assert_time(json_object_get(node, "move_ms"), name, (double)delta_ns);
    }
  }
}

static void check_totals(const clv_plan *plan, const json_t *root) {
  clv_plan_info info = {.struct_size = sizeof info};
  clv_plan_get_info(plan, &info);
  assert_int_equal(info.step_count, json_array_size(json_object_get(root, "steps")));
  assert_int_equal(info.partition_count, json_array_size(json_object_get(root, "partitions")));
  assert_int_equal(info.transfer_count, json_array_size(json_object_get(root, "transfers")));
  assert_int_equal(info.node_count, json_array_size(json_object_get(root, "nodes")));
  assert_text(root, "strategy", info.strategy);
  assert_text(root, "split", info.split);
  assert_text(root, "objective", info.objective);
  assert_time(root, "serial_ms", (double)info.latency.predicted_ns);
  assert_time(root, "serial_bound_ms", (double)info.latency.bound_ns);
  assert_time(root, "overlapped_ms", (double)info.overlap.predicted_ns);
  assert_time(root, "overlapped_bound_ms", (double)info.overlap.bound_ns);
  assert_time(root, "throughput_ms", (double)info.throughput.predicted_ns);
  assert_time(root, "throughput_bound_ms", (double)info.throughput.bound_ns);
  if (info.gap >= 0) assert_true(fabs(info.gap - json_number_value(json_object_get(root, "gap"))) < 1e-9);
}

/* Past the last index, every function reports that there is nothing, and sets its struct to zero. */
static void check_ends(const clv_plan *plan, const clv_plan_info *info) {
  clv_plan_step_info step;
  clv_partition_info partition;
  clv_transfer_info transfer;
  clv_placed_node_info node;
  int64_t delta_ns;
  memset(&step, 0xff, sizeof step), step.struct_size = sizeof step;
  memset(&partition, 0xff, sizeof partition), partition.struct_size = sizeof partition;
  memset(&transfer, 0xff, sizeof transfer), transfer.struct_size = sizeof transfer;
  memset(&node, 0xff, sizeof node), node.struct_size = sizeof node;
  assert_false(clv_plan_step(plan, info->step_count, &step));
  assert_false(clv_plan_partition(plan, info->partition_count, &partition));
  assert_false(clv_plan_transfer(plan, info->transfer_count, &transfer));
  assert_false(clv_plan_node(plan, info->node_count, &node));
  assert_true(step.dependencies == NULL && partition.nodes == NULL && transfer.value == NULL && node.name == NULL);
  assert_null(clv_plan_partition_input(plan, info->partition_count, 0));
  assert_null(clv_plan_node_refusal(plan, info->node_count, 0));
  assert_false(clv_plan_move_ns(plan, info->node_count, 0, &delta_ns));
}

static void contents_are_those_of_the_file(void **state) {
  (void)state;
  uint32_t transfers = 0, refusals = 0;
  for (uint32_t seed = 0; seed < test_some(PLANS); ++seed) {
    static const char *const specs[] = {"all", "default", "{\"name\": \"small\", \"operators\": {\"MatMul\": {}, \"Add\": {}}}"};
    machine m;
    clv_error error = {0};
    clv_plan *plan;
    clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
    char *text;
    machine_open(&m, "npu,cpu", 1, &specs[seed % 3]);
    /* in test_seven_nodes() with matmul on the CPU, the transfers differ in size */
    const clv_assignment pin = {"matmul", "cpu"};
    clv_graph *graph =
        seed % 5 == 0 ? test_seven_nodes(&m.counting.allocator) : test_random_graph(&m.counting.allocator, seed, 5 + seed % 20);
    options.pins = &pin, options.pin_count = seed % 5 == 0;
    options.strategy = clv__strategies[seed % strategy_count()]->name;
    assert_ok(clv_plan_make(graph, m.devices, &options, &plan, &error), error);
    assert_ok(clv_plan_json(plan, &text, &error), error);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    check_totals(plan, root);
    check_steps(plan, json_object_get(root, "steps"));
    check_partitions(plan, m.devices, json_object_get(root, "partitions"));
    check_transfers(plan, json_object_get(root, "transfers"));
    check_nodes(plan, m.devices, json_object_get(root, "nodes"));
    clv_plan_info info = {.struct_size = sizeof info};
    clv_plan_get_info(plan, &info);
    check_ends(plan, &info);
    transfers += info.transfer_count;
    for (uint32_t n = 0; n < info.node_count; ++n) refusals += clv_plan_node_refusal(plan, n, 0) != NULL;
    json_decref(root);
    clv_text_free(text);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    machine_close(&m);
  }
  assert_true(transfers > 0 && refusals > 0);
}

/* A program that was compiled with an older header has shorter structs. Nothing beyond them is written. */
static void older_structs(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "cpu", 0, NULL);
  clv_graph *graph = test_seven_nodes(&m.counting.allocator);
  clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  for (uint32_t size = sizeof(uint32_t); size <= sizeof(clv_placed_node_info); ++size) {
    union {
      clv_placed_node_info info;
      unsigned char bytes[sizeof(clv_placed_node_info)];
    } given, whole = {.info = {.struct_size = sizeof whole.info}};
    memset(&given, 0xa5, sizeof given);
    given.info.struct_size = size;
    assert_true(clv_plan_node(plan, 0, &given.info) && clv_plan_node(plan, 0, &whole.info));
    assert_memory_equal(given.bytes + sizeof size, whole.bytes + sizeof size, size - sizeof size);
    for (size_t i = size; i < sizeof given; ++i) assert_int_equal(given.bytes[i], 0xa5);
  }
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

static void text_without_memory(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "cpu", 0, NULL);
  clv_graph *graph = test_seven_nodes(&m.counting.allocator);
  clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  for (size_t at = 1; at <= 4; ++at) { /* three allocations can fail: making the JSON, making a text of it, giving the text */
    clv_error error = {0};
    char *text = (char *)&error;
    m.counting.calls = 0, m.counting.fail_at = at;
    assert_int_equal(clv_plan_json(plan, &text, &error), at < 4 ? CLV_OUT_OF_MEMORY : CLV_OK);
    assert_int_equal(text == NULL, at < 4);
    m.counting.fail_at = 0;
    clv_text_free(text);
  }
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(contents_are_those_of_the_file), cmocka_unit_test(older_structs),
                                     cmocka_unit_test(text_without_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
