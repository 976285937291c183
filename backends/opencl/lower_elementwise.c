/* Elementwise operators: one expression each. What they compute is what src/kernels computes, the odd cases (NaN, division by
 * zero, shifts too far) included. */
#include <math.h>
#include <stdio.h>

#include "elementwise.h"
#include "list.h"

#define FLOATS CLV__DTYPES_FLOAT
#define DOUBLE CLV__DTYPE_BIT(CLV_F64)
#define NUMBERS CLV__DTYPES_NUMBER
#define SIGNED CLV__DTYPES_SIGNED
#define UNSIGNED CLV__DTYPES_UNSIGNED
#define INTEGERS CLV__DTYPES_INTEGER
#define BOOLS CLV__DTYPE_BIT(CLV_BOOL)

#define SOFTPLUS "(x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))"
/* The upper bound comes last, and wins where it is below the other. */
#define LIMITED(low, high) "(x < " low " ? " low " : x) > " high " ? " high " : (x < " low " ? " low " : x)"
#define UNIT(of) "((" of ") < 0 ? (real)0 : (" of ") > 1 ? (real)1 : (" of "))"

/* `real` is the type that x is computed in, N(0.5) a constant in it. The first entry with the operator and the dtype holds. */
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
static const clv__opencl_expression clip = {"Clip", 1, FLOATS, LIMITED("P", "Q"), NULL, NULL, 0, 0};
/* Bounds that are tensors: both, or one beside what the dtype has widest. */
static const clv__opencl_expression clip_both = {"Clip", 3, NUMBERS, LIMITED("y", "z"), NULL, NULL, 0, 0};
static const clv__opencl_expression clip_low = {"Clip", 2, FLOATS, LIMITED("y", "Q"), NULL, NULL, 0, 0};
static const clv__opencl_expression clip_high = {"Clip", 2, FLOATS, LIMITED("P", "y"), NULL, NULL, 0, 0};
static const clv__opencl_expression clip_low_whole = {"Clip", 2, INTEGERS, "x < y ? y : x", NULL, NULL, 0, 0};
static const clv__opencl_expression clip_high_whole = {"Clip", 2, INTEGERS, "x > y ? y : x", NULL, NULL, 0, 0};
/* A shift by more than the type has leaves nothing, or the sign. */
#define TOO_FAR "(ULONG)y >= 8 * sizeof(real)"
static const clv__opencl_expression shift_left = {"BitShift", 2,    INTEGERS, TOO_FAR " ? (real)0 : (real)((ULONG)x << y)",
                                                  NULL,       NULL, 0,        0};
static const clv__opencl_expression shift_right = {
    "BitShift", 2, INTEGERS, TOO_FAR " ? (real)(x < 0 ? -1 : 0) : (real)(x >> y)", NULL, NULL, 0, 0};
/* IsInf, by detect_negative and detect_positive. */
static const clv__opencl_expression infinities[2][2] = {
    {{"IsInf", 1, FLOATS, "0", NULL, NULL, 0, 0}, {"IsInf", 1, FLOATS, "x == (real)INFINITY", NULL, NULL, 0, 0}},
    {{"IsInf", 1, FLOATS, "x == -(real)INFINITY", NULL, NULL, 0, 0},
     {"IsInf", 1, FLOATS, "fabs(x) == (real)INFINITY", NULL, NULL, 0, 0}},
};
static const clv__opencl_expression scale = {"Mean", 1, FLOATS, "x / P", NULL, NULL, 0, 0};

static bool dtype_in(clv_dtype dtype, uint32_t mask) {
  return (mask & CLV__DTYPE_BIT(dtype)) != 0;
}

static const clv__opencl_expression *find(const char *op, clv_dtype dtype) {
  for (size_t i = 0; i < sizeof expressions / sizeof *expressions; ++i) {
    if (dtype_in(dtype, expressions[i].dtypes) && strcmp(expressions[i].op, op) == 0) return &expressions[i];
  }
  return NULL;
}

static const clv__opencl_expression *find_mod(const clv__opencl_node *node) {
  bool truncates = clv__attribute_int(node->attributes, "fmod", 0) != 0;
  clv_dtype dtype = node->inputs[0].dtype;
  if (dtype_in(dtype, FLOATS)) return truncates ? &mod_truncate : &mod_floor;
  if (dtype_in(dtype, SIGNED)) return truncates ? &mod_remainder : &mod_signed;
  return &mod_unsigned;
}

/* ---- Parameters ---- */

/* The widest bounds of a float dtype, which the specification gives as defaults. */
static void widest_bounds(clv_dtype dtype, double *low, double *high) {
  *high = dtype == CLV_F64 ? 0x1.fffffffffffffp1023 : dtype == CLV_F16 ? 65504 : dtype == CLV_BF16 ? 0x1.fep127 : 0x1.fffffep127;
  *low = -*high;
}

static bool clip_bounds(const clv__opencl_node *node, double *low, double *high) {
  widest_bounds(node->inputs[0].dtype, low, high);
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
    return dtype_in(node->inputs[0].dtype, FLOATS) && clip_bounds(node, &function->p, &function->q);
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
    function->expression = find(node->op, node->inputs[0].dtype);
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

/* ---- Shapes ---- */

/* The output's dimensions, neighbours merged where every operand goes on or stands still, and the operands' steps. */
typedef struct walk {
  uint32_t rank;
  int64_t dims[CLV_MAX_RANK], steps[3][CLV_MAX_RANK];
} walk;

static void make_walk(const clv_tensor *out, const clv_tensor *const *operands, uint32_t count, walk *w) {
  int64_t steps[3][CLV_MAX_RANK] = {{0}};
  for (uint32_t k = 0; k < count; ++k) {
    int64_t step = 1;
    for (int32_t d = operands[k]->rank - 1, o = out->rank - 1; d >= 0; --d, --o) {
      steps[k][o] = operands[k]->dims[d] == 1 ? 0 : step;
      step *= operands[k]->dims[d];
    }
  }
  w->rank = 0;
  for (int32_t d = 0; d < out->rank; ++d) {
    if (out->dims[d] == 1) continue;
    bool joins = w->rank > 0;
    for (uint32_t k = 0; k < count && joins; ++k) joins = w->steps[k][w->rank - 1] == steps[k][d] * out->dims[d];
    uint32_t at = joins ? w->rank - 1 : w->rank++;
    w->dims[at] = (joins ? w->dims[at] : 1) * out->dims[d];
    for (uint32_t k = 0; k < count; ++k) w->steps[k][at] = steps[k][d];
  }
}

/* ---- Lowering ---- */

/* Rows of at least so many elements are walked in a dimension of their own. */
#define SHORTEST_ROW 32

/* Operands by place and index, so that variadic operators go on from their output. */
typedef struct operand {
  bool is_output;
  uint32_t index;
} operand;

static clv_status launch(clv__opencl_lowering *l, const clv__opencl_node *node, const clv__opencl_function *f,
                         const operand *operands, bool posts) {
  static const char *const names[] = {"X", "Y", "Z"}, *const steps[] = {"X_STEP", "Y_STEP", "Z_STEP"};
  const clv_tensor *out = &node->outputs[0], *types[3];
  uint32_t count = f->expression->operands;
  for (uint32_t k = 0; k < count; ++k) types[k] = operands[k].is_output ? out : &node->inputs[operands[k].index];
  walk w;
  make_walk(out, types, count, &w);
  bool flat = w.rank <= 1, rows = !flat && w.dims[w.rank - 1] >= SHORTEST_ROW;
  if (rows) --w.rank;
  clv__opencl_launch(l, "elementwise", rows ? "rows" : "elementwise");
  clv__opencl_define(l, "OPERANDS", "%u", count);
  for (uint32_t k = 0; k < count; ++k) clv__opencl_define_dtype(l, names[k], types[k]->dtype);
  clv__opencl_define_dtype(l, "T", out->dtype);
  clv__opencl_define(l, "EXPRESSION", "%s", f->expression->text);
  if (strpbrk(f->expression->text, "PQ") != NULL) {
    char text[64];
    clv__opencl_number_text(types[0]->dtype, f->p, text);
    clv__opencl_define(l, "P", "%s", text);
    clv__opencl_number_text(types[0]->dtype, f->q, text);
    clv__opencl_define(l, "Q", "%s", text);
  }
  clv__opencl_define(l, "RANK", "%u", flat ? 0 : w.rank);
  if (rows) clv__opencl_define(l, "ROWS", "1");
  for (uint32_t k = 0; k < count && (flat || rows); ++k) {
    const bool still = flat ? clv__opencl_count(types[k]) == 1 : w.steps[k][w.rank] == 0;
    clv__opencl_define(l, steps[k], "%d", still ? 0 : 1);
  }
  for (uint32_t k = 0; k < count; ++k) {
    if (operands[k].is_output)
      clv__opencl_pass_output(l, 0);
    else
      clv__opencl_pass_input(l, operands[k].index);
  }
  const int64_t width = rows ? w.dims[w.rank] : 1, total = clv__opencl_count(out) / width, each = clv__opencl_each(l);
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_index(l, total);
  if (rows) clv__opencl_pass_index(l, width);
  if (rows) clv__opencl_pass_index(l, each);
  if (!flat) clv__opencl_pass_dims(l, w.dims, w.rank);
  for (uint32_t k = 0; k < count && !flat; ++k) clv__opencl_pass_dims(l, w.steps[k], w.rank);
  if (posts) clv__opencl_pass_posts(l);
  if (!rows) return clv__opencl_enqueue_1d(l, total);
  return clv__opencl_enqueue(l, 2, (int64_t[]){(width + each - 1) / each, total}, (int64_t[]){each > 1 ? 1 : 64, 1});
}

static clv_status lower_plain(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  static const operand operands[] = {{false, 0}, {false, 1}, {false, 2}};
  clv__opencl_function function;
  if (!clv__opencl_function_of(node, &function)) {
    return clv__error_set(error, CLV_INTERNAL_ERROR, "no expression for %s of %s", node->op,
                          clv_dtype_name(node->inputs[0].dtype));
  }
  if (clv__opencl_is_empty(&node->outputs[0])) return CLV_OK;
  return launch(l, node, &function, operands, true);
}

/* Pairs: the first two into the output, each further one onto it. */
static clv_status lower_variadic(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  bool mean = strcmp(node->op, "Mean") == 0;
  clv__opencl_function function = {.expression =
                                       find(mean || strcmp(node->op, "Sum") == 0 ? "Add" : node->op, node->outputs[0].dtype)};
  if (function.expression == NULL) return clv__error_set(error, CLV_INTERNAL_ERROR, "no expression for %s", node->op);
  if (clv__opencl_is_empty(&node->outputs[0])) return CLV_OK;
  if (node->input_count == 1)
    return clv__opencl_copy(l, CLV__OPENCL_OUTPUT, 0, 0, CLV__OPENCL_INPUT, 0, 0,
                            (uint64_t)clv__opencl_count(&node->outputs[0]) * clv_dtype_size_bytes(node->outputs[0].dtype));
  for (uint32_t k = 1; k < node->input_count; ++k) {
    operand operands[] = {{k > 1, 0}, {false, k}};
    CLV__TRY(launch(l, node, &function, operands, !mean && k + 1 == node->input_count));
  }
  if (!mean) return CLV_OK;
  clv__opencl_function divide = {.expression = &scale, .p = (double)node->input_count};
  return launch(l, node, &divide, (operand[]){{true, 0}}, true);
}

/* With bounds that are known, as any function; with others they are operands. */
static clv_status lower_clip(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  clv__opencl_function function;
  const bool is_float = dtype_in(node->inputs[0].dtype, FLOATS);
  const bool has_low = clv__opencl_has_input(node, 1), has_high = clv__opencl_has_input(node, 2);
  if (clv__opencl_function_of(node, &function)) return lower_plain(l, node, error);
  if (clv__opencl_is_empty(&node->outputs[0])) return CLV_OK;
  if (has_low && has_high)
    function.expression = &clip_both;
  else if (has_low)
    function.expression = is_float ? &clip_low : &clip_low_whole;
  else if (has_high)
    function.expression = is_float ? &clip_high : &clip_high_whole;
  else
    return clv__opencl_copy(l, CLV__OPENCL_OUTPUT, 0, 0, CLV__OPENCL_INPUT, 0, 0,
                            (uint64_t)clv__opencl_count(&node->outputs[0]) * clv_dtype_size_bytes(node->outputs[0].dtype));
  widest_bounds(node->inputs[0].dtype, &function.p, &function.q);
  return launch(l, node, &function, (operand[]){{false, 0}, {false, has_low ? 1 : 2}, {false, 2}}, true);
}

/* ---- What is taken ---- */

static bool accepts_power(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  return clv__opencl_accepts_dtype(node, 1, NUMBERS & ~CLV__DTYPE_BIT(CLV_F64), reason) ||
         (node->inputs[0].dtype == CLV_F64 && clv__opencl_accepts_dtype(node, 1, NUMBERS, reason));
}

static bool accepts_where(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  if (!clv__opencl_accepts_dtype(node, 1, CLV__DTYPES_ANY, reason)) return false;
  if (traits->has_double || node->input_count < 2 || node->inputs[1].dtype != CLV_F64) return true;
  snprintf(reason, 160, "dtype f64, which this device has not");
  return false;
}

static bool accepts_clip(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  if (node->opset >= 11 || dtype_in(node->inputs[0].dtype, FLOATS)) return true;
  snprintf(reason, 160, "dtype %s before opset 11", clv_dtype_name(node->inputs[0].dtype));
  return false;
}

#define OPERATOR(op, dtypes) \
  { "", op, dtypes, true, NULL, lower_plain }

const clv__opencl_operator clv__opencl_family_elementwise[] = {
    OPERATOR("Relu", FLOATS | SIGNED),
    OPERATOR("LeakyRelu", FLOATS),
    OPERATOR("ThresholdedRelu", FLOATS),
    OPERATOR("Elu", FLOATS),
    OPERATOR("Selu", FLOATS),
    OPERATOR("Celu", FLOATS),
    OPERATOR("Sigmoid", FLOATS),
    OPERATOR("HardSigmoid", FLOATS),
    OPERATOR("HardSwish", FLOATS),
    OPERATOR("Swish", FLOATS),
    OPERATOR("Mish", FLOATS),
    OPERATOR("Softplus", FLOATS),
    OPERATOR("Softsign", FLOATS),
    OPERATOR("Tanh", FLOATS),
    OPERATOR("Erf", FLOATS),
    OPERATOR("Gelu", FLOATS),
    OPERATOR("Sqrt", FLOATS),
    OPERATOR("Exp", FLOATS),
    OPERATOR("Log", FLOATS),
    OPERATOR("Abs", NUMBERS),
    OPERATOR("Neg", FLOATS | SIGNED),
    OPERATOR("Reciprocal", FLOATS),
    OPERATOR("Floor", FLOATS),
    OPERATOR("Ceil", FLOATS),
    OPERATOR("Round", FLOATS),
    OPERATOR("Sign", NUMBERS),
    OPERATOR("Sin", FLOATS),
    OPERATOR("Cos", FLOATS),
    OPERATOR("Tan", FLOATS),
    OPERATOR("Asin", FLOATS),
    OPERATOR("Acos", FLOATS),
    OPERATOR("Atan", FLOATS),
    OPERATOR("Sinh", FLOATS),
    OPERATOR("Cosh", FLOATS),
    OPERATOR("Asinh", FLOATS),
    OPERATOR("Acosh", FLOATS),
    OPERATOR("Atanh", FLOATS),
    OPERATOR("IsNaN", FLOATS),
    OPERATOR("Not", BOOLS),
    OPERATOR("BitwiseNot", INTEGERS),
    OPERATOR("Add", NUMBERS),
    OPERATOR("Sub", NUMBERS),
    OPERATOR("Mul", NUMBERS),
    OPERATOR("Div", NUMBERS),
    OPERATOR("Mod", NUMBERS),
    OPERATOR("PRelu",
             FLOATS | CLV__DTYPE_BIT(CLV_I32) | CLV__DTYPE_BIT(CLV_I64) | CLV__DTYPE_BIT(CLV_U32) | CLV__DTYPE_BIT(CLV_U64)),
    OPERATOR("Equal", NUMBERS | BOOLS),
    OPERATOR("Greater", NUMBERS),
    OPERATOR("GreaterOrEqual", NUMBERS),
    OPERATOR("Less", NUMBERS),
    OPERATOR("LessOrEqual", NUMBERS),
    OPERATOR("And", BOOLS),
    OPERATOR("Or", BOOLS),
    OPERATOR("Xor", BOOLS),
    OPERATOR("BitwiseAnd", INTEGERS),
    OPERATOR("BitwiseOr", INTEGERS),
    OPERATOR("BitwiseXor", INTEGERS),
    OPERATOR("Shrink", FLOATS),
    OPERATOR("IsInf", FLOATS),
    OPERATOR("BitShift", INTEGERS),
    {"", "Pow", FLOATS, true, accepts_power, lower_plain},
    {"", "Where", BOOLS, true, accepts_where, lower_plain},
    {"", "Clip", NUMBERS, true, accepts_clip, lower_clip},
    {"", "Min", NUMBERS, true, NULL, lower_variadic},
    {"", "Max", NUMBERS, true, NULL, lower_variadic},
    {"", "Sum", FLOATS, true, NULL, lower_variadic},
    {"", "Mean", FLOATS, true, NULL, lower_variadic},
    {NULL, NULL, 0, false, NULL, NULL},
};
