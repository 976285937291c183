/* The blocked matrix product shared by convolutions, MatMul, Gemm and Einsum: C = A B, in f32 or f64, for a batch of products of
 * one shape. The caller provides functions that pack blocks of A and B and that store blocks of C.
 *
 * The products of an element of C are summed within blocks of CLV__GEMM_DEPTH, and then over the blocks, both in order. The order
 * of additions depends only on the depth, not on the element's position or the number of threads. At the edges of C, whole tiles
 * are computed from operands padded with zeros. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_MATMUL_GEMM_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_MATMUL_GEMM_H

#include "base/stop.h"
#include "cleave/types.h"

#define CLV__GEMM_ROWS 96     /* rows of a block of C; a multiple of every tile's rows */
#define CLV__GEMM_COLUMNS 256 /* columns of a block of C; a multiple of every tile's columns */
#define CLV__GEMM_DEPTH 256

/* A block of A or B to pack: `count` rows of A or columns of B, from `first` on. It is packed as panels of `width` rows or
 * columns. A panel is [depth_count, width]. The last panel is padded with zeros. */
typedef struct clv__gemm_block {
  int64_t batch;
  int64_t first, count;
  int64_t depth_first, depth_count;
  int64_t width;
  void *panels; /* float or double, aligned to 64 bytes */
  void *line;   /* room for CLV__GEMM_COLUMNS elements, for the caller's use */
} clv__gemm_block;

typedef struct clv__gemm {
  bool is_double;
  int64_t batches, rows, columns, depth;
  const clv__stop *stop; /* may be NULL; once it is set, the remaining blocks of C are not computed */
  const void *cookie;
  void (*pack_rows)(const void *cookie, const clv__gemm_block *block);
  void (*pack_columns)(const void *cookie, const clv__gemm_block *block);
  /* Stores a block of C from `values`, which is row-major with `stride` elements per row. The callee may overwrite `values`. */
  void (*store)(const void *cookie, int64_t batch, int64_t row, int64_t row_count, int64_t column, int64_t column_count,
                void *values, int64_t stride);
} clv__gemm;

/* Returns the bytes of scratch that clv__gemm_run() needs for these sizes. Ignores the callbacks. */
size_t clv__gemm_scratch_bytes(const clv__gemm *gemm);
void clv__gemm_run(const clv__gemm *gemm, void *scratch);

/* For pack functions: stores the block's `count` elements at depth `k`, which are consecutive in `line`, in the panels. */
static inline void clv__gemm_spread_f32(const clv__gemm_block *block, int64_t k, const float *line) {
  float *panel = (float *)block->panels + k * block->width;
  for (int64_t j = 0; j < block->count; j += block->width, panel += block->depth_count * block->width) {
    int64_t n = block->count - j < block->width ? block->count - j : block->width;
    for (int64_t i = 0; i < n; ++i) panel[i] = line[j + i];
    for (int64_t i = n; i < block->width; ++i) panel[i] = 0.0f;
  }
}
static inline void clv__gemm_spread_f64(const clv__gemm_block *block, int64_t k, const double *line) {
  double *panel = (double *)block->panels + k * block->width;
  for (int64_t j = 0; j < block->count; j += block->width, panel += block->depth_count * block->width) {
    int64_t n = block->count - j < block->width ? block->count - j : block->width;
    for (int64_t i = 0; i < n; ++i) panel[i] = line[j + i];
    for (int64_t i = n; i < block->width; ++i) panel[i] = 0.0;
  }
}

#endif
