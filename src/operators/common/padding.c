/* See padding.h. */
#include "operators/common/padding.h"

#include <stdarg.h>
#include <stdio.h>

#include "operators/common/dims.h"

bool clv__padding_ask(clv__padding *padding) {
  const clv__infer *node = padding->node;
  padding->reason[0] = '\0';
  for (int32_t i = 0; i < CLV_MAX_RANK; ++i) padding->times[i] = padding->over[i] = 1;
  for (uint32_t i = 0; i < node->output_count; ++i) padding->outputs[i] = 0;
  bool (*rule)(clv__padding *) = padding->op->independent;
  if (rule == NULL && (padding->op->flags & CLV__OP_ELEMENTWISE) != 0) rule = clv__independent_elementwise;
  if (rule == NULL) return clv__padding_no(padding, "it is not independent along any axis");
  for (uint32_t i = 0; i < node->input_count + node->output_count; ++i) {
    const clv_tensor *type = i < node->input_count ? &node->inputs[i] : &node->outputs[i - node->input_count];
    if (type->dtype == CLV_STRING) return clv__padding_no(padding, "it has a string input or output, which cannot be padded");
    if (type->dtype != CLV_DTYPE_NONE && type->rank < 0)
      return clv__padding_no(padding, "an input or output has an unknown rank");
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
  return clv__padding_no(padding, "it combines elements along axis %d of input %u, which has an open size", __builtin_ctz(met),
                         input);
}

bool clv__padding_whole_from(clv__padding *padding, uint32_t first) {
  for (uint32_t i = first; i < padding->node->input_count; ++i) {
    if (padding->inputs[i] != 0) return clv__padding_no(padding, "its input %u has an axis of open size", i);
  }
  return true;
}

bool clv__padding_axis(clv__padding *padding, int64_t given, int32_t rank, int32_t *axis) {
  if (given < -(int64_t)rank || given >= rank)
    return clv__padding_no(padding, "axis %lld is out of range for rank %d", (long long)given, (int)rank);
  *axis = (int32_t)(given < 0 ? given + rank : given);
  return true;
}

bool clv__padding_attribute_axis(clv__padding *padding, int64_t fallback, int32_t rank, int32_t *axis) {
  return clv__padding_axis(padding, clv__attribute_int(padding->node->attributes, "axis", fallback), rank, axis);
}

bool clv__padding_list(clv__padding *padding, const char *name, uint32_t input, bool *given, clv__content *list) {
  clv__infer node = *padding->node;
  node.error = NULL;
  if (clv__infer_list(&node, name, input, given, list) != CLV_OK)
    return clv__padding_no(padding, "its input %u is not a list", input);
  if (!*given || clv__content_is_numbers(list)) return true;
  return clv__padding_no(padding, "the value of its input %u is known only at run time", input);
}

bool clv__padding_pass(clv__padding *padding) {
  for (uint32_t i = 0; i < padding->node->output_count; ++i) {
    if (padding->node->outputs[i].dtype != CLV_DTYPE_NONE) padding->outputs[i] = padding->inputs[0];
  }
  return true;
}

/* ---- Rules of several families ---- */

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
      return clv__padding_no(padding, "inputs %u and %u have no common open size along axis %d", padded, whole, (int)axis);
    padding->outputs[0] |= clv__axis_bit(axis);
  }
  return true;
}

bool clv__independent_first(clv__padding *padding) {
  return clv__padding_whole_from(padding, 1) && clv__padding_pass(padding);
}

bool clv__independent_batch(clv__padding *padding) {
  return clv__padding_whole_from(padding, 1) && clv__padding_avoids(padding, 0, ~1u) && clv__padding_pass(padding);
}

bool clv__independent_lines(clv__padding *padding) {
  int32_t axis;
  if (!clv__padding_attribute_axis(padding, -1, padding->node->inputs[0].rank, &axis)) return false;
  return clv__padding_avoids(padding, 0, clv__axis_bit(axis)) && clv__padding_pass(padding);
}
