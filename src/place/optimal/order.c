/* Cuts for devices that work at the same time: which nodes to separate, and which partitions to run first. */
#include <stdlib.h>
#include <string.h>

#include "place/optimal/optimal.h"

static uint32_t later(uint32_t a, uint32_t b) {
  return a > b ? a : b;
}

/* Sets `depths` (by node) to the largest number of changes of device on any path to the node. */
static void count_above(const clv__problem *problem, const uint32_t *devices, uint32_t *depths) {
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    depths[n] = 0;
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer != CLV__NONE) depths[n] = later(depths[n], depths[producer] + (devices[producer] != devices[n]));
    }
  }
}

/* Sets `depths` (by node) to the largest number of changes of device on any path from the node. */
static void count_below(const clv__problem *problem, const uint32_t *devices, uint32_t *depths) {
  for (uint32_t n = problem->node_count; n-- > 0;) {
    depths[n] = 0;
    for (uint32_t w = problem->write_offsets[n]; w < problem->write_offsets[n + 1]; ++w) {
      uint32_t value = problem->writes[w];
      for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
        uint32_t reader = problem->readers[i];
        depths[n] = later(depths[n], depths[reader] + (devices[reader] != devices[n]));
      }
    }
  }
}

clv_status clv__wait_groups(const clv__problem *problem, const uint32_t *devices, bool above, bool below, clv__arena *arena,
                            uint32_t *groups, clv_error *error) {
  uint32_t *other = clv__arena_allocate_zero(arena, problem->node_count, sizeof *other);
  if (other == NULL) return clv__error_memory(error, problem->node_count * sizeof *other);
  if (above)
    count_above(problem, devices, groups);
  else
    count_below(problem, devices, groups);
  if (above && below) {
    uint32_t most = 0;
    count_below(problem, devices, other);
    for (uint32_t n = 0; n < problem->node_count; ++n) most = later(most, other[n]);
    if ((uint64_t)(most + 1) * (most + 1) < CLV__NONE) { /* both depths fit into one number */
      for (uint32_t n = 0; n < problem->node_count; ++n) groups[n] = groups[n] * (most + 1) + other[n];
    }
  }
  return CLV_OK;
}

typedef struct ranked {
  uint64_t rank_ns;
  uint32_t partition;
} ranked;

static int compare_ranked(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->rank_ns != y->rank_ns) return x->rank_ns > y->rank_ns ? -1 : 1;
  return x->partition < y->partition ? -1 : x->partition > y->partition;
}

/* Computes the time from the start of each partition to the end of the graph, along the longest path. This time never increases
 * along an edge. So sorting by it, with the old order for ties, gives a valid order. */
static void rank_partitions(const clv__problem *problem, const clv__cut *cut, ranked *order, uint64_t *ranks) {
  for (uint32_t p = cut->count; p-- > 0;) {
    uint64_t time = problem->launch_ns[cut->devices[p]], below = 0;
    uint32_t space = problem->spaces[cut->devices[p]];
    for (uint32_t i = cut->offsets[p]; i < cut->offsets[p + 1]; ++i) {
      uint32_t node = cut->nodes[i];
      time = clv__add_ns(time, clv__node_ns(problem, node, cut->devices[p]));
      for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
        uint32_t value = problem->writes[w];
        for (uint32_t k = problem->reader_offsets[value]; k < problem->reader_offsets[value + 1]; ++k) {
          uint32_t q = cut->partition_of[problem->readers[k]], to = problem->spaces[cut->devices[q]];
          if (q == p) continue;
          uint64_t rank = ranks[q];
          if (to != space) rank = clv__add_ns(rank, clv__out_ns(problem, value, space) + clv__in_ns(problem, value, to));
          if (rank > below) below = rank;
        }
      }
    }
    ranks[p] = clv__add_ns(time, below);
    order[p] = (ranked){ranks[p], p};
  }
  if (cut->count > 1) qsort(order, cut->count, sizeof *order, compare_ranked);
}

clv_status clv__urgent_order(const clv__problem *problem, clv__cut *cut, clv__arena *arena, clv_error *error) {
  size_t n = problem->node_count, count = cut->count;
  ranked *order = clv__arena_allocate(arena, count * sizeof *order);
  uint64_t *ranks = clv__arena_allocate(arena, count * sizeof *ranks);
  clv__cut fresh = {.count = cut->count,
                    .devices = clv__arena_allocate(arena, count * sizeof *fresh.devices),
                    .offsets = clv__arena_allocate_zero(arena, count + 1, sizeof *fresh.offsets),
                    .nodes = clv__arena_allocate(arena, n * sizeof *fresh.nodes),
                    .partition_of = clv__arena_allocate(arena, n * sizeof *fresh.partition_of)};
  if (order == NULL || ranks == NULL || fresh.devices == NULL || fresh.offsets == NULL || fresh.nodes == NULL ||
      fresh.partition_of == NULL) {
    return clv__error_memory(error, n * sizeof *fresh.nodes);
  }
  rank_partitions(problem, cut, order, ranks);
  for (uint32_t i = 0; i < cut->count; ++i) {
    uint32_t p = order[i].partition, size = cut->offsets[p + 1] - cut->offsets[p];
    fresh.devices[i] = cut->devices[p];
    memcpy(&fresh.nodes[fresh.offsets[i]], &cut->nodes[cut->offsets[p]], size * sizeof *fresh.nodes);
    fresh.offsets[i + 1] = fresh.offsets[i] + size;
    for (uint32_t k = fresh.offsets[i]; k < fresh.offsets[i + 1]; ++k) fresh.partition_of[fresh.nodes[k]] = i;
  }
  *cut = fresh;
  return CLV_OK;
}
