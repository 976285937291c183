/* Independence of operators that read or write at positions given by a tensor of indices. If that tensor is padded, its padding
 * must be valid indices, as zeros are. */
#include "operators/gather/rules.h"

static bool places_are_valid(clv__padding *padding, uint32_t input) {
  if (padding->inputs[input] == 0 || padding->zero[input]) return true;
  return clv__padding_no(padding, "its input %u contains indices, and padding may contain invalid ones", input);
}

bool clv__independent_gather(clv__padding *padding) {
  const clv_tensor *data = &padding->node->inputs[0], *indices = &padding->node->inputs[1];
  int32_t axis;
  if (!clv__padding_attribute_axis(padding, 0, data->rank, &axis)) return false;
  if (!clv__padding_avoids(padding, 0, clv__axis_bit(axis)) || !places_are_valid(padding, 1)) return false;
  for (int32_t d = 0; d < data->rank; ++d) {
    if ((padding->inputs[0] >> d & 1u) != 0) padding->outputs[0] |= clv__axis_bit(d < axis ? d : d + indices->rank - 1);
  }
  padding->outputs[0] |= padding->inputs[1] << axis;
  return true;
}

/* Whether each padded axis of the indices (or updates), except the indexed axis, is also padded in the data. */
static bool lie_on_data(clv__padding *padding, uint32_t input, int32_t axis) {
  uint32_t others = ~clv__axis_bit(axis), outside = padding->inputs[input] & ~padding->inputs[0] & others;
  if (outside == 0) return true;
  return clv__padding_no(padding, "input %u and input 0 do not have the same open size along axis %d", input,
                         __builtin_ctz(outside));
}

bool clv__independent_gather_elements(clv__padding *padding) {
  int32_t axis;
  if (!clv__padding_attribute_axis(padding, 0, padding->node->inputs[0].rank, &axis)) return false;
  if (!clv__padding_avoids(padding, 0, clv__axis_bit(axis)) || !places_are_valid(padding, 1) || !lie_on_data(padding, 1, axis))
    return false;
  padding->outputs[0] = padding->inputs[1];
  return true;
}

bool clv__independent_gather_nd(clv__padding *padding) {
  const clv_tensor *data = &padding->node->inputs[0], *indices = &padding->node->inputs[1];
  int64_t batch = clv__attribute_int(padding->node->attributes, "batch_dims", 0);
  int64_t depth = indices->rank < 1 ? -1 : indices->dims[indices->rank - 1];
  if (depth < 0 || batch < 0 || batch + depth > data->rank || batch >= indices->rank)
    return clv__padding_no(padding, "the number of axes that it indexes is unknown");
  int32_t first = (int32_t)batch, end = (int32_t)(batch + depth);
  if (!clv__padding_avoids(padding, 0, clv__axes_between(first, end)) || !places_are_valid(padding, 1)) return false;
  uint32_t batches = clv__axes_between(0, first);
  if (((padding->inputs[0] ^ padding->inputs[1]) & batches) != 0)
    return clv__padding_no(padding, "its inputs do not have the same open size along a batch axis");
  padding->outputs[0] = padding->inputs[1] & ~clv__axis_bit(indices->rank - 1);
  for (int32_t d = end; d < data->rank; ++d) {
    if ((padding->inputs[0] >> d & 1u) != 0) padding->outputs[0] |= clv__axis_bit(indices->rank - 1 + d - end);
  }
  return clv__padding_avoids(padding, 1, clv__axis_bit(indices->rank - 1));
}

bool clv__independent_scatter_elements(clv__padding *padding) {
  int32_t axis;
  if (!clv__padding_attribute_axis(padding, 0, padding->node->inputs[0].rank, &axis)) return false;
  uint32_t along = clv__axis_bit(axis);
  for (uint32_t i = 0; i < 3; ++i) {
    if (!clv__padding_avoids(padding, i, along)) return false;
  }
  if (padding->inputs[1] != padding->inputs[2])
    return clv__padding_no(padding, "indices and updates do not have the same open sizes");
  if (!places_are_valid(padding, 1) || !lie_on_data(padding, 1, axis)) return false;
  padding->outputs[0] = padding->inputs[0];
  return true;
}

/* ScatterND writes whole slices of the data, so only axes within a slice may be padded. */
bool clv__independent_scatter_nd(clv__padding *padding) {
  const clv_tensor *data = &padding->node->inputs[0], *indices = &padding->node->inputs[1];
  int64_t depth = indices->rank < 1 ? -1 : indices->dims[indices->rank - 1];
  if (depth < 0 || depth > data->rank) return clv__padding_no(padding, "the number of axes that it indexes is unknown");
  if (!clv__padding_avoids(padding, 0, clv__axes_between(0, (int32_t)depth)) || !clv__padding_avoids(padding, 1, ~0u))
    return false;
  uint32_t wanted = 0;
  for (int32_t d = (int32_t)depth; d < data->rank; ++d) {
    if ((padding->inputs[0] >> d & 1u) != 0) wanted |= clv__axis_bit(indices->rank - 1 + d - (int32_t)depth);
  }
  if (padding->inputs[2] != wanted)
    return clv__padding_no(padding, "its updates and the slices that they replace do not have the same open sizes");
  padding->outputs[0] = padding->inputs[0];
  return true;
}
