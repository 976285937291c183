/* See memory.h: the two remedies for a partition that does not fit. */
#include "plan/memory.h"

#include <string.h>

/* Weights below this size are not streamed: they are often shapes and scales that devices need at compile time. */
#define STREAMED_LEAST_BYTES 4096

uint64_t clv__streamed_bytes(const clv_plan *plan, uint32_t partition) {
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

bool clv__partition_is_pinned(const clv_plan *plan, const clv__partition *partition, const char **name) {
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    if (plan->problem->pins[plan->problem_nodes[partition->nodes[i]]] == CLV__NONE) continue;
    *name = plan->graph->nodes[partition->nodes[i]].name;
    return true;
  }
  return false;
}

static bool supports_all(const clv_plan *plan, const clv__partition *partition, uint32_t device) {
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    if (clv__capability_reason(&plan->capability, partition->nodes[i], device) != NULL) return false;
  }
  return true;
}

/* Returns the next device after the partition's own that supports all of its nodes. If there is none, returns the first of the
 * earlier devices that does and has no memory limit (so that the partition need not move again), or CLV__NONE. */
static uint32_t next_device(const clv_plan *plan, const clv__partition *partition) {
  for (uint32_t d = partition->device + 1; d < plan->devices->count; ++d) {
    if (supports_all(plan, partition, d)) return d;
  }
  for (uint32_t d = 0; d < partition->device; ++d) {
    if (plan->devices->items[d].info.memory_limit_bytes == 0 && supports_all(plan, partition, d)) return d;
  }
  return CLV__NONE;
}

static clv_status begin_way(const clv__fitting *f, clv__way *w, clv_error *error) {
  const clv__problem *problem = f->plan->problem;
  clv__arena *arena = &f->plan->arena;
  size_t nodes = problem->node_count, weights = problem->weight_count;
  w->device = f->device;
  if (w->devices == NULL) w->devices = clv__arena_allocate(arena, nodes * sizeof *w->devices);
  if (w->groups == NULL) w->groups = clv__arena_allocate(arena, nodes * sizeof *w->groups);
  if (w->streamed == NULL) w->streamed = clv__arena_allocate(arena, weights * sizeof *w->streamed);
  if (w->devices == NULL || w->groups == NULL || w->streamed == NULL) return clv__error_memory(error, nodes * sizeof *w->groups);
  memcpy(w->devices, f->placing->devices, nodes * sizeof *w->devices);
  memset(w->groups, 0xff, nodes * sizeof *w->groups); /* CLV__NONE */
  memset(w->streamed, 0, weights * sizeof *w->streamed);
  if (f->placing->groups != NULL) memcpy(w->groups, f->placing->groups, nodes * sizeof *w->groups);
  if (f->placing->streamed != NULL) memcpy(w->streamed, f->placing->streamed, weights * sizeof *w->streamed);
  return CLV_OK;
}

clv_status clv__fitting_price(clv__fitting *f, clv__way *w, clv_error *error) {
  clv__arena work;
  clv__cut cut;
  clv__copies copies;
  clv__price price;
  clv__arena_init(&work, f->plan->graph->allocator);
  f->compared += f->plan->problem->node_count;
  clv_status status = clv__split(f->plan->problem, w->devices, w->groups, f->plan->split, &work, &cut, error);
  if (status == CLV_OK) status = clv__split_copies(f->plan->problem, &cut, w->streamed, &work, &copies, error);
  if (status == CLV_OK) status = clv__price_cut(f->plan->problem, &cut, &copies, &work, &price, error);
  if (status == CLV_OK) w->time_ns = clv__price_of(&price, f->plan->objective);
  clv__arena_finish(&work);
  return status;
}

clv_status clv__fitting_move(const clv__fitting *f, const clv__partition *partition, clv__way *w, clv_error *error) {
  CLV__TRY(begin_way(f, w, error));
  const char *name;
  w->device = clv__partition_is_pinned(f->plan, partition, &name) ? CLV__NONE : next_device(f->plan, partition);
  if (w->device == CLV__NONE) return CLV_OK;
  for (uint32_t i = 0; i < partition->node_count; ++i) w->devices[f->plan->problem_nodes[partition->nodes[i]]] = w->device;
  return CLV_OK;
}

/* Asks whether the device supports the partition's nodes with their weights as inputs. */
static clv_status takes_inputs(const clv__fitting *f, const clv__partition *partition, bool *takes, clv_error *error) {
  const clv_plan *plan = f->plan;
  const clv__device *device = &plan->devices->items[f->device];
  const clv_graph_view *old = partition->view;
  clv__arena work;
  clv_graph_view *view;
  clv__arena_init(&work, plan->graph->allocator);
  for (uint32_t v = 0; v < old->value_count; ++v) {
    clv_tensor *type = &f->open_types[old->values[v]];
    size_t size_bytes;
    if (clv__tensor_size_bytes(type, &size_bytes) && size_bytes >= STREAMED_LEAST_BYTES) type->data = NULL;
  }
  clv_status status =
      clv__view_create(plan->graph, f->open_types, partition->nodes, partition->node_count, plan->is_kept, &work, &view, error);
  *takes = status == CLV_OK;
  for (uint32_t i = 0; *takes && i < partition->node_count; ++i) {
    clv_verdict verdict = {0};
    if (!device->is_lost) device->backend->supports(device->handle, view, i, &verdict);
    *takes = verdict.supported;
  }
  for (uint32_t v = 0; v < old->value_count; ++v) f->open_types[old->values[v]].data = plan->shapes->types[old->values[v]].data;
  clv__arena_finish(&work);
  return status;
}

/* Returns whether the weight is worth streaming. Small weights stay, and so do those that the device holds for other
 * partitions. */
static bool is_streamable(const clv__fitting *f, uint32_t weight) {
  const clv__problem *problem = f->plan->problem;
  return problem->weight_bytes[weight] >= STREAMED_LEAST_BYTES &&
         (f->resident[problem->weight_ids[weight]] >> f->device & 1u) == 0;
}

/* Returns whether the partition has streamable weights that are not streamed yet. */
static bool has_resident(const clv__fitting *f, const clv__partition *partition) {
  const clv__problem *problem = f->plan->problem;
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    uint32_t node = f->plan->problem_nodes[partition->nodes[i]];
    for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
      uint32_t weight = problem->weights[k];
      bool is_streamed = f->placing->streamed != NULL && (f->placing->streamed[weight] >> f->device & 1u) != 0;
      if (!is_streamed && is_streamable(f, weight)) return true;
    }
  }
  return false;
}

/* Returns the bytes of a node's streamable weights. If `w` is not NULL, also marks them as streamed in `w`, and sets `is_new` if
 * one of them was not streamed before. */
static uint64_t stream_node(const clv__fitting *f, uint32_t node, clv__way *w, bool *is_new) {
  const clv__problem *problem = f->plan->problem;
  uint64_t bytes = 0;
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    uint32_t weight = problem->weights[k];
    if (!is_streamable(f, weight)) continue;
    bytes += clv__align_up(problem->weight_bytes[weight], CLV__ALIGNMENT);
    if (w == NULL) continue;
    *is_new = *is_new || (w->streamed[weight] >> f->device & 1u) == 0;
    w->streamed[weight] |= (uint16_t)(1u << f->device);
  }
  return bytes;
}

/* Returns how many bytes of the partition's weights, counted from its first node, may stay on the device, so that only the other
 * weights are streamed; 0 if all must be streamed. If the result is not 0, lowers `room_bytes` to the size of the buffer that the
 * streamed weights need: the excess or, if it is more, the size of the largest node's weights. */
static uint64_t keep_bytes(const clv__fitting *f, const clv__partition *partition, uint64_t *room_bytes) {
  uint64_t total = 0, largest = f->excess;
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    uint64_t bytes = stream_node(f, f->plan->problem_nodes[partition->nodes[i]], NULL, NULL);
    total += bytes;
    if (bytes > largest) largest = bytes;
  }
  if (total <= f->excess + largest) return 0;
  if (largest < *room_bytes) *room_bytes = largest;
  return total - f->excess - largest;
}

/* Marks the partition's streamable weights as streamed, except for the first `keep` bytes. A new group begins when the weights of
 * the previous group fill `room_bytes`. Returns false if the weights of one node do not fit, or if nothing is left to stream. */
static bool stream_nodes(const clv__fitting *f, const clv__partition *partition, uint64_t keep, uint64_t room_bytes,
                         clv__way *w) {
  uint64_t kept = 0, filled = 0;
  uint32_t group = CLV__NONE;
  bool is_new = false;
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    uint32_t node = f->plan->problem_nodes[partition->nodes[i]];
    if (group == CLV__NONE && filled == 0 && kept < keep) {
      kept += stream_node(f, node, NULL, NULL);
      if (kept <= keep) continue;
    }
    uint64_t bytes = stream_node(f, node, w, &is_new);
    if (bytes > room_bytes) return false;
    if (filled + bytes > room_bytes || (keep > 0 && group == CLV__NONE)) {
      group = f->plan->problem->node_count + 1 + node; /* a number that no strategy and no other group uses */
      filled = 0;
    }
    filled += bytes;
    if (group != CLV__NONE) w->groups[node] = group;
  }
  return is_new || group != CLV__NONE;
}

clv_status clv__fitting_stream(const clv__fitting *f, const clv__partition *partition, clv__way *w, clv_error *error) {
  CLV__TRY(begin_way(f, w, error));
  bool takes;
  CLV__TRY(takes_inputs(f, partition, &takes, error));
  uint64_t flowing = clv__partition_peak_bytes(f->plan, partition), room = f->limit - f->used;
  uint64_t streamed = clv__streamed_bytes(f->plan, (uint32_t)(partition - f->plan->partitions));
  flowing -= streamed < flowing ? streamed : flowing; /* streamed weights are inputs too, but are counted in `room` */
  bool has_room = takes && f->used < f->limit && room > flowing;
  room -= flowing;
  if (streamed > 0 && room > streamed / 2 && !has_resident(f, partition)) room = streamed / 2; /* use smaller groups */
  uint64_t keep = streamed == 0 ? keep_bytes(f, partition, &room) : 0;
  if (!has_room || !stream_nodes(f, partition, keep, room, w)) w->device = CLV__NONE;
  return CLV_OK;
}
