/* The matrix products of a recurrence. See recurrent.h. */
#include "backends/common/kernels/recurrent/recurrent.h"
#include "backends/common/kernels/vector.h"

/* SUMS: the number of vector registers for sums; the other registers hold weights and the factors of the rows. With AVX-512,
 * SUMS could be 16, which would allow tiles of 8 rows, but the addresses of 8 rows would not fit in the general registers.
 * ROWS: the largest number of rows of a tile for which the sums of two columns fit in SUMS registers. */
enum { PANEL = CLV__RECURRENT_PANEL, COLUMNS = CLV__RECURRENT_COLUMNS, SUMS = CLV__VECTOR_BYTES == 64 ? 14 : 12 };
#define ROWS(vectors) (SUMS / (2 * (vectors)) > 0 ? SUMS / (2 * (vectors)) : 1)

#define TILE_NAME(x) x##_f32
#define TILE_REAL float
#include "backends/common/kernels/recurrent/tile.h"
#define TILE_NAME(x) x##_f64
#define TILE_REAL double
#include "backends/common/kernels/recurrent/tile.h"

clv__recurrent_tile clv__recurrent_tile_of(bool is_double) {
  return is_double ? (clv__recurrent_tile){run_f64, rows_f64} : (clv__recurrent_tile){run_f32, rows_f32};
}
