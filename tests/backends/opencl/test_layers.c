/* Compares OpenCL kernels with the kernels for host memory: products, convolutions, pools, normalisation, resizing and
 * quantisation. Also tests that an unsupported node is rejected. */
#include "node.h"

/* ---- Products ---- */

static void test_products(void **state) {
  (void)state;
  uint64_t seed = 61;
  static const int64_t sizes[][3] = {{1, 70, 300}, {70, 1, 300}, {5, 33, 17}, {130, 100, 600}, {2, 40, 9}, {64, 16, 256}};
  node_case *c;
  for (int i = 0; i < 12; ++i) {
    const int64_t *s = sizes[i % 6], turn_a = i >> 1 & 1, turn_b = i >= 6;
    c = case_begin("Gemm", 13);
    const clv_dtype dtype = i == 3 || i == 7 ? CLV_F16 : CLV_F32;
    case_input(c, &seed, dtype, SHAPE(turn_a ? s[2] : s[0], turn_a ? s[0] : s[2]));
    case_input(c, &seed, dtype, SHAPE(turn_b ? s[1] : s[2], turn_b ? s[2] : s[1]));
    if (i % 3 == 1) case_input(c, &seed, dtype, SHAPE(s[1]));
    if (i % 3 == 2) case_input(c, &seed, dtype, SHAPE(s[0], 1));
    case_int(c, "transA", turn_a);
    case_int(c, "transB", turn_b);
    case_float(c, "alpha", i % 4 == 0 ? 1 : 0.5f);
    case_float(c, "beta", i % 4 == 1 ? 1 : -2);
    check(c, 0);
  }
  for (int i = 0; i < 5; ++i) {
    c = case_begin("MatMul", 13);
    const clv_dtype dtype = i == 4 ? CLV_I32 : i == 3 ? CLV_BF16 : CLV_F32;
    if (i == 0) case_input(c, &seed, dtype, SHAPE(20));
    if (i == 1) case_input(c, &seed, dtype, SHAPE(3, 1, 7, 20));
    if (i == 2) case_input(c, &seed, dtype, SHAPE(3, 7, 20));
    if (i > 2) case_input(c, &seed, dtype, SHAPE(2, 9, 20));
    if (i == 1) case_input(c, &seed, dtype, SHAPE(4, 20, 19));
    if (i != 1) case_input(c, &seed, dtype, SHAPE(20, 33));
    check(c, 0);
  }
}

static void test_convolutions(void **state) {
  (void)state;
  uint64_t seed = 71;
  for (int i = 0; i < 44; ++i) {
    const bool transposed = i % 3 == 2;
    const int32_t spatial = i % 5 == 4 ? 3 : i % 5 == 3 ? 1 : 2;
    const int64_t groups = i % 4 == 1 ? random_in(&seed, 2, 3) : 1, in = random_in(&seed, 1, 20),
                  out = i % 7 == 0 ? 20 : random_in(&seed, 1, 9);
    int64_t x[5] = {random_in(&seed, 1, 2), in * groups}, w[5], pads[6], strides[3], dilations[3];
    w[0] = transposed ? in * groups : out * groups;
    w[1] = transposed ? out : in;
    for (int32_t d = 0; d < spatial; ++d) {
      w[2 + d] = i % 6 == 5 && !transposed ? 1 : random_in(&seed, 1, 3);
      strides[d] = random_in(&seed, 1, i % 6 == 5 ? 1 : 2 + transposed);
      dilations[d] = random_in(&seed, 1, 2);
      x[2 + d] = random_in(&seed, 5, spatial == 2 ? 24 : 12);
      pads[d] = random_in(&seed, 0, i % 6 == 5 ? 0 : 1);
      pads[spatial + d] = random_in(&seed, 0, i % 6 == 5 ? 0 : 2);
    }
    node_case *c = case_begin(transposed ? "ConvTranspose" : "Conv", 13);
    const clv_dtype dtype = i == 8 || i == 9 ? CLV_F16 : CLV_F32;
    case_input(c, &seed, dtype, spatial + 2, x);
    case_input(c, &seed, dtype, spatial + 2, w);
    const int64_t outs = out * groups;
    if (i % 2 == 0) case_input(c, &seed, dtype, 1, &outs);
    case_int(c, "group", groups);
    case_ints(c, "strides", (size_t)spatial, strides);
    case_ints(c, "dilations", (size_t)spatial, dilations);
    if (i % 8 == 7)
      case_string(c, "auto_pad", "SAME_UPPER");
    else
      case_ints(c, "pads", (size_t)(2 * spatial), pads);
    check(c, i % 4 == 0 ? AS_CONSTANT(1) : 0);
  }
  node_case *c = case_begin("Conv", 13); /* a depthwise convolution */
  case_input(c, &seed, CLV_F32, SHAPE(1, 19, 21, 40));
  case_input(c, &seed, CLV_F32, SHAPE(19, 1, 3, 3));
  case_int(c, "group", 19);
  case_ints(c, "pads", 4, (int64_t[]){1, 1, 1, 1});
  check(c, 0);
}

static void test_pools(void **state) {
  (void)state;
  uint64_t seed = 81;
  for (int i = 0; i < 14; ++i) {
    const int32_t spatial = i % 5 == 4 ? 3 : i % 5 == 3 ? 1 : 2;
    const int kind = i % 3;
    int64_t x[5] = {2, 3}, kernel[3], strides[3], dilations[3], pads[6];
    for (int32_t d = 0; d < spatial; ++d) {
      kernel[d] = random_in(&seed, 2, 3);
      strides[d] = random_in(&seed, 1, 3);
      dilations[d] = kind == 0 ? random_in(&seed, 1, 2) : 1;
      x[2 + d] = random_in(&seed, 7, 12);
      pads[d] = random_in(&seed, 0, 1);
      pads[spatial + d] = random_in(&seed, 0, 1);
    }
    node_case *c = case_begin(kind == 0 ? "MaxPool" : kind == 1 ? "AveragePool" : "LpPool", kind == 2 ? 18 : 19);
    c->output_count = i == 0 || i == 6 ? 2 : 1;
    case_input(c, &seed, i == 3 ? CLV_U8 : i == 4 ? CLV_F16 : CLV_F32, spatial + 2, x);
    case_ints(c, "kernel_shape", (size_t)spatial, kernel);
    case_ints(c, "strides", (size_t)spatial, strides);
    case_ints(c, "pads", (size_t)(2 * spatial), pads);
    case_int(c, "ceil_mode", i % 2);
    if (kind == 0) case_ints(c, "dilations", (size_t)spatial, dilations);
    if (kind == 0) case_int(c, "storage_order", i == 6);
    if (kind == 1) case_int(c, "count_include_pad", i / 6 % 2);
    check(c, 0);
  }
  /* The last windows reach beyond the padding. The averages must include the padding, but not the positions beyond it. */
  node_case *c = case_begin("AveragePool", 19);
  case_input(c, &seed, CLV_F32, SHAPE(1, 2, 8, 8));
  case_ints(c, "kernel_shape", 2, (int64_t[]){3, 3});
  case_ints(c, "strides", 2, (int64_t[]){2, 2});
  case_int(c, "ceil_mode", 1);
  case_int(c, "count_include_pad", 1);
  check(c, 0);
}

/* ---- Normalisation, resizing, quantisation ---- */

static void test_norms(void **state) {
  (void)state;
  uint64_t seed = 91;
  const int64_t channels = 6;
  node_case *c;
  for (int i = 0; i < 3; ++i) {
    c = case_begin("BatchNormalization", 15);
    int64_t dims[] = {2, 6, i == 1 ? 1 : 5, i == 1 ? 3 : 40};
    case_input(c, &seed, CLV_F32, i == 2 ? 2 : 4, dims);
    for (int k = 0; k < 4; ++k) case_input(c, &seed, CLV_F32, 1, &channels);
    for (int k = 0; k < 6; ++k) element_set(&c->inputs[4], (size_t)k, fabs(clv__tensor_get(&c->inputs[4], (size_t)k)) + 0.2);
    check(c, 0);
  }
  for (int i = 0; i < 3; ++i) {
    c = case_begin(i == 2 ? "RMSNormalization" : "LayerNormalization", i == 2 ? 23 : 17);
    case_input(c, &seed, i == 1 ? CLV_F16 : CLV_F32, SHAPE(3, 4, 50));
    case_input(c, &seed, i == 1 ? CLV_F16 : CLV_F32, i == 0 ? 2 : 1, (int64_t[]){i == 0 ? 4 : 50, 50});
    if (i == 1) case_input(c, &seed, CLV_F16, SHAPE(50));
    case_int(c, "axis", i == 0 ? 1 : -1);
    check(c, 0);
  }
  c = case_begin("InstanceNormalization", 22);
  case_input(c, &seed, CLV_F32, SHAPE(2, 6, 9, 8));
  for (int k = 0; k < 2; ++k) case_input(c, &seed, CLV_F32, 1, &channels);
  check(c, 0);
  for (int32_t opset = 18; opset <= 21; opset += 3) {
    const int64_t scales = opset == 18 ? 3 : 6;
    c = case_begin("GroupNormalization", opset);
    case_input(c, &seed, CLV_F32, SHAPE(2, 6, 9, 8));
    for (int k = 0; k < 2; ++k) case_input(c, &seed, CLV_F32, 1, &scales);
    case_int(c, "num_groups", 3);
    check(c, 0);
  }
  c = case_begin("MeanVarianceNormalization", 13);
  case_input(c, &seed, CLV_F32, SHAPE(3, 4, 5, 6));
  check(c, 0);
  for (int64_t p = 1; p < 3; ++p) {
    c = case_begin("LpNormalization", 1);
    case_input(c, &seed, CLV_F32, SHAPE(3, 10, 7));
    case_int(c, "p", p);
    case_int(c, "axis", p == 1 ? 1 : -1);
    check(c, 0);
  }
  c = case_begin("LRN", 13);
  case_input(c, &seed, CLV_F32, SHAPE(2, 11, 5, 6));
  case_int(c, "size", 4);
  case_float(c, "alpha", 0.3f);
  check(c, 0);
}

static void test_resize(void **state) {
  (void)state;
  static const char *const modes[] = {"nearest", "linear", "cubic"};
  static const char *const transforms[] = {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"};
  uint64_t seed = 101;
  for (int i = 0; i < 12; ++i) {
    node_case *c = case_begin("Resize", 19);
    case_input(c, &seed, i == 3 ? CLV_U8 : CLV_F32, SHAPE(2, 3, 7, 6));
    absent(c);
    absent(c);
    input_ints(c, CLV_I64, INTS(2, 3, random_in(&seed, 1, 20), random_in(&seed, 3, 20)));
    case_string(c, "mode", modes[i % 3]);
    case_string(c, "coordinate_transformation_mode", transforms[i % 4]);
    if (i % 3 != 0) case_int(c, "antialias", i >= 6);
    check(c, AS_CONSTANT(3));
  }
}

static void test_quantize(void **state) {
  (void)state;
  uint64_t seed = 111;
  for (int i = 0; i < 4; ++i) {
    const bool by_axis = i % 2 == 1;
    const int64_t scales = 5;
    node_case *c = case_begin(i < 2 ? "QuantizeLinear" : "DequantizeLinear", 19);
    case_input(c, &seed, i < 2 ? CLV_F32 : CLV_I8, SHAPE(3, 5, 7));
    clv_tensor *scale = case_input(c, &seed, CLV_F32, by_axis ? 1 : 0, &scales);
    for (size_t k = 0; k < count_of(scale); ++k) element_set(scale, k, 0.013 + 0.001 * (double)k);
    case_input(c, &seed, CLV_I8, by_axis ? 1 : 0, &scales);
    check(c, 0);
  }
}

/* ---- Rejected nodes ---- */

/* If the device does not support a node, making a plan fails with the reason. */
static void test_refusals(void **state) {
  (void)state;
  uint64_t seed = 121;
  clv_error error = {0};
  node_case *c = case_begin("ReduceL2", 18);
  case_input(c, &seed, CLV_I32, SHAPE(3, 5));
  case_run(c);
  clv_graph *graph = graph_of(c, 0);
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  clv_plan *plan = NULL;
  assert_int_not_equal(clv_plan_make(graph, devices, &options, &plan, &error), CLV_OK);
  assert_null(plan);
  assert_non_null(strstr(error.message, "dtype i32"));
  clv__graph_destroy(graph);
  case_end(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_products), cmocka_unit_test(test_convolutions), cmocka_unit_test(test_pools),
      cmocka_unit_test(test_norms),    cmocka_unit_test(test_resize),       cmocka_unit_test(test_quantize),
      cmocka_unit_test(test_refusals),
  };
  if (!device_open(NULL)) return 0;
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device_close();
  /* Tests the kernels for GPUs on the same device, even if it is a CPU. */
  const struct CMUnitTest gpu_tests[] = {
      cmocka_unit_test(test_products),
      cmocka_unit_test(test_convolutions),
      cmocka_unit_test(test_norms),
  };
  if (!device_open("opencl:kernels=gpu")) return failed + 1;
  failed += cmocka_run_group_tests(gpu_tests, NULL, NULL);
  device_close();
  return failed;
}
