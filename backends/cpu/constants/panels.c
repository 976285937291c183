/* See panels.h. A panel is written in pieces that fit in the first-level cache. If columns are contiguous, it is written in
 * blocks of four columns by four rows. */
#include "panels.h"

#include <string.h>

#include "base/memory.h"
#include "operators/common/threads.h"

enum {
  COLUMNS = CLV__CPU_PANEL_COLUMNS,
  ROWS = CLV__CPU_PANEL_ROWS,
  PIECE = 64 /* rows */,
  NARROW_PIECE = 32 /* rows: one cache line of each column */
};

typedef float four __attribute__((vector_size(4 * sizeof(float)), aligned(sizeof(float)), may_alias));

static inline four load(const uint8_t *from, float factor) {
  four values;
  memcpy(&values, from, sizeof values);
  return values * factor;
}

static inline void transpose(const four from[4], float *to) {
  const four a = __builtin_shufflevector(from[0], from[1], 0, 4, 1, 5), b = __builtin_shufflevector(from[0], from[1], 2, 6, 3, 7);
  const four c = __builtin_shufflevector(from[2], from[3], 0, 4, 1, 5), d = __builtin_shufflevector(from[2], from[3], 2, 6, 3, 7);
  *(four *)to = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  *(four *)(to + COLUMNS) = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  *(four *)(to + 2 * COLUMNS) = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  *(four *)(to + 3 * COLUMNS) = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

static float element(const clv__cpu_matrix *matrix, int64_t row, int64_t column) {
  const int64_t at = matrix->by_column ? column * matrix->rows + row : row * matrix->columns + column;
  float value;
  memcpy(&value, (const uint8_t *)matrix->data + (size_t)at * sizeof value, sizeof value);
  return matrix->scale != NULL ? value * matrix->scale[column] : value;
}

/* Copies single elements, if fewer than four columns or rows are left. */
static void copy_single(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns, float *to) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) to[r * COLUMNS + c] = element(matrix, row + r, column + c);
  }
}

static void copy_columns(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns, void *panel) {
  float *to = panel;
  const size_t stride = (size_t)matrix->rows * sizeof(float);
  const int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
  for (int64_t c = 0; c < whole_columns; c += 4) {
    const uint8_t *from = (const uint8_t *)matrix->data + (size_t)(column + c) * stride + (size_t)row * sizeof(float);
    const float *scale = matrix->scale != NULL ? matrix->scale + column + c : NULL;
    for (int64_t r = 0; r < whole_rows; r += 4) {
      four values[4];
      for (size_t i = 0; i < 4; ++i)
        values[i] = load(from + i * stride + (size_t)r * sizeof(float), scale != NULL ? scale[i] : 1.0f);
      transpose(values, to + r * COLUMNS + c);
    }
  }
  copy_single(matrix, row + whole_rows, rows - whole_rows, column, whole_columns, to + whole_rows * COLUMNS);
  copy_single(matrix, row, rows, column + whole_columns, columns - whole_columns, to + whole_columns);
}

static void copy_rows(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns, void *panel) {
  float *to = panel;
  const size_t stride = (size_t)matrix->columns * sizeof(float);
  const uint8_t *from = (const uint8_t *)matrix->data + (size_t)row * stride + (size_t)column * sizeof(float);
  for (int64_t r = 0; r < rows; ++r, from += stride, to += COLUMNS) {
    memcpy(to, from, (size_t)columns * sizeof *to);
    for (int64_t c = 0; c < columns && matrix->scale != NULL; ++c) to[c] *= matrix->scale[column + c];
  }
}

static void fill_zeros(uint8_t *to, size_t element_bytes, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows && columns > 0; ++r)
    memset(to + (size_t)(r * COLUMNS) * element_bytes, 0, (size_t)columns * element_bytes);
}

void clv__cpu_panels_walk(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                          const clv__cpu_panel_copy *copy, void *panels) {
  const int64_t padded = (int64_t)clv__align_up((size_t)matrix->rows, ROWS), high_most = copy->piece_rows;
  const int64_t pieces = (rows + high_most - 1) / high_most, count = (columns + COLUMNS - 1) / COLUMNS;
  const size_t element_bytes = copy->element_bytes;
  const int threads = clv__kernel_threads(count * pieces, (double)rows * (double)columns);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for collapse(2) schedule(static) num_threads(threads) if (threads > 1)
  for (int64_t p = 0; p < count; ++p) {
    for (int64_t i = 0; i < pieces; ++i) {
      const int64_t first = column + p * COLUMNS, wide = column + columns - first < COLUMNS ? column + columns - first : COLUMNS;
      const int64_t begin = row + i * high_most, high = row + rows - begin < high_most ? row + rows - begin : high_most;
      const int64_t end = begin + high == matrix->rows ? padded : begin + high;
      uint8_t *to = (uint8_t *)panels + (size_t)((first / COLUMNS * padded + begin) * COLUMNS) * element_bytes;
      (matrix->by_column ? copy->columns : copy->rows)(matrix, begin, high, first, wide, to);
      fill_zeros(to + (size_t)wide * element_bytes, element_bytes, high, COLUMNS - wide);
      fill_zeros(to + (size_t)(high * COLUMNS) * element_bytes, element_bytes, end - begin - high, COLUMNS);
    }
  }
}

void clv__cpu_panels_pack(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                          float *panels) {
  static const clv__cpu_panel_copy copy = {sizeof(float), PIECE, copy_rows, copy_columns};
  clv__cpu_panels_walk(matrix, row, rows, column, columns, &copy, panels);
}

/* ---- Two-byte elements, whose bytes are copied unchanged, whatever the dtype. ---- */

static void copy_narrow_rows(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                             void *panel) {
  uint16_t *to = panel;
  const uint8_t *from = (const uint8_t *)matrix->data + (size_t)(row * matrix->columns + column) * sizeof *to;
  for (int64_t r = 0; r < rows; ++r, from += (size_t)matrix->columns * sizeof *to) {
    memcpy(to + r * COLUMNS, from, (size_t)columns * sizeof *to);
  }
}

static void copy_narrow_columns(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                                void *panel) {
  uint16_t *to = panel;
  uint16_t line[NARROW_PIECE];
  for (int64_t c = 0; c < columns; ++c) {
    const size_t at = (size_t)((column + c) * matrix->rows + row);
    memcpy(line, (const uint8_t *)matrix->data + at * sizeof *line, (size_t)rows * sizeof *line);
    for (int64_t r = 0; r < rows; ++r) to[r * COLUMNS + c] = line[r];
  }
}

void clv__cpu_panels_pack_narrow(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                                 uint16_t *panels) {
  static const clv__cpu_panel_copy copy = {sizeof(uint16_t), NARROW_PIECE, copy_narrow_rows, copy_narrow_columns};
  clv__cpu_panels_walk(matrix, row, rows, column, columns, &copy, panels);
}
