/* Packs constant matrices into panels (clv__dnn_layout_panels) as fast as memory allows. oneDNN's reorder is slower: for a matrix
 * with contiguous columns, it reads one cache line per element. */
#ifndef CLEAVE_BACKENDS_CPU_CONSTANTS_PANELS_H
#define CLEAVE_BACKENDS_CPU_CONSTANTS_PANELS_H

#include "backends/cpu/onednn/onednn.h"

typedef struct clv__cpu_matrix {
  const void *data; /* any alignment */
  int64_t rows, columns;
  bool by_column;     /* columns are contiguous; otherwise rows are */
  const float *scale; /* one factor per column; NULL: none */
} clv__cpu_matrix;

enum { CLV__CPU_PANEL_COLUMNS = 64, CLV__CPU_PANEL_ROWS = 16 /* the number of rows is padded to a multiple of this */ };
/* Writes the part of the panels that holds `rows` rows from `row` on and `columns` columns from `column` on. `row` and `column`
 * must be multiples of CLV__CPU_PANEL_COLUMNS. Pads with zeros after the last row and column of the matrix. */
void clv__cpu_panels_pack(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                          float *panels);
/* Like clv__cpu_panels_pack(), for two-byte elements and without factors. */
void clv__cpu_panels_pack_narrow(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                                 uint16_t *panels);

/* Copies `rows` rows of at most CLV__CPU_PANEL_COLUMNS columns to `panel`, from element (`row`, `column`) of the matrix on. */
typedef void clv__cpu_panel_fn(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                               void *panel);
typedef struct clv__cpu_panel_copy {
  size_t element_bytes;
  int64_t piece_rows;                /* maximum number of rows of a piece, so that it fits in the first-level cache */
  clv__cpu_panel_fn *rows, *columns; /* functions for matrices with contiguous rows and with contiguous columns */
} clv__cpu_panel_copy;
/* The loop of clv__cpu_panels_pack() and clv__cpu_panels_pack_narrow(). Splits the work into pieces for all available threads. */
void clv__cpu_panels_walk(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                          const clv__cpu_panel_copy *copy, void *panels);

#endif
