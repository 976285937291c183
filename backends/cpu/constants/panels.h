/* Constant matrices in panels (clv__dnn_layout_panels), written at the speed of memory: of a matrix whose columns lie
 * together, oneDNN's reorder reads a cache line an element. */
#ifndef CLEAVE_BACKENDS_CPU_CONSTANTS_PANELS_H
#define CLEAVE_BACKENDS_CPU_CONSTANTS_PANELS_H

#include "backends/cpu/onednn/onednn.h"

typedef struct clv__cpu_matrix {
  const void *data; /* anywhere in memory */
  int64_t rows, columns;
  bool by_column;     /* columns lie together, else rows do */
  const float *scale; /* a factor a column; NULL: none */
} clv__cpu_matrix;

/* Writes the part of the panels that holds `rows` rows from `row` and `columns` columns from `column` on; both begin at a
 * multiple of CLV__CPU_PANEL_COLUMNS. The padding behind the last row and column of the matrix is zeros. */
enum { CLV__CPU_PANEL_COLUMNS = 64, CLV__CPU_PANEL_ROWS = 16 /* of padding */ };
void clv__cpu_panels_pack(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                          float *panels);
/* The same of elements of two bytes and without factors (panels_narrow.c). */
void clv__cpu_panels_pack_narrow(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                                 uint16_t *panels);

/* How elements of one size are copied: `rows` rows of at most CLV__CPU_PANEL_COLUMNS columns, into a panel from its row on. */
typedef void clv__cpu_panel_fn(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                               void *panel);
typedef struct clv__cpu_panel_copy {
  size_t element_bytes;
  int64_t piece_rows;                /* at most; what stays in the nearest cache */
  clv__cpu_panel_fn *rows, *columns; /* where rows lie together, where columns do */
} clv__cpu_panel_copy;
/* What both do, by pieces on the threads there are. */
void clv__cpu_panels_walk(const clv__cpu_matrix *matrix, int64_t row, int64_t rows, int64_t column, int64_t columns,
                          const clv__cpu_panel_copy *copy, void *panels);

#endif
