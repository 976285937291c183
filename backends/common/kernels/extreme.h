/* The largest or smallest element of each of many f32 rows. ReduceMax, ReduceMin, ArgMax and ArgMin over a last axis use it. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_EXTREME_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_EXTREME_H

#include <stdbool.h>
#include <stdint.h>

/* Finds the extremes of `rows` rows of `length` elements; `length` is at least 1. The result of a row that contains a NaN is
 * NaN. */
void clv__rows_extreme(const float *data, int64_t rows, int64_t length, bool smallest, float *results);
/* Finds the position of the extreme in each row: the first of equal elements, or the first NaN. */
void clv__rows_extreme_at(const float *data, int64_t rows, int64_t length, bool smallest, int64_t *places);

#endif
