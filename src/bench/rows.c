/* Writes the rows of a bench according to its list of columns. See columns.h. */
#include <math.h>
#include <string.h>

#include "base/document.h"
#include "base/peak_memory.h"
#include "bench/columns.h"
#include "report/json.h"
#include "report/table.h"

/* ---- Tables and CSV ---- */

static void write_field(clv__table *table, const clv__column *column, clv__field field, bool is_exact) {
  const bool is_text = column->kind == CLV__COLUMN_TEXT || column->kind == CLV__COLUMN_LIST;
  if (is_text && field.text != NULL)
    clv__table_cell(table, "%s", field.text);
  else if (is_text || isnan(field.number))
    clv__table_cell(table, "%s", is_exact || is_text ? "" : "–");
  else if (is_exact || column->kind == CLV__COLUMN_COUNT)
    clv__table_cell(table, "%.9g", field.number);
  else
    clv__table_cell(table, "%.*f", column->decimals, field.number);
}

/* Fills a table with all columns and exact numbers, for programs, or with those that are shown to people. */
static void fill(const clv_bench *bench, bool is_exact, clv__table *table) {
  for (uint32_t c = 0; c < bench->column_count; ++c) {
    if (clv__bench_has_column(bench, c, is_exact))
      clv__table_cell(table, "%s", is_exact ? bench->columns[c].key : bench->columns[c].title);
  }
  for (size_t r = 0; r < bench->row_count; ++r) {
    for (uint32_t c = 0; c < bench->column_count; ++c) {
      if (clv__bench_has_column(bench, c, is_exact)) write_field(table, &bench->columns[c], bench->rows[r]->fields[c], is_exact);
    }
  }
}

static void align(const clv_bench *bench, bool is_exact, char letters[CLV__MOST_COLUMNS + 1]) {
  uint32_t count = 0;
  for (uint32_t c = 0; c < bench->column_count; ++c) {
    const clv__column_kind kind = bench->columns[c].kind;
    if (clv__bench_has_column(bench, c, is_exact))
      letters[count++] = kind == CLV__COLUMN_TEXT || kind == CLV__COLUMN_LIST ? 'l' : 'r';
  }
  letters[count] = '\0';
}

static void write_notes(const clv_bench *bench, clv__text *text) {
  const size_t count = bench->row_count;
  if (bench->is_compared) {
    clv__text_append(text,
                     "'ratio': the time of a run, divided by that of %s: the median of rounds in which the devices take turns. "
                     "'low' and 'high': the quartiles of the rounds.\n",
                     bench->base != NULL ? bench->base : "the first devices of each group");
  }
  if (bench->poll.is_stopped && bench->options.configuration_count > 0)
    clv__text_append(text, "interrupted: %zu of %u configurations were measured\n", count, bench->options.configuration_count);
  else if (bench->poll.is_stopped)
    clv__text_append(text, "interrupted: %zu configuration%s measured\n", count, count == 1 ? " was" : "s were");
}

/* ---- JSON ---- */

static json_t *list_json(const char *text) {
  json_t *list = json_array();
  for (size_t length; text != NULL && *text != '\0'; text += length + (text[length] == ',')) {
    length = strcspn(text, ",");
    json_array_append_new(list, json_stringn(text, length));
  }
  return list;
}

static json_t *field_json(const clv__column *column, clv__field field) {
  switch (column->kind) {
    case CLV__COLUMN_TEXT:
      return clv__json_text(field.text);
    case CLV__COLUMN_LIST:
      return list_json(field.text);
    case CLV__COLUMN_COUNT:
      return isnan(field.number) ? json_null() : json_integer((json_int_t)field.number);
    case CLV__COLUMN_REAL:
      break;
  }
  return clv__json_real(field.number);
}

void clv__bench_row_json(const clv_bench *bench, uint32_t index, json_t *object) {
  const clv__row *row = bench->rows[index];
  json_t *samples = json_array();
  for (uint32_t c = 0; c < bench->column_count; ++c) {
    if (!clv__bench_has_column(bench, c, true)) continue;
    const char *key = bench->columns[c].key, *dot = strchr(key, '.');
    json_t *in = object;
    if (dot != NULL) { /* only the first dot separates: "latency_ms.p99.9" */
      char name[sizeof bench->columns[c].key];
      snprintf(name, sizeof name, "%.*s", (int)(dot - key), key);
      in = json_object_get(object, name);
      if (in == NULL && json_object_set_new(object, name, json_object()) == 0) in = json_object_get(object, name);
      key = dot + 1;
    }
    json_object_set_new(in, key, field_json(&bench->columns[c], row->fields[c]));
  }
  for (size_t i = 0; i < row->figures.run_count; ++i) json_array_append_new(samples, clv__json_real(row->figures.runs_ms[i]));
  json_object_set_new(object, "samples_ms", samples);
}

static json_t *table_json(const clv_bench *bench) {
  json_t *root = json_object(), *rows = json_array();
  for (uint32_t r = 0; r < bench->row_count; ++r) {
    json_t *row = json_object();
    clv__bench_row_json(bench, r, row);
    json_array_append_new(rows, row);
  }
  json_object_set_new(root, "rows", rows);
  json_object_set_new(root, "interrupted", json_boolean(bench->poll.is_stopped));
  json_object_set_new(root, "peak_rss_bytes", json_integer((json_int_t)clv__peak_memory_bytes()));
  return root;
}

clv_status clv_bench_table(const clv_bench *bench, clv_bench_form form, char **out, clv_error *error) {
  const bool is_csv = form == CLV_BENCH_CSV, is_markdown = form == CLV_BENCH_MARKDOWN;
  char alignments[CLV__MOST_COLUMNS + 1];
  clv__table table;
  clv__text text;
  CLV__TRY(clv__document_check(is_csv || is_markdown ? CLV_FORM_TEXT : (clv_form)form, out, error));
  if (bench == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "bench must not be NULL");
  if (form == CLV_BENCH_JSON) return clv__json_give(table_json(bench), bench->allocator, out, error);
  align(bench, is_csv, alignments);
  clv__table_init(&table, bench->allocator, alignments, true);
  clv__text_init(&text, bench->allocator);
  fill(bench, is_csv, &table);
  if (is_csv)
    clv__table_write_csv(&table, &text);
  else if (is_markdown)
    clv__table_write_markdown(&table, &text);
  else
    clv__table_write(&table, 0, form == CLV_BENCH_TERMINAL, &text);
  clv__table_finish(&table);
  if (!is_csv && !is_markdown) write_notes(bench, &text);
  return clv__document_give(&text, out, error);
}
