/* Whether two tensors hold the same: floats within their dtype's tolerance, everything else exactly. */
#ifndef CLEAVE_BASE_TENSOR_COMPARE_H
#define CLEAVE_BASE_TENSOR_COMPARE_H

#include "base/tensor/tensor.h"

/* What results of a dtype may differ by, as a share of the tensor's largest magnitude; 0: not at all. */
double clv__dtype_tolerance(clv_dtype dtype);

/* The element that differs most. */
typedef struct clv__difference {
  size_t element;
  double expected, actual;
  double largest;   /* magnitude expected anywhere */
  double tolerance; /* that follows from it */
} clv__difference;

/* False, with the worst element, where `actual` is not what is expected. Both have data, the same dtype and shape. */
bool clv__tensor_agrees(const clv_tensor *expected, const clv_tensor *actual, clv__difference *worst);

#endif
