/* The products of a recurrence's steps: see recurrent.h. */
#include "backends/common/kernels/recurrent/recurrent.h"
#include "backends/common/kernels/vector.h"

/* Registers for sums. The other vector registers hold a column of weights and the rows' factors. With 8 rows of AVX-512, the
 * addresses of the rows would not fit in the general registers. A tile takes as many rows as leave registers for two columns. */
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
