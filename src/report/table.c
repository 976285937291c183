/* See table.h. */
#include "report/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "report/label.h"

void clv__table_init(clv__table *table, const clv_allocator *allocator, const char *alignments, bool header) {
  *table = (clv__table){.alignments = alignments, .columns = (uint32_t)strlen(alignments), .header = header};
  clv__text_init(&table->cells, allocator);
}

void clv__table_finish(clv__table *table) {
  clv__text_finish(&table->cells);
}

void clv__table_cell(clv__table *table, const char *format, ...) {
  char small[512], *content = small;
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(small, sizeof small, format, arguments);
  va_end(arguments);
  if (length >= (int)sizeof small) {
    content = clv__allocate(table->cells.allocator, (size_t)length + 1);
    if (content != NULL) {
      va_start(arguments, format);
      vsnprintf(content, (size_t)length + 1, format, arguments);
      va_end(arguments);
    }
  }
  if (length < 0 || content == NULL) {
    table->cells.failed = true;
    return;
  }
  clv__label_name(&table->cells, content);
  clv__text_append_bytes(&table->cells, "", 1);
  ++table->cell_count;
  if (content != small) clv__release(table->cells.allocator, content);
}

static void append_spaces(clv__text *text, size_t count) {
  clv__text_append(text, "%*s", (int)count, "");
}

static void append_cell(const clv__table *table, uint32_t column, const char *cell, size_t width, bool last, clv__text *text) {
  size_t columns = clv__label_columns(cell);
  bool right = table->alignments[column] == 'r';
  if (right) append_spaces(text, width - columns);
  clv__text_append(text, "%s", cell);
  if (!right && !last) append_spaces(text, width - columns);
  if (!last) append_spaces(text, 2);
}

void clv__table_write(const clv__table *table, uint32_t indent, bool bold, clv__text *text) {
  size_t widths[CLV__TABLE_MAX_COLUMNS] = {0};
  const char *cell = table->cells.data;
  if (table->cells.failed) {
    text->failed = true;
    return;
  }
  for (size_t i = 0; i < table->cell_count; ++i, cell += strlen(cell) + 1) {
    size_t columns = clv__label_columns(cell);
    if (columns > widths[i % table->columns]) widths[i % table->columns] = columns;
  }
  cell = table->cells.data;
  for (size_t i = 0; i < table->cell_count; ++i, cell += strlen(cell) + 1) {
    uint32_t column = (uint32_t)(i % table->columns);
    bool is_header = bold && table->header && i < table->columns;
    if (column == 0) {
      append_spaces(text, indent);
      if (is_header) clv__text_append(text, "\033[1m");
    }
    /* the last cell with text in a row gets no padding */
    bool last = true;
    const char *next = cell + strlen(cell) + 1;
    for (uint32_t c = column + 1; c < table->columns && last && i + (c - column) < table->cell_count; ++c) {
      last = next[0] == '\0';
      next += strlen(next) + 1;
    }
    append_cell(table, column, cell, widths[column], last, text);
    if (last) {
      for (; column + 1 < table->columns && i + 1 < table->cell_count; ++column, ++i) cell += strlen(cell) + 1;
      if (is_header) clv__text_append(text, "\033[0m");
      clv__text_append(text, "\n");
    }
  }
}

static void append_csv(const char *cell, clv__text *text) {
  if (strpbrk(cell, ",\"\r\n") == NULL) {
    clv__text_append(text, "%s", cell);
    return;
  }
  clv__text_append(text, "\"");
  for (; *cell != '\0'; ++cell) clv__text_append(text, "%s%c", *cell == '"' ? "\"" : "", *cell);
  clv__text_append(text, "\"");
}

void clv__table_write_csv(const clv__table *table, clv__text *text) {
  const char *cell = table->cells.data;
  if (table->cells.failed) text->failed = true;
  for (size_t i = 0; i < table->cell_count && !text->failed; ++i, cell += strlen(cell) + 1) {
    append_csv(cell, text);
    clv__text_append(text, (i + 1) % table->columns == 0 ? "\n" : ",");
  }
}

static void append_rule(const clv__table *table, clv__text *text) {
  clv__text_append(text, "|");
  for (uint32_t c = 0; c < table->columns; ++c) clv__text_append(text, table->alignments[c] == 'r' ? " ---: |" : " --- |");
  clv__text_append(text, "\n");
}

void clv__table_write_markdown(const clv__table *table, clv__text *text) {
  const char *cell = table->cells.data;
  if (table->cells.failed) text->failed = true;
  for (size_t i = 0; i < table->cell_count && !text->failed; ++i, cell += strlen(cell) + 1) {
    clv__text_append(text, i % table->columns == 0 ? "| " : " ");
    for (const char *at = cell; *at != '\0'; ++at) clv__text_append(text, "%s%c", *at == '|' ? "\\" : "", *at);
    clv__text_append(text, " |");
    if ((i + 1) % table->columns == 0) clv__text_append(text, "\n");
    if (i + 1 == table->columns) append_rule(table, text);
  }
}
