/* A tensor that grows by one slice per iteration of a Loop or Scan: a scan output. */
#ifndef CLEAVE_ANALYSIS_STACK_H
#define CLEAVE_ANALYSIS_STACK_H

#include "base/error.h"
#include "base/memory.h"
#include "base/tensor/tensor.h"

typedef struct clv__stack {
  clv_tensor slice; /* type of one; dtype NONE before the first */
  size_t slice_bytes;
  void *data; /* the owner's, until finished along axis 0 */
  size_t capacity_bytes;
  int64_t count;
} clv__stack;

/* An error, which names `what`, for dtypes of which several elements share a byte: their slices begin within one. */
clv_status clv__slices_allowed(const clv_tensor *tensor, const char *what, clv_error *error);

/* Copies `slice` behind those that are there; all have one type. */
clv_status clv__stack_push(clv__stack *stack, const clv_tensor *slice, const clv_allocator *allocator, clv_error *error);

/* `output` becomes the slices stacked along a new axis, whose index among the result's axes is `axis`, the last slice first where
 * `reverse`; its data is the caller's. */
clv_status clv__stack_finish(clv__stack *stack, int32_t axis, bool reverse, clv_tensor *output, const clv_allocator *allocator,
                             clv_error *error);

#endif
