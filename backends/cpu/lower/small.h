/* Steps with so little work that they run directly, on one thread and without a library. All their parameters are determined at
 * lowering. Two kinds: a product of small matrices (small.c), and an elementwise function of up to three values that calls the
 * kernels' own row functions (elementwise.c). */
#ifndef CLEAVE_BACKENDS_CPU_LOWER_SMALL_H
#define CLEAVE_BACKENDS_CPU_LOWER_SMALL_H

#include "backends/common/kernels/elementwise.h"
#include "backends/cpu/kernels/small.h"
#include "forms.h"

struct clv__cpu_elementwise {
  clv__elementwise what; /* the function; uses `params` instead of what.params */
  clv__elementwise_params params;
  uint32_t input_count;
};

/* Lowers products that are too small to justify a call of oneDNN. */
clv_status clv__cpu_lower_small(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);

/* Lowers elementwise nodes that have a kernel if their values share one oneDNN layout. Lowers row-major ones if one thread is
 * enough, including a binary followed by a function. */
clv_status clv__cpu_lower_elementwise(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);
/* Whether the kernel may write each result element over the element of input 0 that it read. */
bool clv__cpu_is_in_place(clv__cpu_variant *variant, const clv__cpu_variant_node *node);
/* Whether a function or sum fused into a step can instead be a separate step after it. */
bool clv__cpu_post_is_elementwise(const clv__cpu_post *post);
/* Lowers a post that clv__cpu_post_is_elementwise() accepts to a step that works in place on `slot`, which holds the node's
 * output in row-major order. */
clv_status clv__cpu_lower_post_elementwise(clv__cpu_variant *variant, const clv__cpu_variant_node *node,
                                           const clv__cpu_post *post, uint32_t slot, clv_error *error);

#endif
