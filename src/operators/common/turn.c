/* See turn.h. */
#include "operators/common/turn.h"

#include <string.h>

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAS_SHUFFLE
#endif
#endif

#define SIDE 4
#define SQUARE 16 /* floats in a cache line */

#ifdef HAS_SHUFFLE
typedef float four __attribute__((vector_size(SIDE * sizeof(float)), aligned(sizeof(float)), may_alias));

static inline void turn_block(const float *from, int64_t from_step, float *to, int64_t to_step) {
  const four a = *(const four *)from, b = *(const four *)(from + from_step);
  const four c = *(const four *)(from + 2 * from_step), d = *(const four *)(from + 3 * from_step);
  const four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  *(four *)to = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
  *(four *)(to + to_step) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
  *(four *)(to + 2 * to_step) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
  *(four *)(to + 3 * to_step) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}
#else
static inline void turn_block(const float *from, int64_t from_step, float *to, int64_t to_step) {
  for (int r = 0; r < SIDE; ++r) {
    for (int c = 0; c < SIDE; ++c) to[c * to_step + r] = from[r * from_step + c];
  }
}
#endif

/* Transposes a square through a buffer. Each cache line of source and target is accessed once, even if many of them map to the
 * same cache set. */
static inline void turn_square(const float *from, int64_t from_step, float *to, int64_t to_step) {
  float turned[SQUARE * SQUARE];
  for (int r = 0; r < SQUARE; r += SIDE) {
    for (int c = 0; c < SQUARE; c += SIDE) turn_block(from + r * from_step + c, from_step, turned + c * SQUARE + r, SQUARE);
  }
  for (int c = 0; c < SQUARE; ++c) memcpy(to + c * to_step, turned + c * SQUARE, SQUARE * sizeof *turned);
}

/* Transposes the rows and columns at the edges, which do not fill a square. */
static void turn_rest(const float *from, int64_t from_step, float *to, int64_t to_step, int64_t rows, int64_t columns) {
  const int64_t whole_rows = rows / SIDE * SIDE, whole_columns = columns / SIDE * SIDE;
  for (int64_t c = 0; c < whole_columns; c += SIDE) {
    for (int64_t r = 0; r < whole_rows; r += SIDE) {
      turn_block(from + r * from_step + c, from_step, to + c * to_step + r, to_step);
    }
  }
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = c < whole_columns ? whole_rows : 0; r < rows; ++r) to[c * to_step + r] = from[r * from_step + c];
  }
}

void clv__turn_f32(const float *from, int64_t from_step, float *to, int64_t to_step, int64_t rows, int64_t columns) {
  const int64_t square_rows = rows / SQUARE * SQUARE, square_columns = columns / SQUARE * SQUARE;
  for (int64_t r = 0; r < square_rows; r += SQUARE) {
    for (int64_t c = 0; c < square_columns; c += SQUARE) {
      turn_square(from + r * from_step + c, from_step, to + c * to_step + r, to_step);
    }
  }
  turn_rest(from + square_columns, from_step, to + square_columns * to_step, to_step, square_rows, columns - square_columns);
  turn_rest(from + square_rows * from_step, from_step, to + square_rows, to_step, rows - square_rows, columns);
}

void clv__turn_f64(const double *from, int64_t from_step, double *to, int64_t to_step, int64_t rows, int64_t columns) {
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) to[c * to_step + r] = from[r * from_step + c];
  }
}
