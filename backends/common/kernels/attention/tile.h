/* Template of the two matrix products of attention (product.h). product.c includes it with these macros defined:
 *   TILE_NAME(x)              the function's name
 *   TILE_REAL                 float or double
 *   TILE_ROWS, TILE_VECTORS   TILE_ROWS x TILE_VECTORS vectors of sums are kept in registers */
enum { TILE_NAME(lanes) = CLV__VECTOR_BYTES / sizeof(TILE_REAL), TILE_NAME(columns) = TILE_VECTORS * TILE_NAME(lanes) };

typedef TILE_REAL TILE_NAME(vector) __attribute__((vector_size(CLV__VECTOR_BYTES), may_alias));

/* out[i][*] = the sum over k, in order, of left[i * row_step + k * depth_step] * right[k][*]. If `adds`, the sum is added to
 * out. */
static inline __attribute__((always_inline)) void TILE_NAME(part)(int64_t depth, const TILE_REAL *left, int64_t row_step,
                                                                  int64_t depth_step, const TILE_REAL *right, TILE_REAL *out,
                                                                  const int rows, const bool adds) {
  TILE_NAME(vector) sums[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < TILE_VECTORS; ++v) sums[i][v] = (TILE_NAME(vector)){0};
  }
  for (int64_t k = 0; k < depth; ++k, left += depth_step, right += TILE_NAME(columns)) {
    TILE_NAME(vector) line[TILE_VECTORS];
#pragma GCC unroll 8
    for (int v = 0; v < TILE_VECTORS; ++v) line[v] = *(const TILE_NAME(vector) *)(right + v * TILE_NAME(lanes));
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
      for (int v = 0; v < TILE_VECTORS; ++v) sums[i][v] += left[i * row_step] * line[v];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < TILE_VECTORS; ++v) {
      TILE_NAME(vector) *to = (TILE_NAME(vector) *)(out + (i * TILE_VECTORS + v) * TILE_NAME(lanes));
      if (adds) sums[i][v] += *to;
      *to = sums[i][v];
    }
  }
}

static void TILE_NAME(scores)(int64_t depth, const void *queries, int64_t key_count, const void *keys, int64_t key_step,
                              void *scores) {
  const TILE_REAL *key = keys;
  TILE_REAL *to = scores;
  int64_t j = 0;
  for (; j + TILE_ROWS <= key_count; j += TILE_ROWS) {
    TILE_NAME(part)(depth, key + j * key_step, key_step, 1, queries, to + j * TILE_NAME(columns), TILE_ROWS, false);
  }
  for (; TILE_ROWS > 4 && j + 4 <= key_count; j += 4) {
    TILE_NAME(part)(depth, key + j * key_step, key_step, 1, queries, to + j * TILE_NAME(columns), 4, false);
  }
  for (; j < key_count; ++j) {
    TILE_NAME(part)(depth, key + j * key_step, key_step, 1, queries, to + j * TILE_NAME(columns), 1, false);
  }
}

static void TILE_NAME(sums)(int64_t key_count, const void *scores, int64_t width, const void *values, int64_t value_step,
                            void *sums) {
  const TILE_REAL *value = values;
  TILE_REAL *to = sums;
  int64_t i = 0;
  for (; i + TILE_ROWS <= width; i += TILE_ROWS) {
    TILE_NAME(part)(key_count, value + i, 1, value_step, scores, to + i * TILE_NAME(columns), TILE_ROWS, true);
  }
  for (; TILE_ROWS > 4 && i + 4 <= width; i += 4) {
    TILE_NAME(part)(key_count, value + i, 1, value_step, scores, to + i * TILE_NAME(columns), 4, true);
  }
  for (; i < width; ++i) {
    TILE_NAME(part)(key_count, value + i, 1, value_step, scores, to + i * TILE_NAME(columns), 1, true);
  }
}

#undef TILE_NAME
#undef TILE_REAL
#undef TILE_VECTORS
#undef TILE_ROWS
