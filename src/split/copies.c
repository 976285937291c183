/* Transfers for partitions in a given order. A value is copied to a memory space at most once, just before the first partition
 * there that reads it. It stays resident in both spaces. A copy between the memories of two devices passes through host
 * memory. */
#include <string.h>

#include "split/split.h"

typedef struct work {
  const clv__problem *problem;
  uint32_t *resident; /* by value: one bit per memory space */
  clv__copy *items;
  size_t count, capacity;
} work;

static clv_status add(work *w, const clv__copy *copy, clv__arena *arena, clv_error *error) {
  if (!clv__array_reserve(arena->allocator, (void **)&w->items, &w->capacity, w->count + 1, sizeof *w->items, w->count)) {
    return clv__error_memory(error, (w->count + 1) * sizeof *w->items);
  }
  w->items[w->count++] = *copy;
  return CLV_OK;
}

static clv_status bring(work *w, uint32_t value, uint32_t space, uint32_t before, clv__arena *arena, clv_error *error) {
  uint32_t *resident = &w->resident[value];
  if (*resident == 0) {
    return clv__error_set(error, CLV_INVALID_MODEL, "partition %u reads '%s' before any partition produces it", before,
                          w->problem->value_names == NULL ? "?" : w->problem->value_names[value]);
  }
  if ((*resident & 1u) == 0) {
    clv__copy home = {.value = value, .from = (uint32_t)__builtin_ctz(*resident), .to = 0, .before = before};
    CLV__TRY(add(w, &home, arena, error));
    *resident |= 1u;
  }
  if (space == 0) return CLV_OK;
  clv__copy out = {.value = value, .from = 0, .to = space, .before = before};
  *resident |= 1u << space;
  return add(w, &out, arena, error);
}

/* Adds a transfer for each streamed weight that the partition reads. `seen` (by weight) is the last partition (+ 1) that reads
 * the weight. */
static clv_status stream(work *w, const clv__cut *cut, uint32_t partition, const uint16_t *streamed, uint32_t *seen,
                         clv__arena *arena, clv_error *error) {
  const clv__problem *problem = w->problem;
  uint32_t device = cut->devices[partition];
  for (uint32_t i = cut->offsets[partition]; i < cut->offsets[partition + 1]; ++i) {
    uint32_t node = cut->nodes[i];
    for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
      uint32_t weight = problem->weights[k];
      if ((streamed[weight] >> device & 1u) == 0 || seen[weight] == partition + 1) continue;
      seen[weight] = partition + 1;
      clv__copy copy = {.value = weight, .is_weight = true, .from = 0, .to = problem->spaces[device], .before = partition};
      CLV__TRY(add(w, &copy, arena, error));
    }
  }
  return CLV_OK;
}

static clv_status add_partition(work *w, const clv__cut *cut, uint32_t partition, clv__arena *arena, clv_error *error) {
  const clv__problem *problem = w->problem;
  uint32_t space = problem->spaces[cut->devices[partition]], bit = 1u << space;
  for (uint32_t i = cut->offsets[partition]; i < cut->offsets[partition + 1]; ++i) {
    uint32_t node = cut->nodes[i];
    for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
      if ((w->resident[problem->reads[r]] & bit) == 0) CLV__TRY(bring(w, problem->reads[r], space, partition, arena, error));
    }
    for (uint32_t k = problem->write_offsets[node]; k < problem->write_offsets[node + 1]; ++k)
      w->resident[problem->writes[k]] |= bit;
  }
  return CLV_OK;
}

clv_status clv__split_copies(const clv__problem *problem, const clv__cut *cut, const uint16_t *streamed, clv__arena *arena,
                             clv__copies *copies, clv_error *error) {
  work w = {.problem = problem, .resident = clv__arena_allocate_zero(arena, problem->value_count, sizeof *w.resident)};
  uint32_t *seen = streamed == NULL ? NULL : clv__arena_allocate_zero(arena, problem->weight_count, sizeof *seen);
  *copies = (clv__copies){0};
  if (w.resident == NULL || (streamed != NULL && seen == NULL)) {
    return clv__error_memory(error, (size_t)problem->value_count * sizeof *w.resident);
  }
  clv_status status = CLV_OK;
  for (uint32_t v = 0; v < problem->value_count; ++v) w.resident[v] = problem->producers[v] == CLV__NONE ? 1u : 0u;
  for (uint32_t p = 0; p < cut->count; ++p) {
    if (streamed != NULL && problem->spaces[cut->devices[p]] != 0 && !clv__cut_is_hosted(problem, cut, p)) {
      CLV__TRY_GOTO(stream(&w, cut, p, streamed, seen, arena, error));
    }
    CLV__TRY_GOTO(add_partition(&w, cut, p, arena, error));
  }
  for (uint32_t v = 0; v < problem->value_count; ++v) {
    if (problem->is_output[v] && (w.resident[v] & 1u) == 0) CLV__TRY_GOTO(bring(&w, v, 0, cut->count, arena, error));
  }
  copies->items = clv__arena_copy(arena, w.items, w.count * sizeof *w.items);
  copies->count = (uint32_t)w.count;
  if (copies->items == NULL) status = clv__error_memory(error, w.count * sizeof *w.items);
cleanup:
  clv__release(arena->allocator, w.items);
  return status;
}
