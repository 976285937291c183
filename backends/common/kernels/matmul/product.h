/* A batch of matrix products C = A B. MatMul, Gemm and Einsum are expressed as such products. Operands are addressed with tables
 * of offsets: element (i, k) of A in batch n is a[a_batch[n] + a_row[i] + a_depth[k]]. B and C have such tables, too. With tables
 * instead of strides, one matrix axis can combine several tensor axes. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_MATMUL_PRODUCT_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_MATMUL_PRODUCT_H

#include "base/stop.h"
#include "base/tensor/tensor.h"

typedef struct clv__product {
  clv_dtype a_dtype, b_dtype,
      c_dtype; /* floats (computed in f64 if all three are f64, else in f32), or integers (computed modulo 2^64) */
  const void *a, *b;
  void *c;
  int64_t batches, rows, columns, depth;
  /* c = alpha * sum + beta * addend[i * addend_row + j * addend_column]. addend has C's dtype and may be NULL. */
  float alpha, beta;
  const void *addend;
  int64_t addend_row, addend_column;
  /* Tables of offsets, in elements. clv__product_bind() sets these pointers to places in the scratch. After that, the caller
   * fills the tables. */
  int64_t *a_batch, *b_batch, *c_batch;
  int64_t *a_row, *c_row;
  int64_t *a_depth, *b_depth;
  int64_t *b_column, *c_column;
  void *scratch;
  const clv__stop *stop; /* may be NULL; once it is set, the rest of the product is skipped */
} clv__product;

/* Bytes of scratch for the tables and the product; SIZE_MAX if the size overflows. Depends only on the sizes and dtypes. */
size_t clv__product_scratch_bytes(const clv__product *product);
void clv__product_bind(clv__product *product, void *scratch);
/* Computes the products. A depth of 0 yields sums of 0. Does nothing if C has no elements. */
void clv__product_run(const clv__product *product);

#endif
