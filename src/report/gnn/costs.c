/* Reports the prices that plans of GNNs are made from, for programs: see cleave/gnn_costs.h. */
#include "gnn/api/costs.h"
#include "base/document.h"
#include "base/error.h"
#include "cleave/gnn_costs.h"
#include "gnn/api/handles.h"
#include "report/json.h"
#include "report/label.h"

/* ---- JSON ---- */

static json_t *block_json(const clv__block_table *table) {
  json_t *object = json_object();
  char reason[240];
  clv__table_fit_reason(table, reason, sizeof reason);
  json_object_set_new(object, "device", clv__json_text(table->device));
  json_object_set_new(object, "layer", clv__json_text(table->layer));
  json_object_set_new(object, "first", json_integer(table->first));
  json_object_set_new(object, "last", json_integer(table->last));
  json_object_set_new(object, "points", json_integer(table->point_count));
  json_object_set_new(object, "error", clv__json_real(table->time.error));
  json_object_set_new(object, "reason", reason[0] != '\0' ? clv__json_text(reason) : json_null());
  return object;
}

static json_t *overheads_json(const clv__tables *tables) {
  json_t *list = json_array();
  for (uint32_t o = 0; o < tables->overhead_count; ++o) {
    const clv__table_overhead *overhead = &tables->overheads[o];
    json_t *object = json_object();
    json_object_set_new(object, "kind", clv__json_text(clv__overhead_name(overhead->kind)));
    json_object_set_new(object, "device", overhead->device[0] != '\0' ? clv__json_text(overhead->device) : json_null());
    json_object_set_new(object, "time_ms", clv__json_real(1e-6 * overhead->time_ns));
    json_object_set_new(object, "spread_ms", clv__json_real(1e-6 * overhead->spread_ns));
    json_array_append_new(list, object);
  }
  return list;
}

static json_t *make_json(const clv_gnn_costs *costs) {
  json_t *root = json_object(), *list = json_array();
  for (uint32_t t = 0; t < costs->tables.table_count; ++t) json_array_append_new(list, block_json(&costs->tables.tables[t]));
  json_object_set_new(root, "file", clv__json_text(costs->name));
  json_object_set_new(root, "tables", list);
  json_object_set_new(root, "blocks", json_integer(costs->measured.blocks));
  json_object_set_new(root, "needless_blocks", json_integer(costs->measured.needless));
  json_object_set_new(root, "cut_off_blocks", json_integer(costs->measured.cut_off));
  json_object_set_new(root, "overheads", overheads_json(&costs->tables));
  return root;
}

/* ---- Text ---- */

static void append_block(const clv__block_table *table, clv__text *text) {
  char reason[240];
  clv__text_append(text, "%-12s %-30s %3u-%-3u  %6u  ", table->device, table->layer, table->first, table->last,
                   table->point_count);
  if (table->time.is_good)
    clv__text_append(text, "%4.0f %%  %3.0f %%  %4.0f %%\n", 100 * table->time.error, 100 * table->time.worst_error,
                     100 * table->time.spread);
  else
    clv__text_append(text, "no fit\n");
  clv__table_fit_reason(table, reason, sizeof reason);
  if (reason[0] != '\0') clv__text_append(text, "    %s\n", reason);
}

static void append_report(const clv__tables *tables, clv__text *text) {
  char taken[CLV__LABEL_BYTES], spread[CLV__LABEL_BYTES];
  clv__text_append(text, "device       layer                          stages  points  error  worst  spread\n");
  for (uint32_t t = 0; t < tables->table_count; ++t) append_block(&tables->tables[t], text);
  for (uint32_t o = 0; o < tables->overhead_count; ++o) {
    const clv__table_overhead *overhead = &tables->overheads[o];
    clv__text_append(text, "%s%s%s: %s, spread %s\n", clv__overhead_name(overhead->kind),
                     overhead->device[0] != '\0' ? " on " : "", overhead->device,
                     clv__label_time((uint64_t)overhead->time_ns, taken), clv__label_time((uint64_t)overhead->spread_ns, spread));
  }
  clv__text_append(
      text,
      "'stages': the first stage, and the one after the last. 'points': the number of measured sizes. 'error' and 'worst': the "
      "median and the largest error of the fit, at sizes that were left out of it. 'spread': the variation of repeated "
      "measurements.\n"
      "Plans do not use blocks with 'no fit'.\n"
      "'merge': joining the parts of a block that devices share. 'switch': a device's change to another executable. "
      "'exchange': ending a layer on all devices and starting the next.\n");
}

clv_status clv_gnn_costs_report(const clv_gnn_costs *costs, clv_form form, char **text, clv_error *error) {
  clv__text written;
  CLV__TRY(clv__document_check(form, text, error));
  CLV__TRY(clv__argument_check(costs, "costs", error));
  if (form == CLV_FORM_JSON) return clv__json_give(make_json(costs), costs->allocator, text, error);
  clv__text_init(&written, costs->allocator);
  append_report(&costs->tables, &written);
  return clv__document_give(&written, text, error);
}
