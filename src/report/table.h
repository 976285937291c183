/* Aligned tables of text. Cells are made one after the other, row after row; widths are counted in columns of a terminal. */
#ifndef CLEAVE_REPORT_TABLE_H
#define CLEAVE_REPORT_TABLE_H

#include "base/text.h"

enum { CLV__TABLE_MAX_COLUMNS = 16 };

typedef struct clv__table {
  clv__text cells;        /* terminated one by one */
  const char *alignments; /* a letter a column: 'l' or 'r' */
  uint32_t columns;
  size_t cell_count;
  bool header; /* the first row is one */
} clv__table;

/* `alignments` ("llr") must outlive the table and have at most CLV__TABLE_MAX_COLUMNS letters. */
void clv__table_init(clv__table *table, const clv_allocator *allocator, const char *alignments, bool header);
void clv__table_finish(clv__table *table);
/* One cell; control characters in it are written as escapes. */
void clv__table_cell(clv__table *table, const char *format, ...) CLV_PRINTF(2, 3);
/* Appends the table to `text`, each line with `indent` spaces in front and nothing behind; a failure shows in text->failed.
 * `bold`: the header is bold on a terminal. */
void clv__table_write(const clv__table *table, uint32_t indent, bool bold, clv__text *text);

#endif
