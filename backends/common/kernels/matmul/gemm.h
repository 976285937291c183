/* The blocked matrix product shared by convolutions, MatMul, Gemm and Einsum: C = A B, in f32 or f64, for a batch of products of
 * one shape. The caller defines A, B and C: it packs blocks of A and B and stores blocks of C.
 *
 * Every element of C is the sum over depth blocks, in order, of the sums over each block, in order. The order depends on the
 * depth alone, not on the element's position or the number of threads. Edges are computed as whole tiles over zero padding. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_MATMUL_GEMM_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_MATMUL_GEMM_H

#include "cleave/types.h"

#define CLV__GEMM_ROWS 96     /* rows of a block of C; a multiple of every tile's rows */
#define CLV__GEMM_COLUMNS 256 /* columns of a block of C; a multiple of every tile's columns */
#define CLV__GEMM_DEPTH 256

/* A block of A (`first`, `count`: rows) or of B (columns) to pack, in panels of `width` rows or columns. Each panel holds
 * `depth_count` runs of `width` elements. The last panel is padded with zeros. */
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
  const void *cookie;
  void (*pack_rows)(const void *cookie, const clv__gemm_block *block);
  void (*pack_columns)(const void *cookie, const clv__gemm_block *block);
  /* `values` is row-major with `stride` elements per row. The callee may overwrite it. */
  void (*store)(const void *cookie, int64_t batch, int64_t row, int64_t row_count, int64_t column, int64_t column_count,
                void *values, int64_t stride);
} clv__gemm;

/* Scratch that clv__gemm_run() needs for these sizes. Ignores the callbacks. */
size_t clv__gemm_scratch_bytes(const clv__gemm *gemm);
void clv__gemm_run(const clv__gemm *gemm, void *scratch);

/* Stores one run of `count` consecutive elements at depth `k` of the block in its panels. For pack functions. */
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
