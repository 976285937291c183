/* The largest or smallest element of each of many f32 rows. ReduceMax, ReduceMin, ArgMax and ArgMin over a last axis use it. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_EXTREME_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_EXTREME_H

#include <stdbool.h>
#include <stdint.h>

/* `rows` rows of `length` elements, which is at least one. A NaN in a row is its result. */
void clv__rows_extreme(const float *data, int64_t rows, int64_t length, bool smallest, float *results);
/* The position of the extreme in each row: the first of several, or the first NaN. */
void clv__rows_extreme_at(const float *data, int64_t rows, int64_t length, bool smallest, int64_t *places);

#endif
