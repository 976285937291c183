/* The storage of values. A form of a value is a layout and the slot (memory) that holds the value in it (forms.c). */
#ifndef CLEAVE_BACKENDS_CPU_LOWER_FORMS_H
#define CLEAVE_BACKENDS_CPU_LOWER_FORMS_H

#include "backends/cpu/passes/variant.h"

/* Sets *slot to the slot that holds `value` in `layout` (NULL: row-major). If no slot holds `value` in that layout yet, emits a
 * reorder that computes one. */
clv_status clv__cpu_form_get(clv__cpu_variant *variant, uint32_t value, const clv__dnn_layout *layout, uint32_t *slot,
                             clv_error *error);
/* The layout that `value` was computed in; row-major f32 if it is stored in a dtype that oneDNN does not support. For an f32
 * value, NULL means that memory ran out; for other dtypes, NULL can also mean that oneDNN does not support the dtype. */
const clv__dnn_layout *clv__cpu_form_layout(clv__cpu_variant *variant, uint32_t value);
/* Whether `value` was computed in `layout` and is available. */
bool clv__cpu_form_is_first(const clv__cpu_variant *variant, uint32_t value, const clv__dnn_layout *layout);
/* The dtype that `value` was computed in, if oneDNN supports it; otherwise the dtype of its type. */
clv_dtype clv__cpu_form_dtype(const clv__cpu_variant *variant, uint32_t value);
/* The row-major layout of `value` in `dtype`; NULL if memory runs out. */
const clv__dnn_layout *clv__cpu_form_dense(clv__cpu_variant *variant, uint32_t value, clv_dtype dtype);
/* The row-major layout of `value` in the model's own dtype, as callers and kernels that use that dtype see it. *layout is NULL if
 * steps see the value in that dtype, too. clv__cpu_form_get() accepts *layout in both cases. */
clv_status clv__cpu_form_outer(clv__cpu_variant *variant, uint32_t value, const clv__dnn_layout **layout, clv_error *error);
/* Whether `value` was computed in a layout that is not row-major, or in a dtype other than its type's, and oneDNN supports that
 * dtype. */
bool clv__cpu_form_is_blocked(const clv__cpu_variant *variant, uint32_t value);
/* Sets *slot to a new slot for `value`, which the next step computes in `layout` (NULL: row-major). */
clv_status clv__cpu_form_make(clv__cpu_variant *variant, uint32_t value, const clv__dnn_layout *layout, uint32_t *slot,
                              clv_error *error);
/* Like clv__cpu_form_make(), but in the memory of the slot `in`, whose contents are no longer needed. */
clv_status clv__cpu_form_make_in(clv__cpu_variant *variant, uint32_t value, const clv__dnn_layout *layout, uint32_t in,
                                 uint32_t *slot, clv_error *error);
/* Sets *slot to a new slot for a constant: the `size_bytes` bytes at `data`, which must stay valid as long as the variant. */
clv_status clv__cpu_slot_constant(clv__cpu_variant *variant, void *data, size_t size_bytes, uint32_t *slot, clv_error *error);

/* Sets *slot to a new slot for scratch memory, which holds no value. */
clv_status clv__cpu_slot_scratch(clv__cpu_variant *variant, size_t size_bytes, uint32_t *slot, clv_error *error);

/* Sets *slot to a new slot for a part of the slot `in`: `size_bytes` bytes from `at_bytes` on. */
clv_status clv__cpu_slot_part(clv__cpu_variant *variant, uint32_t in, size_t at_bytes, size_t size_bytes, uint32_t *slot,
                              clv_error *error);

/* Appends a step with room for `operand_room` operands; add inputs first. Returns NULL if memory runs out. The pointer is valid
 * until the next step is appended. */
clv__cpu_step *clv__cpu_step_new(clv__cpu_variant *variant, clv__cpu_step_kind kind, const clv__cpu_node *node, const char *what,
                                 uint32_t operand_room);
void clv__cpu_step_input(clv__cpu_step *step, int id, uint32_t slot, const clv__dnn_layout *layout);
void clv__cpu_step_output(clv__cpu_step *step, int id, uint32_t slot, const clv__dnn_layout *layout);
/* Appends a step that executes `primitive`. The call takes ownership of the primitive, even if it fails. */
clv_status clv__cpu_step_primitive(clv__cpu_variant *variant, const clv__cpu_variant_node *node, const char *what,
                                   clv__dnn_primitive *primitive, uint32_t operand_room, clv__cpu_step **step, clv_error *error);

#endif
