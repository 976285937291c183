/* Checks the JSON types of a plan file's keys, and whether its devices accept the partitions and streamed weights. */
#include "plan/file.h"

/* ---- Kinds of keys ---- */

typedef struct kind {
  const char *key;
  json_type type; /* JSON_STRING or JSON_ARRAY */
} kind;

/* Checks the types of the known keys. `where` begins the error message. */
static clv_status check_object(const json_t *object, const kind *kinds, size_t count, const char *where, clv_error *error) {
  if (!json_is_object(object)) return clv__error_set(error, CLV_INVALID_MODEL, "%smust be an object", where);
  for (size_t i = 0; i < count; ++i) {
    const json_t *value = json_object_get(object, kinds[i].key);
    if (value == NULL || json_typeof(value) == kinds[i].type) continue;
    return clv__error_set(error, CLV_INVALID_MODEL, "%s\"%s\" must be a %s", where, kinds[i].key,
                          kinds[i].type == JSON_STRING ? "string" : "list");
  }
  return CLV_OK;
}

static clv_status check_each(const json_t *list, const char *what, const kind *kinds, size_t count, clv_error *error) {
  for (size_t i = 0; i < json_array_size(list); ++i) {
    char where[64];
    snprintf(where, sizeof where, "%s %zu: ", what, i);
    CLV__TRY(check_object(json_array_get(list, i), kinds, count, where, error));
  }
  return CLV_OK;
}

clv_status clv__plan_check_keys(const json_t *root, clv_error *error) {
  static const kind plan[] = {{"strategy", JSON_STRING}, {"split", JSON_STRING},     {"objective", JSON_STRING},
                              {"note", JSON_STRING},     {"partitions", JSON_ARRAY}, {"nodes", JSON_ARRAY},
                              {"sizes", JSON_ARRAY},     {"kept", JSON_ARRAY}};
  static const kind partition[] = {{"device", JSON_STRING}, {"nodes", JSON_ARRAY}, {"streamed", JSON_ARRAY}};
  static const kind node[] = {{"name", JSON_STRING}, {"cause", JSON_STRING}, {"note", JSON_STRING}};
  CLV__TRY(check_object(root, plan, sizeof plan / sizeof *plan, "", error));
  CLV__TRY(check_each(json_object_get(root, "partitions"), "partition", partition, sizeof partition / sizeof *partition, error));
  return check_each(json_object_get(root, "nodes"), "entry of \"nodes\"", node, sizeof node / sizeof *node, error);
}

/* ---- Devices ---- */

static clv_status check_limits(const clv_plan *plan, uint32_t index, clv_error *error) {
  const clv__partition *partition = &plan->partitions[index];
  const clv__device *device = &plan->devices->items[partition->device];
  uint32_t inputs = clv__view_limited_inputs(partition->view), most = device->info.max_partition_inputs;
  if (most > 0 && inputs > most) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "partition %u reads %u value%s from outside; %s supports at most %u", index,
                          inputs, CLV__S(inputs), device->name, most);
  }
  most = device->info.max_partition_nodes;
  if (most == 0 || partition->node_count <= most) return CLV_OK;
  return clv__error_set(error, CLV_NOT_SUPPORTED, "partition %u has %u nodes; %s supports at most %u", index,
                        partition->node_count, device->name, most);
}

static clv_status check_streamed(const clv_plan *plan, uint32_t index, clv_error *error) {
  const clv__partition *partition = &plan->partitions[index];
  const clv__device *device = &plan->devices->items[partition->device];
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    clv_verdict verdict = {0};
    device->backend->supports(device->handle, clv__partition_sized(partition), i, &verdict);
    if (verdict.supported) continue;
    verdict.reason[sizeof verdict.reason - 1] = '\0';
    return clv__error_set(error, CLV_NOT_SUPPORTED, "partition %u: node '%s': %s cannot run it with its weights streamed: %s",
                          index, plan->graph->nodes[partition->nodes[i]].name, device->name, verdict.reason);
  }
  return CLV_OK;
}

clv_status clv__plan_check_devices(const clv_plan *plan, clv_error *error) {
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    const clv_graph_view *view = plan->partitions[p].view;
    if (plan->partitions[p].is_hosted) continue;
    CLV__TRY(check_limits(plan, p, error));
    if (clv__view_limited_inputs(view) < view->input_count) CLV__TRY(check_streamed(plan, p, error));
  }
  return CLV_OK;
}

clv_status clv__plan_check_memory(const clv_plan *plan, clv_error *error) {
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    const clv__device *device = &plan->devices->items[d];
    const clv__memory_need *need = &plan->needs[d];
    if (clv__plan_fits(plan, d)) continue;
    if (need->too_large != CLV__NONE) {
      return clv__error_set(
          error, CLV_NOT_SUPPORTED,
          "partition %u: the compiler of %s rejects it as too large for the device's memory of %llu bytes: plan again",
          need->too_large, device->name, (unsigned long long)device->info.memory_limit_bytes);
    }
    return clv__error_set(
        error, CLV_NOT_SUPPORTED, "the plan needs %llu bytes of the memory of %s, which has %llu: plan again for this memory",
        (unsigned long long)need->total_bytes, device->name, (unsigned long long)device->info.memory_limit_bytes);
  }
  return CLV_OK;
}
