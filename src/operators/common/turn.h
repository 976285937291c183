/* Transposes a matrix in small blocks that fit the registers, so that memory is read and written in contiguous runs. */
#ifndef CLEAVE_OPERATORS_COMMON_TURN_H
#define CLEAVE_OPERATORS_COMMON_TURN_H

#include <stdint.h>

/* to[c * to_step + r] = from[r * from_step + c] for a matrix of `rows` x `columns` elements. `from` and `to` do not overlap. */
void clv__turn_f32(const float *from, int64_t from_step, float *to, int64_t to_step, int64_t rows, int64_t columns);
void clv__turn_f64(const double *from, int64_t from_step, double *to, int64_t to_step, int64_t rows, int64_t columns);

#endif
