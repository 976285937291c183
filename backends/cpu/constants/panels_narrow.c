/* Packs matrices of two-byte elements into panels (panels.h). Copies the bytes unchanged, whatever the dtype. */
#include <string.h>

#include "panels.h"

enum { COLUMNS = CLV__CPU_PANEL_COLUMNS, PIECE = 32 /* rows: one cache line of each column */ };

static void copy_rows(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns, void *panel) {
  uint16_t *to = panel;
  const uint8_t *from = (const uint8_t *)matrix->data + (size_t)(row * matrix->columns + column) * sizeof *to;
  for (int64_t r = 0; r < rows; ++r, from += (size_t)matrix->columns * sizeof *to) {
    memcpy(to + r * COLUMNS, from, (size_t)columns * sizeof *to);
  }
}

static void copy_columns(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns, void *panel) {
  uint16_t *to = panel;
  uint16_t line[PIECE];
  for (int64_t c = 0; c < columns; ++c) {
    const size_t at = (size_t)((column + c) * matrix->rows + row);
    memcpy(line, (const uint8_t *)matrix->data + at * sizeof *line, (size_t)rows * sizeof *line);
    for (int64_t r = 0; r < rows; ++r) to[r * COLUMNS + c] = line[r];
  }
}

void clv__cpu_panels_pack_narrow(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                                 uint16_t *panels) {
  static const clv__cpu_panel_copy copy = {sizeof(uint16_t), PIECE, copy_rows, copy_columns};
  clv__cpu_panels_walk(matrix, row, rows, column, columns, &copy, panels);
}
