/* Copies and fills elements of any dtype, given only their size: the common core of transpose, slice, expand and similar
 * operators. */
#ifndef CLEAVE_OPERATORS_COMMON_MOVE_H
#define CLEAVE_OPERATORS_COMMON_MOVE_H

#include "base/stop.h"
#include "base/tensor/tensor.h"

#define CLV__STRIDED_RANK (2 * CLV_MAX_RANK)

/* The dims of a dense target, and the strides with which its elements are read from the source. Strides are in elements and may
 * be zero or negative. */
typedef struct clv__strided {
  int32_t rank;
  int64_t dims[CLV__STRIDED_RANK];
  int64_t strides[CLV__STRIDED_RANK];
} clv__strided;

/* The strides of a dense tensor, in elements. */
void clv__dense_strides(const clv_tensor *tensor, int64_t strides[CLV_MAX_RANK]);

/* target[i, j, …] = source[i * strides[0] + j * strides[1] + …], on several threads if worthwhile. `source` is the address of the
 * element for target[0, 0, …]. Elements have 1, 2, 4 or 8 bytes. Here and below, `stop` is that of the call; it may be NULL. */
void clv__strided_read(const void *source, void *target, const clv__strided *shape, size_t element_bytes, const clv__stop *stop);

/* Copies bytes, on several threads if worthwhile. */
void clv__copy_bytes(void *target, const void *source, size_t size_bytes, const clv__stop *stop);

/* Writes `count` copies of the element at `element`, which has 1, 2, 4 or 8 bytes. */
void clv__fill(void *target, const void *element, size_t element_bytes, size_t count, const clv__stop *stop);

#endif
