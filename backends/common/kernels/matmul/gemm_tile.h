/* Template of a tile: C[TILE_ROWS][TILE_VECTORS * TILE_LANES] += A panel * B panel, held in registers. Included by gemm.c with
 *   TILE_NAME TILE_TARGET TILE_REAL TILE_LANES TILE_VECTORS TILE_ROWS */
static TILE_TARGET void TILE_NAME(int64_t depth, const void *rows, const void *columns, void *values, int64_t stride) {
  typedef TILE_REAL vector __attribute__((vector_size(TILE_LANES * sizeof(TILE_REAL)), may_alias));
  const TILE_REAL *restrict a = rows;
  const TILE_REAL *restrict b = columns;
  TILE_REAL *restrict c = values;
  vector sums[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 16
  for (int i = 0; i < TILE_ROWS; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < TILE_VECTORS; ++v) sums[i][v] = (vector){0};
  }
  for (int64_t k = 0; k < depth; ++k, a += TILE_ROWS, b += TILE_VECTORS * TILE_LANES) {
    vector right[TILE_VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < TILE_VECTORS; ++v) right[v] = *(const vector *)(b + v * TILE_LANES);
#pragma GCC unroll 16
    for (int i = 0; i < TILE_ROWS; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < TILE_VECTORS; ++v) sums[i][v] += a[i] * right[v];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < TILE_ROWS; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < TILE_VECTORS; ++v) *(vector *)(c + i * stride + v * TILE_LANES) += sums[i][v];
  }
}
#undef TILE_NAME
#undef TILE_TARGET
#undef TILE_LANES
#undef TILE_VECTORS
#undef TILE_ROWS
