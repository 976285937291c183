/* See compare.h. */
#include "report/compare.h"

#include "report/json.h"
#include "report/label.h"
#include "report/table.h"

void clv__report_comparison(const clv_plan *plan, const clv__comparison *rows, uint32_t count, clv__text *text) {
  char label[CLV__LABEL_BYTES];
  clv__table table;
  clv__table_init(&table, text->allocator, "lrrrrrrl", true);
  static const char *const header[] = {"", "partitions", "transfers", "bytes", "predicted", "gap", "overlapped", ""};
  for (size_t i = 0; i < sizeof header / sizeof *header; ++i) clv__table_cell(&table, "%s", header[i]);
  for (uint32_t i = 0; i < count; ++i) {
    const clv__comparison *row = &rows[i];
    clv__table_cell(&table, "%s%s", row->is_single ? "all on " : "", row->name);
    if (row->refusal != NULL) {
      for (int k = 0; k < 6; ++k) clv__table_cell(&table, "–");
      clv__table_cell(&table, "%s", row->refusal);
      continue;
    }
    clv__table_cell(&table, "%u", row->partitions);
    clv__table_cell(&table, "%u", row->transfers);
    clv__table_cell(&table, "%s", clv__label_size(row->transfer_bytes, label));
    clv__table_cell(&table, "%s", clv__label_time(row->predicted_ns, label));
    clv__table_cell(&table, "%s", clv__label_gap(row->gap, label));
    clv__table_cell(&table, "%s", clv__label_time(row->overlapped_ns, label));
    clv__table_cell(&table, "%s", row->is_plan ? "this plan" : "");
  }
  clv__table_write(&table, 0, false, text);
  clv__table_finish(&table);
  clv__text_append(text, "lower bound for any plan without recomputation: %s\n", clv__label_time(plan->lower_bound_ns, label));
  clv__text_append(
      text,
      "'gap': by how much 'predicted' exceeds this bound; ×10: it is ten times the bound. 'overlapped': the predicted time of a "
      "run in which devices work at the same time.\n");
}

void clv__report_what_if(const clv_plan *plan, const clv__what_if *rows, uint32_t count, clv__text *text) {
  char label[CLV__LABEL_BYTES];
  if (count == 0) {
    clv__text_append(text, "every device supports every operator of the model\n");
    return;
  }
  clv__table table;
  clv__table_init(&table, text->allocator, "lrrrrrl", true);
  static const char *const header[] = {"if also supported", "nodes", "partitions", "predicted", "saved", "", ""};
  for (size_t i = 0; i < sizeof header / sizeof *header; ++i) clv__table_cell(&table, "%s", header[i]);
  for (uint32_t i = 0; i < count; ++i) {
    const clv__what_if *row = &rows[i];
    uint64_t change = (uint64_t)(row->saved_ns < 0 ? -row->saved_ns : row->saved_ns);
    clv__table_cell(&table, "%s@%s", row->op, row->device == CLV__NO_ID ? "?" : plan->devices->items[row->device].name);
    clv__table_cell(&table, "%u", row->nodes);
    if (row->refusal != NULL) {
      for (int k = 0; k < 4; ++k) clv__table_cell(&table, "–");
      clv__table_cell(&table, "%s", row->refusal);
      continue;
    }
    clv__table_cell(&table, "%u", row->partitions);
    clv__table_cell(&table, "%s", clv__label_time(row->predicted_ns, label));
    clv__table_cell(&table, "%s%s", row->saved_ns < 0 ? "-" : "", clv__label_time(change, label));
    clv__table_cell(&table, "%.1f %%",
                    plan->predicted_ns == 0 ? 0.0 : 100.0 * (double)row->saved_ns / (double)plan->predicted_ns);
    clv__table_cell(&table, "%s", row->nodes == 0 ? "already supported" : "");
  }
  clv__table_write(&table, 0, false, text);
  clv__table_finish(&table);
}

/* ---- JSON ---- */

static json_t *milliseconds(double time_ns) {
  return clv__json_real(time_ns / 1e6);
}

static json_t *comparison_json(const clv__comparison *row) {
  json_t *object = json_object();
  json_object_set_new(object, row->is_single ? "device" : "strategy", clv__json_text(row->name));
  if (row->refusal != NULL) {
    json_object_set_new(object, "refused", clv__json_text(row->refusal));
    return object;
  }
  json_object_set_new(object, "partitions", json_integer(row->partitions));
  json_object_set_new(object, "transfers", json_integer(row->transfers));
  json_object_set_new(object, "transfer_bytes", json_integer((json_int_t)row->transfer_bytes));
  json_object_set_new(object, "predicted_ms", milliseconds((double)row->predicted_ns));
  json_object_set_new(object, "serial_ms", milliseconds((double)row->serial_ns));
  json_object_set_new(object, "overlapped_ms", milliseconds((double)row->overlapped_ns));
  json_object_set_new(object, "throughput_ms", milliseconds((double)row->throughput_ns));
  json_object_set_new(object, "gap", row->gap < 0 ? json_null() : clv__json_real(row->gap));
  return object;
}

static json_t *what_if_json(const clv_plan *plan, const clv__what_if *row) {
  json_t *object = json_object();
  json_object_set_new(object, "op", clv__json_text(row->op));
  json_object_set_new(object, "device",
                      row->device == CLV__NO_ID ? json_null() : clv__json_text(plan->devices->items[row->device].name));
  json_object_set_new(object, "nodes", json_integer(row->nodes));
  if (row->refusal != NULL) {
    json_object_set_new(object, "refused", clv__json_text(row->refusal));
    return object;
  }
  json_object_set_new(object, "partitions", json_integer(row->partitions));
  json_object_set_new(object, "predicted_ms", milliseconds((double)row->predicted_ns));
  json_object_set_new(object, "saved_ms", milliseconds((double)row->saved_ns));
  return object;
}

json_t *clv__report_comparison_json(const clv__comparison *rows, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < count; ++i) json_array_append_new(list, comparison_json(&rows[i]));
  return list;
}

json_t *clv__report_what_if_json(const clv_plan *plan, const clv__what_if *rows, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < count; ++i) json_array_append_new(list, what_if_json(plan, &rows[i]));
  return list;
}
