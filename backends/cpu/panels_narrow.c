/* Matrices of two bytes an element in panels (panels.h): copied as they are, whatever the bytes mean. */
#include <string.h>

#include "base/memory.h"
#include "kernels/threads.h"
#include "panels.h"

enum { COLUMNS = CLV__CPU_PANEL_COLUMNS, ROWS = CLV__CPU_PANEL_ROWS, PIECE = 32 /* rows: of each column a cache line */ };

static void copy_rows(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns, uint16_t *to) {
  const uint8_t *from = (const uint8_t *)matrix->data + (size_t)(row * matrix->columns + column) * sizeof *to;
  for (int64_t r = 0; r < rows; ++r, from += (size_t)matrix->columns * sizeof *to) {
    memcpy(to + r * COLUMNS, from, (size_t)columns * sizeof *to);
  }
}

static void copy_columns(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                         uint16_t *to) {
  uint16_t line[PIECE];
  for (int64_t c = 0; c < columns; ++c) {
    const size_t at = (size_t)((column + c) * matrix->rows + row);
    memcpy(line, (const uint8_t *)matrix->data + at * sizeof *line, (size_t)rows * sizeof *line);
    for (int64_t r = 0; r < rows; ++r) to[r * COLUMNS + c] = line[r];
  }
}

void clv__cpu_panels_pack_narrow(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                                 uint16_t *panels) {
  const int64_t padded = (int64_t)clv__align_up((size_t)matrix->rows, ROWS);
  const int64_t pieces = (rows + PIECE - 1) / PIECE, count = (columns + COLUMNS - 1) / COLUMNS;
  const int threads = clv__kernel_threads(count * pieces, (double)rows * (double)columns);
  (void)threads; /* without OpenMP */
#pragma omp parallel for collapse(2) schedule(static) num_threads(threads) if (threads > 1)
  for (int64_t p = 0; p < count; ++p) {
    for (int64_t i = 0; i < pieces; ++i) {
      const int64_t first = column + p * COLUMNS, wide = column + columns - first < COLUMNS ? column + columns - first : COLUMNS;
      const int64_t begin = row + i * PIECE, high = row + rows - begin < PIECE ? row + rows - begin : PIECE;
      const int64_t end = begin + high == matrix->rows ? padded : begin + high;
      uint16_t *to = panels + first / COLUMNS * padded * COLUMNS + begin * COLUMNS;
      (matrix->by_column ? copy_columns : copy_rows)(matrix, begin, high, first, wide, to);
      for (int64_t r = 0; r < high && wide < COLUMNS; ++r)
        memset(to + r * COLUMNS + wide, 0, (size_t)(COLUMNS - wide) * sizeof *to);
      memset(to + high * COLUMNS, 0, (size_t)((end - begin - high) * COLUMNS) * sizeof *to);
    }
  }
}
