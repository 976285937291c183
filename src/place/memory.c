/* A device's memory: what does not fit goes to the next device that can run it. On a device live together the weights of all its
 * partitions, each once; every value that crosses a boundary there; and each partition's scratch, which its compiler alone knows:
 * where a generous guess comes near the limit, the compiler is asked. */
#include <stdio.h>
#include <string.h>

#include "place/place.h"

/* What kernels may want beside the values they work on, in a guess. */
#define SCRATCH_GUESS_BYTES ((uint64_t)16 << 20)

static uint64_t count_value(const clv__partition *partition, uint32_t value, uint32_t *resident) {
  clv_value_id id = partition->view->values[value];
  size_t size_bytes;
  if ((resident[id] & (1u << partition->device)) != 0) return 0;
  resident[id] |= 1u << partition->device;
  return clv__tensor_size_bytes(clv__view_type(partition->view, value), &size_bytes) ? clv__align_up(size_bytes, CLV__ALIGNMENT)
                                                                                     : 0;
}

/* Bytes of constants and boundary values that the partition adds to its device; `resident` holds a bit a device for each value.
 */
static uint64_t count_resident(const clv__partition *partition, uint32_t *resident) {
  const clv_graph_view *view = partition->view;
  uint64_t total = 0;
  for (uint32_t v = 0; v < view->value_count; ++v) {
    if (clv__view_type(view, v)->data != NULL) total += count_value(partition, v, resident);
  }
  for (uint32_t i = 0; i < view->input_count; ++i) total += count_value(partition, view->inputs[i], resident);
  for (uint32_t i = 0; i < view->output_count; ++i) total += count_value(partition, view->outputs[i], resident);
  return total;
}

static void forget_resident(const clv__partition *partition, uint32_t *resident) {
  for (uint32_t v = 0; v < partition->view->value_count; ++v) resident[partition->view->values[v]] &= ~(1u << partition->device);
}

/* The scratch that the partition's executable says it needs. False: the compiler finds it too large for its device. Any other
 * failure is for the session to report. */
static bool ask_compiler(const clv_plan *plan, const clv__partition *partition, uint64_t *scratch_bytes) {
  const clv__device *device = &plan->devices->items[partition->device];
  clv_compile_options options = {.struct_size = sizeof options};
  clv_executable *executable = NULL;
  *scratch_bytes = 0;
  clv_status status = device->backend->compile(device->handle, partition->view, &options, &executable, NULL);
  if (status != CLV_OK) return status != CLV_TOO_LARGE;
  clv_executable_info info = {.struct_size = sizeof info};
  device->backend->executable_info(device->handle, executable, &info);
  *scratch_bytes = info.scratch_bytes + info.resident_bytes;
  device->backend->executable_destroy(device->handle, executable);
  return true;
}

/* Whether everything fits by the guess. */
static bool is_roomy(const clv_plan *plan, uint32_t device, uint32_t *resident) {
  uint64_t total = 0, limit = plan->devices->items[device].info.memory_limit_bytes;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    const clv__partition *partition = &plan->partitions[p];
    if (partition->device != device) continue;
    total += count_resident(partition, resident) + clv__partition_peak_bytes(plan, partition) + SCRATCH_GUESS_BYTES;
  }
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    if (plan->partitions[p].device == device) forget_resident(&plan->partitions[p], resident);
  }
  return total <= limit;
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
        error, CLV_NOT_SUPPORTED, "node '%s' is pinned to %s, which with its partition would need %llu bytes and has %llu",
        plan->graph->nodes[partition->nodes[i]].name, device->name, (unsigned long long)needed, (unsigned long long)limit);
  }
  uint32_t next = next_device(plan, partition);
  if (next == CLV__NO_ID) {
    return clv__error_set(
        error, CLV_NOT_SUPPORTED,
        "with the partition that begins at node '%s' %s would need %llu bytes and has %llu, and no later device "
        "supports it",
        name, device->name, (unsigned long long)needed, (unsigned long long)limit);
  }
  char note[256];
  snprintf(note, sizeof note, "with its partition %s would need %llu bytes and has %llu", device->name,
           (unsigned long long)needed, (unsigned long long)limit);
  const char *kept = clv__arena_string(&plan->arena, note, strlen(note));
  if (kept == NULL) return clv__error_memory(error, sizeof note);
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    plan->placement.devices[partition->nodes[i]] = next;
    plan->placement.causes[partition->nodes[i]] = "memory";
    plan->placement.notes[partition->nodes[i]] = kept;
  }
  return CLV_OK;
}

static clv_status fit_device(clv_plan *plan, uint32_t device, const uint32_t *pinned, uint32_t *resident, bool *moved,
                             clv_error *error) {
  uint64_t used = 0, limit = plan->devices->items[device].info.memory_limit_bytes;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    const clv__partition *partition = &plan->partitions[p];
    if (partition->device != device) continue;
    uint64_t scratch, added = count_resident(partition, resident);
    bool compiles = used + added <= limit && ask_compiler(plan, partition, &scratch);
    if (compiles && used + added + scratch <= limit) {
      used += added + scratch;
      continue;
    }
    uint64_t needed = used + added + (compiles ? scratch : clv__partition_peak_bytes(plan, partition));
    CLV__TRY(move_partition(plan, partition, pinned, needed, limit, error));
    *moved = true;
    /* Counted again where others share its values: a little too much is safe. */
    forget_resident(partition, resident);
  }
  return CLV_OK;
}

clv_status clv__place_within_memory(clv_plan *plan, const uint32_t *pinned, bool *moved, clv_error *error) {
  *moved = false;
  uint32_t *resident = clv__allocate_zero(plan->graph->allocator, (size_t)plan->graph->value_count * sizeof *resident);
  if (resident == NULL) return clv__error_memory(error, plan->graph->value_count * sizeof *resident);
  clv_status status = CLV_OK;
  for (uint32_t d = 0; d < plan->devices->count && status == CLV_OK; ++d) {
    if (plan->devices->items[d].info.memory_limit_bytes == 0 || is_roomy(plan, d, resident)) continue;
    status = fit_device(plan, d, pinned, resident, moved, error);
  }
  clv__release(plan->graph->allocator, resident);
  return status;
}
