/* Prices for programs: see cleave/gnn_costs.h. */
#include "gnn/api/costs.h"

#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "cleave/gnn_costs.h"
#include "device/device.h"
#include "gnn/api/handles.h"
#include "gnn/measure/nominal.h"

clv_status clv_gnn_costs_create(clv_context *context, clv_gnn_costs **costs, clv_error *error) {
  CLV__TRY(clv__argument_check(costs, "costs", error));
  *costs = NULL;
  CLV__TRY(clv__argument_check(context, "context", error));
  const clv_allocator *allocator = clv__context_allocator(context);
  clv_gnn_costs *made = clv__allocate_zero(allocator, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  made->allocator = allocator;
  clv__tables_init(&made->tables, allocator);
  *costs = made;
  return CLV_OK;
}

void clv_gnn_costs_destroy(clv_gnn_costs *costs) {
  if (costs == NULL) return;
  const clv_allocator *allocator = costs->allocator;
  clv__tables_finish(&costs->tables);
  clv__release(allocator, costs->name);
  clv__release(allocator, costs);
}

/* ---- Files ---- */

static clv_status set_name(clv_gnn_costs *costs, const char *path, clv_error *error) {
  size_t size_bytes = strlen(path) + 1;
  char *name = clv__allocate(costs->allocator, size_bytes);
  if (name == NULL) return clv__error_memory(error, size_bytes);
  memcpy(name, path, size_bytes);
  clv__release(costs->allocator, costs->name);
  costs->name = name;
  return CLV_OK;
}

clv_status clv_gnn_costs_read(clv_context *context, const char *path, clv_gnn_costs **costs, clv_error *error) {
  clv_gnn_costs *made;
  CLV__TRY(clv__argument_check(costs, "costs", error));
  *costs = NULL;
  CLV__TRY(clv__argument_check(path, "path", error));
  CLV__TRY(clv_gnn_costs_create(context, &made, error));
  clv_status status = clv__tables_read(&made->tables, path, error);
  if (status == CLV_OK) status = set_name(made, path, error);
  if (status == CLV_OK)
    *costs = made;
  else
    clv_gnn_costs_destroy(made);
  return status;
}

clv_status clv_gnn_costs_write(clv_gnn_costs *costs, const char *path, clv_error *error) {
  CLV__TRY(clv__argument_check(costs, "costs", error));
  CLV__TRY(clv__argument_check(path, "path", error));
  CLV__TRY(clv__tables_write(&costs->tables, path, error));
  return set_name(costs, path, error);
}

/* ---- Measuring ---- */

clv_status clv_gnn_costs_check(const clv_gnn_costs *costs, const clv_devices *devices, clv_error *error) {
  CLV__TRY(clv__argument_check(costs, "costs", error));
  CLV__TRY(clv__argument_check(devices, "devices", error));
  for (uint32_t d = 0; d < devices->count; ++d)
    CLV__TRY(clv__tables_check_device(&costs->tables, devices->items[d].name, devices->items[d].info.fingerprint, error));
  return CLV_OK;
}

typedef struct teller {
  bool (*progress)(void *user_data, const clv_gnn_measure_progress *progress);
  void *user_data;
} teller;

static bool tell_progress(void *user_data, const clv__gnn_measure_progress *at) {
  const teller *t = user_data;
  const clv_gnn_measure_progress told = {at->device, at->layer, at->done, at->of, at->left_s};
  return t->progress(t->user_data, &told);
}

clv_status clv_gnn_costs_measure(clv_gnn_costs *costs, const clv_gnn_model *model, const clv_gnn_graph *graph,
                                 clv_devices *devices, const clv_gnn_plan_options *plan_options,
                                 const clv_gnn_measure_options *options, clv_error *error) {
  clv_gnn_measure_options how = CLV_GNN_MEASURE_OPTIONS_INIT;
  clv_gnn_plan_options planned = CLV_GNN_PLAN_OPTIONS_INIT;
  clv_gnn_plan *cut;
  CLV__TRY(clv__argument_check(costs, "costs", error));
  CLV__TRY(clv__options_read(&how, sizeof how, options, "CLV_GNN_MEASURE_OPTIONS_INIT", error));
  CLV__TRY(clv__options_read(&planned, sizeof planned, plan_options, "CLV_GNN_PLAN_OPTIONS_INIT", error));
  CLV__TRY(clv__gnn_plan_cut(model, graph, devices, plan_options, &cut, error));
  teller t = {how.progress, how.user_data};
  clv__gnn_measure_options inner = CLV__GNN_MEASURE_OPTIONS_INIT;
  inner.runs = how.runs;
  inner.seed = planned.seed;
  inner.only_copies = how.only_copies;
  inner.limit_s = how.limit_s;
  inner.progress = how.progress != NULL ? tell_progress : NULL;
  inner.user_data = &t;
  clv_status status = clv__gnn_measure(&cut->planning, &inner, &costs->tables, &costs->measured, error);
  clv_status fitted =
      clv__tables_fit(&costs->tables, status == CLV_OK ? error : NULL); /* also what was measured before an error */
  clv_gnn_plan_destroy(cut);
  return status == CLV_OK ? fitted : status;
}

clv_status clv_gnn_costs_nominal(clv_gnn_costs *costs, const clv_gnn_model *model, const clv_gnn_graph *graph,
                                 clv_devices *devices, const clv_gnn_plan_options *plan_options, clv_error *error) {
  clv_gnn_plan *cut;
  CLV__TRY(clv__argument_check(costs, "costs", error));
  CLV__TRY(clv__gnn_plan_cut(model, graph, devices, plan_options, &cut, error));
  clv_status status = clv__gnn_nominal(&cut->planning, &costs->tables, error);
  clv_gnn_plan_destroy(cut);
  return status;
}

clv_status clv_gnn_costs_add(clv_gnn_costs *costs, const char *device, const char *layer, uint32_t first_stage,
                             uint32_t end_stage, const clv_gnn_point *points, uint32_t count, clv_error *error) {
  CLV__TRY(clv__argument_check(costs, "costs", error));
  CLV__TRY(clv__argument_check(device, "device", error));
  CLV__TRY(clv__argument_check(layer, "layer", error));
  if (count > 0) CLV__TRY(clv__argument_check(points, "points", error));
  clv_status status = CLV_OK;
  for (uint32_t i = 0; i < count && status == CLV_OK; ++i) {
    const clv__table_point point = {.n = points[i].rows,
                                    .m = points[i].edges,
                                    .targets = points[i].targets,
                                    .origin = CLV__IMPORTED,
                                    .time_ns = points[i].time_ns,
                                    .spread_ns = points[i].spread_ns};
    status = clv__tables_put(&costs->tables, device, layer, first_stage, end_stage, &point, error);
    if (status != CLV_OK) clv__error_prefix(error, status, "points[%u]", i);
  }
  clv_status fitted = clv__tables_fit(&costs->tables, status == CLV_OK ? error : NULL);
  return status == CLV_OK ? fitted : status;
}

/* ---- Reading ---- */

bool clv_gnn_costs_layer(const clv_gnn_model *model, uint32_t layer, char key[64]) {
  clv__chain chain;
  if (layer >= model->model->layer_count) return false;
  clv__chain_of(&model->stages[layer], &chain);
  memcpy(key, chain.layer, sizeof chain.layer);
  return true;
}

bool clv_gnn_costs_time(const clv_gnn_costs *costs, const char *device, const char *layer, uint32_t first_stage,
                        uint32_t end_stage, uint64_t rows, uint64_t edges, uint64_t targets, double *time_ns) {
  const clv__block_table *table = clv__tables_find(&costs->tables, device, layer, first_stage, end_stage);
  return table != NULL && clv__table_time(table, rows, edges, targets, time_ns) == CLV__KNOWN;
}

void clv_gnn_costs_get_info(const clv_gnn_costs *costs, clv_gnn_costs_info *info) {
  const clv_gnn_costs_info filled = {.block_count = costs->tables.table_count,
                                     .wanted_count = costs->measured.blocks,
                                     .needless_count = costs->measured.needless,
                                     .cut_off_count = costs->measured.cut_off,
                                     .name = costs->name};
  clv__info_fill(info, &filled, sizeof filled);
}

bool clv_gnn_costs_block(const clv_gnn_costs *costs, uint32_t index, clv_gnn_costs_block_info *info) {
  clv_gnn_costs_block_info filled = {0};
  bool exists = index < costs->tables.table_count;
  if (exists) {
    const clv__block_table *table = &costs->tables.tables[index];
    filled = (clv_gnn_costs_block_info){.device = table->device,
                                        .layer = table->layer,
                                        .first_stage = table->first,
                                        .end_stage = table->last,
                                        .point_count = table->point_count,
                                        .has_fit = table->time.is_good};
    if (table->time.is_good) {
      filled.error = table->time.error;
      filled.worst_error = table->time.worst_error;
      filled.spread = table->time.spread;
    }
  }
  clv__info_fill(info, &filled, sizeof filled);
  return exists;
}
