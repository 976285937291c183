/* A device's memory: what does not fit goes to the next device that can run it, or its weights are streamed, whichever is
 * cheaper. On a device live together the weights of all its partitions, each once; every value that crosses a boundary there; and
 * each partition's scratch, which its compiler alone knows: where a generous guess comes near the limit, the compiler is asked.
 * Streamed weights live only while their partition runs. */
#include <stdio.h>
#include <string.h>

#include "place/make.h"

/* What kernels may want beside the values they work on, in a guess. */
#define SCRATCH_GUESS_BYTES ((uint64_t)16 << 20)
/* Smaller weights stay: shapes and scales that devices want to know when they compile. */
#define STREAMED_LEAST_BYTES 4096

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

/* Of the weights that are streamed to the partition. */
static uint64_t streamed_bytes(const clv_plan *plan, uint32_t partition) {
  uint64_t total = 0;
  for (uint32_t i = 0; plan->streamed != NULL && i < plan->partitions[partition].view->input_count; ++i) {
    const clv_graph_view *view = plan->partitions[partition].view;
    clv_value_id value = view->values[view->inputs[i]];
    size_t size_bytes;
    if (plan->shapes->types[value].data == NULL || !clv__tensor_size_bytes(&plan->shapes->types[value], &size_bytes)) continue;
    total += clv__align_up(size_bytes, CLV__ALIGNMENT);
  }
  return total;
}

/* Whether everything fits by the guess. */
static bool is_roomy(const clv_plan *plan, uint32_t device, uint32_t *resident) {
  uint64_t total = 0, limit = plan->devices->items[device].info.memory_limit_bytes;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    const clv__partition *partition = &plan->partitions[p];
    if (partition->device != device) continue;
    total += count_resident(plan, partition, resident) + streamed_bytes(plan, p) + clv__partition_peak_bytes(plan, partition) +
             SCRATCH_GUESS_BYTES;
  }
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    if (plan->partitions[p].device == device) forget_resident(&plan->partitions[p], resident);
  }
  return total <= limit;
}

/* ---- Partitions that do not fit ---- */

/* What is being fitted: `placing` holds what was decided for the problem's nodes and weights. */
typedef struct fitting {
  clv_plan *plan;
  clv__placing *placing;
  uint32_t device;
  uint64_t used, passing, limit; /* bytes; `passing`: the most that one partition's streamed weights take */
  uint32_t *resident;
} fitting;

/* Two ways out: another device, or the same with its weights streamed in every run, in pieces whose weights fit. */
typedef struct way {
  uint32_t device; /* CLV__NONE: there is no such way */
  uint32_t *devices, *groups;
  uint16_t *streamed;
  uint64_t time_ns; /* of the whole plan */
} way;

static bool is_pinned(const clv_plan *plan, const clv__partition *partition, const char **name) {
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    if (plan->problem->pins[plan->problem_nodes[partition->nodes[i]]] == CLV__NONE) continue;
    *name = plan->graph->nodes[partition->nodes[i]].name;
    return true;
  }
  return false;
}

/* The next device after the partition's own that supports all of its nodes, or CLV__NONE. */
static uint32_t next_device(const clv_plan *plan, const clv__partition *partition) {
  for (uint32_t d = partition->device + 1; d < plan->devices->count; ++d) {
    bool all = true;
    for (uint32_t i = 0; i < partition->node_count && all; ++i) {
      all = clv__capability_reason(&plan->capability, partition->nodes[i], d) == NULL;
    }
    if (all) return d;
  }
  return CLV__NONE;
}

static clv_status begin_way(const fitting *f, way *w, clv_error *error) {
  const clv__problem *problem = f->plan->problem;
  clv__arena *arena = &f->plan->arena;
  size_t nodes = problem->node_count, weights = problem->weight_count;
  *w = (way){.device = f->device,
             .devices = clv__arena_copy(arena, f->placing->devices, nodes * sizeof *w->devices),
             .groups = clv__arena_allocate(arena, nodes * sizeof *w->groups),
             .streamed = clv__arena_allocate_zero(arena, weights, sizeof *w->streamed)};
  if (w->devices == NULL || w->groups == NULL || w->streamed == NULL) return clv__error_memory(error, nodes * sizeof *w->groups);
  memset(w->groups, 0xff, nodes * sizeof *w->groups); /* CLV__NONE */
  if (f->placing->groups != NULL) memcpy(w->groups, f->placing->groups, nodes * sizeof *w->groups);
  if (f->placing->streamed != NULL) memcpy(w->streamed, f->placing->streamed, weights * sizeof *w->streamed);
  return CLV_OK;
}

static clv_status price_way(const fitting *f, way *w, clv_error *error) {
  clv__arena work;
  clv__cut cut;
  clv__moves moves;
  clv__price price;
  clv__arena_init(&work, f->plan->graph->allocator);
  clv_status status = clv__split(f->plan->problem, w->devices, w->groups, f->plan->split, &work, &cut, error);
  if (status == CLV_OK) status = clv__split_moves(f->plan->problem, &cut, w->streamed, &work, &moves, error);
  if (status == CLV_OK) status = clv__price_cut(f->plan->problem, &cut, &moves, &work, &price, error);
  if (status == CLV_OK) w->time_ns = clv__price_of(&price, f->plan->objective);
  clv__arena_finish(&work);
  return status;
}

static clv_status find_move(const fitting *f, const clv__partition *partition, way *w, clv_error *error) {
  CLV__TRY(begin_way(f, w, error));
  const char *name;
  w->device = is_pinned(f->plan, partition, &name) ? CLV__NONE : next_device(f->plan, partition);
  if (w->device == CLV__NONE) return CLV_OK;
  for (uint32_t i = 0; i < partition->node_count; ++i) w->devices[f->plan->problem_nodes[partition->nodes[i]]] = w->device;
  return price_way(f, w, error);
}

/* Whether the device takes the partition's nodes with their weights as inputs. */
static clv_status takes_inputs(const fitting *f, const clv__partition *partition, bool *takes, clv_error *error) {
  const clv_plan *plan = f->plan;
  const clv__device *device = &plan->devices->items[f->device];
  clv__arena work;
  clv_graph_view *view;
  clv__arena_init(&work, plan->graph->allocator);
  clv_tensor *types = clv__arena_copy(&work, plan->shapes->types, plan->graph->value_count * sizeof *types);
  clv_status status = types == NULL ? clv__error_memory(error, plan->graph->value_count * sizeof *types) : CLV_OK;
  for (uint32_t v = 0; status == CLV_OK && v < partition->view->value_count; ++v) {
    clv_tensor *type = &types[partition->view->values[v]];
    size_t size_bytes;
    if (clv__tensor_size_bytes(type, &size_bytes) && size_bytes >= STREAMED_LEAST_BYTES) type->data = NULL;
  }
  if (status == CLV_OK) {
    status = clv__view_create(plan->graph, types, partition->nodes, partition->node_count, plan->is_kept, &work, &view, error);
  }
  *takes = status == CLV_OK;
  for (uint32_t i = 0; *takes && i < partition->node_count; ++i) {
    clv_verdict verdict = {0};
    device->backend->supports(device->handle, view, i, &verdict);
    *takes = verdict.supported;
  }
  clv__arena_finish(&work);
  return status;
}

/* Streams what is not on the device already; a new group begins where the weights of the one before fill `room_bytes`. False
 * where a node's own weights do not fit, or nothing is left to stream. */
static bool stream_nodes(const fitting *f, const clv__partition *partition, uint64_t room_bytes, way *w) {
  const clv__problem *problem = f->plan->problem;
  uint64_t filled = 0;
  uint32_t group = CLV__NONE;
  bool is_new = false;
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    uint32_t node = f->plan->problem_nodes[partition->nodes[i]];
    uint64_t bytes = 0;
    for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
      uint32_t weight = problem->weights[k];
      if (problem->weight_bytes[weight] < STREAMED_LEAST_BYTES) continue;
      if ((f->resident[problem->weight_ids[weight]] >> f->device & 1u) != 0) continue;
      is_new = is_new || (w->streamed[weight] >> f->device & 1u) == 0;
      w->streamed[weight] |= (uint16_t)(1u << f->device);
      bytes += clv__align_up(problem->weight_bytes[weight], CLV__ALIGNMENT);
    }
    if (bytes > room_bytes) return false;
    if (filled + bytes > room_bytes) {
      group = node; /* as good a number as any: no other group has it */
      filled = 0;
    }
    filled += bytes;
    if (group != CLV__NONE) w->groups[node] = group;
  }
  return is_new || group != CLV__NONE;
}

static clv_status find_stream(const fitting *f, const clv__partition *partition, way *w, clv_error *error) {
  CLV__TRY(begin_way(f, w, error));
  bool takes;
  CLV__TRY(takes_inputs(f, partition, &takes, error));
  uint64_t flowing = clv__partition_peak_bytes(f->plan, partition), room = f->limit - f->used;
  uint64_t streamed = streamed_bytes(f->plan, (uint32_t)(partition - f->plan->partitions));
  flowing -= streamed < flowing ? streamed : flowing; /* they are inputs of it, and what the room is for */
  bool has_room = takes && f->used < f->limit && room > flowing;
  room -= flowing;
  if (streamed > 0 && room > streamed / 2) room = streamed / 2; /* as it is, it does not fit */
  has_room = has_room && stream_nodes(f, partition, room, w);
  if (!has_room) {
    w->device = CLV__NONE;
    return CLV_OK;
  }
  return price_way(f, w, error);
}

static clv_status refuse(const fitting *f, const clv__partition *partition, uint64_t needed, clv_error *error) {
  const clv_plan *plan = f->plan;
  const clv__device *device = &plan->devices->items[f->device];
  const char *name;
  if (is_pinned(plan, partition, &name)) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "node '%s' is pinned to %s, which with its partition would need %llu bytes and has %llu", name,
                          device->name, (unsigned long long)needed, (unsigned long long)f->limit);
  }
  return clv__error_set(error, CLV_NOT_SUPPORTED,
                        "with the partition that begins at node '%s' %s would need %llu bytes and has %llu, and no later device "
                        "supports it",
                        plan->graph->nodes[partition->nodes[0]].name, device->name, (unsigned long long)needed,
                        (unsigned long long)f->limit);
}

/* Where the partition itself can go nowhere: one before it on the device makes room, the one with the most weights that can. */
static clv_status find_room(fitting *f, const clv__partition **partition, way *w, clv_error *error) {
  const clv__partition *wanting = *partition;
  w->device = CLV__NONE;
  for (uint64_t most = UINT64_MAX; w->device == CLV__NONE && most > 0;) {
    const clv__partition *largest = NULL;
    for (const clv__partition *p = f->plan->partitions; p < wanting; ++p) {
      if (p->device != f->device || p->weight_bytes >= most) continue;
      if (largest == NULL || p->weight_bytes > largest->weight_bytes) largest = p;
    }
    if (largest == NULL) return CLV_OK;
    most = largest->weight_bytes;
    if (most == 0) return CLV_OK;
    fitting without = *f;
    without.used -= most < f->used ? most : f->used;
    forget_resident(largest, f->resident);
    *partition = largest;
    CLV__TRY(find_stream(&without, largest, w, error));
    if (w->device != CLV__NONE) f->used = without.used;
  }
  return CLV_OK;
}

static clv_status relieve(fitting *f, const clv__partition *partition, uint64_t needed, clv_error *error) {
  clv_plan *plan = f->plan;
  const clv__partition *wanting = partition;
  way move, stream;
  char note[256];
  CLV__TRY(find_move(f, partition, &move, error));
  CLV__TRY(find_stream(f, partition, &stream, error));
  if (move.device == CLV__NONE && stream.device == CLV__NONE) CLV__TRY(find_room(f, &partition, &stream, error));
  if (move.device == CLV__NONE && stream.device == CLV__NONE) return refuse(f, wanting, needed, error);
  bool moves = stream.device == CLV__NONE || (move.device != CLV__NONE && move.time_ns <= stream.time_ns);
  const way *chosen = moves ? &move : &stream;
  f->placing->devices = chosen->devices;
  f->placing->groups = chosen->groups;
  f->placing->streamed = chosen->streamed;
  snprintf(note, sizeof note, "with its partition %s would need %llu bytes and has %llu%s", plan->devices->items[f->device].name,
           (unsigned long long)needed, (unsigned long long)f->limit, moves ? "" : ": its weights are streamed");
  const char *kept = clv__arena_string(&plan->arena, note, strlen(note));
  if (kept == NULL) return clv__error_memory(error, sizeof note);
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    if (moves) f->placing->causes[plan->problem_nodes[partition->nodes[i]]] = "memory";
    plan->placement.notes[partition->nodes[i]] = kept;
  }
  return CLV_OK;
}

static clv_status fit_device(fitting *f, bool *changed, clv_error *error) {
  clv_plan *plan = f->plan;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    const clv__partition *partition = &plan->partitions[p];
    if (partition->device != f->device) continue;
    uint64_t scratch = 0, added = count_resident(plan, partition, f->resident), passing = streamed_bytes(plan, p);
    if (passing < f->passing) passing = f->passing; /* room for the largest is kept throughout */
    bool compiles = f->used + added + passing <= f->limit && ask_compiler(plan, partition, &scratch);
    if (compiles && f->used + added + passing + scratch <= f->limit) {
      f->used += added + scratch;
      f->passing = passing;
      continue;
    }
    uint64_t needed = f->used + added + passing + (compiles ? scratch : clv__partition_peak_bytes(plan, partition));
    forget_resident(partition, f->resident); /* counted again where others share its values: a little too much is safe */
    CLV__TRY(relieve(f, partition, needed, error));
    *changed = true;
  }
  return CLV_OK;
}

clv_status clv__place_within_memory(clv_plan *plan, clv__placing *placing, bool *changed, clv_error *error) {
  *changed = false;
  uint32_t *resident = clv__allocate_zero(plan->graph->allocator, (size_t)plan->graph->value_count * sizeof *resident);
  if (resident == NULL) return clv__error_memory(error, plan->graph->value_count * sizeof *resident);
  clv_status status = CLV_OK;
  for (uint32_t d = 0; d < plan->devices->count && status == CLV_OK && !*changed; ++d) {
    uint64_t limit = plan->devices->items[d].info.memory_limit_bytes;
    if (limit == 0 || is_roomy(plan, d, resident)) continue;
    fitting f = {.plan = plan, .placing = placing, .device = d, .limit = limit, .resident = resident};
    status = fit_device(&f, changed, error);
  }
  clv__release(plan->graph->allocator, resident);
  return status;
}
