/* Where values lie: their forms, the slots behind them, and the reorders between forms. */
#include "lower.h"

static clv_status slot_new(clv__cpu_plan *plan, clv__cpu_slot_kind kind, uint32_t index, size_t size_bytes, uint32_t *slot,
                           clv_error *error) {
  void *slots = plan->slots;
  const bool room = clv__array_reserve(plan->device->allocator, &slots, &plan->slot_capacity, plan->slot_count + 1,
                                       sizeof *plan->slots, plan->slot_count);
  plan->slots = slots;
  if (!room) return clv__error_memory(error, (plan->slot_count + 1) * sizeof *plan->slots);
  *slot = (uint32_t)plan->slot_count++;
  plan->slots[*slot] = (clv__cpu_slot){.kind = kind, .index = index, .root = *slot, .size_bytes = size_bytes};
  return CLV_OK;
}

clv_status clv__cpu_slot_constant(clv__cpu_plan *plan, void *data, size_t size_bytes, uint32_t *slot, clv_error *error) {
  CLV__TRY(slot_new(plan, CLV__CPU_SLOT_CONSTANT, 0, size_bytes, slot, error));
  plan->slots[*slot].data = data;
  return CLV_OK;
}

clv_status clv__cpu_slot_scratch(clv__cpu_plan *plan, size_t size_bytes, uint32_t *slot, clv_error *error) {
  return slot_new(plan, CLV__CPU_SLOT_ARENA, 0, size_bytes, slot, error);
}

static clv_status bytes_of(const clv__cpu_plan *plan, uint32_t value, const clv__dnn_layout *layout, size_t *size_bytes,
                           clv_error *error) {
  if (layout != NULL) {
    *size_bytes = clv__dnn_layout_size_bytes(layout);
    return CLV_OK;
  }
  if (clv__tensor_size_bytes(&plan->values[value].type, size_bytes)) return CLV_OK;
  return clv__error_set(error, CLV_INTERNAL_ERROR, "a planned value has no size");
}

/* Remembers a form; the second one onwards may be forgotten again when there are too many. */
static void remember(clv__cpu_plan_value *value, const clv__dnn_layout *layout, uint32_t slot) {
  const uint32_t at = value->form_count < CLV__CPU_MAX_FORMS ? value->form_count++ : CLV__CPU_MAX_FORMS - 1;
  value->forms[at] = (clv__cpu_form){layout, slot};
}

/* NULL for row-major in the value's own dtype. */
static const clv__dnn_layout *canonical(const clv__cpu_plan *plan, uint32_t value, const clv__dnn_layout *layout) {
  if (layout == NULL || !clv__dnn_layout_is_dense(layout)) return layout;
  return clv__dnn_layout_dtype(layout) == plan->values[value].type.dtype ? NULL : layout;
}

clv_status clv__cpu_form_make(clv__cpu_plan *plan, uint32_t value, const clv__dnn_layout *layout, uint32_t *slot,
                              clv_error *error) {
  clv__cpu_plan_value *made = &plan->values[value];
  size_t size_bytes;
  layout = canonical(plan, value, layout);
  CLV__TRY(bytes_of(plan, value, layout, &size_bytes, error));
  const bool leaves = layout == NULL && made->output != CLV__CPU_NONE;
  CLV__TRY(slot_new(plan, leaves ? CLV__CPU_SLOT_OUTPUT : CLV__CPU_SLOT_ARENA, made->output, size_bytes, slot, error));
  remember(made, layout, *slot);
  return CLV_OK;
}

clv_status clv__cpu_form_make_in(clv__cpu_plan *plan, uint32_t value, const clv__dnn_layout *layout, uint32_t in, uint32_t *slot,
                                 clv_error *error) {
  size_t size_bytes;
  layout = canonical(plan, value, layout);
  CLV__TRY(bytes_of(plan, value, layout, &size_bytes, error));
  CLV__TRY(slot_new(plan, CLV__CPU_SLOT_ARENA, 0, size_bytes, slot, error));
  plan->slots[*slot].root = plan->slots[in].root;
  remember(&plan->values[value], layout, *slot);
  return CLV_OK;
}

bool clv__cpu_form_is_blocked(const clv__cpu_plan *plan, uint32_t value) {
  return plan->values[value].form_count > 0 && plan->values[value].forms[0].layout != NULL;
}

const clv__dnn_layout *clv__cpu_form_layout(clv__cpu_plan *plan, uint32_t value) {
  const clv__cpu_plan_value *read = &plan->values[value];
  if (read->form_count > 0 && read->forms[0].layout != NULL) return read->forms[0].layout;
  return clv__dnn_layout_dense(&plan->arena, read->type.dtype, read->type.rank, read->type.dims);
}

/* Constants get their slot when they are first read. */
static clv_status place_constant(clv__cpu_plan *plan, uint32_t value, clv_error *error) {
  clv__cpu_plan_value *read = &plan->values[value];
  void *data;
  size_t size_bytes;
  uint32_t slot;
  CLV__TRY(clv__cpu_known(plan, value, &data, error));
  CLV__TRY(bytes_of(plan, value, NULL, &size_bytes, error));
  CLV__TRY(clv__cpu_slot_constant(plan, data, size_bytes, &slot, error));
  remember(read, NULL, slot);
  return CLV_OK;
}

static clv_status reorder(clv__cpu_plan *plan, uint32_t value, const clv__dnn_layout *layout, uint32_t *slot, clv_error *error) {
  clv__cpu_plan_value *read = &plan->values[value];
  const clv__cpu_form from = read->forms[0];
  const clv__dnn_layout *from_layout = clv__cpu_form_layout(plan, value);
  const clv__dnn_layout *to =
      layout != NULL ? layout : clv__dnn_layout_dense(&plan->arena, read->type.dtype, read->type.rank, read->type.dims);
  if (from_layout == NULL || to == NULL) return clv__error_memory(error, 0);
  clv__dnn_primitive *primitive;
  CLV__TRY(clv__dnn_reorder_create(plan->device->dnn, from_layout, to, &plan->arena, &primitive, error));
  clv__cpu_step *step;
  const clv__cpu_plan_node *node = read->producer != CLV__CPU_NONE ? &plan->nodes[read->producer] : NULL;
  CLV__TRY(clv__cpu_step_primitive(plan, node, "reorder", primitive, 2, &step, error));
  clv__cpu_step_input(step, CLV__DNN_SOURCE, from.slot, from_layout);
  CLV__TRY(clv__cpu_form_make(plan, value, layout, slot, error));
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, *slot, to);
  return CLV_OK;
}

clv_status clv__cpu_form_get(clv__cpu_plan *plan, uint32_t value, const clv__dnn_layout *layout, uint32_t *slot,
                             clv_error *error) {
  clv__cpu_plan_value *read = &plan->values[value];
  layout = canonical(plan, value, layout);
  if (read->form_count == 0) {
    if (!read->is_constant) return clv__error_set(error, CLV_INTERNAL_ERROR, "value %u is read before it is made", value);
    CLV__TRY(place_constant(plan, value, error));
  }
  for (uint32_t i = 0; i < read->form_count; ++i) {
    const clv__cpu_form *form = &read->forms[i];
    if (form->layout == layout || (form->layout != NULL && layout != NULL && clv__dnn_layout_equal(form->layout, layout))) {
      *slot = form->slot;
      return CLV_OK;
    }
  }
  return reorder(plan, value, layout, slot, error);
}

/* ---- Steps. ---- */

clv__cpu_step *clv__cpu_step_new(clv__cpu_plan *plan, clv__cpu_step_kind kind, const clv__cpu_node *node, const char *what,
                                 uint32_t operand_room) {
  void *steps = plan->steps;
  const bool room = clv__array_reserve(plan->device->allocator, &steps, &plan->step_capacity, plan->step_count + 1,
                                       sizeof *plan->steps, plan->step_count);
  plan->steps = steps;
  clv__cpu_operand *operands = clv__arena_allocate_zero(&plan->arena, operand_room, sizeof *operands);
  if (!room || operands == NULL) return NULL;
  clv__cpu_step *step = &plan->steps[plan->step_count++];
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

clv_status clv__cpu_step_primitive(clv__cpu_plan *plan, const clv__cpu_plan_node *node, const char *what,
                                   clv__dnn_primitive *primitive, uint32_t operand_room, clv__cpu_step **step, clv_error *error) {
  *step = clv__cpu_step_new(plan, CLV__CPU_STEP_PRIMITIVE, node != NULL ? node->source : NULL, what, operand_room);
  if (*step == NULL) {
    clv__dnn_primitive_release(primitive);
    return clv__error_memory(error, sizeof **step);
  }
  (*step)->primitive = primitive;
  (*step)->scratch_bytes = primitive->scratch_bytes;
  return CLV_OK;
}
