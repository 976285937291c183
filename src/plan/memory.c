/* Device memory: if a device needs more than it has, some of its partitions move to other devices, or weights are streamed,
 * whichever is cheaper for the whole plan. memory_need.c counts. */
#include <stdio.h>
#include <string.h>

#include "plan/memory.h"

clv_status clv__placing_copy(const clv_plan *plan, const clv__placing *placing, clv__placing *copy, clv_error *error) {
  const clv__problem *problem = plan->problem;
  clv__arena *arena = (clv__arena *)&plan->arena;
  size_t nodes = problem->node_count, weights = problem->weight_count;
  *copy = *placing;
  copy->devices = clv__arena_copy(arena, placing->devices, nodes * sizeof *copy->devices);
  copy->causes = clv__arena_copy(arena, placing->causes, nodes * sizeof *copy->causes);
  copy->groups = clv__arena_allocate(arena, nodes * sizeof *copy->groups);
  copy->streamed = clv__arena_allocate_zero(arena, weights, sizeof *copy->streamed);
  if (copy->devices == NULL || copy->causes == NULL || copy->groups == NULL || copy->streamed == NULL) {
    return clv__error_memory(error, nodes * sizeof *copy->groups);
  }
  memset(copy->groups, 0xff, nodes * sizeof *copy->groups); /* CLV__NONE */
  if (placing->groups != NULL) memcpy(copy->groups, placing->groups, nodes * sizeof *copy->groups);
  if (placing->streamed != NULL) memcpy(copy->streamed, placing->streamed, weights * sizeof *copy->streamed);
  return CLV_OK;
}

clv_status clv__fitting_adopt(clv__fitting *f, clv__placing *placing, clv_error *error) {
  CLV__TRY(f->cutter->cut(f->cutter->cookie, placing, &f->plan->arena, error));
  CLV__TRY(clv__plan_set_cut(f->plan, &placing->cut, placing->streamed, error));
  CLV__TRY(clv__plan_memory_need(f->plan, error));
  const clv__memory_need *need = &f->plan->needs[f->device];
  if (need->total_bytes < f->least_bytes) f->least_bytes = need->total_bytes;
  return CLV_OK;
}

bool clv__fitting_fits(const clv__fitting *f) {
  for (uint32_t d = 0; d < f->plan->devices->count; ++d) {
    if (clv__fitting_shares(f, d) && !clv__plan_fits(f->plan, d)) return false;
  }
  return true;
}

/* Returns the node whose weights and values take the most bytes, among the nodes on devices that use the memory of
 * f->device. */
static uint32_t largest_node(const clv__fitting *f, const uint32_t *devices) {
  const clv_plan *plan = f->plan;
  const clv__problem *problem = plan->problem;
  uint32_t largest = CLV__NONE;
  uint64_t most = 0;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    uint64_t bytes = 0;
    if (!clv__fitting_shares(f, devices[n])) continue;
    for (uint32_t k = problem->weight_offsets[n]; k < problem->weight_offsets[n + 1]; ++k)
      bytes += problem->weight_bytes[problem->weights[k]];
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r)
      bytes += problem->value_bytes[problem->reads[r]];
    for (uint32_t w = problem->write_offsets[n]; w < problem->write_offsets[n + 1]; ++w)
      bytes += problem->value_bytes[problem->writes[w]];
    if (largest == CLV__NONE || bytes > most) largest = n, most = bytes;
  }
  return largest;
}

static clv_status refuse(const clv__fitting *f, const clv__placing *placing, clv_error *error) {
  const clv_plan *plan = f->plan;
  const clv__device *device = &plan->devices->items[f->device];
  uint64_t limit = device->info.memory_limit_bytes;
  uint32_t node = largest_node(f, placing->devices);
  const char *name = node == CLV__NONE ? "" : plan->problem->node_names[node];
  if (f->least_bytes <= limit) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "%s: the compiler rejects even the smallest partitions as too large for its memory of %llu bytes",
                          device->name, (unsigned long long)limit);
  }
  bool is_pinned = node != CLV__NONE && plan->problem->pins[node] != CLV__NONE;
  return clv__error_set(
      error, CLV_NOT_SUPPORTED,
      "%s would need at least %llu bytes but has %llu, with as many weights streamed as possible; most is needed by node '%s'%s",
      device->name, (unsigned long long)f->least_bytes, (unsigned long long)limit, name,
      is_pinned ? ", which is pinned to this device" : ", and no other device can take enough of the nodes");
}

/* Writes a note for every node that moves, or whose weights are now streamed, with the reason. */
static clv_status explain(const clv__fitting *f, const clv__memory_need *before, const clv__placing *from, clv__placing *to,
                          clv_error *error) {
  clv_plan *plan = f->plan;
  const clv__problem *problem = plan->problem;
  char note[256];
  const clv__device *device = &plan->devices->items[f->device];
  for (uint32_t streams = 0; streams < 2; ++streams) {
    const char *kept = NULL;
    for (uint32_t n = 0; n < problem->node_count; ++n) {
      bool is_streamed = false, moves = from->devices[n] == f->device && to->devices[n] != f->device;
      for (uint32_t k = problem->weight_offsets[n]; to->devices[n] == f->device && k < problem->weight_offsets[n + 1]; ++k)
        is_streamed = is_streamed || (to->streamed[problem->weights[k]] >> f->device & 1u) != 0;
      if (streams == 1 ? !is_streamed : !moves) continue;
      if (kept == NULL) {
        snprintf(note, sizeof note, "%s would need %llu bytes but has %llu%s", device->name,
                 (unsigned long long)before->total_bytes, (unsigned long long)device->info.memory_limit_bytes,
                 streams == 1 ? ", so the weights of this node are streamed" : "");
        kept = clv__arena_string(&plan->arena, note, strlen(note));
        if (kept == NULL) return clv__error_memory(error, sizeof note);
      }
      plan->placement.notes[problem->node_ids[n]] = kept;
      if (moves) to->causes[n] = "memory";
    }
  }
  return CLV_OK;
}

/* Adopts a way in which all devices that share the memory fit. */
static clv_status adopt_way(clv__fitting *f, const clv__memory_need *before, clv__way *way, clv__placing *placing,
                            clv_error *error) {
  for (uint32_t d = 0; d < f->plan->devices->count; ++d) {
    if (!clv__fitting_shares(f, d)) continue;
    f->device = d;
    CLV__TRY(explain(f, &before[d], placing, &way->placing, error));
  }
  *placing = way->placing;
  return clv__fitting_adopt(f, placing, error);
}

/* Makes the plan fit into the memory of the device, by moving its partitions or streaming its weights. If that is not enough,
 * the devices that share the memory do the same in turn; each starts with the weights streamed that the previous devices could
 * stream. */
static clv_status relieve(clv__fitting *f, clv__placing *placing, clv_error *error) {
  clv_plan *plan = f->plan;
  const uint32_t device = f->device;
  clv__memory_need before[CLV__MAX_DEVICES];
  clv__placing from = *placing;
  memcpy(before, plan->needs, sizeof before);
  for (uint32_t i = 0; i < plan->devices->count; ++i) {
    clv__way move = {0}, stream = {0}, *chosen = &stream;
    f->device = (device + i) % plan->devices->count;
    if (plan->problem->spaces[f->device] != plan->problem->spaces[device]) continue;
    CLV__TRY(clv__fitting_stream(f, &from, &stream, error));
    CLV__TRY(clv__fitting_move(f, &from, &move, error));
    if (!stream.is_possible && !move.is_possible) CLV__TRY(clv__fitting_stream(f, &move.placing, &stream, error));
    if (move.is_possible && (!stream.is_possible || move.time_ns <= stream.time_ns)) chosen = &move;
    if (chosen->is_possible) return adopt_way(f, before, chosen, placing, error);
    from = stream.placing;
  }
  f->device = device;
  return refuse(f, placing, error);
}

clv_status clv__place_within_memory(clv_plan *plan, clv__placing *placing, const clv__cutter *cutter, bool *changed,
                                    clv_error *error) {
  *changed = false;
  CLV__TRY(clv__plan_memory_need(plan, error));
  for (uint32_t d = 0; d < plan->devices->count;) {
    if (clv__plan_fits(plan, d)) {
      ++d;
      continue;
    }
    clv__fitting f = {.plan = plan, .cutter = cutter, .device = d, .least_bytes = UINT64_MAX};
    *changed = true;
    CLV__TRY(clv__plan_ask_scratch(plan, error));
    if (placing->is_fitted) { /* the strategy did not count all memory: drop the remedy that it chose */
      placing->is_fitted = false;
      placing->groups = NULL;
      placing->streamed = NULL;
      CLV__TRY(clv__fitting_adopt(&f, placing, error));
    } else {
      CLV__TRY(relieve(&f, placing, error));
    }
    d = 0; /* check all devices again. This ends: nodes only move to later devices or to one without a limit */
  }
  return CLV_OK;
}
