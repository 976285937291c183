/* Products of integers: the replacement for a convolution or matrix product between DequantizeLinear and QuantizeLinear. */
#ifndef CLEAVE_BACKENDS_CPU_LOWER_INTEGER_POSTS_H
#define CLEAVE_BACKENDS_CPU_LOWER_INTEGER_POSTS_H

#include "backends/cpu/passes/variant.h"

/* Maps integers to real numbers: (q - zero) * scale. */
typedef struct clv__cpu_grid {
  float scale;
  int32_t zero;
  clv_dtype dtype; /* i8 or u8 */
} clv__cpu_grid;

/* How a variant node computes a product of integers. Its inputs are the source and the weights, both integers. Each sum, with its
 * bias, is multiplied by the channel's entry of `scales`. The first post reads the product, in which 1 represents the unit passed
 * to clv__cpu_integers_start(). The last post yields integers on the grid of the result, or real numbers. */
typedef struct clv__cpu_integers {
  int32_t weights_zero; /* the zero point of all weights: 0, or 128 for u8 */
  int32_t source_zero;  /* the zero point that the primitive subtracts; 0 if the bias accounts for it */
  int64_t channels;
  float *scales; /* one factor per channel */
  float *bias;   /* one per channel, in units of the sums; NULL: none */
  uint32_t post_count;
  clv__dnn_post posts[CLV__DNN_MAX_POSTS];
  uint32_t residual; /* index of the post that adds the value of the node's posts[0]; CLV__CPU_NONE: none */
  bool is_real;      /* the result is f32 */
  bool is_natural;   /* an i8 result that is never negative, so that its bytes may be read as u8 */
  double unit;       /* while posts are added: the real number that 1 represents after the last post so far */
  clv__cpu_grid grid;
} clv__cpu_integers;

/* The parts of a product of integers, with their scales and zero points. */
typedef struct clv__cpu_product {
  const clv__cpu_variant_node *node; /* supplies the attributes */
  bool is_convolution;
  uint32_t source;
  clv__cpu_grid grid;                   /* the grid of the source */
  uint32_t weights;                     /* a constant of the program */
  uint32_t weights_scale, weights_zero; /* constants; weights_zero may be CLV__CPU_NONE */
  int64_t weights_axis;                 /* if there are several scales: the axis that they belong to */
  const float *factors, *bias;          /* factor and addend per channel for the real result; NULL: none */
  const int32_t *sums;                  /* a bias of integers, one per channel, in units of the sums; NULL: none */
} clv__cpu_product;

/* Reads a scale and a zero point from the inputs `first` and `first + 1`. Returns false unless each is one constant for the whole
 * tensor. */
bool clv__cpu_grid_read(clv__cpu_variant *variant, const clv__cpu_node *node, uint32_t first, clv_dtype dtype,
                        clv__cpu_grid *grid);

/* Describe the product of integers that can replace `node`; return false if there is none. clv__cpu_product_of_real() accepts a
 * CONVOLUTION or MATRIX node, whose input is dequantised from the integers `source` on `grid`. clv__cpu_product_of_integers()
 * accepts a QLinearConv or QLinearMatMul; *result receives the grid of its result. */
bool clv__cpu_product_of_real(const clv__cpu_variant *variant, const clv__cpu_variant_node *node, uint32_t source,
                              const clv__cpu_grid *grid, clv__cpu_product *product);
bool clv__cpu_product_of_integers(clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv__cpu_product *product,
                                  clv__cpu_grid *result);

/* Creates a node on integers that computes `product`, so that 1 represents the real number `unit` in the input of the first post.
 * *made stays NULL if the weights or bias do not allow it. */
clv_status clv__cpu_integers_start(clv__cpu_variant *variant, const clv__cpu_product *product, double unit,
                                   clv__cpu_variant_node **made, clv_error *error);
/* Copies a node and its integers, so that posts can be appended to the copy without changing the original. */
clv_status clv__cpu_integers_copy(clv__cpu_variant *variant, const clv__cpu_variant_node *node, clv__cpu_variant_node **made,
                                  clv_error *error);

/* Append posts to a product of integers: a function, a requantisation, a sum, or the final conversion. Return false if there
 * are too many posts, or if oneDNN cannot combine them with the earlier ones. */
bool clv__cpu_integers_unary(clv__cpu_integers *integers, const clv__cpu_post *unary);
bool clv__cpu_integers_requantise(clv__cpu_integers *integers); /* rounds and clips to the grid; more posts may follow */
bool clv__cpu_integers_add(clv__cpu_variant_node *node, uint32_t value, const clv__cpu_grid *grid);
bool clv__cpu_integers_end(clv__cpu_integers *integers, const clv__cpu_grid *grid); /* if `grid` is NULL, the result is f32 */
/* Whether the function commutes with scaling, so that its argument may be in any unit. */
bool clv__cpu_unary_scales(const clv__cpu_post *unary);

static inline clv__cpu_integers *clv__cpu_integers_of(clv__cpu_variant_node *node) {
  return (clv__cpu_integers *)node->integers;
}

/* Packs an i8 or u8 constant, stored in the layout `from`, as i8 in the layout `wanted`, and sets *slot. `turns`: the constant is
 * u8 and is shifted by 128 (integers.c). */
clv_status clv__cpu_integers_weights(clv__cpu_variant *variant, uint32_t value, bool turns, const clv__dnn_layout *from,
                                     const clv__dnn_layout *wanted, uint32_t *slot, clv_error *error);

/* Whether oneDNN has an implementation of `node`, a product of integers (integers.c). */
bool clv__cpu_integers_have(clv__cpu_variant *variant, const clv__cpu_variant_node *node);

#endif
