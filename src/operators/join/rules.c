/* Independence of operators that concatenate, split, slice, pad, expand and repeat. */
#include "operators/join/rules.h"

bool clv__independent_concat(clv__padding *padding) {
  const clv__infer *node = padding->node;
  int32_t axis, rank = node->inputs[0].rank;
  if (!clv__padding_attribute_axis(padding, 1, rank, &axis)) return false;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if ((padding->inputs[i] >> axis & 1u) != 0)
      return clv__padding_no(padding, "it joins input %u, which has an open size along axis %d, to other inputs", i, (int)axis);
    if (padding->inputs[i] != padding->inputs[0])
      return clv__padding_no(padding, "inputs 0 and %u do not have the same open sizes", i);
  }
  return clv__padding_pass(padding);
}

bool clv__independent_split(clv__padding *padding) {
  int32_t axis;
  if (!clv__padding_attribute_axis(padding, 0, padding->node->inputs[0].rank, &axis)) return false;
  if (!clv__padding_whole_from(padding, 1) || !clv__padding_avoids(padding, 0, clv__axis_bit(axis))) return false;
  return clv__padding_pass(padding);
}

bool clv__independent_slice(clv__padding *padding) {
  const clv__infer *node = padding->node;
  bool old = node->opset < 10, given;
  clv__content axes, starts;
  uint32_t sliced = 0;
  if (!clv__padding_whole_from(padding, 1)) return false;
  if (!clv__padding_list(padding, old ? "axes" : NULL, 3, &given, &axes)) return false;
  if (!given) { /* without axes: the first axes, as many as there are starts */
    if (!clv__padding_list(padding, old ? "starts" : NULL, 1, &given, &starts)) return false;
    sliced = clv__axes_between(0, starts.count < CLV_MAX_RANK ? (int32_t)starts.count : CLV_MAX_RANK);
  }
  for (uint32_t i = 0; i < axes.count; ++i) {
    int32_t axis;
    if (!clv__padding_axis(padding, axes.elements[i], node->inputs[0].rank, &axis)) return false;
    sliced |= clv__axis_bit(axis);
  }
  return clv__padding_avoids(padding, 0, sliced) && clv__padding_pass(padding);
}

bool clv__independent_pad(clv__padding *padding) {
  const clv__infer *node = padding->node;
  clv__content pads, axes = {.count = 0};
  bool given, axes_given = false;
  if (!clv__padding_whole_from(padding, 1)) return false;
  if (!clv__padding_list(padding, node->opset < 11 ? "pads" : NULL, 1, &given, &pads)) return false;
  if (node->opset >= 18 && !clv__padding_list(padding, NULL, 3, &axes_given, &axes)) return false;
  uint32_t count = axes_given ? axes.count : (uint32_t)node->inputs[0].rank, surrounded = 0;
  if (!given || pads.count != 2 * count) return clv__padding_no(padding, "its pads are not two per axis");
  for (uint32_t i = 0; i < count; ++i) {
    int32_t axis;
    if (!clv__padding_axis(padding, axes_given ? axes.elements[i] : (int64_t)i, node->inputs[0].rank, &axis)) return false;
    if (pads.elements[i] != 0 || pads.elements[count + i] != 0) surrounded |= clv__axis_bit(axis);
  }
  return clv__padding_avoids(padding, 0, surrounded) && clv__padding_pass(padding);
}

bool clv__independent_expand(clv__padding *padding) {
  const clv__infer *node = padding->node;
  clv__content want;
  bool given;
  if (!clv__padding_whole_from(padding, 1) || !clv__padding_list(padding, NULL, 1, &given, &want)) return false;
  int32_t rank = node->outputs[0].rank, added = rank - node->inputs[0].rank;
  for (int32_t axis = 0; axis < node->inputs[0].rank; ++axis) {
    if ((padding->inputs[0] >> axis & 1u) == 0) continue;
    int32_t at = axis + added - (rank - (int32_t)want.count);
    if (at >= 0 && want.elements[at] != 1)
      return clv__padding_no(padding, "it expands axis %d, which has an open size, to a fixed size", (int)axis);
    padding->outputs[0] |= clv__axis_bit(axis + added);
  }
  return true;
}

bool clv__independent_tile(clv__padding *padding) {
  clv__content repeats;
  bool given;
  uint32_t repeated = 0;
  if (!clv__padding_whole_from(padding, 1) || !clv__padding_list(padding, NULL, 1, &given, &repeats)) return false;
  for (uint32_t i = 0; i < repeats.count && i < CLV_MAX_RANK; ++i) {
    if (repeats.elements[i] != 1) repeated |= clv__axis_bit((int32_t)i);
  }
  return clv__padding_avoids(padding, 0, repeated) && clv__padding_pass(padding);
}
