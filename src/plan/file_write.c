/* Writes the plan as JSON: readable, diffable, and byte-identical for identical inputs. */
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

static clv_status json_memory(clv_error *error) {
  return clv__error_set(error, CLV_OUT_OF_MEMORY, "out of memory for JSON");
}

/* Jansson's "_new" functions take ownership of a value. If it is NULL, because memory ran out, they add nothing and return an
 * error, which is ignored here. Only a failure of json_object() for the root or of json_dumps() is reported. */

/* Converts paths and messages of backends: NULL and invalid UTF-8 become null. Names from the model need no such check, because
 * they are valid UTF-8. */
static json_t *text_or_null(const char *text) {
  json_t *string = text == NULL ? NULL : json_string(text);
  return string != NULL ? string : json_null();
}

static json_t *value_names(const clv_graph *graph, const clv_graph_view *view, const uint32_t *values, uint32_t count) {
  json_t *names = json_array();
  for (uint32_t i = 0; i < count; ++i) {
    json_array_append_new(names, json_string_nocheck(graph->values[view->values[values[i]]].name));
  }
  return names;
}

/* The JSON format of the plan file. */
#define PLAN_FLAGS (JSON_INDENT(1) | JSON_REAL_PRECISION(15))

/* Converts whole nanoseconds to milliseconds, which loses no digits. */
static json_t *milliseconds(uint64_t time_ns) {
  return json_real((double)time_ns / 1e6);
}

/* Lists the weights that are streamed to partition `index`. */
static json_t *streamed_json(const clv_plan *plan, uint32_t index) {
  const clv__copy *copies = plan->copies.items;
  uint32_t low = 0, high = plan->copies.count;
  while (low < high) { /* copies are sorted by the partition that needs them */
    uint32_t middle = low + (high - low) / 2;
    if (copies[middle].before < index)
      low = middle + 1;
    else
      high = middle;
  }
  json_t *names = json_array();
  for (; low < plan->copies.count && copies[low].before == index; ++low) {
    if (copies[low].is_weight) json_array_append_new(names, json_string_nocheck(plan->problem->weight_names[copies[low].value]));
  }
  return names;
}

static json_t *partition_json(const clv_plan *plan, uint32_t index) {
  const clv__partition *partition = &plan->partitions[index];
  json_t *object = json_object(), *nodes = json_array(), *streamed = streamed_json(plan, index);
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    json_array_append_new(nodes, json_string_nocheck(plan->graph->nodes[partition->nodes[i]].name));
  }
  json_object_set_new(object, "id", json_integer(index));
  json_object_set_new(object, "device", json_string_nocheck(plan->devices->items[partition->device].name));
  json_object_set_new(object, "nodes", nodes);
  json_object_set_new(object, "inputs",
                      value_names(plan->graph, partition->view, partition->view->inputs, partition->view->input_count));
  json_object_set_new(object, "outputs",
                      value_names(plan->graph, partition->view, partition->view->outputs, partition->view->output_count));
  json_object_set_new(object, "weight_bytes", json_integer((json_int_t)partition->weight_bytes));
  if (partition->is_bucketed) json_object_set_new(object, "bucketed", json_true());
  if (partition->is_hosted) json_object_set_new(object, "hosted", json_true());
  if (json_array_size(streamed) > 0)
    json_object_set_new(object, "streamed", streamed);
  else
    json_decref(streamed);
  json_object_set_new(object, "predicted_ms", milliseconds(plan->price.partition_ns[index]));
  return object;
}

static json_t *transfer_json(const clv_plan *plan, uint32_t index) {
  static const char *const boundaries[] = {"inner", "input", "output", "weight"};
  const clv__transfer *transfer = &plan->transfers[index];
  json_t *object = json_object();
  json_object_set_new(object, "id", json_integer(index));
  json_object_set_new(object, "value", json_string_nocheck(plan->graph->values[transfer->value].name));
  json_object_set_new(object, "from", json_string_nocheck(plan->devices->spaces[transfer->from]));
  json_object_set_new(object, "to", json_string_nocheck(plan->devices->spaces[transfer->to]));
  json_object_set_new(object, "boundary", json_string_nocheck(boundaries[transfer->boundary]));
  json_object_set_new(object, "bytes", transfer->size_known ? json_integer((json_int_t)transfer->size_bytes) : json_null());
  json_object_set_new(object, "predicted_ms", milliseconds(plan->price.copy_ns[index]));
  return object;
}

static json_t *step_json(const clv_plan *plan, uint32_t index) {
  const clv__step *step = &plan->steps[index];
  json_t *object = json_object(), *after = json_array();
  for (uint32_t i = 0; i < step->dependency_count; ++i) json_array_append_new(after, json_integer(step->dependencies[i]));
  json_object_set_new(object, step->is_transfer ? "transfer" : "partition", json_integer(step->index));
  json_object_set_new(object, "after", after);
  return object;
}

static json_t *node_json(const clv_plan *plan, clv_node_id id) {
  const clv__node *node = &plan->graph->nodes[id];
  uint32_t device = plan->placement.devices[id];
  json_t *object = json_object(), *others = json_object(), *moves = json_object();
  json_object_set_new(object, "name", json_string_nocheck(node->name));
  json_object_set_new(object, "op", json_string_nocheck(node->op));
  if (node->source_op[0] != '\0') {
    json_object_set_new(object, "source_name", json_string_nocheck(node->source_name));
    json_object_set_new(object, "source_op", json_string_nocheck(node->source_op));
  }
  json_object_set_new(object, "device",
                      device == CLV__NO_ID ? json_null() : json_string_nocheck(plan->devices->items[device].name));
  json_object_set_new(object, "cause", json_string_nocheck(plan->placement.causes[id]));
  if (plan->placement.notes[id] != NULL) json_object_set_new(object, "note", text_or_null(plan->placement.notes[id]));
  for (uint32_t d = 0; d < plan->devices->count && plan->capability.reasons != NULL && device != CLV__NO_ID; ++d) {
    const char *reason = clv__capability_reason(&plan->capability, id, d);
    int64_t delta_ns;
    if (reason != NULL)
      json_object_set_new_nocheck(others, plan->devices->items[d].name, text_or_null(reason));
    else if (d != device && clv__plan_move_price(plan, id, d, &delta_ns))
      json_object_set_new_nocheck(moves, plan->devices->items[d].name, json_real((double)delta_ns / 1e6));
  }
  if (json_object_size(moves) > 0)
    json_object_set_new(object, "move_ms", moves);
  else
    json_decref(moves);
  if (json_object_size(others) > 0)
    json_object_set_new(object, "refused_by", others);
  else
    json_decref(others);
  return object;
}

static json_t *sizes_json(const clv_plan *plan) {
  json_t *sizes = json_array();
  for (uint32_t i = 0; i < plan->size_count; ++i) {
    const clv__shape_given *given = &plan->sizes[i];
    json_t *object = json_object(), *dims = json_array();
    for (int32_t k = 0; k < (given->is_symbol ? 1 : given->rank); ++k) json_array_append_new(dims, json_integer(given->dims[k]));
    json_object_set_new(object, given->is_symbol ? "dim" : "input", json_string_nocheck(given->name));
    json_object_set_new(object, "size", dims);
    json_array_append_new(sizes, object);
  }
  return sizes;
}

static json_t *kept_json(const clv_plan *plan) {
  json_t *names = json_array();
  for (uint32_t i = 0; i < plan->kept_count; ++i) {
    json_array_append_new(names, json_string_nocheck(plan->graph->values[plan->kept[i]].name));
  }
  return names;
}

static json_t *devices_json(const clv_plan *plan) {
  const clv_devices *devices = plan->devices;
  json_t *list = json_array();
  for (uint32_t d = 0; d < devices->count; ++d) {
    json_t *object = json_object();
    json_object_set_new(object, "name", json_string_nocheck(devices->items[d].name));
    json_object_set_new(object, "backend", json_string_nocheck(devices->items[d].backend->name));
    json_object_set_new(object, "fingerprint", text_or_null(devices->items[d].info.fingerprint));
    json_object_set_new(object, "prices", text_or_null(clv__cost_origin(plan->costs, d)));
    json_array_append_new(list, object);
  }
  return list;
}

/* Writes each time with its lower bound. `predicted_ms` and `lower_bound_ms` are those of the objective. */
static void set_times(json_t *root, const clv_plan *plan) {
  double gap = clv__plan_gap(plan);
  json_object_set_new(root, "predicted_ms", milliseconds(plan->predicted_ns));
  json_object_set_new(root, "lower_bound_ms", milliseconds(plan->lower_bound_ns));
  json_object_set_new(root, "gap", gap < 0 ? json_null() : json_real(gap));
  json_object_set_new(root, "serial_ms", milliseconds(plan->price.serial_ns));
  json_object_set_new(root, "serial_bound_ms", milliseconds(plan->bounds.serial_ns));
  json_object_set_new(root, "overlapped_ms", milliseconds(plan->price.overlapped_ns));
  json_object_set_new(root, "overlapped_bound_ms", milliseconds(plan->bounds.overlapped_ns));
  json_object_set_new(root, "throughput_ms", milliseconds(plan->price.throughput_ns));
  json_object_set_new(root, "throughput_bound_ms", milliseconds(plan->bounds.throughput_ns));
}

/* The memory of each device that has a limit. `scratch_bytes` and `executable_bytes` are null if the compiler was not asked. */
static json_t *memory_json(const clv_plan *plan) {
  json_t *list = json_array();
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    const clv__memory_need *need = &plan->needs[d];
    uint64_t limit = plan->devices->items[d].info.memory_limit_bytes;
    if (limit == 0) continue;
    json_t *object = json_object();
    json_object_set_new(object, "device", json_string_nocheck(plan->devices->items[d].name));
    json_object_set_new(object, "limit_bytes", json_integer((json_int_t)limit));
    json_object_set_new(object, "weight_bytes", json_integer((json_int_t)need->weight_bytes));
    json_object_set_new(object, "value_bytes", json_integer((json_int_t)need->value_bytes));
    json_object_set_new(object, "scratch_bytes", need->is_guessed ? json_null() : json_integer((json_int_t)need->scratch_bytes));
    json_object_set_new(object, "executable_bytes", need->is_guessed ? json_null() : json_integer((json_int_t)need->held_bytes));
    json_object_set_new(object, "total_bytes", json_integer((json_int_t)need->total_bytes));
    json_array_append_new(list, object);
  }
  return list;
}

static json_t *timings_json(const clv_plan *plan) {
  json_t *timings = json_object();
  json_object_set_new(timings, "shapes", json_real(plan->time_load_ms));
  json_object_set_new(timings, "capability", json_real(plan->time_capability_ms));
  json_object_set_new(timings, "costs", json_real(plan->time_cost_ms));
  json_object_set_new(timings, "place", json_real(plan->time_place_ms));
  json_object_set_new(timings, "split", json_real(plan->time_split_ms));
  return timings;
}

#define APPEND_EACH(array, count, make) \
  for (uint32_t each = 0; each < (count); ++each) json_array_append_new(array, make(plan, each))

static json_t *plan_json(const clv_plan *plan, const clv_graph *graph, bool timings) {
  clv__hash hash;
  char hash_text[2 * CLV__HASH_BYTES + 1];
  clv__graph_hash(graph, &hash);
  clv__hash_text(&hash, hash_text);
  json_t *root = json_object(), *partitions = json_array(), *transfers = json_array(), *steps = json_array(),
         *nodes = json_array();
  json_object_set_new(root, "cleave_plan", json_integer(1));
  json_object_set_new(root, "model", text_or_null(graph->path));
  json_object_set_new(root, "model_hash", json_string_nocheck(hash_text));
  json_object_set_new(root, "strategy", json_string_nocheck(plan->placement.strategy));
  json_object_set_new(root, "split", json_string_nocheck(clv__split_name(plan->split)));
  json_object_set_new(root, "objective", json_string_nocheck(clv__objective_name(plan->objective)));
  json_object_set_new(root, "profile", text_or_null(plan->profile));
  if (plan->note != NULL) json_object_set_new(root, "note", text_or_null(plan->note));
  json_object_set_new(root, "devices", devices_json(plan));
  json_object_set_new(root, "sizes", sizes_json(plan));
  if (plan->kept_count > 0) json_object_set_new(root, "kept", kept_json(plan));
  APPEND_EACH(steps, plan->step_count, step_json);
  APPEND_EACH(partitions, plan->partition_count, partition_json);
  APPEND_EACH(transfers, plan->transfer_count, transfer_json);
  APPEND_EACH(nodes, plan->graph->node_count, node_json);
  json_object_set_new(root, "steps", steps);
  json_object_set_new(root, "partitions", partitions);
  json_object_set_new(root, "transfers", transfers);
  json_object_set_new(root, "nodes", nodes);
  json_object_set_new(root, "memory", memory_json(plan));
  set_times(root, plan);
  if (timings) json_object_set_new(root, "timings_ms", timings_json(plan));
  return root;
}

clv_status clv__plan_to_json(const clv_plan *plan, bool timings, char **text, clv_error *error) {
  *text = NULL;
  json_t *root = plan_json(plan, plan->graph, timings);
  char *dumped = root == NULL ? NULL : json_dumps(root, PLAN_FLAGS);
  json_decref(root);
  if (dumped == NULL) return json_memory(error);
  size_t length = strlen(dumped);
  *text = clv__allocate(plan->graph->allocator, length + 2);
  if (*text != NULL) {
    memcpy(*text, dumped, length);
    memcpy(*text + length, "\n", 2);
  }
  free(dumped);
  return *text == NULL ? clv__error_memory(error, length + 2) : CLV_OK;
}

/* Makes a path relative to the plan's folder: makes both absolute and drops the common part. If one of them cannot be made
 * absolute, `out` is `other_path` unchanged. */
static void relative(const char *plan_path, const char *other_path, char out[PATH_MAX]) {
  char folder[PATH_MAX], other[PATH_MAX], copy[PATH_MAX];
  snprintf(out, PATH_MAX, "%s", other_path);
  snprintf(copy, sizeof copy, "%s", plan_path);
  char *slash = strrchr(copy, '/');
  if (slash == copy)
    slash[1] = '\0';
  else if (slash != NULL)
    *slash = '\0';
  if (realpath(slash == NULL ? "." : copy, folder) == NULL || realpath(other_path, other) == NULL) return;
  size_t common = 0;
  for (size_t i = 0; folder[i] != '\0' && folder[i] == other[i]; ++i) {
    if (folder[i] == '/') common = i + 1;
    if (folder[i + 1] == '\0' && other[i + 1] == '/') common = i + 2;
  }
  size_t used = 0;
  out[0] = '\0';
  for (size_t i = common; i < strlen(folder) && used + 4 < PATH_MAX; ++i) {
    if (i == common || folder[i] == '/') used += (size_t)snprintf(out + used, PATH_MAX - used, "../");
  }
  snprintf(out + used, PATH_MAX - used, "%s", other + common);
}

static void set_relative(json_t *root, const char *key, const char *plan_path, const char *other_path) {
  char seen[PATH_MAX];
  if (other_path[0] == '\0') return;
  relative(plan_path, other_path, seen);
  json_object_set_new(root, key, text_or_null(seen));
}

clv_status clv__plan_write_for(const clv_plan *plan, const clv_graph *graph, const char *profile, const char *path,
                               clv_error *error) {
  CLV__TRY(clv__graph_check_files(graph, error)); /* the hash of the model is computed from its files */
  json_t *root = plan_json(plan, graph, false);
  if (root != NULL) set_relative(root, "model", path, graph->path);
  if (root != NULL && profile != NULL) set_relative(root, "profile_file", path, profile);
  char *text = root == NULL ? NULL : json_dumps(root, PLAN_FLAGS);
  json_decref(root);
  if (text == NULL) return json_memory(error);
  clv_status status = clv__graph_check_files(graph, error);
  if (status == CLV_OK) status = clv__file_write(path, text, strlen(text), error);
  free(text);
  return status;
}

clv_status clv_plan_write(const clv_plan *plan, const char *path, clv_error *error) {
  if (plan == NULL || path == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "plan and path must not be NULL");
  return clv__plan_write_for(plan, plan->graph, plan->profile_path, path, error);
}
