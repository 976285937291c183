/* Compares two tensors: within the tolerance of their dtype, or within a given one. */
#ifndef CLEAVE_BASE_TENSOR_COMPARE_H
#define CLEAVE_BASE_TENSOR_COMPARE_H

#include "base/tensor/tensor.h"

/* The allowed difference of results of a dtype, as a share of the tensor's largest magnitude. 0 for a dtype that is not a
 * float: its results must be equal. */
double clv__dtype_tolerance(clv_dtype dtype);

/* The allowed difference of an element: a share of the tensor's largest magnitude, plus `steps` quantisation steps. Of every 100
 * elements of a tensor, one may be off by twice the steps. */
typedef struct clv__tolerance {
  double share;
  uint32_t steps; /* 0: none */
  double step;    /* 0: the largest magnitude divided by 127, the step of an 8-bit grid that just fits the tensor */
} clv__tolerance;

/* The element with the largest difference. */
typedef struct clv__difference {
  size_t element;
  double expected, actual;
  double difference; /* absolute; infinite if the two differ and are not both finite; 0: all elements are equal */
  double largest;    /* largest expected magnitude in the tensor */
  double tolerance;  /* the allowed difference, absolute */
  double step;       /* the size of a step; 0: the tolerance has no steps */
  size_t count;      /* elements in the tensor */
  size_t beyond;     /* of these, elements that differ by more than the tolerance */
} clv__difference;

/* Set `worst` to the element with the largest difference. Return false if `actual` differs from `expected` by more than the
 * tolerance. clv__tensor_agrees() takes the tolerance of the dtype, clv__tensor_agrees_within() a given one. The caller makes
 * sure that both tensors have data, the same dtype and the same shape. */
bool clv__tensor_agrees(const clv_tensor *expected, const clv_tensor *actual, clv__difference *worst);
bool clv__tensor_agrees_within(const clv_tensor *expected, const clv_tensor *actual, const clv__tolerance *tolerance,
                               clv__difference *worst);

#endif
