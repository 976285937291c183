/* Elementwise operators as expressions (see expressions.h). They compute the same results as the kernels for host memory
 * (backends/common/kernels), including the special cases: NaN, division by zero, shifts by too many bits. */
#include <math.h>
#include <stdio.h>

#include "expressions.h"

#define FLOATS CLV__DTYPES_FLOAT
#define DOUBLE CLV__DTYPE_BIT(CLV_F64)
#define NUMBERS CLV__DTYPES_NUMBER
#define SIGNED CLV__DTYPES_SIGNED
#define UNSIGNED CLV__DTYPES_UNSIGNED
#define INTEGERS CLV__DTYPES_INTEGER
#define BOOLS CLV__DTYPE_BIT(CLV_BOOL)

#define SOFTPLUS "(x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))"
#define UNIT(of) "((" of ") < 0 ? (real)0 : (" of ") > 1 ? (real)1 : (" of "))"

/* `real` is the type in which x is computed, N(0.5) a constant of that type. The first entry with the operator and the dtype
 * applies. */
static const clv__opencl_expression expressions[] = {
    {"Relu", 1, FLOATS | SIGNED, "x < 0 ? (real)0 : x", NULL, NULL, 0, 0},
    {"LeakyRelu", 1, FLOATS, "x < 0 ? P * x : x", "alpha", NULL, 0.01f, 0},
    {"ThresholdedRelu", 1, FLOATS, "x > P ? x : (real)0", "alpha", NULL, 1, 0},
    {"Elu", 1, FLOATS, "x < 0 ? P * expm1(x) : x", "alpha", NULL, 1, 0},
    {"Selu", 1, FLOATS, "Q * (x > 0 ? x : P * expm1(x))", "alpha", "gamma", 1.67326319217681884765625f,
     1.05070102214813232421875f},
    {"Celu", 1, FLOATS, "(x < 0 ? (real)0 : x) + (P * expm1(x / P) < 0 ? P * expm1(x / P) : (real)0)", "alpha", NULL, 1, 0},
    {"Sigmoid", 1, FLOATS, "1 / (1 + exp(-x))", NULL, NULL, 0, 0},
    {"HardSigmoid", 1, FLOATS, UNIT("P * x + Q"), "alpha", "beta", 0.2f, 0.5f},
    {"HardSwish", 1, FLOATS, "x * " UNIT("x * N(0.16666666666666666) + N(0.5)"), NULL, NULL, 0, 0},
    {"Swish", 1, FLOATS, "x / (1 + exp(-P * x))", "alpha", NULL, 1, 0},
    {"Mish", 1, FLOATS, "x > 20 ? x : x * (exp(x) * (exp(x) + 2)) / (exp(x) * (exp(x) + 2) + 2)", NULL, NULL, 0, 0},
    {"Softplus", 1, FLOATS, SOFTPLUS, NULL, NULL, 0, 0},
    {"Softsign", 1, FLOATS, "x / (1 + fabs(x))", NULL, NULL, 0, 0},
    {"Tanh", 1, FLOATS, "tanh(x)", NULL, NULL, 0, 0},
    {"Erf", 1, FLOATS & ~DOUBLE, "clv_erf(x)", NULL, NULL, 0, 0},
    {"Erf", 1, DOUBLE, "erf(x)", NULL, NULL, 0, 0},
    {"Sqrt", 1, FLOATS, "sqrt(x)", NULL, NULL, 0, 0},
    {"Exp", 1, FLOATS, "exp(x)", NULL, NULL, 0, 0},
    {"Log", 1, FLOATS, "log(x)", NULL, NULL, 0, 0},
    {"Abs", 1, FLOATS, "fabs(x)", NULL, NULL, 0, 0},
    {"Abs", 1, SIGNED, "x < 0 ? 0 - (ULONG)x : (ULONG)x", NULL, NULL, 0, 0},
    {"Abs", 1, UNSIGNED, "x", NULL, NULL, 0, 0},
    {"Neg", 1, FLOATS, "-x", NULL, NULL, 0, 0},
    {"Neg", 1, SIGNED, "0 - (ULONG)x", NULL, NULL, 0, 0},
    {"Reciprocal", 1, FLOATS, "1 / x", NULL, NULL, 0, 0},
    {"Floor", 1, FLOATS, "floor(x)", NULL, NULL, 0, 0},
    {"Ceil", 1, FLOATS, "ceil(x)", NULL, NULL, 0, 0},
    {"Round", 1, FLOATS, "rint(x)", NULL, NULL, 0, 0},
    {"Sign", 1, FLOATS, "x > 0 ? (real)1 : x < 0 ? (real)-1 : x", NULL, NULL, 0, 0},
    {"Sign", 1, SIGNED, "(x > 0) - (x < 0)", NULL, NULL, 0, 0},
    {"Sign", 1, UNSIGNED, "x > 0", NULL, NULL, 0, 0},
    {"Sin", 1, FLOATS, "sin(x)", NULL, NULL, 0, 0},
    {"Cos", 1, FLOATS, "cos(x)", NULL, NULL, 0, 0},
    {"Tan", 1, FLOATS, "tan(x)", NULL, NULL, 0, 0},
    {"Asin", 1, FLOATS, "asin(x)", NULL, NULL, 0, 0},
    {"Acos", 1, FLOATS, "acos(x)", NULL, NULL, 0, 0},
    {"Atan", 1, FLOATS, "atan(x)", NULL, NULL, 0, 0},
    {"Sinh", 1, FLOATS, "sinh(x)", NULL, NULL, 0, 0},
    {"Cosh", 1, FLOATS, "cosh(x)", NULL, NULL, 0, 0},
    {"Asinh", 1, FLOATS, "asinh(x)", NULL, NULL, 0, 0},
    {"Acosh", 1, FLOATS, "acosh(x)", NULL, NULL, 0, 0},
    {"Atanh", 1, FLOATS, "atanh(x)", NULL, NULL, 0, 0},
    {"IsNaN", 1, FLOATS, "x != x", NULL, NULL, 0, 0},
    {"Not", 1, BOOLS, "x == 0", NULL, NULL, 0, 0},
    {"BitwiseNot", 1, INTEGERS, "~x", NULL, NULL, 0, 0},
    {"Add", 2, NUMBERS, "x + y", NULL, NULL, 0, 0},
    {"Sub", 2, NUMBERS, "x - y", NULL, NULL, 0, 0},
    {"Mul", 2, FLOATS, "x * y", NULL, NULL, 0, 0},
    {"Mul", 2, INTEGERS, "(ULONG)x * (ULONG)y", NULL, NULL, 0, 0},
    {"Div", 2, FLOATS, "x / y", NULL, NULL, 0, 0},
    {"Div", 2, SIGNED, "y == 0 ? (real)0 : y == -1 ? (real)(0 - (ULONG)x) : (real)(x / y)", NULL, NULL, 0, 0},
    {"Div", 2, UNSIGNED, "y == 0 ? (real)0 : (real)(x / y)", NULL, NULL, 0, 0},
    {"PRelu", 2, FLOATS, "x < 0 ? x * y : x", NULL, NULL, 0, 0},
    {"PRelu", 2, SIGNED, "x < 0 ? (real)((ULONG)x * (ULONG)y) : x", NULL, NULL, 0, 0},
    {"PRelu", 2, UNSIGNED, "x", NULL, NULL, 0, 0},
    {"Equal", 2, NUMBERS | BOOLS, "x == y", NULL, NULL, 0, 0},
    {"Greater", 2, NUMBERS, "x > y", NULL, NULL, 0, 0},
    {"GreaterOrEqual", 2, NUMBERS, "x >= y", NULL, NULL, 0, 0},
    {"Less", 2, NUMBERS, "x < y", NULL, NULL, 0, 0},
    {"LessOrEqual", 2, NUMBERS, "x <= y", NULL, NULL, 0, 0},
    {"And", 2, BOOLS, "x != 0 && y != 0", NULL, NULL, 0, 0},
    {"Or", 2, BOOLS, "x != 0 || y != 0", NULL, NULL, 0, 0},
    {"Xor", 2, BOOLS, "(x != 0) != (y != 0)", NULL, NULL, 0, 0},
    {"BitwiseAnd", 2, INTEGERS, "x & y", NULL, NULL, 0, 0},
    {"BitwiseOr", 2, INTEGERS, "x | y", NULL, NULL, 0, 0},
    {"BitwiseXor", 2, INTEGERS, "x ^ y", NULL, NULL, 0, 0},
    {"Min", 2, FLOATS, "x < y || x != x ? x : y", NULL, NULL, 0, 0},
    {"Min", 2, INTEGERS, "x < y ? x : y", NULL, NULL, 0, 0},
    {"Max", 2, FLOATS, "x > y || x != x ? x : y", NULL, NULL, 0, 0},
    {"Max", 2, INTEGERS, "x > y ? x : y", NULL, NULL, 0, 0},
    {"Pow", 2, FLOATS, "y == 2 ? x * x : pow(x, (real)y)", NULL, NULL, 0, 0},
    {"Shrink", 1, FLOATS, "x < -P ? x + Q : x > P ? x - Q : (real)0", "lambd", "bias", 0.5f, 0},
};

static const clv__opencl_expression gelu_single = {
    "Gelu", 1, FLOATS & ~DOUBLE, "0.5f * x * (1 + clv_erf(x * 0.70710678f))", NULL, NULL, 0, 0};
static const clv__opencl_expression gelu_exact = {"Gelu", 1,    FLOATS, "N(0.5) * x * erfc(x * N(-0.70710678118654752440))",
                                                  NULL,   NULL, 0,      0};
static const clv__opencl_expression gelu_tanh = {
    "Gelu", 1, FLOATS, "N(0.5) * x * (1 + tanh(N(0.79788456080286535588) * (x + N(0.044715) * x * x * x)))", NULL, NULL, 0, 0};
static const clv__opencl_expression mod_floor = {
    "Mod", 2,    FLOATS, "fmod(x, y) == 0 ? copysign((real)0, y) : (fmod(x, y) < 0) != (y < 0) ? fmod(x, y) + y : fmod(x, y)",
    NULL,  NULL, 0,      0};
static const clv__opencl_expression mod_truncate = {"Mod", 2, FLOATS, "fmod(x, y)", NULL, NULL, 0, 0};
static const clv__opencl_expression mod_signed = {
    "Mod", 2,    SIGNED, "y == 0 || y == -1 ? (real)0 : x % y != 0 && (x % y < 0) != (y < 0) ? (real)(x % y + y) : (real)(x % y)",
    NULL,  NULL, 0,      0};
static const clv__opencl_expression mod_remainder = {"Mod", 2,    SIGNED, "y == 0 || y == -1 ? (real)0 : (real)(x % y)",
                                                     NULL,  NULL, 0,      0};
static const clv__opencl_expression mod_unsigned = {"Mod", 2, UNSIGNED, "y == 0 ? (real)0 : (real)(x % y)", NULL, NULL, 0, 0};
static const clv__opencl_expression where = {"Where", 3, BOOLS, "x != 0 ? y : z", NULL, NULL, 0, 0};
static const clv__opencl_expression clip = {"Clip", 1, FLOATS, CLV__OPENCL_LIMITED("P", "Q"), NULL, NULL, 0, 0};
/* A shift by the type's width or more gives 0, or -1 if a negative number is shifted to the right. */
#define TOO_FAR "(ULONG)y >= 8 * sizeof(real)"
static const clv__opencl_expression shift_left = {"BitShift", 2,    INTEGERS, TOO_FAR " ? (real)0 : (real)((ULONG)x << y)",
                                                  NULL,       NULL, 0,        0};
static const clv__opencl_expression shift_right = {
    "BitShift", 2, INTEGERS, TOO_FAR " ? (real)(x < 0 ? -1 : 0) : (real)(x >> y)", NULL, NULL, 0, 0};
/* IsInf, indexed by detect_negative and detect_positive. */
static const clv__opencl_expression infinities[2][2] = {
    {{"IsInf", 1, FLOATS, "0", NULL, NULL, 0, 0}, {"IsInf", 1, FLOATS, "x == (real)INFINITY", NULL, NULL, 0, 0}},
    {{"IsInf", 1, FLOATS, "x == -(real)INFINITY", NULL, NULL, 0, 0},
     {"IsInf", 1, FLOATS, "fabs(x) == (real)INFINITY", NULL, NULL, 0, 0}},
};

const clv__opencl_expression *clv__opencl_expression_find(const char *op, clv_dtype dtype) {
  for (size_t i = 0; i < sizeof expressions / sizeof *expressions; ++i) {
    if (clv__opencl_dtype_in(dtype, expressions[i].dtypes) && strcmp(expressions[i].op, op) == 0) return &expressions[i];
  }
  return NULL;
}

static const clv__opencl_expression *find_mod(const clv__opencl_node *node) {
  bool truncates = clv__attribute_int(node->attributes, "fmod", 0) != 0;
  clv_dtype dtype = node->inputs[0].dtype;
  if (clv__opencl_dtype_in(dtype, FLOATS)) return truncates ? &mod_truncate : &mod_floor;
  if (clv__opencl_dtype_in(dtype, SIGNED)) return truncates ? &mod_remainder : &mod_signed;
  return &mod_unsigned;
}

/* ---- Parameters ---- */

/* The widest bounds of a float dtype: its lowest and highest finite number. The specification of Clip defines them as the
 * defaults. */
void clv__opencl_widest_bounds(clv_dtype dtype, double *low, double *high) {
  *high = dtype == CLV_F64 ? 0x1.fffffffffffffp1023 : dtype == CLV_F16 ? 65504 : dtype == CLV_BF16 ? 0x1.fep127 : 0x1.fffffep127;
  *low = -*high;
}

static bool clip_bounds(const clv__opencl_node *node, double *low, double *high) {
  clv__opencl_widest_bounds(node->inputs[0].dtype, low, high);
  if (node->opset < 11) {
    *low = (double)clv__attribute_float(node->attributes, "min", -0x1.fffffep127f);
    *high = (double)clv__attribute_float(node->attributes, "max", 0x1.fffffep127f);
    return true;
  }
  for (uint32_t i = 1; i < 3; ++i) {
    if (!clv__opencl_has_input(node, i)) continue;
    if (node->inputs[i].data == NULL) return false;
    *(i == 1 ? low : high) = clv__tensor_get(&node->inputs[i], 0);
  }
  return true;
}

bool clv__opencl_function_of(const clv__opencl_node *node, clv__opencl_function *function) {
  *function = (clv__opencl_function){0};
  if (node->input_count == 0 || node->domain[0] != '\0') return false;
  if (strcmp(node->op, "Clip") == 0) {
    function->expression = &clip;
    return clv__opencl_dtype_in(node->inputs[0].dtype, FLOATS) && clip_bounds(node, &function->p, &function->q);
  }
  if (strcmp(node->op, "Gelu") == 0) {
    function->expression = clv__attribute_is(node->attributes, "approximate", "tanh", false) ? &gelu_tanh
                           : node->inputs[0].dtype == CLV_F64                                ? &gelu_exact
                                                                                             : &gelu_single;
    return true;
  }
  if (strcmp(node->op, "Mod") == 0)
    function->expression = find_mod(node);
  else if (strcmp(node->op, "BitShift") == 0)
    function->expression = clv__attribute_is(node->attributes, "direction", "LEFT", false) ? &shift_left : &shift_right;
  else if (strcmp(node->op, "IsInf") == 0)
    function->expression = &infinities[clv__attribute_int(node->attributes, "detect_negative", 1) != 0]
                                      [clv__attribute_int(node->attributes, "detect_positive", 1) != 0];
  else if (strcmp(node->op, "Where") == 0)
    function->expression = &where;
  else
    function->expression = clv__opencl_expression_find(node->op, node->inputs[0].dtype);
  if (function->expression == NULL) return false;
  function->p = (double)function->expression->p;
  function->q = (double)function->expression->q;
  const clv__opencl_expression *e = function->expression;
  if (e->p_name != NULL) function->p = (double)clv__attribute_float(node->attributes, e->p_name, e->p);
  if (e->q_name != NULL) function->q = (double)clv__attribute_float(node->attributes, e->q_name, e->q);
  return true;
}

void clv__opencl_number_text(clv_dtype dtype, double value, char text[64]) {
  if (isnan(value))
    snprintf(text, 64, "((%s)NAN)", dtype == CLV_F64 ? "double" : "float");
  else if (isinf(value))
    snprintf(text, 64, "(%s(%s)INFINITY)", value < 0 ? "-" : "", dtype == CLV_F64 ? "double" : "float");
  else
    snprintf(text, 64, "(%a%s)", dtype == CLV_F64 ? value : (double)(float)value, dtype == CLV_F64 ? "" : "f");
}
