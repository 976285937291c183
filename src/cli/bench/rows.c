/* Prints the rows of a bench according to its list of columns. See columns.h. */
#include <math.h>
#include <string.h>

#include "cli/bench/bench.h"
#include "cli/bench/columns.h"
#include "cli/console.h"
#include "report/table.h"

/* ---- Tables and CSV ---- */

/* Returns whether the table has the column. Tables for programs (`is_exact`) have all columns. Tables for people have those
 * with is_shown, but the last column, the failures, only if there are failures. */
static bool has_column(const bench_report *report, uint32_t column, bool is_exact) {
  bool any = column + 1 < report->column_count;
  for (uint32_t r = 0; r < report->row_count; ++r) any = any || report->rows[r].fields[column].text != NULL;
  return is_exact || (report->columns[column].is_shown && any);
}

static void write_field(clv__table *table, const bench_column *column, bench_field field, bool is_exact) {
  const bool is_text = column->kind == BENCH_TEXT || column->kind == BENCH_LIST;
  if (is_text && field.text != NULL)
    clv__table_cell(table, "%s", field.text);
  else if (is_text || isnan(field.number))
    clv__table_cell(table, "%s", is_exact || is_text ? "" : "–");
  else if (is_exact || column->kind == BENCH_COUNT)
    clv__table_cell(table, "%.9g", field.number);
  else
    clv__table_cell(table, "%.*f", column->decimals, field.number);
}

/* Fills a table with all columns and exact numbers, for programs, or with those that are shown to people. */
static void fill(const bench_report *report, bool is_exact, clv__table *table) {
  for (uint32_t c = 0; c < report->column_count; ++c) {
    if (has_column(report, c, is_exact))
      clv__table_cell(table, "%s", is_exact ? report->columns[c].key : report->columns[c].title);
  }
  for (uint32_t r = 0; r < report->row_count; ++r) {
    for (uint32_t c = 0; c < report->column_count; ++c) {
      if (has_column(report, c, is_exact)) write_field(table, &report->columns[c], report->rows[r].fields[c], is_exact);
    }
  }
}

static void align(const bench_report *report, bool is_exact, char letters[BENCH_MOST_COLUMNS + 1]) {
  uint32_t count = 0;
  for (uint32_t c = 0; c < report->column_count; ++c) {
    const bench_kind kind = report->columns[c].kind;
    if (has_column(report, c, is_exact)) letters[count++] = kind == BENCH_TEXT || kind == BENCH_LIST ? 'l' : 'r';
  }
  letters[count] = '\0';
}

static void write_notes(const bench_report *report, clv__text *text) {
  bool has_ratio = false;
  for (uint32_t c = 0; c < report->column_count; ++c)
    has_ratio = has_ratio || strcmp(report->columns[c].key, "comparison.ratio") == 0;
  if (has_ratio) {
    clv__text_append(text,
                     "'ratio': the time of a run, divided by that of %s: the median of rounds in which the devices take turns. "
                     "'low' and 'high': the quartiles of the rounds.\n",
                     report->base != NULL ? report->base : "the first devices of each group");
  }
  if (report->interrupted)
    clv__text_append(text, "interrupted: %u of %u configurations were measured\n", report->row_count, report->row_capacity);
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

static json_t *field_json(const bench_column *column, bench_field field) {
  switch (column->kind) {
    case BENCH_TEXT:
      return cli_json_text(field.text);
    case BENCH_LIST:
      return list_json(field.text);
    case BENCH_COUNT:
      return isnan(field.number) ? json_null() : json_integer((json_int_t)field.number);
    case BENCH_REAL:
      break;
  }
  return cli_json_real(field.number);
}

void bench_row_json(const bench_report *report, uint32_t index, json_t *object) {
  const bench_row *row = &report->rows[index];
  json_t *samples = json_array();
  for (uint32_t c = 0; c < report->column_count; ++c) {
    const char *key = report->columns[c].key, *dot = strchr(key, '.');
    json_t *in = object;
    if (dot != NULL) { /* only the first dot separates: "latency_ms.p99.9" */
      char name[sizeof report->columns[c].key];
      snprintf(name, sizeof name, "%.*s", (int)(dot - key), key);
      in = json_object_get(object, name);
      if (in == NULL && json_object_set_new(object, name, json_object()) == 0) in = json_object_get(object, name);
      key = dot + 1;
    }
    json_object_set_new(in, key, field_json(&report->columns[c], row->fields[c]));
  }
  for (size_t i = 0; i < row->sample_count; ++i) json_array_append_new(samples, cli_json_real(row->samples_ms[i]));
  json_object_set_new(object, "samples_ms", samples);
}

static clv_status print_json(const bench_report *report, clv_error *error) {
  json_t *root = json_object(), *rows = json_array();
  for (uint32_t r = 0; r < report->row_count; ++r) {
    json_t *row = json_object();
    bench_row_json(report, r, row);
    json_array_append_new(rows, row);
  }
  json_object_set_new(root, "rows", rows);
  json_object_set_new(root, "interrupted", json_boolean(report->interrupted));
  json_object_set_new(root, "peak_rss_bytes", json_integer((json_int_t)cli_peak_rss_bytes()));
  return cli_json_print(report->cli, root, error);
}

clv_status bench_report_print(const bench_report *report, clv_error *error) {
  cli_invocation *cli = report->cli;
  const bool is_csv = cli_is_given(cli, OPTION_CSV), is_markdown = cli_is_given(cli, OPTION_MARKDOWN);
  char alignments[BENCH_MOST_COLUMNS + 1];
  clv__table table;
  clv__text text;
  if (cli->json) return print_json(report, error);
  align(report, is_csv, alignments);
  clv__table_init(&table, cli->allocator, alignments, true);
  clv__text_init(&text, cli->allocator);
  fill(report, is_csv, &table);
  if (is_csv)
    clv__table_write_csv(&table, &text);
  else if (is_markdown)
    clv__table_write_markdown(&table, &text);
  else
    clv__table_write(&table, 0, cli->color_out, &text);
  clv__table_finish(&table);
  if (!is_csv && !is_markdown) write_notes(report, &text);
  return cli_print(cli, &text, error);
}
