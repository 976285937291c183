/* MatMulInteger and ConvInteger. oneDNN sums the products of 8-bit integers. Another step, the pass, subtracts the
 * contributions of the zero points from the sums. If the model converts the sums back to real numbers (Cast, Mul by a scale
 * known at run time, Add), the pass does that as well. */
#ifndef CLEAVE_BACKENDS_CPU_SUMS_SUMS_H
#define CLEAVE_BACKENDS_CPU_SUMS_SUMS_H

#include "backends/cpu/lower/forms.h"

/* The inputs of a node of kind SUMS. Additions of other values, and functions, are its posts. */
enum {
  CLV__CPU_SUMS_SOURCE,
  CLV__CPU_SUMS_WEIGHTS,
  CLV__CPU_SUMS_SOURCE_ZERO,  /* the zero point of all source elements; NONE: 0 */
  CLV__CPU_SUMS_WEIGHTS_ZERO, /* a constant, one number or one per channel; NONE: 0 */
  CLV__CPU_SUMS_SCALE,        /* one number or one per channel; NONE: the result is the sums */
  CLV__CPU_SUMS_INPUTS
};

static inline const clv_tensor *clv__cpu_sums_weights(const clv__cpu_variant *variant, const clv__cpu_variant_node *node) {
  return &variant->values[node->inputs[CLV__CPU_SUMS_WEIGHTS]].type;
}

/* The pass over the sums: works in place on `rows` rows of `channels` sums. From each sum, it subtracts
 *   zero * shifts[channel] + zeros[channel] * (the sum of the source elements that the product reads). */
typedef struct clv__cpu_sums_pass {
  clv__cpu_own own;
  int64_t rows, channels, groups;
  const int32_t *shifts, *zeros; /* NULL: none */
  uint32_t zero_operand;    /* index of the operand with the source's zero point, a byte. Here and below, operand index 0: none */
  uint32_t windows_operand; /* i32: the sums of the source elements, per row and group */
  uint32_t source_operand;  /* bytes, in rows of `depth`, whose sums the pass computes if windows_operand is 0 */
  int64_t depth;
  uint32_t scale_operand;
  bool scale_is_line; /* there is one scale per channel, not one for all */
  bool has_gelu;      /* apply GELU after the posts */
  uint32_t post_count;
  struct {
    clv__cpu_post what;
    uint32_t operand;
    bool is_line, is_whole; /* for ADD: there is one addend per channel, or one per element; if neither is set, one for all */
  } posts[CLV__CPU_MAX_POSTS];
} clv__cpu_sums_pass;
void clv__cpu_sums_pass_run(const clv__cpu_own *own, const clv_tensor *operands, const clv__stop *stop);

/* Copies an image of bytes to a layout with channels last and surrounds it with padding that has the value of its zero point.
 * `is_last`: the channels of the image are last already. */
typedef struct clv__cpu_sums_frame {
  clv__cpu_own own; /* the image is operand 0 */
  bool is_last;
  uint32_t zero_operand, target_operand;                  /* zero_operand 0: the surrounding bytes are 0 */
  int64_t images, channels, extents[3], begin[3], end[3]; /* per axis: depth, height, width */
} clv__cpu_sums_frame;
void clv__cpu_sums_frame_run(const clv__cpu_own *own, const clv_tensor *operands, const clv__stop *stop);

/* The numbers that the pass needs for a node's constant weights, in the variant's arena (offsets.c). */
typedef struct clv__cpu_sums_offsets {
  int32_t *shifts, *zeros; /* one per channel; NULL: none */
} clv__cpu_sums_offsets;
clv_status clv__cpu_sums_offsets_read(clv__cpu_variant *variant, const clv__cpu_variant_node *node, bool is_matrix,
                                      int64_t channels, clv__cpu_sums_offsets *offsets, clv_error *error);

/* Whether the last post of a node of kind SUMS is GELU. */
static inline bool clv__cpu_sums_has_gelu(const clv__cpu_variant_node *node) {
  const clv__cpu_post *last = node->post_count > 0 ? &node->posts[node->post_count - 1] : NULL;
  return last != NULL && last->kind == CLV__CPU_POST_UNARY && last->algorithm == CLV__DNN_GELU_ERF;
}

/* Whether oneDNN supports the product (lower.c). clv__cpu_pass_sums() accepts a node only if it does. */
bool clv__cpu_sums_have(clv__cpu_variant *variant, const clv__cpu_variant_node *node);
clv_status clv__cpu_lower_sums(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error);

#endif
