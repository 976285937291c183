/* Lowers Split of a value that is not row-major. Each piece is read in place and written in the same layout, so that surrounding
 * steps can keep that layout. */
#include "lower.h"

/* A piece: its layout as a part of the source (`from`), its layout in the slot that the step writes (`to`), and the primitive
 * that copies it. */
typedef struct piece {
  const clv__dnn_layout *from, *to;
  clv__dnn_primitive *primitive;
} piece;

static bool is_split(const clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  return strcmp(node->source->op, "Split") == 0 && node->source->domain[0] == 0 && node->input_count > 0 && variant->onednn &&
         clv__cpu_is_f32(&variant->values[node->inputs[0]].type) && clv__cpu_form_is_blocked(variant, node->inputs[0]);
}

/* Describes the pieces. Returns false if a piece would begin or end within a block, or if the source is not stored in f32. */
static bool describe(clv__cpu_variant *variant, const clv__cpu_variant_node *node, piece *pieces) {
  const clv_tensor *whole = &variant->values[node->inputs[0]].type;
  const clv__dnn_layout *layout = clv__cpu_form_layout(variant, node->inputs[0]);
  int64_t axis = clv__attribute_int(node->source->attributes, "axis", 0), offsets[CLV_MAX_RANK] = {0};
  if (axis < 0) axis += whole->rank;
  if (layout == NULL || clv__dnn_layout_dtype(layout) != CLV_F32 || axis < 0 || axis >= whole->rank) return false;
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (node->outputs[i] == CLV__CPU_NONE) return false;
    const clv_tensor *type = &variant->values[node->outputs[i]].type;
    size_t count;
    if (!clv__tensor_is_static(type) || !clv__tensor_count(type, &count) || count == 0) return false;
    pieces[i].from = clv__dnn_layout_part(&variant->arena, layout, type->dims, offsets);
    pieces[i].to = clv__dnn_layout_rechannel(&variant->arena, layout, type->dims);
    if (pieces[i].from == NULL || pieces[i].to == NULL) return false;
    offsets[axis] += type->dims[axis];
  }
  return offsets[axis] == whole->dims[axis];
}

static void release(const clv__cpu_variant_node *node, piece *pieces) {
  for (uint32_t i = 0; i < node->output_count; ++i) clv__dnn_primitive_release(pieces[i].primitive);
}

static clv_status emit(clv__cpu_variant *variant, const clv__cpu_variant_node *node, piece *pieces, clv_error *error) {
  uint32_t source, made;
  CLV__TRY(clv__cpu_form_get(variant, node->inputs[0], clv__cpu_form_layout(variant, node->inputs[0]), &source, error));
  for (uint32_t i = 0; i < node->output_count; ++i) {
    clv__cpu_step *step;
    clv__dnn_primitive *primitive = pieces[i].primitive;
    CLV__TRY(clv__cpu_form_make(variant, node->outputs[i], pieces[i].to, &made, error));
    pieces[i].primitive = NULL; /* owned by the variant from here on */
    CLV__TRY(clv__cpu_step_primitive(variant, node, node->source->op, primitive, 2, &step, error));
    clv__cpu_step_input(step, CLV__DNN_SOURCE, source, pieces[i].from);
    clv__cpu_step_output(step, CLV__DNN_DESTINATION, made, pieces[i].to);
  }
  return CLV_OK;
}

clv_status clv__cpu_lower_split(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  *taken = is_split(variant, node);
  if (!*taken) return CLV_OK;
  piece *pieces = clv__arena_allocate_zero(&variant->arena, node->output_count, sizeof *pieces);
  if (pieces == NULL) return clv__error_memory(error, node->output_count * sizeof *pieces);
  *taken = describe(variant, node, pieces);
  clv_status status = CLV_OK;
  for (uint32_t i = 0; i < node->output_count && *taken && status == CLV_OK; ++i) {
    status =
        clv__dnn_reorder_create(variant->device->dnn, pieces[i].from, pieces[i].to, &variant->arena, &pieces[i].primitive, error);
  }
  if (status != CLV_OK) {
    release(node, pieces);
    return clv__cpu_refused(status, taken);
  }
  if (*taken) status = emit(variant, node, pieces, error);
  release(node, pieces); /* releases the primitives that no step took over */
  return status;
}
