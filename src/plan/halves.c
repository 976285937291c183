/* Makes a plan again with one partition divided into two, because its device cannot compile the partition as a whole. */
#include <stdio.h>
#include <string.h>

#include "plan/without_device.h"

/* Copies the old cut, but divides the partition into two: the first half of its nodes and the second. Nodes are in topological
 * order and the partition is convex, so no path leads from the second half to the first. */
static clv_status divide(clv__leaving *l, uint32_t partition, clv_error *error) {
  const clv__cut *old = &l->old->cut;
  uint32_t count = old->count + 1, nodes = l->plan->problem->node_count;
  clv__arena *arena = &l->plan->arena;
  clv__cut *cut = &l->placing.cut;
  *cut = (clv__cut){.count = count,
                    .devices = clv__arena_allocate(arena, count * sizeof *cut->devices),
                    .offsets = clv__arena_allocate(arena, ((size_t)count + 1) * sizeof *cut->offsets),
                    .nodes = clv__arena_copy(arena, old->nodes, nodes * sizeof *cut->nodes),
                    .partition_of = clv__arena_allocate(arena, nodes * sizeof *cut->partition_of)};
  if (cut->devices == NULL || cut->offsets == NULL || cut->nodes == NULL || cut->partition_of == NULL)
    return clv__error_memory(error, nodes * sizeof *cut->nodes);
  for (uint32_t p = 0; p < count; ++p) {
    uint32_t before = p > partition ? p - 1 : p;
    cut->devices[p] = old->devices[before];
    cut->offsets[p] = old->offsets[before];
  }
  cut->offsets[partition + 1] = old->offsets[partition] + (old->offsets[partition + 1] - old->offsets[partition]) / 2;
  cut->offsets[count] = nodes;
  for (uint32_t p = 0; p < count; ++p) {
    for (uint32_t i = cut->offsets[p]; i < cut->offsets[p + 1]; ++i) cut->partition_of[cut->nodes[i]] = p;
  }
  return CLV_OK;
}

static clv_status explain(clv__leaving *l, uint32_t partition, const char *reason, clv_error *error) {
  const clv__partition *divided = &l->old->partitions[partition];
  char text[512];
  const char *note;
  snprintf(text, sizeof text, "its partition was divided: %.400s", reason);
  CLV__TRY(clv__leaving_text(&l->plan->arena, text, &note, error));
  for (uint32_t i = 0; i < divided->node_count; ++i) l->plan->placement.notes[divided->nodes[i]] = note;
  return CLV_OK;
}

static clv_status make(clv__leaving *l, uint32_t partition, const char *reason, clv_error *error) {
  CLV__TRY(clv__leaving_begin(l, reason, error));
  CLV__TRY(divide(l, partition, error));
  CLV__TRY(clv__plan_set_cut(l->plan, &l->placing.cut, l->old->streamed, error));
  CLV__TRY(clv__plan_memory_need(l->plan, error));
  CLV__TRY(explain(l, partition, reason, error));
  CLV__TRY(clv__plan_set_steps(l->plan, error));
  return clv__leaving_find_same(l, error);
}

clv_status clv__plan_with_halves(const clv_plan *old, uint32_t partition, const char *reason, clv_plan **out, clv_error *error) {
  clv__leaving l;
  *out = NULL;
  CLV__TRY(clv__leaving_create(old, 0, &l, error));
  clv__devices_lock(old->devices);
  clv_status status = make(&l, partition, reason, error);
  clv__devices_unlock(old->devices);
  if (status == CLV_OK)
    *out = l.plan;
  else
    clv_plan_destroy(l.plan);
  return status;
}
