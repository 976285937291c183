/* A batch of matrix products over strided operands: what MatMul, Gemm and Einsum are once their axes are sorted. Element (i, k)
 * of A in batch n is a[a_batch[n] + a_row[i] + a_depth[k]], and so on: tables of offsets instead of strides, so that one matrix
 * axis may stand for several axes of the tensor. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_MATMUL_PRODUCT_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_MATMUL_PRODUCT_H

#include "base/tensor/tensor.h"

typedef struct clv__product {
  clv_dtype a_dtype, b_dtype, c_dtype; /* floats (f64: all three, else computed in f32), or integers (computed modulo 2^64) */
  const void *a, *b;
  void *c;
  int64_t batches, rows, columns, depth;
  /* c = alpha * sum + beta * addend[i * addend_row + j * addend_column]; addend has C's dtype and may be NULL. */
  float alpha, beta;
  const void *addend;
  int64_t addend_row, addend_column;
  /* Tables, bound by clv__product_bind() and filled by the caller. */
  int64_t *a_batch, *b_batch, *c_batch;
  int64_t *a_row, *c_row;
  int64_t *a_depth, *b_depth;
  int64_t *b_column, *c_column;
  void *scratch;
} clv__product;

/* Scratch for the tables and the product; SIZE_MAX when beyond any memory. Needs the sizes and dtypes alone. */
size_t clv__product_scratch_bytes(const clv__product *product);
void clv__product_bind(clv__product *product, void *scratch);
/* A depth of 0 gives sums of 0; nothing is done when C has no elements. */
void clv__product_run(const clv__product *product);

#endif
