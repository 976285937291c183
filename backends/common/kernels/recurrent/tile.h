/* Template of a recurrence's product in one type and for one instruction set, with sums in registers. Included by
 * sums/sums.c with
 *   TILE_NAME(x)  the function's name
 *   TILE_TARGET   an attribute
 *   TILE_REAL     float or double
 *   TILE_ROWS     the most rows: 1, 2, 3 or 7 */

typedef TILE_REAL TILE_NAME(vector)
    __attribute__((vector_size(PANEL * sizeof(TILE_REAL)), aligned(sizeof(TILE_REAL)), may_alias));

/* For numbers of rows and columns known at compile time. */
static inline __attribute__((always_inline)) TILE_TARGET void TILE_NAME(part)(const clv__recurrent_product *p, const int rows,
                                                                              const int first, const int columns) {
  const TILE_REAL *h[TILE_ROWS], *panels[COLUMNS];
  TILE_NAME(vector) sums[TILE_ROWS][COLUMNS];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    h[r] = p->rows[r];
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) sums[r][j] = (TILE_NAME(vector)){0};
  }
#pragma GCC unroll 4
  for (int j = 0; j < columns; ++j) panels[j] = p->columns[first + j];
  for (int64_t k = 0; k < p->depth; ++k) {
    TILE_NAME(vector) weights[COLUMNS];
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) weights[j] = *(const TILE_NAME(vector) *)(panels[j] + k * PANEL);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int j = 0; j < columns; ++j) sums[r][j] += h[r][k] * weights[j];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) {
      *(TILE_NAME(vector) *)((TILE_REAL *)p->sums + r * p->sums_step + (first + j) * PANEL) = sums[r][j];
    }
  }
}

/* Few rows leave registers for all columns, and need all columns to hide the latency of multiplication. Many rows leave registers
 * for two. */
static TILE_TARGET void TILE_NAME(run)(const clv__recurrent_product *p) {
  const int pairs = p->column_count / 2 * 2;
#define FEW(rows, columns) TILE_NAME(part)(p, rows, 0, columns)
#define MANY(rows)                                                   \
  for (int j = 0; j < pairs; j += 2) TILE_NAME(part)(p, rows, j, 2); \
  if (pairs < p->column_count) TILE_NAME(part)(p, rows, p->column_count - 1, 1)
  switch (p->row_count) {
    case 1:
      if (p->column_count == 4) {
        FEW(1, 4);
      } else if (p->column_count == 3) {
        FEW(1, 3);
      } else {
        MANY(1);
      }
      break;
#if TILE_ROWS > 2
    case 2:
      if (p->column_count == 4) {
        FEW(2, 4);
      } else if (p->column_count == 3) {
        FEW(2, 3);
      } else {
        MANY(2);
      }
      break;
    case 3:
      if (p->column_count == 4 && TILE_ROWS > 3) {
        FEW(3, 4);
      } else {
        MANY(3);
      }
      break;
#elif TILE_ROWS > 1
    case 2:
      MANY(2);
      break;
#endif
#if TILE_ROWS > 3
    case 4:
      MANY(4);
      break;
    case 5:
      MANY(5);
      break;
    case 6:
      MANY(6);
      break;
    case 7:
      MANY(7);
      break;
#endif
    default:
      break;
  }
#undef FEW
#undef MANY
}
#undef TILE_NAME
#undef TILE_TARGET
#undef TILE_REAL
#undef TILE_ROWS
