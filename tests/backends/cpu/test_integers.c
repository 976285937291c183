/* Tests groups of nodes between DequantizeLinear and QuantizeLinear that run on integers. The results may differ by at most two
 * steps of the last quantisation grid from those of the reference evaluator, which computes in real numbers. Also tests shapes
 * other than those of compile(), and failing allocations. */
#include "cpu_host.h"

static const int64_t image[4] = {2, 12, 9, 10};

static void scalar(test_graph *t, const char *name, float value) {
  const clv_tensor tensor = clv__tensor_make(CLV_F32, 0, NULL, &value);
  test_graph_constant(t, name, &tensor);
}

static void zero(test_graph *t, const char *name, clv_dtype dtype, int value) {
  const uint8_t bits = (uint8_t)value;
  const clv_tensor tensor = clv__tensor_make(dtype, 0, NULL, (void *)&bits);
  test_graph_constant(t, name, &tensor);
}

/* Adds i8 weights `name` with one scale per channel, and a DequantizeLinear that makes the real weights "<name>d". */
static void weights(test_graph *t, const char *name, int32_t rank, const int64_t *dims) {
  char scale[32], real[32], inputs[80];
  float scales[64];
  const size_t count = (size_t)clv__dims_product(
      &(clv_tensor){.rank = rank, .dims = {dims[0], dims[1], rank > 2 ? dims[2] : 1, rank > 3 ? dims[3] : 1}}, 0, rank);
  int8_t *data = malloc(count);
  assert_true(data != NULL && dims[0] <= 64);
  for (size_t i = 0; i < count; ++i) data[i] = (int8_t)(test_random(&t->seed) % 255 - 127);
  for (int64_t c = 0; c < dims[0]; ++c) scales[c] = 0.004f + 0.0001f * (float)c;
  clv_tensor tensor = clv__tensor_make(CLV_I8, rank, dims, data);
  test_graph_constant(t, name, &tensor);
  snprintf(scale, sizeof scale, "%ss", name);
  snprintf(real, sizeof real, "%sd", name);
  snprintf(inputs, sizeof inputs, "%s,%s", name, scale);
  tensor = clv__tensor_make(CLV_F32, 1, dims, scales);
  test_graph_constant(t, scale, &tensor);
  const int64_t axis = 0;
  test_graph_node_ints(t, real, "DequantizeLinear", inputs, real, "axis", false, 1, &axis);
  free(data);
}

/* Quantises `from` with the scale "s<grid>" and the zero point "z<grid>", and dequantises the integers to `to`. */
static void on_grid(test_graph *t, const char *from, const char *grid, const char *to) {
  char inputs[96], integers[48], name[48];
  snprintf(inputs, sizeof inputs, "%s,s%s,z%s", from, grid, grid);
  snprintf(integers, sizeof integers, "%sq", to);
  snprintf(name, sizeof name, "%s/q", to);
  test_graph_node(t, name, "QuantizeLinear", inputs, integers);
  snprintf(inputs, sizeof inputs, "%s,s%s,z%s", integers, grid, grid);
  test_graph_node(t, to, "DequantizeLinear", inputs, to);
}

/* Two convolutions, the second followed by a sum; a MaxPool; a matrix product. `dims` may have unknown extents. */
static clv_graph *network(const clv_allocator *allocator, const int64_t *dims, int second_zero) {
  test_graph t;
  const int64_t pads[4] = {1, 1, 1, 1}, kernel[2] = {2, 2}, wide[4] = {24, 12, 3, 3}, narrow[4] = {12, 24, 1, 1},
                matrix[2] = {30, 12};
  const int64_t yes = 1;
  test_graph_begin(&t, allocator, 7);
  test_graph_input(&t, "x", CLV_F32, 4, dims);
  scalar(&t, "sa", 0.03f);
  zero(&t, "za", CLV_I8, 0);
  scalar(&t, "sb", 0.05f);
  zero(&t, "zb", CLV_U8, second_zero);
  weights(&t, "v", 4, wide);
  weights(&t, "w", 4, narrow);
  weights(&t, "m", 2, matrix);
  on_grid(&t, "x", "a", "a");
  test_graph_node_ints(&t, "first", "Conv", "a,vd", "c", "pads", true, 4, pads);
  test_graph_node(&t, "relu", "Relu", "c", "r");
  on_grid(&t, "r", "b", "b");
  test_graph_node(&t, "second", "Conv", "b,wd", "d");
  on_grid(&t, "d", "b", "e");
  test_graph_node(&t, "sum", "Add", "e,a", "f");
  on_grid(&t, "f", "a", "g");
  test_graph_node_ints(&t, "pool", "MaxPool", "g", "p", "kernel_shape", true, 2, kernel);
  test_graph_node(&t, "mean", "GlobalAveragePool", "p", "h");
  test_graph_node(&t, "flat", "Flatten", "h", "i");
  on_grid(&t, "i", "a", "j");
  test_graph_node_ints(&t, "product", "Gemm", "j,md", "k", "transB", false, 1, &yes);
  on_grid(&t, "k", "b", "y");
  return test_graph_end(&t, "y,g");
}

/* Fails if more than the fraction `share` of the elements are off by more than half a step of `grid`, or if any element is off
 * by more than two steps. Means of integers often lie in the middle between two steps. If one of them is rounded the other way,
 * the values computed from it change, too. */
static void assert_steps(const clv_tensor *made, const clv_tensor *wanted, float grid, float share, const char *what) {
  size_t count, off = 0;
  assert_true(clv__tensor_same_type(made, wanted) && clv__tensor_count(wanted, &count));
  for (size_t i = 0; i < count; ++i) {
    const float steps = fabsf(((const float *)made->data)[i] - ((const float *)wanted->data)[i]) / grid;
    if (!(steps < 2.01f))
      fail_msg("%s: element %zu differs by %.2f quantisation steps, at most 2 are allowed", what, i, (double)steps);
    off += steps > 0.5f;
  }
  if ((float)off > share * (float)count)
    fail_msg("%s: %zu of %zu elements differ by more than half a quantisation step, more than the allowed share %g", what, off,
             count, (double)share);
}

static void run_and_compare(cpu_program *program, clv_graph *graph, const clv_tensor *x, const char *what) {
  const clv_allocator *allocator = clv__allocator_default();
  clv_error error = {0};
  clv_tensor made[2] = {{.rank = CLV_RANK_UNKNOWN}, {.rank = CLV_RANK_UNKNOWN}}, wanted[2] = {{0}};
  static const float grids[2] = {0.05f, 0.03f}, shares[2] = {0.4f, 0.02f};
  assert_ok(cpu_program_run(program, x, made, &error), error);
  assert_ok(clv__graph_evaluate(graph, x, NULL, wanted, NULL, NULL, graph->allocator, &error), error);
  for (int i = 0; i < 2; ++i) {
    assert_steps(&made[i], &wanted[i], grids[i], shares[i], what);
    clv__release(allocator, made[i].data);
    clv__release(graph->allocator, wanted[i].data);
  }
}

static void test_groups(void **state) {
  (void)state;
  static const char *const options[] = {NULL, "fuse", "onednn"};
  const clv_allocator *allocator = clv__allocator_default();
  for (int i = 0; i < 6; ++i) {
    clv_error error = {0};
    uint64_t seed = 3 + (uint64_t)i;
    cpu_host cpu;
    cpu_program program;
    clv_graph *graph = network(allocator, image, i % 2 == 0 ? 0 : 113);
    clv_tensor x = random_tensor(allocator, &seed, 4, image);
    assert_ok(cpu_host_open(&cpu, allocator, options[i / 2], "0", &error), error);
    assert_ok(cpu_program_open(&program, &cpu, graph, &x, &error), error);
    run_and_compare(&program, graph, &x, options[i / 2] != NULL ? options[i / 2] : "groups");
    assert_int_equal(cpu.retreats, 0);
    cpu_program_close(&program);
    cpu_host_close(&cpu);
    clv__release(allocator, x.data);
    clv__graph_destroy(graph);
  }
}

/* Shapes that are unknown at compile(): integer weights are kept, and real weights are available to steps that need them. */
static void test_other_shapes(void **state) {
  (void)state;
  const clv_allocator *allocator = clv__allocator_default();
  const int64_t open[4] = {CLV_DIM_UNKNOWN, 12, CLV_DIM_UNKNOWN, CLV_DIM_UNKNOWN}, dims[2][4] = {{1, 12, 7, 8}, {3, 12, 5, 11}};
  clv_error error = {0};
  uint64_t seed = 8;
  cpu_host cpu;
  cpu_program program;
  clv_graph *graph = network(allocator, open, 0);
  assert_ok(cpu_host_open(&cpu, allocator, NULL, NULL, &error), error);
  for (int i = 0; i < 2; ++i) {
    clv_tensor x = random_tensor(allocator, &seed, 4, dims[i]);
    if (i == 0) assert_ok(cpu_program_open(&program, &cpu, graph, &x, &error), error);
    if (i > 0) assert_ok(cpu.backend->instance_resize(cpu.device, program.instance, &x, 1, &error), error);
    run_and_compare(&program, graph, &x, "other shapes");
    clv__release(allocator, x.data);
  }
  assert_int_equal(cpu.retreats, 0);
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  clv__graph_destroy(graph);
}

static bool is_folded(const clv_graph *graph, const clv__shapes *shapes, const char *name) {
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    if (strcmp(graph->nodes[n].name, name) == 0) return shapes->node_folded[n];
  }
  fail_msg("there is no node '%s'", name);
  return false;
}

/* With CLV__FOLD_BUT_QUANTISED, dequantised weights that only products (convolutions and matrix products) read are not folded,
 * so that the products can run on the integers. All other dequantised weights are folded. */
static void test_folding(void **state) {
  (void)state;
  const clv_allocator *allocator = clv__allocator_default();
  const int64_t dims[4] = {8, 8, 1, 1}, both[2] = {8, 8}, turn[2] = {1, 0};
  clv_error error = {0};
  test_graph t;
  test_graph_begin(&t, allocator, 7);
  test_graph_input(&t, "x", CLV_F32, 4, dims);
  test_graph_input(&t, "y", CLV_F32, 2, both);
  weights(&t, "v", 4, dims);
  weights(&t, "w", 2, both);
  weights(&t, "u", 2, both);
  test_graph_node(&t, "conv", "Conv", "x,vd", "a");
  test_graph_node_ints(&t, "turn", "Transpose", "wd", "wt", "perm", true, 2, turn);
  test_graph_node(&t, "product", "MatMul", "y,wt", "b");
  test_graph_node(&t, "other", "MatMul", "y,ud", "c");
  test_graph_node(&t, "sum", "Add", "c,ud", "d");
  clv_graph *graph = test_graph_end(&t, "a,b,d");
  for (int i = 0; i < 2; ++i) {
    clv__shapes *shapes;
    assert_ok(clv__shapes_infer(graph, NULL, 0, i == 0 ? CLV__FOLD_ALL : CLV__FOLD_BUT_QUANTISED, &shapes, &error), error);
    assert_int_equal(is_folded(graph, shapes, "vd"), i == 0);
    assert_true(is_folded(graph, shapes, "wd") && is_folded(graph, shapes, "turn") && is_folded(graph, shapes, "ud"));
    clv__shapes_destroy(shapes);
  }
  clv__graph_destroy(graph);
}

static void test_failing_memory(void **state) {
  (void)state;
  uint64_t seed = 12;
  test_allocator failing;
  test_allocator_init(&failing);
  clv_graph *graph = network(&failing.allocator, image, 113);
  clv_tensor x = random_tensor(clv__allocator_default(), &seed, 4, image);
  check_failing_memory(&failing, graph, &x);
  clv__release(clv__allocator_default(), x.data);
  clv__graph_destroy(graph);
  assert_int_equal(failing.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_groups),
      cmocka_unit_test(test_other_shapes),
      cmocka_unit_test(test_folding),
      cmocka_unit_test(test_failing_memory),
  };
  cpu_host_fold = CLV__FOLD_BUT_QUANTISED;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
