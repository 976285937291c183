/* Element-wise operators of several inputs, which broadcast: arithmetic, comparison, logic, bits, Where, and the variadic ones.
 * Floats are computed in double and rounded once. Integers are computed in 64 bits and wrap. */
#include "operators/binary/run.h"

#include <math.h>
#include <stdio.h>

#include "operators/common/element.h"
#include "operators/run.h"

/* The functions of an operator: on floats, on signed integers, and on unsigned integers (and bool). */
typedef double real_fn(double a, double b);
typedef int64_t signed_fn(int64_t a, int64_t b);
typedef uint64_t unsigned_fn(uint64_t a, uint64_t b);

#define REAL(name, expression)             \
  static double name(double a, double b) { \
    return expression;                     \
  }
#define SIGNED(name, expression)              \
  static int64_t name(int64_t a, int64_t b) { \
    return expression;                        \
  }
#define UNSIGNED(name, expression)               \
  static uint64_t name(uint64_t a, uint64_t b) { \
    return expression;                           \
  }
/* Defines all three functions by the same expression. */
#define EACH(name, expression)      \
  REAL(name##_real, expression)     \
  SIGNED(name##_signed, expression) \
  UNSIGNED(name##_unsigned, expression)

/* Computes with unsigned integers, so that signed ones wrap. */
#define WRAPPED(expression) (int64_t)((uint64_t)a expression(uint64_t) b)
REAL(add_real, a + b)
SIGNED(add_signed, WRAPPED(+))
UNSIGNED(add_unsigned, a + b)
REAL(sub_real, a - b)
SIGNED(sub_signed, WRAPPED(-))
UNSIGNED(sub_unsigned, a - b)
REAL(mul_real, a *b)
SIGNED(mul_signed, WRAPPED(*))
UNSIGNED(mul_unsigned, a *b)

/* Integer division by zero gives 0. The one quotient that overflows, the lowest number divided by -1, wraps. */
REAL(div_real, a / b)
SIGNED(div_signed, b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b)
UNSIGNED(div_unsigned, b == 0 ? 0 : a / b)

/* The result of Mod has the sign of the divisor; with attribute fmod=1, that of the dividend. */
REAL(fmod_real, fmod(a, b))
SIGNED(fmod_signed, b == 0 || b == -1 ? 0 : a % b)
UNSIGNED(mod_unsigned, b == 0 ? 0 : a % b)
static double mod_real(double a, double b) {
  const double rest = fmod(a, b);
  if (rest == 0) return copysign(0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}
static int64_t mod_signed(int64_t a, int64_t b) {
  const int64_t rest = fmod_signed(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* If either operand is a NaN, the result is a NaN, as in numpy. */
REAL(min_real, a < b || a != a ? a : b)
SIGNED(min_signed, a < b ? a : b)
UNSIGNED(min_unsigned, a < b ? a : b)
REAL(max_real, a > b || a != a ? a : b)
SIGNED(max_signed, a > b ? a : b)
UNSIGNED(max_unsigned, a > b ? a : b)

REAL(prelu_real, a < 0 ? a * b : a)
SIGNED(prelu_signed, a < 0 ? mul_signed(a, b) : a)
UNSIGNED(prelu_unsigned, ((void)b, a))

EACH(equal, a == b)
EACH(greater, a > b)
EACH(greater_equal, a >= b)
EACH(less, a < b)
EACH(less_equal, a <= b)

UNSIGNED(logical_and, a != 0 && b != 0)
UNSIGNED(logical_or, a != 0 || b != 0)
UNSIGNED(logical_xor, (a != 0) != (b != 0))
SIGNED(and_signed, a &b)
UNSIGNED(and_unsigned, a &b)
SIGNED(or_signed, a | b)
UNSIGNED(or_unsigned, a | b)
SIGNED(xor_signed, a ^ b)
UNSIGNED(xor_unsigned, a ^ b)

/* A shift by a negative number or by 64 bits or more gives 0, or -1 for a negative number shifted right. */
SIGNED(left_signed, (uint64_t)b >= 64 ? 0 : (int64_t)((uint64_t)a << b))
UNSIGNED(left_unsigned, b >= 64 ? 0 : a << b)
SIGNED(right_signed, (uint64_t)b >= 64 ? (a < 0 ? -1 : 0) : a >> b)
UNSIGNED(right_unsigned, b >= 64 ? 0 : a >> b)

#define NUMBER_AND_BOOL (CLV__DTYPES_NUMBER | CLV__DTYPE_BIT(CLV_BOOL))
#define WIDE_INTEGERS (CLV__DTYPE_BIT(CLV_I32) | CLV__DTYPE_BIT(CLV_I64) | CLV__DTYPE_BIT(CLV_U32) | CLV__DTYPE_BIT(CLV_U64))

typedef struct binary {
  const char *op;
  uint32_t dtypes;
  real_fn *real;
  signed_fn *whole;
  unsigned_fn *natural;
} binary;

#define ALL(name) name##_real, name##_signed, name##_unsigned
#define BINARY_OPERATORS(X)                                            \
  X("Add", CLV__DTYPES_NUMBER, ALL(add))                               \
  X("Sub", CLV__DTYPES_NUMBER, ALL(sub))                               \
  X("Mul", CLV__DTYPES_NUMBER, ALL(mul))                               \
  X("Div", CLV__DTYPES_NUMBER, ALL(div))                               \
  X("PRelu", CLV__DTYPES_FLOAT | WIDE_INTEGERS, ALL(prelu))            \
  X("Equal", NUMBER_AND_BOOL, ALL(equal))                              \
  X("Greater", CLV__DTYPES_NUMBER, ALL(greater))                       \
  X("GreaterOrEqual", CLV__DTYPES_NUMBER, ALL(greater_equal))          \
  X("Less", CLV__DTYPES_NUMBER, ALL(less))                             \
  X("LessOrEqual", CLV__DTYPES_NUMBER, ALL(less_equal))                \
  X("And", CLV__DTYPE_BIT(CLV_BOOL), NULL, NULL, logical_and)          \
  X("Or", CLV__DTYPE_BIT(CLV_BOOL), NULL, NULL, logical_or)            \
  X("Xor", CLV__DTYPE_BIT(CLV_BOOL), NULL, NULL, logical_xor)          \
  X("BitwiseAnd", CLV__DTYPES_INTEGER, NULL, and_signed, and_unsigned) \
  X("BitwiseOr", CLV__DTYPES_INTEGER, NULL, or_signed, or_unsigned)    \
  X("BitwiseXor", CLV__DTYPES_INTEGER, NULL, xor_signed, xor_unsigned)

#define ENTRY(...) {__VA_ARGS__},
static const binary table[] = {BINARY_OPERATORS(ENTRY)};

/* Computes one element of the result, which has coordinates `at` and index `index`. */
static void run_element(const clv__kernel_call *call, const binary *how, const int64_t *at, int64_t index) {
  const clv_tensor *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
  const int64_t a_at = clv__index_broadcast(a, y->rank, at), b_at = clv__index_broadcast(b, y->rank, at);
  if (clv__element_is_float(a)) {
    clv__element_store(y, index, how->real(clv__element_load(a, a_at), clv__element_load(b, b_at)));
  } else if (clv__dtype_is_in(a->dtype, CLV__DTYPES_SIGNED)) {
    clv__element_store_int(y, index, how->whole(clv__element_load_int(a, a_at), clv__element_load_int(b, b_at)));
  } else {
    const uint64_t left = (uint64_t)clv__element_load_int(a, a_at), right = (uint64_t)clv__element_load_int(b, b_at);
    clv__element_store_int(y, index, (int64_t)how->natural(left, right));
  }
}

static clv_status run_as(const clv__kernel_call *call, const binary *how) {
  const clv_tensor *y = &call->outputs[0];
  int64_t at[CLV_MAX_RANK] = {0};
  const int64_t count = clv__dims_count(y, 0, y->rank);
  for (int64_t i = 0; i < count; ++i, clv__index_next(y->rank, y->dims, at)) {
    run_element(call, how, at, i);
  }
  return CLV_OK;
}

static clv_status run_binary(const clv__kernel_call *call) {
  const binary *entry = table;
  while (strcmp(entry->op, call->op) != 0) ++entry; /* always found: clv__kernels_binary lists the same names */
  return run_as(call, entry);
}

static clv_status run_mod(const clv__kernel_call *call) {
  static const binary floored = {"Mod", 0, mod_real, mod_signed, mod_unsigned};
  static const binary truncated = {"Mod", 0, fmod_real, fmod_signed, mod_unsigned};
  return run_as(call, clv__attribute_int(call->attributes, "fmod", 0) != 0 ? &truncated : &floored);
}

static clv_status run_shift(const clv__kernel_call *call) {
  static const binary left = {"BitShift", 0, NULL, left_signed, left_unsigned};
  static const binary right = {"BitShift", 0, NULL, right_signed, right_unsigned};
  return run_as(call, clv__attribute_is(call->attributes, "direction", "LEFT", false) ? &left : &right);
}

/* base^exponent modulo 2^64. A negative exponent gives the truncated fraction. */
static int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? ((exponent & 1) != 0 ? -1 : 1) : 0;
  uint64_t result = 1, square = (uint64_t)base;
  for (; exponent > 0; exponent >>= 1, square *= square) {
    if ((exponent & 1) != 0) result *= square;
  }
  return (int64_t)result;
}

/* Base and exponent may have different dtypes. The result has that of the base. */
static clv_status run_pow(const clv__kernel_call *call) {
  const clv_tensor *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
  int64_t at[CLV_MAX_RANK] = {0};
  const int64_t count = clv__dims_count(y, 0, y->rank);
  for (int64_t i = 0; i < count; ++i, clv__index_next(y->rank, y->dims, at)) {
    const int64_t base = clv__index_broadcast(a, y->rank, at), exponent = clv__index_broadcast(b, y->rank, at);
    if (clv__element_is_float(a) || clv__element_is_float(b))
      clv__element_store(y, i, pow(clv__element_load(a, base), clv__element_load(b, exponent)));
    else
      clv__element_store_int(y, i, integer_power(clv__element_load_int(a, base), clv__element_load_int(b, exponent)));
  }
  return CLV_OK;
}

static bool accepts_pow(const clv__kernel_call *call, char reason[160]) {
  if (call->input_count < 2 || (CLV__DTYPE_BIT(call->inputs[1].dtype) & CLV__DTYPES_NUMBER) != 0) return true;
  snprintf(reason, 160, "an exponent of dtype %s is not supported", clv_dtype_name(call->inputs[1].dtype));
  return false;
}

static clv_status run_where(const clv__kernel_call *call) {
  const clv_tensor *condition = &call->inputs[0], *y = &call->outputs[0];
  int64_t at[CLV_MAX_RANK] = {0};
  const int64_t count = clv__dims_count(y, 0, y->rank);
  for (int64_t i = 0; i < count; ++i, clv__index_next(y->rank, y->dims, at)) {
    const bool holds = clv__element_load_int(condition, clv__index_broadcast(condition, y->rank, at)) != 0;
    const clv_tensor *from = &call->inputs[holds ? 1 : 2];
    clv__element_copy(y, i, from, clv__index_broadcast(from, y->rank, at));
  }
  return CLV_OK;
}

static bool accepts_where(const clv__kernel_call *call, char reason[160]) {
  if (call->input_count < 2 || (CLV__DTYPE_BIT(call->inputs[1].dtype) & CLV__DTYPES_ANY) != 0) return true;
  snprintf(reason, 160, "dtype %s not supported", clv_dtype_name(call->inputs[1].dtype));
  return false;
}

/* ---- Any number of inputs ---- */

static void fold_reals(const clv__kernel_call *call, real_fn *fold, double divisor, const int64_t *at, int64_t index) {
  const clv_tensor *y = &call->outputs[0];
  double total = clv__element_load(&call->inputs[0], clv__index_broadcast(&call->inputs[0], y->rank, at));
  for (uint32_t k = 1; k < call->input_count; ++k) {
    const clv_tensor *x = &call->inputs[k];
    total = fold(total, clv__element_load(x, clv__index_broadcast(x, y->rank, at)));
  }
  clv__element_store(y, index, total / divisor);
}

/* Computes an element of Min or Max of integers. The other operators with any number of inputs accept only floats. */
static void fold_integers(const clv__kernel_call *call, bool smallest, const int64_t *at, int64_t index) {
  const clv_tensor *y = &call->outputs[0];
  const bool is_signed = clv__dtype_is_in(y->dtype, CLV__DTYPES_SIGNED);
  int64_t total = clv__element_load_int(&call->inputs[0], clv__index_broadcast(&call->inputs[0], y->rank, at));
  for (uint32_t k = 1; k < call->input_count; ++k) {
    const clv_tensor *x = &call->inputs[k];
    const int64_t value = clv__element_load_int(x, clv__index_broadcast(x, y->rank, at));
    if (is_signed)
      total = (smallest ? min_signed : max_signed)(total, value);
    else
      total = (int64_t)(smallest ? min_unsigned : max_unsigned)((uint64_t)total, (uint64_t)value);
  }
  clv__element_store_int(y, index, total);
}

static clv_status run_variadic(const clv__kernel_call *call) {
  const clv_tensor *y = &call->outputs[0];
  const bool smallest = strcmp(call->op, "Min") == 0, largest = strcmp(call->op, "Max") == 0;
  const double divisor = strcmp(call->op, "Mean") == 0 ? (double)call->input_count : 1;
  int64_t at[CLV_MAX_RANK] = {0};
  const int64_t count = clv__dims_count(y, 0, y->rank);
  for (int64_t i = 0; i < count; ++i, clv__index_next(y->rank, y->dims, at)) {
    if (clv__element_is_float(y))
      fold_reals(call, smallest ? min_real : largest ? max_real : add_real, divisor, at, i);
    else
      fold_integers(call, smallest, at, i);
  }
  return CLV_OK;
}

#define KERNEL(op, dtypes, ...) {"", op, dtypes, run_binary, NULL, NULL},

const clv__kernel clv__kernels_binary[] = {
    BINARY_OPERATORS(KERNEL){"", "Mod", CLV__DTYPES_NUMBER, run_mod, NULL, NULL},
    {"", "BitShift", CLV__DTYPES_INTEGER, run_shift, NULL, NULL},
    {"", "Pow", CLV__DTYPES_NUMBER, run_pow, NULL, accepts_pow},
    {"", "Where", CLV__DTYPE_BIT(CLV_BOOL), run_where, NULL, accepts_where},
    {"", "Min", CLV__DTYPES_NUMBER, run_variadic, NULL, NULL},
    {"", "Max", CLV__DTYPES_NUMBER, run_variadic, NULL, NULL},
    {"", "Sum", CLV__DTYPES_FLOAT, run_variadic, NULL, NULL},
    {"", "Mean", CLV__DTYPES_FLOAT, run_variadic, NULL, NULL},
    {"", "SwiGLU", CLV__DTYPES_FLOAT, clv__kernel_swiglu, NULL, NULL},
    {.op = NULL},
};
