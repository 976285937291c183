/* Rules of independence for operators that compute along some axes: see independence_rules.h. */
#include <string.h>

#include "analysis/independence_rules.h"
#include "operators/common/einsum.h"

/* ---- Along lines ---- */

/* Marks the axes of a list, counted from either end; none listed: all, or none where `noop`. */
static bool read_axes(clv__padding *padding, bool given, const clv__content *list, bool noop, int32_t rank, uint32_t *axes) {
  *axes = 0;
  for (uint32_t i = 0; given && i < list->count; ++i) {
    int32_t axis;
    if (!clv__padding_axis(padding, list->elements[i], rank, &axis)) return false;
    *axes |= clv__axis_bit(axis);
  }
  if ((!given || list->count == 0) && !noop) *axes = clv__axes_between(0, rank);
  return true;
}

/* Output `output` has the axes of input 0 without those of `gone`, or with them as 1. */
static void drop_axes(clv__padding *padding, uint32_t output, uint32_t gone, bool keeps_dims) {
  int32_t to = 0;
  for (int32_t axis = 0; axis < padding->node->inputs[0].rank; ++axis) {
    bool is_gone = (gone >> axis & 1u) != 0;
    if (!is_gone && (padding->inputs[0] >> axis & 1u) != 0) padding->outputs[output] |= clv__axis_bit(to);
    to += !is_gone || keeps_dims;
  }
}

bool clv__independent_reduce(clv__padding *padding) {
  const clv__infer *node = padding->node;
  clv__content list;
  bool given;
  uint32_t axes;
  if (!clv__padding_list(padding, clv__infer_has(node, 1) ? NULL : "axes", 1, &given, &list)) return false;
  bool noop = clv__attribute_int(node->attributes, "noop_with_empty_axes", 0) != 0;
  if (!read_axes(padding, given, &list, noop, node->inputs[0].rank, &axes) || !clv__padding_avoids(padding, 0, axes))
    return false;
  drop_axes(padding, 0, axes, clv__attribute_int(node->attributes, "keepdims", 1) != 0);
  return true;
}

bool clv__independent_arg(clv__padding *padding) {
  const clv__infer *node = padding->node;
  int32_t axis;
  if (!clv__padding_axis(padding, clv__attribute_int(node->attributes, "axis", 0), node->inputs[0].rank, &axis)) return false;
  if (!clv__padding_avoids(padding, 0, clv__axis_bit(axis))) return false;
  drop_axes(padding, 0, clv__axis_bit(axis), clv__attribute_int(node->attributes, "keepdims", 1) != 0);
  return true;
}

bool clv__independent_cumulate(clv__padding *padding) {
  clv__content list;
  bool given;
  int32_t axis;
  if (!clv__padding_list(padding, NULL, 1, &given, &list)) return false;
  if (!given || list.count != 1) return clv__padding_no(padding, "its axis is not one number");
  if (!clv__padding_axis(padding, list.elements[0], padding->node->inputs[0].rank, &axis)) return false;
  return clv__padding_avoids(padding, 0, clv__axis_bit(axis)) && clv__padding_pass(padding);
}

/* Before opset 13 all axes from the given one on are one line. */
bool clv__independent_softmax(clv__padding *padding) {
  const clv__infer *node = padding->node;
  int32_t axis, rank = node->inputs[0].rank;
  bool flattens = node->opset < 13;
  int64_t given = clv__attribute_int(node->attributes, "axis", flattens ? 1 : -1);
  if (flattens && given == rank) return clv__padding_pass(padding);
  if (!clv__padding_axis(padding, given, rank, &axis)) return false;
  uint32_t along = flattens ? clv__axes_between(axis, rank) : clv__axis_bit(axis);
  return clv__padding_avoids(padding, 0, along) && clv__padding_pass(padding);
}

bool clv__independent_lp(clv__padding *padding) {
  const clv__infer *node = padding->node;
  int32_t axis;
  if (!clv__padding_axis(padding, clv__attribute_int(node->attributes, "axis", -1), node->inputs[0].rank, &axis)) return false;
  return clv__padding_avoids(padding, 0, clv__axis_bit(axis)) && clv__padding_pass(padding);
}

/* One scale for all, or one an index of an axis that is not padded. */
bool clv__independent_quantize(clv__padding *padding) {
  const clv__infer *node = padding->node;
  const clv_tensor *scale = &node->inputs[1];
  int32_t axis;
  if (!clv__padding_whole_from(padding, 1)) return false;
  if (scale->rank == 0 || (scale->rank == 1 && scale->dims[0] == 1)) return clv__padding_pass(padding);
  if (scale->rank != 1) return clv__padding_no(padding, "its scales are by blocks");
  if (!clv__padding_axis(padding, clv__attribute_int(node->attributes, "axis", 1), node->inputs[0].rank, &axis)) return false;
  return clv__padding_avoids(padding, 0, clv__axis_bit(axis)) && clv__padding_pass(padding);
}

/* ---- Products ---- */

bool clv__independent_matmul(clv__padding *padding) {
  const clv__infer *node = padding->node;
  const clv_tensor *a = &node->inputs[0], *b = &node->inputs[1];
  if (!clv__padding_avoids(padding, 0, clv__axis_bit(a->rank - 1))) return false;
  if (!clv__padding_avoids(padding, 1, clv__axis_bit(b->rank > 1 ? b->rank - 2 : 0))) return false;
  int32_t batches = 0, of_a = a->rank > 2 ? a->rank - 2 : 0, of_b = b->rank > 2 ? b->rank - 2 : 0;
  batches = of_a > of_b ? of_a : of_b;
  for (int32_t axis = 0; axis < batches; ++axis) {
    int32_t x = axis - (batches - of_a), y = axis - (batches - of_b);
    bool a_there = x >= 0 && a->dims[x] != 1, b_there = y >= 0 && b->dims[y] != 1;
    bool a_padded = a_there && (padding->inputs[0] >> x & 1u) != 0, b_padded = b_there && (padding->inputs[1] >> y & 1u) != 0;
    if (a_there && b_there && a_padded != b_padded)
      return clv__padding_no(padding, "its inputs have different open sizes along batch axis %d", (int)axis);
    if (a_padded || b_padded) padding->outputs[0] |= clv__axis_bit(axis);
  }
  int32_t at = batches;
  if (a->rank > 1 && (padding->inputs[0] >> (a->rank - 2) & 1u) != 0) padding->outputs[0] |= clv__axis_bit(at);
  at += a->rank > 1;
  if (b->rank > 1 && (padding->inputs[1] >> (b->rank - 1) & 1u) != 0) padding->outputs[0] |= clv__axis_bit(at);
  return true;
}

bool clv__independent_gemm(clv__padding *padding) {
  const clv__infer *node = padding->node;
  int rows = clv__attribute_int(node->attributes, "transA", 0) != 0,
      columns = clv__attribute_int(node->attributes, "transB", 0) == 0;
  if (!clv__padding_avoids(padding, 0, clv__axis_bit(!rows)) || !clv__padding_avoids(padding, 1, clv__axis_bit(!columns)))
    return false;
  if ((padding->inputs[0] >> rows & 1u) != 0) padding->outputs[0] |= 1u;
  if ((padding->inputs[1] >> columns & 1u) != 0) padding->outputs[0] |= 2u;
  const clv_tensor *c = clv__infer_has(node, 2) ? &node->inputs[2] : NULL;
  for (int32_t axis = 0; c != NULL && axis < 2; ++axis) { /* it is broadcast, or padded as the product is */
    int32_t own = axis - (2 - c->rank);
    if (own < 0 || c->dims[own] == 1) continue;
    if ((padding->inputs[2] >> own & 1u) != (padding->outputs[0] >> axis & 1u))
      return clv__padding_no(padding, "its input 2 has another open size along axis %d", (int)axis);
  }
  return true;
}

/* A padded label is in the output, and padded wherever it occurs. */
bool clv__independent_einsum(clv__padding *padding) {
  const clv__infer *node = padding->node;
  clv__einsum_term term;
  int8_t labels[CLV__EINSUM_LABELS];
  bool padded[CLV__EINSUM_LABELS] = {false}, whole[CLV__EINSUM_LABELS] = {false};
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const clv_tensor *input = &node->inputs[i];
    if (clv__einsum_read_input(node->attributes, i, &term, NULL) != CLV_OK || input->rank < term.count)
      return clv__padding_no(padding, "its equation does not fit input %u", i);
    clv__einsum_labels(&term, input->rank - term.count, labels);
    for (int32_t axis = 0; axis < input->rank; ++axis) {
      bool is_padded = (padding->inputs[i] >> axis & 1u) != 0;
      if (is_padded) padded[labels[axis]] = true;
      if (!is_padded && input->dims[axis] != 1) whole[labels[axis]] = true;
    }
  }
  if (clv__einsum_read_output(node->attributes, node->input_count, &term, NULL) != CLV_OK || node->outputs[0].rank < term.count)
    return clv__padding_no(padding, "its equation does not fit the output");
  clv__einsum_labels(&term, node->outputs[0].rank - term.count, labels);
  for (int32_t axis = 0; axis < node->outputs[0].rank; ++axis) {
    if (!padded[labels[axis]]) continue;
    if (whole[labels[axis]]) return clv__padding_no(padding, "its inputs have different open sizes along axis %d", (int)axis);
    padding->outputs[0] |= clv__axis_bit(axis);
    padded[labels[axis]] = false;
  }
  for (int i = 0; i < CLV__EINSUM_LABELS; ++i) {
    if (padded[i]) return clv__padding_no(padding, "it sums along an axis of an open size");
  }
  return true;
}

/* ---- Images ---- */

/* Each image of the batch by itself. */
bool clv__independent_batch(clv__padding *padding) {
  const clv__infer *node = padding->node;
  bool resizes = strcmp(padding->op->name, "Resize") == 0 || strcmp(padding->op->name, "Upsample") == 0;
  if (!clv__padding_whole_from(padding, 1) || !clv__padding_avoids(padding, 0, ~1u)) return false;
  /* A list of sizes says that of the batch too, unless there is one axis for each; inference keeps the size where scales do. */
  if (resizes && padding->inputs[0] != 0 && (node->outputs[0].rank < 1 || node->outputs[0].dims[0] != node->inputs[0].dims[0]))
    return clv__padding_no(padding, "it changes the size of axis 0");
  return clv__padding_pass(padding);
}

/* Each channel of each image; the second output has places counted over all of them, the last axes first. */
bool clv__independent_planes(clv__padding *padding) {
  const clv__infer *node = padding->node;
  bool counts = node->output_count > 1 && node->outputs[1].dtype != CLV_DTYPE_NONE;
  return clv__padding_avoids(padding, 0, counts ? ~1u : ~3u) && clv__padding_pass(padding);
}

bool clv__independent_batch_norm(clv__padding *padding) {
  const clv__infer *node = padding->node;
  for (uint32_t i = 1; i < node->output_count; ++i) {
    if (node->outputs[i].dtype != CLV_DTYPE_NONE) return clv__padding_no(padding, "it is in training mode");
  }
  if (clv__attribute_int(node->attributes, "training_mode", 0) != 0) return clv__padding_no(padding, "it is in training mode");
  bool by_activation = clv__attribute_int(node->attributes, "spatial", 1) == 0;
  if (!clv__padding_whole_from(padding, 1)) return false;
  return clv__padding_avoids(padding, 0, by_activation ? ~1u : 2u) && clv__padding_pass(padding);
}

bool clv__independent_layer_norm(clv__padding *padding) {
  const clv__infer *node = padding->node;
  const clv_tensor *x = &node->inputs[0];
  int32_t axis;
  if (!clv__padding_axis(padding, clv__attribute_int(node->attributes, "axis", -1), x->rank, &axis)) return false;
  if (!clv__padding_whole_from(padding, 1) || !clv__padding_avoids(padding, 0, clv__axes_between(axis, x->rank))) return false;
  for (uint32_t i = 1; i < node->input_count; ++i) { /* scale and bias are broadcast along what is padded */
    const clv_tensor *other = &node->inputs[i];
    for (int32_t own = 0; clv__infer_has(node, i) && own < other->rank; ++own) {
      int32_t at = own + x->rank - other->rank;
      if (at >= 0 && (padding->inputs[0] >> at & 1u) != 0 && other->dims[own] != 1)
        return clv__padding_no(padding, "its input %u has another open size along axis %d", i, (int)at);
    }
  }
  return clv__padding_pass(padding);
}

bool clv__independent_mean_variance(clv__padding *padding) {
  static const int64_t usual[] = {0, 2, 3};
  const clv__infer *node = padding->node;
  size_t count;
  uint32_t axes = 0;
  const int64_t *list = clv__attribute_ints(node->attributes, "axes", &count);
  if (list == NULL || count == 0) list = usual, count = 3;
  for (size_t i = 0; i < count; ++i) {
    int32_t axis;
    if (!clv__padding_axis(padding, list[i], node->inputs[0].rank, &axis)) return false;
    axes |= clv__axis_bit(axis);
  }
  return clv__padding_avoids(padding, 0, axes) && clv__padding_pass(padding);
}

/* Over neighbouring channels. */
bool clv__independent_lrn(clv__padding *padding) {
  return clv__padding_avoids(padding, 0, 2u) && clv__padding_pass(padding);
}
