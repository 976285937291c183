/* Elementwise operators with several inputs, which broadcast: arithmetic, comparison, logic, bits, Where, and the variadic
 * operators Min, Max, Sum and Mean.
 *
 * An operator is one expression of `a` and `b`, compiled for each supported type. If signed and unsigned operands give the same
 * bits (Add, Equal, …), the unsigned row function also serves the signed type, because signed overflow is undefined in C. f16 and
 * bf16 are converted to f32 and use its row functions. */
#include <math.h>
#include <stdio.h>
#include <tgmath.h>

#include "backends/common/kernels/elementwise.h"
#include "backends/common/kernels/families.h"
#include "operators/common/rows.h"

#define BINARY_LOOP(T, first, second, expression) \
  CLV__ROW_LOOP(row->count) {                     \
    const T a = first, b = second;                \
    target[i] = (expression);                     \
  }
/* Defines a row function with a separate loop for each combination of inputs that advance or stay constant, so that every loop
 * vectorises. */
#define ROW(row_name, T, R, expression)                    \
  static void row_name(const clv__row *row) {              \
    typedef T element;                                     \
    typedef R result;                                      \
    const element *p = row->in[0], *q = row->in[1];        \
    result *target = row->out;                             \
    if (row->step[0] == 0) {                               \
      const element still = *p;                            \
      if (row->step[1] == 0) {                             \
        const element other = *q;                          \
        BINARY_LOOP(T, still, other, (result)(expression)) \
      } else {                                             \
        BINARY_LOOP(T, still, q[i], (result)(expression))  \
      }                                                    \
    } else if (row->step[1] == 0) {                        \
      const element still = *q;                            \
      BINARY_LOOP(T, p[i], still, (result)(expression))    \
    } else {                                               \
      BINARY_LOOP(T, p[i], q[i], (result)(expression))     \
    }                                                      \
  }

#define FLOAT_OP(name, expression)          \
  ROW(name##_f32, float, float, expression) \
  ROW(name##_f64, double, double, expression)
#define SIGNED_OP(name, expression)             \
  ROW(name##_i8, int8_t, int8_t, expression)    \
  ROW(name##_i16, int16_t, int16_t, expression) \
  ROW(name##_i32, int32_t, int32_t, expression) \
  ROW(name##_i64, int64_t, int64_t, expression)
#define UNSIGNED_OP(name, expression)             \
  ROW(name##_u8, uint8_t, uint8_t, expression)    \
  ROW(name##_u16, uint16_t, uint16_t, expression) \
  ROW(name##_u32, uint32_t, uint32_t, expression) \
  ROW(name##_u64, uint64_t, uint64_t, expression)
#define COMPARE_OP(name, expression)             \
  ROW(name##_f32, float, uint8_t, expression)    \
  ROW(name##_f64, double, uint8_t, expression)   \
  ROW(name##_u8, uint8_t, uint8_t, expression)   \
  ROW(name##_u16, uint16_t, uint8_t, expression) \
  ROW(name##_u32, uint32_t, uint8_t, expression) \
  ROW(name##_u64, uint64_t, uint8_t, expression)
#define COMPARE_SIGNED_OP(name, expression)     \
  ROW(name##_i8, int8_t, uint8_t, expression)   \
  ROW(name##_i16, int16_t, uint8_t, expression) \
  ROW(name##_i32, int32_t, uint8_t, expression) \
  ROW(name##_i64, int64_t, uint8_t, expression)

FLOAT_OP(add, a + b)
UNSIGNED_OP(add, a + b)
FLOAT_OP(sub, a - b)
UNSIGNED_OP(sub, a - b)
FLOAT_OP(mul, a *b)
UNSIGNED_OP(mul, 1u * a * b) /* 1u: makes u16 operands unsigned; as ints, their product could overflow */
FLOAT_OP(div, a / b)
/* Division of integers by zero yields 0. The one quotient that overflows, the smallest integer divided by -1, wraps. */
SIGNED_OP(div, b == 0 ? 0 : b == -1 ? (element)(0 - (uint64_t)a) : a / b)
UNSIGNED_OP(div, b == 0 ? 0 : a / b)

#define FLOOR_MOD(a, b) \
  (fmod(a, b) == 0 ? copysign((element)0, b) : (fmod(a, b) < 0) != ((b) < 0) ? fmod(a, b) + (b) : fmod(a, b))
FLOAT_OP(mod, FLOOR_MOD(a, b))
SIGNED_OP(mod, b == 0 || b == -1 ? 0 : a % b != 0 && (a % b < 0) != (b < 0) ? a % b + b : a % b)
UNSIGNED_OP(mod, b == 0 ? 0 : a % b)
FLOAT_OP(fmod, fmod(a, b))
SIGNED_OP(fmod, b == 0 || b == -1 ? 0 : a % b)

/* If either operand is NaN, the result is NaN, as in numpy. */
FLOAT_OP(min, a < b || a != a ? a : b)
SIGNED_OP(min, a < b ? a : b)
UNSIGNED_OP(min, a < b ? a : b)
FLOAT_OP(max, a > b || a != a ? a : b)
SIGNED_OP(max, a > b ? a : b)
UNSIGNED_OP(max, a > b ? a : b)

FLOAT_OP(prelu, a < 0 ? a * b : a)
SIGNED_OP(prelu, a < 0 ? (element)((uint64_t)a * (uint64_t)b) : a)

COMPARE_OP(equal, a == b)
COMPARE_OP(greater, a > b)
COMPARE_SIGNED_OP(greater, a > b)
COMPARE_OP(greater_equal, a >= b)
COMPARE_SIGNED_OP(greater_equal, a >= b)
COMPARE_OP(less, a < b)
COMPARE_SIGNED_OP(less, a < b)
COMPARE_OP(less_equal, a <= b)
COMPARE_SIGNED_OP(less_equal, a <= b)

ROW(logical_and, uint8_t, uint8_t, (a != 0) & (b != 0))
ROW(logical_or, uint8_t, uint8_t, (a != 0) | (b != 0))
ROW(logical_xor, uint8_t, uint8_t, (a != 0) ^ (b != 0))
UNSIGNED_OP(bit_and, a &b)
UNSIGNED_OP(bit_or, a | b)
UNSIGNED_OP(bit_xor, a ^ b)

/* A shift by at least the width of the type, or by a negative number, yields 0, or -1 if it shifts a negative number right. */
#define TOO_FAR(b) ((uint64_t)(b) >= 8 * sizeof(element))
UNSIGNED_OP(shift_left, TOO_FAR(b) ? 0 : (element)((uint64_t)a << b))
SIGNED_OP(shift_left, TOO_FAR(b) ? 0 : (element)((uint64_t)a << b))
UNSIGNED_OP(shift_right, TOO_FAR(b) ? 0 : a >> b)
SIGNED_OP(shift_right, TOO_FAR(b) ? (a < 0 ? -1 : 0) : a >> b)

ROW(power_f32, float, float, pow(a, b))
ROW(power_f64, double, double, pow(a, b))
ROW(square_f32, float, float, ((void)b, a *a))
ROW(square_f64, double, double, ((void)b, a *a))

static void pow_f32(const clv__row *row) {
  (row->step[1] == 0 && *(const float *)row->in[1] == 2 ? square_f32 : power_f32)(row);
}
static void pow_f64(const clv__row *row) {
  (row->step[1] == 0 && *(const double *)row->in[1] == 2 ? square_f64 : power_f64)(row);
}

enum { DTYPE_COUNT = CLV__DTYPE_COUNT };

#define FLOATS(name) [CLV_F32] = name##_f32, [CLV_F64] = name##_f64, [CLV_F16] = name##_f32, [CLV_BF16] = name##_f32
#define SIGNED(name) [CLV_I8] = name##_i8, [CLV_I16] = name##_i16, [CLV_I32] = name##_i32, [CLV_I64] = name##_i64
#define UNSIGNED(name) [CLV_U8] = name##_u8, [CLV_U16] = name##_u16, [CLV_U32] = name##_u32, [CLV_U64] = name##_u64
#define SAME_BITS(name) \
  UNSIGNED(name), [CLV_I8] = name##_u8, [CLV_I16] = name##_u16, [CLV_I32] = name##_u32, [CLV_I64] = name##_u64

/* X(operator, run function, cost, rows by dtype) */
#define BINARY_OPERATORS(X)                                                                                       \
  X("Add", run_binary, 1, FLOATS(add), SAME_BITS(add))                                                            \
  X("Sub", run_binary, 1, FLOATS(sub), SAME_BITS(sub))                                                            \
  X("Mul", run_binary, 1, FLOATS(mul), SAME_BITS(mul))                                                            \
  X("Div", run_binary, 2, FLOATS(div), SIGNED(div), UNSIGNED(div))                                                \
  X("PRelu", run_binary, 1, FLOATS(prelu), SIGNED(prelu), [CLV_U32] = copy_first_u32, [CLV_U64] = copy_first_u64) \
  X("Equal", run_binary, 1, FLOATS(equal), SAME_BITS(equal), [CLV_BOOL] = equal_u8)                               \
  X("Greater", run_binary, 1, FLOATS(greater), SIGNED(greater), UNSIGNED(greater))                                \
  X("GreaterOrEqual", run_binary, 1, FLOATS(greater_equal), SIGNED(greater_equal), UNSIGNED(greater_equal))       \
  X("Less", run_binary, 1, FLOATS(less), SIGNED(less), UNSIGNED(less))                                            \
  X("LessOrEqual", run_binary, 1, FLOATS(less_equal), SIGNED(less_equal), UNSIGNED(less_equal))                   \
  X("And", run_binary, 1, [CLV_BOOL] = logical_and)                                                               \
  X("Or", run_binary, 1, [CLV_BOOL] = logical_or)                                                                 \
  X("Xor", run_binary, 1, [CLV_BOOL] = logical_xor)                                                               \
  X("BitwiseAnd", run_binary, 1, SAME_BITS(bit_and))                                                              \
  X("BitwiseOr", run_binary, 1, SAME_BITS(bit_or))                                                                \
  X("BitwiseXor", run_binary, 1, SAME_BITS(bit_xor))                                                              \
  X("Min", run_variadic, 1, FLOATS(min), SIGNED(min), UNSIGNED(min))                                              \
  X("Max", run_variadic, 1, FLOATS(max), SIGNED(max), UNSIGNED(max))                                              \
  X("Sum", run_variadic, 1, FLOATS(add))                                                                          \
  X("Mean", run_variadic, 1, FLOATS(add))

/* PRelu for unsigned types: returns its first operand, which is never negative. */
ROW(copy_first_u32, uint32_t, uint32_t, ((void)b, a))
ROW(copy_first_u64, uint64_t, uint64_t, ((void)b, a))

typedef struct binary {
  const char *op;
  double cost;
  clv__row_fn rows[DTYPE_COUNT];
} binary;

#define ENTRY(op, run, cost, ...) {op, cost, {__VA_ARGS__}},
static const binary table[] = {BINARY_OPERATORS(ENTRY)};

static const binary *find_entry(const char *op) {
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
    if (strcmp(table[i].op, op) == 0) return &table[i];
  }
  return NULL;
}

#define SCALE_ROW(name, T)                                     \
  static void name(const clv__row *row) {                      \
    const T divisor = (T) * (const double *)row->params;       \
    const T *source = row->in[0];                              \
    T *target = row->out;                                      \
    CLV__ROW_LOOP(row->count) target[i] = source[i] / divisor; \
  }
SCALE_ROW(divide_f32, float)
SCALE_ROW(divide_f64, double)

/* Combines the inputs pairwise: the first two into the output, then the output with each further input. */
static clv_status run_variadic(const clv__kernel_call *call) {
  const binary *entry = find_entry(call->op);
  const clv_tensor *out = &call->outputs[0];
  clv__row_fn rows = entry != NULL ? entry->rows[out->dtype] : NULL;
  if (rows == NULL) {
    return clv__error_set(call->error, CLV_NOT_SUPPORTED, "dtype %s not supported", clv_dtype_name(out->dtype));
  }
  clv__elementwise what = {rows, NULL, entry->cost, true, call->stop};
  if (call->input_count == 1) {
    clv__broadcast_copy(out, &call->inputs[0], call->stop);
    return CLV_OK;
  }
  clv__broadcast_run(&what, out, (const clv_tensor *[]){&call->inputs[0], &call->inputs[1]}, 2);
  for (uint32_t k = 2; k < call->input_count; ++k) {
    clv__broadcast_run(&what, out, (const clv_tensor *[]){out, &call->inputs[k]}, 2);
  }
  if (strcmp(call->op, "Mean") == 0) {
    double divisor = (double)call->input_count;
    clv__elementwise scale = {out->dtype == CLV_F64 ? divide_f64 : divide_f32, &divisor, 2, true, call->stop};
    clv__broadcast_run(&scale, out, &out, 1);
  }
  return CLV_OK;
}

/* base^exponent modulo 2^64. With a negative exponent, the result is a fraction, which is truncated to an integer: 0, 1 or -1.
 * A base of 0 then yields 0. */
static int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? ((exponent & 1) != 0 ? -1 : 1) : 0;
  uint64_t result = 1, square = (uint64_t)base;
  for (; exponent > 0; exponent >>= 1, square *= square) {
    if ((exponent & 1) != 0) result *= square;
  }
  return (int64_t)result;
}

typedef struct pow_dtypes {
  clv_dtype base, exponent;
} pow_dtypes;

enum { POW_BLOCK = 256 };

/* Pow if base and exponent have different dtypes or are integers. Computes in doubles, or in i64 if both are integers. */
static void pow_mixed(const clv__row *row) {
  const pow_dtypes *dtypes = row->params;
  bool integers = ((CLV__DTYPE_BIT(dtypes->base) | CLV__DTYPE_BIT(dtypes->exponent)) & CLV__DTYPES_FLOAT) == 0;
  for (int64_t from = 0; from < row->count; from += POW_BLOCK) {
    int64_t count = row->count - from < POW_BLOCK ? row->count - from : POW_BLOCK;
    int64_t first_a = from * row->step[0], first_b = from * row->step[1];
    int64_t count_a = row->step[0] != 0 ? count : 1, count_b = row->step[1] != 0 ? count : 1;
    if (integers) {
      int64_t a[POW_BLOCK], b[POW_BLOCK], y[POW_BLOCK];
      clv__row_to_i64(dtypes->base, row->in[0], first_a, count_a, a);
      clv__row_to_i64(dtypes->exponent, row->in[1], first_b, count_b, b);
      for (int64_t i = 0; i < count; ++i) y[i] = integer_power(a[i * row->step[0]], b[i * row->step[1]]);
      clv__row_from_i64(dtypes->base, row->out, from, count, y);
    } else {
      double a[POW_BLOCK], b[POW_BLOCK], y[POW_BLOCK];
      clv__row_to_f64(dtypes->base, row->in[0], first_a, count_a, a);
      clv__row_to_f64(dtypes->exponent, row->in[1], first_b, count_b, b);
      for (int64_t i = 0; i < count; ++i) y[i] = pow(a[i * row->step[0]], b[i * row->step[1]]);
      clv__row_from_f64(dtypes->base, row->out, from, count, y);
    }
  }
}

/* Where: selects elements without a branch, as integers of the same size. */
#define WHERE_LOOP(T, first, second)                         \
  CLV__ROW_LOOP(row->count) {                                \
    const T mask = (T)(0 - (T)(condition[i] != 0));          \
    target[i] = (T)(((first)&mask) | ((second) & (T)~mask)); \
  }
#define WHERE_ROW(name, T)                                                   \
  static void name(const clv__row *row) {                                    \
    const uint8_t *condition = row->in[0];                                   \
    const T *p = row->in[1], *q = row->in[2];                                \
    T *target = row->out;                                                    \
    if (row->step[0] == 0) {                                                 \
      const T *chosen = *condition != 0 ? p : q;                             \
      int64_t step = row->step[*condition != 0 ? 1 : 2];                     \
      for (int64_t i = 0; i < row->count; ++i) target[i] = chosen[i * step]; \
    } else if (row->step[1] == 0) {                                          \
      const T still = *p;                                                    \
      if (row->step[2] == 0) {                                               \
        const T other = *q;                                                  \
        WHERE_LOOP(T, still, other)                                          \
      } else {                                                               \
        WHERE_LOOP(T, still, q[i])                                           \
      }                                                                      \
    } else if (row->step[2] == 0) {                                          \
      const T other = *q;                                                    \
      WHERE_LOOP(T, p[i], other)                                             \
    } else {                                                                 \
      WHERE_LOOP(T, p[i], q[i])                                              \
    }                                                                        \
  }
WHERE_ROW(where_1, uint8_t)
WHERE_ROW(where_2, uint16_t)
WHERE_ROW(where_4, uint32_t)
WHERE_ROW(where_8, uint64_t)

/* Returns the row function that computes the call in one pass over its two or three inputs. Returns NULL if there is none: for
 * unsupported dtypes, for Mean, for other variadic calls that do not have two inputs, and for a Pow of integers or of mixed
 * dtypes. */
static clv__row_fn find_rows(const clv__kernel_call *call, double *cost) {
  static const clv__row_fn floored[DTYPE_COUNT] = {FLOATS(mod), SIGNED(mod), UNSIGNED(mod)};
  static const clv__row_fn truncated[DTYPE_COUNT] = {FLOATS(fmod), SIGNED(fmod), UNSIGNED(mod)};
  static const clv__row_fn left[DTYPE_COUNT] = {SIGNED(shift_left), UNSIGNED(shift_left)};
  static const clv__row_fn right[DTYPE_COUNT] = {SIGNED(shift_right), UNSIGNED(shift_right)};
  static const clv__row_fn power[DTYPE_COUNT] = {FLOATS(pow)};
  const clv_dtype dtype = call->inputs[0].dtype;
  const binary *entry = find_entry(call->op);
  *cost = entry != NULL ? entry->cost : 1;
  if (entry != NULL) return call->input_count == 2 && strcmp(call->op, "Mean") != 0 ? entry->rows[dtype] : NULL;
  if (strcmp(call->op, "Mod") == 0) {
    *cost = 10;
    return (clv__attribute_int(call->attributes, "fmod", 0) != 0 ? truncated : floored)[dtype];
  }
  if (strcmp(call->op, "BitShift") == 0) {
    return (clv__attribute_is(call->attributes, "direction", "LEFT", false) ? left : right)[dtype];
  }
  if (strcmp(call->op, "Pow") == 0) {
    *cost = 30;
    return call->inputs[1].dtype == dtype ? power[dtype] : NULL;
  }
  if (strcmp(call->op, "Where") != 0) return NULL;
  const size_t size_bytes = clv_dtype_size_bytes(call->outputs[0].dtype);
  return size_bytes == 1 ? where_1 : size_bytes == 2 ? where_2 : size_bytes == 4 ? where_4 : where_8;
}

bool clv__elementwise_find_binary(const clv__kernel_call *call, clv__elementwise *what) {
  *what = (clv__elementwise){.half_f32 = strcmp(call->op, "Where") != 0}; /* Where copies bits: f16 needs no conversion to f32 */
  what->run = find_rows(call, &what->cost);
  return what->run != NULL;
}

bool clv__elementwise_find(const clv__kernel_call *call, clv__elementwise *what, clv__elementwise_params *params,
                           uint32_t *input_count) {
  *input_count = call->input_count;
  if (call->input_count >= 2 && clv__elementwise_find_binary(call, what)) return true;
  *input_count = 1;
  return call->input_count >= 1 && clv__elementwise_find_unary(call, what, params);
}

static clv_status run_binary(const clv__kernel_call *call) {
  clv__elementwise what;
  const clv_tensor *inputs[CLV__ROW_INPUTS];
  if (!clv__elementwise_find_binary(call, &what)) {
    return clv__error_set(call->error, CLV_NOT_SUPPORTED, "dtype %s not supported", clv_dtype_name(call->inputs[0].dtype));
  }
  for (uint32_t i = 0; i < call->input_count; ++i) inputs[i] = &call->inputs[i];
  what.stop = call->stop;
  clv__broadcast_run(&what, &call->outputs[0], inputs, call->input_count);
  return CLV_OK;
}

static clv_status run_pow(const clv__kernel_call *call) {
  pow_dtypes dtypes = {call->inputs[0].dtype, call->inputs[1].dtype};
  double cost;
  if (find_rows(call, &cost) != NULL) return run_binary(call);
  clv__elementwise what = {pow_mixed, &dtypes, 40, false, call->stop};
  clv__broadcast_run(&what, &call->outputs[0], (const clv_tensor *[]){&call->inputs[0], &call->inputs[1]}, 2);
  return CLV_OK;
}

#define KERNEL(op, run, cost, ...) {"", op, run, NULL},

const clv__fast_kernel clv__fast_binary[] = {
    BINARY_OPERATORS(KERNEL){"", "Mod", run_binary, NULL},
    {"", "BitShift", run_binary, NULL},
    {"", "Pow", run_pow, NULL},
    {"", "Where", run_binary, NULL},
    {.op = NULL},
};
