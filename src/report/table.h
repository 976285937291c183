/* Text tables with aligned columns. Cells are added one by one, row by row. Widths are measured in terminal columns. */
#ifndef CLEAVE_REPORT_TABLE_H
#define CLEAVE_REPORT_TABLE_H

#include "base/text.h"

enum { CLV__TABLE_MAX_COLUMNS = 40 };

typedef struct clv__table {
  clv__text cells;        /* the texts of all cells, each followed by a zero byte */
  const char *alignments; /* one letter per column: 'l' or 'r' */
  uint32_t columns;
  size_t cell_count;
  bool header; /* the first row is a header */
} clv__table;

/* `alignments` ("llr") must outlive the table and have at most CLV__TABLE_MAX_COLUMNS letters. */
void clv__table_init(clv__table *table, const clv_allocator *allocator, const char *alignments, bool header);
void clv__table_finish(clv__table *table);
/* Adds one cell; control characters become escapes. */
void clv__table_cell(clv__table *table, const char *format, ...) CLV_PRINTF(2, 3);
/* Appends the table to `text`. Each line starts with `indent` spaces and has no trailing spaces. If memory ran out, sets
 * text->failed. `bold`: writes the escape sequences that make the header bold on a terminal. */
void clv__table_write(const clv__table *table, uint32_t indent, bool bold, clv__text *text);
/* The same cells for spreadsheets: one line per row, cells separated by commas and quoted where necessary (RFC 4180). */
void clv__table_write_csv(const clv__table *table, clv__text *text);
/* The same cells as a table of GitHub's Markdown. The first row is its header. */
void clv__table_write_markdown(const clv__table *table, clv__text *text);

#endif
