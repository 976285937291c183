/* Tests steps that only certain shapes lead to: one row times a matrix, functions that Winograd's algorithm cannot fuse, and
 * InstanceNormalization, Resize, ConvTranspose and elementwise kernels in oneDNN's layouts. Each is compared with the reference
 * evaluator. */
#include "backends/cpu/run/executable.h"
#include "cpu_host.h"

static void check(test_graph *t, const char *outputs, int32_t rank, const int64_t *dims, const char *what) {
  clv_graph *graph = test_graph_end(t, outputs);
  uint64_t seed = 11;
  clv_tensor x = random_tensor(graph->allocator, &seed, rank, dims);
  assert_int_equal(compare_with_reference(graph, &x, NULL, NULL, what), 0);
  compare_with_reference(graph, &x, "fuse", "0", what);
  compare_with_reference(graph, &x, "onednn", "0", what);
  clv__release(graph->allocator, x.data);
  clv__graph_destroy(graph);
}

static void weight2(test_graph *t, const char *name, int64_t a, int64_t b) {
  const int64_t dims[2] = {a, b};
  test_graph_weight(t, name, 2, dims);
}

/* Products of one row and a matrix: with columns that do not fill the last panel, with a depth that does not fill the last
 * block, and with different nodes after them. */
static void test_row(void **state) {
  (void)state;
  static const int64_t columns[] = {64, 130, 1000}, depths[] = {3, 70, 512};
  static const char *const functions[] = {"Relu", "Tanh", "Sigmoid"};
  for (int i = 0; i < 9; ++i) {
    test_graph t;
    const int64_t n = columns[i % 3], k = depths[i / 3], dims[2] = {1, k};
    test_graph_begin(&t, clv__allocator_default(), 5 + (uint64_t)i);
    test_graph_input(&t, "x", CLV_F32, 2, dims);
    weight2(&t, "w", k, n);
    weight2(&t, "v", n, n);
    test_graph_weight(&t, "b", 1, &n);
    test_graph_node(&t, "product", "MatMul", "x,w", "p");
    test_graph_node(&t, "bias", "Add", "p,b", "q");
    test_graph_node(&t, "function", functions[i % 3], "q", "r");
    test_graph_node(&t, "again", "MatMul", "r,v", "s");
    test_graph_node(&t, "sum", "Add", "s,r", "u");
    test_graph_node(&t, "function2", functions[(i + 1) % 3], "u", "y");
    check(&t, "y,r", 2, dims, "a row");
  }
}

static void test_gemm_row(void **state) {
  (void)state;
  test_graph t;
  const int64_t dims[2] = {1, 45}, yes = 1, count = 100;
  test_graph_begin(&t, clv__allocator_default(), 5);
  test_graph_input(&t, "x", CLV_F32, 2, dims);
  weight2(&t, "w", count, 45);
  test_graph_weight(&t, "b", 1, &count);
  test_graph_node_ints(&t, "gemm", "Gemm", "x,w,b", "y", "transB", false, 1, &yes);
  check(&t, "y", 2, dims, "a row by Gemm");
}

/* The shapes of inputs. On an image of the shape `large`, Winograd's algorithm is faster than the direct one. */
static const int64_t image[4] = {1, 32, 14, 18}, large[4] = {1, 32, 24, 24};

static void test_function_after_winograd(void **state) {
  (void)state;
  static const char *const functions[] = {"LeakyRelu", "Relu", "Tanh", "HardSwish"};
  const int64_t pads[4] = {1, 1, 1, 1}, weights[4] = {48, 32, 3, 3};
  for (int i = 0; i < 4; ++i) {
    test_graph t;
    test_graph_begin(&t, clv__allocator_default(), 5);
    test_graph_input(&t, "x", CLV_F32, 4, large);
    test_graph_weight(&t, "w", 4, weights);
    test_graph_node_ints(&t, "conv", "Conv", "x,w", "a", "pads", true, 4, pads);
    test_graph_node(&t, "function", functions[i], "a", "y");
    check(&t, "y", 4, large, functions[i]);
  }
}

/* Relu before a sum and LeakyRelu after it, or the reverse. oneDNN has one algorithm with a parameter for both, so each must
 * keep its own parameter when both are fused. */
static void test_one_function_twice(void **state) {
  (void)state;
  const int64_t pads[4] = {1, 1, 1, 1}, weights[4] = {32, 32, 3, 3};
  for (int i = 0; i < 2; ++i) {
    test_graph t;
    test_graph_begin(&t, clv__allocator_default(), 5);
    test_graph_input(&t, "x", CLV_F32, 4, image);
    test_graph_weight(&t, "w", 4, weights);
    test_graph_node_ints(&t, "conv", "Conv", "x,w", "a", "pads", true, 4, pads);
    test_graph_node(&t, "first", i == 0 ? "Relu" : "LeakyRelu", "a", "b");
    test_graph_node(&t, "sum", "Add", "b,x", "c");
    test_graph_node(&t, "second", i == 0 ? "LeakyRelu" : "Relu", "c", "y");
    check(&t, "y", 4, image, "one function twice");
  }
}

static void test_instance_norm(void **state) {
  (void)state;
  const int64_t weights[4] = {40, 32, 3, 3}, channels = 40;
  for (int relu = 0; relu < 2; ++relu) {
    test_graph t;
    test_graph_begin(&t, clv__allocator_default(), 5);
    test_graph_input(&t, "x", CLV_F32, 4, image);
    test_graph_weight(&t, "w", 4, weights);
    test_graph_weight(&t, "s", 1, &channels);
    test_graph_weight(&t, "b", 1, &channels);
    test_graph_node(&t, "conv", "Conv", "x,w", "a");
    test_graph_node(&t, "norm", "InstanceNormalization", "a,s,b", "n");
    test_graph_node(&t, "function", relu ? "Relu" : "Neg", "n", "y");
    check(&t, "y", 4, image, "one image");
  }
}

/* ConvTranspose with and without padding and bias. */
static void test_transposed(void **state) {
  (void)state;
  static const int64_t pads[][4] = {{0, 0, 0, 0}, {1, 1, 1, 1}, {0, 1, 1, 0}};
  const int64_t first[4] = {32, 32, 3, 3}, weights[4] = {32, 24, 3, 3}, channels = 24;
  for (int i = 0; i < 3; ++i) {
    test_graph t;
    test_graph_begin(&t, clv__allocator_default(), 5);
    test_graph_input(&t, "x", CLV_F32, 4, image);
    test_graph_weight(&t, "f", 4, first);
    test_graph_weight(&t, "w", 4, weights);
    test_graph_weight(&t, "b", 1, &channels);
    test_graph_node(&t, "conv", "Conv", "x,f", "a");
    test_graph_node_ints(&t, "transposed", "ConvTranspose", i == 2 ? "a,w" : "a,w,b", "y", "pads", true, 4, pads[i]);
    check(&t, "y", 4, image, "transposed");
  }
}

/* Nearest Resize to given sizes: by whole factors, by other factors, and to the same size. */
static void test_resize(void **state) {
  (void)state;
  static const int64_t sizes[][4] = {{1, 32, 24, 48}, {1, 32, 17, 33}, {1, 32, 12, 16}};
  const int64_t weights[4] = {32, 32, 3, 3};
  for (int i = 0; i < 3; ++i) {
    test_graph t;
    test_graph_begin(&t, clv__allocator_default(), 5);
    test_graph_input(&t, "x", CLV_F32, 4, image);
    test_graph_weight(&t, "f", 4, weights);
    test_graph_ints(&t, "sizes", 4, sizes[i]);
    test_graph_node(&t, "conv", "Conv", "x,f", "a");
    test_graph_node(&t, "resize", "Resize", "a,,,sizes", "y");
    check(&t, "y", 4, image, "resize");
  }
}

/* Fails unless `made` equals `wanted` within 1e-4 and has NaN in the same places. At least one element must be NaN, so that NaN
 * is tested, but at most half, so that numbers are tested too. */
static void assert_same_nan(const clv_tensor *made, const clv_tensor *wanted, const char *what) {
  size_t count, nans = 0;
  assert_true(clv__tensor_same_type(made, wanted) && clv__tensor_count(wanted, &count));
  for (size_t i = 0; i < count; ++i) {
    const float a = ((const float *)made->data)[i], b = ((const float *)wanted->data)[i];
    nans += isnan(b) ? 1 : 0;
    if (isnan(a) != isnan(b) || fabsf(a - b) > 1e-4f)
      fail_msg("%s: element %zu is %g, expected %g", what, i, (double)a, (double)b);
  }
  assert_in_range(nans, 1, count / 2);
}

/* Whether the step of operator `op` runs in memory order, that is, over a tensor of rank 1. */
static bool is_flat(const clv__cpu_variant *variant, const char *op) {
  for (size_t i = 0; i < variant->step_count; ++i) {
    const clv__cpu_step *step = &variant->steps[i];
    if (strcmp(step->what, op) == 0) return step->operands[step->input_count].type.rank == 1;
  }
  return false;
}

/* Elementwise kernels between convolutions run in the convolutions' layout if they map zeros to zeros, because the padding
 * channels must stay 0 (40 channels do not fill the last block). A NaN must stay a NaN. The function is not fused into the
 * convolution, because its input is read twice. */
static void test_kernels_in_layouts(void **state) {
  (void)state;
  static const struct {
    const char *op, *inputs;
    bool in_layout;
  } cases[] = {{"Relu", "a", true},       {"Clip", "a,low,high", true}, {"Clip", "a,high,top", false}, {"Erf", "a", true},
               {"Exp", "a", false},       {"Min", "a,x2", true},        {"Max", "x2,a", true},         {"Neg", "a", true},
               {"Clip", "a,,high", true}, {"Sub", "low,a", false},      {"Abs", "a", false},           {"Sign", "a", true},
               {"Softplus", "a", false}};
  static const float bounds[] = {-0.25f, 0.5f, 0.75f};
  static const char *const names[] = {"low", "high", "top"};
  const int64_t first[4] = {40, 32, 3, 3}, second[4] = {16, 40, 1, 1}, pads[4] = {1, 1, 1, 1};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    test_graph t;
    clv_error error = {0};
    test_graph_begin(&t, clv__allocator_default(), 5);
    assert_ok(clv__builder_import(t.builder, "", 17, &error), error);
    test_graph_input(&t, "x", CLV_F32, 4, large);
    test_graph_weight(&t, "w", 4, first);
    test_graph_weight(&t, "w2", 4, first);
    test_graph_weight(&t, "v", 4, second);
    for (int k = 0; k < 3; ++k) {
      const clv_tensor bound = clv__tensor_make(CLV_F32, 0, NULL, (void *)(uintptr_t)&bounds[k]);
      test_graph_constant(&t, names[k], &bound);
    }
    test_graph_node_ints(&t, "conv", "Conv", "x,w", "a", "pads", true, 4, pads);
    test_graph_node_ints(&t, "other", "Conv", "x,w2", "x2", "pads", true, 4, pads);
    test_graph_node(&t, "function", cases[i].op, cases[i].inputs, "f");
    test_graph_node(&t, "reader", "Conv", "a,v", "b");
    test_graph_node(&t, "reader2", "Conv", "f,v", "c");
    clv_graph *graph = test_graph_end(&t, "f,b,c");
    uint64_t seed = 11;
    clv_tensor x = random_tensor(graph->allocator, &seed, 4, large);
    compare_with_reference(graph, &x, NULL, NULL, cases[i].op);
    for (size_t at = 7; at < 32 * 24 * 24; at += 4000) ((float *)x.data)[at] = NAN;
    cpu_host cpu;
    cpu_program program;
    clv_tensor made[3] = {{0}}, wanted[3] = {{0}};
    assert_ok(cpu_host_open(&cpu, graph->allocator, NULL, NULL, &error), error);
    assert_ok(cpu_program_open(&program, &cpu, graph, &x, &error), error);
    for (int k = 0; k < 3; ++k) made[k].rank = CLV_RANK_UNKNOWN;
    assert_ok(cpu_program_run(&program, &x, made, &error), error);
    assert_ok(clv__graph_evaluate(graph, &x, NULL, wanted, NULL, NULL, graph->allocator, &error), error);
    /* Sign is not compared, because rounding can change the sign of tiny numbers. */
    if (strcmp(cases[i].op, "Sign") != 0) assert_same_nan(&made[0], &wanted[0], cases[i].op);
    for (int k = 0; k < 3; ++k) {
      clv__release(graph->allocator, made[k].data);
      clv__release(graph->allocator, wanted[k].data);
    }
    if (cases[i].in_layout && !is_flat(program.executable->variant, cases[i].op))
      fail_msg("%s does not process its elements in memory order", cases[i].op);
    cpu_program_close(&program);
    cpu_host_close(&cpu);
    clv__release(graph->allocator, x.data);
    clv__graph_destroy(graph);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_row),
      cmocka_unit_test(test_gemm_row),
      cmocka_unit_test(test_function_after_winograd),
      cmocka_unit_test(test_one_function_twice),
      cmocka_unit_test(test_instance_norm),
      cmocka_unit_test(test_transposed),
      cmocka_unit_test(test_resize),
      cmocka_unit_test(test_kernels_in_layouts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
