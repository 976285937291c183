/* See product.h. There are three methods: a blocked product (gemm.h); a product that does not pack B, for few rows, because then
 * reading B takes most of the time; and simple loops for integers. The choice depends only on shapes, dtypes and layout. */
#include "backends/common/kernels/matmul/product.h"

#include "backends/common/kernels/matmul/gemm.h"
#include "base/memory.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/common/turn.h"

#define THIN_ROWS 4      /* up to this number of rows, B is not packed */
#define THIN_COLUMNS 256 /* number of columns of B that a task multiplies at a time */
#define THIN_LANES 16

static bool is_run(const int64_t *offsets, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    if (offsets[i] != offsets[0] + i) return false;
  }
  return true;
}

#define NAME(x) x##_f32
#define STORED float
#define REAL float
#define LOAD(e) (e)
#define SPREAD clv__gemm_spread_f32
#include "backends/common/kernels/matmul/product_body.h"
#define NAME(x) x##_f64
#define STORED double
#define REAL double
#define LOAD(e) (e)
#define SPREAD clv__gemm_spread_f64
#include "backends/common/kernels/matmul/product_body.h"
#define NAME(x) x##_f16
#define STORED uint16_t
#define REAL float
#define LOAD(e) clv__f16_widen(e)
#define SPREAD clv__gemm_spread_f32
#include "backends/common/kernels/matmul/product_body.h"
#define NAME(x) x##_bf16
#define STORED uint16_t
#define REAL float
#define LOAD(e) clv__bf16_to_f32(e)
#define SPREAD clv__gemm_spread_f32
#include "backends/common/kernels/matmul/product_body.h"

/* Packs rows of A or columns of B by transposing one panel at a time. They must be contiguous along the depth and evenly
 * spaced. Returns false, and packs nothing, if they are not, or if there is nothing to transpose: a single row or column, or
 * rows or columns that lie next to each other in memory. */
static bool pack_by_turning(const float *elements, const int64_t *across, const int64_t *along, const clv__gemm_block *block) {
  across += block->first;
  along += block->depth_first;
  if (block->count < 2 || across[1] == across[0] + 1 || !is_run(along, block->depth_count)) return false;
  for (int64_t i = 1; i < block->count; ++i) {
    if (across[i] - across[i - 1] != across[1] - across[0]) return false;
  }
  float *panel = block->panels;
  for (int64_t i = 0; i < block->count; i += block->width, panel += block->width * block->depth_count) {
    const int64_t count = block->count - i < block->width ? block->count - i : block->width;
    clv__turn_f32(elements + across[i] + along[0], across[1] - across[0], panel, block->width, count, block->depth_count);
    for (int64_t k = 0; k < block->depth_count && count < block->width; ++k) {
      memset(panel + k * block->width + count, 0, (size_t)(block->width - count) * sizeof *panel);
    }
  }
  return true;
}

static void pack(clv_dtype dtype, const void *data, int64_t offset, const int64_t *across, const int64_t *along,
                 const clv__gemm_block *block) {
  const char *start = (const char *)data + (size_t)offset * clv_dtype_size_bytes(dtype);
  switch (dtype) {
    case CLV_F64:
      pack_f64(start, across, along, block);
      break;
    case CLV_F16:
      pack_f16(start, across, along, block);
      break;
    case CLV_BF16:
      pack_bf16(start, across, along, block);
      break;
    default:
      if (!pack_by_turning((const float *)(const void *)start, across, along, block)) pack_f32(start, across, along, block);
      break;
  }
}

static void pack_rows(const void *cookie, const clv__gemm_block *block) {
  const clv__product *p = cookie;
  pack(p->a_dtype, p->a, p->a_batch[block->batch], p->a_row, p->a_depth, block);
}

static void pack_columns(const void *cookie, const clv__gemm_block *block) {
  const clv__product *p = cookie;
  pack(p->b_dtype, p->b, p->b_batch[block->batch], p->b_column, p->b_depth, block);
}

/* Computes alpha * sums + beta * addend for one row of a block in place, and stores it in C. */
static void store_row_f32(const clv__product *p, int64_t batch, int64_t row, int64_t column, int64_t count, float *sums) {
  if (p->alpha != 1.0f) {
    for (int64_t j = 0; j < count; ++j) sums[j] *= p->alpha;
  }
  if (p->addend != NULL) {
    int64_t start = row * p->addend_row + column * p->addend_column;
    for (int64_t j = 0; j < count; ++j) {
      float addend;
      clv__row_to_f32(p->c_dtype, p->addend, start + j * p->addend_column, 1, &addend);
      sums[j] += p->beta * addend;
    }
  }
  int64_t start = p->c_batch[batch] + p->c_row[row];
  if (is_run(p->c_column + column, count)) {
    clv__row_from_f32(p->c_dtype, p->c, start + p->c_column[column], count, sums);
  } else {
    for (int64_t j = 0; j < count; ++j) clv__row_from_f32(p->c_dtype, p->c, start + p->c_column[column + j], 1, sums + j);
  }
}

static void store_row_f64(const clv__product *p, int64_t batch, int64_t row, int64_t column, int64_t count, double *sums) {
  double *c = (double *)p->c + p->c_batch[batch] + p->c_row[row];
  const double *addend = p->addend;
  for (int64_t j = 0; j < count; ++j) {
    double value = sums[j] * (double)p->alpha;
    if (addend != NULL) value += (double)p->beta * addend[row * p->addend_row + (column + j) * p->addend_column];
    c[p->c_column[column + j]] = value;
  }
}

static void store(const void *cookie, int64_t batch, int64_t row, int64_t row_count, int64_t column, int64_t column_count,
                  void *values, int64_t stride) {
  const clv__product *p = cookie;
  for (int64_t i = 0; i < row_count; ++i) {
    if (p->c_dtype == CLV_F64) {
      store_row_f64(p, batch, row + i, column, column_count, (double *)values + i * stride);
    } else {
      store_row_f32(p, batch, row + i, column, column_count, (float *)values + i * stride);
    }
  }
}

static void run_thin(const clv__product *p, bool columns_run) {
  int64_t chunks = (p->columns + THIN_COLUMNS - 1) / THIN_COLUMNS, tasks = p->batches * chunks;
  int threads = clv__kernel_threads(tasks, (double)p->batches * (double)p->columns * (double)(p->depth + 1));
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    if (clv__is_stopped(p->stop)) continue;
    int64_t batch = task / chunks, column = task % chunks * THIN_COLUMNS;
    int64_t count = p->columns - column < THIN_COLUMNS ? p->columns - column : THIN_COLUMNS;
    union {
      float f32[THIN_ROWS * THIN_COLUMNS];
      double f64[THIN_ROWS * THIN_COLUMNS];
    } sums;
    switch (p->b_dtype) {
      case CLV_F64:
        thin_f64(p, batch, column, count, columns_run, sums.f64);
        break;
      case CLV_F16:
        thin_f16(p, batch, column, count, columns_run, sums.f32);
        break;
      case CLV_BF16:
        thin_bf16(p, batch, column, count, columns_run, sums.f32);
        break;
      default:
        thin_f32(p, batch, column, count, columns_run, sums.f32);
        break;
    }
    store(p, batch, 0, p->rows, column, count, &sums, THIN_COLUMNS);
  }
}

static uint64_t integer_load(clv_dtype dtype, const void *data, int64_t index) {
  switch (dtype) {
    case CLV_I8:
      return (uint64_t)((const int8_t *)data)[index];
    case CLV_U8:
      return ((const uint8_t *)data)[index];
    case CLV_I16:
      return (uint64_t)((const int16_t *)data)[index];
    case CLV_U16:
      return ((const uint16_t *)data)[index];
    case CLV_I32:
      return (uint64_t)((const int32_t *)data)[index];
    case CLV_U32:
      return ((const uint32_t *)data)[index];
    default:
      return ((const uint64_t *)data)[index];
  }
}

static void integer_store(clv_dtype dtype, void *data, int64_t index, uint64_t value) {
  switch (clv_dtype_size_bytes(dtype)) {
    case 1:
      ((uint8_t *)data)[index] = (uint8_t)value;
      break;
    case 2:
      ((uint16_t *)data)[index] = (uint16_t)value;
      break;
    case 4:
      ((uint32_t *)data)[index] = (uint32_t)value;
      break;
    default:
      ((uint64_t *)data)[index] = value;
      break;
  }
}

static uint64_t integer_scale(const clv__product *p, uint64_t sum, int64_t row, int64_t column) {
  uint64_t addend = p->addend != NULL ? integer_load(p->c_dtype, p->addend, row * p->addend_row + column * p->addend_column) : 0;
  if (p->alpha == 1.0f && p->beta == 1.0f) return sum + addend;
  bool is_signed = (CLV__DTYPE_BIT(p->c_dtype) & CLV__DTYPES_SIGNED) != 0;
  double value = (double)p->alpha * (is_signed ? (double)(int64_t)sum : (double)sum) +
                 (double)p->beta * (is_signed ? (double)(int64_t)addend : (double)addend);
  uint64_t whole = 0;
  clv__row_from_f64(p->c_dtype, &whole, 0, 1, &value);
  return integer_load(p->c_dtype, &whole, 0);
}

/* Computes one row of C at a time, in chunks of columns. In two's complement, one loop serves all integer dtypes. */
static void run_integers(const clv__product *p) {
  int64_t tasks = p->batches * p->rows;
  int threads = clv__kernel_threads(tasks, (double)tasks * (double)p->columns * (double)(p->depth + 1));
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    if (clv__is_stopped(p->stop)) continue;
    int64_t batch = task / p->rows, row = task % p->rows;
    int64_t a = p->a_batch[batch] + p->a_row[row], b = p->b_batch[batch], c = p->c_batch[batch] + p->c_row[row];
    for (int64_t column = 0; column < p->columns; column += THIN_COLUMNS) {
      int64_t count = p->columns - column < THIN_COLUMNS ? p->columns - column : THIN_COLUMNS;
      uint64_t sums[THIN_COLUMNS] = {0};
      for (int64_t k = 0; k < p->depth; ++k) {
        uint64_t left = integer_load(p->a_dtype, p->a, a + p->a_depth[k]);
        const int64_t *offsets = p->b_column + column;
        int64_t start = b + p->b_depth[k];
        for (int64_t j = 0; j < count; ++j) sums[j] += left * integer_load(p->b_dtype, p->b, start + offsets[j]);
      }
      for (int64_t j = 0; j < count; ++j) {
        integer_store(p->c_dtype, p->c, c + p->c_column[column + j], integer_scale(p, sums[j], row, column + j));
      }
    }
  }
}

static bool is_empty(const clv__product *p) {
  return p->batches <= 0 || p->rows <= 0 || p->columns <= 0;
}

static clv__gemm gemm_of(const clv__product *p) {
  return (clv__gemm){.is_double = p->c_dtype == CLV_F64,
                     .batches = p->batches,
                     .rows = p->rows,
                     .columns = p->columns,
                     .depth = p->depth,
                     .stop = p->stop,
                     .cookie = p,
                     .pack_rows = pack_rows,
                     .pack_columns = pack_columns,
                     .store = store};
}

static bool is_integer(const clv__product *p) {
  return (CLV__DTYPE_BIT(p->c_dtype) & CLV__DTYPES_FLOAT) == 0;
}

static bool tables_bytes(const clv__product *p, size_t *bytes) {
  size_t entries, part;
  return clv__multiply((size_t)p->batches, 3, &entries) && clv__multiply((size_t)p->rows, 2, &part) &&
         clv__add(entries, part, &entries) && clv__multiply((size_t)p->depth, 2, &part) && clv__add(entries, part, &entries) &&
         clv__multiply((size_t)p->columns, 2, &part) && clv__add(entries, part, &entries) && clv__add(entries, 8, &entries) &&
         clv__multiply(entries, sizeof(int64_t), bytes);
}

size_t clv__product_scratch_bytes(const clv__product *product) {
  size_t bytes;
  if (is_empty(product)) return 0;
  if (!tables_bytes(product, &bytes)) return SIZE_MAX;
  bytes = clv__align_up(bytes, 64);
  if (is_integer(product)) return bytes;
  clv__gemm gemm = gemm_of(product);
  return clv__add(bytes, clv__gemm_scratch_bytes(&gemm), &bytes) ? bytes : SIZE_MAX;
}

void clv__product_bind(clv__product *product, void *scratch) {
  size_t bytes;
  if (is_empty(product) || !tables_bytes(product, &bytes)) return;
  product->scratch = (char *)scratch + clv__align_up(bytes, 64);
  int64_t *next = scratch;
  product->a_batch = next, next += product->batches;
  product->b_batch = next, next += product->batches;
  product->c_batch = next, next += product->batches;
  product->a_row = next, next += product->rows;
  product->c_row = next, next += product->rows;
  product->a_depth = next, next += product->depth;
  product->b_depth = next, next += product->depth;
  product->b_column = next, next += product->columns;
  product->c_column = next;
}

void clv__product_run(const clv__product *product) {
  const clv__product *p = product;
  if (is_empty(p)) return;
  if (is_integer(p)) {
    run_integers(p);
    return;
  }
  if (p->rows <= THIN_ROWS && p->a_dtype == p->b_dtype) {
    bool columns_run = p->depth == 0 || is_run(p->b_column, p->columns);
    if (columns_run || (is_run(p->b_depth, p->depth) && is_run(p->a_depth, p->depth))) {
      run_thin(p, columns_run);
      return;
    }
  }
  clv__gemm gemm = gemm_of(p);
  clv__gemm_run(&gemm, p->scratch);
}
