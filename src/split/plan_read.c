/* A plan file read back: a placement and partitions, whose transfers are worked out again. It may have been edited, or come from
 * a stranger: what does not fit is refused with its reason. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "split/plan_check.h"

static clv_status read_sizes(const json_t *root, clv_size **sizes, uint32_t *count, const clv_allocator *allocator,
                             clv_error *error) {
  const json_t *list = json_object_get(root, "sizes");
  *count = 0;
  *sizes = clv__allocate_zero(allocator, (json_array_size(list) + 1) * sizeof **sizes);
  if (*sizes == NULL) return clv__error_memory(error, json_array_size(list) * sizeof **sizes);
  for (size_t i = 0; i < json_array_size(list); ++i) {
    const json_t *item = json_array_get(list, i), *dims = json_object_get(item, "size");
    const char *dim = json_string_value(json_object_get(item, "dim")), *input = json_string_value(json_object_get(item, "input"));
    if ((dim == NULL) == (input == NULL) || !json_is_array(dims) || json_array_size(dims) > CLV_MAX_RANK ||
        (dim != NULL && json_array_size(dims) != 1)) {
      return clv__error_set(error, CLV_INVALID_MODEL, "sizes[%zu]: expected {\"input\" or \"dim\": NAME, \"size\": [numbers]}",
                            i);
    }
    clv_size *size = &(*sizes)[(*count)++];
    *size = (clv_size){.name = dim != NULL ? dim : input, .is_symbol = dim != NULL, .rank = (int32_t)json_array_size(dims)};
    for (int32_t k = 0; k < size->rank; ++k) {
      const json_t *number = json_array_get(dims, (size_t)k);
      size->dims[k] = json_is_integer(number) ? json_integer_value(number) : -1;
      if (size->dims[k] < 0)
        return clv__error_set(error, CLV_INVALID_MODEL, "sizes[%zu]: %lld is no size", i, (long long)size->dims[k]);
    }
  }
  return CLV_OK;
}

/* The names of the values that the plan keeps: they live as long as `root`. */
static clv_status read_kept(const json_t *root, const char ***names, uint32_t *count, const clv_allocator *allocator,
                            clv_error *error) {
  const json_t *list = json_object_get(root, "kept");
  size_t most = json_array_size(list);
  *count = 0;
  *names = clv__allocate_zero(allocator, (most + 1) * sizeof **names);
  if (*names == NULL) return clv__error_memory(error, most * sizeof **names);
  for (size_t i = 0; i < most; ++i) {
    const char *name = json_string_value(json_array_get(list, i));
    if (name == NULL) return clv__error_set(error, CLV_INVALID_MODEL, "kept[%zu]: expected the name of a value", i);
    (*names)[(*count)++] = name;
  }
  return CLV_OK;
}

static clv_status check_hash(const json_t *root, const clv_graph *graph, clv_error *error) {
  clv__hash hash;
  char is[2 * CLV__HASH_BYTES + 1];
  clv__graph_hash(graph, &hash);
  clv__hash_text(&hash, is);
  const char *should = json_string_value(json_object_get(root, "model_hash"));
  if (should != NULL && strcmp(is, should) == 0) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_MODEL,
                        "the plan was made for a model with hash %.16s…, this one has %.16s…: plan again",
                        should == NULL ? "(none)" : should, is);
}

static uint32_t device_called(const clv_plan *plan, const json_t *name) {
  const char *text = json_string_value(name);
  return text == NULL ? CLV__NO_ID : clv__devices_find(plan->devices, text);
}

/* The cut as the file has it: filled partition by partition. */
typedef struct reading {
  clv_plan *plan;
  clv__map names; /* of nodes */
  clv__map weights;
  clv__cut cut;
  uint16_t *streamed; /* by weight */
  uint32_t *read_by;  /* by weight: the last partition (+ 1) seen to read it; of those that stream */
  bool is_streaming;
} reading;

static int compare_nodes(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* Weights that are streamed to the partition's device. */
static clv_status read_streamed(reading *r, const json_t *item, uint32_t index, clv_error *error) {
  const json_t *list = json_object_get(item, "streamed");
  const clv__problem *problem = r->plan->problem;
  uint32_t device = r->cut.devices[index];
  if (json_array_size(list) == 0) return CLV_OK;
  if (problem->spaces[device] == CLV__SPACE_HOST) {
    return clv__error_set(error, CLV_INVALID_MODEL, "nothing is streamed to %s: it works in host memory",
                          problem->device_names[device]);
  }
  for (uint32_t i = r->cut.offsets[index]; i < r->cut.offsets[index + 1]; ++i) {
    uint32_t node = r->cut.nodes[i];
    for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k)
      r->read_by[problem->weights[k]] = index + 1;
  }
  for (size_t i = 0; i < json_array_size(list); ++i) {
    const char *name = json_string_value(json_array_get(list, i));
    uint32_t weight = name == NULL ? CLV__MAP_NONE : clv__map_find(&r->weights, name);
    if (weight == CLV__MAP_NONE)
      return clv__error_set(error, CLV_INVALID_MODEL, "the model has no weight '%s'", name == NULL ? "" : name);
    if (r->read_by[weight] != index + 1)
      return clv__error_set(error, CLV_INVALID_MODEL, "it streams weight '%s', which no node of it reads", name);
    r->streamed[weight] |= (uint16_t)(1u << device);
    r->is_streaming = true;
  }
  return CLV_OK;
}

static clv_status read_partition(reading *r, const json_t *item, uint32_t index, clv_error *error) {
  clv_plan *plan = r->plan;
  const clv__map *names = &r->names;
  const char *device_name = json_string_value(json_object_get(item, "device"));
  uint32_t device = device_name == NULL ? CLV__NO_ID : clv__devices_find(plan->devices, device_name);
  if (device == CLV__NO_ID) {
    return clv__error_set(error, CLV_INVALID_MODEL, "device '%s' is not among the open devices",
                          device_name == NULL ? "" : device_name);
  }
  const json_t *nodes = json_object_get(item, "nodes");
  size_t count = json_array_size(nodes);
  if (count == 0) return clv__error_set(error, CLV_INVALID_MODEL, "it has no nodes");
  uint32_t *ids = r->cut.nodes + r->cut.offsets[index]; /* has room: each node that runs is taken once */
  for (size_t i = 0; i < count; ++i) {
    const char *name = json_string_value(json_array_get(nodes, i));
    clv_node_id id = name == NULL ? CLV__NO_ID : clv__map_find(names, name);
    if (id == CLV__NO_ID) return clv__error_set(error, CLV_INVALID_MODEL, "the model has no node '%s'", name == NULL ? "" : name);
    if (plan->shapes->node_folded[id]) {
      return clv__error_set(error, CLV_INVALID_MODEL, "node '%s' is a constant: no device runs it", name);
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
  qsort(ids, count, sizeof *ids, compare_nodes);
  r->cut.devices[index] = device;
  r->cut.offsets[index + 1] = r->cut.offsets[index] + (uint32_t)count;
  return read_streamed(r, item, index, error);
}

/* Partitions are listed in the order they run: what one reads was made before, or in it. */
static clv_status check_order(const reading *r, clv_error *error) {
  const clv__problem *problem = r->plan->problem;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    for (uint32_t i = problem->read_offsets[n]; i < problem->read_offsets[n + 1]; ++i) {
      uint32_t producer = problem->producers[problem->reads[i]], reads = r->cut.partition_of[n];
      if (producer == CLV__NONE || r->cut.partition_of[producer] <= reads) continue;
      return clv__error_set(
          error, CLV_INVALID_MODEL,
          "partition %u reads '%s' (for node '%s'), which partition %u makes after it: partitions are listed in "
          "the order they run, and none may wait for a later one",
          reads, problem->value_names[problem->reads[i]], problem->node_names[n], r->cut.partition_of[producer]);
    }
  }
  return CLV_OK;
}

/* A text of an object, kept in the plan; NULL when there is none. */
static clv_status keep_text(clv_plan *plan, const json_t *object, const char *key, const char **kept, clv_error *error) {
  const char *text = json_string_value(json_object_get(object, key));
  *kept = text == NULL ? NULL : clv__arena_string(&plan->arena, text, strlen(text));
  return text == NULL || *kept != NULL ? CLV_OK : clv__error_memory(error, strlen(text));
}

/* Causes and notes, of the nodes that still are where the file says it put them; the others were moved by hand: `file`. */
static clv_status read_causes(clv_plan *plan, const json_t *root, const clv__map *names, clv_error *error) {
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) {
    plan->placement.causes[n] = plan->shapes->node_folded[n] ? "const" : "file";
    if (!plan->shapes->node_folded[n] && plan->placement.devices[n] == CLV__NO_ID) {
      return clv__error_set(error, CLV_INVALID_MODEL, "node '%s' is in no partition", plan->graph->nodes[n].name);
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
    CLV__TRY(keep_text(plan, item, "cause", &cause, error));
    CLV__TRY(keep_text(plan, item, "note", &plan->placement.notes[id], error));
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

static clv_status read_partitions(clv_plan *plan, const json_t *root, clv_error *error) {
  const json_t *list = json_object_get(root, "partitions");
  size_t count = json_array_size(list), nodes = plan->problem->node_count;
  if (count > nodes)
    return clv__error_set(error, CLV_INVALID_MODEL, "%zu partitions of %zu nodes: some must be empty", count, nodes);
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

/* The nodes that the user fixed, where they still are: they narrow the bound. What is wrong in the file is said later. */
static clv_status read_pins(clv_plan *plan, const json_t *root, uint32_t **out, clv_error *error) {
  const clv_graph *graph = plan->graph;
  uint32_t *placed = clv__arena_allocate(&plan->arena, graph->node_count * sizeof *placed);
  uint32_t *pins = clv__arena_allocate(&plan->arena, graph->node_count * sizeof *pins);
  if (placed == NULL || pins == NULL) return clv__error_memory(error, graph->node_count * sizeof *pins);
  memset(placed, 0xff, graph->node_count * sizeof *placed); /* CLV__NO_ID */
  memset(pins, 0xff, graph->node_count * sizeof *pins);
  clv__map names;
  clv__map_init(&names, graph->allocator);
  clv_status status = CLV_OK;
  for (clv_node_id n = 0; n < graph->node_count && status == CLV_OK; ++n) {
    if (!clv__map_set(&names, graph->nodes[n].name, n)) status = clv__error_memory(error, sizeof(clv__map_slot));
  }
  const json_t *partitions = json_object_get(root, "partitions"), *nodes = json_object_get(root, "nodes");
  for (size_t p = 0; p < json_array_size(partitions) && status == CLV_OK; ++p) {
    const json_t *partition = json_array_get(partitions, p), *list = json_object_get(partition, "nodes");
    uint32_t device = device_called(plan, json_object_get(partition, "device"));
    for (size_t i = 0; i < json_array_size(list); ++i) {
      const char *name = json_string_value(json_array_get(list, i));
      uint32_t id = name == NULL ? CLV__MAP_NONE : clv__map_find(&names, name);
      if (id != CLV__MAP_NONE) placed[id] = device;
    }
  }
  for (size_t i = 0; i < json_array_size(nodes) && status == CLV_OK; ++i) {
    const json_t *node = json_array_get(nodes, i);
    const char *name = json_string_value(json_object_get(node, "name")),
               *cause = json_string_value(json_object_get(node, "cause"));
    uint32_t id = name == NULL ? CLV__MAP_NONE : clv__map_find(&names, name);
    uint32_t device = device_called(plan, json_object_get(node, "device"));
    if (id == CLV__MAP_NONE || cause == NULL || strcmp(cause, "usr") != 0 || device == CLV__NO_ID || device != placed[id])
      continue;
    if (clv__capability_reason(&plan->capability, id, device) == NULL) pins[id] = device;
  }
  clv__map_finish(&names);
  *out = pins;
  return status;
}

/* "linear", "convex", "fewest", or nothing said: for people alone. */
static clv_status read_split(const json_t *root, clv__split_mode *mode, clv_error *error) {
  const char *text = json_string_value(json_object_get(root, "split"));
  *mode = CLV__SPLIT_LINEAR;
  if (text == NULL) return CLV_OK;
  for (; *mode <= CLV__SPLIT_FEWEST; ++*mode) {
    if (strcmp(text, clv__split_name(*mode)) == 0) return CLV_OK;
  }
  return clv__error_set(error, CLV_INVALID_MODEL, "split '%s' is unknown", text);
}

/* "latency", "overlap", "throughput", or nothing said. */
static clv_status read_objective(const json_t *root, clv__objective *objective, clv_error *error) {
  const char *text = json_string_value(json_object_get(root, "objective"));
  *objective = CLV__LATENCY;
  if (text == NULL || strcmp(text, clv__objective_name(CLV__LATENCY)) == 0) return CLV_OK;
  for (*objective = CLV__OVERLAP; *objective <= CLV__THROUGHPUT; ++*objective) {
    if (strcmp(text, clv__objective_name(*objective)) == 0) return CLV_OK;
  }
  return clv__error_set(error, CLV_INVALID_MODEL, "objective '%s' is unknown", text);
}

/* What the file decided, once the plan knows its graph's shapes. The devices are locked: prices ask backends as well. */
static clv_status fill_plan(clv_plan *plan, const json_t *root, const clv__profile *profile, clv_error *error) {
  clv_graph_view *whole;
  uint32_t *pins;
  CLV__TRY(keep_text(plan, root, "strategy", &plan->placement.strategy, error));
  if (plan->placement.strategy == NULL) plan->placement.strategy = "file";
  CLV__TRY(keep_text(plan, root, "note", &plan->note, error));
  CLV__TRY(read_split(root, &plan->split, error));
  CLV__TRY(read_objective(root, &plan->objective, error));
  CLV__TRY(clv__view_create_whole(plan->graph, plan->shapes->types, &plan->arena, &whole, error));
  CLV__TRY(clv__capability_ask(plan->devices, whole, plan->shapes->node_folded, NULL, NULL, &plan->capability, error));
  CLV__TRY(read_pins(plan, root, &pins, error));
  CLV__TRY(clv__plan_set_problem(plan, &(clv__fixed){.nodes = pins}, profile, error));
  CLV__TRY(read_partitions(plan, root, error));
  CLV__TRY(clv__plan_check_devices(plan, error));
  return clv__plan_set_steps(plan, error);
}

static clv_status read_plan(const clv_graph *graph, clv_devices *devices, const json_t *root, const clv__profile *profile,
                            clv_plan **out, clv_error *error) {
  const json_t *version = json_object_get(root, "cleave_plan");
  if (!json_is_integer(version))
    return clv__error_set(error, CLV_INVALID_MODEL, "it is no plan file: \"cleave_plan\" is missing");
  if (json_integer_value(version) != 1) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "plan files of version %lld are not known here, only version 1: plan again",
                          (long long)json_integer_value(version));
  }
  CLV__TRY(check_hash(root, graph, error));
  CLV__TRY(clv__plan_check_keys(root, error));
  clv_size *sizes = NULL;
  const char **kept = NULL;
  uint32_t size_count, kept_count;
  clv_plan *plan = NULL;
  clv_status status;
  CLV__TRY_GOTO(read_sizes(root, &sizes, &size_count, graph->allocator, error));
  CLV__TRY_GOTO(read_kept(root, &kept, &kept_count, graph->allocator, error));
  CLV__TRY_GOTO(clv__plan_create(graph, devices, sizes, size_count, kept, kept_count, &plan, error));
  clv__devices_lock(devices);
  status = fill_plan(plan, root, profile, error);
  clv__devices_unlock(devices);
  if (status == CLV_OK) *out = plan;
cleanup:
  clv__release(graph->allocator, kept);
  clv__release(graph->allocator, sizes);
  if (status != CLV_OK) clv_plan_destroy(plan);
  return status;
}

clv_status clv__plan_parse(const clv_graph *graph, clv_devices *devices, const char *text, size_t size_bytes,
                           const clv__profile *profile, clv_plan **out, clv_error *error) {
  *out = NULL;
  json_error_t where;
  json_t *root = json_loadb(text, size_bytes, JSON_REJECT_DUPLICATES, &where);
  if (root == NULL)
    return clv__error_set(error, CLV_INVALID_MODEL, "line %d, column %d: %s", where.line, where.column, where.text);
  clv_status status = read_plan(graph, devices, root, profile, out, error);
  json_decref(root);
  return status;
}

clv_status clv_plan_read(const clv_graph *graph, clv_devices *devices, const char *path, const char *profile_path, clv_plan **out,
                         clv_error *error) {
  if (graph == NULL || devices == NULL || path == NULL || out == NULL) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "graph, devices, path and plan must not be NULL");
  }
  *out = NULL;
  clv__profile *profile = NULL;
  if (profile_path != NULL) CLV__TRY(clv__profile_read(profile_path, graph->allocator, &profile, error));
  clv__file_map map;
  clv_status status = clv__file_map_open(path, &map, error);
  if (status == CLV_OK) {
    status = clv__plan_parse(graph, devices, (const char *)map.data, map.size_bytes, profile, out, error);
    clv__file_map_close(&map);
    if (status == CLV_OK && profile_path != NULL) {
      (*out)->profile_path = clv__arena_string(&(*out)->arena, profile_path, strlen(profile_path));
      if ((*out)->profile_path == NULL) {
        clv_plan_destroy(*out);
        *out = NULL;
        status = clv__error_memory(error, strlen(profile_path));
      }
    }
    if (status != CLV_OK) clv__error_prefix(error, status, "%s", path);
  }
  clv__profile_destroy(profile);
  return status;
}
