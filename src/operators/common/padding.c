/* The table of independent operators, and what their rules share. See independence.h. */
#include "operators/common/padding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/independence_rules.h"
#include "operators/common/dims.h"

typedef struct entry {
  const char *name;
  bool (*rule)(clv__padding *padding);
  bool keeps_zero;
} entry;

/* Operators of ONNX's own domain. Element-wise ones need no line: see clv__padding_ask(). */
static const entry table[] = {
    {"Identity", clv__independent_first, true},
    {"Dropout", clv__independent_first, true},
    {"CastLike", clv__independent_first, true},
    {"Trilu", clv__independent_first, true},
    {"EyeLike", clv__independent_first, false},
    {"Cast", clv__independent_elementwise, true},
    {"Abs", clv__independent_elementwise, true},
    {"Neg", clv__independent_elementwise, true},
    {"Relu", clv__independent_elementwise, true},
    {"Div", clv__independent_divide, false},
    {"Mod", clv__independent_divide, false},
    {"ReduceSum", clv__independent_reduce, false},
    {"ReduceMean", clv__independent_reduce, false},
    {"ReduceMax", clv__independent_reduce, false},
    {"ReduceMin", clv__independent_reduce, false},
    {"ReduceProd", clv__independent_reduce, false},
    {"ReduceL1", clv__independent_reduce, false},
    {"ReduceL2", clv__independent_reduce, false},
    {"ReduceLogSum", clv__independent_reduce, false},
    {"ReduceLogSumExp", clv__independent_reduce, false},
    {"ReduceSumSquare", clv__independent_reduce, false},
    {"ArgMax", clv__independent_arg, false},
    {"ArgMin", clv__independent_arg, false},
    {"CumSum", clv__independent_cumulate, false},
    {"CumProd", clv__independent_cumulate, false},
    {"Softmax", clv__independent_softmax, false},
    {"LogSoftmax", clv__independent_softmax, false},
    {"Hardmax", clv__independent_softmax, false},
    {"QuantizeLinear", clv__independent_quantize, false},
    {"DequantizeLinear", clv__independent_quantize, false},
    {"MatMul", clv__independent_matmul, false},
    {"Gemm", clv__independent_gemm, false},
    {"Einsum", clv__independent_einsum, false},
    {"Conv", clv__independent_batch, false},
    {"ConvTranspose", clv__independent_batch, false},
    {"InstanceNormalization", clv__independent_batch, false},
    {"GroupNormalization", clv__independent_batch, false},
    {"DepthToSpace", clv__independent_batch, false},
    {"SpaceToDepth", clv__independent_batch, false},
    {"Resize", clv__independent_batch, false},
    {"Upsample", clv__independent_batch, false},
    {"MaxPool", clv__independent_planes, false},
    {"AveragePool", clv__independent_planes, false},
    {"LpPool", clv__independent_planes, false},
    {"GlobalMaxPool", clv__independent_planes, false},
    {"GlobalAveragePool", clv__independent_planes, false},
    {"GlobalLpPool", clv__independent_planes, false},
    {"BatchNormalization", clv__independent_batch_norm, false},
    {"LayerNormalization", clv__independent_layer_norm, false},
    {"RMSNormalization", clv__independent_layer_norm, false},
    {"MeanVarianceNormalization", clv__independent_mean_variance, false},
    {"LpNormalization", clv__independent_lp, false},
    {"LRN", clv__independent_lrn, false},
    {"Reshape", clv__independent_reshape, true},
    {"Flatten", clv__independent_reshape, true},
    {"Squeeze", clv__independent_reshape, true},
    {"Unsqueeze", clv__independent_reshape, true},
    {"Transpose", clv__independent_transpose, true},
    {"Concat", clv__independent_concat, true},
    {"Split", clv__independent_split, true},
    {"Slice", clv__independent_slice, true},
    {"Pad", clv__independent_pad, false},
    {"Expand", clv__independent_expand, true},
    {"Tile", clv__independent_tile, true},
    {"Gather", clv__independent_gather, false},
    {"GatherElements", clv__independent_gather_elements, false},
    {"GatherND", clv__independent_gather_nd, false},
    {"Scatter", clv__independent_scatter_elements, false},
    {"ScatterElements", clv__independent_scatter_elements, false},
    {"ScatterND", clv__independent_scatter_nd, false},
    {"OneHot", clv__independent_one_hot, false},
    {"TopK", clv__independent_topk, false},
};

static const entry *find(const clv__op *op) {
  for (size_t i = 0; op->domain[0] == '\0' && i < sizeof table / sizeof *table; ++i) {
    if (strcmp(table[i].name, op->name) == 0) return &table[i];
  }
  return NULL;
}

bool clv__op_keeps_zero(const clv__op *op) {
  const entry *found = find(op);
  return found != NULL && found->keeps_zero;
}

bool clv__padding_ask(clv__padding *padding) {
  const clv__infer *node = padding->node;
  const entry *found = find(padding->op);
  padding->reason[0] = '\0';
  for (int32_t i = 0; i < CLV_MAX_RANK; ++i) padding->times[i] = padding->over[i] = 1;
  for (uint32_t i = 0; i < node->output_count; ++i) padding->outputs[i] = 0;
  bool (*rule)(clv__padding *) = found != NULL                                     ? found->rule
                                 : (padding->op->flags & CLV__OP_ELEMENTWISE) != 0 ? clv__independent_elementwise
                                                                                   : NULL;
  if (rule == NULL) return clv__padding_no(padding, "it is not independent along any axis");
  for (uint32_t i = 0; i < node->input_count + node->output_count; ++i) {
    const clv_tensor *type = i < node->input_count ? &node->inputs[i] : &node->outputs[i - node->input_count];
    if (type->dtype == CLV_STRING) return clv__padding_no(padding, "strings are not padded");
    if (type->dtype != CLV_DTYPE_NONE && type->rank < 0) return clv__padding_no(padding, "a rank is not known");
  }
  return rule(padding);
}

/* ---- Shared ---- */

bool clv__padding_no(clv__padding *padding, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(padding->reason, sizeof padding->reason, format, arguments);
  va_end(arguments);
  return false;
}

bool clv__padding_avoids(clv__padding *padding, uint32_t input, uint32_t axes) {
  uint32_t met = input < padding->node->input_count ? padding->inputs[input] & axes : 0;
  if (met == 0) return true;
  return clv__padding_no(padding, "it looks along axis %d of input %u", __builtin_ctz(met), input);
}

bool clv__padding_whole_from(clv__padding *padding, uint32_t first) {
  for (uint32_t i = first; i < padding->node->input_count; ++i) {
    if (padding->inputs[i] != 0) return clv__padding_no(padding, "its input %u is of an open size", i);
  }
  return true;
}

bool clv__padding_axis(clv__padding *padding, int64_t given, int32_t rank, int32_t *axis) {
  if (given < -(int64_t)rank || given >= rank)
    return clv__padding_no(padding, "axis %lld out of range for rank %d", (long long)given, (int)rank);
  *axis = (int32_t)(given < 0 ? given + rank : given);
  return true;
}

bool clv__padding_list(clv__padding *padding, const char *name, uint32_t input, bool *given, clv__content *list) {
  clv__infer node = *padding->node;
  node.error = NULL;
  if (clv__infer_list(&node, name, input, given, list) != CLV_OK)
    return clv__padding_no(padding, "its input %u is no list", input);
  if (!*given || clv__content_is_numbers(list)) return true;
  return clv__padding_no(padding, "its input %u is known only when it runs", input);
}

bool clv__padding_pass(clv__padding *padding) {
  for (uint32_t i = 0; i < padding->node->output_count; ++i) {
    if (padding->node->outputs[i].dtype != CLV_DTYPE_NONE) padding->outputs[i] = padding->inputs[0];
  }
  return true;
}

/* ---- Element by element ---- */

bool clv__independent_elementwise(clv__padding *padding) {
  const clv__infer *node = padding->node;
  int32_t rank = node->outputs[0].rank;
  for (int32_t axis = 0; axis < rank; ++axis) {
    uint32_t padded = UINT32_MAX, whole = UINT32_MAX;
    for (uint32_t i = 0; i < node->input_count; ++i) {
      int32_t own = axis - (rank - node->inputs[i].rank);
      if (!clv__infer_has(node, i) || own < 0 || node->inputs[i].dims[own] == 1) continue;
      if ((padding->inputs[i] & clv__axis_bit(own)) != 0)
        padded = i;
      else
        whole = i;
    }
    if (padded == UINT32_MAX) continue;
    if (whole != UINT32_MAX)
      return clv__padding_no(padding, "inputs %u and %u have different open sizes along axis %d", padded, whole, (int)axis);
    padding->outputs[0] |= clv__axis_bit(axis);
  }
  return true;
}

/* Integers are not divided by what fills up: some devices stop there. */
bool clv__independent_divide(clv__padding *padding) {
  bool real = (CLV__DTYPE_BIT(padding->node->inputs[0].dtype) & CLV__DTYPES_FLOAT) != 0;
  if (!real && padding->inputs[1] != 0) return clv__padding_no(padding, "it divides by integers of an open size");
  return clv__independent_elementwise(padding);
}

/* Each place of the outputs by the same place of input 0; of the others only their dtype or a number counts. */
bool clv__independent_first(clv__padding *padding) {
  if (strcmp(padding->op->name, "CastLike") != 0 && !clv__padding_whole_from(padding, 1)) return false;
  return clv__padding_pass(padding);
}
