/* A tensor that grows by one slice per iteration of a Loop or Scan: a scan output. */
#ifndef CLEAVE_ANALYSIS_STACK_H
#define CLEAVE_ANALYSIS_STACK_H

#include "base/error.h"
#include "base/memory.h"
#include "base/tensor/tensor.h"

typedef struct clv__stack {
  clv_tensor slice; /* type of one slice; dtype NONE before the first */
  size_t slice_bytes;
  void *data; /* belongs to the stack; finishing along axis 0 passes it to the output */
  size_t capacity_bytes;
  int64_t count;
} clv__stack;

/* Rejects dtypes that pack several elements into a byte, because a slice could then begin inside a byte. The error begins with
 * `what`. */
clv_status clv__slices_allowed(const clv_tensor *tensor, const char *what, clv_error *error);

/* Appends a copy of `slice`. All slices have one type. */
clv_status clv__stack_push(clv__stack *stack, const clv_tensor *slice, const clv_allocator *allocator, clv_error *error);

/* Sets `output` to the slices, stacked along a new axis. `axis` is its index among the result's axes. If `reverse`, the last
 * slice comes first. The caller owns the data of `output`. */
clv_status clv__stack_finish(clv__stack *stack, int32_t axis, bool reverse, clv_tensor *output, const clv_allocator *allocator,
                             clv_error *error);

#endif
