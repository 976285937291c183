/* A plan of GNN inference as JSON, and next to it the results of a run. Most data comes from the plan itself, so a plan from a
 * file gives the same document as a new plan. How the graph was partitioned is known only for a new plan. */
#include <math.h>

#include "report/gnn/own.h"
#include "report/json.h"

static json_t *ms(double ns) {
  return clv__json_real(1e-6 * ns);
}

static json_t *count(uint64_t number) {
  return json_integer((json_int_t)number);
}

/* How the graph was partitioned. NULL for a plan from a file, which does not say it. */
static const clv__gnn_cut *cut_of(const clv_gnn_plan *handle, uint32_t k) {
  for (uint32_t c = 0; c < handle->planning.cut_count; ++c) {
    if (handle->planning.cuts[c].membership.k == k) return &handle->planning.cuts[c];
  }
  return NULL;
}

static json_t *device_json(const clv__gnn_plan *plan, const clv__gnn_plan_k *item, uint32_t d) {
  json_t *object = json_object();
  json_object_set_new(object, "device", clv__json_text(plan->machine.devices[d].name));
  json_object_set_new(object, "busy_ms", ms(item->busy_ns[d]));
  json_object_set_new(object, "idle_ms", ms(item->idle_ns[d]));
  json_object_set_new(object, "alone_ms", ms(item->single_ns[d]));
  return object;
}

static void overhead_json(const clv__gnn_overhead *overhead, json_t *object) {
  json_object_set_new(object, "halo_rows", count(overhead->halo_rows));
  json_object_set_new(object, "padding_rows", count(overhead->padding_rows));
  json_object_set_new(object, "padding_edges", count(overhead->padding_edges));
}

static json_t *k_json(const clv_gnn_plan *handle, const clv__gnn_plan_k *item) {
  const clv__gnn_plan *plan = handle->plan;
  const clv__gnn_cut *cut = cut_of(handle, item->k);
  bool has_plan = item->reason == NULL;
  json_t *object = json_object();
  json_object_set_new(object, "k", json_integer(item->k));
  json_object_set_new(object, "makespan_ms", has_plan ? ms(item->makespan_ns) : json_null());
  json_object_set_new(object, "lower_bound_ms", has_plan ? ms(item->bound_ns) : json_null());
  if (!has_plan) json_object_set_new(object, "reason", clv__json_text(item->reason));
  if (has_plan) {
    json_object_set_new(object, "gap", clv__json_real(clv__gnn_plan_k_gap(item)));
    json_object_set_new(object, "gain", clv__json_real(plan->best_single_ns / item->makespan_ns));
    json_object_set_new(object, "switches", json_integer(item->switches));
    overhead_json(&item->overhead, object);
    json_t *devices = json_array();
    for (uint32_t d = 0; d < plan->machine.device_count; ++d) json_array_append_new(devices, device_json(plan, item, d));
    json_object_set_new(object, "devices", devices);
  }
  if (cut != NULL) {
    json_object_set_new(object, "cut_edges", count(cut->cut_edges));
    json_object_set_new(object, "communication_volume", count(cut->communication_volume));
    json_object_set_new(object, "metis_seconds", clv__json_real(cut->membership.metis_seconds));
    json_object_set_new(object, "from_cache", json_boolean(cut->membership.from_cache));
  }
  return object;
}

static json_t *block_json(const clv__gnn_account *account, const clv__gnn_block_sum *sum) {
  const clv__stages *stages = &account->stages[sum->layer];
  json_t *object = json_object();
  json_object_set_new(object, "layer", json_integer(sum->layer));
  json_object_set_new(object, "cluster", json_integer(sum->cluster));
  json_object_set_new(object, "device", clv__json_text(account->plan->machine.devices[sum->device].name));
  json_object_set_new(object, "from", clv__json_text(clv__stage_name(stages->items[sum->first])));
  json_object_set_new(object, "to", clv__json_text(clv__stage_name(stages->items[sum->last - 1])));
  json_object_set_new(object, "tasks", json_integer(sum->tasks));
  json_object_set_new(object, "predicted_ms", ms(sum->predicted_ns));
  if (account->record != NULL) {
    json_object_set_new(object, "measured_ms", sum->has_run > 0 ? ms(sum->measured_ns) : json_null());
    json_object_set_new(object, "packing_ms", sum->has_run > 0 ? ms(sum->packing_ns) : json_null());
  }
  return object;
}

static json_t *merges_json(const clv__gnn_plan *plan, const clv__gnn_plan_layer *planned) {
  json_t *merged = json_array();
  for (uint32_t i = 0; i < planned->merge_count; ++i) {
    const clv__bucket_merge *merge = &planned->merges[i];
    json_t *object = json_object();
    json_object_set_new(object, "device", clv__json_text(plan->machine.devices[merge->device].name));
    json_object_set_new(object, "rows", count(merge->into.rows));
    json_object_set_new(object, "edges", count(merge->into.edges));
    json_object_set_new(object, "parts", json_integer(merge->parts));
    json_object_set_new(object, "padding_ms", ms(merge->added_ns));
    json_object_set_new(object, "compiling_ms", ms(merge->saved_ns));
    json_array_append_new(merged, object);
  }
  return merged;
}

static json_t *layer_json(const clv__gnn_account *account, uint32_t l) {
  const clv__gnn_plan_layer *planned = &account->plan->layers[l];
  const clv__gnn_layer_sum *sum = &account->layers[l];
  json_t *object = json_object(), *clusters = json_array();
  for (uint32_t c = 0; c < planned->cluster_count; ++c) {
    clv__text text;
    json_t *cluster = json_object();
    clv__text_init(&text, account->plan->arena.allocator);
    clv__pep_describe(&planned->peps[planned->sequence[planned->clusters[c].first]], &account->plan->machine, &text);
    json_object_set_new(cluster, "subgraphs", json_integer(planned->clusters[c].count));
    json_object_set_new(cluster, "pep", clv__json_text(text.failed ? NULL : text.data));
    json_array_append_new(clusters, cluster);
    clv__text_finish(&text);
  }
  json_object_set_new(object, "layer", json_integer(l));
  json_object_set_new(object, "predicted_ms", ms(sum->predicted_ns));
  json_object_set_new(object, "lower_bound_ms", ms(planned->bound_ns));
  if (account->record != NULL) json_object_set_new(object, "measured_ms", sum->has_run ? ms(sum->measured_ns) : json_null());
  json_object_set_new(object, "clusters", clusters);
  json_object_set_new(object, "merged", merges_json(account->plan, planned));
  return object;
}

static json_t *memory_json(const clv__gnn_account *account) {
  json_t *list = json_array();
  for (uint32_t d = 0; d < account->plan->machine.device_count; ++d) {
    const clv__gnn_plan_memory *memory = &account->plan->memory[d];
    if (memory->limit_bytes == 0) continue;
    json_t *object = json_object();
    json_object_set_new(object, "device", clv__json_text(account->plan->machine.devices[d].name));
    json_object_set_new(object, "limit_bytes", count(memory->limit_bytes));
    json_object_set_new(object, "planned_bytes", count(memory->taken_bytes));
    json_object_set_new(object, "least_bytes", count(memory->least_bytes));
    if (account->record != NULL) json_object_set_new(object, "taken_bytes", count(account->record->taken_bytes[d]));
    json_array_append_new(list, object);
  }
  return list;
}

static void record_json(const clv__gnn_account *account, json_t *root) {
  const clv__gnn_record *record = account->record;
  json_t *layers = json_array(), *devices = json_array();
  for (uint32_t l = 0; l < account->plan->layer_count; ++l) json_array_append_new(layers, ms(record->layer_ns[l]));
  for (uint32_t d = 0; d < account->plan->machine.device_count; ++d) {
    json_t *object = json_object();
    json_object_set_new(object, "device", clv__json_text(account->plan->machine.devices[d].name));
    json_object_set_new(object, "measured_busy_ms", ms(account->devices[d].measured_ns));
    json_array_append_new(devices, object);
  }
  json_object_set_new(root, "measured_ms", ms(record->measured_ns));
  json_object_set_new(root, "layers_ms", layers);
  json_object_set_new(root, "resumed_at_layer", json_integer(record->first_layer));
  json_object_set_new(root, "state_ms", ms(record->state_ns));
  json_object_set_new(root, "measured_devices", devices);
  json_object_set_new(root, "executables", json_integer(record->executables));
}

void clv__report_gnn_json(const clv_gnn_plan *handle, const clv__gnn_account *account, json_t *root) {
  const clv__gnn_plan *plan = handle->plan;
  json_t *per_k = json_array(), *layers = json_array(), *blocks = json_array();
  bool has_single = isfinite(plan->best_single_ns);
  for (uint32_t i = 0; i < plan->per_k_count; ++i) json_array_append_new(per_k, k_json(handle, &plan->per_k[i]));
  for (uint32_t l = 0; l < plan->layer_count; ++l) json_array_append_new(layers, layer_json(account, l));
  for (uint32_t b = 0; b < account->block_count; ++b) json_array_append_new(blocks, block_json(account, &account->blocks[b]));
  json_object_set_new(root, "per_k", per_k);
  json_object_set_new(root, "k", json_integer(plan->k));
  json_object_set_new(root, "makespan_ms", ms(plan->makespan_ns));
  json_object_set_new(root, "predicted_run", clv__json_text("warm"));
  json_object_set_new(root, "lower_bound_ms", ms(plan->bound_ns));
  json_object_set_new(root, "gap", clv__json_real(clv__gnn_plan_gap(plan)));
  json_object_set_new(root, "best_single_device_ms", ms(plan->best_single_ns));
  json_object_set_new(root, "best_single_device", has_single ? clv__json_text(plan->best_single_device) : json_null());
  json_object_set_new(root, "gain", has_single ? clv__json_real(plan->best_single_ns / plan->makespan_ns) : json_null());
  json_object_set_new(root, "tables", clv__json_text(clv__table_origin_name(plan->origin)));
  json_object_set_new(root, "why", clv__json_text(plan->why));
  json_object_set_new(root, "by_layer", layers);
  json_object_set_new(root, "memory", memory_json(account));
  json_object_set_new(root, "blocks", blocks);
  json_object_set_new(root, "clusters", json_integer(account->cluster_count));
  json_object_set_new(root, "switches", json_integer(account->switches));
  overhead_json(&account->overhead, root);
  json_object_set_new(root, "rows", count(account->rows));
  json_object_set_new(root, "edges_worked_on", count(account->edges));
  json_object_set_new(root, "load_ms", ms(handle->model->load_ns + handle->graph->load_ns));
  json_object_set_new(root, "cut_ms", ms(handle->cut_ns));
  json_object_set_new(root, "plan_ms", ms(handle->plan_ns));
  if (account->record != NULL) record_json(account, root);
}
