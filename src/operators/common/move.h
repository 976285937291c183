/* Moving and filling elements by their size alone: what transposes, slices, expands and their kin come down to. */
#ifndef CLEAVE_OPERATORS_COMMON_MOVE_H
#define CLEAVE_OPERATORS_COMMON_MOVE_H

#include "base/tensor/tensor.h"

#define CLV__STRIDED_RANK (2 * CLV_MAX_RANK)

/* A dense target of `dims`, and where in the source each of its elements lies: strides in elements, zero or negative too. */
typedef struct clv__strided {
  int32_t rank;
  int64_t dims[CLV__STRIDED_RANK];
  int64_t strides[CLV__STRIDED_RANK];
} clv__strided;

/* Dense strides of a tensor, in elements. */
void clv__dense_strides(const clv_tensor *tensor, int64_t strides[CLV_MAX_RANK]);

/* target[i, j, …] = source[i * strides[0] + j * strides[1] + …], on several threads where it pays. `source` is the address of the
 * element that target[0, 0, …] takes. Elements of 1, 2, 4 or 8 bytes. */
void clv__strided_read(const void *source, void *target, const clv__strided *shape, size_t element_bytes);

/* The same bytes, on several threads where it pays. */
void clv__copy_bytes(void *target, const void *source, size_t size_bytes);

/* `count` times the element at `element`; of 1, 2, 4 or 8 bytes. */
void clv__fill(void *target, const void *element, size_t element_bytes, size_t count);

#endif
