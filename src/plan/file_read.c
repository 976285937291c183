/* Reads a plan file: a placement and partitions. Transfers are computed again. The file may have been edited or come from an
 * untrusted source, so invalid contents are rejected with a reason. */
#include <string.h>

#include "base/strict_json.h"
#include "plan/file.h"

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
        return clv__error_set(error, CLV_INVALID_MODEL, "sizes[%zu]: \"size\" must list whole numbers of at least 0", i);
    }
  }
  return CLV_OK;
}

/* Reads the names of the values that the plan keeps. The texts belong to `root`. */
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
  CLV__TRY(clv__graph_check_files(graph, error));
  clv__graph_hash(graph, &hash);
  clv__hash_text(&hash, is);
  const char *should = json_string_value(json_object_get(root, "model_hash"));
  if (should != NULL && strcmp(is, should) == 0) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_MODEL,
                        "the plan was made for a model with hash %.16s…, but this model has %.16s…: plan again",
                        should == NULL ? "(none)" : should, is);
}

static uint32_t device_called(const clv_plan *plan, const json_t *name) {
  const char *text = json_string_value(name);
  return text == NULL ? CLV__NO_ID : clv__devices_find(plan->devices, text);
}

/* Reads the pins of nodes that are still on the device that the user chose, because pins raise the lower bound. Errors in the
 * file are reported when the partitions are read. */
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

/* Reads the split mode: "linear", "convex", "fewest", or absent. It does not change this plan, whose partitions the file lists.
 * Plans that are made from this one use it, and reports show it. */
static clv_status read_split(const json_t *root, clv__split_mode *mode, clv_error *error) {
  const char *text = json_string_value(json_object_get(root, "split"));
  *mode = CLV__SPLIT_LINEAR;
  if (text == NULL) return CLV_OK;
  for (; *mode <= CLV__SPLIT_FEWEST; ++*mode) {
    if (strcmp(text, clv__split_name(*mode)) == 0) return CLV_OK;
  }
  return clv__error_set(error, CLV_INVALID_MODEL, "unknown split '%s'", text);
}

/* Reads the objective: "latency", "overlap", "throughput", or absent. */
static clv_status read_objective(const json_t *root, clv__objective *objective, clv_error *error) {
  const char *text = json_string_value(json_object_get(root, "objective"));
  *objective = CLV__LATENCY;
  if (text == NULL || strcmp(text, clv__objective_name(CLV__LATENCY)) == 0) return CLV_OK;
  for (*objective = CLV__OVERLAP; *objective <= CLV__THROUGHPUT; ++*objective) {
    if (strcmp(text, clv__objective_name(*objective)) == 0) return CLV_OK;
  }
  return clv__error_set(error, CLV_INVALID_MODEL, "unknown objective '%s'", text);
}

/* Fills the plan, whose shapes are known already, with the decisions of the file. The caller holds the devices' lock, because
 * prices also query backends. */
static clv_status fill_plan(clv_plan *plan, const json_t *root, const clv__profile *profile, clv_error *error) {
  clv_graph_view *whole;
  uint32_t *pins;
  CLV__TRY(clv__plan_keep_text(plan, root, "strategy", &plan->placement.strategy, error));
  if (plan->placement.strategy == NULL) plan->placement.strategy = "file";
  CLV__TRY(clv__plan_keep_text(plan, root, "note", &plan->note, error));
  CLV__TRY(read_split(root, &plan->split, error));
  plan->split_is_given = json_object_get(root, "split") != NULL;
  CLV__TRY(read_objective(root, &plan->objective, error));
  CLV__TRY(clv__view_create_whole(plan->graph, plan->shapes->types, &plan->arena, &whole, error));
  CLV__TRY(clv__capability_ask(plan->devices, whole, plan->shapes->node_folded, plan->open, NULL, NULL, NULL, &plan->capability,
                               error));
  CLV__TRY(clv__plan_host_views(plan, error));
  CLV__TRY(read_pins(plan, root, &pins, error));
  CLV__TRY(clv__plan_set_problem(plan, &(clv__fixed){.nodes = pins, .is_grouped = true}, profile, error));
  CLV__TRY(clv__plan_read_partitions(plan, root, error));
  CLV__TRY(clv__plan_check_devices(plan, error));
  CLV__TRY(clv__plan_set_steps(plan, error));
  return clv__plan_check_memory(plan, error);
}

static clv_status read_plan(const clv_graph *graph, clv_devices *devices, const json_t *root, const clv__profile *profile,
                            clv_plan **out, clv_error *error) {
  const json_t *version = json_object_get(root, "cleave_plan");
  if (!json_is_integer(version))
    return clv__error_set(error, CLV_INVALID_MODEL, "not a plan file: \"cleave_plan\" must be an integer");
  if (json_integer_value(version) != 1) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "plan file of unknown version %lld; this library reads version 1: plan again",
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
  json_t *root;
  CLV__TRY(clv__json_parse(&(clv__strict_json){.error = error}, text, size_bytes, SIZE_MAX, "plan", &root));
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
