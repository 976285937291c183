/* Products of small matrices, on the calling thread. lower/small.c makes the step. */
#ifndef CLEAVE_BACKENDS_CPU_KERNELS_SMALL_H
#define CLEAVE_BACKENDS_CPU_KERNELS_SMALL_H

#include "backends/cpu/passes/variant.h"

/* c = a * b + bias, `batches` times. The elements of a row are contiguous in c, and in b if b_column is 1. Operands: a, b, bias
 * (optional), c. */
struct clv__cpu_small {
  int64_t batches, rows, columns, depth;
  int64_t a_batch, a_row, a_depth; /* strides in elements */
  int64_t b_batch, b_depth, b_column;
  bool has_bias; /* there is a bias, with one number per column */
};

void clv__cpu_small_run(const clv__cpu_small *small, const float *a, const float *b, const float *bias, float *c);

#endif
