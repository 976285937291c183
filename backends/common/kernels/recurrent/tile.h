/* Template of a recurrence's matrix product in one type, with sums in registers. sums.c includes it with these macros defined:
 *   TILE_NAME(x)  names of functions, types and constants
 *   TILE_REAL     float or double */
enum {
  TILE_NAME(lanes) = CLV__VECTOR_BYTES / sizeof(TILE_REAL),
  TILE_NAME(vectors) = PANEL / TILE_NAME(lanes), /* vectors per panel */
  TILE_NAME(rows) = ROWS(TILE_NAME(vectors))
};
_Static_assert((int)TILE_NAME(rows) <= (int)CLV__RECURRENT_ROWS, "rows of a product");

typedef TILE_REAL TILE_NAME(vector) __attribute__((vector_size(CLV__VECTOR_BYTES), aligned(sizeof(TILE_REAL)), may_alias));

/* Computes `columns` columns from `first` on, for `rows` rows. Both numbers are known at compile time. */
static inline __attribute__((always_inline)) void TILE_NAME(part)(const clv__recurrent_product *p, const int rows,
                                                                  const int first, const int columns) {
  enum { LANES = TILE_NAME(lanes), VECTORS = TILE_NAME(vectors) };
  const TILE_REAL *h[TILE_NAME(rows)], *panels[COLUMNS];
  TILE_NAME(vector) sums[TILE_NAME(rows)][COLUMNS][VECTORS];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    h[r] = p->rows[r];
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) {
#pragma GCC unroll 8
      for (int v = 0; v < VECTORS; ++v) sums[r][j][v] = (TILE_NAME(vector)){0};
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < columns; ++j) panels[j] = p->columns[first + j];
  for (int64_t k = 0; k < p->depth; ++k) {
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) {
#pragma GCC unroll 8
      for (int v = 0; v < VECTORS; ++v) {
        const TILE_NAME(vector) weights = *(const TILE_NAME(vector) *)(panels[j] + k * PANEL + v * LANES);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) sums[r][j][v] += h[r][k] * weights;
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) {
      TILE_REAL *to = (TILE_REAL *)p->sums + r * p->sums_step + (first + j) * PANEL;
#pragma GCC unroll 8
      for (int v = 0; v < VECTORS; ++v) *(TILE_NAME(vector) *)(to + v * LANES) = sums[r][j][v];
    }
  }
}

/* Computes as many columns at a time as there are registers for. With few rows, several columns are needed to hide the latency of
 * multiplication. */
static inline __attribute__((always_inline)) void TILE_NAME(run_rows)(const clv__recurrent_product *p, const int rows) {
  const int fit = SUMS / (rows * TILE_NAME(vectors)), each = fit < 1 ? 1 : fit < COLUMNS ? fit : COLUMNS;
  int j = 0;
  for (; j + each <= p->column_count; j += each) TILE_NAME(part)(p, rows, j, each);
  if (each > 3 && p->column_count - j == 3) {
    TILE_NAME(part)(p, rows, j, 3);
    return;
  }
  for (; each > 2 && j + 2 <= p->column_count; j += 2) TILE_NAME(part)(p, rows, j, 2);
  for (; j < p->column_count; ++j) TILE_NAME(part)(p, rows, j, 1);
}

static void TILE_NAME(run)(const clv__recurrent_product *p) {
#define CASE(count)                                                                                          \
  case count:                                                                                                \
    if (TILE_NAME(rows) >= count) TILE_NAME(run_rows)(p, count < TILE_NAME(rows) ? count : TILE_NAME(rows)); \
    break;
  switch (p->row_count) {
    CASE(1)
    CASE(2)
    CASE(3)
    CASE(4)
    CASE(5)
    CASE(6)
    CASE(7)
    default:
      break;
  }
#undef CASE
}
#undef TILE_NAME
#undef TILE_REAL
