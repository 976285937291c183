/* Steps that only some shapes reach: one row times a matrix, functions that Winograd's algorithm cannot take, GELU out of Erf,
 * InstanceNormalization, Resize and ConvTranspose in oneDNN's layouts. Each against the reference evaluator. */
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

/* Columns that fill no panel, a depth that fills no block, and what may follow the product. */
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

static const int64_t image[4] = {1, 32, 14, 18};

static void test_function_after_winograd(void **state) {
  (void)state;
  static const char *const functions[] = {"LeakyRelu", "Relu", "Tanh", "HardSwish"};
  const int64_t pads[4] = {1, 1, 1, 1}, weights[4] = {48, 32, 3, 3};
  const int64_t large[4] = {1, 32, 24, 24}; /* on a smaller one it does not pay */
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

/* Relu before a sum and LeakyRelu after it are one function of oneDNN's with other numbers. */
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

/* Transposed windows with strides and padding; with output_padding it stays a kernel. */
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

/* To given sizes; nearest by a whole factor, and by one that is none. */
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_row),
      cmocka_unit_test(test_gemm_row),
      cmocka_unit_test(test_function_after_winograd),
      cmocka_unit_test(test_one_function_twice),
      cmocka_unit_test(test_instance_norm),
      cmocka_unit_test(test_transposed),
      cmocka_unit_test(test_resize),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
