/* Device memory: a partition that does not fit moves to the next device that can run it, or its weights are streamed, whichever
 * is cheaper. A device needs memory, at the same time, for the weights of all its partitions (each once), for every boundary
 * value in its memory, and for each partition's scratch. Only the device's compiler knows the size of the scratch. It is asked
 * only if the memory would not suffice with a generous guess. Streamed weights need memory only while their partition runs. */
#include <stdio.h>
#include <string.h>

#include "plan/memory.h"

/* A guess of the memory that the kernels of a partition need in addition to values and weights. */
#define SCRATCH_GUESS_BYTES ((uint64_t)16 << 20)
/* Comparing the two remedies cuts all nodes again. After this many nodes in total, the result of the last comparison is used for
 * all further partitions, so that the time stays linear. */
#define COMPARED_NODES ((uint64_t)10000000)

static uint64_t count_value(const clv__partition *partition, uint32_t value, uint32_t *resident) {
  const clv_graph_view *view = clv__partition_sized(partition);
  clv_value_id id = view->values[value];
  size_t size_bytes;
  if ((resident[id] & (1u << partition->device)) != 0) return 0;
  resident[id] |= 1u << partition->device;
  return clv__tensor_size_bytes(clv__view_type(view, value), &size_bytes) ? clv__align_up(size_bytes, CLV__ALIGNMENT) : 0;
}

/* Returns the bytes of constants and boundary values that the partition adds to its device. `resident` (by value) has a bit for
 * each device that has the value already; adds those of the partition. */
static uint64_t count_resident(const clv_plan *plan, const clv__partition *partition, uint32_t *resident) {
  const clv_graph_view *view = partition->view;
  uint64_t total = 0;
  for (uint32_t v = 0; v < view->value_count; ++v) {
    if (clv__value_is_constant(plan->graph, view->types, view->values[v])) total += count_value(partition, v, resident);
  }
  for (uint32_t i = 0; i < view->input_count; ++i) {
    if (plan->shapes->types[view->values[view->inputs[i]]].data == NULL)
      total += count_value(partition, view->inputs[i], resident);
  }
  for (uint32_t i = 0; i < view->output_count; ++i) total += count_value(partition, view->outputs[i], resident);
  return total;
}

static void forget_resident(const clv__partition *partition, uint32_t *resident) {
  for (uint32_t v = 0; v < partition->view->value_count; ++v) resident[partition->view->values[v]] &= ~(1u << partition->device);
}

/* Gets the memory that the partition's executable and its scratch need. Returns false if the compiler reports that the partition
 * is too large for its device. Other failures are left to the session to report. */
static bool ask_compiler(const clv_plan *plan, const clv__partition *partition, uint64_t *scratch_bytes) {
  const clv__device *device = &plan->devices->items[partition->device];
  clv_compile_options options = {.struct_size = sizeof options};
  clv_executable *executable = NULL;
  *scratch_bytes = 0;
  if (device->is_lost) return true;
  clv_status status = device->backend->compile(device->handle, clv__partition_sized(partition), &options, &executable, NULL);
  if (status != CLV_OK) return status != CLV_TOO_LARGE;
  clv_executable_info info = {.struct_size = sizeof info};
  device->backend->executable_info(device->handle, executable, &info);
  *scratch_bytes = info.scratch_bytes + info.resident_bytes;
  device->backend->executable_destroy(device->handle, executable);
  return true;
}

/* Returns whether all partitions of the device fit into its memory if each needs the guessed scratch. */
static bool is_roomy(const clv_plan *plan, uint32_t device, uint32_t *resident) {
  uint64_t total = 0, limit = plan->devices->items[device].info.memory_limit_bytes;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    const clv__partition *partition = &plan->partitions[p];
    if (partition->device != device) continue;
    total += count_resident(plan, partition, resident) + clv__streamed_bytes(plan, p) +
             clv__partition_peak_bytes(plan, partition) + SCRATCH_GUESS_BYTES;
  }
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    if (plan->partitions[p].device == device) forget_resident(&plan->partitions[p], resident);
  }
  return total <= limit;
}

/* ---- Partitions that do not fit ---- */

static void take_way(clv__fitting *f, clv__way *w) {
  clv__placing before = *f->placing;
  f->placing->devices = w->devices;
  f->placing->groups = w->groups;
  f->placing->streamed = w->streamed;
  w->devices = before.devices;
  w->groups = before.groups;
  w->streamed = before.streamed;
}

static clv_status refuse(const clv__fitting *f, const clv__partition *partition, uint64_t needed, clv_error *error) {
  const clv_plan *plan = f->plan;
  const clv__device *device = &plan->devices->items[f->device];
  const char *name;
  if (clv__partition_is_pinned(plan, partition, &name)) {
    return clv__error_set(
        error, CLV_NOT_SUPPORTED,
        "node '%s' is pinned to %s, but with the node's partition this device would need %llu bytes but has %llu", name,
        device->name, (unsigned long long)needed, (unsigned long long)f->limit);
  }
  return clv__error_set(error, CLV_NOT_SUPPORTED,
                        "with the partition that starts at node '%s', %s would need %llu bytes but has %llu, and no other device "
                        "supports the partition",
                        plan->graph->nodes[partition->nodes[0]].name, device->name, (unsigned long long)needed,
                        (unsigned long long)f->limit);
}

/* Returns the bytes of the partition's weights on its device, whether they stay there or are streamed. */
static uint64_t held_bytes(const clv__fitting *f, const clv__partition *partition) {
  return partition->weight_bytes + clv__streamed_bytes(f->plan, (uint32_t)(partition - f->plan->partitions));
}

/* For a partition that can neither move nor be streamed: streams an earlier partition of the device, the one with the most bytes
 * of weights among those that can be streamed. Sets `partition` to it. */
static clv_status find_room(clv__fitting *f, const clv__partition **partition, clv__way *w, clv_error *error) {
  const clv__partition *wanting = *partition, *last = NULL;
  w->device = CLV__NONE;
  for (uint64_t most = UINT64_MAX; w->device == CLV__NONE;) {
    const clv__partition *largest = NULL;
    uint64_t held = 0;
    for (const clv__partition *p = f->plan->partitions; p < wanting; ++p) {
      uint64_t bytes = p->device == f->device ? held_bytes(f, p) : 0;
      if (bytes > held && (bytes < most || (bytes == most && p > last))) largest = p, held = bytes;
    }
    if (largest == NULL) return CLV_OK;
    most = held;
    last = largest;
    clv__fitting without = *f;
    without.used -= largest->weight_bytes < f->used ? largest->weight_bytes : f->used;
    forget_resident(largest, f->resident);
    *partition = largest;
    CLV__TRY(clv__fitting_stream(&without, largest, w, error));
    if (w->device != CLV__NONE) f->used = without.used;
  }
  return CLV_OK;
}

/* Compares the times of the plan with the two remedies and sets `moves_were_better`. Does nothing if COMPARED_NODES nodes were
 * compared before. */
static clv_status compare_ways(clv__fitting *f, clv__way *move, clv__way *stream, clv_error *error) {
  if (f->compared >= COMPARED_NODES) return CLV_OK;
  CLV__TRY(clv__fitting_price(f, move, error));
  CLV__TRY(clv__fitting_price(f, stream, error));
  f->moves_were_better = move->time_ns <= stream->time_ns;
  return CLV_OK;
}

static clv_status relieve(clv__fitting *f, const clv__partition *partition, uint64_t needed, clv_error *error) {
  clv_plan *plan = f->plan;
  const clv__partition *wanting = partition;
  clv__way *move = f->move, *stream = f->stream;
  char note[256];
  /* If the excess is unknown, free a sixteenth of the memory at a time. */
  f->excess = needed > f->limit ? needed - f->limit : f->limit / 16;
  CLV__TRY(clv__fitting_move(f, partition, move, error));
  CLV__TRY(clv__fitting_stream(f, partition, stream, error));
  if (move->device == CLV__NONE && stream->device == CLV__NONE) CLV__TRY(find_room(f, &partition, stream, error));
  if (move->device == CLV__NONE && stream->device == CLV__NONE) return refuse(f, wanting, needed, error);
  bool moves = stream->device == CLV__NONE;
  if (!moves && move->device != CLV__NONE) {
    CLV__TRY(compare_ways(f, move, stream, error));
    moves = f->moves_were_better;
  }
  take_way(f, moves ? move : stream);
  snprintf(note, sizeof note, "with the node's partition, %s would need %llu bytes but has %llu%s",
           plan->devices->items[f->device].name, (unsigned long long)needed, (unsigned long long)f->limit,
           moves ? "" : ", so the partition's weights are streamed");
  const char *kept = clv__arena_string(&plan->arena, note, strlen(note));
  if (kept == NULL) return clv__error_memory(error, sizeof note);
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    if (moves) f->placing->causes[plan->problem_nodes[partition->nodes[i]]] = "memory";
    plan->placement.notes[partition->nodes[i]] = kept;
  }
  return CLV_OK;
}

static clv_status fit_device(clv__fitting *f, bool *changed, clv_error *error) {
  clv_plan *plan = f->plan;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    const clv__partition *partition = &plan->partitions[p];
    if (partition->device != f->device) continue;
    uint64_t scratch = 0, added = count_resident(plan, partition, f->resident), passing = clv__streamed_bytes(plan, p);
    if (passing < f->passing) passing = f->passing; /* keep room for the partition that streams the most */
    bool compiles = f->used + added + passing <= f->limit && ask_compiler(plan, partition, &scratch);
    if (compiles && f->used + added + passing + scratch <= f->limit) {
      f->used += added + scratch;
      f->passing = passing;
      continue;
    }
    uint64_t needed = f->used + added + passing + (compiles ? scratch : clv__partition_peak_bytes(plan, partition));
    forget_resident(partition, f->resident); /* other partitions count shared values again, which is safe */
    CLV__TRY(relieve(f, partition, needed, error));
    *changed = true;
  }
  return CLV_OK;
}

clv_status clv__place_within_memory(clv_plan *plan, clv__placing *placing, bool *changed, clv_error *error) {
  const clv_allocator *allocator = plan->graph->allocator;
  size_t values = plan->graph->value_count;
  *changed = false;
  uint32_t *resident = clv__allocate_zero(allocator, values * sizeof *resident);
  clv_tensor *types = NULL;
  if (resident == NULL) return clv__error_memory(error, values * sizeof *resident);
  clv_status status = CLV_OK;
  clv__way move = {0}, stream = {0};
  for (uint32_t d = 0; d < plan->devices->count && status == CLV_OK && !*changed; ++d) {
    uint64_t limit = plan->devices->items[d].info.memory_limit_bytes;
    if (limit == 0 || is_roomy(plan, d, resident)) continue;
    if (types == NULL) types = clv__allocate(allocator, values * sizeof *types);
    if (types == NULL) CLV__TRY_GOTO(clv__error_memory(error, values * sizeof *types));
    memcpy(types, clv__plan_sized_types(plan), values * sizeof *types);
    clv__fitting f = {.plan = plan,
                      .placing = placing,
                      .device = d,
                      .limit = limit,
                      .resident = resident,
                      .open_types = types,
                      .move = &move,
                      .stream = &stream};
    status = fit_device(&f, changed, error);
  }
cleanup:
  clv__release(allocator, types);
  clv__release(allocator, resident);
  return status;
}
