/* Reads the partitions of a plan file. Nodes and devices appear by name, each node that runs appears once, and the order must be
 * executable. */
#include <stdlib.h>
#include <string.h>

#include "plan/file.h"

clv_status clv__plan_keep_text(clv_plan *plan, const json_t *object, const char *key, const char **kept, clv_error *error) {
  const char *text = json_string_value(json_object_get(object, key));
  *kept = text == NULL ? NULL : clv__arena_string(&plan->arena, text, strlen(text));
  return text == NULL || *kept != NULL ? CLV_OK : clv__error_memory(error, strlen(text));
}

/* The cut of the file, filled partition by partition. */
typedef struct reading {
  clv_plan *plan;
  clv__map names; /* from node names to graph nodes */
  clv__map weights;
  clv__cut cut;
  uint16_t *streamed; /* by weight: bits of the devices to which it is streamed */
  uint32_t *read_by;  /* by weight: 1 + the last partition that reads it, among the partitions that list streamed weights */
  bool is_streaming;
} reading;

static int compare_nodes(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* Reads which weights are streamed to the device for this partition. */
static clv_status read_streamed(reading *r, const json_t *item, uint32_t index, clv_error *error) {
  const json_t *list = json_object_get(item, "streamed");
  const clv__problem *problem = r->plan->problem;
  uint32_t device = r->cut.devices[index];
  if (json_array_size(list) == 0) return CLV_OK;
  if (problem->spaces[device] == CLV__SPACE_HOST) {
    return clv__error_set(error, CLV_INVALID_MODEL, "weights cannot be streamed to %s, which uses host memory",
                          problem->device_names[device]);
  }
  for (uint32_t i = r->cut.offsets[index]; i < r->cut.offsets[index + 1]; ++i) {
    uint32_t node = r->cut.nodes[i];
    for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k)
      r->read_by[problem->weights[k]] = index + 1;
  }
  for (size_t i = 0; i < json_array_size(list); ++i) {
    const char *name = json_string_value(json_array_get(list, i));
    if (name == NULL) return clv__error_set(error, CLV_INVALID_MODEL, "\"streamed\" must list names");
    uint32_t weight = clv__map_find(&r->weights, name);
    if (weight == CLV__MAP_NONE) return clv__error_set(error, CLV_INVALID_MODEL, "the model has no weight '%s'", name);
    if (r->read_by[weight] != index + 1)
      return clv__error_set(error, CLV_INVALID_MODEL, "'streamed' lists weight '%s', which none of the partition's nodes reads",
                            name);
    r->streamed[weight] |= (uint16_t)(1u << device);
    r->is_streaming = true;
  }
  return CLV_OK;
}

/* Checks that the partition has no hosted views, or nothing but hosted views. `ids` are its problem nodes. */
static clv_status check_views(const clv_plan *plan, uint32_t device, const uint32_t *ids, size_t count, clv_error *error) {
  uint32_t view = CLV__NONE, other = CLV__NONE;
  for (size_t i = 0; i < count; ++i) {
    if (clv__is_hosted(plan->problem, ids[i], device))
      view = ids[i];
    else
      other = ids[i];
  }
  if (view == CLV__NONE || other == CLV__NONE) return CLV_OK;
  return clv__error_set(error, CLV_NOT_SUPPORTED,
                        "node '%s': %s cannot run it: %s; the host renames it there: list it in a partition of such views, after "
                        "that of its source",
                        plan->problem->node_names[view], plan->devices->items[device].name,
                        clv__capability_answer(&plan->capability, plan->problem->node_ids[view], device));
}

static clv_status read_partition(reading *r, const json_t *item, uint32_t index, clv_error *error) {
  clv_plan *plan = r->plan;
  const clv__map *names = &r->names;
  const char *device_name = json_string_value(json_object_get(item, "device"));
  if (device_name == NULL) return clv__error_set(error, CLV_INVALID_MODEL, "\"device\" is missing");
  uint32_t device = clv__devices_find(plan->devices, device_name);
  if (device == CLV__NO_ID)
    return clv__error_set(error, CLV_INVALID_MODEL, "device '%s' is not one of the open devices", device_name);
  const json_t *nodes = json_object_get(item, "nodes");
  size_t count = json_array_size(nodes);
  if (count == 0) return clv__error_set(error, CLV_INVALID_MODEL, "it has no nodes");
  uint32_t *ids = r->cut.nodes + r->cut.offsets[index]; /* cannot overflow: each node that runs appears only once */
  for (size_t i = 0; i < count; ++i) {
    const char *name = json_string_value(json_array_get(nodes, i));
    if (name == NULL) return clv__error_set(error, CLV_INVALID_MODEL, "\"nodes\" must list names");
    clv_node_id id = clv__map_find(names, name);
    if (id == CLV__NO_ID) return clv__error_set(error, CLV_INVALID_MODEL, "the model has no node '%s'", name);
    if (plan->shapes->node_folded[id]) {
      return clv__error_set(error, CLV_INVALID_MODEL,
                            "node '%s' is computed while planning, so no device runs it: remove it from the plan, or plan again",
                            name);
    }
    if (plan->placement.devices[id] != CLV__NO_ID) {
      return clv__error_set(error, CLV_INVALID_MODEL, "node '%s' is in two partitions", name);
    }
    const char *reason = clv__capability_reason(&plan->capability, id, device);
    if (reason != NULL) {
      return clv__error_set(error, CLV_NOT_SUPPORTED, "node '%s': %s cannot run it: %s", name, device_name, reason);
    }
    plan->placement.devices[id] = device;
    ids[i] = plan->problem_nodes[id];
    r->cut.partition_of[ids[i]] = index;
  }
  CLV__TRY(check_views(plan, device, ids, count, error));
  qsort(ids, count, sizeof *ids, compare_nodes);
  r->cut.devices[index] = device;
  r->cut.offsets[index + 1] = r->cut.offsets[index] + (uint32_t)count;
  return read_streamed(r, item, index, error);
}

/* Checks that partitions are listed in execution order: a node's inputs must be computed in its own or an earlier partition. */
static clv_status check_order(const reading *r, clv_error *error) {
  const clv__problem *problem = r->plan->problem;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    for (uint32_t i = problem->read_offsets[n]; i < problem->read_offsets[n + 1]; ++i) {
      uint32_t producer = problem->producers[problem->reads[i]], reads = r->cut.partition_of[n];
      if (producer == CLV__NONE || r->cut.partition_of[producer] <= reads) continue;
      return clv__error_set(
          error, CLV_INVALID_MODEL,
          "partition %u reads '%s' (for node '%s') before partition %u produces it: list the partitions in execution order",
          reads, problem->value_names[problem->reads[i]], problem->node_names[n], r->cut.partition_of[producer]);
    }
  }
  return CLV_OK;
}

/* Reads the causes and notes of nodes. They apply if the node's partition is still on the device recorded with the cause. Nodes
 * that were moved by hand get the cause `file`. */
static clv_status read_causes(clv_plan *plan, const json_t *root, const clv__map *names, clv_error *error) {
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) {
    plan->placement.causes[n] = plan->shapes->node_folded[n] ? "const" : "file";
    if (!plan->shapes->node_folded[n] && plan->placement.devices[n] == CLV__NO_ID) {
      return clv__error_set(error, CLV_INVALID_MODEL,
                            "node '%s' is in no partition: plan again, or add it to a partition if it was removed by hand",
                            plan->graph->nodes[n].name);
    }
  }
  const json_t *nodes = json_object_get(root, "nodes");
  for (size_t i = 0; i < json_array_size(nodes); ++i) {
    const json_t *item = json_array_get(nodes, i);
    const char *name = json_string_value(json_object_get(item, "name"));
    const char *device = json_string_value(json_object_get(item, "device"));
    uint32_t id = name == NULL ? CLV__MAP_NONE : clv__map_find(names, name);
    if (id == CLV__MAP_NONE || plan->placement.devices[id] == CLV__NO_ID || device == NULL) continue;
    if (strcmp(plan->devices->items[plan->placement.devices[id]].name, device) != 0) continue;
    const char *cause;
    CLV__TRY(clv__plan_keep_text(plan, item, "cause", &cause, error));
    CLV__TRY(clv__plan_keep_text(plan, item, "note", &plan->placement.notes[id], error));
    if (cause != NULL) plan->placement.causes[id] = cause;
  }
  return CLV_OK;
}

static clv_status name_all(reading *r, clv_error *error) {
  const clv_graph *graph = r->plan->graph;
  const clv__problem *problem = r->plan->problem;
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    r->plan->placement.devices[n] = CLV__NO_ID;
    if (!clv__map_set(&r->names, graph->nodes[n].name, n)) return clv__error_memory(error, sizeof(clv__map_slot));
  }
  for (uint32_t w = 0; w < problem->weight_count; ++w) {
    if (!clv__map_set(&r->weights, problem->weight_names[w], w)) return clv__error_memory(error, sizeof(clv__map_slot));
  }
  return CLV_OK;
}

clv_status clv__plan_read_partitions(clv_plan *plan, const json_t *root, clv_error *error) {
  const json_t *list = json_object_get(root, "partitions");
  size_t count = json_array_size(list), nodes = plan->problem->node_count;
  if (count > nodes)
    return clv__error_set(error, CLV_INVALID_MODEL,
                          "%zu partitions, but only %zu nodes to run: each partition needs at least one", count, nodes);
  clv__arena *arena = &plan->arena;
  reading r = {.plan = plan,
               .streamed = clv__arena_allocate_zero(arena, plan->problem->weight_count, sizeof *r.streamed),
               .read_by = clv__arena_allocate_zero(arena, plan->problem->weight_count, sizeof *r.read_by)};
  r.cut = (clv__cut){.count = (uint32_t)count,
                     .devices = clv__arena_allocate_zero(arena, count, sizeof *r.cut.devices),
                     .offsets = clv__arena_allocate_zero(arena, count + 1, sizeof *r.cut.offsets),
                     .nodes = clv__arena_allocate_zero(arena, nodes, sizeof *r.cut.nodes),
                     .partition_of = clv__arena_allocate_zero(arena, nodes, sizeof *r.cut.partition_of)};
  if (r.streamed == NULL || r.read_by == NULL || r.cut.devices == NULL || r.cut.offsets == NULL || r.cut.nodes == NULL ||
      r.cut.partition_of == NULL) {
    return clv__error_memory(error, nodes * sizeof *r.cut.nodes);
  }
  clv__map_init(&r.names, plan->graph->allocator);
  clv__map_init(&r.weights, plan->graph->allocator);
  clv_status status = name_all(&r, error);
  for (uint32_t p = 0; p < count && status == CLV_OK; ++p) {
    status = read_partition(&r, json_array_get(list, p), p, error);
    if (status != CLV_OK) clv__error_prefix(error, status, "partition %u", p);
  }
  if (status == CLV_OK) status = read_causes(plan, root, &r.names, error);
  if (status == CLV_OK) status = check_order(&r, error);
  if (status == CLV_OK) status = clv__plan_set_cut(plan, &r.cut, r.is_streaming ? r.streamed : NULL, error);
  clv__map_finish(&r.weights);
  clv__map_finish(&r.names);
  return status;
}
