/* Steps with so little work that they run where they stand: one thread, no library, everything about them known when they are
 * lowered. A product of small matrices (small.c), and an elementwise function of up to three values, over the kernels' own
 * row functions (elementwise.c). */
#ifndef CLEAVE_BACKENDS_CPU_LOWER_SMALL_H
#define CLEAVE_BACKENDS_CPU_LOWER_SMALL_H

#include "backends/common/kernels/elementwise.h"
#include "forms.h"

/* c = a * b + bias, `batches` times; b's columns and c are contiguous unless b_column says otherwise. Operands: a, b, bias (where
 * there is one), c. */
struct clv__cpu_small {
  int64_t batches, rows, columns, depth;
  int64_t a_batch, a_row, a_depth; /* strides, in elements */
  int64_t b_batch, b_depth, b_column;
  bool has_bias; /* one number a column */
};

struct clv__cpu_elementwise {
  clv__elementwise what; /* `params` is not used: see below */
  clv__elementwise_params params;
  uint32_t input_count;
};

/* Takes products below the size where calling oneDNN is repaid. */
clv_status clv__cpu_lower_small(clv__cpu_plan *plan, clv__cpu_plan_node *node, bool *taken, clv_error *error);
void clv__cpu_small_run(const clv__cpu_small *small, const float *a, const float *b, const float *bias, float *c);

/* Takes elementwise nodes of the kernels' over values in one layout of oneDNN's, and, where one thread does them, over row-major
 * ones; there also a binary with a function after it. */
clv_status clv__cpu_lower_elementwise(clv__cpu_plan *plan, clv__cpu_plan_node *node, bool *taken, clv_error *error);
/* Whether the kernel may write each element of the result where it read that of input 0. */
bool clv__cpu_is_in_place(clv__cpu_plan *plan, const clv__cpu_plan_node *node);
/* Whether a function or sum that was fused into a step can be a step of its own after it. */
bool clv__cpu_post_is_elementwise(const clv__cpu_post *post);
/* That step, in place over `slot`, which has the node's output row-major. */
clv_status clv__cpu_lower_post_elementwise(clv__cpu_plan *plan, const clv__cpu_plan_node *node, const clv__cpu_post *post,
                                           uint32_t slot, clv_error *error);

#endif
