/* Views that a device rejects (plan/hosted.c): the host gives the same bytes, in the device's memory, another name and shape.
 * Nothing is copied for such a view, no other device runs it, and the values that share its bytes are right wherever they are
 * read. */
#include "machine.h"

#define NPU(name, rest) \
  "{\"name\": \"" name "\", " rest "\"operators\": {\"Relu\": {}, \"Tanh\": {}, \"Add\": {}, \"Mul\": {}, \"MatMul\": {}}}"

enum { MOST_NODES = 20 };

static uint32_t inner_of(const clv_plan *plan) {
  uint32_t count = 0;
  for (uint32_t t = 0; t < plan->transfer_count; ++t) count += plan->transfers[t].boundary == CLV__BOUNDARY_INNER;
  return count;
}

/* relu -> reshape -> product: a chain through a view. */
static clv_graph *make_chain(machine *m) {
  test_graph g;
  test_graph_begin(&g, &m->counting.allocator, 3);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(4, 8));
  test_graph_ints(&g, "shape", 2, DIMS(8, 4));
  test_graph_weight(&g, "w", 2, DIMS(4, 8));
  test_graph_node(&g, "relu", "Relu", "x", "a");
  test_graph_node(&g, "reshape", "Reshape", "a,shape", "b");
  test_graph_node(&g, "product", "MatMul", "b,w", "y");
  return test_graph_end(&g, "y");
}

static void no_copy_for_a_rejected_view(void **state) {
  (void)state;
  static const char *const specs[] = {NPU("npu", ""), NPU("own", "\"computes_views\": true, ")};
  machine m;
  for (uint32_t s = 0; s < 2; ++s) {
    machine_open(&m, s == 0 ? "npu,cpu" : "own,cpu", 1, &specs[s]);
    clv_graph *graph = make_chain(&m);
    for (uint32_t i = 0; i < strategy_count(); ++i) {
      clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
      options.strategy = clv__strategies[i]->name;
      clv_plan *plan = machine_plan(&m, graph, s == 0 ? "relu=npu,product=npu" : "relu=own,product=own", options);
      assert_int_equal(inner_of(plan), s == 0 ? 0 : 2);
      assert_int_equal(plan->hosted_count, s == 0 ? 1 : 0);
      assert_int_equal(plan->partition_count, 3);
      assert_int_equal(plan->step_count, s == 0 ? 4 : 7); /* with the copies of the input and the output */
      assert_int_equal(plan->price.partition_ns[1], 0);
      machine_check_random(plan, options.strategy);
      clv_plan_destroy(plan);
    }
    clv_graph_destroy(graph);
    machine_close(&m);
  }
}

/* A device alone can run a model with views that it rejects, because the host takes care of them. No other device is needed. */
static void the_device_is_enough(void **state) {
  (void)state;
  static const char *const specs[] = {NPU("npu", "")};
  machine m;
  machine_open(&m, "npu", 1, specs);
  clv_graph *graph = make_chain(&m);
  clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_true(plan->partitions[1].is_hosted);
  assert_string_equal(plan->placement.causes[1], "view");
  machine_check_random(plan, "npu alone");
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* An output is a view of an input, and no node reads the input in host memory: the input must be there for the output alone. */
static void an_input_becomes_an_output(void **state) {
  (void)state;
  static const char *const specs[] = {NPU("near", "\"memory_space\": \"host\", "), NPU("far", "")};
  machine m;
  test_graph g;
  machine_open(&m, "near,far", 2, specs);
  test_graph_begin(&g, &m.counting.allocator, 3);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(4, 8));
  test_graph_node(&g, "same", "Identity", "x", "y");
  test_graph_node(&g, "relu", "Relu", "x", "z");
  clv_graph *graph = test_graph_end(&g, "y,z");
  clv_plan *plan = machine_plan(&m, graph, "same=near,relu=far", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_int_equal(plan->hosted_count, 1);
  machine_check_random(plan, "an input that is renamed");
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* ---- Random graphs ---- */

/* Values of three shapes with the same number of elements; views lead from one to another. */
static clv_graph *make_random(machine *m, uint64_t seed) {
  static const int64_t dims[3][2] = {{4, 8}, {8, 4}, {2, 16}};
  static const char *const shapes[3] = {"s0", "s1", "s2"}, *const unary[] = {"Relu", "Tanh"}, *const binary[] = {"Add", "Mul"};
  uint32_t shape_of[MOST_NODES + 2] = {0, 1};
  uint64_t random = seed * 977;
  char outputs[200] = "";
  test_graph g;
  test_graph_begin(&g, &m->counting.allocator, seed);
  test_graph_input(&g, "v0", CLV_F32, 2, dims[0]);
  test_graph_input(&g, "v1", CLV_F32, 2, dims[1]);
  for (uint32_t s = 0; s < 3; ++s) test_graph_ints(&g, shapes[s], 2, dims[s]);
  for (uint32_t n = 0; n < MOST_NODES; ++n) {
    char name[16], in[40], out[16];
    uint32_t a = test_random(&random) % 2 == 0 ? n + 1 : (uint32_t)(test_random(&random) % (n + 2)), b = a, to;
    snprintf(name, sizeof name, "n%u", n);
    snprintf(out, sizeof out, "v%u", n + 2);
    shape_of[n + 2] = shape_of[a];
    uint64_t kind = test_random(&random) % 8;
    if (kind < 3) {
      shape_of[n + 2] = to = (uint32_t)(test_random(&random) % 3);
      snprintf(in, sizeof in, "v%u,%s", a, shapes[to]);
      test_graph_node(&g, name, "Reshape", in, out);
    } else if (kind == 3) {
      snprintf(in, sizeof in, "v%u", a);
      test_graph_node(&g, name, "Identity", in, out);
    } else if (kind < 6) {
      snprintf(in, sizeof in, "v%u", a);
      test_graph_node(&g, name, unary[test_random(&random) % 2], in, out);
    } else {
      for (uint32_t tries = 0; tries < 8 && (b == a || shape_of[b] != shape_of[a]); ++tries)
        b = (uint32_t)(test_random(&random) % (n + 2));
      snprintf(in, sizeof in, "v%u,v%u", a, shape_of[b] == shape_of[a] ? b : a);
      test_graph_node(&g, name, binary[test_random(&random) % 2], in, out);
    }
    if (n + 1 == MOST_NODES || test_random(&random) % 6 == 0)
      snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), "%s%s", outputs[0] != '\0' ? "," : "", out);
  }
  return test_graph_end(&g, outputs);
}

static void fill(float *data, uint64_t seed) {
  for (size_t i = 0; i < 32; ++i) data[i] = test_random_float(&seed);
}

/* Runs with outputs in the caller's memory, and compares all of them. */
static void check_bound(clv_session *session, const clv_plan *plan, const clv_tensor *inputs, const char *what) {
  static float room[16][32];
  clv_error error = {0};
  const clv_graph *graph = plan->graph;
  clv_tensor outputs[16], expected[16] = {{0}};
  assert_ok(clv__graph_evaluate(graph, inputs, NULL, expected, NULL, NULL, graph->allocator, &error), error);
  for (uint32_t i = 0; i < graph->output_count; ++i) outputs[i] = expected[i], outputs[i].data = room[i];
  assert_ok(clv_session_run(session, inputs, graph->input_count, outputs, graph->output_count, &error), error);
  for (uint32_t i = 0; i < graph->output_count; ++i) {
    assert_same_values(&outputs[i], &expected[i], what);
    clv__release(graph->allocator, expected[i].data);
  }
}

static void check_plan(const clv_plan *plan, uint64_t seed, const char *what) {
  float a[32], b[32], c[32];
  clv_error error = {0};
  clv__mismatch mismatch;
  fill(a, seed), fill(b, seed + 40), fill(c, seed + 80);
  clv_tensor inputs[2] = {f32(2, DIMS(4, 8), a), f32(2, DIMS(8, 4), b)};
  clv_session *session = machine_session(plan);
  for (int i = 0; i < 3; ++i) machine_check_run(session, plan, inputs, what); /* the second or third run is captured */
  inputs[0].data = c;
  machine_check_run(session, plan, inputs, what);
  for (int i = 0; i < 2; ++i) check_bound(session, plan, inputs, what);
  assert_ok(clv__session_verify(session, inputs, 2, NULL, &mismatch, &error), error);
  assert_int_equal(mismatch.partition, CLV__NO_ID);
  assert_int_equal(mismatch.partitions_hosted, plan->hosted_count);
  machine_check_run(session, plan, inputs, what);
  machine_check_memory(session, plan, what);
  clv_session_destroy(session);
}

/* Reads the plan back from its file, compares the read plan with `plan`, and checks its runs. */
static void check_file(machine *m, const clv_plan *plan, uint64_t seed) {
  clv_error error = {0};
  clv_plan *read;
  char *text = json_of(plan);
  assert_ok(clv__plan_parse(plan->graph, m->devices, text, strlen(text), NULL, &read, &error), error);
  assert_int_equal(read->hosted_count, plan->hosted_count);
  assert_int_equal(read->step_count, plan->step_count);
  assert_int_equal(read->predicted_ns, plan->predicted_ns);
  check_plan(read, seed, "read back");
  clv_plan_destroy(read);
  clv__release(plan->graph->allocator, text);
}

/* Every strategy, with some nodes pinned at random. Returns the number of hosted partitions. */
static uint32_t run_random(const char *list, uint32_t spec_count, const char *const *specs) {
  uint32_t hosted = 0;
  for (uint64_t seed = 1; seed <= 2 * strategy_count(); ++seed) {
    machine m;
    machine_open(&m, list, spec_count, specs); /* for each plan, because the peak of memory is that of all sessions */
    clv_graph *graph = make_random(&m, seed);
    uint64_t random = seed * 31;
    char pins[512] = "";
    for (uint32_t n = 0; n < MOST_NODES && seed % 2 == 0; ++n) {
      const char *device = clv_devices_name(m.devices, (uint32_t)(test_random(&random) % clv_devices_count(m.devices)));
      if (test_random(&random) % 3 == 0)
        snprintf(pins + strlen(pins), sizeof pins - strlen(pins), "%sn%u=%s", pins[0] != '\0' ? "," : "", n, device);
    }
    clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
    options.strategy = clv__strategies[seed % strategy_count()]->name;
    options.objective = seed % 3 == 0 ? "overlap" : "latency";
    clv_plan *plan = machine_plan(&m, graph, pins, options);
    char what[64];
    snprintf(what, sizeof what, "seed %llu, %s, %s", (unsigned long long)seed, list, options.strategy);
    hosted += plan->hosted_count;
    assert_true(plan->lower_bound_ns <= plan->predicted_ns);
    check_plan(plan, seed, what);
    check_file(&m, plan, seed);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    machine_close(&m);
  }
  return hosted;
}

static void in_memories_of_their_own(void **state) {
  (void)state;
  static const char *const specs[] = {NPU("left", "\"memory\": \"1M\", "), NPU("right", "")};
  assert_true(run_random("left,cpu", 1, specs) > 10);
  assert_true(run_random("left,right,cpu", 2, specs) > 10);
  assert_true(run_random("left,right", 2, specs) > 10);
}

static void in_shared_memory(void **state) {
  (void)state;
  static const char *const specs[] = {NPU("left", "\"memory_space\": \"sram\", "), NPU("right", "\"memory_space\": \"sram\", ")};
  assert_true(run_random("left,right,cpu", 2, specs) > 10);
}

static void in_host_memory(void **state) {
  (void)state;
  static const char *const specs[] = {NPU("near", "\"memory_space\": \"host\", "), NPU("far", "")};
  assert_true(run_random("near,cpu", 1, specs) > 10);
  assert_true(run_random("near,far", 2, specs) > 10);
}

static void within_limits(void **state) {
  (void)state;
  static const char *const specs[] = {NPU("npu", "\"memory\": 4096, \"max_partition_nodes\": 2, \"max_partition_inputs\": 2, ")};
  assert_true(run_random("npu,cpu", 1, specs) > 10);
}

/* ---- Plan files ---- */

static void expect_refusal(machine *m, const clv_graph *graph, const char *text, const char *part) {
  clv_error error = {0};
  clv_plan *plan;
  assert_int_equal(clv__plan_parse(graph, m->devices, text, strlen(text), NULL, &plan, &error), CLV_NOT_SUPPORTED);
  if (strstr(error.message, part) == NULL) fail_msg("%s", error.message);
}

/* A file may not put a hosted view into a partition with other nodes. */
static void files_cannot_mix(void **state) {
  (void)state;
  static const char *const specs[] = {NPU("npu", "")};
  static const char *const cuts[] = {
      "[{\"device\": \"npu\", \"nodes\": [\"relu\", \"reshape\"]}, {\"device\": \"npu\", \"nodes\": [\"product\"]}]",
      "[{\"device\": \"npu\", \"nodes\": [\"relu\"]}, {\"device\": \"npu\", \"nodes\": [\"reshape\", \"product\"]}]",
      "[{\"device\": \"npu\", \"nodes\": [\"relu\", \"reshape\", \"product\"]}]"};
  machine m;
  machine_open(&m, "npu,cpu", 1, specs);
  clv_graph *graph = make_chain(&m);
  clv__hash hash;
  char hash_text[2 * CLV__HASH_BYTES + 1], text[512];
  clv__graph_hash(graph, &hash);
  clv__hash_text(&hash, hash_text);
  for (size_t i = 0; i < sizeof cuts / sizeof *cuts; ++i) {
    snprintf(text, sizeof text, "{\"cleave_plan\": 1, \"model_hash\": \"%s\", \"partitions\": %s}", hash_text, cuts[i]);
    expect_refusal(&m, graph, text, "node 'reshape': npu cannot run it: operator Reshape");
  }
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* ---- Failing devices ---- */

/* If the device fails, the views move to another device with the failed device's other nodes, and run there as
 * ordinary nodes. */
static void views_leave_a_failing_device(void **state) {
  (void)state;
  static const char *const specs[] = {NPU("npu", "")};
  clv_error error = {0};
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    machine m;
    test_allocator_init(&m.counting);
    clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
    context.allocator = &m.counting.allocator;
    assert_ok(clv_context_create(&context, &m.context, &error), error);
    clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
    const char *const option = "npu:fail=1";
    devices.list = "npu,cpu";
    devices.npu_specs = specs, devices.npu_spec_count = 1;
    devices.device_options = &option, devices.device_option_count = 1;
    assert_ok(clv_devices_open(m.context, &devices, &m.devices, &error), error);
    clv_graph *graph = make_random(&m, seed);
    clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    assert_true(plan->hosted_count > 0);
    float a[32], b[32];
    fill(a, seed), fill(b, seed + 9);
    clv_tensor inputs[2] = {f32(2, DIMS(4, 8), a), f32(2, DIMS(8, 4), b)};
    clv_session *session = machine_session(plan);
    for (int i = 0; i < 3; ++i) machine_check_run(session, plan, inputs, "after a failure");
    assert_int_equal(clv__session_incident_count(session), 1);
    assert_int_equal(clv__session_plan(session)->hosted_count, 0);
    clv_session_destroy(session);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    machine_close(&m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_copy_for_a_rejected_view),
      cmocka_unit_test(the_device_is_enough),
      cmocka_unit_test(an_input_becomes_an_output),
      cmocka_unit_test(in_memories_of_their_own),
      cmocka_unit_test(in_shared_memory),
      cmocka_unit_test(in_host_memory),
      cmocka_unit_test(within_limits),
      cmocka_unit_test(files_cannot_mix),
      cmocka_unit_test(views_leave_a_failing_device),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
