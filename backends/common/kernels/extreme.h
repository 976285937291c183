/* The largest or smallest element of each of many rows of f32: what ReduceMax, ReduceMin, ArgMax and ArgMin over a last axis
 * are made of. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_EXTREME_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_EXTREME_H

#include <stdbool.h>
#include <stdint.h>

/* `rows` rows of `length` elements, at least one; a NaN in a row is its result. */
void clv__rows_extreme(const float *data, int64_t rows, int64_t length, bool smallest, float *results);
/* Where in a row its extreme is, the first of several; of NaNs the first. */
void clv__rows_extreme_at(const float *data, int64_t rows, int64_t length, bool smallest, int64_t *places);

#endif
