/* ATen's elementwise functions of two or three tensors. Operands are first cast to a common dtype by ATen's type promotion.
 * See lower.h. */
#include <math.h>

#include "formats/irjson/lower.h"

typedef clv__aten_value value;
typedef clv__aten_node aten;
typedef clv__aten_scalar scalar;

static const scalar no_scalar = {CLV_DTYPE_NONE, 0, 0};

/* The two operands of a node. One of them may be a number in attrs.self or attrs.other instead of a tensor. */
typedef struct pair {
  value a, b;
  clv_dtype dtype; /* the common dtype */
  scalar number;   /* the operand that is a number; its dtype is NONE if both are tensors */
  bool number_first;
} pair;

static pair read_pair(aten *n, const char *first, const char *second) {
  pair p = {clv__aten_absent(), clv__aten_absent(), CLV_F32, clv__aten_scalar_of(n, first), true};
  if (p.number.dtype == CLV_DTYPE_NONE) {
    p.a = clv__aten_input(n, 0);
    p.number_first = false;
    if (n->input_count < 2) {
      p.number = clv__aten_scalar_of(n, second);
      if (p.number.dtype == CLV_DTYPE_NONE) clv__aten_fail(n, "it has only one tensor, and attrs.%s is missing", second);
    } else {
      p.b = clv__aten_input(n, 1);
    }
  } else {
    p.b = clv__aten_input(n, 0);
  }
  value tensors[2] = {p.number_first ? p.b : p.a, p.b};
  p.dtype = clv__aten_common(tensors, p.number.dtype == CLV_DTYPE_NONE ? 2 : 1, p.number);
  return p;
}

static void meet(aten *n, pair *p, clv_dtype dtype) {
  p->dtype = dtype;
  p->a = p->number.dtype != CLV_DTYPE_NONE && p->number_first ? clv__aten_constant(n, dtype, p->number)
                                                              : clv__aten_cast(n, p->a, dtype);
  p->b = p->number.dtype != CLV_DTYPE_NONE && !p->number_first ? clv__aten_constant(n, dtype, p->number)
                                                               : clv__aten_cast(n, p->b, dtype);
}

static bool is_half(clv_dtype dtype) {
  return clv__aten_wide(dtype) != dtype;
}

/* Returns the dtype in which to compute add, sub, mul and div. ATen combines an f16 or bf16 tensor with a number, or with a
 * tensor of rank 0, at f32 precision and rounds only the result. So this function returns f32 if `dtype` cannot represent the
 * other operand exactly. */
static clv_dtype meeting(const aten *n, const pair *p, clv_dtype dtype) {
  if (!is_half(dtype)) return dtype;
  for (uint32_t i = 0; i < n->input_count; ++i) {
    if (n->inputs[i].type.rank == 0 && clv__aten_is_float(n->inputs[i].type.dtype) && n->inputs[i].type.dtype != dtype)
      return CLV_F32;
  }
  if (p->number.dtype == CLV_DTYPE_NONE) return dtype;
  double rounded =
      dtype == CLV_F16 ? clv__f16_to_f32(clv__f64_to_f16(p->number.real)) : clv__bf16_to_f32(clv__f64_to_bf16(p->number.real));
  return rounded == p->number.real ? dtype : CLV_F32;
}

static clv_dtype real(clv_dtype dtype) {
  return clv__aten_is_float(dtype) ? dtype : CLV_F32;
}

/* Lowers a + alpha * b, a - alpha * b and b - alpha * a. The sum of two bools is their Or. */
static void lower_add(aten *n) {
  pair p = read_pair(n, "self", "other");
  scalar alpha = clv__aten_scalar_of(n, "alpha");
  bool subtract = strstr(n->stem, "sub") != NULL, reversed = strcmp(n->stem, "rsub") == 0;
  if (p.dtype == CLV_BOOL) {
    if (subtract || alpha.dtype != CLV_DTYPE_NONE) clv__aten_keep(n);
    meet(n, &p, CLV_BOOL);
    clv__aten_return(n, 0, clv__aten_call(n, "Or", CLV_BOOL, p.a, p.b));
    return;
  }
  bool scaled = alpha.dtype != CLV_DTYPE_NONE && alpha.real != 1;
  meet(n, &p, scaled ? clv__aten_wide(p.dtype) : meeting(n, &p, p.dtype));
  value left = reversed ? p.b : p.a, right = reversed ? p.a : p.b;
  if (scaled) {
    right = clv__aten_call(n, "Mul", p.dtype, right, clv__aten_constant(n, p.dtype, alpha));
  }
  clv__aten_return(n, 0, clv__aten_call(n, subtract ? "Sub" : "Add", p.dtype, left, right));
}

static void lower_mul(aten *n) {
  pair p = read_pair(n, "self", "other");
  meet(n, &p, meeting(n, &p, p.dtype));
  clv__aten_return(n, 0, clv__aten_call(n, p.dtype == CLV_BOOL ? "And" : "Mul", p.dtype, p.a, p.b));
}

static value truncated(aten *n, value x) {
  clv_dtype dtype = x.type.dtype;
  value size = clv__aten_call(n, "Floor", dtype, clv__aten_call(n, "Abs", dtype, x));
  return clv__aten_call(n, "Mul", dtype, clv__aten_call(n, "Sign", dtype, x), size);
}

/* Returns fmod(a, b), whose elements have the sign of a. `adjust` marks the elements to which b must be added for a remainder
 * with the sign of b. */
static value remainder_of(aten *n, value a, value b, value *adjust) {
  clv_dtype dtype = a.type.dtype;
  value zero = clv__aten_number(n, dtype, 0);
  clv__aten_set_int(n, "fmod", 1);
  value rest = clv__aten_call(n, "Mod", dtype, a, b);
  value unlike = clv__aten_call(n, "Xor", CLV_BOOL, clv__aten_call(n, "Less", CLV_BOOL, b, zero),
                                clv__aten_call(n, "Less", CLV_BOOL, rest, zero));
  value some = clv__aten_call(n, "Not", CLV_BOOL, clv__aten_call(n, "Equal", CLV_BOOL, rest, zero));
  *adjust = clv__aten_call(n, "And", CLV_BOOL, unlike, some);
  return rest;
}

/* Returns the floor of the exact quotient, computed from the remainder as in ATen. The floor of the rounded quotient may differ.
 */
static value floor_quotient(aten *n, value a, value b) {
  clv_dtype dtype = a.type.dtype;
  value zero = clv__aten_number(n, dtype, 0), one = clv__aten_number(n, dtype, 1), adjust;
  value quotient = clv__aten_call(n, "Div", dtype, a, b), rest = remainder_of(n, a, b, &adjust);
  value near = clv__aten_call(n, "Div", dtype, clv__aten_call(n, "Sub", dtype, a, rest), b);
  near = clv__aten_call(n, "Where", dtype, adjust, clv__aten_call(n, "Sub", dtype, near, one), near);
  value whole = clv__aten_call(n, "Floor", dtype, near);
  value above =
      clv__aten_call(n, "Greater", CLV_BOOL, clv__aten_call(n, "Sub", dtype, near, whole), clv__aten_number(n, dtype, 0.5));
  whole = clv__aten_call(n, "Where", dtype, above, clv__aten_call(n, "Add", dtype, whole, one), whole);
  value nothing = clv__aten_call(n, "Mul", dtype, quotient, zero); /* a zero with the sign of the quotient */
  whole = clv__aten_call(n, "Where", dtype, clv__aten_call(n, "Equal", CLV_BOOL, near, zero), nothing, whole);
  return clv__aten_call(n, "Where", dtype, clv__aten_call(n, "Equal", CLV_BOOL, b, zero), quotient, whole);
}

/* Without a rounding mode, integers are divided as real numbers; "floor" and "trunc" round the quotient. ONNX's Div rounds
 * integer quotients towards zero. */
static void lower_div(aten *n) {
  pair p = read_pair(n, "self", "other");
  const char *mode = clv__aten_text(n, "rounding_mode", strcmp(n->stem, "floor_divide") == 0 ? "floor" : "");
  bool floor_mode = strcmp(mode, "floor") == 0, trunc_mode = strcmp(mode, "trunc") == 0;
  if (mode[0] != '\0' && !floor_mode && !trunc_mode)
    clv__aten_fail(n, "attrs.rounding_mode is '%.40s'; expected 'floor' or 'trunc'", mode);
  bool integers = !clv__aten_is_float(p.dtype);
  if (integers && floor_mode) {
    /* (a - a mod b) / b, where ONNX's Mod has the sign of the divisor */
    if (p.dtype == CLV_BOOL) clv__aten_keep(n);
    meet(n, &p, p.dtype);
    value rest = clv__aten_call(n, "Mod", p.dtype, p.a, p.b);
    clv__aten_return(n, 0, clv__aten_call(n, "Div", p.dtype, clv__aten_call(n, "Sub", p.dtype, p.a, rest), p.b));
    return;
  }
  clv_dtype dtype = integers && trunc_mode ? p.dtype : real(p.dtype);
  meet(n, &p, floor_mode || trunc_mode ? clv__aten_wide(dtype) : meeting(n, &p, dtype));
  if (floor_mode) {
    clv__aten_return(n, 0, floor_quotient(n, p.a, p.b));
    return;
  }
  value quotient = clv__aten_call(n, "Div", p.dtype, p.a, p.b);
  if (trunc_mode && !integers) quotient = truncated(n, quotient);
  clv__aten_return(n, 0, quotient);
}

/* The result of remainder has the sign of the divisor, that of fmod the sign of the dividend. */
static void lower_remainder(aten *n) {
  pair p = read_pair(n, "self", "other");
  bool fmod_like = strcmp(n->stem, "fmod") == 0;
  if (p.dtype == CLV_BOOL) clv__aten_keep(n);
  meet(n, &p, p.dtype); /* a number is cast to the tensor's dtype before the division */
  p.dtype = clv__aten_wide(p.dtype);
  p.a = clv__aten_cast(n, p.a, p.dtype);
  p.b = clv__aten_cast(n, p.b, p.dtype);
  if (fmod_like || !clv__aten_is_float(p.dtype)) {
    clv__aten_set_int(n, "fmod", fmod_like);
    clv__aten_return(n, 0, clv__aten_call(n, "Mod", p.dtype, p.a, p.b));
    return;
  }
  value adjust, rest = remainder_of(n, p.a, p.b, &adjust);
  clv__aten_return(n, 0, clv__aten_call(n, "Where", p.dtype, adjust, clv__aten_call(n, "Add", p.dtype, rest, p.b), rest));
}

static void lower_pow(aten *n) {
  pair p = read_pair(n, "self", "exponent");
  bool integers = !clv__aten_is_float(p.dtype), by_number = p.number.dtype != CLV_DTYPE_NONE && !p.number_first;
  if (p.dtype == CLV_BOOL || (integers && by_number && p.number.integer < 0)) clv__aten_keep(n);
  meet(n, &p, p.dtype);
  if (by_number && p.number.real == 2)
    clv__aten_return(n, 0, clv__aten_call(n, "Mul", p.dtype, p.a, p.a));
  else if (by_number && p.number.real == 1)
    clv__aten_return(n, 0, p.a);
  else if (by_number && p.number.real == 0.5 && !integers)
    clv__aten_return(n, 0, clv__aten_call(n, "Sqrt", p.dtype, p.a));
  else
    clv__aten_return(n, 0, clv__aten_call(n, "Pow", p.dtype, p.a, p.b));
}

static void lower_extreme(aten *n) {
  pair p = read_pair(n, "self", "other");
  bool least = n->stem[1] == 'i';
  if (p.dtype == CLV_BOOL) {
    meet(n, &p, CLV_BOOL);
    clv__aten_return(n, 0, clv__aten_call(n, least ? "And" : "Or", CLV_BOOL, p.a, p.b));
    return;
  }
  meet(n, &p, p.dtype);
  clv__aten_return(n, 0, clv__aten_call(n, least ? "Min" : "Max", p.dtype, p.a, p.b));
}

/* ONNX's Equal accepts bools. Its ordering operators do not, so bools are cast to numbers for them. */
static void lower_compare(aten *n) {
  static const char *const names[][2] = {{"eq", "Equal"},   {"ne", "Equal"},          {"lt", "Less"},   {"le", "LessOrEqual"},
                                         {"gt", "Greater"}, {"ge", "GreaterOrEqual"}, {"less", "Less"}, {"greater", "Greater"}};
  const char *op = NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    if (strcmp(names[i][0], n->stem) == 0) op = names[i][1];
  }
  pair p = read_pair(n, "self", "other");
  meet(n, &p, p.dtype == CLV_BOOL && strcmp(op, "Equal") != 0 ? CLV_I32 : p.dtype);
  value made = clv__aten_call(n, op, CLV_BOOL, p.a, p.b);
  clv__aten_return(n, 0, strcmp(n->stem, "ne") == 0 ? clv__aten_call(n, "Not", CLV_BOOL, made) : made);
}

static const char *logic(const char *stem) {
  return strstr(stem, "xor") != NULL ? "Xor" : strstr(stem, "and") != NULL ? "And" : "Or";
}

static void lower_logical(aten *n) {
  pair p = read_pair(n, "self", "other");
  meet(n, &p, CLV_BOOL);
  clv__aten_return(n, 0, clv__aten_call(n, logic(n->stem), CLV_BOOL, p.a, p.b));
}

static void lower_bitwise(aten *n) {
  pair p = read_pair(n, "self", "other");
  const char *name = logic(n->stem);
  meet(n, &p, p.dtype);
  const char *wide = name[0] == 'X' ? "BitwiseXor" : name[0] == 'A' ? "BitwiseAnd" : "BitwiseOr";
  clv__aten_return(n, 0, clv__aten_call(n, p.dtype == CLV_BOOL ? name : wide, p.dtype, p.a, p.b));
}

/* where(condition, self, other): `self` and `other` may each be a number. */
static void lower_where(aten *n) {
  value condition = clv__aten_cast(n, clv__aten_input(n, 0), CLV_BOOL);
  scalar self = clv__aten_scalar_of(n, "self"), other = clv__aten_scalar_of(n, "other");
  bool has_self = self.dtype != CLV_DTYPE_NONE, has_other = other.dtype != CLV_DTYPE_NONE;
  if (!has_self && !has_other && n->input_count < 3) clv__aten_keep(n); /* where(condition) returns indices, unlike Where */
  value x = has_self ? clv__aten_absent() : clv__aten_input(n, 1);
  value y = has_other ? clv__aten_absent() : clv__aten_input(n, has_self ? 1 : 2);
  clv_dtype dtype = n->output_count > 0 ? n->outputs[0].type.dtype : CLV_F32; /* two numbers alone do not determine the dtype */
  if (!has_self || !has_other) {
    value tensors[2] = {has_self ? y : x, has_other ? x : y};
    dtype = clv__aten_common(tensors, 2, has_self ? self : has_other ? other : no_scalar);
  }
  x = has_self ? clv__aten_constant(n, dtype, self) : clv__aten_cast(n, x, dtype);
  y = has_other ? clv__aten_constant(n, dtype, other) : clv__aten_cast(n, y, dtype);
  clv__aten_return(n, 0, clv__aten_call(n, "Where", dtype, condition, x, y));
}

/* The result has the dtype of self, whatever the dtype of the value. */
static void lower_masked_fill(aten *n) {
  value x = clv__aten_input(n, 0), mask = clv__aten_cast(n, clv__aten_input(n, 1), CLV_BOOL);
  scalar number = clv__aten_scalar_of(n, "value");
  value fill = number.dtype != CLV_DTYPE_NONE ? clv__aten_constant(n, x.type.dtype, number)
                                              : clv__aten_cast(n, clv__aten_input(n, 2), x.type.dtype);
  clv__aten_return(n, 0, clv__aten_call(n, "Where", x.type.dtype, mask, fill, x));
}

/* Lowers addcmul and addcdiv: self + value * a * b, or self + value * a / b. */
static void lower_addc(aten *n) {
  value a = clv__aten_input(n, 1), b = clv__aten_input(n, 2), self = clv__aten_input(n, 0);
  bool divide = strcmp(n->stem, "addcdiv") == 0;
  if (n->status != CLV_OK) return;
  clv_dtype dtype = clv__aten_wide(clv__aten_common(n->inputs, 3, no_scalar));
  if (divide && !clv__aten_is_float(dtype)) clv__aten_keep(n);
  scalar factor = clv__aten_scalar_of(n, "value");
  value made = clv__aten_call(n, divide ? "Div" : "Mul", dtype, clv__aten_cast(n, a, dtype), clv__aten_cast(n, b, dtype));
  if (factor.dtype != CLV_DTYPE_NONE && factor.real != 1) {
    made = clv__aten_call(n, "Mul", dtype, made, clv__aten_constant(n, dtype, factor));
  }
  clv__aten_return(n, 0, clv__aten_call(n, "Add", dtype, clv__aten_cast(n, self, dtype), made));
}

/* Lowers self + weight * (end - self). As in ATen, weights whose magnitude is at least 0.5 use
 * end - (end - self) * (1 - weight) instead. */
static void lower_lerp(aten *n) {
  value self = clv__aten_input(n, 0), end = clv__aten_input(n, 1);
  scalar weight = clv__aten_scalar_of(n, "weight");
  clv_dtype dtype = clv__aten_wide(self.type.dtype);
  value factor =
      weight.dtype != CLV_DTYPE_NONE ? clv__aten_constant(n, dtype, weight) : clv__aten_cast(n, clv__aten_input(n, 2), dtype);
  self = clv__aten_cast(n, self, dtype);
  end = clv__aten_cast(n, end, dtype);
  value way = clv__aten_call(n, "Sub", dtype, end, self);
  value from_start = clv__aten_call(n, "Add", dtype, self, clv__aten_call(n, "Mul", dtype, factor, way));
  value rest = clv__aten_call(n, "Sub", dtype, clv__aten_number(n, dtype, 1), factor);
  value from_end = clv__aten_call(n, "Sub", dtype, end, clv__aten_call(n, "Mul", dtype, way, rest));
  value size = clv__aten_call(n, "Abs", dtype, factor);
  value is_near = clv__aten_call(n, "Less", CLV_BOOL, size, clv__aten_number(n, dtype, 0.5));
  clv__aten_return(n, 0, clv__aten_call(n, "Where", dtype, is_near, from_start, from_end));
}

const clv__aten_lowering clv__aten_binary[] = {
    {"add", lower_add},
    {"sub", lower_add},
    {"rsub", lower_add},
    {"subtract", lower_add},
    {"mul", lower_mul},
    {"multiply", lower_mul},
    {"div", lower_div},
    {"divide", lower_div},
    {"true_divide", lower_div},
    {"floor_divide", lower_div},
    {"remainder", lower_remainder},
    {"fmod", lower_remainder},
    {"pow", lower_pow},
    {"minimum", lower_extreme},
    {"maximum", lower_extreme},
    {"eq", lower_compare},
    {"ne", lower_compare},
    {"lt", lower_compare},
    {"le", lower_compare},
    {"gt", lower_compare},
    {"ge", lower_compare},
    {"less", lower_compare},
    {"greater", lower_compare},
    {"logical_and", lower_logical},
    {"logical_or", lower_logical},
    {"logical_xor", lower_logical},
    {"bitwise_and", lower_bitwise},
    {"bitwise_or", lower_bitwise},
    {"bitwise_xor", lower_bitwise},
    {"__and__", lower_bitwise},
    {"__or__", lower_bitwise},
    {"__xor__", lower_bitwise},
    {"where", lower_where},
    {"masked_fill", lower_masked_fill},
    {"addcmul", lower_addc},
    {"addcdiv", lower_addc},
    {"lerp", lower_lerp},
    {NULL, NULL},
};
