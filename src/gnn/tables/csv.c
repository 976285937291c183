/* Imports tables measured elsewhere: n_nodes,n_edges,<device>_ms…,status. The file is untrusted. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gnn/tables/tables.h"

enum { MOST_FIELDS = 32, MOST_FIELD_BYTES = 64 };

typedef struct line {
  uint32_t count;
  char fields[MOST_FIELDS][MOST_FIELD_BYTES];
} line;

typedef struct importing {
  const char *name;
  unsigned long number; /* line number */
  clv_error *error;
} importing;

static clv_status bad(const importing *in, const char *format, ...) CLV_PRINTF(2, 3);
static clv_status bad(const importing *in, const char *format, ...) {
  char what[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  return clv__error_set(in->error, CLV_INVALID_MODEL, "%s: line %lu: %s", in->name, in->number, what);
}

/* Splits a line into fields and trims the blanks around them. */
static clv_status take_line(const importing *in, const char *text, size_t size_bytes, line *out) {
  out->count = 0;
  for (size_t at = 0; at <= size_bytes; ++at) {
    size_t end = at;
    while (end < size_bytes && text[end] != ',') ++end;
    size_t from = at, to = end;
    while (from < to && (text[from] == ' ' || text[from] == '\t')) ++from;
    while (to > from && (text[to - 1] == ' ' || text[to - 1] == '\t' || text[to - 1] == '\r')) --to;
    if (out->count == MOST_FIELDS) return bad(in, "the line has more than %d fields", MOST_FIELDS);
    if (to - from >= MOST_FIELD_BYTES)
      return bad(in, "field %u has %zu characters; at most %d are allowed", out->count + 1, to - from, MOST_FIELD_BYTES - 1);
    if (memchr(text + from, '\0', to - from) != NULL) return bad(in, "field %u contains a zero byte", out->count + 1);
    memcpy(out->fields[out->count], text + from, to - from);
    out->fields[out->count++][to - from] = '\0';
    at = end;
  }
  return CLV_OK;
}

static clv_status take_size(const importing *in, const char *field, const char *column, uint64_t *size) {
  char *end;
  errno = 0;
  unsigned long long got = strtoull(field, &end, 10);
  if (field[0] < '0' || field[0] > '9' || *end != '\0' || errno != 0 || got > 1ull << 52)
    return bad(in, "%s is '%s'; expected a whole number", column, field);
  *size = got;
  return CLV_OK;
}

typedef enum cell { CELL_TIME, CELL_MISSING, CELL_INFEASIBLE } cell;

static clv_status take_time(const importing *in, const char *field, const char *column, cell *kind, double *time_ns) {
  *kind = CELL_MISSING;
  if (field[0] == '\0' || strcmp(field, "None") == 0) return CLV_OK;
  char *end;
  double got = strtod(field, &end);
  if (strspn(field, "0123456789.+-eE") != strlen(field) || end == field || *end != '\0' || !isfinite(got))
    return bad(in, "%s is '%s'; expected milliseconds, None (missing) or -1 (out of memory)", column, field);
  *kind = got == -1 ? CELL_INFEASIBLE : CELL_TIME;
  if (*kind == CELL_TIME && !(got > 0 && got <= 1e12))
    return bad(in, "%s is %s ms; it must be above 0 and at most 1e12", column, field);
  *time_ns = got * 1e6;
  return CLV_OK;
}

static clv_status find_column(const importing *in, const line *header, const char *name, uint32_t *index) {
  *index = CLV__NO_ID;
  for (uint32_t f = 0; f < header->count; ++f) {
    if (strcmp(header->fields[f], name) != 0) continue;
    if (*index != CLV__NO_ID) return bad(in, "column '%s' appears twice", name);
    *index = f;
  }
  return CLV_OK;
}

/* Checks a row's status: "OK", or a text that ends with "OOM", such as "GPU_OOM", if anything in the row ran out of memory. */
static clv_status check_status(const importing *in, const char *field, bool ran_out) {
  size_t length = strlen(field);
  bool is_out = length >= 3 && strcmp(field + length - 3, "OOM") == 0;
  if (!is_out && strcmp(field, "OK") != 0)
    return bad(in, "status is '%s'; expected OK, or a text that ends with OOM if something ran out of memory", field);
  if (is_out != ran_out) return bad(in, "status is '%s', but %s is -1 (out of memory)", field, ran_out ? "a time" : "no time");
  return CLV_OK;
}

typedef struct layout {
  uint32_t n, m, status, fields;
  uint32_t of[MOST_FIELDS]; /* per entry of `columns`: the index of its field in a line */
} layout;

static clv_status read_header(const importing *in, const line *header, const clv__import_column *columns, uint32_t column_count,
                              layout *places) {
  uint32_t known = 0;
  if (column_count > MOST_FIELDS) return bad(in, "%u device columns; the maximum is %d", column_count, MOST_FIELDS);
  CLV__TRY(find_column(in, header, "n_nodes", &places->n));
  CLV__TRY(find_column(in, header, "n_edges", &places->m));
  CLV__TRY(find_column(in, header, "status", &places->status));
  if (places->n == CLV__NO_ID || places->m == CLV__NO_ID)
    return bad(in, "the header must have the columns n_nodes and n_edges, as in n_nodes,n_edges,<device>_ms,status");
  for (uint32_t c = 0; c < column_count; ++c) {
    CLV__TRY(find_column(in, header, columns[c].column, &places->of[c]));
    if (places->of[c] == CLV__NO_ID) return bad(in, "there is no column '%s'", columns[c].column);
  }
  for (uint32_t f = 0; f < header->count; ++f) {
    bool wanted = f == places->n || f == places->m || f == places->status;
    for (uint32_t c = 0; c < column_count && !wanted; ++c) wanted = f == places->of[c];
    if (!wanted) return bad(in, "column '%s' does not belong to an open device", header->fields[f]);
    ++known;
  }
  places->fields = known;
  return CLV_OK;
}

static int compare_reals(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

typedef struct row {
  uint64_t n, m;
  cell kind;
  double time_ns;
} row;

static int compare_rows(const void *a, const void *b) {
  const row *x = a, *y = b;
  if (x->n != y->n) return (x->n > y->n) - (x->n < y->n);
  if (x->m != y->m) return (x->m > y->m) - (x->m < y->m);
  if (x->kind != y->kind) return (x->kind > y->kind) - (x->kind < y->kind);
  return compare_reals(&x->time_ns, &y->time_ns);
}

/* Adds the values of one column. Rows of equal size (frequent for a block that reads no edges) become one point: the median,
 * with the interquartile range as its spread. */
static clv_status put_rows(clv__tables *tables, const char *layer, const clv__import_column *column, row *rows, uint32_t count,
                           clv_error *error) {
  if (!column->has_edges) {
    for (uint32_t r = 0; r < count; ++r) rows[r].m = 0;
  }
  if (count > 1) qsort(rows, count, sizeof *rows, compare_rows);
  for (uint32_t r = 0, end; r < count; r = end) {
    uint32_t times = 0;
    for (end = r; end < count && rows[end].n == rows[r].n && rows[end].m == rows[r].m; ++end)
      times += rows[end].kind == CELL_TIME;
    const row *middle = &rows[r + times / 2];
    clv__table_point point = {.n = rows[r].n, .m = rows[r].m, .origin = CLV__IMPORTED};
    point.infeasible = times < end - r; /* one row that ran out of memory suffices */
    if (!point.infeasible) {
      point.time_ns = times % 2 == 1 ? middle->time_ns : (middle[-1].time_ns + middle->time_ns) / 2;
      point.spread_ns = rows[r + times * 3 / 4].time_ns - rows[r + times / 4].time_ns;
    }
    CLV__TRY(clv__tables_put(tables, column->device, layer, column->first, column->last, &point, error));
  }
  return CLV_OK;
}

clv_status clv__tables_import(clv__tables *tables, const char *layer, const clv__import_column *columns, uint32_t column_count,
                              const char *text, size_t size_bytes, const char *name, clv_error *error) {
  const clv_allocator *allocator = tables->arena.allocator;
  importing in = {.name = name, .error = error};
  layout places = {0};
  line fields;
  row *rows = NULL; /* [row_count][column_count], row by row */
  size_t capacity = 0, row_count = 0;
  bool has_header = false;
  clv_status status = CLV_OK;
  for (size_t at = 0, end; at < size_bytes; at = end + 1) {
    end = at;
    while (end < size_bytes && text[end] != '\n') ++end;
    ++in.number;
    CLV__TRY_GOTO(take_line(&in, text + at, end - at, &fields));
    if (fields.count == 1 && fields.fields[0][0] == '\0') continue;
    if (!has_header) {
      CLV__TRY_GOTO(read_header(&in, &fields, columns, column_count, &places));
      has_header = true;
      continue;
    }
    if (fields.count != places.fields) {
      status = bad(&in, "%u fields, but the header has %u", fields.count, places.fields);
      goto cleanup;
    }
    if (!clv__array_reserve(allocator, (void **)&rows, &capacity, (row_count + 1) * column_count, sizeof *rows,
                            row_count * column_count)) {
      status = clv__error_memory(error, sizeof *rows * column_count);
      goto cleanup;
    }
    uint64_t n, m;
    CLV__TRY_GOTO(take_size(&in, fields.fields[places.n], "n_nodes", &n));
    CLV__TRY_GOTO(take_size(&in, fields.fields[places.m], "n_edges", &m));
    bool ran_out = false;
    for (uint32_t c = 0; c < column_count; ++c) {
      row *made = &rows[row_count * column_count + c];
      *made = (row){.n = n, .m = m};
      CLV__TRY_GOTO(take_time(&in, fields.fields[places.of[c]], columns[c].column, &made->kind, &made->time_ns));
      ran_out = ran_out || made->kind == CELL_INFEASIBLE;
    }
    if (places.status != CLV__NO_ID) CLV__TRY_GOTO(check_status(&in, fields.fields[places.status], ran_out));
    ++row_count;
  }
  ++in.number;
  if (row_count == 0) status = bad(&in, "there are no rows");
  row *ours = status != CLV_OK ? NULL : clv__allocate(allocator, row_count * sizeof *ours);
  if (status == CLV_OK && ours == NULL) status = clv__error_memory(error, row_count * sizeof *ours);
  for (uint32_t c = 0; c < column_count && status == CLV_OK; ++c) {
    uint32_t count = 0;
    for (size_t r = 0; r < row_count; ++r) {
      if (rows[r * column_count + c].kind != CELL_MISSING) ours[count++] = rows[r * column_count + c];
    }
    status = put_rows(tables, layer, &columns[c], ours, count, error);
  }
  clv__release(allocator, ours);
  if (status == CLV_OK) status = clv__tables_fit(tables, error);
cleanup:
  clv__release(allocator, rows);
  return status;
}
