/* The fewest partitions that a placement can have: the exact number for two devices, a lower bound for more.
 *
 * Take an acyclic grouping, list its partitions in a topological order, and keep those of a set S of devices. A path through
 * the graph visits partitions in this order. A run is a stretch of the path on one device of S, between nodes of other devices
 * inside or outside S. Each run begins in a partition that the path has not visited before, because no path leaves a partition
 * and returns to it. So S has at least as many partitions as the path has runs. There is one more if the first partition of S
 * is on another device than the first run, and one more if the last partition is on another device than the last run. Take the
 * maximum over all paths, then the minimum over the choices of the first and the last device: this is a bound for S. Bounds of
 * disjoint sets add up. With two devices the bound is exact: levels.c finds a grouping with as many slots as this count on the
 * longest path. */
#include <string.h>

#include "split/split.h"

enum { MOST_EXACT = 4 }; /* up to this many devices, every set is tried */

typedef struct search {
  const clv__problem *problem;
  const uint32_t *devices;
  uint32_t used;     /* bits of the devices that have a node */
  uint32_t *longest; /* by node: the most runs of the set on a path that ends there, as count_runs() counts them */
} search;

/* For each device: counts the runs of `set` on the longest path that ends with a run on that device, plus one if the first run is
 * not on `first`. */
static void count_runs(const search *s, uint32_t set, uint32_t first, uint32_t most[32]) {
  const clv__problem *problem = s->problem;
  memset(most, 0, 32 * sizeof *most);
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    uint32_t device = s->devices[node], longest = 0;
    bool is_in = (set >> device & 1u) != 0;
    if (is_in) longest = 1 + (device != first);
    for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer == CLV__NONE || s->longest[producer] == 0) continue;
      uint32_t runs = s->longest[producer] + (is_in && s->devices[producer] != device);
      longest = runs > longest ? runs : longest;
    }
    s->longest[node] = longest;
    if (is_in && longest > most[device]) most[device] = longest;
  }
}

static uint32_t bound_of_set(const search *s, uint32_t set) {
  uint32_t least = UINT32_MAX, most[32];
  for (uint32_t firsts = set; firsts != 0; firsts &= firsts - 1) {
    count_runs(s, set, (uint32_t)__builtin_ctz(firsts), most);
    for (uint32_t lasts = set; lasts != 0; lasts &= lasts - 1) {
      uint32_t last = (uint32_t)__builtin_ctz(lasts), bound = 0;
      for (uint32_t ends = set; ends != 0; ends &= ends - 1) {
        uint32_t end = (uint32_t)__builtin_ctz(ends), runs = most[end] + (end != last);
        bound = most[end] > 0 && runs > bound ? runs : bound;
      }
      least = bound < least ? bound : least;
    }
  }
  return least;
}

/* Returns the best bound over all divisions of the devices into sets, by dynamic programming over sets. */
static uint32_t bound_of_parts(const search *s) {
  uint32_t devices[MOST_EXACT], count = 0, best[1u << MOST_EXACT] = {0};
  for (uint32_t bits = s->used; bits != 0; bits &= bits - 1) devices[count++] = (uint32_t)__builtin_ctz(bits);
  for (uint32_t set = 1; set < 1u << count; ++set) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < count; ++i) bits |= (set >> i & 1u) << devices[i];
    best[set] = bound_of_set(s, bits);
    for (uint32_t part = (set - 1) & set; part > 0; part = (part - 1) & set) {
      uint32_t sum = best[part] + best[set ^ part];
      best[set] = sum > best[set] ? sum : best[set];
    }
  }
  return best[(1u << count) - 1];
}

clv_status clv__split_fewest_bound(const clv__problem *problem, const uint32_t *devices, clv__arena *arena, uint32_t *count,
                                   clv_error *error) {
  search s = {.problem = problem, .devices = devices};
  *count = 0;
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    if (devices[node] >= problem->device_count || devices[node] >= 32) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "node %u is on device %u, but there are only %u devices", node,
                            devices[node], problem->device_count);
    }
    s.used |= 1u << devices[node];
  }
  if (problem->node_count == 0) return CLV_OK;
  size_t bytes = (size_t)problem->node_count * sizeof *s.longest;
  s.longest = clv__allocate(arena->allocator, bytes);
  if (s.longest == NULL) return clv__error_memory(error, bytes);
  if (__builtin_popcount(s.used) <= MOST_EXACT) {
    *count = bound_of_parts(&s);
  } else {
    uint32_t sum = 0, whole = bound_of_set(&s, s.used);
    for (uint32_t bits = s.used; bits != 0; bits &= bits - 1) sum += bound_of_set(&s, bits & -bits);
    *count = sum > whole ? sum : whole;
  }
  clv__release(arena->allocator, s.longest);
  return CLV_OK;
}
