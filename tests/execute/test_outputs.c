/* Unusual outputs and inputs: outputs that are inputs, constants or listed twice; the caller's memory for outputs, unaligned,
 * overlapping an input, or read by other nodes; kept values; defaults that are overridden in some runs; graphs without nodes. */
#include "machine.h"

static const char *const all[] = {"all"};

/* Adds an initializer, which runs may override if `is_input`. Its bytes are `shift` bytes off their alignment. */
static void constant(test_graph *g, const char *name, int64_t count, float first, bool is_input, size_t shift) {
  clv_error error = {0};
  clv_value_id id;
  char *data = clv__arena_allocate_data(clv__builder_arena(g->builder), (size_t)count * sizeof(float) + shift);
  assert_non_null(data);
  for (int64_t i = 0; i < count; ++i) {
    float value = first + (float)i;
    memcpy(data + shift + (size_t)i * sizeof value, &value, sizeof value);
  }
  clv_tensor type = f32(1, DIMS(count), data + shift);
  assert_ok(clv__builder_value(g->builder, name, &id, &error), error);
  clv__builder_type(g->builder, id, &type);
  if (is_input) assert_ok(clv__builder_input(g->builder, id, &error), error);
}

/* a = x + k; b = a * d; outputs: b, the input x, the constant k, a (which b reads), b again, c = k + k (folded). */
static clv_graph *odd_outputs(const clv_allocator *allocator, size_t shift) {
  test_graph g;
  test_graph_begin(&g, allocator, 1);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(5));
  constant(&g, "k", 5, 10, false, shift);
  constant(&g, "d", 5, 2, true, shift);
  test_graph_node(&g, "a", "Add", "x,k", "a");
  test_graph_node(&g, "b", "Mul", "a,d", "b");
  test_graph_node(&g, "c", "Add", "k,k", "c");
  return test_graph_end(&g, "b,x,k,a,b,c");
}

static void check_odd(const clv_tensor *outputs, const float *x, const float *d, const char *what) {
  float expected[6][5];
  for (int i = 0; i < 5; ++i) {
    float k = 10 + (float)i;
    expected[1][i] = x[i];
    expected[2][i] = k;
    expected[3][i] = x[i] + k;
    expected[0][i] = expected[4][i] = expected[3][i] * d[i];
    expected[5][i] = 2 * k;
  }
  for (uint32_t o = 0; o < 6; ++o) {
    clv_tensor should = f32(1, DIMS(5), expected[o]);
    assert_same_values(&outputs[o], &should, what);
  }
}

static void odd(const char *list, const char *pins) {
  enum { RUNS = 4 };
  for (size_t shift = 0; shift < 2; ++shift) {
    machine m;
    machine_open(&m, list, 1, all);
    clv_graph *graph = odd_outputs(&m.counting.allocator, shift);
    clv_plan *plan = machine_plan(&m, graph, pins, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    clv_session *session = machine_session(plan);
    clv_error error = {0};
    float x[5] = {1, -2, 3, -4, 5}, d[5] = {-1, 0.5f, 7, 3, 2}, standard[5] = {2, 3, 4, 5, 6};
    char room[6][5 * sizeof(float) + 1];
    /* Runs 0 and 2 use the default of the second input, runs 1 and 3 override it. In runs 2 and 3 the caller gives memory for the
     * outputs. */
    for (int run = 0; run < RUNS; ++run) {
      bool overridden = run % 2 == 1, given = run >= 2;
      clv_tensor inputs[2] = {f32(1, DIMS(5), x), f32(1, DIMS(5), d)}, outputs[6] = {{0}};
      if (!overridden) inputs[1] = (clv_tensor){0};
      for (uint32_t o = 0; o < 6 && given; ++o) outputs[o] = f32(1, DIMS(5), room[o] + shift);
      assert_ok(clv_session_run(session, inputs, 2, outputs, 6, &error), error);
      for (uint32_t o = 0; o < 6 && given; ++o) assert_ptr_equal(outputs[o].data, room[o] + shift);
      for (uint32_t o = 0; o < 6 && !given; ++o) assert_int_equal((uintptr_t)outputs[o].data % sizeof(float), 0);
      check_odd(outputs, x, overridden ? d : standard,
                given ? "outputs in the caller's memory" : "outputs in the session's memory");
    }
    clv_session_destroy(session);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    machine_close(&m);
  }
}

static void odd_outputs_on_every_device(void **state) {
  (void)state;
  odd("cpu", NULL);
  odd("npu,cpu", "a=npu,b=npu");
  odd("npu,cpu", "a=npu,b=cpu");
  odd("npu,cpu", "a=cpu,b=npu");
}

/* The graph lists a value as an output twice, and the caller gives memory for only one of the two. The other one must not point
 * to that memory. */
static void memory_is_whose_it_says(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "cpu", 0, NULL);
  clv_graph *graph = odd_outputs(&m.counting.allocator, 0);
  clv_plan *plan = machine_plan(&m, graph, "a=cpu,b=cpu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *session = machine_session(plan);
  clv_error error = {0};
  float x[5] = {1, 2, 3, 4, 5}, room[5], standard[5] = {2, 3, 4, 5, 6};
  clv_tensor inputs[2] = {f32(1, DIMS(5), x)}, outputs[6] = {{0}};
  outputs[4] = f32(1, DIMS(5), room);
  assert_ok(clv_session_run(session, inputs, 2, outputs, 6, &error), error);
  assert_ptr_not_equal(outputs[0].data, room);
  check_odd(outputs, x, standard, "memory for one of two equal outputs");
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* The memory given for the output `y` is that of the input `x`, and `z` reads `x` after `y` is computed. `z` must be right all
 * the same. */
static void an_output_over_an_input(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "npu,cpu", 1, all);
  test_graph g;
  test_graph_begin(&g, &m.counting.allocator, 1);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(5));
  test_graph_node(&g, "y", "Neg", "x", "y");
  test_graph_node(&g, "n", "Abs", "y", "n");
  test_graph_node(&g, "z", "Sub", "n,x", "z");
  clv_graph *graph = test_graph_end(&g, "y,z");
  clv_plan *plan = machine_plan(&m, graph, "y=cpu,n=npu,z=cpu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *session = machine_session(plan);
  clv_error error = {0};
  float x[9] = {1, 2, 3, 4, 5};
  for (size_t shift = 0; shift < 5; shift += 4) { /* the output overlaps all elements of the input, then only the last one */
    for (int i = 0; i < 5; ++i) x[i] = (float)(i + 1);
    clv_tensor input = f32(1, DIMS(5), x), outputs[2] = {f32(1, DIMS(5), x + shift)};
    assert_ok(clv_session_run(session, &input, 1, outputs, 2, &error), error);
    for (size_t i = 0; i < 5; ++i) {
      assert_float_equal(x[shift + i], -(float)(i + 1), 0);
      assert_float_equal(clv__tensor_get(&outputs[1], i), 0, 0);
    }
  }
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

typedef struct allocations {
  const clv_tensor *outputs;
  uint32_t refused; /* a mask of outputs that get no memory */
  uint32_t counts[6];
  void *data[6];
  size_t sizes[6];
} allocations;

static void *allocate_output(void *user_data, uint32_t output, const clv_tensor *type) {
  allocations *a = user_data;
  ++a->counts[output];
  if (a->refused >> output & 1) return NULL;
  assert_null(a->data[output]);
  assert_true(clv__tensor_size_bytes(type, &a->sizes[output]));
  a->data[output] = aligned_alloc(64, (a->sizes[output] + 64) / 64 * 64);
  return a->data[output];
}

/* The caller allocates memory for outputs when their sizes are known: `y` and its copy before the run, the positions `nz` after
 * it, the input and the constant at any time. It allocates none for the last output. */
static void the_caller_allocates(void **state) {
  (void)state;
  static const char *const pins[] = {"y=cpu,nz=cpu", "y=npu,nz=cpu", "y=npu,nz=npu"};
  machine m;
  machine_open(&m, "npu,cpu", 1, all);
  test_graph g;
  test_graph_begin(&g, &m.counting.allocator, 1);
  clv_error error = {0};
  uint32_t symbol;
  assert_ok(clv__builder_symbol(g.builder, "N", &symbol, &error), error);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(CLV_DIM_SYMBOL(symbol)));
  constant(&g, "k", 5, 1, false, 3);
  test_graph_node(&g, "y", "Relu", "x", "y");
  test_graph_node(&g, "nz", "NonZero", "y", "nz");
  clv_graph *graph = test_graph_end(&g, "y,y,nz,x,k,y");
  for (size_t p = 0; p < sizeof pins / sizeof *pins; ++p) {
    clv_plan *plan = machine_plan(&m, graph, pins[p], (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    clv_session_options options = CLV_SESSION_OPTIONS_INIT;
    clv_session *session;
    options.in_flight = 2;
    assert_ok(clv_session_create(plan, &options, &session, &error), error);
    for (int64_t n = 0; n < 9; n += 2) {
      float x[8];
      for (int i = 0; i < 8; ++i) x[i] = i % 3 == 1 ? -1 : (float)(i + 1);
      clv_tensor input = f32(1, DIMS(n), x), outputs[6] = {{0}}, expected[6] = {{0}};
      allocations allocated = {.outputs = outputs, .refused = 1u << 5};
      clv_run_options run = CLV_RUN_OPTIONS_INIT;
      run.allocate = allocate_output;
      run.user_data = &allocated;
      assert_ok(clv_session_run_with(session, &input, 1, outputs, 6, &run, &error), error);
      assert_ok(clv__graph_evaluate(graph, &input, NULL, expected, NULL, NULL, graph->allocator, &error), error);
      for (int o = 0; o < 6; ++o) {
        assert_same_values(&outputs[o], &expected[o], pins[p]);
        if (o < 5) assert_ptr_equal(outputs[o].data, allocated.data[o]);
        assert_int_equal(allocated.counts[o], o < 5 ? 1 : 2); /* asked before the run, and again after it */
        clv__release(graph->allocator, expected[o].data);
        free(allocated.data[o]);
      }
    }
    clv_session_destroy(session);
    clv_plan_destroy(plan);
  }
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* The output `y` is written to memory of the caller, and nodes of this and of other partitions read it there, even if it is
 * unaligned. */
static void outputs_read_inside_from_the_callers_memory(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "npu,cpu", 1, all);
  test_graph g;
  test_graph_begin(&g, &m.counting.allocator, 1);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(64));
  test_graph_node(&g, "y", "Exp", "x", "y");
  test_graph_node(&g, "n", "Neg", "y", "n");
  test_graph_node(&g, "z", "Add", "n,y", "z");
  clv_graph *graph = test_graph_end(&g, "y,z");
  static const char *const pins[] = {"y=cpu,n=cpu,z=cpu", "y=cpu,n=npu,z=cpu", "y=npu,n=cpu,z=npu", "y=npu,n=npu,z=cpu"};
  for (size_t p = 0; p < sizeof pins / sizeof *pins; ++p) {
    clv_plan *plan = machine_plan(&m, graph, pins[p], (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    clv_session *session = machine_session(plan);
    clv_error error = {0};
    float x[64];
    char room[64 * sizeof(float) + 3];
    for (int i = 0; i < 64; ++i) x[i] = (float)i / 64;
    for (size_t shift = 0; shift < 4; ++shift) {
      clv_tensor input = f32(1, DIMS(64), x), outputs[2] = {f32(1, DIMS(64), room + shift)};
      assert_ok(clv_session_run(session, &input, 1, outputs, 2, &error), error);
      for (size_t i = 0; i < 64; ++i) {
        assert_float_equal(clv__tensor_get(&outputs[0], i), exp(x[i]), 1e-5);
        assert_float_equal(clv__tensor_get(&outputs[1], i), 0, 0);
      }
    }
    clv_session_destroy(session);
    clv_plan_destroy(plan);
  }
  clv_graph_destroy(graph);
  machine_close(&m);
}

static void kept_values(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "npu,cpu", 1, all);
  clv_graph *graph = odd_outputs(&m.counting.allocator, 1);
  static const char *const keeps[] = {"a", "k", "x", "c", "b", "a"};
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  options.keeps = keeps;
  options.keep_count = 6;
  clv_plan *plan = machine_plan(&m, graph, "a=npu,b=npu", options);
  clv_session *session = machine_session(plan);
  clv_error error = {0};
  float x[5] = {1, 2, 3, 4, 5}, room[5];
  clv_tensor inputs[2] = {f32(1, DIMS(5), x)}, outputs[12] = {{0}};
  outputs[6] = f32(1, DIMS(5), room);
  assert_int_equal(clv_session_run(session, inputs, 2, outputs, 6, &error), CLV_INVALID_ARGUMENT);
  assert_ok(clv_session_run(session, inputs, 2, outputs, 12, &error), error);
  static const uint32_t same_as[] = {3, 2, 1, 5, 0, 3};
  for (uint32_t i = 0; i < 6; ++i) assert_same_values(&outputs[6 + i], &outputs[same_as[i]], keeps[i]);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  static const char *const unknown[] = {"a", "nothing"};
  options.keeps = unknown;
  options.keep_count = 2;
  assert_int_equal(clv_plan_make(graph, m.devices, &options, &plan, &error), CLV_NOT_FOUND);
  assert_string_equal(error.message, "the model has no value named 'nothing'");
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* Graphs without nodes: one output is an input, another is a constant. */
static void empty_graphs(void **state) {
  (void)state;
  static const char *const lists[] = {"cpu", "npu,cpu", "npu"};
  for (size_t l = 0; l < 3; ++l) {
    machine m;
    machine_open(&m, lists[l], 1, all);
    test_graph g;
    test_graph_begin(&g, &m.counting.allocator, 1);
    test_graph_input(&g, "x", CLV_F32, 1, DIMS(3));
    constant(&g, "k", 5, 1, false, 3);
    clv_graph *graph = test_graph_end(&g, "x,k");
    clv_plan *plan = machine_plan(&m, graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    assert_int_equal(plan->step_count, 0);
    char path[] = "/tmp/cleave-plan-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    clv_error error = {0};
    clv_plan *again;
    assert_ok(clv_plan_write(plan, path, &error), error);
    assert_ok(clv_plan_read(graph, m.devices, path, NULL, &again, &error), error);
    unlink(path);
    float x[3] = {1, 2, 3};
    clv_tensor input = f32(1, DIMS(3), x);
    const clv_plan *plans[] = {plan, again};
    for (int i = 0; i < 2; ++i) {
      clv_session *session = machine_session(plans[i]);
      machine_check_run(session, plans[i], &input, "a graph without nodes");
      clv_session_destroy(session);
    }
    clv_plan_destroy(again);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    machine_close(&m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(odd_outputs_on_every_device),
      cmocka_unit_test(memory_is_whose_it_says),
      cmocka_unit_test(an_output_over_an_input),
      cmocka_unit_test(the_caller_allocates),
      cmocka_unit_test(outputs_read_inside_from_the_callers_memory),
      cmocka_unit_test(kept_values),
      cmocka_unit_test(empty_graphs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
