/* Translates posts of convolutions and matrix products into oneDNN's. The order is kept, including that of a sum with another
 * value. */
#ifndef CLEAVE_BACKENDS_CPU_LOWER_RESIDUAL_H
#define CLEAVE_BACKENDS_CPU_LOWER_RESIDUAL_H

#include "forms.h"

/* The index of a node's ADD post, or CLV__CPU_NONE. */
uint32_t clv__cpu_residual_post(const clv__cpu_variant_node *node);
/* Translates the posts and returns their number. An ADD becomes a sum into the destination or, if `layout` is not NULL, a
 * binary post whose operand has that layout. */
uint32_t clv__cpu_posts(const clv__cpu_variant_node *node, const clv__dnn_layout *layout,
                        clv__dnn_post posts[CLV__CPU_MAX_POSTS]);
/* Whether `node` may overwrite the memory of `value`: the memory is in the arena, no later node reads it, and no input of the
 * node is stored in it. */
bool clv__cpu_may_overwrite(const clv__cpu_variant *variant, const clv__cpu_variant_node *node, uint32_t value, uint32_t slot);
/* Emits a copy of `value` in `layout` (NULL: row-major) and sets *slot to the slot of the copy, which the caller may
 * overwrite. */
clv_status clv__cpu_private_copy(clv__cpu_variant *variant, const clv__cpu_variant_node *node, uint32_t value,
                                 const clv__dnn_layout *layout, uint32_t *slot, clv_error *error);

#endif
