/* Element-wise operators of one input: activations, rounding, exponentials, trigonometry, tests, Clip. Floats are computed in
 * double and rounded once. Integers wrap. The comparisons are written so that a NaN gives a NaN; only ThresholdedRelu, Shrink and
 * Binarizer give 0 for it. */
#include <math.h>

#include "operators/common/element.h"
#include "operators/run.h"

/* `a` and `b` are the operator's attributes. */
typedef double real_fn(double x, double a, double b);

static double unit(double x) {
  return x < 0 ? 0 : x > 1 ? 1 : x;
}

#define REAL(name, expression)                       \
  static double name(double x, double a, double b) { \
    (void)a;                                         \
    (void)b;                                         \
    return expression;                               \
  }
REAL(relu, x < 0 ? 0 : x)
REAL(leaky_relu, x < 0 ? a * x : x)
REAL(thresholded_relu, x > a ? x : 0)
REAL(elu, x < 0 ? a * expm1(x) : x)
REAL(selu, b *(x > 0 ? x : a * expm1(x)))
REAL(celu, x < 0 ? a * expm1(x / a) : x) /* max(0, x) + min(0, a expm1(x / a)): one of the two terms is always 0 */
REAL(sigmoid, 1 / (1 + exp(-x)))
REAL(hard_sigmoid, unit(a *x + b))
REAL(hard_swish, x *unit(x / 6 + 0.5))
REAL(swish, x / (1 + exp(-a * x)))
REAL(softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))
REAL(mish, x *tanh(softplus(x, 0, 0)))
REAL(softsign, x / (1 + fabs(x)))
REAL(gelu, 0.5 * x * erfc(-x / sqrt(2)))
REAL(gelu_tanh, 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))))
REAL(negative, -x)
REAL(reciprocal, 1 / x)
REAL(sign, x > 0 ? 1 : x < 0 ? -1 : x == 0 ? 0 : x)
REAL(shrink, x<-a ? x + b : x> a ? x - b : 0)
REAL(binarizer, x > a)
REAL(is_nan, x != x)
REAL(is_infinite, (a != 0 && x == INFINITY) || (b != 0 && x == -INFINITY))
REAL(tanh_of, tanh(x))
REAL(erf_of, erf(x))
REAL(sqrt_of, sqrt(x))
REAL(exp_of, exp(x))
REAL(log_of, log(x))
REAL(abs_of, fabs(x))
REAL(floor_of, floor(x))
REAL(ceil_of, ceil(x))
REAL(round_of, rint(x)) /* halves to even */
REAL(sin_of, sin(x))
REAL(cos_of, cos(x))
REAL(tan_of, tan(x))
REAL(asin_of, asin(x))
REAL(acos_of, acos(x))
REAL(atan_of, atan(x))
REAL(sinh_of, sinh(x))
REAL(cosh_of, cosh(x))
REAL(asinh_of, asinh(x))
REAL(acosh_of, acosh(x))
REAL(atanh_of, atanh(x))

/* The function of an operator on integers and bool; NULL if it does not support integers. Unsigned values are passed as positive
 * numbers, except for the upper half of u64, which is passed as negative ones. */
typedef int64_t whole_fn(int64_t x);

static int64_t whole_relu(int64_t x) {
  return x < 0 ? 0 : x;
}
static int64_t whole_negative(int64_t x) {
  return (int64_t)(0 - (uint64_t)x);
}
static int64_t whole_abs(int64_t x) {
  return x < 0 ? whole_negative(x) : x; /* never called for u64 */
}
static int64_t whole_sign(int64_t x) {
  return (x > 0) - (x < 0);
}
static int64_t whole_not(int64_t x) {
  return x == 0;
}
static int64_t bitwise_not(int64_t x) {
  return ~x;
}

typedef struct unary {
  const char *op;
  uint32_t dtypes;
  real_fn *real;
  whole_fn *whole;
  const char *a_name, *b_name;
  float a, b; /* default values of the attributes */
} unary;

/* X(operator, dtypes, function of floats, function of integers, names of the attributes, their defaults) */
#define UNARY_OPERATORS(X)                                                                                           \
  X("Relu", CLV__DTYPES_FLOAT | CLV__DTYPES_SIGNED, relu, whole_relu, NULL, NULL, 0, 0)                              \
  X("LeakyRelu", CLV__DTYPES_FLOAT, leaky_relu, NULL, "alpha", NULL, 0.01f, 0)                                       \
  X("ThresholdedRelu", CLV__DTYPES_FLOAT, thresholded_relu, NULL, "alpha", NULL, 1, 0)                               \
  X("Elu", CLV__DTYPES_FLOAT, elu, NULL, "alpha", NULL, 1, 0)                                                        \
  X("Selu", CLV__DTYPES_FLOAT, selu, NULL, "alpha", "gamma", 1.67326319217681884765625f, 1.05070102214813232421875f) \
  X("Celu", CLV__DTYPES_FLOAT, celu, NULL, "alpha", NULL, 1, 0)                                                      \
  X("Sigmoid", CLV__DTYPES_FLOAT, sigmoid, NULL, NULL, NULL, 0, 0)                                                   \
  X("HardSigmoid", CLV__DTYPES_FLOAT, hard_sigmoid, NULL, "alpha", "beta", 0.2f, 0.5f)                               \
  X("HardSwish", CLV__DTYPES_FLOAT, hard_swish, NULL, NULL, NULL, 0, 0)                                              \
  X("Swish", CLV__DTYPES_FLOAT, swish, NULL, "alpha", NULL, 1, 0)                                                    \
  X("Mish", CLV__DTYPES_FLOAT, mish, NULL, NULL, NULL, 0, 0)                                                         \
  X("Softplus", CLV__DTYPES_FLOAT, softplus, NULL, NULL, NULL, 0, 0)                                                 \
  X("Softsign", CLV__DTYPES_FLOAT, softsign, NULL, NULL, NULL, 0, 0)                                                 \
  X("Tanh", CLV__DTYPES_FLOAT, tanh_of, NULL, NULL, NULL, 0, 0)                                                      \
  X("Erf", CLV__DTYPES_FLOAT, erf_of, NULL, NULL, NULL, 0, 0)                                                        \
  X("Sqrt", CLV__DTYPES_FLOAT, sqrt_of, NULL, NULL, NULL, 0, 0)                                                      \
  X("Exp", CLV__DTYPES_FLOAT, exp_of, NULL, NULL, NULL, 0, 0)                                                        \
  X("Log", CLV__DTYPES_FLOAT, log_of, NULL, NULL, NULL, 0, 0)                                                        \
  X("Abs", CLV__DTYPES_NUMBER, abs_of, whole_abs, NULL, NULL, 0, 0)                                                  \
  X("Neg", CLV__DTYPES_FLOAT | CLV__DTYPES_SIGNED, negative, whole_negative, NULL, NULL, 0, 0)                       \
  X("Reciprocal", CLV__DTYPES_FLOAT, reciprocal, NULL, NULL, NULL, 0, 0)                                             \
  X("Floor", CLV__DTYPES_FLOAT, floor_of, NULL, NULL, NULL, 0, 0)                                                    \
  X("Ceil", CLV__DTYPES_FLOAT, ceil_of, NULL, NULL, NULL, 0, 0)                                                      \
  X("Round", CLV__DTYPES_FLOAT, round_of, NULL, NULL, NULL, 0, 0)                                                    \
  X("Sign", CLV__DTYPES_NUMBER, sign, whole_sign, NULL, NULL, 0, 0)                                                  \
  X("Sin", CLV__DTYPES_FLOAT, sin_of, NULL, NULL, NULL, 0, 0)                                                        \
  X("Cos", CLV__DTYPES_FLOAT, cos_of, NULL, NULL, NULL, 0, 0)                                                        \
  X("Tan", CLV__DTYPES_FLOAT, tan_of, NULL, NULL, NULL, 0, 0)                                                        \
  X("Asin", CLV__DTYPES_FLOAT, asin_of, NULL, NULL, NULL, 0, 0)                                                      \
  X("Acos", CLV__DTYPES_FLOAT, acos_of, NULL, NULL, NULL, 0, 0)                                                      \
  X("Atan", CLV__DTYPES_FLOAT, atan_of, NULL, NULL, NULL, 0, 0)                                                      \
  X("Sinh", CLV__DTYPES_FLOAT, sinh_of, NULL, NULL, NULL, 0, 0)                                                      \
  X("Cosh", CLV__DTYPES_FLOAT, cosh_of, NULL, NULL, NULL, 0, 0)                                                      \
  X("Asinh", CLV__DTYPES_FLOAT, asinh_of, NULL, NULL, NULL, 0, 0)                                                    \
  X("Acosh", CLV__DTYPES_FLOAT, acosh_of, NULL, NULL, NULL, 0, 0)                                                    \
  X("Atanh", CLV__DTYPES_FLOAT, atanh_of, NULL, NULL, NULL, 0, 0)                                                    \
  X("IsNaN", CLV__DTYPES_FLOAT, is_nan, NULL, NULL, NULL, 0, 0)                                                      \
  X("Not", CLV__DTYPE_BIT(CLV_BOOL), NULL, whole_not, NULL, NULL, 0, 0)                                              \
  X("BitwiseNot", CLV__DTYPES_INTEGER, NULL, bitwise_not, NULL, NULL, 0, 0)

#define ENTRY(...) {__VA_ARGS__},
static const unary table[] = {UNARY_OPERATORS(ENTRY)};

static void apply(const clv__kernel_call *call, real_fn *real, double a, double b) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  const int64_t count = clv__dims_count(x, 0, x->rank);
  for (int64_t i = 0; i < count; ++i) clv__element_store(y, i, real(clv__element_load(x, i), a, b));
}

static void apply_whole(const clv__kernel_call *call, whole_fn *whole) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  const int64_t count = clv__dims_count(x, 0, x->rank);
  for (int64_t i = 0; i < count; ++i) clv__element_store_int(y, i, whole(clv__element_load_int(x, i)));
}

static int64_t same(int64_t x) {
  return x;
}
static int64_t is_not_zero(int64_t x) {
  return x != 0;
}

static clv_status run_unary(const clv__kernel_call *call) {
  const unary *entry = table;
  while (strcmp(entry->op, call->op) != 0) ++entry; /* always found: clv__kernels_unary lists the same names */
  if (clv__element_is_float(&call->inputs[0])) {
    const double a = (double)(entry->a_name != NULL ? clv__attribute_float(call->attributes, entry->a_name, entry->a) : 0);
    const double b = (double)(entry->b_name != NULL ? clv__attribute_float(call->attributes, entry->b_name, entry->b) : 0);
    apply(call, entry->real, a, b);
    return CLV_OK;
  }
  whole_fn *whole = entry->whole;
  if (call->inputs[0].dtype == CLV_U64) whole = whole == whole_abs ? same : whole == whole_sign ? is_not_zero : whole;
  apply_whole(call, whole);
  return CLV_OK;
}

static clv_status run_is_infinite(const clv__kernel_call *call) {
  const int64_t positive = clv__attribute_int(call->attributes, "detect_positive", 1);
  apply(call, is_infinite, (double)positive, (double)clv__attribute_int(call->attributes, "detect_negative", 1));
  return CLV_OK;
}

static clv_status run_gelu(const clv__kernel_call *call) {
  apply(call, clv__attribute_is(call->attributes, "approximate", "tanh", false) ? gelu_tanh : gelu, 0, 0);
  return CLV_OK;
}

/* Integers are computed in double too, because lambd and bias may be fractions. */
static clv_status run_shrink(const clv__kernel_call *call) {
  const float lambd = clv__attribute_float(call->attributes, "lambd", 0.5f);
  apply(call, shrink, (double)lambd, (double)clv__attribute_float(call->attributes, "bias", 0));
  return CLV_OK;
}

static clv_status run_binarizer(const clv__kernel_call *call) {
  apply(call, binarizer, (double)clv__attribute_float(call->attributes, "threshold", 0), 0);
  return CLV_OK;
}

/* The largest finite number of a float dtype. */
static double largest_of(clv_dtype dtype) {
  switch (dtype) {
    case CLV_F16:
      return 65504;
    case CLV_BF16:
      return 0x1.fep127;
    case CLV_F64:
      return 0x1.fffffffffffffp1023;
    default:
      return 0x1.fffffep127;
  }
}

/* Clips at the low bound first, then at the high bound, which wins if the bounds are in the wrong order. */
static void clip_reals(const clv__kernel_call *call, const clv_tensor *low_given, const clv_tensor *high_given) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  double low = low_given != NULL ? clv__element_load(low_given, 0) : -largest_of(x->dtype);
  double high = high_given != NULL ? clv__element_load(high_given, 0) : largest_of(x->dtype);
  if (call->opset < 11) {
    low = (double)clv__attribute_float(call->attributes, "min", (float)-largest_of(CLV_F32));
    high = (double)clv__attribute_float(call->attributes, "max", (float)largest_of(CLV_F32));
  }
  const int64_t count = clv__dims_count(x, 0, x->rank);
  for (int64_t i = 0; i < count; ++i) {
    double value = clv__element_load(x, i);
    if (value < low) value = low;
    if (value > high) value = high;
    clv__element_store(y, i, value);
  }
}

static bool is_less(int64_t a, int64_t b, bool is_u64) {
  return is_u64 ? (uint64_t)a < (uint64_t)b : a < b;
}

static clv_status run_clip(const clv__kernel_call *call) {
  const clv_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  const clv_tensor *low = call->opset < 11 ? NULL : clv__call_input(call, 1);
  const clv_tensor *high = call->opset < 11 ? NULL : clv__call_input(call, 2);
  const bool is_u64 = x->dtype == CLV_U64;
  if (clv__element_is_float(x)) {
    clip_reals(call, low, high);
    return CLV_OK;
  }
  const int64_t count = clv__dims_count(x, 0, x->rank);
  for (int64_t i = 0; i < count; ++i) {
    int64_t value = clv__element_load_int(x, i);
    if (low != NULL && is_less(value, clv__element_load_int(low, 0), is_u64)) value = clv__element_load_int(low, 0);
    if (high != NULL && is_less(clv__element_load_int(high, 0), value, is_u64)) value = clv__element_load_int(high, 0);
    clv__element_store_int(y, i, value);
  }
  return CLV_OK;
}

#define KERNEL(op, dtypes, ...) {"", op, dtypes, run_unary, NULL, NULL},

const clv__kernel clv__kernels_unary[] = {
    UNARY_OPERATORS(KERNEL){"", "IsInf", CLV__DTYPES_FLOAT, run_is_infinite, NULL, NULL},
    {"", "Gelu", CLV__DTYPES_FLOAT, run_gelu, NULL, NULL},
    {"", "Shrink", CLV__DTYPES_NUMBER, run_shrink, NULL, NULL},
    {"", "Clip", CLV__DTYPES_NUMBER, run_clip, NULL, NULL},
    {"ai.onnx.ml", "Binarizer",
     CLV__DTYPE_BIT(CLV_F32) | CLV__DTYPE_BIT(CLV_F64) | CLV__DTYPE_BIT(CLV_I32) | CLV__DTYPE_BIT(CLV_I64), run_binarizer, NULL,
     NULL},
    {.op = NULL},
};
