/* See strided.h. */
#include "strided.h"

clv__cpu_variant_node *clv__cpu_maker(clv__cpu_variant *variant, uint32_t value) {
  const uint32_t producer = variant->values[value].producer;
  return producer != CLV__CPU_NONE && !variant->nodes[producer].dead ? &variant->nodes[producer] : NULL;
}

static void dense_strides(const clv_tensor *type, int64_t strides[CLV_MAX_RANK]) {
  int64_t stride = 1;
  for (int32_t i = type->rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= type->dims[i];
  }
}

clv__cpu_strided clv__cpu_strided_of(const clv__cpu_variant *variant, uint32_t value) {
  const clv_tensor *type = &variant->values[value].type;
  clv__cpu_strided s = {.value = value};
  int64_t strides[CLV_MAX_RANK];
  dense_strides(type, strides);
  for (int32_t i = 0; i < type->rank; ++i) {
    if (type->dims[i] == 1) continue;
    s.parts[s.part_count++] = (clv__cpu_part){.axis = i, .extent = type->dims[i], .stride = strides[i]};
  }
  return s;
}

/* The offset and strides of a tensor's axes in another tensor's memory. */
typedef struct placement {
  int64_t first;
  int64_t strides[CLV_MAX_RANK];
} placement;

/* Converts parts over the memory of a row-major tensor of `type` into parts over the memory that `at` describes for its axes.
 * Returns false if a part spans axes in a way that strides cannot express. */
static bool move_parts(const clv_tensor *type, const placement *at, uint32_t value, clv__cpu_strided *s) {
  clv__cpu_strided to = {.value = value, .first = at->first};
  int64_t strides[CLV_MAX_RANK], reach[CLV_MAX_RANK];
  dense_strides(type, strides);
  for (int32_t k = 0; k < type->rank; ++k) {
    reach[k] = s->first / strides[k] % type->dims[k];
    to.first += reach[k] * at->strides[k];
  }
  for (uint32_t p = s->part_count; p-- > 0;) { /* innermost first; reversed at the end */
    int64_t extent = s->parts[p].extent, stride = s->parts[p].stride;
    for (int32_t k = type->rank - 1; k >= 0 && extent > 1; --k) {
      if (type->dims[k] == 1 || stride >= strides[k] * type->dims[k]) continue;
      const int64_t step = stride / strides[k];
      int64_t here = type->dims[k] / step; /* the extent that fits into this axis */
      if (stride % strides[k] != 0) return false;
      if (extent <= here) here = extent;
      if (here < extent && (type->dims[k] % step != 0 || extent % here != 0)) return false;
      if (to.part_count == CLV__CPU_STRIDED_PARTS) return false;
      const clv__cpu_part part = {.axis = s->parts[p].axis, .extent = here, .stride = at->strides[k] * step};
      to.parts[to.part_count++] = part;
      reach[k] += (here - 1) * step;
      if (reach[k] >= type->dims[k]) return false;
      extent /= here;
      stride *= here;
    }
    if (extent > 1) return false;
  }
  for (uint32_t p = 0; p < to.part_count / 2; ++p) {
    const clv__cpu_part part = to.parts[p];
    to.parts[p] = to.parts[to.part_count - 1 - p];
    to.parts[to.part_count - 1 - p] = part;
  }
  *s = to;
  return true;
}

/* ---- Values derived from others ---- */

static bool known_integers(const clv__cpu_variant *variant, const clv__cpu_variant_node *node, uint32_t index, int64_t *numbers,
                           int64_t *count) {
  if (index >= node->input_count || node->inputs[index] == CLV__CPU_NONE) return false;
  const clv_tensor *known = &variant->values[node->inputs[index]].type;
  if (!variant->values[node->inputs[index]].is_constant || known->data == NULL || known->rank > 1) return false;
  *count = known->rank == 0 ? 1 : known->dims[0];
  if (*count > CLV_MAX_RANK || (known->dtype != CLV_I64 && known->dtype != CLV_I32)) return false;
  for (int64_t i = 0; i < *count; ++i) {
    int32_t small;
    if (known->dtype == CLV_I64) {
      memcpy(&numbers[i], (const char *)known->data + i * 8, 8);
    } else {
      memcpy(&small, (const char *)known->data + i * 4, 4);
      numbers[i] = small;
    }
  }
  return true;
}

static bool place_transposed(const clv__cpu_variant *variant, const clv__cpu_variant_node *node, placement *at) {
  const clv_tensor *from = &variant->values[node->inputs[0]].type;
  int64_t strides[CLV_MAX_RANK];
  size_t count;
  const int64_t *perm = clv__attribute_ints(node->source->attributes, "perm", &count);
  dense_strides(from, strides);
  for (int32_t i = 0; i < from->rank; ++i) at->strides[i] = strides[perm != NULL ? perm[i] : from->rank - 1 - i];
  return true;
}

static bool place_split(const clv__cpu_variant *variant, const clv__cpu_variant_node *node, uint32_t value, placement *at) {
  const clv_tensor *from = &variant->values[node->inputs[0]].type;
  int64_t axis = clv__attribute_int(node->source->attributes, "axis", 0);
  if (axis < 0) axis += from->rank;
  if (axis < 0 || axis >= from->rank) return false;
  dense_strides(from, at->strides);
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (node->outputs[i] == CLV__CPU_NONE) return false;
    if (node->outputs[i] == value) return true;
    at->first += variant->values[node->outputs[i]].type.dims[axis] * at->strides[axis];
  }
  return false;
}

/* Finds where a Gather with one index reads. Such a Gather removes an axis or leaves it with extent 1. */
static bool place_gather(const clv__cpu_variant *variant, const clv__cpu_variant_node *node, placement *at) {
  const clv_tensor *from = &variant->values[node->inputs[0]].type;
  int64_t strides[CLV_MAX_RANK], index, count, axis = clv__attribute_int(node->source->attributes, "axis", 0);
  int64_t numbers[CLV_MAX_RANK];
  if (axis < 0) axis += from->rank;
  if (axis < 0 || axis >= from->rank || !known_integers(variant, node, 1, numbers, &count) || count != 1) return false;
  index = numbers[0] < 0 ? numbers[0] + from->dims[axis] : numbers[0];
  if (index < 0 || index >= from->dims[axis]) return false;
  dense_strides(from, strides);
  at->first = index * strides[axis];
  int32_t to = 0;
  const bool keeps = variant->values[node->inputs[1]].type.rank == 1;
  for (int32_t i = 0; i < from->rank; ++i) {
    if (i != axis || keeps) at->strides[to++] = strides[i];
  }
  return true;
}

static bool place_slice(const clv__cpu_variant *variant, const clv__cpu_variant_node *node, placement *at) {
  const clv_tensor *from = &variant->values[node->inputs[0]].type;
  int64_t starts[CLV_MAX_RANK], axes[CLV_MAX_RANK], steps[CLV_MAX_RANK], count, axis_count, step_count;
  if (node->source->opset < 10 || !known_integers(variant, node, 1, starts, &count)) return false;
  const bool has_axes = node->input_count > 3 && node->inputs[3] != CLV__CPU_NONE;
  const bool has_steps = node->input_count > 4 && node->inputs[4] != CLV__CPU_NONE;
  if (has_axes && (!known_integers(variant, node, 3, axes, &axis_count) || axis_count != count)) return false;
  if (has_steps && (!known_integers(variant, node, 4, steps, &step_count) || step_count != count)) return false;
  dense_strides(from, at->strides);
  for (int64_t i = 0; i < count; ++i) {
    int64_t axis = has_axes ? axes[i] : i;
    if (axis < 0) axis += from->rank;
    if (axis < 0 || axis >= from->rank || (has_steps && steps[i] != 1)) return false;
    const int64_t extent = from->dims[axis], start = starts[i] < 0 ? starts[i] + extent : starts[i];
    at->first += (start < 0 ? 0 : start > extent ? extent : start) * at->strides[axis];
  }
  return true;
}

bool clv__cpu_factor(clv__cpu_variant *variant, const clv__cpu_variant_node *node, uint32_t *input, double *factor) {
  if (node->kind != CLV__CPU_BINARY || node->post_count != 1) return false;
  const bool divides = node->posts[0].algorithm == CLV__DNN_DIV;
  if (!divides && node->posts[0].algorithm != CLV__DNN_MUL) return false;
  for (uint32_t k = divides ? 1 : 0; k < 2; ++k) {
    const clv__cpu_variant_value *known = &variant->values[node->inputs[k]], *other = &variant->values[node->inputs[1 - k]];
    size_t count;
    float number;
    if (!known->is_constant || known->type.data == NULL || !clv__cpu_is_f32(&known->type)) continue;
    if (!clv__tensor_count(&known->type, &count) || count != 1) continue;
    if (!clv__tensor_same_type(&other->type, &clv__cpu_output(variant, node)->type)) continue;
    memcpy(&number, known->type.data, sizeof number);
    *input = node->inputs[1 - k];
    *factor = divides ? 1.0 / (double)number : (double)number;
    return true;
  }
  return false;
}

bool clv__cpu_strided_back(clv__cpu_variant *variant, clv__cpu_strided *s, double *scale) {
  const clv__cpu_variant_node *node = clv__cpu_maker(variant, s->value);
  if (node == NULL || node->inputs[0] == CLV__CPU_NONE) return false;
  uint32_t input = node->inputs[0];
  double factor = 1;
  if (node->kind == CLV__CPU_VIEW || (scale != NULL && clv__cpu_factor(variant, node, &input, &factor))) {
    if (scale != NULL) *scale *= factor;
    s->value = input; /* same strides: a view has the same bytes, and a scaled value has the same shape */
    return clv__cpu_is_f32(&variant->values[input].type);
  }
  if (!clv__cpu_is_f32(&variant->values[input].type)) return false;
  placement at = {.first = 0};
  const char *op = node->source->op;
  bool placed = false;
  if (node->kind == CLV__CPU_TRANSPOSE) {
    placed = place_transposed(variant, node, &at);
  } else if (node->kind == CLV__CPU_KERNEL && node->source->domain[0] == 0) {
    if (strcmp(op, "Split") == 0) placed = place_split(variant, node, s->value, &at);
    if (strcmp(op, "Gather") == 0) placed = place_gather(variant, node, &at);
    if (strcmp(op, "Slice") == 0) placed = place_slice(variant, node, &at);
  }
  return placed && move_parts(&variant->values[s->value].type, &at, input, s);
}

bool clv__cpu_strided_forward(clv__cpu_variant *variant, clv__cpu_strided *s) {
  const clv__cpu_variant_node *reader = clv__cpu_only_reader(variant, s->value);
  if (reader == NULL || reader->output_count != 1 || reader->inputs[0] != s->value) return false;
  if (reader->kind == CLV__CPU_VIEW) {
    s->value = reader->outputs[0];
    return true;
  }
  if (reader->kind != CLV__CPU_TRANSPOSE) return false;
  const clv_tensor *from = &variant->values[s->value].type, *to = &variant->values[reader->outputs[0]].type;
  int64_t strides[CLV_MAX_RANK];
  size_t count;
  const int64_t *perm = clv__attribute_ints(reader->source->attributes, "perm", &count);
  placement at = {.first = 0};
  dense_strides(to, strides);
  for (int32_t i = 0; i < to->rank; ++i) at.strides[perm != NULL ? perm[i] : to->rank - 1 - i] = strides[i];
  return move_parts(from, &at, reader->outputs[0], s);
}
