/* Template of the innermost loop of gemm.c: C[ROWS][VECTORS * LANES] += A panel * B panel, with the sums in registers. gemm.c
 * defines ROWS and VECTORS and includes this file with TILE_NAME and TILE_REAL defined. */
static void TILE_NAME(int64_t depth, const void *rows, const void *columns, void *values, int64_t stride) {
  enum { LANES = CLV__VECTOR_BYTES / sizeof(TILE_REAL) };
  typedef TILE_REAL vector __attribute__((vector_size(CLV__VECTOR_BYTES), may_alias));
  const TILE_REAL *restrict a = rows;
  const TILE_REAL *restrict b = columns;
  TILE_REAL *restrict c = values;
  vector sums[ROWS][VECTORS];
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; ++v) sums[i][v] = (vector){0};
  }
  for (int64_t k = 0; k < depth; ++k, a += ROWS, b += VECTORS * LANES) {
    vector right[VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; ++v) right[v] = *(const vector *)(b + v * LANES);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; ++v) sums[i][v] += a[i] * right[v];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < VECTORS; ++v) *(vector *)(c + i * stride + v * LANES) += sums[i][v];
  }
}
#undef TILE_NAME
#undef TILE_REAL
