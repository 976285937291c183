/* The fewest slots for two colours.
 *
 * Take any acyclic grouping and list its partitions in a topological order. Merging neighbours of one colour keeps the order and
 * adds no partitions, so some alternating list is as short as the grouping.
 *
 * Among the lists that begin with A, "all nodes of A that are ready, then all nodes of B that are ready, and so on" is the
 * shortest. By induction, after k steps it has run everything that any such list has run after k steps: a node that the other
 * list runs in step k has its predecessors among the nodes that ran before, or they have the same colour and are ready too. So
 * the shorter of the two lists, one that begins with A and one with B, has the fewest slots. The step in which a node runs is its
 * level: the longest path to it, counted in changes of colour. Moving a node to a later step (a view to its neighbours, a node to
 * the one it is fused with) does not change the count as long as no step is added. */
#include "split/convex.h"

#include <string.h>

/* Computes two levels of each node, as a pair in `levels`: for the list that starts with colour 0 and for the one that starts
 * with colour 1. In a list, even levels have its first colour and odd levels the other. So a node has at least the level of each
 * producer, plus one if their colours differ. `begins` is set to whether each list has a node at level 0. */
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

/* Stores in `late` the grouping in which every node runs as late as it can in these slots. Returns whether there is a slot whose
 * nodes, not counting views, could all run later. */
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
  if (begins[0] && begins[1]) { /* otherwise one list starts with an empty slot, and equals the other list one slot later */
    take_levels(c, levels, 1, other);
    clv__slots_take_better(c, best, other);
  }
  /* Without views, every slot has a node of the longest path. That node does work and can run in no other slot, so no slot can be
   * emptied. */
  bool is_loose = (c->has_views || best->loses) && take_latest(c, best, other);
  *has_other = is_loose || best->loses;
  if (*has_other) clv__slots_price(c, other);
  return CLV_OK;
}
