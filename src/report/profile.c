/* Shows a profile as a table or as JSON: clv_profile_text(). */
#include <math.h>
#include <stdlib.h>

#include "base/document.h"
#include "cost/measuring.h"
#include "report/json.h"
#include "report/label.h"
#include "report/table.h"

/* A device of the table. */
typedef struct row {
  const char *name;
  const clv__profile_device *tables;
  double error; /* the median relative difference between the predicted and the measured times of the blocks; -1: no blocks */
} row;

static int compare_reals(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static clv_status median_error(const clv_allocator *allocator, row *of, clv_error *error) {
  const clv__profile_device *tables = of->tables;
  of->error = -1;
  if (tables->block_count == 0) return CLV_OK;
  double *errors = clv__allocate(allocator, tables->block_count * sizeof *errors);
  if (errors == NULL) return clv__error_memory(error, tables->block_count * sizeof *errors);
  for (uint32_t b = 0; b < tables->block_count; ++b) {
    double measured = (double)tables->blocks[b].total.time_ns;
    errors[b] = fabs(clv__profile_block_ns(tables, &tables->blocks[b]) - measured) / (measured > 0 ? measured : 1);
  }
  qsort(errors, tables->block_count, sizeof *errors, compare_reals);
  of->error = errors[tables->block_count / 2];
  clv__release(allocator, errors);
  return CLV_OK;
}

/* Returns the measured rate, in bytes per second, of the largest copy of a kind, or 0 if none was measured. */
static double copy_rate(const clv__profile_device *tables, clv__copy_kind kind) {
  if (tables->copy_counts[kind] == 0) return 0;
  const clv__profile_copy *last = &tables->copies[kind][tables->copy_counts[kind] - 1];
  return last->time.time_ns > 0 ? (double)last->size_bytes / (double)last->time.time_ns * 1e9 : 0;
}

/* Makes a row for each device of `devices` that the profile has, or for all devices of the profile. The caller releases them. */
static clv_status find_rows(const clv_profile *profile, const clv_devices *devices, row **out, uint32_t *count,
                            clv_error *error) {
  const clv__profile *tables = profile->tables;
  const uint32_t most = devices != NULL ? devices->count : tables->device_count;
  row *rows = clv__allocate(profile->allocator, ((size_t)most + 1) * sizeof *rows);
  if (rows == NULL) return clv__error_memory(error, ((size_t)most + 1) * sizeof *rows);
  clv_status status = CLV_OK;
  *count = 0;
  for (uint32_t d = 0; d < most && status == CLV_OK; ++d) {
    const uint32_t at = devices == NULL ? d : clv__profile_find_device(tables, devices->items[d].info.fingerprint);
    if (at == CLV__NO_ID) continue;
    rows[*count] = (row){devices == NULL ? tables->devices[at]->name : devices->items[d].name, tables->devices[at], -1};
    status = median_error(profile->allocator, &rows[(*count)++], error);
  }
  if (status != CLV_OK) clv__release(profile->allocator, rows);
  *out = status == CLV_OK ? rows : NULL;
  return status;
}

static json_t *row_json(const row *of) {
  const clv__profile_device *tables = of->tables;
  json_t *object = json_object();
  json_object_set_new(object, "name", clv__json_text(of->name));
  json_object_set_new(object, "fingerprint", clv__json_text(tables->fingerprint));
  json_object_set_new(object, "launch_us", clv__json_real((double)tables->launch.time_ns / 1e3));
  json_object_set_new(object, "flops_per_second", clv__json_real(tables->flops_per_second));
  json_object_set_new(object, "bytes_per_second", clv__json_real(tables->bytes_per_second));
  json_object_set_new(object, "copy_in_bytes_per_second", clv__json_real(copy_rate(tables, CLV__COPY_IN)));
  json_object_set_new(object, "copy_out_bytes_per_second", clv__json_real(copy_rate(tables, CLV__COPY_OUT)));
  json_object_set_new(object, "nodes_measured", json_integer(tables->nodes_measured));
  json_object_set_new(object, "signatures", json_integer(tables->operator_count));
  json_object_set_new(object, "edges", json_integer(tables->saving_count));
  json_object_set_new(object, "blocks", json_integer(tables->block_count));
  json_object_set_new(object, "median_error", of->error >= 0 ? clv__json_real(of->error) : json_null());
  return object;
}

static void write_table(const row *rows, uint32_t count, bool bold, clv__text *text) {
  static const char *const titles[] = {"device", "launch",     "FLOP/s", "B/s",  "to device B/s",
                                       "nodes",  "signatures", "blocks", "error"};
  char number[CLV__LABEL_BYTES];
  clv__table table;
  clv__table_init(&table, text->allocator, "lrrrrrrrr", true);
  for (uint32_t i = 0; i < table.columns; ++i) clv__table_cell(&table, "%s", titles[i]);
  for (uint32_t i = 0; i < count; ++i) {
    const clv__profile_device *tables = rows[i].tables;
    const double copies = copy_rate(tables, CLV__COPY_IN);
    clv__table_cell(&table, "%s", rows[i].name);
    clv__table_cell(&table, "%s", clv__label_time(tables->launch.time_ns, number));
    clv__table_cell(&table, "%s", clv__label_count(tables->flops_per_second, number));
    clv__table_cell(&table, "%s", clv__label_count(tables->bytes_per_second, number));
    clv__table_cell(&table, "%s", copies > 0 ? clv__label_count(copies, number) : "-");
    clv__table_cell(&table, "%u", tables->nodes_measured);
    clv__table_cell(&table, "%u", tables->operator_count);
    clv__table_cell(&table, "%u", tables->block_count);
    clv__table_cell(&table, rows[i].error >= 0 ? "%.1f %%" : "-", 100 * rows[i].error);
  }
  clv__table_write(&table, 0, bold, text);
  clv__table_finish(&table);
}

static clv_status give_json(const clv_profile *profile, const row *rows, uint32_t count, char **out, clv_error *error) {
  json_t *root = json_object(), *list = json_array();
  for (uint32_t i = 0; i < count; ++i) json_array_append_new(list, row_json(&rows[i]));
  json_object_set_new(root, "partial", json_boolean(profile->tables->is_partial));
  json_object_set_new(root, "devices", list);
  return clv__json_give(root, profile->allocator, out, error);
}

clv_status clv_profile_text(const clv_profile *profile, const clv_devices *devices, bool brief, clv_form form, char **out,
                            clv_error *error) {
  CLV__TRY(clv__document_check(form, out, error));
  if (profile == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "profile must not be NULL");
  row *rows;
  uint32_t count;
  clv_status status = find_rows(profile, devices, &rows, &count, error);
  if (status != CLV_OK) return status;
  if (form == CLV_FORM_JSON) {
    status = give_json(profile, rows, count, out, error);
  } else {
    clv__text text;
    clv__text_init(&text, profile->allocator);
    write_table(rows, count, form == CLV_FORM_TERMINAL, &text);
    if (!brief)
      clv__text_append(
          &text,
          "'nodes': nodes measured in this run. 'signatures': distinct operators with their shapes in the profile. 'blocks': "
          "measured groups of nodes.\n"
          "The column 'error' is the median difference between the predicted and the measured times of the blocks.\n");
    status = clv__document_give(&text, out, error);
  }
  clv__release(profile->allocator, rows);
  return status;
}
