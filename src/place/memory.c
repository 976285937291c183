/* A device's memory: what does not fit goes to the next device that can run it. Weights of all partitions of a device live
 * together; of what partitions work in, one partition's is alive at a time. */
#include <stdio.h>
#include <string.h>

#include "place/place.h"

/* Weights that `partition` adds to its device, each once. `resident` marks values by device bit. */
static uint64_t new_weight_bytes(const clv__partition *partition, uint32_t *resident) {
  uint64_t total = 0;
  for (uint32_t v = 0; v < partition->view->value_count; ++v) {
    const clv_tensor *type = clv__view_type(partition->view, v);
    size_t size_bytes;
    clv_value_id id = partition->view->values[v];
    if (type->data == NULL || (resident[id] & (1u << partition->device)) != 0) continue;
    if (!clv__tensor_size_bytes(type, &size_bytes)) continue;
    total += clv__align_up(size_bytes, CLV__ALIGNMENT);
  }
  return total;
}

static void mark_weights(const clv__partition *partition, uint32_t *resident) {
  for (uint32_t v = 0; v < partition->view->value_count; ++v) {
    if (clv__view_type(partition->view, v)->data != NULL) resident[partition->view->values[v]] |= 1u << partition->device;
  }
}

/* The next device after the partition's own that supports all of its nodes, or CLV__NO_ID. */
static uint32_t next_device(const clv_plan *plan, const clv__partition *partition) {
  for (uint32_t d = partition->device + 1; d < plan->devices->count; ++d) {
    bool all = true;
    for (uint32_t i = 0; i < partition->node_count && all; ++i) {
      all = clv__capability_reason(&plan->capability, partition->nodes[i], d) == NULL;
    }
    if (all) return d;
  }
  return CLV__NO_ID;
}

static clv_status move_partition(clv_plan *plan, const clv__partition *partition, const uint32_t *pinned, uint64_t needed,
                                 uint64_t limit, clv_error *error) {
  const clv__device *device = &plan->devices->items[partition->device];
  const char *name = plan->graph->nodes[partition->nodes[0]].name;
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    if (pinned[partition->nodes[i]] == CLV__NO_ID) continue;
    return clv__error_set(
        error, CLV_NOT_SUPPORTED, "node '%s' is pinned to %s, where its partition needs %llu bytes and %llu are there",
        plan->graph->nodes[partition->nodes[i]].name, device->name, (unsigned long long)needed, (unsigned long long)limit);
  }
  uint32_t next = next_device(plan, partition);
  if (next == CLV__NO_ID) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "the partition that begins at node '%s' needs %llu bytes, %s has %llu, and no later device supports it",
                          name, (unsigned long long)needed, device->name, (unsigned long long)limit);
  }
  char note[256];
  int length = snprintf(note, sizeof note, "its partition needs %llu bytes and %s has %llu", (unsigned long long)needed,
                        device->name, (unsigned long long)limit);
  const char *kept = clv__arena_string(&plan->arena, note, (size_t)length);
  if (kept == NULL) return clv__error_memory(error, sizeof note);
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    plan->placement.devices[partition->nodes[i]] = next;
    plan->placement.causes[partition->nodes[i]] = "memory";
    plan->placement.notes[partition->nodes[i]] = kept;
  }
  return CLV_OK;
}

clv_status clv__place_within_memory(clv_plan *plan, const uint32_t *pinned, bool *moved, clv_error *error) {
  *moved = false;
  uint64_t weights[CLV__MAX_DEVICES] = {0}, peak[CLV__MAX_DEVICES] = {0};
  uint32_t *resident = clv__allocate_zero(plan->graph->allocator, (size_t)plan->graph->value_count * sizeof *resident);
  if (resident == NULL) return clv__error_memory(error, plan->graph->value_count * sizeof *resident);
  clv_status status = CLV_OK;
  for (uint32_t p = 0; p < plan->partition_count && status == CLV_OK; ++p) {
    const clv__partition *partition = &plan->partitions[p];
    uint32_t d = partition->device;
    uint64_t limit = plan->devices->items[d].info.memory_limit_bytes;
    if (limit == 0) continue;
    uint64_t added = new_weight_bytes(partition, resident), own = clv__partition_peak_bytes(plan, partition);
    uint64_t worst = own > peak[d] ? own : peak[d];
    if (weights[d] + added + worst > limit) {
      status = move_partition(plan, partition, pinned, weights[d] + added + worst, limit, error);
      *moved = true;
      continue;
    }
    mark_weights(partition, resident);
    weights[d] += added;
    peak[d] = worst;
  }
  clv__release(plan->graph->allocator, resident);
  return status;
}
