/* Tables of kernels: one a family, clv__kernels_<name> (families.h), and the ones below. */
#ifndef CLEAVE_OPERATORS_RUN_FAMILIES_H
#define CLEAVE_OPERATORS_RUN_FAMILIES_H

#include "operators/families.h"

/* Operators of a family whose kernels are in backends/common/kernels alone, in tables that are not named after the family. A line
 * goes when src/operators/<family>/run.c has them. */
#define CLV__KERNELS_ELSEWHERE(X)                                  \
  X(axis)             /* reduce */                                 \
  X(matmul_integer)   /* matmul */                                 \
  X(conv)             /* convolution */                            \
  X(conv_integer)     /* convolution */                            \
  X(linear_attention) /* attention */                              \
  X(decode)           /* attention, convolution, gather, binary */ \
  X(grid)             /* resize: src/operators/resize/run_grid.c, as the name clv__kernels_resize is taken */

#define CLV__KERNEL_FAMILIES(X) CLV__TENSOR_FAMILIES(X) CLV__KERNELS_ELSEWHERE(X)

#endif
