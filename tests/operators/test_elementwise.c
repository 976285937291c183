/* Tests element-wise kernels against arithmetic in double or 64-bit integers, element by element, with random shapes,
 * broadcasts and dtypes. */
#include "kernel_case.h"

static const clv_dtype float_dtypes[] = {CLV_F32, CLV_F64, CLV_F16, CLV_BF16};
static const clv_dtype integer_dtypes[] = {CLV_I8, CLV_I16, CLV_I32, CLV_I64, CLV_U8, CLV_U16, CLV_U32, CLV_U64};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool is_unsigned(clv_dtype dtype) {
  return (CLV__DTYPE_BIT(dtype) & CLV__DTYPES_UNSIGNED) != 0;
}

/* Draws a random output shape. One in eight is large enough for several threads. */
static int32_t random_dims(uint64_t *seed, int64_t *dims) {
  int32_t rank = (int32_t)(test_random(seed) % 5);
  for (int32_t i = 0; i < rank; ++i) dims[i] = (int64_t)(test_random(seed) % 6);
  if (rank > 0 && test_random(seed) % 8 == 0) dims[test_random(seed) % (uint64_t)rank] = 9000;
  return rank;
}

static clv_tensor random_operand(clv_dtype dtype, int32_t rank, const int64_t *dims, bool whole, uint64_t *seed) {
  int64_t own[CLV_MAX_RANK];
  int32_t skip = whole || rank == 0 ? 0 : (int32_t)(test_random(seed) % (uint64_t)(rank + 1));
  if (test_random(seed) % 2 == 0) skip = 0;
  for (int32_t i = skip; i < rank; ++i) own[i - skip] = !whole && test_random(seed) % 3 == 0 ? 1 : dims[i];
  return case_tensor(dtype, rank - skip, own);
}

/* The element of `input` that output element `index` reads. */
static size_t source_index(const clv_tensor *out, const clv_tensor *input, size_t index) {
  size_t at = 0, stride = 1;
  for (int32_t axis = out->rank - 1; axis >= 0; --axis) {
    size_t position = index % (size_t)out->dims[axis];
    index /= (size_t)out->dims[axis];
    int32_t own = axis - (out->rank - input->rank);
    if (own < 0) continue;
    if (input->dims[own] != 1) at += position * stride;
    stride *= (size_t)input->dims[own];
  }
  return at;
}

static double wanted_float(const char *op, double a, double b) {
  if (strcmp(op, "Add") == 0 || strcmp(op, "Sum") == 0) return a + b;
  if (strcmp(op, "Sub") == 0) return a - b;
  if (strcmp(op, "Mul") == 0) return a * b;
  if (strcmp(op, "Div") == 0) return a / b;
  if (strcmp(op, "Min") == 0) return isnan(a) || isnan(b) ? (double)NAN : fmin(a, b);
  if (strcmp(op, "Max") == 0) return isnan(a) || isnan(b) ? (double)NAN : fmax(a, b);
  if (strcmp(op, "Mean") == 0) return (a + b) / 2;
  if (strcmp(op, "PRelu") == 0) return a < 0 ? a * b : a;
  if (strcmp(op, "Pow") == 0) return pow(a, b);
  if (strcmp(op, "Equal") == 0) return a == b;
  if (strcmp(op, "Less") == 0) return a < b;
  if (strcmp(op, "LessOrEqual") == 0) return a <= b;
  if (strcmp(op, "Greater") == 0) return a > b;
  return a >= b;
}

/* The expected result of an operator on integers, in 64 bits; the caller reduces it to the low bits of the dtype. Sets *known
 * to false if this function does not compute the operator. */
static uint64_t wanted_integer(const char *op, uint64_t a, uint64_t b, bool without_sign, bool *known) {
  int64_t sa = (int64_t)a, sb = (int64_t)b;
  *known = true;
  if (strcmp(op, "Add") == 0) return a + b;
  if (strcmp(op, "Sub") == 0) return a - b;
  if (strcmp(op, "Mul") == 0) return a * b;
  if (strcmp(op, "Div") == 0) return b == 0 ? 0 : without_sign ? a / b : sb == -1 ? 0 - a : (uint64_t)(sa / sb);
  if (strcmp(op, "Mod") == 0) {
    if (b == 0 || (!without_sign && sb == -1)) return 0;
    if (without_sign) return a % b;
    return (uint64_t)(sa % sb != 0 && (sa < 0) != (sb < 0) ? sa % sb + sb : sa % sb);
  }
  if (strcmp(op, "Min") == 0) return without_sign ? (a < b ? a : b) : (uint64_t)(sa < sb ? sa : sb);
  if (strcmp(op, "Max") == 0) return without_sign ? (a > b ? a : b) : (uint64_t)(sa > sb ? sa : sb);
  if (strcmp(op, "BitwiseAnd") == 0) return a & b;
  if (strcmp(op, "BitwiseOr") == 0) return a | b;
  if (strcmp(op, "BitwiseXor") == 0) return a ^ b;
  if (strcmp(op, "Equal") == 0) return a == b;
  if (strcmp(op, "Less") == 0) return without_sign ? a < b : sa < sb;
  if (strcmp(op, "LessOrEqual") == 0) return without_sign ? a <= b : sa <= sb;
  if (strcmp(op, "Greater") == 0) return without_sign ? a > b : sa > sb;
  if (strcmp(op, "GreaterOrEqual") == 0) return without_sign ? a >= b : sa >= sb;
  *known = false;
  return 0;
}

static bool is_comparison(const char *op) {
  return strcmp(op, "Equal") == 0 || strncmp(op, "Less", 4) == 0 || strncmp(op, "Greater", 7) == 0;
}

static void check_pair(const char *op, clv_dtype dtype, uint64_t *seed) {
  int64_t dims[CLV_MAX_RANK];
  int32_t rank = random_dims(seed, dims);
  bool prelu = strcmp(op, "PRelu") == 0, is_float = (CLV__DTYPE_BIT(dtype) & CLV__DTYPES_FLOAT) != 0;
  clv_tensor inputs[2];
  bool first_whole = prelu || test_random(seed) % 2 == 0;
  inputs[0] = random_operand(dtype, rank, dims, first_whole, seed);
  inputs[1] = random_operand(dtype, rank, dims, !first_whole, seed);
  bool power = strcmp(op, "Pow") == 0;
  case_fill(&inputs[0], power ? 0.1 : is_unsigned(dtype) ? 0 : -4, 4, seed);
  case_fill(&inputs[1], is_unsigned(dtype) ? 0 : -4, 4, seed);
  if (power && case_count(&inputs[1]) > 0) case_set(&inputs[1], 0, 2);
  clv_tensor out = case_tensor(is_comparison(op) ? CLV_BOOL : dtype, rank, dims);
  const int64_t fmod_no = 0;
  clv_attribute attribute = case_int("fmod", &fmod_no);
  case_run(op, 18, &attribute, 1, inputs, 2, &out);
  for (size_t i = 0; i < case_count(&out); ++i) {
    size_t ia = source_index(&out, &inputs[0], i), ib = source_index(&out, &inputs[1], i);
    if (is_float) {
      double a = clv__tensor_get(&inputs[0], ia), b = clv__tensor_get(&inputs[1], ib);
      case_expect(op, &out, i, wanted_float(op, a, b), is_comparison(op) ? 0 : fabs(a) * 0.01);
    } else {
      bool known;
      uint64_t wanted = wanted_integer(op, (uint64_t)clv__tensor_get_int(&inputs[0], ia),
                                       (uint64_t)clv__tensor_get_int(&inputs[1], ib), is_unsigned(dtype), &known);
      assert_true(known);
      assert_memory_equal((char *)out.data + i * clv_dtype_size_bytes(out.dtype), &wanted, clv_dtype_size_bytes(out.dtype));
    }
  }
  free(inputs[0].data);
  free(inputs[1].data);
  free(out.data);
}

static void test_pairs(void **state) {
  static const char *const floats[] = {"Add",   "Sub", "Mul",   "Div",  "Min",         "Max",     "Sum",           "Mean",
                                       "PRelu", "Pow", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"};
  static const char *const integers[] = {"Add",   "Sub",  "Mul",         "Div",       "Mod",
                                         "Min",   "Max",  "BitwiseAnd",  "BitwiseOr", "BitwiseXor",
                                         "Equal", "Less", "LessOrEqual", "Greater",   "GreaterOrEqual"};
  uint64_t seed = 1;
  (void)state;
  for (int repeat = 0; repeat < 6; ++repeat) {
    for (size_t d = 0; d < COUNT(float_dtypes); ++d) {
      for (size_t i = 0; i < COUNT(floats); ++i) check_pair(floats[i], float_dtypes[d], &seed);
    }
    for (size_t d = 0; d < COUNT(integer_dtypes); ++d) {
      for (size_t i = 0; i < COUNT(integers); ++i) check_pair(integers[i], integer_dtypes[d], &seed);
    }
  }
}

/* Tests rows that are long enough to be divided among threads, with a second input that has one element per row: each thread
 * must find the right one. */
static void test_long_rows(void **state) {
  enum { ROWS = 3, LENGTH = 90001 };
  clv_tensor inputs[2] = {case_tensor(CLV_F32, 2, (int64_t[]){ROWS, LENGTH}), case_tensor(CLV_F32, 2, (int64_t[]){ROWS, 1})};
  clv_tensor out = case_tensor(CLV_F32, 2, (int64_t[]){ROWS, LENGTH});
  uint64_t seed = 7;
  (void)state;
  case_fill(&inputs[0], -4, 4, &seed);
  case_fill(&inputs[1], -4, 4, &seed);
  case_run("Add", 14, NULL, 0, inputs, 2, &out);
  const float *a = inputs[0].data, *b = inputs[1].data, *y = out.data;
  for (size_t i = 0; i < ROWS * LENGTH; ++i) assert_true(y[i] == a[i] + b[i / LENGTH]);
  free(inputs[0].data);
  free(inputs[1].data);
  free(out.data);
}

static void test_variadic(void **state) {
  static const char *const ops[] = {"Sum", "Mean", "Min", "Max"};
  uint64_t seed = 2;
  (void)state;
  for (int repeat = 0; repeat < 40; ++repeat) {
    for (size_t o = 0; o < COUNT(ops); ++o) {
      int64_t dims[CLV_MAX_RANK];
      int32_t rank = random_dims(&seed, dims);
      uint32_t count = 1 + (uint32_t)(test_random(&seed) % 5), whole = (uint32_t)(test_random(&seed) % count);
      clv_tensor inputs[5];
      for (uint32_t k = 0; k < count; ++k) {
        inputs[k] = random_operand(CLV_F32, rank, dims, k == whole, &seed);
        case_fill(&inputs[k], -4, 4, &seed);
      }
      clv_tensor out = case_tensor(CLV_F32, rank, dims);
      case_run(ops[o], 13, NULL, 0, inputs, count, &out);
      for (size_t i = 0; i < case_count(&out); ++i) {
        double wanted = clv__tensor_get(&inputs[0], source_index(&out, &inputs[0], i));
        for (uint32_t k = 1; k < count; ++k) {
          double value = clv__tensor_get(&inputs[k], source_index(&out, &inputs[k], i));
          wanted = o < 2 ? wanted + value : o == 2 ? fmin(wanted, value) : fmax(wanted, value);
        }
        case_expect(ops[o], &out, i, o == 1 ? wanted / count : wanted, 4);
      }
      for (uint32_t k = 0; k < count; ++k) free(inputs[k].data);
      free(out.data);
    }
  }
}

static void test_where(void **state) {
  static const clv_dtype dtypes[] = {CLV_U8, CLV_F16, CLV_F32, CLV_I64, CLV_BOOL};
  uint64_t seed = 3;
  (void)state;
  for (int repeat = 0; repeat < 200; ++repeat) {
    clv_dtype dtype = dtypes[test_random(&seed) % COUNT(dtypes)];
    int64_t dims[CLV_MAX_RANK];
    int32_t rank = random_dims(&seed, dims);
    uint32_t whole = (uint32_t)(test_random(&seed) % 3);
    clv_tensor inputs[3];
    for (uint32_t k = 0; k < 3; ++k) {
      inputs[k] = random_operand(k == 0 ? CLV_BOOL : dtype, rank, dims, k == whole, &seed);
      case_fill(&inputs[k], 0, 100, &seed);
    }
    clv_tensor out = case_tensor(dtype, rank, dims);
    case_run("Where", 16, NULL, 0, inputs, 3, &out);
    size_t size_bytes = clv_dtype_size_bytes(dtype);
    for (size_t i = 0; i < case_count(&out); ++i) {
      const clv_tensor *from = &inputs[clv__tensor_get(&inputs[0], source_index(&out, &inputs[0], i)) != 0 ? 1 : 2];
      assert_memory_equal((char *)out.data + i * size_bytes, (char *)from->data + source_index(&out, from, i) * size_bytes,
                          size_bytes);
    }
    for (uint32_t k = 0; k < 3; ++k) free(inputs[k].data);
    free(out.data);
  }
}

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}
static double relu(double x) {
  return x > 0 ? x : 0;
}
static double leaky(double x) {
  return x < 0 ? (double)0.01f * x : x;
}
static double elu(double x) {
  return x < 0 ? exp(x) - 1 : x;
}
static double selu(double x) {
  return 1.05070102214813232421875 * (x > 0 ? x : 1.67326319217681884765625 * (exp(x) - 1));
}
static double hard_sigmoid(double x) {
  return fmax(0, fmin(1, (double)0.2f * x + 0.5));
}
static double hard_swish(double x) {
  return x * fmax(0, fmin(1, x / 6 + 0.5));
}
static double swish(double x) {
  return x * sigmoid(x);
}
static double softplus(double x) {
  return log(1 + exp(x));
}
static double mish(double x) {
  return x * tanh(softplus(x));
}
static double softsign(double x) {
  return x / (1 + fabs(x));
}
static double gelu(double x) {
  return 0.5 * x * (1 + erf(x / sqrt(2)));
}
static double reciprocal(double x) {
  return 1 / x;
}
static double sign(double x) {
  return (x > 0) - (x < 0);
}
static double negative(double x) {
  return -x;
}
static double thresholded(double x) {
  return x > 1 ? x : 0;
}
static double shrink(double x) {
  return x < -0.5 ? x : x > 0.5 ? x : 0;
}
static double is_nan(double x) {
  return isnan(x) ? 1 : 0;
}
static double is_infinite(double x) {
  return isinf(x) ? 1 : 0;
}

static const struct {
  const char *op;
  double (*wanted)(double x);
  double low, high;
} functions[] = {
    {"Relu", relu, -5, 5},
    {"LeakyRelu", leaky, -5, 5},
    {"ThresholdedRelu", thresholded, -5, 5},
    {"Elu", elu, -5, 5},
    {"Celu", elu, -5, 5},
    {"Selu", selu, -5, 5},
    {"Sigmoid", sigmoid, -20, 20},
    {"HardSigmoid", hard_sigmoid, -5, 5},
    {"HardSwish", hard_swish, -5, 5},
    {"Swish", swish, -20, 20},
    {"Mish", mish, -8, 8},
    {"Softplus", softplus, -8, 20},
    {"Softsign", softsign, -9, 9},
    {"Tanh", tanh, -5, 5},
    {"Gelu", gelu, -4, 5},
    {"Erf", erf, -4, 4},
    {"Sqrt", sqrt, 0, 100},
    {"Exp", exp, -9, 9},
    {"Log", log, 0.1, 100},
    {"Abs", fabs, -9, 9},
    {"Neg", negative, -9, 9},
    {"Reciprocal", reciprocal, 0.1, 9},
    {"Floor", floor, -9, 9},
    {"Ceil", ceil, -9, 9},
    {"Round", rint, -9, 9},
    {"Sign", sign, -9, 9},
    {"Sin", sin, -9, 9},
    {"Cos", cos, -9, 9},
    {"Tan", tan, -1.5, 1.5},
    {"Asin", asin, -1, 1},
    {"Acos", acos, -1, 1},
    {"Atan", atan, -9, 9},
    {"Sinh", sinh, -5, 5},
    {"Cosh", cosh, -5, 5},
    {"Asinh", asinh, -9, 9},
    {"Acosh", acosh, 1, 20},
    {"Atanh", atanh, -0.99, 0.99},
    {"Shrink", shrink, -2, 2},
};

static void test_functions(void **state) {
  uint64_t seed = 4;
  (void)state;
  for (size_t f = 0; f < COUNT(functions); ++f) {
    for (size_t d = 0; d < COUNT(float_dtypes); ++d) {
      clv_tensor x = case_tensor(float_dtypes[d], 2, (int64_t[]){7, 601}),
                 y = case_tensor(float_dtypes[d], 2, (int64_t[]){7, 601});
      case_fill(&x, functions[f].low, functions[f].high, &seed);
      case_run(functions[f].op, 24, NULL, 0, &x, 1, &y);
      for (size_t i = 0; i < case_count(&x); ++i) {
        double value = clv__tensor_get(&x, i);
        case_expect(functions[f].op, &y, i, functions[f].wanted(value), 0.02 + 0.1 * fabs(value));
      }
      free(x.data);
      free(y.data);
    }
  }
}

/* Tests infinities, NaNs and zeros, which optimised code often handles wrongly. */
static void test_special_values(void **state) {
  static const double values[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 0.0, -0.0, 1e30, -1e30, 0.5, -0.5, 2.5};
  static const struct {
    const char *op;
    double (*wanted)(double x);
  } cases[] = {{"IsNaN", is_nan}, {"IsInf", is_infinite}, {"Exp", exp},     {"Sigmoid", sigmoid}, {"Tanh", tanh}, {"Round", rint},
               {"Abs", fabs},     {"Neg", negative},      {"Floor", floor}, {"Sqrt", sqrt},       {"Erf", erf}};
  (void)state;
  for (size_t c = 0; c < COUNT(cases); ++c) {
    for (size_t d = 0; d < COUNT(float_dtypes); ++d) {
      bool test = cases[c].op[0] == 'I';
      int64_t count = COUNT(values);
      clv_tensor x = case_tensor(float_dtypes[d], 1, &count), y = case_tensor(test ? CLV_BOOL : float_dtypes[d], 1, &count);
      for (size_t i = 0; i < COUNT(values); ++i) case_set(&x, i, values[i]);
      case_run(cases[c].op, 20, NULL, 0, &x, 1, &y);
      for (size_t i = 0; i < COUNT(values); ++i) case_expect(cases[c].op, &y, i, cases[c].wanted(clv__tensor_get(&x, i)), 0);
      free(x.data);
      free(y.data);
    }
  }
}

static void test_clip(void **state) {
  uint64_t seed = 5;
  (void)state;
  for (size_t d = 0; d < COUNT(float_dtypes) + COUNT(integer_dtypes); ++d) {
    clv_dtype dtype = d < COUNT(float_dtypes) ? float_dtypes[d] : integer_dtypes[d - COUNT(float_dtypes)];
    int64_t count = 333;
    clv_tensor inputs[3] = {case_tensor(dtype, 1, &count), case_tensor(dtype, 0, NULL), case_tensor(dtype, 0, NULL)};
    clv_tensor out = case_tensor(dtype, 1, &count);
    case_fill(&inputs[0], 0, 100, &seed);
    case_set(&inputs[1], 0, 20);
    case_set(&inputs[2], 0, 70);
    for (uint32_t given = 1; given <= 3; ++given) {
      case_run("Clip", 13, NULL, 0, inputs, given, &out);
      for (size_t i = 0; i < (size_t)count; ++i) {
        double wanted = clv__tensor_get(&inputs[0], i);
        if (given > 1) wanted = fmax(wanted, 20);
        if (given > 2) wanted = fmin(wanted, 70);
        case_expect("Clip", &out, i, wanted, 0);
      }
    }
    for (int k = 0; k < 3; ++k) free(inputs[k].data);
    free(out.data);
  }
  const float low = -1, high = 1;
  clv_attribute bounds[2] = {case_float("min", &low), case_float("max", &high)};
  float x[3] = {-3, 0.5f, 3}, y[3];
  clv_tensor input = clv__tensor_make(CLV_F32, 1, (int64_t[]){3}, x), output = clv__tensor_make(CLV_F32, 1, (int64_t[]){3}, y);
  case_run("Clip", 6, bounds, 2, &input, 1, &output);
  assert_true(y[0] == -1 && y[1] == 0.5f && y[2] == 1);
}

/* The expected result of a Cast of `value` to `to`, as a double. For a float dtype, the caller rounds it to that dtype. */
static double wanted_cast(double value, clv_dtype to) {
  static const struct {
    double low, high;
  } ranges[] = {[CLV_I8] = {-128, 127},
                [CLV_U8] = {0, 255},
                [CLV_I16] = {-32768, 32767},
                [CLV_U16] = {0, 65535},
                [CLV_I32] = {-0x1p31, 0x1p31 - 1},
                [CLV_U32] = {0, 0x1p32 - 1},
                [CLV_I64] = {-0x1p63, 0x1p63},
                [CLV_U64] = {0, 0x1p64}};
  if (to == CLV_BOOL) return value != 0 ? 1 : 0;
  if ((CLV__DTYPE_BIT(to) & CLV__DTYPES_FLOAT) != 0) return value;
  if (isnan(value)) return 0;
  return fmin(fmax(trunc(value), ranges[to].low), ranges[to].high);
}

static void test_cast_from_floats(void **state) {
  static const clv_dtype targets[] = {CLV_F32, CLV_F64, CLV_F16, CLV_BF16, CLV_I8,  CLV_I16, CLV_I32,
                                      CLV_I64, CLV_U8,  CLV_U16, CLV_U32,  CLV_U64, CLV_BOOL};
  static const double values[] = {0,
                                  -0.0,
                                  1,
                                  -1,
                                  0.4,
                                  -0.6,
                                  2.5,
                                  127.9,
                                  128,
                                  -128.9,
                                  -129,
                                  255.5,
                                  256,
                                  65535,
                                  65536,
                                  7e4,
                                  -7e4,
                                  1e10,
                                  -1e10,
                                  1e19,
                                  -1e19,
                                  1e30,
                                  -1e30,
                                  (double)NAN,
                                  (double)INFINITY,
                                  -(double)INFINITY,
                                  1e-8,
                                  6e-8,
                                  3e-39};
  (void)state;
  for (size_t f = 0; f < COUNT(float_dtypes); ++f) {
    for (size_t t = 0; t < COUNT(targets); ++t) {
      int64_t count = COUNT(values), to = targets[t];
      clv_tensor x = case_tensor(float_dtypes[f], 1, &count), y = case_tensor(targets[t], 1, &count);
      for (size_t i = 0; i < COUNT(values); ++i) case_set(&x, i, values[i]);
      clv_attribute attribute = case_int("to", &to);
      case_run("Cast", 13, &attribute, 1, &x, 1, &y);
      for (size_t i = 0; i < COUNT(values); ++i) {
        double wanted = wanted_cast(clv__tensor_get(&x, i), targets[t]);
        clv_tensor rounded = case_tensor(targets[t], 0, NULL);
        if ((CLV__DTYPE_BIT(targets[t]) & CLV__DTYPES_FLOAT) != 0) {
          case_set(&rounded, 0, wanted);
          wanted = clv__tensor_get(&rounded, 0);
        }
        double got = clv__tensor_get(&y, i);
        if (targets[t] == CLV_I64 || targets[t] == CLV_U64) got = got < 0x1p63 || wanted > 0x1p63 ? got : wanted;
        if (!(got == wanted || (isnan(got) && isnan(wanted)))) {
          fail_msg("cast of %s to %s: %g becomes %g, expected %g", clv_dtype_name(x.dtype), clv_dtype_name(y.dtype),
                   clv__tensor_get(&x, i), got, wanted);
        }
        free(rounded.data);
      }
      free(x.data);
      free(y.data);
    }
  }
}

/* A cast between integers must keep the low bits; a cast from an integer to a float must round once. */
static void test_cast_from_integers(void **state) {
  uint64_t seed = 6;
  (void)state;
  for (size_t f = 0; f < COUNT(integer_dtypes); ++f) {
    int64_t count = 517;
    clv_tensor x = case_tensor(integer_dtypes[f], 1, &count);
    case_fill(&x, 0, 100, &seed);
    for (size_t t = 0; t < COUNT(integer_dtypes); ++t) {
      int64_t to = integer_dtypes[t];
      clv_tensor y = case_tensor(integer_dtypes[t], 1, &count);
      clv_attribute attribute = case_int("to", &to);
      case_run("Cast", 13, &attribute, 1, &x, 1, &y);
      for (size_t i = 0; i < (size_t)count; ++i) {
        int64_t wanted = clv__tensor_get_int(&x, i);
        assert_memory_equal((char *)y.data + i * clv_dtype_size_bytes(y.dtype), &wanted, clv_dtype_size_bytes(y.dtype));
      }
      free(y.data);
    }
    clv_tensor y = case_tensor(CLV_F32, 1, &count);
    const int64_t to = CLV_F32;
    clv_attribute attribute = case_int("to", &to);
    case_run("Cast", 13, &attribute, 1, &x, 1, &y);
    for (size_t i = 0; i < (size_t)count; ++i) {
      int64_t value = clv__tensor_get_int(&x, i);
      assert_true(((float *)y.data)[i] == (x.dtype == CLV_U64 ? (float)(uint64_t)value : (float)value));
    }
    free(y.data);
    free(x.data);
  }
}

static void test_integer_corners(void **state) {
  int32_t a[4] = {INT32_MIN, 7, -7, INT32_MIN}, b[4] = {-1, 0, 2, 0}, y[4];
  clv_tensor inputs[2] = {clv__tensor_make(CLV_I32, 1, (int64_t[]){4}, a), clv__tensor_make(CLV_I32, 1, (int64_t[]){4}, b)};
  clv_tensor out = clv__tensor_make(CLV_I32, 1, (int64_t[]){4}, y);
  (void)state;
  case_run("Div", 14, NULL, 0, inputs, 2, &out);
  assert_true(y[0] == INT32_MIN && y[1] == 0 && y[2] == -3 && y[3] == 0);
  case_run("Mod", 13, NULL, 0, inputs, 2, &out);
  assert_true(y[0] == 0 && y[1] == 0 && y[2] == 1 && y[3] == 0);
  const int64_t yes = 1;
  clv_attribute attribute = case_int("fmod", &yes);
  case_run("Mod", 13, &attribute, 1, inputs, 2, &out);
  assert_true(y[0] == 0 && y[1] == 0 && y[2] == -1 && y[3] == 0);
  float exponents[4] = {1, 2, 3, 0.5f};
  inputs[0].data = (int32_t[]){-2, 3, -3, 16};
  inputs[1] = clv__tensor_make(CLV_F32, 1, (int64_t[]){4}, exponents);
  case_run("Pow", 13, NULL, 0, inputs, 2, &out);
  assert_true(y[0] == -2 && y[1] == 9 && y[2] == -27 && y[3] == 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pairs),
      cmocka_unit_test(test_variadic),
      cmocka_unit_test(test_long_rows),
      cmocka_unit_test(test_where),
      cmocka_unit_test(test_functions),
      cmocka_unit_test(test_special_values),
      cmocka_unit_test(test_clip),
      cmocka_unit_test(test_cast_from_floats),
      cmocka_unit_test(test_cast_from_integers),
      cmocka_unit_test(test_integer_corners),
  };
  return RUN_BOTH_KERNELS(tests);
}
