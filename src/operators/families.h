/* The operator families, one line a family: `X(name)` stands for the table clv__ops_<name>, which ends with
 * an entry whose name is NULL. A new family is a new file and a new line here. */
#ifndef CLEAVE_OPERATORS_FAMILIES_H
#define CLEAVE_OPERATORS_FAMILIES_H

#include "operators/infer.h"

#define CLV__OP_FAMILIES(X) \
  X(unary)                  \
  X(binary)                 \
  X(cast)                   \
  X(reduce)                 \
  X(axis)                   \
  X(softmax)                \
  X(quantize)               \
  X(loss)                   \
  X(integer)                \
  X(recurrent)              \
  X(conv)                   \
  X(matmul)                 \
  X(pool)                   \
  X(normalize)              \
  X(resize)                 \
  X(einsum)                 \
  X(shape)                  \
  X(layout)                 \
  X(join)                   \
  X(gather)                 \
  X(attention)              \
  X(decode)                 \
  X(sparse)                 \
  X(generate)               \
  X(grid)                   \
  X(spectrum)               \
  X(region)                 \
  X(patches)                \
  X(select)                 \
  X(control)

#define CLV__DECLARE_OPS(family) extern const clv__op clv__ops_##family[];
CLV__OP_FAMILIES(CLV__DECLARE_OPS)
#undef CLV__DECLARE_OPS

#endif
