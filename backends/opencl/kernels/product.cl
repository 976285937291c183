/* Matrix products and convolutions: y[z, m, n] = sum over k of A(z, m, k) * B(z, k, n), plus the addend. POST then applies the
 * fused elementwise functions.
 *
 * In a product, A and B are strided matrices. With CONVOLUTION defined, A contains weights [out channel, k], and n is an output
 * position. B(k, n) is then the input element that tap k reads for position n. Tables give, for each k, the position of its
 * weight, and the position of its element relative to that of the first element. So strides, dilation, padding, groups and the
 * phases of a transposed convolution all use the same loops. No matrix of columns is ever stored.
 *
 *   tiles    for GPUs: tiles of both operands in local memory, 4x4 results per work item
 *   panels   for CPUs (with PANELS): 16 columns of B in private memory as vectors, 8 rows at a time
 *   lanes    for CPUs: 16 columns of one row at a time, for convolutions with few channels per group and products with few rows
 *   single   one work item per result: integers, f64, and on GPUs results with few rows or columns
 *   dots     one work group per result, for few results whose operands are contiguous along the depth; on CPUs dots_wide
 *
 * Defines: T. Products and sums are in REAL(T). */
typedef REAL(T) real;

#ifdef CONVOLUTION

#define PARAMETERS                                                                                                               \
  GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * x, GLOBAL const STORAGE(T) * w, GLOBAL const STORAGE(T) * bias,                \
      GLOBAL const int *taps, GLOBAL const int *places, index_t rows, index_t columns, index_t depth, index_t weight_row,         \
      index_t weight_group, index_t groups, index_t x_image, index_t x_group, index_t y_plane, dims_t counts, dims_t input,       \
      dims_t input_step, dims_t output_first, dims_t output_step, dims_t output, int has_bias POST_PARAMETERS
#define BEGIN(z)                                                                                                \
  const index_t group = (z) % groups, a_first = group * weight_group, b_first = (z) / groups * x_image + group * x_group; \
  const index_t y_first = (z)*rows * y_plane;

/* An output position n. `base` is the offset in x of the element that a tap at distance 0 reads, and p0 to p2 are its
 * coordinates. They may be outside the input. `to` is the offset of the result in its plane. */
typedef struct {
  index_t base, to;
  int p0, p1, p2;
} column_t;

FUNCTION column_t clv_column(index_t n, index_t b_first, dims_t counts, dims_t input, dims_t input_step, dims_t output_first,
                             dims_t output_step, dims_t output) {
  column_t c;
  const index_t q2 = n % counts.at[2], q1 = n / counts.at[2] % counts.at[1], q0 = n / counts.at[2] / counts.at[1];
  c.p0 = (int)(q0 * input_step.at[0]);
  c.p1 = (int)(q1 * input_step.at[1]);
  c.p2 = (int)(q2 * input_step.at[2]);
  c.base = b_first + (c.p0 * input.at[1] + c.p1) * input.at[2] + c.p2;
  c.to = ((output_first.at[0] + q0 * output_step.at[0]) * output.at[1] + output_first.at[1] + q1 * output_step.at[1]) * output.at[2] +
         output_first.at[2] + q2 * output_step.at[2];
  return c;
}
#define COLUMN(n) clv_column(n, b_first, counts, input, input_step, output_first, output_step, output)
#define IS_INSIDE(c, k)                                                                     \
  ((uint)((c).p0 + taps[4 * (k) + 1]) < (uint)input.at[0] && (uint)((c).p1 + taps[4 * (k) + 2]) < (uint)input.at[1] && \
   (uint)((c).p2 + taps[4 * (k) + 3]) < (uint)input.at[2])
#define VALUE(c, k) (IS_INSIDE(c, k) ? LOAD(T, x, (c).base + taps[4 * (k)]) : (real)0)
#define A_ROW(m) (a_first + (m)*weight_row)
#ifdef WEIGHTS_SCATTERED
#define A_STEP(k) places[k]
#else
#define A_STEP(k) (k)
#endif
#define A_VALUE(i) LOAD(T, w, i)
#define FINISH(sum, m, c) ((sum) + (has_bias ? LOAD(T, bias, group * rows + (m)) : (real)0))
#define PLACE(m, c) (y_first + (m)*y_plane + (c).to)
#define A_RUNS_ALONG_DEPTH 1
#define B_RUNS_ALONG_COLUMNS 1

#else

#define PARAMETERS                                                                                                              \
  GLOBAL STORAGE(T) * y, GLOBAL const STORAGE(T) * a, GLOBAL const STORAGE(T) * b, GLOBAL const STORAGE(T) * addend,             \
      index_t rows, index_t columns, index_t depth, index_t a_row, index_t a_depth, index_t b_depth, index_t b_column,           \
      index_t c_row, index_t c_column, float alpha, float beta, int has_addend, int batch_rank, dims_t batch, dims_t a_batch,    \
      dims_t b_batch, dims_t c_batch POST_PARAMETERS
#define BEGIN(z)                                                                                                             \
  const index_t a_first = clv_place(z, batch_rank, batch, a_batch), b_first = clv_place(z, batch_rank, batch, b_batch);      \
  const index_t c_first = clv_place(z, batch_rank, batch, c_batch), y_first = (z)*rows * columns;
typedef struct {
  index_t base, to;
} column_t;
FUNCTION column_t clv_column(index_t n, index_t base) {
  column_t c;
  c.base = base;
  c.to = n;
  return c;
}
#define COLUMN(n) clv_column(n, b_first + (n)*b_column)
#define VALUE(c, k) LOAD(T, b, (c).base + (k)*b_depth)
#define A_ROW(m) (a_first + (m)*a_row)
#define A_STEP(k) ((k)*a_depth)
#define A_VALUE(i) LOAD(T, a, i)
#if IS_FLOAT(T)
#define FINISH(sum, m, c) \
  ((real)alpha * (sum) + (has_addend ? (real)beta * LOAD(T, addend, c_first + (m)*c_row + (c).to * c_column) : (real)0))
#else /* integers: the factors do not round, because accepts_gemm() accepts only alpha 1 and beta 0 or 1 */
#define FINISH(sum, m, c)    \
  ((real)(alpha == 1 ? (sum) : (real)((float)(sum) * alpha)) + \
   (has_addend ? (real)(beta * LOAD(T, addend, c_first + (m)*c_row + (c).to * c_column)) : (real)0))
#endif
#define PLACE(m, c) (y_first + (m)*columns + (c).to)
#define A_RUNS_ALONG_DEPTH (a_depth == 1)
#define B_RUNS_ALONG_COLUMNS (b_column == 1)

#endif

/* ---- One item per result ---- */

KERNEL(single)(PARAMETERS) {
  const index_t n = GLOBAL_ID(0), m = GLOBAL_ID(1);
  if (n >= columns || m >= rows) return;
  BEGIN(GLOBAL_ID(2))
  const column_t column = COLUMN(n);
  const index_t row = A_ROW(m);
  real sum = 0;
  for (index_t k = 0; k < depth; ++k) sum += A_VALUE(row + A_STEP(k)) * VALUE(column, k);
  const real value = FINISH(sum, m, column);
  STORE(T, y, PLACE(m, column), POST(value, PLACE(m, column)));
}

#if IS_FLOAT(T)

/* ---- Tiles ---- */

#define TILE 64
#define TILE_DEPTH 16
#define TILE_PITCH (TILE + 4)

KERNEL_SIZED(tiles, 16, 16, 1)(PARAMETERS) {
  LOCAL_ARRAY(real, left, TILE_DEPTH * TILE_PITCH);
  LOCAL_ARRAY(real, right, TILE_DEPTH * TILE_PITCH);
  const int tx = (int)LOCAL_ID(0), ty = (int)LOCAL_ID(1), item = ty * 16 + tx;
  const index_t n_first = GROUP_ID(0) * TILE, m_first = GROUP_ID(1) * TILE;
  BEGIN(GROUP_ID(2))
  real sums[4][4];
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) sums[i][j] = 0;
  }
  /* If columns are contiguous in memory, a work item loads elements of only one column, whose position is computed once. */
  const index_t own_n = n_first + item % TILE;
  const column_t own = COLUMN(own_n < columns ? own_n : columns - 1);
  for (index_t k_first = 0; k_first < depth; k_first += TILE_DEPTH) {
    for (int i = 0; i < 4; ++i) {
      const int e = item + i * 256;
      const int m = A_RUNS_ALONG_DEPTH ? e / TILE_DEPTH : e % TILE, k = A_RUNS_ALONG_DEPTH ? e % TILE_DEPTH : e / TILE;
      const int inside = m_first + m < rows && k_first + k < depth;
      left[k * TILE_PITCH + m] = inside ? A_VALUE(A_ROW(m_first + m) + A_STEP(k_first + k)) : (real)0;
    }
    for (int i = 0; i < 4; ++i) {
      const int e = item + i * 256;
      if (B_RUNS_ALONG_COLUMNS) {
        const int k = e / TILE;
        right[k * TILE_PITCH + e % TILE] = own_n < columns && k_first + k < depth ? VALUE(own, k_first + k) : (real)0;
      } else {
        const int n = e / TILE_DEPTH, k = e % TILE_DEPTH;
        const int inside = n_first + n < columns && k_first + k < depth;
        const column_t column = COLUMN(n_first + n);
        right[k * TILE_PITCH + n] = inside ? VALUE(column, k_first + k) : (real)0;
      }
    }
    BARRIER();
    for (int k = 0; k < TILE_DEPTH; ++k) {
      real p[4], q[4];
      for (int i = 0; i < 4; ++i) p[i] = left[k * TILE_PITCH + ty * 4 + i];
      for (int j = 0; j < 4; ++j) q[j] = right[k * TILE_PITCH + tx + 16 * j];
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) sums[i][j] = MULTIPLY_ADD(p[i], q[j], sums[i][j]);
      }
    }
    BARRIER();
  }
  for (int j = 0; j < 4; ++j) {
    const index_t n = n_first + tx + 16 * j;
    if (n >= columns) continue;
    const column_t column = COLUMN(n);
    for (int i = 0; i < 4; ++i) {
      const index_t m = m_first + ty * 4 + i;
      if (m >= rows) continue;
      const real value = FINISH(sums[i][j], m, column);
      STORE(T, y, PLACE(m, column), POST(value, PLACE(m, column)));
    }
  }
}

#ifndef CONVOLUTION

/* One work group per result. Both operands are contiguous along the depth. */
KERNEL_SIZED(dots, GROUP, 1, 1)(PARAMETERS) {
  LOCAL_ARRAY(real, lanes, GROUP);
  const index_t n = GROUP_ID(0), m = GROUP_ID(1), lane = LOCAL_ID(0);
  BEGIN(GROUP_ID(2))
  const column_t column = COLUMN(n);
  const index_t row = A_ROW(m);
  real sum = 0;
  for (index_t k = lane; k < depth; k += GROUP) sum += A_VALUE(row + A_STEP(k)) * VALUE(column, k);
  lanes[lane] = sum;
  BARRIER();
  for (int half_count = GROUP / 2; half_count > 0; half_count /= 2) {
    if (lane < half_count) lanes[lane] += lanes[lane + half_count];
    BARRIER();
  }
  if (lane == 0) {
    const real value = FINISH(lanes[0], m, column);
    STORE(T, y, PLACE(m, column), POST(value, PLACE(m, column)));
  }
}

#endif

/* ---- Vectors, for CPUs: f32 and f16 ---- */

#ifdef PANELS
#define WIDTH 16
#define PANEL_DEPTH 256
#define PANEL_ROWS 128 /* maximum rows per work item */
#define BLOCK_ROWS 8

#if IS_f32(T)
#define LOAD_WIDE(p, i) vload16(0, (p) + (i))
#else
#define LOAD_WIDE(p, i) vload_half16(0, (p) + (i))
#endif

#ifdef CONVOLUTION
typedef struct {
  int16 base, p0, p1, p2;
  column_t first;
  int step; /* distance of neighbouring columns if all are in one row of the input and 1 or 2 apart, else 0 */
  int width;
} columns_t;

/* A block has up to WIDTH columns. Each row of the output is divided into `per_row` blocks or, if per_row is 0, the whole output
 * is divided into blocks. */
#define BLOCK_PARAMETERS index_t per_row,
#define BLOCK_FIRST(i) (per_row == 0 ? (i)*WIDTH : (i) / per_row * counts.at[2] + (i) % per_row * WIDTH)
#define BLOCK_COUNT (per_row == 0 ? (columns + WIDTH - 1) / WIDTH : columns / counts.at[2] * per_row)

#define COLUMNS(n) clv_columns(n, per_row, columns, b_first, counts, input, input_step, output_first, output_step, output)
FUNCTION columns_t clv_columns(index_t n, index_t per_row, index_t columns, index_t b_first, dims_t counts, dims_t input,
                               dims_t input_step, dims_t output_first, dims_t output_step, dims_t output) {
  columns_t c;
  const index_t row_left = counts.at[2] - n % counts.at[2], left = per_row == 0 ? columns - n : row_left;
  c.width = left < WIDTH ? (int)left : WIDTH;
  c.first = clv_column(n, b_first, counts, input, input_step, output_first, output_step, output);
  c.step = c.width <= row_left ? (int)input_step.at[2] : 0;
  if (c.step == 1 || c.step == 2) return c;
  int base[WIDTH], p0[WIDTH], p1[WIDTH], p2[WIDTH];
  c.step = 0;
  for (int j = 0; j < WIDTH; ++j) {
    const column_t at =
        clv_column(j < c.width ? n + j : n, b_first, counts, input, input_step, output_first, output_step, output);
    base[j] = (int)(at.base - c.first.base);
    p0[j] = at.p0;
    p1[j] = at.p1;
    p2[j] = at.p2;
  }
  c.base = vload16(0, base);
  c.p0 = vload16(0, p0);
  c.p1 = vload16(0, p1);
  c.p2 = vload16(0, p2);
  return c;
}

/* Reads columns of one row that are adjacent or two apart: whole vectors inside the input, single elements at its edges. */
FUNCTION float16 clv_wide_row(GLOBAL const STORAGE(T) * x, index_t from, int first, int size, int step, int width) {
  if (first >= 0 && step == 1 && first + WIDTH <= size) return LOAD_WIDE(x, from);
  if (first >= 0 && step == 2 && first + 2 * WIDTH <= size) {
    const float16 low = LOAD_WIDE(x, from), high = LOAD_WIDE(x, from + WIDTH);
    return (float16)(low.even, high.even);
  }
  float value[WIDTH];
  for (int j = 0; j < WIDTH; ++j) {
    const int at = first + j * step;
    value[j] = j < width && at >= 0 && at < size ? (float)LOAD(T, x, from + j * step) : 0.0f;
  }
  return vload16(0, value);
}

#define WIDE_VALUE(c, k) clv_wide(x, &c, taps + 4 * (k), input)
FUNCTION float16 clv_wide(GLOBAL const STORAGE(T) * x, const columns_t *c, GLOBAL const int *tap, dims_t input) {
  const int t0 = tap[1], t1 = tap[2], t2 = tap[3];
  const index_t from = c->first.base + tap[0];
  if (c->step != 0) {
    const int inside = (uint)(c->first.p0 + t0) < (uint)input.at[0] && (uint)(c->first.p1 + t1) < (uint)input.at[1];
    if (!inside) return (float16)(0);
    return clv_wide_row(x, from, c->first.p2 + t2, (int)input.at[2], c->step, c->width);
  }
  const int16 inside = (as_uint16(c->p0 + t0) < (uint16)((uint)input.at[0])) & (as_uint16(c->p1 + t1) < (uint16)((uint)input.at[1])) &
                       (as_uint16(c->p2 + t2) < (uint16)((uint)input.at[2]));
  int at[WIDTH], ok[WIDTH];
  float value[WIDTH];
  vstore16(c->base, 0, at);
  vstore16(inside, 0, ok);
  for (int j = 0; j < WIDTH; ++j) value[j] = ok[j] ? (float)LOAD(T, x, from + at[j]) : 0.0f;
  return vload16(0, value);
}
#else

typedef struct {
  index_t base;
  int width;
} columns_t;
#define BLOCK_PARAMETERS
#define BLOCK_FIRST(i) ((i)*WIDTH)
#define BLOCK_COUNT ((columns + WIDTH - 1) / WIDTH)
#define COLUMNS(n) clv_columns(n, columns, b_first, b_column)
FUNCTION columns_t clv_columns(index_t n, index_t columns, index_t b_first, index_t b_column) {
  columns_t c;
  c.base = b_first + n * b_column;
  c.width = columns - n < WIDTH ? (int)(columns - n) : WIDTH;
  return c;
}
#define WIDE_VALUE(c, k) clv_wide(b, &c, (k)*b_depth, b_column)
FUNCTION float16 clv_wide(GLOBAL const STORAGE(T) * b, const columns_t *c, index_t step, index_t b_column) {
  if (b_column == 1 && c->width == WIDTH) return LOAD_WIDE(b, c->base + step);
  float value[WIDTH];
  for (int j = 0; j < WIDTH; ++j) value[j] = j < c->width ? LOAD(T, b, c->base + step + j * b_column) : 0.0f;
  return vload16(0, value);
}
#endif

/* The results of a row are contiguous, except for the phases of a transposed convolution. */
#ifdef WEIGHTS_SCATTERED
#define COLUMN_PLACE(j) COLUMN(n_first + (j)).to
#else
#define COLUMN_PLACE(j) (n_first + (j))
#endif
#define STORE_COLUMN(sum, m, j)                                       \
  {                                                                   \
    column_t column;                                                  \
    column.to = COLUMN_PLACE(j);                                      \
    const float value = FINISH(sum, m, column);                       \
    STORE(T, y, PLACE(m, column), POST(value, PLACE(m, column)));     \
  }
#define STORE_WIDE(sums, m)                                           \
  {                                                                   \
    if (c.width == WIDTH) {                                           \
      for (int j = 0; j < WIDTH; ++j) STORE_COLUMN((sums)[j], m, j)   \
    } else {                                                          \
      for (int j = 0; j < c.width; ++j) STORE_COLUMN((sums)[j], m, j) \
    }                                                                 \
  }

/* A work item computes `rows_each` rows (at most PANEL_ROWS) of 16 columns. */
KERNEL(panels)(BLOCK_PARAMETERS index_t rows_each, PARAMETERS) {
  const index_t n_first = BLOCK_FIRST(GLOBAL_ID(0)), m_first = GLOBAL_ID(1) * rows_each;
  if (GLOBAL_ID(0) >= BLOCK_COUNT || m_first >= rows) return;
  const index_t m_end = m_first + rows_each < rows ? m_first + rows_each : rows;
  BEGIN(GLOBAL_ID(2))
  const columns_t c = COLUMNS(n_first);
  float panel[PANEL_DEPTH * WIDTH];
  float sums[(PANEL_ROWS + BLOCK_ROWS) * WIDTH];
  for (index_t k_first = 0; k_first < depth; k_first += PANEL_DEPTH) {
    const index_t k_count = depth - k_first < PANEL_DEPTH ? depth - k_first : PANEL_DEPTH;
    for (index_t k = 0; k < k_count; ++k) vstore16(WIDE_VALUE(c, k_first + k), k, panel);
    for (index_t m = m_first; m < m_end; m += BLOCK_ROWS) {
      float16 sum[BLOCK_ROWS];
      index_t row[BLOCK_ROWS];
      for (int r = 0; r < BLOCK_ROWS; ++r) {
        sum[r] = k_first > 0 ? vload16(m - m_first + r, sums) : (float16)(0);
        row[r] = A_ROW(m + r < rows ? m + r : rows - 1);
      }
      for (index_t k = 0; k < k_count; ++k) {
        const float16 right = vload16(k, panel);
        const index_t step = A_STEP(k_first + k);
#pragma unroll
        for (int r = 0; r < BLOCK_ROWS; ++r) sum[r] = fma((float16)(A_VALUE(row[r] + step)), right, sum[r]);
      }
      for (int r = 0; r < BLOCK_ROWS; ++r) vstore16(sum[r], m - m_first + r, sums);
    }
  }
  if (depth == 0) {
    for (index_t i = 0; i < (m_end - m_first) * WIDTH; ++i) sums[i] = 0;
  }
  for (index_t m = m_first; m < m_end; ++m) STORE_WIDE(sums + (m - m_first) * WIDTH, m)
}

/* A work item computes 16 columns of one row, without a panel in private memory. Used for convolutions with few channels and for
 * products with few rows. */
KERNEL(lanes)(BLOCK_PARAMETERS PARAMETERS) {
  const index_t n_first = BLOCK_FIRST(GLOBAL_ID(0)), m = GLOBAL_ID(1);
  if (GLOBAL_ID(0) >= BLOCK_COUNT || m >= rows) return;
  BEGIN(GLOBAL_ID(2))
  const columns_t c = COLUMNS(n_first);
  const index_t row = A_ROW(m);
  float16 sum = (float16)(0);
  for (index_t k = 0; k < depth; ++k) sum = fma((float16)(A_VALUE(row + A_STEP(k))), WIDE_VALUE(c, k), sum);
  float sums[WIDTH];
  vstore16(sum, 0, sums);
  STORE_WIDE(sums, m)
}

#ifndef CONVOLUTION
/* One work item per result. Both operands are contiguous along the depth. */
KERNEL(dots_wide)(PARAMETERS) {
  const index_t n = GLOBAL_ID(0), m = GLOBAL_ID(1);
  if (n >= columns || m >= rows) return;
  BEGIN(GLOBAL_ID(2))
  const column_t column = COLUMN(n);
  const index_t row = A_ROW(m);
  float16 sum = (float16)(0);
  index_t k = 0;
  for (; k + WIDTH <= depth; k += WIDTH) sum = fma(LOAD_WIDE(a, row + k), LOAD_WIDE(b, column.base + k), sum);
  float8 half_sum = sum.lo + sum.hi;
  float4 quarter = half_sum.lo + half_sum.hi;
  float total = quarter.x + quarter.y + quarter.z + quarter.w;
  for (; k < depth; ++k) total += A_VALUE(row + k) * VALUE(column, k);
  const float value = FINISH(total, m, column);
  STORE(T, y, PLACE(m, column), POST(value, PLACE(m, column)));
}
#endif

#endif
#endif
