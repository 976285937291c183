/* A block: elements to be copied from one layout to another. Strides describe both layouts. */
#ifndef CLEAVE_BACKENDS_OPENCL_LOWER_BLOCK_H
#define CLEAVE_BACKENDS_OPENCL_LOWER_BLOCK_H

#include "lower.h"

#define CLV__OPENCL_BLOCK_RANK (2 * CLV_MAX_RANK)

/* Element (i, j, …) is copied from from_first + i * from[0] + … to to_first + i * to[0] + …, all in elements. */
typedef struct clv__opencl_block {
  int32_t rank;
  int64_t dims[CLV__OPENCL_BLOCK_RANK], to[CLV__OPENCL_BLOCK_RANK], from[CLV__OPENCL_BLOCK_RANK];
  int64_t to_first, from_first;
} clv__opencl_block;

/* Sets block->to to the strides of a dense tensor with the block's dims. */
void clv__opencl_block_dense(clv__opencl_block *block);
/* Dense strides of a tensor, in elements. */
void clv__opencl_strides(const clv_tensor *tensor, int64_t strides[CLV_MAX_RANK]);
/* Adds launches that copy the block from an input of the node to an output with the same element size. An empty block adds
 * none. */
clv_status clv__opencl_block_move(clv__opencl_lowering *l, const clv__opencl_node *node, uint32_t output, uint32_t input,
                                  const clv__opencl_block *block);

#endif
