/* The kernel families, one line a family: `X(name)` stands for the table clv__kernels_<name>, which ends
 * with an entry whose op is NULL. A new family is a new file and a new line here. */
#ifndef CLEAVE_OPERATORS_RUN_FAMILIES_H
#define CLEAVE_OPERATORS_RUN_FAMILIES_H

#include "operators/run.h"

#define CLV__KERNEL_FAMILIES(X) \
  X(unary)                      \
  X(binary)                     \
  X(cast)                       \
  X(reduce)                     \
  X(axis)                       \
  X(softmax)                    \
  X(quantize)                   \
  X(loss)                       \
  X(matmul_integer)             \
  X(conv_integer)               \
  X(recurrent)                  \
  X(conv)                       \
  X(matmul)                     \
  X(pool)                       \
  X(normalize)                  \
  X(resize)                     \
  X(einsum)                     \
  X(shape)                      \
  X(layout)                     \
  X(join)                       \
  X(gather)                     \
  X(attention)                  \
  X(linear_attention)           \
  X(rotary)                     \
  X(causal_conv)                \
  X(cache)                      \
  X(swiglu)                     \
  X(sparse)                     \
  X(generate)                   \
  X(grid)                       \
  X(spectrum)                   \
  X(taper)                      \
  X(suppress)                   \
  X(region)                     \
  X(patches)                    \
  X(deform)                     \
  X(determinant)                \
  X(select)

#define CLV__DECLARE_KERNELS(family) extern const clv__kernel clv__kernels_##family[];
CLV__KERNEL_FAMILIES(CLV__DECLARE_KERNELS)
#undef CLV__DECLARE_KERNELS

#endif
