/* List scheduling for devices that work at the same time. Nodes are placed in the order of urgency (the length of the longest
 * path from them to the end), each on the device that finishes it earliest. Times are only estimated: the result is a starting
 * point for the local search, which computes full prices. */
#include <stdlib.h>
#include <string.h>

#include "place/optimal/optimal.h"

typedef struct urgent {
  uint64_t rank_ns;
  uint32_t node;
} urgent;

typedef struct scheduler {
  const clv__problem *problem;
  urgent *order;
  uint64_t
      *ready; /* [value * space_count + space]: the time from which the value is in the space; UINT64_MAX while it is not there */
  uint64_t *free_at; /* the time from which each device, and then each memory space's copy lane, is free */
  uint32_t *devices;
} scheduler;

static uint64_t later(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

static uint64_t least_ns(const clv__problem *problem, uint32_t node) {
  uint64_t least = UINT64_MAX;
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    uint64_t time = clv__node_ns(problem, node, d);
    if (time < least) least = time;
  }
  return least;
}

static int compare_urgent(const void *a, const void *b) {
  const urgent *x = a, *y = b;
  if (x->rank_ns != y->rank_ns) return x->rank_ns > y->rank_ns ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

/* Sorts the nodes by urgency. A node is at least as urgent as its readers, and ties keep the order of the list, so the order is
 * topological. */
static void rank(scheduler *s, uint64_t *ranks) {
  const clv__problem *problem = s->problem;
  for (uint32_t n = problem->node_count; n-- > 0;) {
    uint64_t below = 0;
    for (uint32_t w = problem->write_offsets[n]; w < problem->write_offsets[n + 1]; ++w) {
      uint32_t value = problem->writes[w];
      for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
        below = later(below, ranks[problem->readers[i]]);
      }
    }
    ranks[n] = clv__add_ns(below, least_ns(problem, n));
    s->order[n] = (urgent){ranks[n], n};
  }
  qsort(s->order, problem->node_count, sizeof *s->order, compare_urgent);
}

/* Returns the time at which the value can be in memory space `space`. With `commit`, also schedules the copies. */
static uint64_t bring(scheduler *s, uint32_t value, uint32_t space, bool commit) {
  const clv__problem *problem = s->problem;
  uint64_t *ready = &s->ready[(size_t)value * problem->space_count], at = ready[space], home_at = ready[0];
  if (at != UINT64_MAX) return at;
  if (home_at == UINT64_MAX) {
    uint32_t producer = problem->producers[value], from = problem->spaces[s->devices[producer]];
    uint64_t *lane = &s->free_at[problem->device_count + from];
    home_at = clv__add_ns(later(*lane, ready[from]), clv__out_ns(problem, value, from));
    if (commit) ready[0] = *lane = home_at;
  }
  if (space == 0) return home_at;
  uint64_t *lane = &s->free_at[problem->device_count + space];
  at = clv__add_ns(later(*lane, home_at), clv__in_ns(problem, value, space));
  if (commit) ready[space] = *lane = at;
  return at;
}

/* Returns the time at which `device` would finish the node. If none of its inputs was computed on that device, a new partition
 * begins. */
static uint64_t run(scheduler *s, uint32_t node, uint32_t device, bool commit) {
  const clv__problem *problem = s->problem;
  uint64_t start = s->free_at[device], time = clv__node_ns(problem, node, device), saved = 0;
  bool begins = true;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    uint32_t producer = problem->producers[problem->reads[r]];
    start = later(start, bring(s, problem->reads[r], problem->spaces[device], commit));
    if (producer == CLV__NONE || s->devices[producer] != device) continue;
    begins = false;
    saved += clv__saving_ns(problem, r, device);
  }
  if (begins && (problem->flags[node] & CLV__NODE_VIEW) == 0) time += problem->launch_ns[device];
  return clv__add_ns(start, time - (saved < time ? saved : time));
}

static void place(scheduler *s, uint32_t node) {
  const clv__problem *problem = s->problem;
  uint32_t best = problem->pins[node];
  uint64_t best_end = UINT64_MAX;
  for (uint32_t d = 0; problem->pins[node] == CLV__NONE && d < problem->device_count; ++d) {
    if (!clv__can_run(problem, node, d)) continue;
    uint64_t end = run(s, node, d, false);
    if (end >= best_end) continue;
    best_end = end;
    best = d;
  }
  s->devices[node] = best;
  s->free_at[best] = run(s, node, best, true);
  for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
    s->ready[(size_t)problem->writes[w] * problem->space_count + problem->spaces[best]] = s->free_at[best];
  }
}

clv_status clv__list_schedule(const clv__problem *problem, const clv_allocator *allocator, uint32_t *devices, clv_error *error) {
  size_t ready = (size_t)problem->value_count * problem->space_count;
  clv__arena arena;
  clv__arena_init(&arena, allocator);
  uint64_t *ranks = clv__arena_allocate(&arena, problem->node_count * sizeof *ranks);
  scheduler s = {
      .problem = problem,
      .order = clv__arena_allocate(&arena, problem->node_count * sizeof *s.order),
      .ready = clv__arena_allocate(&arena, ready * sizeof *s.ready),
      .free_at = clv__arena_allocate_zero(&arena, (size_t)problem->device_count + problem->space_count, sizeof *s.free_at),
      .devices = devices};
  clv_status status = CLV_OK;
  if (ranks == NULL || s.order == NULL || s.ready == NULL || s.free_at == NULL) {
    status = clv__error_memory(error, ready * sizeof *s.ready);
    goto cleanup;
  }
  memset(s.ready, 0xff, ready * sizeof *s.ready);
  for (uint32_t v = 0; v < problem->value_count; ++v) {
    if (problem->producers[v] == CLV__NONE) s.ready[(size_t)v * problem->space_count] = 0;
  }
  rank(&s, ranks);
  for (uint32_t i = 0; i < problem->node_count; ++i) place(&s, s.order[i].node);
cleanup:
  clv__arena_finish(&arena);
  return status;
}
