/* Elementwise operators of one input: activations, rounding, exponentials, trigonometry, tests, Clip.
 *
 * A float operator is one expression, compiled for f32 and for f64 (tgmath.h selects the functions). f16 and bf16 are converted
 * to f32 and use its row functions. */
#include <assert.h>
#include <math.h>
#include <tgmath.h>

#include "backends/common/kernels/elementwise.h"
#include "backends/common/kernels/families.h"
#include "operators/common/exponential.h"
#include "operators/common/rows.h"

/* Up to two numbers from attributes: `a` and `b` in the expressions. */
typedef struct parameters {
  double a, b;
} parameters;

#define FLOAT_ROW(row_name, T, R, expression)            \
  static void row_name(const clv__row *row) {            \
    typedef T real;                                      \
    const parameters *values = row->params;              \
    const real a = (real)values->a, b = (real)values->b; \
    const real *source = row->in[0];                     \
    R *target = row->out;                                \
    (void)a;                                             \
    (void)b;                                             \
    CLV__ROW_LOOP(row->count) {                          \
      const real x = source[i];                          \
      target[i] = (R)(expression);                       \
    }                                                    \
  }
#define FLOAT_OP(name, expression)                \
  FLOAT_ROW(name##_f32, float, float, expression) \
  FLOAT_ROW(name##_f64, double, double, expression)
/* Defines an f32 row function that vectorises: the expression must not branch or call a function that is not inlined. */
#define VECTOR_ROW(row_name, expression) FLOAT_ROW(row_name, float, float, expression)
#define VECTOR_OP(name, expression)  \
  VECTOR_ROW(name##_f32, expression) \
  FLOAT_ROW(name##_f64, double, double, expression)
#define FLOAT_TEST(name, expression)                \
  FLOAT_ROW(name##_f32, float, uint8_t, expression) \
  FLOAT_ROW(name##_f64, double, uint8_t, expression)

/* Both comparisons with a NaN are false, so a NaN is returned unchanged. */
static inline float unit_f32(float x) {
  return x < 0 ? 0 : x > 1 ? 1 : x;
}
static inline double unit_f64(double x) {
  return x < 0 ? 0 : x > 1 ? 1 : x;
}
#define UNIT(x) _Generic((x), float : unit_f32, double : unit_f64)(x)
#define SOFTPLUS(x) ((x) > 0 ? (x) + log1p(exp(-(x))) : log1p(exp(x)))

VECTOR_OP(relu, x < 0 ? (real)0 : x)
VECTOR_OP(leaky_relu, x < 0 ? a * x : x)
FLOAT_OP(thresholded_relu, x > a ? x : (real)0)
FLOAT_OP(elu, x < 0 ? a * expm1(x) : x)
FLOAT_OP(selu, b *(x > 0 ? x : a * expm1(x)))
FLOAT_OP(celu, x < 0 ? a * expm1(x / a) : x) /* max(0, x) + min(0, …): one term is 0, for either sign of a */
VECTOR_ROW(sigmoid_f32, clv__sigmoid_f32(x))
FLOAT_ROW(sigmoid_f64, double, double, 1 / (1 + exp(-x)))
VECTOR_OP(hard_sigmoid, UNIT(a *x + b))
VECTOR_OP(hard_swish, x *UNIT(x *(real)(1.0 / 6.0) + (real)0.5))
VECTOR_ROW(swish_f32, x *clv__sigmoid_f32(a *x))
FLOAT_ROW(swish_f64, double, double, x / (1 + exp(-a * x)))
/* tanh(log(1 + e^x)) as a function of e = e^x, without the logarithm. For x > 20 it is 1. */
#define MISH_RATIO(e) ((e) * ((e) + 2) / ((e) * ((e) + 2) + 2))
FLOAT_OP(mish, x > 20 ? x : x * MISH_RATIO(exp(x)))
FLOAT_OP(softplus, SOFTPLUS(x))
FLOAT_OP(softsign, x / (1 + fabs(x)))
VECTOR_ROW(tanh_f32, clv__tanh_f32(x))
FLOAT_ROW(tanh_f64, double, double, tanh(x))
FLOAT_OP(gelu, (real)0.5 * x * erfc(x * (real)-0.70710678118654752440))
FLOAT_OP(gelu_tanh, (real)0.5 * x * (1 + tanh((real)0.79788456080286535588 * (x + (real)0.044715 * x * x * x))))
FLOAT_OP(erf, erf(x))
FLOAT_OP(sqrt, sqrt(x))
VECTOR_ROW(exp_f32, clv__exp_whole_f32(x))
FLOAT_ROW(exp_f64, double, double, exp(x))
FLOAT_OP(log, log(x))
FLOAT_OP(abs, fabs(x))
FLOAT_OP(neg, -x)
FLOAT_OP(reciprocal, 1 / x)
FLOAT_OP(floor, floor(x))
FLOAT_OP(ceil, ceil(x))
FLOAT_OP(round, rint(x))
FLOAT_OP(sign, x > 0 ? (real)1 : x < 0 ? (real)-1 : x == 0 ? (real)0 : x) /* of -0: +0 */
FLOAT_OP(sin, sin(x))
FLOAT_OP(cos, cos(x))
FLOAT_OP(tan, tan(x))
FLOAT_OP(asin, asin(x))
FLOAT_OP(acos, acos(x))
FLOAT_OP(atan, atan(x))
FLOAT_OP(sinh, sinh(x))
FLOAT_OP(cosh, cosh(x))
FLOAT_OP(asinh, asinh(x))
FLOAT_OP(acosh, acosh(x))
FLOAT_OP(atanh, atanh(x))
FLOAT_OP(shrink, x<-a ? x + b : x> a ? x - b : (real)0)
FLOAT_TEST(is_nan, x != x)
FLOAT_TEST(is_inf, (a != 0 && x == (real)INFINITY) || (b != 0 && x == (real)-INFINITY))

/* Integers wrap, as in two's complement. */
#define INTEGER_ROW(row_name, T, expression)  \
  static void row_name(const clv__row *row) { \
    const T *source = row->in[0];             \
    T *target = row->out;                     \
    CLV__ROW_LOOP(row->count) {               \
      const T x = source[i];                  \
      target[i] = (T)(expression);            \
    }                                         \
  }
#define SIGNED_OP(name, expression)            \
  INTEGER_ROW(name##_i8, int8_t, expression)   \
  INTEGER_ROW(name##_i16, int16_t, expression) \
  INTEGER_ROW(name##_i32, int32_t, expression) \
  INTEGER_ROW(name##_i64, int64_t, expression)
#define UNSIGNED_OP(name, expression)           \
  INTEGER_ROW(name##_u8, uint8_t, expression)   \
  INTEGER_ROW(name##_u16, uint16_t, expression) \
  INTEGER_ROW(name##_u32, uint32_t, expression) \
  INTEGER_ROW(name##_u64, uint64_t, expression)
#define SIGNED_ROWS(name) [CLV_I8] = name##_i8, [CLV_I16] = name##_i16, [CLV_I32] = name##_i32, [CLV_I64] = name##_i64
#define UNSIGNED_ROWS(name) [CLV_U8] = name##_u8, [CLV_U16] = name##_u16, [CLV_U32] = name##_u32, [CLV_U64] = name##_u64

SIGNED_OP(relu, x < 0 ? 0 : x)
SIGNED_OP(abs, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)
UNSIGNED_OP(abs, x)
SIGNED_OP(neg, 0 - (uint64_t)x)
SIGNED_OP(sign, (x > 0) - (x < 0))
UNSIGNED_OP(sign, x > 0)
UNSIGNED_OP(bitwise_not, ~x)
INTEGER_ROW(not_bool, uint8_t, x == 0)

enum { DTYPE_COUNT = CLV__DTYPE_COUNT };

typedef struct unary {
  const char *op;
  double cost;
  const char *a_name, *b_name;
  double a, b; /* default values of the attributes */
  clv__row_fn rows[DTYPE_COUNT];
} unary;

#define FLOATS(name) \
  { [CLV_F32] = name##_f32, [CLV_F64] = name##_f64, [CLV_F16] = name##_f32, [CLV_BF16] = name##_f32 }
#define FLOATS_AND(name, ...) \
  { [CLV_F32] = name##_f32, [CLV_F64] = name##_f64, [CLV_F16] = name##_f32, [CLV_BF16] = name##_f32, __VA_ARGS__ }
/* The row function of an unsigned type also serves the signed type of that size, because the resulting bits are the same. */
#define INTEGER_BITS(name) \
  UNSIGNED_ROWS(name), [CLV_I8] = name##_u8, [CLV_I16] = name##_u16, [CLV_I32] = name##_u32, [CLV_I64] = name##_u64

/* X(operator, cost, names of the attributes `a` and `b` or NULL, their defaults, rows by dtype) */
#define UNARY_OPERATORS(X)                                                                            \
  X("Relu", 1, NULL, NULL, 0, 0, FLOATS_AND(relu, SIGNED_ROWS(relu)))                                 \
  X("LeakyRelu", 1, "alpha", NULL, 0.01f, 0, FLOATS(leaky_relu))                                      \
  X("ThresholdedRelu", 1, "alpha", NULL, 1, 0, FLOATS(thresholded_relu))                              \
  X("Elu", 20, "alpha", NULL, 1, 0, FLOATS(elu))                                                      \
  X("Selu", 20, "alpha", "gamma", 1.67326319217681884765625, 1.05070102214813232421875, FLOATS(selu)) \
  X("Celu", 40, "alpha", NULL, 1, 0, FLOATS(celu))                                                    \
  X("Sigmoid", 15, NULL, NULL, 0, 0, FLOATS(sigmoid))                                                 \
  X("HardSigmoid", 2, "alpha", "beta", 0.2f, 0.5f, FLOATS(hard_sigmoid))                              \
  X("HardSwish", 2, NULL, NULL, 0, 0, FLOATS(hard_swish))                                             \
  X("Swish", 15, "alpha", NULL, 1, 0, FLOATS(swish))                                                  \
  X("Mish", 20, NULL, NULL, 0, 0, FLOATS(mish))                                                       \
  X("Softplus", 30, NULL, NULL, 0, 0, FLOATS(softplus))                                               \
  X("Softsign", 2, NULL, NULL, 0, 0, FLOATS(softsign))                                                \
  X("Tanh", 20, NULL, NULL, 0, 0, FLOATS(tanh))                                                       \
  X("Erf", 20, NULL, NULL, 0, 0, FLOATS(erf))                                                         \
  X("Sqrt", 2, NULL, NULL, 0, 0, FLOATS(sqrt))                                                        \
  X("Exp", 10, NULL, NULL, 0, 0, FLOATS(exp))                                                         \
  X("Log", 10, NULL, NULL, 0, 0, FLOATS(log))                                                         \
  X("Abs", 1, NULL, NULL, 0, 0, FLOATS_AND(abs, SIGNED_ROWS(abs), UNSIGNED_ROWS(abs)))                \
  X("Neg", 1, NULL, NULL, 0, 0, FLOATS_AND(neg, SIGNED_ROWS(neg)))                                    \
  X("Reciprocal", 2, NULL, NULL, 0, 0, FLOATS(reciprocal))                                            \
  X("Floor", 2, NULL, NULL, 0, 0, FLOATS(floor))                                                      \
  X("Ceil", 2, NULL, NULL, 0, 0, FLOATS(ceil))                                                        \
  X("Round", 2, NULL, NULL, 0, 0, FLOATS(round))                                                      \
  X("Sign", 1, NULL, NULL, 0, 0, FLOATS_AND(sign, SIGNED_ROWS(sign), UNSIGNED_ROWS(sign)))            \
  X("Sin", 20, NULL, NULL, 0, 0, FLOATS(sin))                                                         \
  X("Cos", 20, NULL, NULL, 0, 0, FLOATS(cos))                                                         \
  X("Tan", 30, NULL, NULL, 0, 0, FLOATS(tan))                                                         \
  X("Asin", 20, NULL, NULL, 0, 0, FLOATS(asin))                                                       \
  X("Acos", 20, NULL, NULL, 0, 0, FLOATS(acos))                                                       \
  X("Atan", 20, NULL, NULL, 0, 0, FLOATS(atan))                                                       \
  X("Sinh", 30, NULL, NULL, 0, 0, FLOATS(sinh))                                                       \
  X("Cosh", 30, NULL, NULL, 0, 0, FLOATS(cosh))                                                       \
  X("Asinh", 30, NULL, NULL, 0, 0, FLOATS(asinh))                                                     \
  X("Acosh", 30, NULL, NULL, 0, 0, FLOATS(acosh))                                                     \
  X("Atanh", 30, NULL, NULL, 0, 0, FLOATS(atanh))                                                     \
  X("IsNaN", 1, NULL, NULL, 0, 0, FLOATS(is_nan))                                                     \
  X("Not", 1, NULL, NULL, 0, 0, {[CLV_BOOL] = not_bool})                                              \
  X("BitwiseNot", 1, NULL, NULL, 0, 0, {INTEGER_BITS(bitwise_not)})

#define ENTRY(op, cost, a_name, b_name, a, b, ...) {op, cost, a_name, b_name, a, b, __VA_ARGS__},
static const unary table[] = {UNARY_OPERATORS(ENTRY)};

/* Computes Shrink of integers in double, because lambd and bias may be fractions. */
static void shrink_integer(const clv__row *row, clv_dtype dtype) {
  enum { BLOCK = 256 };
  double block[BLOCK];
  for (int64_t from = 0; from < row->count; from += BLOCK) {
    clv__row part = {.count = row->count - from < BLOCK ? row->count - from : BLOCK, .out = block, .params = row->params};
    part.in[0] = block;
    clv__row_to_f64(dtype, row->in[0], from, part.count, block);
    shrink_f64(&part);
    clv__row_from_f64(dtype, row->out, from, part.count, block);
  }
}
#define SHRINK_ROW(name, dtype)                    \
  static void shrink_##name(const clv__row *row) { \
    shrink_integer(row, dtype);                    \
  }
SHRINK_ROW(i8, CLV_I8)
SHRINK_ROW(i16, CLV_I16)
SHRINK_ROW(i32, CLV_I32)
SHRINK_ROW(i64, CLV_I64)
SHRINK_ROW(u8, CLV_U8)
SHRINK_ROW(u16, CLV_U16)
SHRINK_ROW(u32, CLV_U32)
SHRINK_ROW(u64, CLV_U64)

/* A bound of Clip: f32 also for f16 and bf16, i64 for all signed and u64 for all unsigned integers. */
typedef union bound {
  float f32;
  double f64;
  int64_t i64;
  uint64_t u64;
} bound;
typedef struct clip_bounds {
  bound low, high;
} clip_bounds;

#define CLIP_ROW(name, T, member)                                       \
  static void clip_##name(const clv__row *row) {                        \
    const clip_bounds *bounds = row->params;                            \
    const T low = (T)bounds->low.member, high = (T)bounds->high.member; \
    const T *source = row->in[0];                                       \
    T *target = row->out;                                               \
    CLV__ROW_LOOP(row->count) {                                         \
      T x = source[i];                                                  \
      x = x < low ? low : x;                                            \
      target[i] = x > high ? high : x;                                  \
    }                                                                   \
  }
CLIP_ROW(f32, float, f32)
CLIP_ROW(f64, double, f64)
CLIP_ROW(i8, int8_t, i64)
CLIP_ROW(i16, int16_t, i64)
CLIP_ROW(i32, int32_t, i64)
CLIP_ROW(i64, int64_t, i64)
CLIP_ROW(u8, uint8_t, u64)
CLIP_ROW(u16, uint16_t, u64)
CLIP_ROW(u32, uint32_t, u64)
CLIP_ROW(u64, uint64_t, u64)

/* The widest bounds of a dtype, which are the specification's defaults. */
static void clip_defaults(clv_dtype dtype, clip_bounds *bounds) {
  switch (dtype) {
    case CLV_F32:
      bounds->high.f32 = 0x1.fffffep127f;
      break;
    case CLV_F16:
      bounds->high.f32 = 65504.0f;
      break;
    case CLV_BF16:
      bounds->high.f32 = 0x1.fep127f;
      break;
    case CLV_F64:
      bounds->high.f64 = 0x1.fffffffffffffp1023;
      break;
    case CLV_I8:
      *bounds = (clip_bounds){{.i64 = INT8_MIN}, {.i64 = INT8_MAX}};
      return;
    case CLV_I16:
      *bounds = (clip_bounds){{.i64 = INT16_MIN}, {.i64 = INT16_MAX}};
      return;
    case CLV_I32:
      *bounds = (clip_bounds){{.i64 = INT32_MIN}, {.i64 = INT32_MAX}};
      return;
    case CLV_I64:
      *bounds = (clip_bounds){{.i64 = INT64_MIN}, {.i64 = INT64_MAX}};
      return;
    default:
      *bounds = (clip_bounds){{.u64 = 0}, {.u64 = UINT64_MAX}};
      return;
  }
  if (dtype == CLV_F64)
    bounds->low.f64 = -bounds->high.f64;
  else
    bounds->low.f32 = -bounds->high.f32;
}

static void clip_read(const clv_tensor *from, bound *to) {
  if (from->dtype == CLV_F64)
    to->f64 = clv__tensor_get(from, 0);
  else if ((CLV__DTYPES_FLOAT & CLV__DTYPE_BIT(from->dtype)) != 0)
    to->f32 = (float)clv__tensor_get(from, 0);
  else
    to->i64 = clv__tensor_get_int(from, 0); /* has the same bits as a u64 */
}

/* Sets *bounds to the bounds of a Clip. Returns false if one of them is unknown. */
static bool clip_bounds_of(const clv__kernel_call *call, clip_bounds *bounds) {
  const clv_dtype dtype = call->inputs[0].dtype;
  clip_defaults(dtype, bounds);
  if (call->opset < 11) {
    const float low = clv__attribute_float(call->attributes, "min", -0x1.fffffep127f);
    const float high = clv__attribute_float(call->attributes, "max", 0x1.fffffep127f);
    if (dtype == CLV_F64)
      *bounds = (clip_bounds){{.f64 = (double)low}, {.f64 = (double)high}};
    else
      *bounds = (clip_bounds){{.f32 = low}, {.f32 = high}};
    return true;
  }
  for (uint32_t i = 1; i < 3 && i < call->input_count; ++i) {
    if (call->inputs[i].dtype == CLV_DTYPE_NONE) continue;
    if (call->inputs[i].data == NULL) return false;
    clip_read(&call->inputs[i], i == 1 ? &bounds->low : &bounds->high);
  }
  return true;
}

static_assert(sizeof(parameters) <= sizeof(clv__elementwise_params) && sizeof(clip_bounds) <= sizeof(clv__elementwise_params),
              "clv__elementwise_params has room for all parameters");

/* Finds the row function of an operator that an entry of the table cannot describe, and sets *values or, for Clip, *bounds to
 * its parameters. */
static clv__row_fn find_special(const clv__kernel_call *call, parameters *values, clip_bounds *bounds, double *cost) {
  static const clv__row_fn is_inf[DTYPE_COUNT] = FLOATS(is_inf);
  static const clv__row_fn exact[DTYPE_COUNT] = FLOATS(gelu), with_tanh[DTYPE_COUNT] = FLOATS(gelu_tanh);
  static const clv__row_fn shrink[DTYPE_COUNT] = FLOATS_AND(shrink, SIGNED_ROWS(shrink), UNSIGNED_ROWS(shrink));
  static const clv__row_fn clip[DTYPE_COUNT] = FLOATS_AND(clip, SIGNED_ROWS(clip), UNSIGNED_ROWS(clip));
  const clv_dtype dtype = call->inputs[0].dtype;
  *cost = 1;
  if (strcmp(call->op, "IsInf") == 0) {
    *values = (parameters){(double)clv__attribute_int(call->attributes, "detect_positive", 1),
                           (double)clv__attribute_int(call->attributes, "detect_negative", 1)};
    return is_inf[dtype];
  }
  if (strcmp(call->op, "Gelu") == 0) {
    *cost = 30;
    return (clv__attribute_is(call->attributes, "approximate", "tanh", false) ? with_tanh : exact)[dtype];
  }
  if (strcmp(call->op, "Shrink") == 0) {
    *cost = 2;
    *values = (parameters){(double)clv__attribute_float(call->attributes, "lambd", 0.5f),
                           (double)clv__attribute_float(call->attributes, "bias", 0)};
    return shrink[dtype];
  }
  return strcmp(call->op, "Clip") == 0 && clip_bounds_of(call, bounds) ? clip[dtype] : NULL;
}

bool clv__elementwise_find_unary(const clv__kernel_call *call, clv__elementwise *what, clv__elementwise_params *params) {
  parameters values = {0, 0};
  clip_bounds bounds;
  *what = (clv__elementwise){.params = params, .half_f32 = true};
  memset(params, 0, sizeof *params);
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
    const unary *entry = &table[i];
    if (strcmp(entry->op, call->op) != 0) continue;
    values = (parameters){entry->a, entry->b};
    if (entry->a_name != NULL) values.a = (double)clv__attribute_float(call->attributes, entry->a_name, (float)entry->a);
    if (entry->b_name != NULL) values.b = (double)clv__attribute_float(call->attributes, entry->b_name, (float)entry->b);
    what->run = entry->rows[call->inputs[0].dtype];
    what->cost = entry->cost;
    memcpy(params, &values, sizeof values);
    return what->run != NULL;
  }
  what->run = find_special(call, &values, &bounds, &what->cost);
  if (what->run == NULL) return false;
  if (strcmp(call->op, "Clip") == 0)
    memcpy(params, &bounds, sizeof bounds);
  else
    memcpy(params, &values, sizeof values);
  return true;
}

static clv_status run_unary(const clv__kernel_call *call) {
  const clv_tensor *input = &call->inputs[0];
  clv__elementwise what;
  clv__elementwise_params params;
  if (!clv__elementwise_find_unary(call, &what, &params)) {
    return clv__error_set(call->error, CLV_NOT_SUPPORTED, "dtype %s not supported", clv_dtype_name(input->dtype));
  }
  what.stop = call->stop;
  clv__broadcast_run(&what, &call->outputs[0], &input, 1);
  return CLV_OK;
}

#define KERNEL(op, cost, a_name, b_name, a, b, ...) {"", op, run_unary, NULL},

const clv__fast_kernel clv__fast_unary[] = {
    UNARY_OPERATORS(KERNEL){"", "IsInf", run_unary, NULL},
    {"", "Gelu", run_unary, NULL},
    {"", "Shrink", run_unary, NULL},
    {"", "Clip", run_unary, NULL},
    {.op = NULL},
};
