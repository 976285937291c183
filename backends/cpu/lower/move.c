/* Steps that move elements: Transpose, channel shuffle. */
#include "operators/common/move.h"
#include "lower.h"

#define NEAR 64 /* how many following nodes to search for readers */

/* Whether all readers of `value`, which node `here` computes, accept any layout or would reorder it anyway. Also false if the
 * last reader is more than NEAR nodes away. */
static bool readers_take_any(const clv__cpu_variant *variant, uint32_t value, uint32_t here) {
  const uint32_t last = variant->values[value].last_read;
  if (last == CLV__CPU_NONE || last > here + NEAR || variant->values[value].output != CLV__CPU_NONE) return false;
  for (uint32_t n = here + 1; n <= last; ++n) {
    const clv__cpu_variant_node *node = &variant->nodes[n];
    for (uint32_t i = 0; i < node->input_count && !node->dead; ++i) {
      if (node->inputs[i] != value) continue;
      const bool moves = node->kind == CLV__CPU_CONVOLUTION || node->kind == CLV__CPU_TRANSPOSE || node->kind == CLV__CPU_POOL;
      const bool adds = node->kind == CLV__CPU_BINARY &&
                        clv__tensor_same_type(&variant->values[node->inputs[0]].type, &variant->values[node->inputs[1]].type);
      if (!moves && !adds) return false;
    }
  }
  return true;
}

/* Makes the node a view, for which no step runs: its result is the memory of its source, `slot`, read in `layout` (NULL:
 * row-major). */
static void make_view(clv__cpu_variant *variant, clv__cpu_variant_node *node, const clv__dnn_layout *layout, uint32_t slot) {
  clv__cpu_variant_value *made = &variant->values[node->outputs[0]];
  made->forms[0] = (clv__cpu_form){layout, slot};
  made->form_count = 1;
  node->kind = CLV__CPU_VIEW;
  for (uint32_t at = node->inputs[0];;) { /* the source, and anything it is a view of, must live as long as the view */
    clv__cpu_variant_value *read = &variant->values[at];
    if (made->last_read != CLV__CPU_NONE && (read->last_read == CLV__CPU_NONE || read->last_read < made->last_read)) {
      read->last_read = made->last_read;
    }
    if (read->producer == CLV__CPU_NONE || variant->nodes[read->producer].kind != CLV__CPU_VIEW) return;
    at = variant->nodes[read->producer].inputs[0];
  }
}

typedef struct turn_step {
  clv__cpu_own own;
  clv__strided shape;
} turn_step;

static void run_turn(const clv__cpu_own *own, const clv_tensor *operands, const clv__stop *stop) {
  const turn_step *step = (const turn_step *)(const void *)own;
  clv__strided_read(operands[0].data, operands[1].data, &step->shape, sizeof(float), stop);
}

/* Transposes between row-major f32 tensors. */
static clv_status lower_words(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const int32_t *perm,
                              clv_error *error) {
  const clv_tensor *from = &variant->values[node->inputs[0]].type, *to = &variant->values[node->outputs[0]].type;
  turn_step *turn = clv__arena_allocate_zero(&variant->arena, 1, sizeof *turn);
  if (turn == NULL) return clv__error_memory(error, sizeof *turn);
  int64_t strides[CLV_MAX_RANK];
  clv__dense_strides(from, strides);
  turn->own.run = run_turn;
  turn->shape.rank = to->rank;
  for (int32_t i = 0; i < to->rank; ++i) {
    turn->shape.dims[i] = to->dims[i];
    turn->shape.strides[i] = strides[perm[i]];
  }
  uint32_t source, result;
  CLV__TRY(clv__cpu_form_get(variant, node->inputs[0], NULL, &source, error));
  CLV__TRY(clv__cpu_form_make(variant, node->outputs[0], NULL, &result, error));
  clv__cpu_step *step = clv__cpu_step_new(variant, CLV__CPU_STEP_OWN, node->source, node->source->op, 2);
  if (step == NULL) return clv__error_memory(error, sizeof *step);
  step->own = &turn->own;
  clv__cpu_step_input(step, 0, source, NULL);
  clv__cpu_step_output(step, 0, result, NULL);
  step->operands[0].type = *from;
  step->operands[1].type = *to;
  return CLV_OK;
}

/* The result is a view of the source's memory with permuted axes, if all readers accept that, or if that memory happens to be
 * the row-major result. Otherwise the source is reordered to a row-major result. */
clv_status clv__cpu_lower_transpose(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  const clv_tensor *from = &variant->values[node->inputs[0]].type, *to = &variant->values[node->outputs[0]].type;
  const uint32_t here = (uint32_t)(node - variant->nodes);
  size_t count;
  const int64_t *given = clv__attribute_ints(node->source->attributes, "perm", &count);
  int32_t perm[CLV_MAX_RANK];
  for (int32_t i = 0; i < from->rank; ++i) perm[i] = given != NULL ? (int32_t)given[i] : from->rank - 1 - i;
  const clv_dtype made = to->dtype == CLV_F32 ? variant->values[node->outputs[0]].made : to->dtype;
  const clv__dnn_layout *form = clv__cpu_form_layout(variant, node->inputs[0]), *source, *destination;
  if (form == NULL) return clv__error_memory(error, 0);
  const bool lies_dense = clv__dnn_layout_is_dense(form), is_f32 = clv__dnn_layout_dtype(form) == CLV_F32 && made == CLV_F32;
  source = clv__dnn_layout_permuted(&variant->arena, form, perm);
  if (source == NULL && !lies_dense) {
    form = clv__cpu_form_dense(variant, node->inputs[0], clv__dnn_layout_dtype(form));
    source = form != NULL ? clv__dnn_layout_permuted(&variant->arena, form, perm) : NULL;
  }
  destination = clv__dnn_layout_dense(&variant->arena, made, to->rank, to->dims);
  if (form == NULL || source == NULL || destination == NULL) return clv__error_memory(error, 0);
  uint32_t from_slot, to_slot;
  const bool comes_dense =
      is_f32 && variant->values[node->outputs[0]].output == CLV__CPU_NONE && clv__dnn_layout_is_dense(source);
  if (comes_dense || (is_f32 && from->rank == 4 && readers_take_any(variant, node->outputs[0], here))) {
    CLV__TRY(clv__cpu_form_get(variant, node->inputs[0], form, &from_slot, error));
    make_view(variant, node, comes_dense ? NULL : source, from_slot);
    return CLV_OK;
  }
  if (is_f32 && lies_dense) return lower_words(variant, node, perm, error);
  clv__dnn_primitive *primitive;
  clv_status status = clv__dnn_reorder_create(variant->device->dnn, source, destination, &variant->arena, &primitive, error);
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  status = clv__cpu_form_get(variant, node->inputs[0], form, &from_slot, error);
  if (status == CLV_OK) status = clv__cpu_form_make(variant, node->outputs[0], destination, &to_slot, error);
  if (status != CLV_OK) {
    clv__dnn_primitive_release(primitive);
    return status;
  }
  clv__cpu_step *step;
  CLV__TRY(clv__cpu_step_primitive(variant, node, node->source->op, primitive, 2, &step, error));
  clv__cpu_step_input(step, CLV__DNN_SOURCE, from_slot, source);
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, to_slot, destination);
  return CLV_OK;
}

/* Shuffles channels in a layout that strides can express: splits them into two axes, [groups, extent], and transposes these with
 * a reorder. */
static clv_status shuffle_plain(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const clv__dnn_layout *layout,
                                clv__dnn_primitive **primitive, const clv__dnn_layout **from, const clv__dnn_layout **to,
                                clv_error *error) {
  const clv_tensor *type = &variant->values[node->outputs[0]].type;
  const int64_t groups = node->groups, extent = type->dims[1] / groups;
  int64_t strides[CLV_MAX_RANK], dims[CLV_MAX_RANK], before[CLV_MAX_RANK], after[CLV_MAX_RANK];
  clv__dnn_layout_strides(layout, strides);
  dims[0] = type->dims[0];
  before[0] = after[0] = strides[0];
  dims[1] = extent;
  dims[2] = groups;
  before[1] = strides[1];
  before[2] = strides[1] * extent;
  after[1] = strides[1] * groups;
  after[2] = strides[1];
  for (int32_t i = 2; i < type->rank; ++i) {
    dims[i + 1] = type->dims[i];
    before[i + 1] = after[i + 1] = strides[i];
  }
  *from = clv__dnn_layout_strided(&variant->arena, clv__dnn_layout_dtype(layout), type->rank + 1, dims, before);
  *to = clv__dnn_layout_strided(&variant->arena, clv__dnn_layout_dtype(layout), type->rank + 1, dims, after);
  if (*from == NULL || *to == NULL) return clv__error_memory(error, 0);
  return clv__dnn_reorder_create(variant->device->dnn, *from, *to, &variant->arena, primitive, error);
}

/* For blocked channels, uses oneDNN's primitive, whose group_size is the extent of a group. Otherwise uses a reorder. */
clv_status clv__cpu_lower_shuffle(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  const clv_tensor *type = &variant->values[node->outputs[0]].type;
  const clv__dnn_layout *layout = clv__cpu_form_layout(variant, node->inputs[0]), *from_layout = layout, *to_layout = layout;
  if (layout == NULL) return clv__error_memory(error, 0);
  clv__dnn_primitive *primitive = NULL;
  clv_status status = CLV_NOT_SUPPORTED;
  if (!clv__dnn_layout_is_plain(layout)) {
    status = clv__dnn_shuffle_create(variant->device->dnn, layout, 1, type->dims[1] / node->groups, &variant->arena, &primitive,
                                     error);
    if (status == CLV_NOT_SUPPORTED) layout = clv__cpu_form_dense(variant, node->inputs[0], clv__dnn_layout_dtype(layout));
    if (layout == NULL) return clv__error_memory(error, 0);
  }
  if (status == CLV_NOT_SUPPORTED && type->rank < CLV_MAX_RANK) {
    status = shuffle_plain(variant, node, layout, &primitive, &from_layout, &to_layout, error);
  }
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  uint32_t from, to;
  status = clv__cpu_form_get(variant, node->inputs[0], layout, &from, error);
  if (status == CLV_OK) status = clv__cpu_form_make(variant, node->outputs[0], layout, &to, error);
  if (status != CLV_OK) {
    clv__dnn_primitive_release(primitive);
    return status;
  }
  clv__cpu_step *step;
  CLV__TRY(clv__cpu_step_primitive(variant, node, "shuffle", primitive, 2, &step, error));
  clv__cpu_step_input(step, CLV__DNN_SOURCE, from, from_layout);
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, to, to_layout);
  return CLV_OK;
}
