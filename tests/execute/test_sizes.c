/* Sizes that change from run to run: symbolic dimensions, outputs whose size depends on data, tensors without elements, and
 * bodies with captures; on one device and on two. */
#include "../analysis/bodies.h"
#include "machine.h"

static const char *const all[] = {"all"};

static void symbolic_input(test_graph *g, const char *name, const char *symbol, int64_t second) {
  clv_error error = {0};
  uint32_t index;
  assert_ok(clv__builder_symbol(g->builder, symbol, &index, &error), error);
  test_graph_input(g, name, CLV_F32, 2, DIMS(CLV_DIM_SYMBOL(index), second));
}

static void fill(float *data, size_t count, uint64_t seed) {
  for (size_t i = 0; i < count; ++i) data[i] = test_random_float(&seed);
}

/* y = relu(a @ w + b) and z = y + a, where a and b are [N, 8]; d is [M, 8] and independent of them. */
static clv_graph *symbolic(const clv_allocator *allocator) {
  test_graph g;
  test_graph_begin(&g, allocator, 5);
  symbolic_input(&g, "a", "N", 8);
  symbolic_input(&g, "b", "N", 8);
  symbolic_input(&g, "d", "M", 8);
  test_graph_weight(&g, "w", 2, DIMS(8, 8));
  test_graph_node(&g, "mm", "MatMul", "a,w", "mm");
  test_graph_node(&g, "add", "Add", "mm,b", "s");
  test_graph_node(&g, "relu", "Relu", "s", "y");
  test_graph_node(&g, "z", "Add", "y,a", "z");
  test_graph_node_ints(&g, "cat", "Concat", "z,d", "c", "axis", false, 1, DIMS(0));
  test_graph_node(&g, "neg", "Neg", "c", "n");
  return test_graph_end(&g, "y,n");
}

static void run_symbolic(const char *list, const char *pins) {
  static const int64_t sizes[][2] = {{3, 2}, {3, 2}, {7, 1}, {1, 9}, {0, 4}, {3, 0}, {16, 16}, {3, 2}, {0, 0}};
  machine m;
  machine_open(&m, list, 1, all);
  clv_graph *graph = symbolic(&m.counting.allocator);
  clv_plan *plan = machine_plan(&m, graph, pins, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *session = machine_session(plan);
  float a[128], b[128], d[128];
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    fill(a, 128, i + 1), fill(b, 128, i + 50), fill(d, 128, i + 99);
    int64_t n = sizes[i][0], k = sizes[i][1];
    clv_tensor inputs[3] = {f32(2, DIMS(n, 8), n > 0 ? a : NULL), f32(2, DIMS(n, 8), b), f32(2, DIMS(k, 8), d)};
    char what[64];
    snprintf(what, sizeof what, "%s %s: N %d, M %d", list, pins, (int)n, (int)k);
    machine_check_run(session, plan, inputs, what);
    clv_error error = {0};
    clv_tensor outputs[2] = {{0}};
    clv_tensor wrong[3] = {inputs[0], f32(2, DIMS(n + 1, 8), b), inputs[2]}; /* two different values for N */
    assert_int_equal(clv_session_run(session, wrong, 3, outputs, 2, &error), CLV_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "dimension 'N'"));
    wrong[1] = f32(1, DIMS(8), b);
    assert_int_equal(clv_session_run(session, wrong, 3, outputs, 2, &error), CLV_INVALID_ARGUMENT);
    wrong[1] = f32(2, DIMS(n, 7), b);
    assert_int_equal(clv_session_run(session, wrong, 3, outputs, 2, &error), CLV_INVALID_ARGUMENT);
  }
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

static void symbolic_dimensions(void **state) {
  (void)state;
  run_symbolic("cpu", NULL);
  run_symbolic("npu", NULL);
  run_symbolic("npu,cpu", "mm=npu,add=cpu,relu=npu,z=cpu,cat=npu,neg=cpu");
  run_symbolic("npu,cpu", "mm=cpu,add=npu,relu=cpu,z=npu,cat=cpu,neg=npu");
}

/* The memory of a session must not grow with the number of its runs if they repeat the same 16 shapes. */
static void many_shapes_leave_nothing(void **state) {
  (void)state;
  machine m;
  machine_open(&m, "npu,cpu", 1, all);
  clv_graph *graph = symbolic(&m.counting.allocator);
  clv_plan *plan = machine_plan(&m, graph, "mm=cpu,add=npu,cat=cpu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *session = machine_session(plan);
  float a[128];
  fill(a, 128, 1);
  size_t live = 0;
  for (int64_t i = 0; i < 200; ++i) {
    clv_error error = {0};
    int64_t n = 1 + i % 16;
    clv_tensor inputs[3] = {f32(2, DIMS(n, 8), a), f32(2, DIMS(n, 8), a), f32(2, DIMS(1, 8), a)}, outputs[2] = {{0}};
    assert_ok(clv_session_run(session, inputs, 3, outputs, 2, &error), error);
    if (i == 31) live = m.counting.live;
    if (i > 31 && i % 16 == 15) assert_int_equal(m.counting.live, live);
  }
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* ---- Sizes that depend on data ---- */

/* Gathers the elements of x above zero, and computes from them t = 2 g and p = -t * g. */
static clv_graph *by_data(const clv_allocator *allocator) {
  test_graph g;
  test_graph_begin(&g, allocator, 5);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(40));
  test_graph_ints(&g, "axes", 1, DIMS(0));
  test_graph_node(&g, "relu", "Relu", "x", "r");
  test_graph_node(&g, "where", "NonZero", "r", "nz");
  test_graph_node(&g, "flat", "Squeeze", "nz,axes", "i");
  test_graph_node(&g, "gather", "Gather", "x,i", "g");
  test_graph_node(&g, "double", "Add", "g,g", "t");
  test_graph_node(&g, "neg", "Neg", "t", "n");
  test_graph_node(&g, "all", "Mul", "n,g", "p");
  return test_graph_end(&g, "p,i,t");
}

static void run_by_data(const char *list, const char *pins) {
  static const int positive[] = {3, 40, 0, 12, 12, 1, 40, 0, 39};
  machine m;
  machine_open(&m, list, 1, all);
  clv_graph *graph = by_data(&m.counting.allocator);
  clv_plan *plan = machine_plan(&m, graph, pins, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *session = machine_session(plan);
  for (size_t run = 0; run < sizeof positive / sizeof *positive; ++run) {
    float x[40], room[40];
    for (int i = 0; i < 40; ++i) x[i] = (float)(i + 1) * ((i * 7) % 40 < positive[run] ? 1 : -1);
    clv_tensor input = f32(1, DIMS(40), x);
    char what[64];
    snprintf(what, sizeof what, "%s %s: %d positive", list, pins, positive[run]);
    machine_check_run(session, plan, &input, what);
    clv_error error = {0};
    clv_tensor outputs[3] = {{0}}; /* outputs[2] gets memory: first of the right size, then of a wrong one */
    outputs[2] = f32(1, DIMS(positive[run]), room);
    assert_ok(clv_session_run(session, &input, 1, outputs, 3, &error), error);
    for (int i = 0; i < positive[run]; ++i) assert_true(room[i] >= 2);
    if (positive[run] == 40) continue;
    memset(outputs, 0, sizeof outputs);
    outputs[2] = f32(1, DIMS(positive[run] + 1), room);
    assert_int_equal(clv_session_run(session, &input, 1, outputs, 3, &error), CLV_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "'t' was computed as"));
    assert_null(outputs[0].data);
  }
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

static void sizes_by_data(void **state) {
  (void)state;
  run_by_data("cpu", NULL);
  run_by_data("npu", NULL);
  run_by_data("npu,cpu", "relu=npu,where=npu,flat=cpu,gather=npu,double=cpu,neg=npu,all=cpu");
  run_by_data("npu,cpu", "relu=cpu,where=cpu,flat=npu,gather=cpu,double=npu,neg=cpu,all=npu");
  run_by_data("npu,cpu", "relu=cpu,where=npu,flat=npu,gather=cpu,double=cpu,neg=npu,all=npu");
}

/* ---- Bodies ---- */

static void scalar(test_graph *g, const char *name, clv_dtype dtype, int64_t value) {
  clv_tensor type = clv__tensor_make(dtype, 0, NULL, clv__arena_allocate_zero(clv__builder_arena(g->builder), 1, 8));
  if (dtype == CLV_BOOL)
    *(uint8_t *)type.data = (uint8_t)value;
  else
    *(int64_t *)type.data = value;
  clv__builder_type(g->builder, test_graph_value(g, name), &type);
}

/* p = x + x; q = c ? p * w : p (captures p and w); l = q + 3 p, by a Loop that captures p; y = l - p. */
static clv_graph *bodies(const clv_allocator *allocator) {
  test_graph g, then_body, else_body, loop;
  test_graph_begin(&g, allocator, 3);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(6));
  test_graph_input(&g, "c", CLV_BOOL, 0, NULL);
  test_graph_weight(&g, "w", 1, DIMS(6));
  test_graph_node(&g, "p", "Add", "x,x", "p");
  test_graph_begin(&then_body, allocator, 1);
  test_graph_node(&then_body, "m", "Mul", "p,w", "m");
  const clv_graph_view *then_view = body_end(&then_body, &g, "m");
  test_graph_begin(&else_body, allocator, 1);
  test_graph_node(&else_body, "e", "Identity", "p", "e");
  body_node(&g, "If", "c", "q", "then_branch", then_view, "else_branch", body_end(&else_body, &g, "e"), 0);
  scalar(&g, "times", CLV_I64, 3);
  scalar(&g, "on", CLV_BOOL, 1);
  test_graph_begin(&loop, allocator, 1);
  body_input(&loop, "i");
  body_input(&loop, "go");
  body_input(&loop, "v");
  test_graph_node(&loop, "", "Identity", "go", "go2");
  test_graph_node(&loop, "", "Add", "v,p", "v2");
  body_node(&g, "Loop", "times,on,q", "l", "body", body_end(&loop, &g, "go2,v2"), NULL, NULL, 0);
  test_graph_node(&g, "y", "Sub", "l,p", "y");
  return test_graph_end(&g, "y,q");
}

static void bodies_with_captures(void **state) {
  (void)state;
  static const char *const pins[] = {"p=cpu,If=cpu,Loop=cpu,y=cpu", "p=npu,If=npu,Loop=npu,y=npu", "p=npu,If=cpu,Loop=npu,y=cpu",
                                     "p=cpu,If=npu,Loop=cpu,y=npu", "p=npu,If=cpu,Loop=cpu,y=npu", "p=cpu,If=npu,Loop=npu,y=cpu"};
  machine m;
  machine_open(&m, "npu,cpu", 1, all);
  clv_graph *graph = bodies(&m.counting.allocator);
  for (size_t i = 0; i < sizeof pins / sizeof *pins; ++i) {
    clv_plan *plan = machine_plan(&m, graph, pins[i], (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    clv_session *session = machine_session(plan);
    for (int run = 0; run < 4; ++run) {
      float x[6];
      bool condition = run % 2 == 0;
      fill(x, 6, (uint64_t)run + 1);
      clv_tensor inputs[2] = {f32(1, DIMS(6), x), clv__tensor_make(CLV_BOOL, 0, NULL, &condition)};
      machine_check_run(session, plan, inputs, pins[i]);
    }
    clv_session_destroy(session);
    clv_plan_destroy(plan);
  }
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* ---- Tensors without elements ---- */

static void nothing_crosses_well(void **state) {
  (void)state;
  static const char *const pins[] = {"a=npu,b=cpu,c=npu,d=cpu", "a=cpu,b=npu,c=cpu,d=npu", "a=cpu,b=cpu,c=cpu,d=cpu"};
  machine m;
  machine_open(&m, "npu,cpu", 1, all);
  test_graph g;
  test_graph_begin(&g, &m.counting.allocator, 1);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(0, 4));
  test_graph_input(&g, "y", CLV_F32, 2, DIMS(2, 4));
  test_graph_node(&g, "a", "Neg", "x", "a");
  test_graph_node(&g, "b", "Relu", "a", "b");
  test_graph_node_ints(&g, "c", "Concat", "b,y", "c", "axis", false, 1, DIMS(0));
  test_graph_node(&g, "d", "Neg", "c", "d");
  clv_graph *graph = test_graph_end(&g, "d,b,x");
  float y[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (size_t i = 0; i < sizeof pins / sizeof *pins; ++i) {
    clv_plan *plan = machine_plan(&m, graph, pins[i], (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    clv_session *session = machine_session(plan);
    clv_tensor inputs[2] = {f32(2, DIMS(0, 4), NULL), f32(2, DIMS(2, 4), y)};
    machine_check_run(session, plan, inputs, pins[i]);
    inputs[0].data = y;
    machine_check_run(session, plan, inputs, pins[i]);
    clv_session_destroy(session);
    clv_plan_destroy(plan);
  }
  clv_graph_destroy(graph);
  machine_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(symbolic_dimensions),  cmocka_unit_test(many_shapes_leave_nothing), cmocka_unit_test(sizes_by_data),
      cmocka_unit_test(bodies_with_captures), cmocka_unit_test(nothing_crosses_well),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
