/* The storage of values. A form of a value is a layout and the slot (memory) that holds the value in it. Reorders derive one form
 * from another. */
#include "forms.h"

static clv_status slot_new(clv__cpu_variant *variant, clv__cpu_slot_kind kind, uint32_t index, size_t size_bytes, uint32_t *slot,
                           clv_error *error) {
  void *slots = variant->slots;
  const bool room = clv__array_reserve(variant->device->allocator, &slots, &variant->slot_capacity, variant->slot_count + 1,
                                       sizeof *variant->slots, variant->slot_count);
  variant->slots = slots;
  if (!room) return clv__error_memory(error, (variant->slot_count + 1) * sizeof *variant->slots);
  *slot = (uint32_t)variant->slot_count++;
  variant->slots[*slot] = (clv__cpu_slot){.kind = kind, .index = index, .root = *slot, .size_bytes = size_bytes};
  return CLV_OK;
}

clv_status clv__cpu_slot_constant(clv__cpu_variant *variant, void *data, size_t size_bytes, uint32_t *slot, clv_error *error) {
  CLV__TRY(slot_new(variant, CLV__CPU_SLOT_CONSTANT, 0, size_bytes, slot, error));
  variant->slots[*slot].data = data;
  return CLV_OK;
}

clv_status clv__cpu_slot_scratch(clv__cpu_variant *variant, size_t size_bytes, uint32_t *slot, clv_error *error) {
  return slot_new(variant, CLV__CPU_SLOT_ARENA, 0, size_bytes, slot, error);
}

clv_status clv__cpu_slot_part(clv__cpu_variant *variant, uint32_t in, size_t at_bytes, size_t size_bytes, uint32_t *slot,
                              clv_error *error) {
  CLV__TRY(slot_new(variant, CLV__CPU_SLOT_ARENA, 0, size_bytes, slot, error));
  variant->slots[*slot].root = variant->slots[in].root;
  variant->slots[*slot].inner_bytes = variant->slots[in].inner_bytes + at_bytes;
  return CLV_OK;
}

static clv_status form_bytes(const clv__cpu_variant *variant, uint32_t value, const clv__dnn_layout *layout, size_t *size_bytes,
                             clv_error *error) {
  if (layout != NULL) {
    *size_bytes = clv__dnn_layout_size_bytes(layout);
    return CLV_OK;
  }
  if (clv__tensor_size_bytes(&variant->values[value].type, size_bytes)) return CLV_OK;
  return clv__error_set(error, CLV_INTERNAL_ERROR, "the size of a value is unknown, so no memory can be planned for it");
}

/* Records a form. If there is no room, the new form replaces the last one, which can be derived again from the first. */
static void add_form(clv__cpu_variant_value *value, const clv__dnn_layout *layout, uint32_t slot) {
  const uint32_t at = value->form_count < CLV__CPU_MAX_FORMS ? value->form_count++ : CLV__CPU_MAX_FORMS - 1;
  value->forms[at] = (clv__cpu_form){layout, slot};
}

/* Replaces `layout` by NULL if it is row-major in the dtype of the value's type. */
static const clv__dnn_layout *canonical_layout(const clv__cpu_variant *variant, uint32_t value, const clv__dnn_layout *layout) {
  if (layout == NULL || !clv__dnn_layout_is_dense(layout)) return layout;
  return clv__dnn_layout_dtype(layout) == variant->values[value].type.dtype ? NULL : layout;
}

/* Whether steps see the value as f32 although the model's dtype is narrower (widen.c), and `layout` is row-major in the model's
 * dtype. */
static bool is_outer(const clv__cpu_variant *variant, uint32_t value, const clv__dnn_layout *layout) {
  return layout != NULL && clv__dnn_layout_dtype(layout) == variant->values[value].outer && clv__dnn_layout_is_dense(layout);
}

clv_status clv__cpu_form_make(clv__cpu_variant *variant, uint32_t value, const clv__dnn_layout *layout, uint32_t *slot,
                              clv_error *error) {
  clv__cpu_variant_value *made = &variant->values[value];
  size_t size_bytes;
  layout = canonical_layout(variant, value, layout);
  CLV__TRY(form_bytes(variant, value, layout, &size_bytes, error));
  const bool leaves =
      made->output != CLV__CPU_NONE && (made->outer == CLV_DTYPE_NONE ? layout == NULL : is_outer(variant, value, layout));
  CLV__TRY(slot_new(variant, leaves ? CLV__CPU_SLOT_OUTPUT : CLV__CPU_SLOT_ARENA, made->output, size_bytes, slot, error));
  add_form(made, layout, *slot);
  return CLV_OK;
}

clv_status clv__cpu_form_make_in(clv__cpu_variant *variant, uint32_t value, const clv__dnn_layout *layout, uint32_t in,
                                 uint32_t *slot, clv_error *error) {
  size_t size_bytes;
  layout = canonical_layout(variant, value, layout);
  CLV__TRY(form_bytes(variant, value, layout, &size_bytes, error));
  CLV__TRY(slot_new(variant, CLV__CPU_SLOT_ARENA, 0, size_bytes, slot, error));
  variant->slots[*slot].root = variant->slots[in].root;
  add_form(&variant->values[value], layout, *slot);
  return CLV_OK;
}

static clv_dtype dtype_of(const clv__cpu_variant *variant, uint32_t value, const clv__cpu_form *form) {
  return form->layout != NULL ? clv__dnn_layout_dtype(form->layout) : variant->values[value].type.dtype;
}

bool clv__cpu_form_is_blocked(const clv__cpu_variant *variant, uint32_t value) {
  const clv__cpu_variant_value *read = &variant->values[value];
  return read->form_count > 0 && read->forms[0].layout != NULL && !clv__dnn_is_foreign(dtype_of(variant, value, &read->forms[0]));
}

clv_dtype clv__cpu_form_dtype(const clv__cpu_variant *variant, uint32_t value) {
  return clv__cpu_form_is_blocked(variant, value) ? dtype_of(variant, value, &variant->values[value].forms[0])
                                                  : variant->values[value].type.dtype;
}

const clv__dnn_layout *clv__cpu_form_dense(clv__cpu_variant *variant, uint32_t value, clv_dtype dtype) {
  const clv_tensor *type = &variant->values[value].type;
  return clv__dnn_layout_dense(&variant->arena, dtype, type->rank, type->dims);
}

clv_status clv__cpu_form_outer(clv__cpu_variant *variant, uint32_t value, const clv__dnn_layout **layout, clv_error *error) {
  *layout = NULL;
  if (variant->values[value].outer == CLV_DTYPE_NONE) return CLV_OK;
  *layout = clv__cpu_form_dense(variant, value, variant->values[value].outer);
  return *layout != NULL ? CLV_OK : clv__error_memory(error, 0);
}

const clv__dnn_layout *clv__cpu_form_layout(clv__cpu_variant *variant, uint32_t value) {
  const clv__cpu_variant_value *read = &variant->values[value];
  if (clv__cpu_form_is_blocked(variant, value)) return read->forms[0].layout;
  return clv__cpu_form_dense(variant, value, read->type.dtype);
}

bool clv__cpu_form_is_first(const clv__cpu_variant *variant, uint32_t value, const clv__dnn_layout *layout) {
  const clv__cpu_variant_value *read = &variant->values[value];
  if (read->form_count == 0) return false;
  layout = canonical_layout(variant, value, layout);
  return read->forms[0].layout == layout || (layout != NULL && clv__dnn_layout_equal(read->forms[0].layout, layout));
}

static const clv__cpu_form *find_form(const clv__cpu_variant_value *value, const clv__dnn_layout *layout) {
  for (uint32_t i = 0; i < value->form_count; ++i) {
    const clv__cpu_form *form = &value->forms[i];
    if (form->layout == layout) return form;
    if (form->layout != NULL && layout != NULL && clv__dnn_layout_equal(form->layout, layout)) return form;
  }
  return NULL;
}

/* Creates the slot of a constant when it is first read, with the model's bytes or the same values in f32. */
static clv_status add_constant_form(clv__cpu_variant *variant, uint32_t value, const clv__dnn_layout *layout, clv_error *error) {
  clv__cpu_variant_value *read = &variant->values[value];
  const bool raw = is_outer(variant, value, layout) && variant->program->values[value].is_constant;
  void *data;
  size_t size_bytes;
  uint32_t slot;
  if (!raw && find_form(read, NULL) != NULL) return CLV_OK;
  CLV__TRY(raw ? clv__cpu_constant_raw(variant->constants, value, &data, error) : clv__cpu_known(variant, value, &data, error));
  CLV__TRY(form_bytes(variant, value, raw ? layout : NULL, &size_bytes, error));
  CLV__TRY(clv__cpu_slot_constant(variant, data, size_bytes, &slot, error));
  add_form(read, raw ? layout : NULL, slot);
  return CLV_OK;
}

static clv_status reorder(clv__cpu_variant *variant, uint32_t value, const clv__cpu_form *from, const clv__dnn_layout *layout,
                          uint32_t *slot, clv_error *error) {
  const clv__cpu_variant_value *read = &variant->values[value];
  const clv_dtype dtype = read->type.dtype;
  const clv__cpu_form source = *from;
  const clv__dnn_layout *from_layout = source.layout != NULL ? source.layout : clv__cpu_form_dense(variant, value, dtype);
  const clv__dnn_layout *to = layout != NULL ? layout : clv__cpu_form_dense(variant, value, dtype);
  if (from_layout == NULL || to == NULL) return clv__error_memory(error, 0);
  clv__dnn_primitive *primitive;
  CLV__TRY(clv__dnn_reorder_create(variant->device->dnn, from_layout, to, &variant->arena, &primitive, error));
  clv__cpu_step *step;
  const clv__cpu_variant_node *node = read->producer != CLV__CPU_NONE ? &variant->nodes[read->producer] : NULL;
  CLV__TRY(clv__cpu_step_primitive(variant, node, "reorder", primitive, 2, &step, error));
  clv__cpu_step_input(step, CLV__DNN_SOURCE, source.slot, from_layout);
  CLV__TRY(clv__cpu_form_make(variant, value, layout, slot, error));
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, *slot, to);
  return CLV_OK;
}

/* Converts between row-major f32 and a row-major dtype that oneDNN does not support. */
static clv_status convert(clv__cpu_variant *variant, uint32_t value, const clv__cpu_form *from, const clv__dnn_layout *layout,
                          uint32_t *slot, clv_error *error) {
  const clv__cpu_variant_value *read = &variant->values[value];
  const clv__cpu_form source = *from;
  const clv__cpu_node *node = read->producer != CLV__CPU_NONE ? variant->nodes[read->producer].source : NULL;
  clv_tensor types[2] = {read->type, read->type};
  types[0].data = types[1].data = NULL;
  types[0].dtype = dtype_of(variant, value, &source);
  if (layout != NULL) types[1].dtype = clv__dnn_layout_dtype(layout);
  CLV__TRY(clv__cpu_form_make(variant, value, layout, slot, error));
  clv__cpu_step *step = clv__cpu_step_new(variant, CLV__CPU_STEP_CONVERT, node, "convert", 2);
  if (step == NULL) return clv__error_memory(error, sizeof *step);
  clv__cpu_step_input(step, 0, source.slot, NULL);
  clv__cpu_step_output(step, 0, *slot, NULL);
  for (int i = 0; i < 2; ++i) step->operands[i].type = types[i];
  return CLV_OK;
}

/* Derives a form from the one the value was computed in. Dtypes that oneDNN does not support are converted through row-major
 * f32. */
static clv_status derive_form(clv__cpu_variant *variant, uint32_t value, const clv__dnn_layout *layout, uint32_t *slot,
                              clv_error *error) {
  const clv__cpu_variant_value *read = &variant->values[value];
  const bool to_foreign = layout != NULL && clv__dnn_is_foreign(clv__dnn_layout_dtype(layout));
  const bool from_foreign = clv__dnn_is_foreign(dtype_of(variant, value, &read->forms[0]));
  if (!to_foreign && !from_foreign) return reorder(variant, value, &read->forms[0], layout, slot, error);
  const clv__cpu_form *wide = find_form(read, NULL);
  if (wide == NULL && from_foreign) {
    CLV__TRY(convert(variant, value, &read->forms[0], NULL, slot, error));
  } else if (wide == NULL) {
    CLV__TRY(reorder(variant, value, &read->forms[0], NULL, slot, error));
  } else {
    *slot = wide->slot;
  }
  const clv__cpu_form row_major = {NULL, *slot};
  if (layout == NULL) return CLV_OK;
  return to_foreign ? convert(variant, value, &row_major, layout, slot, error)
                    : reorder(variant, value, &row_major, layout, slot, error);
}

clv_status clv__cpu_form_get(clv__cpu_variant *variant, uint32_t value, const clv__dnn_layout *layout, uint32_t *slot,
                             clv_error *error) {
  clv__cpu_variant_value *read = &variant->values[value];
  layout = canonical_layout(variant, value, layout);
  const clv__cpu_form *form = find_form(read, layout);
  if (form == NULL && read->is_constant) {
    CLV__TRY(add_constant_form(variant, value, layout, error));
    form = find_form(read, layout);
  }
  if (form != NULL) {
    *slot = form->slot;
    return CLV_OK;
  }
  if (read->form_count == 0) return clv__error_set(error, CLV_INTERNAL_ERROR, "value %u is read before it is computed", value);
  return derive_form(variant, value, layout, slot, error);
}

/* ---- Steps. ---- */

clv__cpu_step *clv__cpu_step_new(clv__cpu_variant *variant, clv__cpu_step_kind kind, const clv__cpu_node *node, const char *what,
                                 uint32_t operand_room) {
  void *steps = variant->steps;
  const bool room = clv__array_reserve(variant->device->allocator, &steps, &variant->step_capacity, variant->step_count + 1,
                                       sizeof *variant->steps, variant->step_count);
  variant->steps = steps;
  clv__cpu_operand *operands = clv__arena_allocate_zero(&variant->arena, operand_room, sizeof *operands);
  if (!room || operands == NULL) return NULL;
  clv__cpu_step *step = &variant->steps[variant->step_count++];
  *step = (clv__cpu_step){.kind = kind, .node = node, .what = what, .operands = operands, .operand_room = operand_room};
  return step;
}

void clv__cpu_step_output(clv__cpu_step *step, int id, uint32_t slot, const clv__dnn_layout *layout) {
  step->operands[step->operand_count++] = (clv__cpu_operand){.id = id, .slot = slot, .layout = layout};
}

void clv__cpu_step_input(clv__cpu_step *step, int id, uint32_t slot, const clv__dnn_layout *layout) {
  clv__cpu_step_output(step, id, slot, layout);
  step->input_count = step->operand_count;
}

clv_status clv__cpu_step_primitive(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const char *what,
                                   clv__dnn_primitive *primitive, uint32_t operand_room, clv__cpu_step **step, clv_error *error) {
  *step = clv__cpu_step_new(variant, CLV__CPU_STEP_PRIMITIVE, node != NULL ? node->source : NULL, what, operand_room);
  if (*step == NULL) {
    clv__dnn_primitive_release(primitive);
    return clv__error_memory(error, sizeof **step);
  }
  (*step)->primitive = primitive;
  (*step)->scratch_bytes = primitive->scratch_bytes;
  return CLV_OK;
}
