/* See compare.h. */
#include "report/compare.h"

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
