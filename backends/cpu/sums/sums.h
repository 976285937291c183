/* MatMulInteger and ConvInteger: oneDNN sums the products of bytes, a step of our own takes the zero points off the sums and,
 * where the model brings them back to real numbers (Cast, Mul by a scale known at run time, Add), does that in the same pass. */
#ifndef CLEAVE_BACKENDS_CPU_SUMS_SUMS_H
#define CLEAVE_BACKENDS_CPU_SUMS_SUMS_H

#include "backends/cpu/lower/forms.h"

/* What a node of kind SUMS reads. Sums with others, and functions, are its posts. */
enum {
  CLV__CPU_SUMS_SOURCE,
  CLV__CPU_SUMS_WEIGHTS,
  CLV__CPU_SUMS_SOURCE_ZERO,  /* one number; NONE: 0 */
  CLV__CPU_SUMS_WEIGHTS_ZERO, /* a constant, one number or one a channel; NONE: 0 */
  CLV__CPU_SUMS_SCALE,        /* one number or one a channel; NONE: the result is the sums */
  CLV__CPU_SUMS_INPUTS
};

static inline const clv_tensor *clv__cpu_sums_weights(const clv__cpu_plan *plan, const clv__cpu_plan_node *node) {
  return &plan->values[node->inputs[CLV__CPU_SUMS_WEIGHTS]].type;
}

/* The pass over the sums, in place: `rows` of `channels`. Of each sum it takes off
 *   zero * shifts[channel] + zeros[channel] * (what the product has read of the source, summed). */
typedef struct clv__cpu_sums_pass {
  clv__cpu_own own;
  int64_t rows, channels, groups;
  const int32_t *shifts, *zeros; /* NULL: none */
  uint32_t zero_operand;         /* of the source, a byte; 0: none. Likewise the others */
  uint32_t windows_operand;      /* i32, for each row and group */
  uint32_t source_operand;       /* bytes, rows of `depth`, where they are still to be summed */
  int64_t depth;
  uint32_t scale_operand;
  bool scale_is_line; /* one a channel */
  bool has_gelu;      /* after the posts */
  uint32_t post_count;
  struct {
    clv__cpu_post what;
    uint32_t operand;
    bool is_line, is_whole; /* of a sum's other side: one a channel, one an element; else one for all */
  } posts[CLV__CPU_MAX_POSTS];
} clv__cpu_sums_pass;
void clv__cpu_sums_pass_run(const clv__cpu_own *own, const clv_tensor *operands);

/* An image of bytes with its channels last, and its zero point all around; its own channels are last or not. */
typedef struct clv__cpu_sums_frame {
  clv__cpu_own own; /* the image is operand 0 */
  bool is_last;
  uint32_t zero_operand, target_operand;                  /* the first 0: what is around is 0 */
  int64_t images, channels, extents[3], begin[3], end[3]; /* of depth, height and width */
} clv__cpu_sums_frame;
void clv__cpu_sums_frame_run(const clv__cpu_own *own, const clv_tensor *operands);

/* The pass's numbers for a node's constant weights, in the plan's arena (offsets.c). */
typedef struct clv__cpu_sums_offsets {
  int32_t *shifts, *zeros; /* one a channel; NULL: none */
} clv__cpu_sums_offsets;
clv_status clv__cpu_sums_offsets_read(clv__cpu_plan *plan, const clv__cpu_plan_node *node, bool is_matrix, int64_t channels,
                                      clv__cpu_sums_offsets *offsets, clv_error *error);

/* Whether a node of kind SUMS ends in GELU, which is the last of its posts. */
static inline bool clv__cpu_sums_has_gelu(const clv__cpu_plan_node *node) {
  const clv__cpu_post *last = node->post_count > 0 ? &node->posts[node->post_count - 1] : NULL;
  return last != NULL && last->kind == CLV__CPU_POST_UNARY && last->algorithm == CLV__DNN_GELU_ERF;
}

/* Whether oneDNN has the product (lower.c). Nodes are taken by the pass only then. */
bool clv__cpu_sums_have(clv__cpu_plan *plan, const clv__cpu_plan_node *node);
clv_status clv__cpu_lower_sums(clv__cpu_plan *plan, clv__cpu_plan_node *node, bool *taken, clv_error *error);

#endif
