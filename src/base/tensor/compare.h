/* Compares two tensors: floats within the tolerance of their dtype, everything else exactly. */
#ifndef CLEAVE_BASE_TENSOR_COMPARE_H
#define CLEAVE_BASE_TENSOR_COMPARE_H

#include "base/tensor/tensor.h"

/* The allowed difference of results of a dtype, as a share of the tensor's largest magnitude; 0: none. */
double clv__dtype_tolerance(clv_dtype dtype);

/* The element with the largest difference. */
typedef struct clv__difference {
  size_t element;
  double expected, actual;
  double largest;   /* largest expected magnitude in the tensor */
  double tolerance; /* `largest` times clv__dtype_tolerance() */
} clv__difference;

/* False, with the worst element, if `actual` differs from `expected`. Both have data, the same dtype and the same shape. */
bool clv__tensor_agrees(const clv_tensor *expected, const clv_tensor *actual, clv__difference *worst);

#endif
