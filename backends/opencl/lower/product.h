/* Chooses the kernel of product.cl for a matrix product or a convolution, and the number of work items. */
#ifndef CLEAVE_BACKENDS_OPENCL_LOWER_PRODUCT_H
#define CLEAVE_BACKENDS_OPENCL_LOWER_PRODUCT_H

#include "lower.h"

typedef struct clv__opencl_product {
  clv_dtype dtype;
  int64_t batches, rows, columns, depth;
  bool is_convolution;
  bool both_along_depth;  /* both operands are contiguous along the depth */
  int64_t row;            /* for a convolution: number of columns in one row of its output */
  bool weights_scattered; /* the weights are not contiguous along the depth */
} clv__opencl_product;

typedef struct clv__opencl_product_launch {
  const char *kernel;
  bool vectors; /* use the kernels for CPUs, which compute with vectors: compile product.cl with PANELS defined */
  bool has_per_row, has_rows_each; /* whether per_row and rows_each are the kernel's first arguments */
  int64_t per_row, rows_each;
  int64_t global[3], local[3];
  bool has_local;
} clv__opencl_product_launch;

clv__opencl_product_launch clv__opencl_product_choose(const clv__opencl_lowering *l, const clv__opencl_product *product);
/* Begins the launch: kernel, defines, and first arguments. The caller passes the other arguments. */
void clv__opencl_product_begin(clv__opencl_lowering *l, const clv__opencl_product *product,
                               const clv__opencl_product_launch *launch);
clv_status clv__opencl_product_end(clv__opencl_lowering *l, const clv__opencl_product_launch *launch);

#endif
