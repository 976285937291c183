/* See gemm.h. A task computes one block of C, which fits in a thread's cache. */
#include "backends/common/kernels/matmul/gemm.h"

#include <string.h>

#include "backends/common/kernels/vector.h"
#include "base/memory.h"
#include "operators/common/threads.h"

/* A tile of ROWS x VECTORS vectors of sums is kept in registers: 4 x 2 or 6 x 2 of 16 registers, 12 x 2 of 32. The other
 * registers are for the operands. */
enum { VECTORS = 2, ROWS = CLV__VECTOR_BYTES == 64 ? 12 : CLV__VECTOR_BYTES == 32 ? 6 : 4 };

#define TILE_REAL float
#define TILE_NAME tile_f32
#include "backends/common/kernels/matmul/gemm_tile.h"
#define TILE_REAL double
#define TILE_NAME tile_f64
#include "backends/common/kernels/matmul/gemm_tile.h"

/* The innermost loop: adds the product of a panel of A, [depth, rows], and a panel of B, [depth, columns], to a tile of `rows` x
 * `columns` values. The panel of B and each row of `values` are aligned to 64 bytes. */
typedef struct tile {
  void (*run)(int64_t depth, const void *rows, const void *columns, void *values, int64_t stride);
  int rows, columns; /* `rows`: at most 12, and divides CLV__GEMM_ROWS; `columns`: at most 32, and divides CLV__GEMM_COLUMNS */
} tile;

static tile choose_tile(bool is_double) {
  return is_double ? (tile){tile_f64, ROWS, VECTORS * CLV__VECTOR_BYTES / (int)sizeof(double)}
                   : (tile){tile_f32, ROWS, VECTORS * CLV__VECTOR_BYTES / (int)sizeof(float)};
}

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* How one run is divided: block sizes rounded up to whole tiles, and the offsets of a thread's buffers in its slice of the
 * scratch. */
typedef struct cut {
  int64_t block_rows, block_columns, block_depth;
  int64_t row_blocks, column_blocks, tasks;
  size_t columns_at, values_at, line_at, slice_bytes;
} cut;

static cut cut_make(const clv__gemm *gemm) {
  cut c = {0};
  size_t element = gemm->is_double ? sizeof(double) : sizeof(float);
  /* 12 and 32 are multiples of every tile's rows and columns, so the scratch size does not depend on the machine. */
  c.block_rows = smaller(CLV__GEMM_ROWS, (gemm->rows + 11) / 12 * 12);
  c.block_columns = smaller(CLV__GEMM_COLUMNS, (gemm->columns + 31) / 32 * 32);
  c.block_depth = smaller(CLV__GEMM_DEPTH, gemm->depth);
  c.row_blocks = (gemm->rows + CLV__GEMM_ROWS - 1) / CLV__GEMM_ROWS;
  c.column_blocks = (gemm->columns + CLV__GEMM_COLUMNS - 1) / CLV__GEMM_COLUMNS;
  c.tasks = gemm->batches * c.row_blocks * c.column_blocks;
  c.columns_at = clv__align_up((size_t)(c.block_rows * c.block_depth) * element, 64);
  c.values_at = c.columns_at + clv__align_up((size_t)(c.block_columns * c.block_depth) * element, 64);
  c.line_at = c.values_at + clv__align_up((size_t)(c.block_rows * c.block_columns) * element, 64);
  c.slice_bytes = c.line_at + CLV__GEMM_COLUMNS * element;
  return c;
}

size_t clv__gemm_scratch_bytes(const clv__gemm *gemm) {
  if (gemm->rows <= 0 || gemm->columns <= 0 || gemm->batches <= 0) return 0;
  cut c = cut_make(gemm);
  return c.slice_bytes * (size_t)clv__kernel_thread_limit(c.tasks);
}

static void run_block(const clv__gemm *gemm, const cut *c, tile t, int64_t task, char *slice) {
  size_t element = gemm->is_double ? sizeof(double) : sizeof(float);
  int64_t batch = task / (c->row_blocks * c->column_blocks);
  int64_t rest = task % (c->row_blocks * c->column_blocks);
  int64_t row = rest / c->column_blocks * CLV__GEMM_ROWS;
  int64_t column = rest % c->column_blocks * CLV__GEMM_COLUMNS;
  int64_t row_count = smaller(CLV__GEMM_ROWS, gemm->rows - row);
  int64_t column_count = smaller(CLV__GEMM_COLUMNS, gemm->columns - column);
  char *values = slice + c->values_at;
  memset(values, 0, (size_t)(c->block_rows * c->block_columns) * element);
  for (int64_t k = 0; k < gemm->depth; k += CLV__GEMM_DEPTH) {
    int64_t depth = smaller(CLV__GEMM_DEPTH, gemm->depth - k);
    clv__gemm_block a = {batch, row, row_count, k, depth, t.rows, slice, slice + c->line_at};
    clv__gemm_block b = {batch, column, column_count, k, depth, t.columns, slice + c->columns_at, slice + c->line_at};
    gemm->pack_rows(gemm->cookie, &a);
    gemm->pack_columns(gemm->cookie, &b);
    for (int64_t j = 0; j < column_count; j += t.columns) {
      const char *right = slice + c->columns_at + (size_t)(j * depth) * element;
      for (int64_t i = 0; i < row_count; i += t.rows) {
        t.run(depth, slice + (size_t)(i * depth) * element, right, values + (size_t)(i * c->block_columns + j) * element,
              c->block_columns);
      }
    }
  }
  gemm->store(gemm->cookie, batch, row, row_count, column, column_count, values, c->block_columns);
}

void clv__gemm_run(const clv__gemm *gemm, void *scratch) {
  if (gemm->rows <= 0 || gemm->columns <= 0 || gemm->batches <= 0) return;
  cut c = cut_make(gemm);
  const tile t = choose_tile(gemm->is_double);
  double work = 2.0 * (double)gemm->batches * (double)gemm->rows * (double)gemm->columns * (double)(gemm->depth + 1);
  int threads = clv__kernel_threads(c.tasks, work / 16);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    char *slice = (char *)scratch + (size_t)clv__kernel_thread_index() * c.slice_bytes;
#pragma omp for schedule(dynamic, 1)
    for (int64_t task = 0; task < c.tasks; ++task) {
      if (!clv__is_stopped(gemm->stop)) run_block(gemm, &c, t, task, slice);
    }
  }
}
