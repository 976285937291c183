/* Reads plans. The file is untrusted and may have been edited. Every key must be known, every number in range, every index
 * valid, and redundant statements consistent. Derived data (loads, clusters, timelines) is recomputed. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/strict_json.h"
#include "gnn/plan/plan.h"

enum { MOST_K = 65536, MOST_LAYERS = 256, MOST_NAME_BYTES = 4096, MOST_PER_K = 4096 };
#define MOST_FILE_BYTES ((size_t)1 << 30)
#define MOST_SIZE ((uint64_t)1 << 52)
#define MOST_MS 1e12

typedef struct reading {
  clv__strict_json json;
  clv__gnn_plan *plan;
} reading;

/* ---- Values ---- */

static clv_status get_index(const reading *r, const json_t *object, const char *where, const char *key, uint32_t most,
                            uint32_t *index) {
  uint64_t size;
  CLV__TRY(clv__json_size(&r->json, object, where, key, most, &size));
  *index = (uint32_t)size;
  return CLV_OK;
}

/* Converts milliseconds to nanoseconds. With `may_be_null`, `null` gives INFINITY. */
static clv_status take_time(const reading *r, const json_t *value, const char *where, const char *key, bool may_be_null,
                            double *time_ns) {
  *time_ns = INFINITY;
  if (may_be_null && json_is_null(value)) return CLV_OK;
  if (!json_is_number(value)) return clv__json_bad(&r->json, "%s: '%s' must be a number", where, key);
  double got = json_number_value(value);
  if (!(got >= 0 && got <= MOST_MS))
    return clv__json_bad(&r->json, "%s: '%s' is %g ms; expected 0 to %g", where, key, got, MOST_MS);
  *time_ns = round(got * 1e6);
  return CLV_OK;
}

static clv_status get_time(const reading *r, const json_t *object, const char *where, const char *key, double *time_ns) {
  return take_time(r, json_object_get(object, key), where, key, false, time_ns);
}

static clv_status get_text(const reading *r, const json_t *object, const char *where, const char *key, const char **text) {
  const char *found;
  CLV__TRY(clv__json_string(&r->json, object, where, key, 0, MOST_NAME_BYTES, &found));
  *text = clv__arena_string(&r->plan->arena, found, strlen(found));
  return *text != NULL ? CLV_OK : clv__error_memory(r->json.error, strlen(found));
}

static uint32_t find_device(const clv__gnn_plan *plan, const char *name) {
  for (uint32_t d = 0; d < plan->machine.device_count && name != NULL; ++d) {
    if (strcmp(plan->machine.devices[d].name, name) == 0) return d;
  }
  return CLV__NO_ID;
}

static clv_status get_by_device(const reading *r, const json_t *object, const char *where, const char *key, double *times_ns) {
  json_t *value = json_object_get(object, key), *each;
  const char *name;
  if (!json_is_object(value) || json_object_size(value) != r->plan->machine.device_count)
    return clv__json_bad(&r->json, "%s: '%s' must have one time per device", where, key);
  json_object_foreach(value, name, each) {
    uint32_t device = find_device(r->plan, name);
    if (device == CLV__NO_ID) return clv__json_bad(&r->json, "%s: '%s': there is no device '%.60s'", where, key, name);
    CLV__TRY(take_time(r, each, where, key, true, &times_ns[device]));
  }
  return CLV_OK;
}

/* ---- Plans of subgraphs ---- */

static clv_status take_sizes(const reading *r, const json_t *list, const char *where, const char *key, clv__layer_sizes *sizes) {
  uint64_t *places[] = {&sizes->rows, &sizes->targets, &sizes->edges};
  for (size_t i = 0; i < 3; ++i) {
    const json_t *value = json_array_get(list, i);
    json_int_t got = json_integer_value(value);
    if (json_array_size(list) != 3 || !json_is_integer(value) || got < 0 || (uint64_t)got > MOST_SIZE)
      return clv__json_bad(&r->json, "%s: '%s' must be three whole numbers: rows, targets and edges", where, key);
    *places[i] = (uint64_t)got;
  }
  return sizes->targets <= sizes->rows ? CLV_OK : clv__json_bad(&r->json, "%s: '%s' has more targets than rows", where, key);
}

static clv_status get_sizes(const reading *r, const json_t *object, const char *where, const char *key, clv__layer_sizes *sizes) {
  return take_sizes(r, json_object_get(object, key), where, key, sizes);
}

static clv_status read_part(const reading *r, json_t *item, const char *where, clv__pep_part *part) {
  static const char *const keys[] = {"device",  "from",  "to",         "sizes",  "padded", "bytes",
                                     "pack_ms", "in_ms", "compute_ms", "out_ms", NULL};
  CLV__TRY(clv__json_check_keys(&r->json, item, where, keys));
  const char *name = json_string_value(json_object_get(item, "device"));
  part->device = find_device(r->plan, name);
  if (part->device == CLV__NO_ID)
    return clv__json_bad(&r->json, "%s: 'device' is '%.60s', which the plan does not have", where, name ? name : "");
  part->is_static = r->plan->machine.devices[part->device].is_static;
  CLV__TRY(get_index(r, item, where, "from", CLV__PEP_SHARES, &part->from));
  CLV__TRY(get_index(r, item, where, "to", CLV__PEP_SHARES, &part->to));
  CLV__TRY(get_sizes(r, item, where, "sizes", &part->sizes));
  part->padded = part->sizes;
  if (part->is_static) CLV__TRY(get_sizes(r, item, where, "padded", &part->padded));
  if (!part->is_static && json_object_get(item, "padded") != NULL)
    return clv__json_bad(&r->json, "%s: 'padded' is only for devices that need fixed shapes", where);
  if (part->padded.rows < part->sizes.rows || part->padded.edges < part->sizes.edges)
    return clv__json_bad(&r->json, "%s: 'padded' is less than 'sizes'", where);
  CLV__TRY(clv__json_size(&r->json, item, where, "bytes", MOST_SIZE, &part->bytes));
  CLV__TRY(get_time(r, item, where, "pack_ms", &part->pack_ns));
  CLV__TRY(get_time(r, item, where, "in_ms", &part->in_ns));
  CLV__TRY(get_time(r, item, where, "compute_ms", &part->compute_ns));
  CLV__TRY(get_time(r, item, where, "out_ms", &part->out_ns));
  part->time_ns = part->pack_ns + part->in_ns + part->compute_ns + part->out_ns;
  return CLV_OK;
}

static clv_status read_block(const reading *r, json_t *item, const char *where, uint32_t stages, uint32_t *used,
                             clv__pep_block *block) {
  static const char *const keys[] = {"first", "last", "parts", "merge_ms", "ideal_ms", NULL};
  json_t *parts;
  uint32_t at = 0;
  CLV__TRY(clv__json_check_keys(&r->json, item, where, keys));
  CLV__TRY(get_index(r, item, where, "first", stages, &block->first));
  CLV__TRY(get_index(r, item, where, "last", stages, &block->last));
  CLV__TRY(clv__json_list(&r->json, item, where, "parts", 1, CLV__PEP_DEVICES, &parts));
  CLV__TRY(get_time(r, item, where, "merge_ms", &block->merge_ns));
  CLV__TRY(get_time(r, item, where, "ideal_ms", &block->ideal_ns));
  block->part_count = (uint32_t)json_array_size(parts);
  for (uint32_t i = 0; i < block->part_count; ++i) {
    clv__pep_part *part = &block->parts[i];
    CLV__TRY(read_part(r, json_array_get(parts, i), where, part));
    if ((*used >> part->device & 1u) != 0)
      return clv__json_bad(&r->json, "%s: device '%s' has two parts", where, r->plan->machine.devices[part->device].name);
    *used |= 1u << part->device;
    if (part->from != at || part->to <= part->from)
      return clv__json_bad(&r->json, "%s: shares must be consecutive from 0 to %d", where, CLV__PEP_SHARES);
    at = part->to;
    block->time_ns = fmax(block->time_ns, part->time_ns);
  }
  block->time_ns += block->merge_ns;
  return at == CLV__PEP_SHARES ? CLV_OK
                               : clv__json_bad(&r->json, "%s: the shares end at %u; expected %d", where, at, CLV__PEP_SHARES);
}

static clv_status read_pep(const reading *r, json_t *blocks, uint32_t layer, uint32_t subgraph, uint32_t stages, clv__pep *pep) {
  char where[96];
  uint32_t used = 0, at = 0;
  snprintf(where, sizeof where, "layers[%u]: subgraphs[%u]", layer, subgraph);
  if (!json_is_array(blocks) || json_array_size(blocks) == 0 || json_array_size(blocks) > CLV__PEP_BLOCKS)
    return clv__json_bad(&r->json, "%s must be a list of 1 to %d blocks", where, CLV__PEP_BLOCKS);
  pep->block_count = (uint32_t)json_array_size(blocks);
  for (uint32_t b = 0; b < pep->block_count; ++b) {
    snprintf(where, sizeof where, "layers[%u]: subgraphs[%u]: block %u", layer, subgraph, b);
    CLV__TRY(read_block(r, json_array_get(blocks, b), where, stages, &used, &pep->blocks[b]));
    if (pep->blocks[b].first != at || pep->blocks[b].last <= at)
      return clv__json_bad(&r->json, "%s: it has stages %u to %u, but must start at stage %u and end after it", where,
                           pep->blocks[b].first, pep->blocks[b].last, at);
    at = pep->blocks[b].last;
  }
  if (at != stages) return clv__json_bad(&r->json, "%s: the last block ends at stage %u; expected %u", where, at, stages);
  clv__pep_finish(pep);
  return CLV_OK;
}

/* ---- Layers ---- */

static clv_status read_sequence(const reading *r, const json_t *item, const char *where, clv__gnn_plan_layer *layer) {
  json_t *list;
  uint32_t k = r->plan->k;
  CLV__TRY(clv__json_list(&r->json, item, where, "sequence", k, k, &list));
  bool *seen = clv__arena_allocate_zero(&r->plan->arena, k, sizeof *seen);
  layer->sequence = clv__arena_allocate_zero(&r->plan->arena, k, sizeof *layer->sequence);
  if (seen == NULL || layer->sequence == NULL) return clv__error_memory(r->json.error, k * sizeof *layer->sequence);
  for (uint32_t i = 0; i < k; ++i) {
    const json_t *value = json_array_get(list, i);
    json_int_t got = json_integer_value(value);
    if (!json_is_integer(value) || got < 0 || got >= (json_int_t)k || seen[got])
      return clv__json_bad(&r->json, "%s: sequence[%u] must be a subgraph number below %u that appears once", where, i, k);
    seen[got] = true;
    layer->sequence[i] = (uint32_t)got;
  }
  return CLV_OK;
}

/* Compares a cluster's PEP key with that of its subgraphs. Older plan files have no key. */
static clv_status check_key(const reading *r, const json_t *cluster, const char *where, const clv__pep *pep) {
  const char *said = json_string_value(json_object_get(cluster, "pep"));
  clv__text text;
  if (json_object_get(cluster, "pep") == NULL) return CLV_OK;
  clv__text_init(&text, r->plan->arena.allocator);
  clv__pep_describe(pep, &r->plan->machine, &text);
  clv_status status = CLV_OK;
  if (text.failed)
    status = clv__error_memory(r->json.error, text.size_bytes);
  else if (said == NULL || strcmp(said, text.data) != 0)
    status = clv__json_bad(&r->json, "%s: a cluster has 'pep' '%.120s', but according to its subgraphs '%.120s'", where,
                           said != NULL ? said : "", text.data);
  clv__text_finish(&text);
  return status;
}

/* Compares the listed clusters with those that follow from the plans and the sequence, because an edited file may not match. */
static clv_status check_clusters(const reading *r, const json_t *item, const char *where, const clv__gnn_plan_layer *layer) {
  static const char *const keys[] = {"first", "count", "pep", NULL};
  json_t *list;
  CLV__TRY(clv__json_list(&r->json, item, where, "clusters", 1, r->plan->k, &list));
  if (json_array_size(list) != layer->cluster_count)
    return clv__json_bad(&r->json, "%s: %zu clusters are listed, but the plans form %u", where, json_array_size(list),
                         layer->cluster_count);
  for (uint32_t c = 0; c < layer->cluster_count; ++c) {
    uint32_t first, count;
    json_t *cluster = json_array_get(list, c);
    CLV__TRY(clv__json_check_keys(&r->json, cluster, where, keys));
    CLV__TRY(get_index(r, cluster, where, "first", r->plan->k, &first));
    CLV__TRY(get_index(r, cluster, where, "count", r->plan->k, &count));
    if (first != layer->clusters[c].first || count != layer->clusters[c].count)
      return clv__json_bad(&r->json, "%s: cluster %u has %u subgraphs from position %u, but according to the plans %u from %u",
                           where, c, count, first, layer->clusters[c].count, layer->clusters[c].first);
    CLV__TRY(check_key(r, cluster, where, &layer->peps[layer->sequence[first]]));
  }
  return CLV_OK;
}

/* Reads a merge of buckets. A run does not use it, because the parts have the padded sizes; it is kept for reports. */
static clv_status read_merge(const reading *r, json_t *item, const char *where, uint32_t stages, clv__bucket_merge *merge) {
  static const char *const keys[] = {"device", "first", "last", "from", "into", "parts", "padding_ms", "compiling_ms", NULL};
  json_t *from;
  CLV__TRY(clv__json_check_keys(&r->json, item, where, keys));
  merge->device = find_device(r->plan, json_string_value(json_object_get(item, "device")));
  if (merge->device == CLV__NO_ID) return clv__json_bad(&r->json, "%s: 'device' is not a device of the plan", where);
  CLV__TRY(get_index(r, item, where, "first", stages, &merge->first));
  CLV__TRY(get_index(r, item, where, "last", stages, &merge->last));
  if (merge->first >= merge->last)
    return clv__json_bad(&r->json, "%s: 'first' is %u, but must be less than 'last', which is %u", where, merge->first,
                         merge->last);
  CLV__TRY(clv__json_list(&r->json, item, where, "from", 2, 2, &from));
  for (size_t i = 0; i < 2; ++i) CLV__TRY(take_sizes(r, json_array_get(from, i), where, "from", &merge->from[i]));
  CLV__TRY(get_sizes(r, item, where, "into", &merge->into));
  CLV__TRY(get_index(r, item, where, "parts", UINT32_MAX, &merge->parts));
  CLV__TRY(get_time(r, item, where, "padding_ms", &merge->added_ns));
  return get_time(r, item, where, "compiling_ms", &merge->saved_ns);
}

static clv_status read_merges(const reading *r, const json_t *item, uint32_t number, clv__gnn_plan_layer *layer) {
  json_t *merged;
  char where[64];
  if (json_object_get(item, "merged") == NULL) return CLV_OK;
  snprintf(where, sizeof where, "layers[%u]", number);
  CLV__TRY(clv__json_list(&r->json, item, where, "merged", 1, (size_t)r->plan->k * CLV__PEP_DEVICES, &merged));
  layer->merges = clv__arena_allocate_zero(&r->plan->arena, json_array_size(merged), sizeof *layer->merges);
  if (layer->merges == NULL) return clv__error_memory(r->json.error, json_array_size(merged) * sizeof *layer->merges);
  layer->merge_count = (uint32_t)json_array_size(merged);
  for (uint32_t i = 0; i < layer->merge_count; ++i) {
    snprintf(where, sizeof where, "layers[%u]: merged[%u]", number, i);
    CLV__TRY(read_merge(r, json_array_get(merged, i), where, layer->stage_count, &layer->merges[i]));
  }
  return CLV_OK;
}

static clv_status read_layer(const reading *r, json_t *item, uint32_t number) {
  static const char *const keys[] = {"layer",       "stages",   "from",    "makespan_ms", "lower_bound_ms", "lower_bound_all_ms",
                                     "rounding_ms", "switches", "busy_ms", "idle_ms",     "sequence",       "clusters",
                                     "subgraphs",   "merged",   NULL};
  clv__gnn_plan_layer *layer = &r->plan->layers[number];
  char where[64];
  json_t *subgraphs;
  snprintf(where, sizeof where, "layers[%u]", number);
  CLV__TRY(clv__json_check_keys(&r->json, item, where, keys));
  CLV__TRY(get_text(r, item, where, "layer", &layer->layer));
  CLV__TRY(get_text(r, item, where, "from", &layer->from));
  CLV__TRY(get_index(r, item, where, "stages", CLV__TABLE_STAGES, &layer->stage_count));
  CLV__TRY(get_time(r, item, where, "lower_bound_ms", &layer->bound_ns));
  CLV__TRY(get_time(r, item, where, "lower_bound_all_ms", &layer->bound_all_ns));
  CLV__TRY(get_time(r, item, where, "rounding_ms", &layer->rounding_ns));
  CLV__TRY(clv__json_list(&r->json, item, where, "subgraphs", r->plan->k, r->plan->k, &subgraphs));
  layer->peps = clv__arena_allocate_zero(&r->plan->arena, r->plan->k, sizeof *layer->peps);
  if (layer->peps == NULL) return clv__error_memory(r->json.error, r->plan->k * sizeof *layer->peps);
  for (uint32_t i = 0; i < r->plan->k; ++i)
    CLV__TRY(read_pep(r, json_array_get(subgraphs, i), number, i, layer->stage_count, &layer->peps[i]));
  CLV__TRY(read_merges(r, item, number, layer));
  CLV__TRY(read_sequence(r, item, where, layer));
  CLV__TRY(clv__gnn_plan_layer_simulate(r->plan, layer, r->json.error));
  return check_clusters(r, item, where, layer);
}

/* ---- The file outside its layers ---- */

/* Older plans, and devices without a limit, state no memory. */
static clv_status read_memory(const reading *r, const json_t *item, clv__gnn_plan_memory *memory) {
  if (json_object_get(item, "memory_limit_bytes") == NULL) return CLV_OK;
  CLV__TRY(clv__json_size(&r->json, item, "machine: devices", "memory_limit_bytes", INT64_MAX, &memory->limit_bytes));
  CLV__TRY(clv__json_size(&r->json, item, "machine: devices", "memory_bytes", INT64_MAX, &memory->taken_bytes));
  return clv__json_size(&r->json, item, "machine: devices", "least_memory_bytes", INT64_MAX, &memory->least_bytes);
}

static clv_status read_machine(const reading *r, const json_t *root) {
  static const char *const keys[] = {"devices", "pad_step", "queue_depth", "merge_ms", "switch_ms", "exchange_ms", NULL};
  static const char *const device_keys[] = {
      "name", "space", "static", "switch_ms", "memory_limit_bytes", "memory_bytes", "least_memory_bytes", NULL};
  double switch_ns = 0; /* for all devices: older plans have a single switch time */
  clv__machine *machine = &r->plan->machine;
  json_t *object = json_object_get(root, "machine"), *devices;
  CLV__TRY(clv__json_check_keys(&r->json, object, "machine", keys));
  CLV__TRY(clv__json_list(&r->json, object, "machine", "devices", 1, CLV__PEP_DEVICES, &devices));
  CLV__TRY(clv__json_size(&r->json, object, "machine", "pad_step", MOST_SIZE, &machine->pad_step));
  CLV__TRY(get_index(r, object, "machine", "queue_depth", CLV__QUEUE_DEPTH, &machine->queue_depth));
  CLV__TRY(get_time(r, object, "machine", "merge_ms", &machine->merge_ns));
  if (json_object_get(object, "switch_ms") != NULL) CLV__TRY(get_time(r, object, "machine", "switch_ms", &switch_ns));
  CLV__TRY(get_time(r, object, "machine", "exchange_ms", &r->plan->exchange_ns));
  if (machine->pad_step == 0 || machine->queue_depth == 0)
    return clv__json_bad(&r->json, "machine: 'pad_step' and 'queue_depth' must be 1 or more");
  for (size_t d = 0; d < json_array_size(devices); ++d) {
    clv__machine_device *device = &machine->devices[d];
    json_t *item = json_array_get(devices, d);
    CLV__TRY(clv__json_check_keys(&r->json, item, "machine: devices", device_keys));
    CLV__TRY(get_text(r, item, "machine: devices", "name", &device->name));
    CLV__TRY(get_index(r, item, "machine: devices", "space", UINT16_MAX, &device->space));
    if (!json_is_boolean(json_object_get(item, "static")))
      return clv__json_bad(&r->json, "machine: devices: 'static' must be true or false");
    device->is_static = json_is_true(json_object_get(item, "static"));
    CLV__TRY(read_memory(r, item, &r->plan->memory[d]));
    device->memory_bytes = r->plan->memory[d].limit_bytes;
    device->switch_ns = switch_ns;
    if (json_object_get(item, "switch_ms") != NULL)
      CLV__TRY(get_time(r, item, "machine: devices", "switch_ms", &device->switch_ns));
    if (find_device(r->plan, device->name) != CLV__NO_ID)
      return clv__json_bad(&r->json, "machine: device '%.60s' appears twice", device->name);
    machine->device_count = (uint32_t)d + 1;
  }
  return CLV_OK;
}

static clv_status read_k(const reading *r, json_t *item, uint32_t number) {
  static const char *const keys[] = {
      "k",       "reason",           "makespan_ms", "lower_bound_ms", "gap",          "gain",          "busy_ms",
      "idle_ms", "single_device_ms", "switches",    "halo_rows",      "padding_rows", "padding_edges", NULL};
  clv__gnn_plan_k *out = &r->plan->per_k[number];
  char where[64];
  snprintf(where, sizeof where, "per_k[%u]", number);
  CLV__TRY(clv__json_check_keys(&r->json, item, where, keys));
  CLV__TRY(get_index(r, item, where, "k", UINT32_MAX - 1, &out->k));
  if (json_object_get(item, "reason") != NULL) return get_text(r, item, where, "reason", &out->reason);
  CLV__TRY(get_time(r, item, where, "makespan_ms", &out->makespan_ns));
  CLV__TRY(get_time(r, item, where, "lower_bound_ms", &out->bound_ns));
  CLV__TRY(get_index(r, item, where, "switches", UINT32_MAX - 1, &out->switches));
  CLV__TRY(clv__json_size(&r->json, item, where, "halo_rows", INT64_MAX, &out->overhead.halo_rows));
  CLV__TRY(clv__json_size(&r->json, item, where, "padding_rows", INT64_MAX, &out->overhead.padding_rows));
  CLV__TRY(clv__json_size(&r->json, item, where, "padding_edges", INT64_MAX, &out->overhead.padding_edges));
  CLV__TRY(get_by_device(r, item, where, "busy_ms", out->busy_ns));
  CLV__TRY(get_by_device(r, item, where, "idle_ms", out->idle_ns));
  return get_by_device(r, item, where, "single_device_ms", out->single_ns);
}

static clv_status read_head(const reading *r, const json_t *root) {
  clv__gnn_plan *plan = r->plan;
  const char *prices = NULL;
  CLV__TRY(get_text(r, root, "plan", "model", &plan->model));
  CLV__TRY(get_text(r, root, "plan", "model_hash", &plan->model_hash));
  CLV__TRY(get_text(r, root, "plan", "graph", &plan->graph));
  CLV__TRY(get_text(r, root, "plan", "graph_hash", &plan->graph_hash));
  CLV__TRY(get_text(r, root, "plan", "membership_key", &plan->membership_key));
  plan->membership = "";
  if (json_object_get(root, "membership") != NULL) CLV__TRY(get_text(r, root, "plan", "membership", &plan->membership));
  if (strchr(plan->membership, '/') != NULL)
    return clv__json_bad(&r->json, "plan: 'membership' is '%.60s'; expected the name of a file in the folder of the plan",
                         plan->membership);
  CLV__TRY(get_text(r, root, "plan", "tables_hash", &plan->tables_hash));
  CLV__TRY(get_text(r, root, "plan", "best_single_device", &plan->best_single_device));
  CLV__TRY(get_text(r, root, "plan", "why", &plan->why));
  CLV__TRY(get_text(r, root, "plan", "prices", &prices));
  for (int o = CLV__MEASURED; o <= CLV__NOMINAL; ++o) {
    if (strcmp(prices, clv__table_origin_name((clv__table_origin)o)) == 0) plan->origin = (clv__table_origin)o, prices = "";
  }
  if (prices[0] != '\0')
    return clv__json_bad(&r->json, "plan: 'prices' is '%.40s'; expected measured, imported, synthetic or nominal", prices);
  CLV__TRY(clv__json_size(&r->json, root, "plan", "seed", INT64_MAX, &plan->seed));
  CLV__TRY(get_index(r, root, "plan", "k", MOST_K, &plan->k));
  CLV__TRY(get_index(r, root, "plan", "best_single_device_k", MOST_K, &plan->best_single_k));
  CLV__TRY(get_time(r, root, "plan", "lower_bound_ms", &plan->bound_ns));
  CLV__TRY(
      take_time(r, json_object_get(root, "best_single_device_ms"), "plan", "best_single_device_ms", true, &plan->best_single_ns));
  return plan->k > 0 ? CLV_OK : clv__json_bad(&r->json, "plan: 'k' must be 1 or more");
}

static clv_status read_root(const reading *r, json_t *root) {
  static const char *const keys[] = {"cleave_gnn_plan",
                                     "model",
                                     "model_hash",
                                     "graph",
                                     "graph_hash",
                                     "membership_key",
                                     "membership",
                                     "prices",
                                     "seed",
                                     "machine",
                                     "k",
                                     "makespan_ms",
                                     "why",
                                     "gap",
                                     "lower_bound_ms",
                                     "best_single_device_ms",
                                     "tables_hash",
                                     "per_k",
                                     "layers",
                                     "best_single_device",
                                     "best_single_device_k",
                                     NULL};
  clv__gnn_plan *plan = r->plan;
  json_t *layers, *per_k;
  uint64_t version;
  if (!json_is_integer(json_object_get(root, "cleave_gnn_plan")))
    return clv__json_bad(&r->json, "not a plan: it has no 'cleave_gnn_plan'");
  CLV__TRY(clv__json_size(&r->json, root, "plan", "cleave_gnn_plan", UINT32_MAX, &version));
  if (version != CLV__GNN_PLAN_VERSION)
    return clv__json_bad(&r->json, "version %" PRIu64 " is unknown; this library reads version %d: plan again", version,
                         CLV__GNN_PLAN_VERSION);
  CLV__TRY(clv__json_check_keys(&r->json, root, "plan", keys));
  CLV__TRY(read_machine(r, root));
  CLV__TRY(read_head(r, root));
  CLV__TRY(clv__json_list(&r->json, root, "plan", "layers", 1, MOST_LAYERS, &layers));
  CLV__TRY(clv__json_list(&r->json, root, "plan", "per_k", 0, MOST_PER_K, &per_k));
  plan->layers = clv__arena_allocate_zero(&plan->arena, json_array_size(layers), sizeof *plan->layers);
  plan->per_k = clv__arena_allocate_zero(&plan->arena, json_array_size(per_k), sizeof *plan->per_k);
  if (plan->layers == NULL || plan->per_k == NULL)
    return clv__error_memory(r->json.error, json_array_size(layers) * sizeof *plan->layers);
  plan->layer_count = (uint32_t)json_array_size(layers), plan->per_k_count = (uint32_t)json_array_size(per_k);
  for (uint32_t c = 0; c < plan->per_k_count; ++c) CLV__TRY(read_k(r, json_array_get(per_k, c), c));
  for (uint32_t l = 0; l < plan->layer_count; ++l) {
    CLV__TRY(read_layer(r, json_array_get(layers, l), l));
    plan->makespan_ns += plan->layers[l].timeline.makespan_ns + (l > 0 ? plan->exchange_ns : 0);
  }
  return CLV_OK;
}

clv_status clv__gnn_plan_parse(const clv_allocator *allocator, const char *text, size_t size_bytes, const char *name,
                               clv__gnn_plan **out, clv_error *error) {
  json_t *root;
  reading r = {.json = {.name = name, .error = error}};
  *out = NULL;
  CLV__TRY(clv__json_parse(&r.json, text, size_bytes, MOST_FILE_BYTES, "plan", &root));
  r.plan = clv__allocate_zero(allocator, sizeof *r.plan);
  if (r.plan != NULL) clv__arena_init(&r.plan->arena, allocator);
  clv_status status = r.plan != NULL ? read_root(&r, root) : clv__error_memory(error, sizeof *r.plan);
  json_decref(root);
  if (status == CLV_OK)
    *out = r.plan;
  else
    clv__gnn_plan_destroy(r.plan);
  return status;
}

clv_status clv__gnn_plan_read(const clv_allocator *allocator, const char *path, clv__gnn_plan **plan, clv_error *error) {
  clv__file_map map;
  *plan = NULL;
  CLV__TRY(clv__file_map_open(path, &map, error));
  clv_status status = clv__gnn_plan_parse(allocator, (const char *)map.data, map.size_bytes, path, plan, error);
  clv__file_map_close(&map);
  return status;
}
