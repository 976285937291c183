/* Two colours: the fewest slots.
 *
 * Take any acyclic grouping and write its partitions down in a topological order; merging neighbours of one colour keeps the
 * order and makes no more of them, so some alternating list is as short as the grouping.
 * Among the lists that begin with A, "everything of A that is ready, then everything of B that is ready, and so on" is the
 * shortest: by induction, after k steps it has run all that any such list has run after k steps, since whatever the other ran in
 * step k has its predecessors in what was run before or is of the same colour and ready too. So the shorter of the two lists, one
 * begun with A and one with B, is the fewest. The step in which a node runs is its level: the longest way to it, counted in
 * changes of colour. No node that is moved to a later step (a view to its neighbours, a node to what it is fused with) changes
 * the number as long as no step is added. */
#include "split/convex.h"

#include <string.h>

/* Levels for two colours, begun with either: a level's parity is its colour, so that the step to a producer's or the next one is
 * one operation. `levels` holds pairs: begun with colour 0, with colour 1. Whether each has a node at level 0 goes to `begins`.
 */
static void find_levels(const clv__convex *c, uint32_t *levels, bool begins[2]) {
  const clv__problem *problem = c->problem;
  begins[0] = begins[1] = false;
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    uint32_t first = c->colors[node], second = first ^ 1u, odd = first;
    for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer == CLV__NONE) continue;
      uint32_t a = levels[2 * (size_t)producer], b = levels[2 * (size_t)producer + 1];
      a += (a ^ odd) & 1u;
      b += (b ^ odd ^ 1u) & 1u;
      first = a > first ? a : first;
      second = b > second ? b : second;
    }
    levels[2 * (size_t)node] = first;
    levels[2 * (size_t)node + 1] = second;
    begins[0] |= first == 0;
    begins[1] |= second == 0;
  }
}

static void take_levels(const clv__convex *c, const uint32_t *levels, uint32_t start, clv__slots *slots) {
  uint32_t last = 0;
  for (uint32_t node = 0; node < c->problem->node_count; ++node) {
    uint32_t level = levels[2 * (size_t)node + start];
    slots->of_node[node] = level;
    last = level > last ? level : last;
  }
  slots->count = last + 1;
  for (uint32_t s = 0; s < slots->count; ++s) slots->colors[s] = (s & 1u) ^ start;
  clv__slots_price(c, slots);
}

/* Every node as late as it can run in the same slots, into `late`; whether all nodes of some slot that do work could run later.
 */
static bool take_latest(const clv__convex *c, clv__slots *slots, clv__slots *late) {
  const clv__problem *problem = c->problem;
  uint32_t n = problem->node_count, last = slots->count - 1, *latest = late->of_node;
  bool is_loose = false;
  late->count = slots->count;
  memcpy(late->colors, slots->colors, (size_t)slots->count * sizeof *late->colors);
  for (uint32_t node = 0; node < n; ++node) latest[node] = slots->colors[last] == c->colors[node] ? last : last - 1;
  for (uint32_t node = n; node-- > 0;) {
    uint32_t level = latest[node];
    for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer == CLV__NONE) continue;
      uint32_t most = level - ((level ^ latest[producer]) & 1u);
      latest[producer] = most < latest[producer] ? most : latest[producer];
    }
    if (level == slots->of_node[node] && (problem->flags[node] & CLV__NODE_VIEW) == 0) slots->contents[level] |= 4;
  }
  for (uint32_t s = 0; s < slots->count; ++s) {
    is_loose = is_loose || slots->contents[s] == 3;
    slots->contents[s] &= 3;
  }
  return is_loose;
}

clv_status clv__slots_levels(clv__convex *c, clv__slots *best, clv__slots *other, bool *has_other, clv_error *error) {
  size_t bytes = 2 * (size_t)c->problem->node_count * sizeof(uint32_t);
  bool begins[2];
  uint32_t *levels = clv__arena_allocate(&c->scratch, bytes);
  if (levels == NULL) return clv__error_memory(error, bytes);
  find_levels(c, levels, begins);
  take_levels(c, levels, begins[0] ? 0 : 1, best);
  if (begins[0] && begins[1]) { /* begun with nothing, it is the other one, a slot later */
    take_levels(c, levels, 1, other);
    clv__slots_take_better(c, best, other);
  }
  /* Without views every slot has a node of the longest path, which does work and can run nowhere else. */
  bool is_loose = (c->has_views || best->loses) && take_latest(c, best, other);
  *has_other = is_loose || best->loses;
  if (*has_other) clv__slots_price(c, other);
  return CLV_OK;
}
