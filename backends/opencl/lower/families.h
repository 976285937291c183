/* The families of operators, one per line. Each is a table clv__opencl_family_<name> in <name>.c. */
#ifndef CLEAVE_BACKENDS_OPENCL_LOWER_FAMILIES_H
#define CLEAVE_BACKENDS_OPENCL_LOWER_FAMILIES_H

#include "lower.h"

#define CLV__OPENCL_FAMILIES(FAMILY) \
  FAMILY(elementwise)                \
  FAMILY(cast)                       \
  FAMILY(move)                       \
  FAMILY(reduce)                     \
  FAMILY(softmax)                    \
  FAMILY(norm)                       \
  FAMILY(matmul)                     \
  FAMILY(conv)                       \
  FAMILY(pool)                       \
  FAMILY(gather)                     \
  FAMILY(axis)                       \
  FAMILY(resize)                     \
  FAMILY(quantize)                   \
  FAMILY(generate)                   \
  FAMILY(sparse)

#define DECLARE(name) extern const clv__opencl_operator clv__opencl_family_##name[];
CLV__OPENCL_FAMILIES(DECLARE)
#undef DECLARE

#endif
