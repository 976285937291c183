/* The families that have fast kernels, one per line. `X(name)` names the table clv__fast_<name>, which ends with an entry whose
 * op is NULL. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_FAMILIES_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_FAMILIES_H

#include "operators/run.h"

/* A fast kernel accepts every call that the operator's reference accepts. Only the reference states the dtypes and limits. */
typedef struct clv__fast_kernel {
  const char *domain, *op; /* domain "" is ONNX's */
  clv_status (*run)(const clv__kernel_call *call);
  size_t (*scratch_bytes)(const clv__kernel_call *call); /* may be NULL; see clv__kernel */
} clv__fast_kernel;

#define CLV__FAST_FAMILIES(X) \
  X(softmax)                  \
  X(matmul)                   \
  X(matmul_integer)           \
  X(conv)                     \
  X(conv_integer)             \
  X(unary)                    \
  X(binary)                   \
  X(reduce)                   \
  X(axis)                     \
  X(pool)                     \
  X(quantize)                 \
  X(attention)                \
  X(linear_attention)         \
  X(decode)                   \
  X(sparse)                   \
  X(einsum)                   \
  X(resize)                   \
  X(recurrent)                \
  X(normalize)                \
  X(cast)

#define CLV__DECLARE_FAST(family) extern const clv__fast_kernel clv__fast_##family[];
CLV__FAST_FAMILIES(CLV__DECLARE_FAST)
#undef CLV__DECLARE_FAST

#endif
