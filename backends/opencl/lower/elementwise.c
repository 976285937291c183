/* Lowers elementwise operators to launches. Their expressions are in expressions.c. Operands may be broadcast. */
#include <stdio.h>

#include "expressions.h"
#include "list.h"

#define FLOATS CLV__DTYPES_FLOAT
#define NUMBERS CLV__DTYPES_NUMBER
#define SIGNED CLV__DTYPES_SIGNED
#define INTEGERS CLV__DTYPES_INTEGER
#define BOOLS CLV__DTYPE_BIT(CLV_BOOL)

static const clv__opencl_expression clip_both = {"Clip", 3, NUMBERS, CLV__OPENCL_LIMITED("y", "z"), NULL, NULL, 0, 0};
static const clv__opencl_expression clip_low = {"Clip", 2, FLOATS, CLV__OPENCL_LIMITED("y", "Q"), NULL, NULL, 0, 0};
static const clv__opencl_expression clip_high = {"Clip", 2, FLOATS, CLV__OPENCL_LIMITED("P", "y"), NULL, NULL, 0, 0};
static const clv__opencl_expression clip_low_whole = {"Clip", 2, INTEGERS, "x < y ? y : x", NULL, NULL, 0, 0};
static const clv__opencl_expression clip_high_whole = {"Clip", 2, INTEGERS, "x > y ? y : x", NULL, NULL, 0, 0};
static const clv__opencl_expression scale = {"Mean", 1, FLOATS, "x / P", NULL, NULL, 0, 0};

/* ---- Shapes ---- */

/* The output's dims and the operands' steps. Neighbouring dims are merged if every operand is contiguous or constant across
 * them. */
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

/* If rows have at least this many elements, the launch has two dimensions: elements of a row, and rows. */
#define SHORTEST_ROW 32

/* An operand of a launch: an input of the node, or its output. Variadic operators read the output, because it contains the result
 * so far. */
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
    return clv__error_set(error, CLV_INTERNAL_ERROR, "no expression for operator %s with dtype %s", node->op,
                          clv_dtype_name(node->inputs[0].dtype));
  }
  if (clv__opencl_is_empty(&node->outputs[0])) return CLV_OK;
  return launch(l, node, &function, operands, true);
}

/* Combines the first two inputs into the output, then the output with each further input. */
static clv_status lower_variadic(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  bool mean = strcmp(node->op, "Mean") == 0;
  clv__opencl_function function = {
      .expression = clv__opencl_expression_find(mean || strcmp(node->op, "Sum") == 0 ? "Add" : node->op, node->outputs[0].dtype)};
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

/* If both bounds of Clip are known at compile time, it is lowered like any function. Otherwise the bounds are tensor operands. If
 * only one is given, the dtype's smallest or largest number replaces the other. */
static clv_status lower_clip(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  clv__opencl_function function;
  const bool is_float = clv__opencl_dtype_in(node->inputs[0].dtype, FLOATS);
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
  clv__opencl_widest_bounds(node->inputs[0].dtype, &function.p, &function.q);
  return launch(l, node, &function, (operand[]){{false, 0}, {false, has_low ? 1 : 2}, {false, 2}}, true);
}

/* ---- Accepted nodes ---- */

static bool accepts_power(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  return clv__opencl_accepts_dtype(node, 1, NUMBERS & ~CLV__DTYPE_BIT(CLV_F64), reason) ||
         (node->inputs[0].dtype == CLV_F64 && clv__opencl_accepts_dtype(node, 1, NUMBERS, reason));
}

static bool accepts_where(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  if (!clv__opencl_accepts_dtype(node, 1, CLV__DTYPES_ANY, reason)) return false;
  if (traits->has_double || node->input_count < 2 || node->inputs[1].dtype != CLV_F64) return true;
  snprintf(reason, 160, "dtype f64, which this device does not support");
  return false;
}

static bool accepts_clip(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  if (node->opset >= 11 || clv__opencl_dtype_in(node->inputs[0].dtype, FLOATS)) return true;
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
