/* The geometry of sliding windows: kernel, strides, dilations and padding of convolutions and pools. It is read from the
 * attributes once, for inference and kernels. */
#ifndef CLEAVE_OPERATORS_COMMON_WINDOW_H
#define CLEAVE_OPERATORS_COMMON_WINDOW_H

#include "base/error.h"
#include "base/tensor/attribute.h"
#include "base/tensor/tensor.h"

#define CLV__MAX_SPATIAL (CLV_MAX_RANK - 2)

typedef enum clv__auto_pad { CLV__PAD_EXPLICIT = 0, CLV__PAD_VALID, CLV__PAD_SAME_UPPER, CLV__PAD_SAME_LOWER } clv__auto_pad;

typedef struct clv__window {
  int32_t spatial; /* number of axes */
  clv__auto_pad auto_pad;
  bool ceil_mode;
  int64_t kernel[CLV__MAX_SPATIAL]; /* may be unknown (negative) if it comes from a weight of unknown shape */
  int64_t stride[CLV__MAX_SPATIAL];
  int64_t dilation[CLV__MAX_SPATIAL];
  /* From the attribute pads. If auto_pad or output_shape determines the pads, they are valid only after clv__window_resolve() or
   * clv__window_resolve_transposed(). */
  int64_t pad_begin[CLV__MAX_SPATIAL];
  int64_t pad_end[CLV__MAX_SPATIAL];
  int64_t input[CLV__MAX_SPATIAL];
  int64_t output[CLV__MAX_SPATIAL];
} clv__window;

/* Reads and checks the attributes. `kernel` contains the weight's spatial dims (negative: unknown), or is NULL if the operator
 * has no weight. */
clv_status clv__window_read(clv__attributes attributes, int32_t spatial, const int64_t *kernel, clv__window *window,
                            clv_error *error);

/* Computes the pads and output sizes of a convolution or pool for the spatial dims `input` of the input. Unknown dims give
 * unknown outputs. If the size provably does not change, a symbol stays the same symbol. */
clv_status clv__window_resolve(clv__window *window, const int64_t *input, clv_error *error);

/* Computes the pads and output sizes of a ConvTranspose, from its attributes output_padding and output_shape as well. A pad may
 * become negative: then the output has elements at that end to which no input element contributes. */
clv_status clv__window_resolve_transposed(clv__attributes attributes, clv__window *window, const int64_t *input,
                                          clv_error *error);

#endif
