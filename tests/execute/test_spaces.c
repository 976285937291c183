/* Memory spaces: two NPUs with separate memories (transfers pass through the host), two NPUs that share a memory, and one that
 * works in host memory. A plan read back from its file gives the same outputs. */
#include "machine.h"

#define SPEC(name, space)                                  \
  "{\"name\": \"" name "\", \"memory_space\": \"" space    \
  "\", \"static_shapes\": false, \"control_flow\": true, " \
  "\"operators\": \"all\"}"

static void fill(float *data, size_t count, uint64_t seed) {
  for (size_t i = 0; i < count; ++i) data[i] = test_random_float(&seed);
}

/* Runs random graphs with every node pinned to a random device. Each plan is also written to a file and read back. Returns the
 * number of transfers between partitions. */
static uint32_t run_random(machine *m) {
  uint32_t inner = 0;
  char path[] = "/tmp/cleave-plan-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    clv_graph *graph = test_random_graph(&m->counting.allocator, seed, 30);
    clv_assignment pins[30];
    uint64_t state = seed * 7;
    for (clv_node_id n = 0; n < graph->node_count; ++n) {
      uint32_t device = (uint32_t)(test_random(&state) % clv_devices_count(m->devices));
      pins[n] = (clv_assignment){graph->nodes[n].name, clv_devices_name(m->devices, device)};
    }
    clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
    options.strategy = "contiguous";
    options.pins = pins;
    options.pin_count = graph->node_count;
    clv_error error = {0};
    clv_plan *plans[2];
    assert_ok(clv_plan_make(graph, m->devices, &options, &plans[0], &error), error);
    assert_ok(clv_plan_write(plans[0], path, &error), error);
    assert_ok(clv_plan_read(graph, m->devices, path, NULL, &plans[1], &error), error);
    float a[32], b[32];
    fill(a, 32, seed), fill(b, 32, seed + 40);
    clv_tensor inputs[2] = {f32(2, DIMS(4, 8), a), f32(2, DIMS(4, 8), b)};
    for (int i = 0; i < 2; ++i) {
      for (uint32_t t = 0; t < plans[i]->transfer_count; ++t) {
        const clv__transfer *transfer = &plans[i]->transfers[t];
        inner += transfer->boundary == CLV__BOUNDARY_INNER;
        assert_true(transfer->from == CLV__SPACE_HOST || transfer->to == CLV__SPACE_HOST); /* never from device to device */
      }
      clv_session *session = machine_session(plans[i]);
      machine_check_run(session, plans[i], inputs, "random graph");
      machine_check_run(session, plans[i], inputs, "random graph again");
      clv_session_destroy(session);
      clv_plan_destroy(plans[i]);
    }
    clv_graph_destroy(graph);
  }
  unlink(path);
  return inner;
}

static void memories_of_their_own(void **state) {
  (void)state;
  static const char *const specs[] = {"all", "all"};
  machine m;
  machine_open(&m, "npu,npu1,cpu", 2, specs);
  assert_int_equal(m.devices->space_count, 3);
  assert_true(run_random(&m) > 100);
  machine_close(&m);
  machine_open(&m, "npu,npu1", 2, specs); /* without a device in host memory */
  assert_true(run_random(&m) > 100);
  machine_close(&m);
}

static void a_shared_memory(void **state) {
  (void)state;
  static const char *const specs[] = {SPEC("left", "sram"), SPEC("right", "sram")};
  machine m;
  machine_open(&m, "left,right", 2, specs);
  assert_int_equal(m.devices->space_count, 2);
  assert_int_equal(m.devices->items[0].space, m.devices->items[1].space);
  assert_int_equal(run_random(&m), 0);
  machine_close(&m);
  machine_open(&m, "left,cpu,right", 2, specs);
  assert_int_equal(m.devices->items[0].space, m.devices->items[2].space);
  assert_true(run_random(&m) > 50);
  machine_close(&m);
}

static void host_memory(void **state) {
  (void)state;
  static const char *const specs[] = {SPEC("near", "host")};
  machine m;
  machine_open(&m, "near,cpu", 1, specs);
  assert_int_equal(m.devices->space_count, 1);
  assert_int_equal(run_random(&m), 0);
  clv_graph *graph = test_seven_nodes(&m.counting.allocator);
  clv_plan *plan = machine_plan(&m, graph, "concat=cpu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_int_equal(plan->partition_count, 3);
  assert_int_equal(plan->transfer_count, 0); /* inputs and outputs need no transfers either */
  clv_session *session = machine_session(plan);
  float data[3 * 8 * 8];
  char shifted[sizeof data + 1], room[1 * 8 * 8 * 8 * sizeof(float) + 1];
  fill(data, sizeof data / sizeof *data, 4);
  memcpy(shifted + 1, data, sizeof data);
  clv_tensor input = f32(4, DIMS(1, 3, 8, 8), data), expected = {0}, output = {0};
  machine_check_run(session, plan, &input, "host memory");
  clv_error error = {0};
  assert_ok(clv_session_run(session, &input, 1, &expected, 1, &error), error);
  float kept[1 * 8 * 8 * 8];
  memcpy(kept, expected.data, sizeof kept);
  expected.data = kept;
  input.data = shifted + 1; /* the caller's memory may be unaligned, for inputs and outputs */
  output = expected;
  output.data = room + 1;
  assert_ok(clv_session_run(session, &input, 1, &output, 1, &error), error);
  assert_same_values(&output, &expected, "unaligned");
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memories_of_their_own),
      cmocka_unit_test(a_shared_memory),
      cmocka_unit_test(host_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
