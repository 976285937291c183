/* Which kernel of product.cl runs a product, and over how many items: shared by matrix products and convolutions. */
#ifndef CLEAVE_BACKENDS_OPENCL_LOWER_PRODUCT_H
#define CLEAVE_BACKENDS_OPENCL_LOWER_PRODUCT_H

#include "lower.h"

typedef struct clv__opencl_product {
  clv_dtype dtype;
  int64_t batches, rows, columns, depth;
  bool is_convolution;
  bool both_along_depth;  /* both sides run along the depth in memory */
  int64_t row;            /* of a convolution: columns that lie in one row of its output */
  bool weights_scattered; /* they do not run along the depth */
} clv__opencl_product;

typedef struct clv__opencl_product_launch {
  const char *kernel;
  bool vectors;                    /* the define PANELS */
  bool has_per_row, has_rows_each; /* first arguments */
  int64_t per_row, rows_each;
  int64_t global[3], local[3];
  bool has_local;
} clv__opencl_product_launch;

clv__opencl_product_launch clv__opencl_product_choose(const clv__opencl_lowering *l, const clv__opencl_product *product);
/* Begins the launch: kernel, defines, and the first arguments. The caller passes the others. */
void clv__opencl_product_begin(clv__opencl_lowering *l, const clv__opencl_product *product,
                               const clv__opencl_product_launch *launch);
clv_status clv__opencl_product_end(clv__opencl_lowering *l, const clv__opencl_product_launch *launch);

#endif
