/* Finds the path along which a bound charges launches. Among all paths through the graph it has the most forced changes of
 * device; among ties, the most changes between nodes that are faster on different devices; then the most nodes. Found in one
 * pass over the nodes, in topological order. */
#include "split/minimum_cut/network_own.h"

#define FORCED_CHANGE ((uint64_t)1 << 42)
#define LIKELY_CHANGE ((uint64_t)1 << 21)

/* By node: the score of the best path to it, and the last node of that path. Paths have no views, so for a view this is an
 * earlier node, or CLV__NONE if no node but views leads to it. */
typedef struct ways {
  uint64_t *worth;
  uint32_t *last, *before; /* `before`: the previous node on the path */
} ways;

static uint32_t fastest(const clv__problem *problem, uint32_t node) {
  uint32_t best = CLV__NONE;
  for (uint32_t left = clv__node_devices(problem, node); left != 0; left &= left - 1) {
    uint32_t device = (uint32_t)__builtin_ctz(left);
    if (best == CLV__NONE || clv__node_ns(problem, node, device) < clv__node_ns(problem, node, best)) best = device;
  }
  return best;
}

static uint64_t worth_of(const clv__problem *problem, uint32_t a, uint32_t b) {
  if ((clv__node_devices(problem, a) & clv__node_devices(problem, b)) == 0) return FORCED_CHANGE;
  return fastest(problem, a) == fastest(problem, b) ? 1 : LIKELY_CHANGE;
}

static void extend(const clv__problem *problem, ways *w, uint32_t node) {
  bool is_view = (problem->flags[node] & CLV__NODE_VIEW) != 0;
  w->worth[node] = is_view ? 0 : 1;
  w->last[node] = is_view ? CLV__NONE : node;
  w->before[node] = CLV__NONE;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    uint32_t producer = problem->producers[problem->reads[r]];
    if (producer == CLV__NONE || w->last[producer] == CLV__NONE) continue;
    uint32_t last = w->last[producer];
    uint64_t worth = w->worth[producer] + (is_view ? 0 : worth_of(problem, last, node));
    if (worth <= w->worth[node]) continue;
    w->worth[node] = worth;
    if (is_view) {
      w->last[node] = last;
    } else {
      w->before[node] = last;
    }
  }
}

clv_status clv__network_path_find(const clv__problem *problem, const clv_allocator *allocator, uint32_t **nodes, uint32_t *count,
                                  clv_error *error) {
  size_t size_bytes = (size_t)problem->node_count * (sizeof(uint64_t) + 2 * sizeof(uint32_t));
  uint64_t *room = clv__allocate(allocator, size_bytes);
  if (room == NULL) return clv__error_memory(error, size_bytes);
  uint32_t *last = (uint32_t *)(room + problem->node_count);
  ways w = {room, last, last + problem->node_count};
  uint32_t best = CLV__NONE, length = 0;
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    extend(problem, &w, node);
    if (w.last[node] == node && (best == CLV__NONE || w.worth[node] > w.worth[best])) best = node;
  }
  for (uint32_t node = best; node != CLV__NONE; node = w.before[node]) ++length;
  uint32_t *path = clv__allocate(allocator, (size_t)length * sizeof *path);
  if (path != NULL) {
    *count = length;
    for (uint32_t node = best; node != CLV__NONE; node = w.before[node]) path[--length] = node;
    *nodes = path;
  }
  clv__release(allocator, room);
  return path == NULL ? clv__error_memory(error, (size_t)length * sizeof *path) : CLV_OK;
}
