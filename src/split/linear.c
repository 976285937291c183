/* The linear cut: walks the node order once. A partition ends where the device or the group changes or a limit of the device is
 * reached, and around hosted views. */
#include <string.h>

#include "split/split.h"

typedef struct walk {
  const clv__problem *problem;
  const uint32_t *devices, *groups;
  clv__cut *cut;
  uint32_t *seen; /* by value: the last partition (+ 1) that reads it from outside */
  uint32_t first, inputs;
} walk;

/* Returns how many values `node` would add to those that the partition reads from outside. The count is exact: each value counts
 * once and is marked as seen. The walk is linear, so a producer is inside if it is at or after the partition's first node. */
static uint32_t count_new_inputs(walk *w, uint32_t node) {
  const clv__problem *problem = w->problem;
  uint32_t fresh = 0, stamp = w->cut->count;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    uint32_t value = problem->reads[r], producer = problem->producers[value];
    if ((producer != CLV__NONE && producer >= w->first) || w->seen[value] == stamp) continue;
    w->seen[value] = stamp;
    ++fresh;
  }
  return fresh;
}

static clv_status begin(walk *w, uint32_t node, clv_error *error) {
  uint32_t limit = w->problem->limits[w->devices[node]].max_inputs;
  w->cut->devices[w->cut->count] = w->devices[node];
  w->cut->offsets[w->cut->count] = node;
  ++w->cut->count;
  w->first = node;
  w->inputs = limit > 0 ? count_new_inputs(w, node) : 0;
  if (limit == 0 || w->inputs <= limit) return CLV_OK;
  return clv__split_too_many_inputs(w->problem, node, w->devices[node], w->inputs, error);
}

static bool must_end(walk *w, uint32_t node) {
  uint32_t device = w->devices[node];
  if (device != w->devices[w->first]) return true;
  if (w->groups != NULL && w->groups[node] != w->groups[w->first]) return true;
  if (clv__is_hosted(w->problem, node, device) != clv__is_hosted(w->problem, w->first, device)) return true;
  const clv__limits *limits = &w->problem->limits[device];
  if (limits->max_nodes > 0 && node - w->first >= limits->max_nodes) return true;
  if (limits->max_inputs == 0) return false;
  uint32_t inputs = w->inputs + count_new_inputs(w, node);
  if (inputs > limits->max_inputs) return true;
  w->inputs = inputs;
  return false;
}

clv_status clv__split_linear(const clv__problem *problem, const uint32_t *devices, const uint32_t *groups, clv__arena *arena,
                             clv__cut *cut, clv_error *error) {
  uint32_t n = problem->node_count;
  *cut = (clv__cut){.devices = clv__arena_allocate(arena, ((size_t)n + 1) * sizeof *cut->devices),
                    .offsets = clv__arena_allocate(arena, ((size_t)n + 1) * sizeof *cut->offsets),
                    .nodes = clv__arena_allocate(arena, (size_t)n * sizeof *cut->nodes),
                    .partition_of = clv__arena_allocate(arena, (size_t)n * sizeof *cut->partition_of)};
  walk w = {problem, devices, groups, cut, clv__arena_allocate_zero(arena, problem->value_count, sizeof *w.seen), 0, 0};
  if (cut->devices == NULL || cut->offsets == NULL || cut->nodes == NULL || cut->partition_of == NULL || w.seen == NULL) {
    return clv__error_memory(error, (size_t)n * sizeof *cut->nodes);
  }
  for (uint32_t node = 0; node < n; ++node) {
    if (node == 0 || must_end(&w, node)) CLV__TRY(begin(&w, node, error));
    cut->nodes[node] = node;
    cut->partition_of[node] = cut->count - 1;
  }
  cut->offsets[cut->count] = n;
  return CLV_OK;
}
