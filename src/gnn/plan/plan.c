/* Makes a plan from a choice, and writes it. plan_read.c reads plans. */
#include "gnn/plan/plan.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"

/* ---- Making ---- */

static const char *own(clv__gnn_plan *plan, const char *text) {
  return text == NULL ? "" : clv__arena_string(&plan->arena, text, strlen(text));
}

clv_status clv__gnn_plan_layer_simulate(clv__gnn_plan *plan, clv__gnn_plan_layer *layer, clv_error *error) {
  uint32_t k = plan->k, tasks;
  clv__pep_work *works = clv__allocate(plan->arena.allocator, (size_t)k * sizeof *works);
  const clv__pep_work **sequence = clv__allocate(plan->arena.allocator, (size_t)k * sizeof *sequence);
  layer->clusters = clv__arena_allocate_zero(&plan->arena, k, sizeof *layer->clusters);
  layer->cluster_count = 0;
  bool good = works != NULL && sequence != NULL && layer->clusters != NULL;
  for (uint32_t at = 0; at < k && good; ++at) {
    const clv__pep *pep = &layer->peps[layer->sequence[at]];
    clv__pep_work_of(pep, &works[at]);
    sequence[at] = &works[at];
    if (at == 0 || !clv__pep_same(&layer->peps[layer->sequence[at - 1]], pep)) layer->clusters[layer->cluster_count++].first = at;
    ++layer->clusters[layer->cluster_count - 1].count;
  }
  if (good) clv__simulate(&plan->machine, sequence, k, &layer->timeline, NULL, &tasks);
  clv__release(plan->arena.allocator, sequence);
  clv__release(plan->arena.allocator, works);
  return good ? CLV_OK : clv__error_memory(error, (size_t)k * sizeof *works);
}

static clv_status make_layer(clv__gnn_plan *plan, const clv__costs *costs, const clv__chosen_layer *chosen,
                             clv__gnn_plan_layer *layer, clv_error *error) {
  layer->layer = own(plan, costs->chain->layer);
  layer->from = own(plan, chosen->from);
  layer->stage_count = costs->chain->stage_count;
  layer->bound_ns = chosen->bound_ns, layer->bound_all_ns = chosen->bound_all_ns, layer->rounding_ns = chosen->rounding_ns;
  layer->peps = clv__arena_allocate_zero(&plan->arena, plan->k, sizeof *layer->peps);
  layer->sequence = clv__arena_copy(&plan->arena, chosen->sequence, plan->k * sizeof *layer->sequence);
  if (chosen->merge_count > 0) {
    layer->merges = clv__arena_copy(&plan->arena, chosen->merges, chosen->merge_count * sizeof *layer->merges);
    if (layer->merges == NULL) return clv__error_memory(error, chosen->merge_count * sizeof *layer->merges);
    layer->merge_count = chosen->merge_count;
  }
  if (layer->layer == NULL || layer->from == NULL || layer->peps == NULL || layer->sequence == NULL)
    return clv__error_memory(error, plan->k * sizeof *layer->peps);
  for (uint32_t i = 0; i < plan->k; ++i) layer->peps[i] = *chosen->peps[i];
  return clv__gnn_plan_layer_simulate(plan, layer, error);
}

void clv__gnn_overhead_add(clv__gnn_overhead *overhead, clv__layer_sizes sizes, clv__layer_sizes padded) {
  /* Plan files may be edited: sizes may be inconsistent. */
  if (sizes.rows > sizes.targets) overhead->halo_rows += sizes.rows - sizes.targets;
  if (padded.rows > sizes.rows) overhead->padding_rows += padded.rows - sizes.rows;
  if (padded.edges > sizes.edges) overhead->padding_edges += padded.edges - sizes.edges;
}

static clv__gnn_overhead overhead_of(const clv__chosen_k *item, uint32_t layer_count) {
  clv__gnn_overhead overhead = {0};
  for (uint32_t l = 0; l < layer_count; ++l) {
    for (uint32_t i = 0; i < item->k; ++i) {
      const clv__pep *pep = item->layers[l].peps[i];
      for (uint32_t b = 0; b < pep->block_count; ++b) {
        for (uint32_t p = 0; p < pep->blocks[b].part_count; ++p)
          clv__gnn_overhead_add(&overhead, pep->blocks[b].parts[p].sizes, pep->blocks[b].parts[p].padded);
      }
    }
  }
  return overhead;
}

static clv_status make_per_k(clv__gnn_plan *plan, const clv__choice *choice, clv_error *error) {
  plan->per_k_count = choice->k_count;
  plan->per_k = clv__arena_allocate_zero(&plan->arena, choice->k_count, sizeof *plan->per_k);
  if (plan->per_k == NULL) return clv__error_memory(error, choice->k_count * sizeof *plan->per_k);
  for (uint32_t c = 0; c < choice->k_count; ++c) {
    const clv__chosen_k *item = &choice->items[c];
    clv__gnn_plan_k *out = &plan->per_k[c];
    out->k = item->k;
    if (!item->has_plan) {
      out->reason = own(plan, item->reason);
      if (out->reason == NULL) return clv__error_memory(error, sizeof item->reason);
      continue;
    }
    out->makespan_ns = item->makespan_ns, out->bound_ns = item->bound_ns, out->switches = item->switches;
    out->overhead = overhead_of(item, choice->layer_count);
    memcpy(out->busy_ns, item->busy_ns, sizeof out->busy_ns);
    memcpy(out->idle_ns, item->idle_ns, sizeof out->idle_ns);
    memcpy(out->single_ns, item->single_ns, sizeof out->single_ns);
  }
  return CLV_OK;
}

/* Determines the memory of each device that a run of the plan takes (plan->memory). Fails if a block does not fit. */
static clv_status count_memory(clv__gnn_plan *plan, clv__gnn_memory *memory, clv_error *error) {
  if (memory == NULL) return CLV_OK;
  clv__memory_count_none(memory);
  for (uint32_t l = 0; l < plan->layer_count; ++l) {
    for (uint32_t i = 0; i < plan->k; ++i) {
      const clv__pep *pep = &plan->layers[l].peps[i];
      for (uint32_t b = 0; b < pep->block_count; ++b) {
        const clv__pep_block *block = &pep->blocks[b];
        for (uint32_t n = 0; n < block->part_count; ++n) {
          const clv__memory_key key = {l, block->parts[n].device, block->first, block->last, block->parts[n].padded};
          if (block->parts[n].sizes.targets > 0) CLV__TRY(clv__gnn_memory_count(memory, &key, error));
        }
      }
    }
  }
  for (uint32_t d = 0; d < plan->machine.device_count; ++d)
    plan->memory[d] = (clv__gnn_plan_memory){memory->limit_bytes[d], clv__memory_taken(memory, d), memory->most_bytes[d]};
  return CLV_OK;
}

static clv_status fill(clv__gnn_plan *plan, const clv__gnn_plan_names *names, const clv__costs *costs, const clv__choice *choice,
                       clv_error *error) {
  const clv__chosen_k *chosen = &choice->items[choice->chosen];
  plan->machine = *costs->machine;
  bool good = true;
  for (uint32_t d = 0; d < plan->machine.device_count; ++d) {
    plan->machine.devices[d].name = own(plan, costs->machine->devices[d].name);
    good = good && plan->machine.devices[d].name != NULL;
  }
  plan->model = own(plan, names->model), plan->model_hash = own(plan, names->model_hash);
  plan->graph = own(plan, names->graph), plan->graph_hash = own(plan, names->graph_hash);
  plan->membership_key = own(plan, names->membership_key), plan->tables_hash = own(plan, names->tables_hash);
  plan->membership = "";
  plan->seed = names->seed, plan->origin = choice->origin;
  plan->k = chosen->k, plan->layer_count = choice->layer_count;
  plan->makespan_ns = chosen->makespan_ns, plan->bound_ns = chosen->bound_ns, plan->best_single_ns = choice->best_single_ns;
  bool has_single = isfinite(choice->best_single_ns);
  plan->best_single_device = has_single ? plan->machine.devices[choice->best_single_device].name : "";
  plan->best_single_k = has_single ? choice->best_single_k : 0;
  plan->why = own(plan, choice->why);
  plan->layers = clv__arena_allocate_zero(&plan->arena, plan->layer_count, sizeof *plan->layers);
  good = good && plan->model != NULL && plan->model_hash != NULL && plan->graph != NULL && plan->graph_hash != NULL;
  good = good && plan->membership_key != NULL && plan->tables_hash != NULL && plan->why != NULL && plan->layers != NULL;
  if (!good) return clv__error_memory(error, plan->layer_count * sizeof *plan->layers);
  for (uint32_t l = 0; l < plan->layer_count; ++l)
    CLV__TRY(make_layer(plan, &costs[l], &chosen->layers[l], &plan->layers[l], error));
  CLV__TRY(count_memory(plan, costs->memory, error));
  return make_per_k(plan, choice, error);
}

clv_status clv__gnn_plan_make(const clv_allocator *allocator, const clv__gnn_plan_names *names, const clv__costs *costs,
                              const clv__choice *choice, double exchange_ns, clv__gnn_plan **out, clv_error *error) {
  *out = NULL;
  clv__gnn_plan *plan = clv__allocate_zero(allocator, sizeof *plan);
  if (plan == NULL) return clv__error_memory(error, sizeof *plan);
  clv__arena_init(&plan->arena, allocator);
  plan->exchange_ns = exchange_ns;
  clv_status status = fill(plan, names, costs, choice, error);
  if (status == CLV_OK)
    *out = plan;
  else
    clv__gnn_plan_destroy(plan);
  return status;
}

void clv__gnn_plan_destroy(clv__gnn_plan *plan) {
  if (plan == NULL) return;
  const clv_allocator *allocator = plan->arena.allocator;
  clv__arena_finish(&plan->arena);
  clv__release(allocator, plan);
}

static double gap_of(double makespan_ns, double bound_ns) {
  return bound_ns > 0 ? (makespan_ns - bound_ns) / bound_ns : 0;
}

double clv__gnn_plan_gap(const clv__gnn_plan *plan) {
  return gap_of(plan->makespan_ns, plan->bound_ns);
}

double clv__gnn_plan_k_gap(const clv__gnn_plan_k *item) {
  return gap_of(item->makespan_ns, item->bound_ns);
}

/* ---- Writing ---- */

/* Writes all digits of whole nanoseconds, as milliseconds. An infinite time becomes null. */
static json_t *milliseconds(double time_ns) {
  return isfinite(time_ns) ? json_real(round(time_ns) / 1e6) : json_null();
}

static void set_text(json_t *object, const char *key, const char *text) {
  json_t *string = json_string(text);
  json_object_set_new(object, key, string != NULL ? string : json_string("?")); /* a path may not be valid UTF-8 */
}

static void set_size(json_t *object, const char *key, uint64_t size) {
  json_object_set_new(object, key, json_integer((json_int_t)size));
}

static json_t *sizes_json(clv__layer_sizes sizes) {
  json_t *list = json_array();
  json_array_append_new(list, json_integer((json_int_t)sizes.rows));
  json_array_append_new(list, json_integer((json_int_t)sizes.targets));
  json_array_append_new(list, json_integer((json_int_t)sizes.edges));
  return list;
}

static json_t *part_json(const clv__gnn_plan *plan, const clv__pep_part *part) {
  json_t *object = json_object();
  set_text(object, "device", plan->machine.devices[part->device].name);
  set_size(object, "from", part->from);
  set_size(object, "to", part->to);
  json_object_set_new(object, "sizes", sizes_json(part->sizes));
  if (part->is_static) json_object_set_new(object, "padded", sizes_json(part->padded));
  set_size(object, "bytes", part->bytes);
  json_object_set_new(object, "pack_ms", milliseconds(part->pack_ns));
  json_object_set_new(object, "in_ms", milliseconds(part->in_ns));
  json_object_set_new(object, "compute_ms", milliseconds(part->compute_ns));
  json_object_set_new(object, "out_ms", milliseconds(part->out_ns));
  return object;
}

static json_t *pep_json(const clv__gnn_plan *plan, const clv__pep *pep) {
  json_t *blocks = json_array();
  for (uint32_t b = 0; b < pep->block_count; ++b) {
    json_t *block = json_object(), *parts = json_array();
    for (uint32_t i = 0; i < pep->blocks[b].part_count; ++i)
      json_array_append_new(parts, part_json(plan, &pep->blocks[b].parts[i]));
    set_size(block, "first", pep->blocks[b].first);
    set_size(block, "last", pep->blocks[b].last);
    json_object_set_new(block, "parts", parts);
    json_object_set_new(block, "merge_ms", milliseconds(pep->blocks[b].merge_ns));
    json_object_set_new(block, "ideal_ms", milliseconds(pep->blocks[b].ideal_ns));
    json_array_append_new(blocks, block);
  }
  return blocks;
}

/* Makes an object of times in ms, such as {"cpu": 1.5, "npu": null}. null: the device cannot do this work. */
static json_t *by_device(const clv__gnn_plan *plan, const double *times_ns) {
  json_t *object = json_object();
  for (uint32_t d = 0; d < plan->machine.device_count; ++d)
    json_object_set_new(object, plan->machine.devices[d].name, milliseconds(times_ns[d]));
  return object;
}

static json_t *merge_json(const clv__gnn_plan *plan, const clv__bucket_merge *merge) {
  json_t *object = json_object(), *from = json_array();
  for (int i = 0; i < 2; ++i) json_array_append_new(from, sizes_json(merge->from[i]));
  set_text(object, "device", plan->machine.devices[merge->device].name);
  set_size(object, "first", merge->first);
  set_size(object, "last", merge->last);
  json_object_set_new(object, "from", from);
  json_object_set_new(object, "into", sizes_json(merge->into));
  set_size(object, "parts", merge->parts);
  json_object_set_new(object, "padding_ms", milliseconds(merge->added_ns));
  json_object_set_new(object, "compiling_ms", milliseconds(merge->saved_ns));
  return object;
}

/* Writes the PEP key that the subgraphs of a cluster share. */
static void set_pep(json_t *cluster, const clv__gnn_plan *plan, const clv__pep *pep) {
  clv__text text;
  clv__text_init(&text, plan->arena.allocator);
  clv__pep_describe(pep, &plan->machine, &text);
  set_text(cluster, "pep", text.failed ? "" : text.data);
  clv__text_finish(&text);
}

static json_t *layer_json(const clv__gnn_plan *plan, const clv__gnn_plan_layer *layer) {
  json_t *object = json_object(), *subgraphs = json_array(), *sequence = json_array(), *clusters = json_array();
  for (uint32_t i = 0; i < plan->k; ++i) json_array_append_new(subgraphs, pep_json(plan, &layer->peps[i]));
  for (uint32_t i = 0; i < plan->k; ++i) json_array_append_new(sequence, json_integer(layer->sequence[i]));
  for (uint32_t c = 0; c < layer->cluster_count; ++c) {
    json_t *cluster = json_object();
    set_size(cluster, "first", layer->clusters[c].first);
    set_size(cluster, "count", layer->clusters[c].count);
    set_pep(cluster, plan, &layer->peps[layer->sequence[layer->clusters[c].first]]);
    json_array_append_new(clusters, cluster);
  }
  set_text(object, "layer", layer->layer);
  set_size(object, "stages", layer->stage_count);
  set_text(object, "from", layer->from);
  json_object_set_new(object, "makespan_ms", milliseconds(layer->timeline.makespan_ns));
  json_object_set_new(object, "lower_bound_ms", milliseconds(layer->bound_ns));
  json_object_set_new(object, "lower_bound_all_ms", milliseconds(layer->bound_all_ns));
  json_object_set_new(object, "rounding_ms", milliseconds(layer->rounding_ns));
  json_object_set_new(object, "switches", json_integer(layer->timeline.switches));
  json_object_set_new(object, "busy_ms", by_device(plan, layer->timeline.busy_ns));
  json_object_set_new(object, "idle_ms", by_device(plan, layer->timeline.idle_ns));
  json_object_set_new(object, "sequence", sequence);
  json_object_set_new(object, "clusters", clusters);
  json_object_set_new(object, "subgraphs", subgraphs);
  if (layer->merge_count > 0) {
    json_t *merged = json_array();
    for (uint32_t i = 0; i < layer->merge_count; ++i) json_array_append_new(merged, merge_json(plan, &layer->merges[i]));
    json_object_set_new(object, "merged", merged);
  }
  return object;
}

static json_t *k_json(const clv__gnn_plan *plan, const clv__gnn_plan_k *item) {
  json_t *object = json_object();
  set_size(object, "k", item->k);
  if (item->reason != NULL) {
    set_text(object, "reason", item->reason);
    json_object_set_new(object, "makespan_ms", json_null());
    json_object_set_new(object, "lower_bound_ms", json_null());
    return object;
  }
  double single = INFINITY;
  for (uint32_t d = 0; d < plan->machine.device_count; ++d) single = fmin(single, item->single_ns[d]);
  json_object_set_new(object, "makespan_ms", milliseconds(item->makespan_ns));
  json_object_set_new(object, "lower_bound_ms", milliseconds(item->bound_ns));
  json_object_set_new(object, "gap", json_real(clv__gnn_plan_k_gap(item)));
  json_object_set_new(object, "gain",
                      isfinite(single) && item->makespan_ns > 0 ? json_real(single / item->makespan_ns) : json_null());
  set_size(object, "switches", item->switches);
  set_size(object, "halo_rows", item->overhead.halo_rows);
  set_size(object, "padding_rows", item->overhead.padding_rows);
  set_size(object, "padding_edges", item->overhead.padding_edges);
  json_object_set_new(object, "busy_ms", by_device(plan, item->busy_ns));
  json_object_set_new(object, "idle_ms", by_device(plan, item->idle_ns));
  json_object_set_new(object, "single_device_ms", by_device(plan, item->single_ns));
  return object;
}

static json_t *machine_json(const clv__gnn_plan *plan) {
  json_t *object = json_object(), *devices = json_array();
  for (uint32_t d = 0; d < plan->machine.device_count; ++d) {
    json_t *device = json_object();
    set_text(device, "name", plan->machine.devices[d].name);
    set_size(device, "space", plan->machine.devices[d].space);
    json_object_set_new(device, "static", json_boolean(plan->machine.devices[d].is_static));
    json_object_set_new(device, "switch_ms", milliseconds(plan->machine.devices[d].switch_ns));
    if (plan->memory[d].limit_bytes > 0) {
      set_size(device, "memory_limit_bytes", plan->memory[d].limit_bytes);
      set_size(device, "memory_bytes", plan->memory[d].taken_bytes);
      set_size(device, "least_memory_bytes", plan->memory[d].least_bytes);
    }
    json_array_append_new(devices, device);
  }
  json_object_set_new(object, "devices", devices);
  set_size(object, "pad_step", plan->machine.pad_step);
  set_size(object, "queue_depth", plan->machine.queue_depth);
  json_object_set_new(object, "merge_ms", milliseconds(plan->machine.merge_ns));
  json_object_set_new(object, "exchange_ms", milliseconds(plan->exchange_ns));
  return object;
}

static json_t *plan_json(const clv__gnn_plan *plan) {
  json_t *root = json_object(), *layers = json_array(), *per_k = json_array();
  for (uint32_t l = 0; l < plan->layer_count; ++l) json_array_append_new(layers, layer_json(plan, &plan->layers[l]));
  for (uint32_t c = 0; c < plan->per_k_count; ++c) json_array_append_new(per_k, k_json(plan, &plan->per_k[c]));
  json_object_set_new(root, "cleave_gnn_plan", json_integer(CLV__GNN_PLAN_VERSION));
  set_text(root, "model", plan->model);
  set_text(root, "model_hash", plan->model_hash);
  set_text(root, "graph", plan->graph);
  set_text(root, "graph_hash", plan->graph_hash);
  set_text(root, "membership_key", plan->membership_key);
  if (plan->membership[0] != '\0') set_text(root, "membership", plan->membership);
  set_text(root, "tables_hash", plan->tables_hash);
  set_text(root, "prices", clv__table_origin_name(plan->origin));
  set_size(root, "seed", plan->seed);
  json_object_set_new(root, "machine", machine_json(plan));
  set_size(root, "k", plan->k);
  json_object_set_new(root, "makespan_ms", milliseconds(plan->makespan_ns));
  json_object_set_new(root, "lower_bound_ms", milliseconds(plan->bound_ns));
  json_object_set_new(root, "gap", json_real(clv__gnn_plan_gap(plan)));
  json_object_set_new(root, "best_single_device_ms", milliseconds(plan->best_single_ns));
  set_text(root, "best_single_device", plan->best_single_device);
  set_size(root, "best_single_device_k", plan->best_single_k);
  set_text(root, "why", plan->why);
  json_object_set_new(root, "per_k", per_k);
  json_object_set_new(root, "layers", layers);
  return root;
}

clv_status clv__gnn_plan_print(const clv__gnn_plan *plan, clv__text *text, clv_error *error) {
  json_t *root = plan_json(plan);
  char *dumped = root == NULL ? NULL : json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
  json_decref(root);
  if (dumped == NULL) return clv__error_set(error, CLV_OUT_OF_MEMORY, "out of memory for JSON");
  clv__text_append_bytes(text, dumped, strlen(dumped));
  clv__text_append(text, "\n");
  free(dumped);
  return text->failed ? clv__error_memory(error, text->size_bytes) : CLV_OK;
}

clv_status clv__gnn_plan_write(const clv__gnn_plan *plan, const char *path, clv_error *error) {
  clv__text text;
  clv__text_init(&text, plan->arena.allocator);
  clv_status status = clv__gnn_plan_print(plan, &text, error);
  if (status == CLV_OK) status = clv__file_write(path, text.data, text.size_bytes, error);
  clv__text_finish(&text);
  return status;
}
