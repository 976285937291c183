/* Merges the buckets of a layer's chosen plans, and of single devices. See buckets.h. */
#include <math.h>
#include <string.h>

#include "gnn/plan/buckets.h"

#define ORDER_BUDGET 200000u /* simulated tasks for the search of a better sequence */

typedef struct merging {
  clv__arena *arena;
  const clv__costs *costs;
  const clv__choose_cut *cut;
} merging;

/* Plans after merging their buckets. */
typedef struct merged {
  clv__pep *peps;
  uint32_t *sequence;
  double makespan_ns;
  uint32_t merge_count;
  const clv__bucket_merge *merges;
} merged;

static clv_status make_room(const merging *s, merged *made, clv_error *error) {
  *made = (merged){.makespan_ns = INFINITY};
  made->peps = clv__arena_allocate_zero(s->arena, s->cut->k, sizeof *made->peps);
  made->sequence = clv__arena_allocate_zero(s->arena, s->cut->k, sizeof *made->sequence);
  if (made->peps != NULL && made->sequence != NULL) return CLV_OK;
  return clv__error_memory(error, s->cut->k * sizeof *made->peps);
}

/* Reorders the sequence, because merging may have made the plans of some subgraphs equal. Subgraphs with equal plans should
 * form one cluster. */
static clv_status order(const merging *s, merged *made, clv_error *error) {
  uint32_t k = s->cut->k;
  clv__search search;
  clv__candidate candidate, grouped, given;
  uint32_t *offsets = clv__arena_allocate_zero(s->arena, k + 1u, sizeof *offsets);
  clv__pep_work *works = clv__arena_allocate_zero(s->arena, k, sizeof *works);
  if (offsets == NULL || works == NULL) return clv__error_memory(error, k * sizeof *works);
  for (uint32_t i = 0; i < k; ++i) {
    offsets[i + 1] = i + 1;
    clv__pep_work_of(&made->peps[i], &works[i]);
  }
  const clv__pep_works all = {s->costs->machine, k, offsets, works};
  CLV__TRY(clv__search_init(&search, s->arena, &all, error));
  CLV__TRY(clv__candidate_init(&candidate, s->arena, k, error));
  CLV__TRY(clv__candidate_init(&grouped, s->arena, k, error));
  CLV__TRY(clv__candidate_init(&given, s->arena, k, error));
  memcpy(given.sequence, made->sequence, k * sizeof *made->sequence);
  search.budget = ORDER_BUDGET;
  clv__search_order(&search, &candidate);
  clv__candidate_copy(&grouped, &candidate);
  clv__search_cluster(&search, &grouped);
  clv__search_cluster(&search, &given);
  const clv__candidate *best = given.makespan_ns < grouped.makespan_ns ? &given : &grouped;
  /* A pipeline may be faster if its clusters are split. */
  if (candidate.makespan_ns < best->makespan_ns * (1 - 1e-9)) best = &candidate;
  made->makespan_ns = best->makespan_ns;
  memcpy(made->sequence, best->sequence, k * sizeof *made->sequence);
  return CLV_OK;
}

/* Merges the buckets of `made`, which must have plans, a sequence and its makespan. Then reorders the sequence. If the schedule
 * is then longer than before reordering, undoes the merges too. */
static clv_status merge(const merging *s, merged *made, clv_error *error) {
  merged before;
  size_t k = s->cut->k;
  clv__bucketing bucketing = {
      .arena = s->arena, .costs = s->costs, .cut = s->cut, .peps = made->peps, .sequence = made->sequence};
  CLV__TRY(make_room(s, &before, error));
  before.makespan_ns = made->makespan_ns;
  memcpy(before.peps, made->peps, k * sizeof *made->peps);
  memcpy(before.sequence, made->sequence, k * sizeof *made->sequence);
  CLV__TRY(clv__buckets_merge(&bucketing, error));
  made->makespan_ns = bucketing.makespan_ns;
  made->merge_count = bucketing.merge_count;
  made->merges = bucketing.merges;
  if (made->merge_count == 0) return CLV_OK;
  CLV__TRY(order(s, made, error));
  if (made->makespan_ns > bucketing.makespan_ns * (1 + 1e-9)) *made = before;
  return CLV_OK;
}

/* Makes a schedule of everything on one device and merges its buckets. Callers must ignore `made` if no buckets were merged
 * (merge_count 0). */
static clv_status merge_single(const merging *s, const clv__pep_list *lists, uint32_t device, merged *made, clv_error *error) {
  CLV__TRY(make_room(s, made, error));
  for (uint32_t i = 0; i < s->cut->k; ++i) {
    uint32_t o = 0;
    while (o < lists[i].count && clv__pep_single(&lists[i].items[o]) != device && lists[i].items[o].time_ns > 0) ++o;
    if (o == lists[i].count) return CLV_OK;
    made->peps[i] = lists[i].items[o];
    made->sequence[i] = i;
  }
  CLV__TRY(order(s, made, error));
  return merge(s, made, error);
}

static clv_status adopt(const merging *s, const merged *made, clv__chosen_layer *chosen, clv_error *error) {
  uint32_t k = s->cut->k, tasks;
  clv__pep_work *works = clv__arena_allocate_zero(s->arena, k, sizeof *works);
  const clv__pep_work **sequence = clv__arena_allocate_zero(s->arena, k, sizeof *sequence);
  if (works == NULL || sequence == NULL) return clv__error_memory(error, k * sizeof *works);
  chosen->sequence = made->sequence;
  chosen->merge_count = made->merge_count;
  chosen->merges = made->merges;
  chosen->cluster_count = 0;
  for (uint32_t at = 0; at < k; ++at) {
    uint32_t i = made->sequence[at];
    chosen->peps[i] = &made->peps[i];
    clv__pep_work_of(&made->peps[i], &works[at]);
    sequence[at] = &works[at];
    if (at == 0 || !clv__pep_same(&made->peps[made->sequence[at - 1]], &made->peps[i]))
      chosen->clusters[chosen->cluster_count++] = (clv__cluster){at, 0};
    ++chosen->clusters[chosen->cluster_count - 1].count;
  }
  clv__simulate(s->costs->machine, sequence, k, &chosen->timeline, NULL, &tasks);
  /* The bounds were computed for the plans before merging. After merging there may be fewer switches, so the bounds may be too
   * high: limit them to the makespan. */
  chosen->bound_ns = fmin(chosen->bound_ns, floor(chosen->timeline.makespan_ns));
  chosen->bound_all_ns = fmin(chosen->bound_all_ns, floor(chosen->timeline.makespan_ns));
  return CLV_OK;
}

clv_status clv__choose_buckets(clv__arena *arena, const clv__costs *costs, const clv__choose_cut *cut, const clv__pep_list *lists,
                               clv__chosen_layer *chosen, clv_error *error) {
  const merging s = {arena, costs, cut};
  merged mine, single, best = {.makespan_ns = INFINITY};
  CLV__TRY(make_room(&s, &mine, error));
  for (uint32_t i = 0; i < cut->k; ++i) {
    mine.peps[i] = *chosen->peps[i];
    mine.sequence[i] = chosen->sequence[i];
  }
  mine.makespan_ns = chosen->timeline.makespan_ns;
  CLV__TRY(merge(&s, &mine, error));
  for (uint32_t d = 0; d < costs->machine->device_count; ++d) {
    if (!isfinite(chosen->single_ns[d])) continue;
    if (!costs->machine->devices[d].is_static) {
      best.makespan_ns = fmin(best.makespan_ns, chosen->single_ns[d]);
      continue;
    }
    CLV__TRY(merge_single(&s, lists, d, &single, error));
    if (single.merge_count > 0) chosen->single_ns[d] = single.makespan_ns;
    if (chosen->single_ns[d] < best.makespan_ns) {
      best = single;
      best.makespan_ns = chosen->single_ns[d];
    }
  }
  if (mine.makespan_ns <= best.makespan_ns * (1 + 1e-9)) return mine.merge_count > 0 ? adopt(&s, &mine, chosen, error) : CLV_OK;
  /* After merging, the chosen plans are slower than the best single device. If they are not slower without merging, which is
   * usual, they stay unmerged. Otherwise the single device replaces them: merging its own buckets can make it faster than the
   * chosen plans, because it switches executables less often. */
  if (best.peps == NULL || chosen->timeline.makespan_ns <= best.makespan_ns * (1 + 1e-9)) return CLV_OK;
  chosen->from = "one device";
  return adopt(&s, &best, chosen, error);
}
