/* Compares OpenCL kernels with the kernels for host memory: elementwise operators, moving elements, reductions, operators along
 * an axis, gather and scatter, with random shapes, attributes and broadcasting. */
#include "node.h"

/* ---- Elementwise ---- */

static void test_elementwise(void **state) {
  (void)state;
  static const char *const unary[] = {"Relu", "Sigmoid", "Erf",  "HardSwish", "Softplus",
                                      "Gelu", "Selu",    "Mish", "IsInf",     "Shrink"};
  static const char *const binary[] = {"Add", "Div", "Pow", "PRelu", "Less", "Max"};
  uint64_t seed = 11;
  int64_t a[4], b[4];
  for (size_t i = 0; i < sizeof unary / sizeof *unary; ++i) {
    random_dims(&seed, 3, 9, a);
    node_case *c = case_begin(unary[i], 20);
    case_input(c, &seed, some_float(&seed), 3, a);
    check(c, 0);
  }
  for (size_t i = 0; i < sizeof binary / sizeof *binary; ++i) {
    random_dims(&seed, 4, 7, a);
    for (int32_t d = 0; d < 4; ++d) b[d] = random_in(&seed, 0, 1) ? 1 : a[d];
    const int32_t lead = strcmp(binary[i], "PRelu") == 0 ? 1 : (int32_t)random_in(&seed, 0, 3);
    node_case *c = case_begin(binary[i], 18);
    clv_tensor *x = case_input(c, &seed, CLV_F32, 4, a);
    for (size_t k = 0; k < count_of(x) && i == 2; ++k) ((float *)x->data)[k] = fabsf(((float *)x->data)[k]);
    case_input(c, &seed, CLV_F32, 4 - lead, b + lead);
    check(c, 0);
  }
  static const struct {
    const char *op;
    clv_dtype dtype;
  } whole[] = {{"Div", CLV_I32}, {"Mod", CLV_I64}, {"Mul", CLV_I64}, {"Sub", CLV_U8}, {"Equal", CLV_I64}, {"Min", CLV_I8}};
  for (size_t i = 0; i < sizeof whole / sizeof *whole; ++i) {
    node_case *c = case_begin(whole[i].op, 18);
    case_input(c, &seed, whole[i].dtype, SHAPE(5, 1, 6));
    case_input(c, &seed, whole[i].dtype, SHAPE(4, 6));
    check(c, 0);
  }
  node_case *c = case_begin("Where", 16);
  clv_tensor *condition = case_input(c, &seed, CLV_U8, SHAPE(3, 1, 5));
  for (size_t i = 0; i < 15; ++i) ((uint8_t *)condition->data)[i] = (uint8_t)random_in(&seed, 0, 1);
  condition->dtype = CLV_BOOL;
  case_input(c, &seed, CLV_I64, SHAPE(4, 5));
  case_input(c, &seed, CLV_I64, SHAPE(3, 4, 1));
  check(c, 0);
  c = case_begin("Sum", 13);
  case_input(c, &seed, CLV_F32, SHAPE(3, 1, 5));
  case_input(c, &seed, CLV_F32, SHAPE(4, 5));
  case_input(c, &seed, CLV_F32, SHAPE(3, 4, 1));
  check(c, 0);
  for (uint32_t bounds = 1; bounds < 4; ++bounds) { /* one bound or both, known or unknown */
    for (uint32_t constants = 0; constants < 2; ++constants) {
      const clv_dtype dtype = bounds == 2 ? CLV_I32 : CLV_F32;
      c = case_begin("Clip", 13);
      case_input(c, &seed, dtype, SHAPE(7, 11));
      if ((bounds & 1) != 0) input_scalar(c, dtype, dtype == CLV_F32 ? -0.25 : -3);
      if ((bounds & 1) == 0) absent(c);
      if ((bounds & 2) != 0) input_scalar(c, dtype, dtype == CLV_F32 ? 0.5 : 4);
      check(c, constants != 0 ? AS_CONSTANT(1) | AS_CONSTANT(2) : 0);
    }
  }
}

/* Numbers on which implementations may differ: NaN, infinities, zeros of both signs. */
static void test_odd_numbers(void **state) {
  (void)state;
  static const char *const ops[] = {"Relu", "Max", "Min", "Sign", "Clip", "ReduceMax", "ArgMax", "Softsign", "Cast"};
  static const float odd[] = {NAN, -INFINITY, -0.0f, 0.0f, 3e38f, 1.5f, -2.5f, INFINITY, NAN, -7, 1e-40f, 300};
  uint64_t seed = 3;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; ++i) {
    node_case *c = case_begin(ops[i], 18);
    clv_tensor *x = case_input(c, &seed, CLV_F32, SHAPE(4, 3));
    memcpy(x->data, odd, sizeof odd);
    if (i == 1 || i == 2) {
      clv_tensor *y = case_input(c, &seed, CLV_F32, SHAPE(4, 3));
      for (size_t k = 0; k < 12; ++k) ((float *)y->data)[k] = odd[(k * 5 + 3) % 12];
    }
    if (i == 5) input_ints(c, CLV_I64, INTS(1));
    if (i == 8) case_int(c, "to", CLV_I32);
    check(c, i == 5 ? AS_CONSTANT(1) : 0);
  }
}

static void test_cast(void **state) {
  (void)state;
  static const clv_dtype pairs[][2] = {{CLV_F32, CLV_I64}, {CLV_F32, CLV_U8},  {CLV_I64, CLV_F32},  {CLV_I32, CLV_I8},
                                       {CLV_F16, CLV_F32}, {CLV_F32, CLV_F16}, {CLV_F32, CLV_BF16}, {CLV_U8, CLV_BOOL}};
  uint64_t seed = 5;
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
    node_case *c = case_begin("Cast", 19);
    clv_tensor *x = case_input(c, &seed, pairs[i][0], SHAPE(100));
    for (size_t k = 0; k < 100; ++k) element_set(x, k, (clv__tensor_get(x, k)) * 40);
    case_int(c, "to", pairs[i][1]);
    check(c, 0);
  }
}

/* ---- Moving elements ---- */

static void test_move(void **state) {
  (void)state;
  uint64_t seed = 21;
  static const int64_t perms[][4] = {{0, 2, 3, 1}, {0, 1, 3, 2}, {3, 1, 0, 2}, {0, 2, 1, 3}};
  static const clv_dtype dtypes[] = {CLV_F32, CLV_I64, CLV_F16, CLV_U8};
  node_case *c;
  for (int i = 0; i < 4; ++i) {
    c = case_begin("Transpose", 13);
    case_input(c, &seed, dtypes[i], SHAPE(2, 9, 10, 37));
    case_ints(c, "perm", 4, perms[i]);
    check(c, 0);
  }
  for (int i = 0; i < 3; ++i) {
    static const int64_t steps[] = {1, 2, -3}, starts[] = {2, -30, 35}, ends[] = {100, 1000, -1000};
    c = case_begin("Slice", 13);
    case_input(c, &seed, dtypes[i], SHAPE(5, 40, 3));
    input_ints(c, CLV_I64, INTS(starts[i], 1));
    input_ints(c, CLV_I64, INTS(ends[i], 4));
    input_ints(c, CLV_I64, INTS(1, -3));
    input_ints(c, CLV_I64, INTS(steps[i], 1));
    check(c, AS_CONSTANT(1) | AS_CONSTANT(2) | AS_CONSTANT(3) | AS_CONSTANT(4));
  }
  for (int64_t axis = 0; axis < 3; ++axis) {
    c = case_begin("Concat", 13);
    for (int i = 0; i < 3; ++i) {
      int64_t dims[3] = {3, 4, 40};
      dims[axis] = random_in(&seed, 1, 5);
      case_input(c, &seed, CLV_F32, 3, dims);
    }
    case_int(c, "axis", axis - 3);
    check(c, 0);
    c = case_begin("Split", 13);
    c->output_count = 2;
    case_input(c, &seed, CLV_F32, SHAPE(6, 7, 8));
    input_ints(c, CLV_I64, INTS(2, axis + 4));
    case_int(c, "axis", axis);
    check(c, AS_CONSTANT(1));
  }
  static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
  for (int i = 0; i < 4; ++i) {
    c = case_begin("Pad", 19);
    case_input(c, &seed, dtypes[i], SHAPE(3, 8, 5));
    input_ints(c, CLV_I64, INTS(1, -2, 3, 0, 4, 1));
    input_scalar(c, dtypes[i], 7);
    case_string(c, "mode", modes[i]);
    check(c, AS_CONSTANT(1) | AS_CONSTANT(2));
  }
  c = case_begin("Expand", 13);
  case_input(c, &seed, CLV_F32, SHAPE(3, 1, 5));
  input_ints(c, CLV_I64, INTS(2, 3, 4, 1));
  check(c, AS_CONSTANT(1));
  c = case_begin("Tile", 13);
  case_input(c, &seed, CLV_F32, SHAPE(2, 3, 2, 3, 2));
  input_ints(c, CLV_I64, INTS(2, 3, 2, 2, 3));
  check(c, AS_CONSTANT(1));
  for (int i = 0; i < 2; ++i) {
    c = case_begin("DepthToSpace", 13);
    case_input(c, &seed, CLV_F32, SHAPE(2, 12, 3, 5));
    case_int(c, "blocksize", 2);
    case_string(c, "mode", i == 0 ? "DCR" : "CRD");
    check(c, 0);
  }
  c = case_begin("SpaceToDepth", 13);
  case_input(c, &seed, CLV_F32, SHAPE(2, 3, 4, 6));
  case_int(c, "blocksize", 2);
  check(c, 0);
}

/* ---- Reductions, operators along an axis ---- */

static void test_reduce(void **state) {
  (void)state;
  static const char *const ops[] = {"ReduceSum", "ReduceMean", "ReduceMax",    "ReduceMin",       "ReduceProd",
                                    "ReduceL1",  "ReduceL2",   "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"};
  uint64_t seed = 31;
  int64_t dims[5];
  for (int i = 0; i < 24; ++i) {
    const int32_t rank = (int32_t)random_in(&seed, 1, 5);
    const bool whole = i % 6 == 5;
    node_case *c = case_begin(ops[i % 10], 18);
    random_dims(&seed, rank, rank < 3 ? 70 : 9, dims);
    if (whole) c->op = i % 4 == 1 ? "ReduceSum" : "ReduceMax";
    clv_tensor *x = case_input(c, &seed, whole ? CLV_I32 : some_float(&seed), rank, dims);
    for (size_t k = 0; k < count_of(x) && strcmp(c->op, "ReduceLogSum") == 0; ++k)
      element_set(x, k, fabs(clv__tensor_get(x, k)) + 0.1);
    int64_t axes[5], count = 0;
    for (int32_t d = 0; d < rank; ++d) {
      if (random_in(&seed, 0, 1)) axes[count++] = random_in(&seed, 0, 1) ? d : d - rank;
    }
    if (count > 0) input_ints(c, CLV_I64, count, axes);
    case_int(c, "keepdims", i % 2);
    check(c, AS_CONSTANT(1));
  }
  node_case *c = case_begin("ReduceMean", 18); /* a case with long rows */
  case_input(c, &seed, CLV_F32, SHAPE(2, 100000));
  input_ints(c, CLV_I64, INTS(1));
  check(c, AS_CONSTANT(1));
  c = case_begin("GlobalAveragePool", 13);
  case_input(c, &seed, CLV_F32, SHAPE(2, 5, 7, 7));
  check(c, 0);
}

static void test_lines(void **state) {
  (void)state;
  uint64_t seed = 41;
  static const char *const lines[] = {"Softmax", "LogSoftmax", "Hardmax"};
  node_case *c;
  for (int i = 0; i < 9; ++i) {
    int64_t dims[] = {3, i < 6 ? 40 : 5, 6};
    c = case_begin(lines[i % 3], i < 3 ? 11 : 13);
    clv_tensor *x = case_input(c, &seed, i == 4 ? CLV_F16 : CLV_F32, 3, dims);
    for (size_t k = 0; k < count_of(x) && i % 3 == 2; ++k) element_set(x, k, (double)random_in(&seed, 0, 1)); /* many ties */
    case_int(c, "axis", i % 2 == 0 ? 1 : -1);
    check(c, 0);
  }
  for (int i = 0; i < 6; ++i) {
    c = case_begin(i % 2 == 0 ? "ArgMax" : "ArgMin", 13);
    int64_t dims[] = {3, i < 3 ? 700 : 4, i < 3 ? 1 : 5};
    clv_tensor *x = case_input(c, &seed, i == 5 ? CLV_I32 : CLV_F32, 3, dims);
    for (size_t k = 0; k < count_of(x); ++k) element_set(x, k, (double)random_in(&seed, 0, 20)); /* many ties */
    case_int(c, "axis", 1);
    case_int(c, "select_last_index", i / 2 % 2);
    check(c, 0);
  }
  for (int i = 0; i < 4; ++i) {
    c = case_begin("CumSum", 14);
    case_input(c, &seed, i == 3 ? CLV_I64 : CLV_F32, SHAPE(3, 20, 4));
    input_scalar(c, CLV_I64, i - 2);
    case_int(c, "exclusive", i & 1);
    case_int(c, "reverse", i >> 1);
    check(c, AS_CONSTANT(1));
  }
  for (int i = 0; i < 3; ++i) {
    c = case_begin("TopK", 11);
    c->output_count = 2;
    clv_tensor *x = case_input(c, &seed, i == 2 ? CLV_I64 : CLV_F32, SHAPE(2, 30, 3));
    for (size_t k = 0; k < 180; ++k) element_set(x, k, (double)random_in(&seed, 0, 9));
    input_ints(c, CLV_I64, INTS(7));
    case_int(c, "axis", 1);
    case_int(c, "largest", i & 1);
    check(c, AS_CONSTANT(1));
  }
}

/* ---- Gather and scatter ---- */

static void test_gather(void **state) {
  (void)state;
  uint64_t seed = 51;
  static const char *const reductions[] = {"none", "add", "mul", "max", "min"};
  node_case *c;
  for (int64_t axis = 0; axis < 3; ++axis) {
    const clv_dtype index = axis == 1 ? CLV_I32 : CLV_I64;
    c = case_begin("Gather", 13);
    case_input(c, &seed, axis == 2 ? CLV_I64 : CLV_F32, SHAPE(5, 5, 5));
    input_indices(c, &seed, index, SHAPE(2, 3), 5);
    case_int(c, "axis", axis);
    check(c, 0);
    c = case_begin("GatherElements", 13);
    case_input(c, &seed, CLV_F32, SHAPE(5, 5, 5));
    input_indices(c, &seed, index, SHAPE(4, 3, 5), 5);
    case_int(c, "axis", axis);
    check(c, 0);
    c = case_begin("GatherND", 13);
    case_input(c, &seed, CLV_F32, SHAPE(4, 6, 6, 3));
    input_indices(c, &seed, CLV_I64, SHAPE(4, 5, axis == 0 ? 1 : 2), 4);
    case_int(c, "batch_dims", axis == 2);
    check(c, 0);
  }
  for (int i = 0; i < 5; ++i) { /* some updates have the same index: they are applied in order */
    c = case_begin("ScatterElements", 18);
    case_input(c, &seed, i == 3 ? CLV_I32 : CLV_F32, SHAPE(6, 5, 4));
    input_indices(c, &seed, CLV_I64, SHAPE(4, 5, 3), 5);
    case_input(c, &seed, i == 3 ? CLV_I32 : CLV_F32, SHAPE(4, 5, 3));
    case_string(c, "reduction", reductions[i]);
    case_int(c, "axis", 1);
    check(c, 0);
    c = case_begin("ScatterND", 18);
    case_input(c, &seed, CLV_F32, SHAPE(6, 5, 4));
    input_indices(c, &seed, CLV_I64, SHAPE(7, 2), 5);
    case_input(c, &seed, CLV_F32, SHAPE(7, 4));
    case_string(c, "reduction", reductions[i]);
    check(c, 0);
  }
  c = case_begin("Trilu", 14);
  case_input(c, &seed, CLV_F32, SHAPE(2, 5, 7));
  input_scalar(c, CLV_I64, -1);
  check(c, AS_CONSTANT(1));
  c = case_begin("OneHot", 11);
  input_indices(c, &seed, CLV_I64, SHAPE(3, 4), 9);
  input_scalar(c, CLV_I64, 6);
  input_ints(c, CLV_F32, INTS(-1, 3));
  case_int(c, "axis", 1);
  check(c, AS_CONSTANT(1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_elementwise), cmocka_unit_test(test_odd_numbers), cmocka_unit_test(test_cast),
      cmocka_unit_test(test_move),        cmocka_unit_test(test_reduce),      cmocka_unit_test(test_lines),
      cmocka_unit_test(test_gather),
  };
  if (!device_open(NULL)) return 0;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  device_close();
  return failed;
}
