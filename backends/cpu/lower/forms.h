/* Where values lie: their forms, the slots behind them, and the steps that make them (forms.c). */
#ifndef CLEAVE_BACKENDS_CPU_LOWER_FORMS_H
#define CLEAVE_BACKENDS_CPU_LOWER_FORMS_H

#include "backends/cpu/passes/plan.h"

/* The slot where `value` lies in `layout` (NULL: row-major); a reorder is emitted when it lies in none such. */
clv_status clv__cpu_form_get(clv__cpu_plan *plan, uint32_t value, const clv__dnn_layout *layout, uint32_t *slot,
                             clv_error *error);
/* The layout `value` was made in, f32 for what lies in f16: never NULL for an f32 value unless memory is out. */
const clv__dnn_layout *clv__cpu_form_layout(clv__cpu_plan *plan, uint32_t value);
/* Whether it was made in `layout`, and is there. */
bool clv__cpu_form_is_first(const clv__cpu_plan *plan, uint32_t value, const clv__dnn_layout *layout);
/* Its dtype: that of the step which follows, where that takes any. */
clv_dtype clv__cpu_form_dtype(const clv__cpu_plan *plan, uint32_t value);
/* Row-major in `dtype`; NULL when memory is out. */
const clv__dnn_layout *clv__cpu_form_dense(clv__cpu_plan *plan, uint32_t value, clv_dtype dtype);
/* Row-major in the model's own dtype: as callers and kernels in it see the value. NULL in *layout: clv__cpu_form_get()'s NULL. */
clv_status clv__cpu_form_outer(clv__cpu_plan *plan, uint32_t value, const clv__dnn_layout **layout, clv_error *error);
/* Whether it was made in a layout that is not row-major, or in bf16. */
bool clv__cpu_form_is_blocked(const clv__cpu_plan *plan, uint32_t value);
/* A slot for `value`, which the next step makes in `layout` (NULL: row-major). */
clv_status clv__cpu_form_make(clv__cpu_plan *plan, uint32_t value, const clv__dnn_layout *layout, uint32_t *slot,
                              clv_error *error);
/* The same in the memory of `slot`, which nobody needs any more. */
clv_status clv__cpu_form_make_in(clv__cpu_plan *plan, uint32_t value, const clv__dnn_layout *layout, uint32_t in, uint32_t *slot,
                                 clv_error *error);
/* A constant's slot. */
clv_status clv__cpu_slot_constant(clv__cpu_plan *plan, void *data, size_t size_bytes, uint32_t *slot, clv_error *error);

/* Memory of no value's. */
clv_status clv__cpu_slot_scratch(clv__cpu_plan *plan, size_t size_bytes, uint32_t *slot, clv_error *error);

/* `size_bytes` of the slot `in`, from `at_bytes` on. */
clv_status clv__cpu_slot_part(clv__cpu_plan *plan, uint32_t in, size_t at_bytes, size_t size_bytes, uint32_t *slot,
                              clv_error *error);

/* A step with room for `operand_room` operands; add inputs first. NULL when memory is out. Valid until the next step is made. */
clv__cpu_step *clv__cpu_step_new(clv__cpu_plan *plan, clv__cpu_step_kind kind, const clv__cpu_node *node, const char *what,
                                 uint32_t operand_room);
void clv__cpu_step_input(clv__cpu_step *step, int id, uint32_t slot, const clv__dnn_layout *layout);
void clv__cpu_step_output(clv__cpu_step *step, int id, uint32_t slot, const clv__dnn_layout *layout);
/* A step around `primitive`, which the plan owns from then on, also when this fails. */
clv_status clv__cpu_step_primitive(clv__cpu_plan *plan, const clv__cpu_plan_node *node, const char *what,
                                   clv__dnn_primitive *primitive, uint32_t operand_room, clv__cpu_step **step, clv_error *error);

#endif
