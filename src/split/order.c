/* Orders slots so that devices overlap, by list scheduling. Among the slots whose inputs are all computed, the one that can start
 * first comes next. Among ties, the slot with the most work after it wins. */
#include <string.h>

#include "split/convex.h"

enum { MOST_DEVICES = 32 }; /* convex.c rejects placements on more devices */

/* A heap of slots: the greatest key is on top; among ties, the first slot. */
typedef struct heap {
  const uint64_t *keys;
  uint32_t *items, count;
} heap;

static bool is_above(const heap *h, uint32_t a, uint32_t b) {
  return h->keys[a] != h->keys[b] ? h->keys[a] > h->keys[b] : a < b;
}

static void push(heap *h, uint32_t item) {
  uint32_t at = h->count++;
  for (; at > 0 && is_above(h, item, h->items[(at - 1) / 2]); at = (at - 1) / 2) h->items[at] = h->items[(at - 1) / 2];
  h->items[at] = item;
}

static uint32_t pop(heap *h) {
  uint32_t top = h->items[0], item = h->items[--h->count], at = 0;
  for (uint32_t child = 1; child < h->count; child = 2 * at + 1) {
    if (child + 1 < h->count && is_above(h, h->items[child + 1], h->items[child])) ++child;
    if (!is_above(h, h->items[child], item)) break;
    h->items[at] = h->items[child];
    at = child;
  }
  h->items[at] = item;
  return top;
}

/* One device: `now` has the slots that it could start when it is free, `later` those whose inputs are not ready by then. */
typedef struct lane {
  heap now, later;
  uint64_t free_at;
} lane;

typedef struct scheduler {
  const clv__convex *c;
  const clv__slots *slots;
  const uint32_t *offsets, *nodes; /* by slot */
  uint64_t *times, *tails;         /* by slot: its time; its time plus the longest chain that follows */
  uint64_t *sooner;  /* by slot: CLV__NO_TIME minus the time at which its inputs are ready, so that the earliest is on top */
  uint32_t *pending; /* by slot: the number of its reads of values that are not computed yet */
  lane lanes[MOST_DEVICES];
} scheduler;

static uint32_t device_of(const scheduler *s, uint32_t slot) {
  return s->c->color_devices[s->slots->colors[slot]];
}

static uint64_t copy_ns(const scheduler *s, uint32_t value, uint32_t from, uint32_t to) {
  const clv__problem *problem = s->c->problem;
  uint64_t out = from != to && from != 0 ? clv__out_ns(problem, value, from) : 0;
  return clv__sum_ns(out, from != to && to != 0 ? clv__in_ns(problem, value, to) : 0);
}

/* Sets the times and tails of all slots, and counts what each waits for. Slots are numbered in a topological order, so a walk
 * from the last to the first visits each slot after those that depend on it. */
static void find_times(scheduler *s) {
  const clv__problem *problem = s->c->problem;
  for (uint32_t p = s->slots->count; p-- > 0;) {
    uint32_t device = device_of(s, p), space = problem->spaces[device];
    uint64_t after = 0;
    s->times[p] = problem->launch_ns[device];
    for (uint32_t i = s->offsets[p]; i < s->offsets[p + 1]; ++i) {
      uint32_t node = s->nodes[i];
      s->times[p] = clv__sum_ns(s->times[p], clv__node_ns(problem, node, device));
      for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
        uint32_t value = problem->writes[w];
        for (uint32_t k = problem->reader_offsets[value]; k < problem->reader_offsets[value + 1]; ++k) {
          uint32_t other = s->slots->of_node[problem->readers[k]];
          if (other == p) continue;
          uint64_t tail = clv__sum_ns(s->tails[other], copy_ns(s, value, space, problem->spaces[device_of(s, other)]));
          after = tail > after ? tail : after;
          ++s->pending[other];
        }
      }
    }
    s->tails[p] = clv__sum_ns(s->times[p], after);
  }
}

/* Returns the device that can start a slot first, or CLV__NONE if nothing is left. */
static uint32_t find_lane(scheduler *s) {
  uint32_t best = CLV__NONE;
  uint64_t best_start = 0;
  for (uint32_t d = 0; d < MOST_DEVICES; ++d) {
    lane *l = &s->lanes[d];
    if (l->now.count == 0 && l->later.count == 0) continue;
    uint64_t first = l->later.count > 0 ? CLV__NO_TIME - s->sooner[l->later.items[0]] : 0;
    uint64_t start = l->now.count > 0 || first < l->free_at ? l->free_at : first;
    while (l->later.count > 0 && CLV__NO_TIME - s->sooner[l->later.items[0]] <= start) push(&l->now, pop(&l->later));
    if (best == CLV__NONE || start < best_start) best = d, best_start = start;
  }
  if (best != CLV__NONE) s->lanes[best].free_at = best_start;
  return best;
}

/* Makes the outputs of a slot that ends at `end` available to the slots that read them. */
static void release_readers(scheduler *s, uint32_t slot, uint64_t end) {
  const clv__problem *problem = s->c->problem;
  uint32_t space = problem->spaces[device_of(s, slot)];
  for (uint32_t i = s->offsets[slot]; i < s->offsets[slot + 1]; ++i) {
    uint32_t node = s->nodes[i];
    for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
      uint32_t value = problem->writes[w];
      for (uint32_t k = problem->reader_offsets[value]; k < problem->reader_offsets[value + 1]; ++k) {
        uint32_t other = s->slots->of_node[problem->readers[k]];
        if (other == slot) continue;
        uint64_t sooner = CLV__NO_TIME - clv__sum_ns(end, copy_ns(s, value, space, problem->spaces[device_of(s, other)]));
        if (sooner < s->sooner[other]) s->sooner[other] = sooner;
        if (--s->pending[other] == 0) push(&s->lanes[device_of(s, other)].later, other);
      }
    }
  }
}

clv_status clv__slots_order(clv__convex *c, clv__slots *slots, const uint32_t *offsets, const uint32_t *nodes, clv_error *error) {
  size_t count = slots->count, room[MOST_DEVICES] = {0};
  scheduler s = {.c = c, .slots = slots, .offsets = offsets, .nodes = nodes};
  uint64_t *times = clv__arena_allocate(&c->scratch, 3 * count * sizeof *times);
  uint32_t *numbers = clv__arena_allocate_zero(&c->scratch, 5 * count, sizeof *numbers);
  if (times == NULL || numbers == NULL) return clv__error_memory(error, 3 * count * sizeof *times);
  uint32_t *number = numbers + count, *colors = numbers + 2 * count, *items = numbers + 3 * count, done = 0, device;
  s.times = times, s.tails = times + count, s.sooner = times + 2 * count, s.pending = numbers;
  for (uint32_t p = 0; p < count; ++p) ++room[device_of(&s, p)];
  for (uint32_t d = 0; d < MOST_DEVICES; items += 2 * room[d], ++d) {
    s.lanes[d].now = (heap){s.tails, items, 0};
    s.lanes[d].later = (heap){s.sooner, items + room[d], 0};
  }
  memset(s.sooner, 0xff, count * sizeof *s.sooner);
  find_times(&s);
  for (uint32_t p = 0; p < count; ++p) {
    if (s.pending[p] == 0) push(&s.lanes[device_of(&s, p)].later, p);
  }
  while ((device = find_lane(&s)) != CLV__NONE) {
    uint32_t slot = pop(&s.lanes[device].now);
    colors[done] = slots->colors[slot];
    number[slot] = done++;
    s.lanes[device].free_at = clv__sum_ns(s.lanes[device].free_at, s.times[slot]);
    release_readers(&s, slot, s.lanes[device].free_at);
  }
  for (uint32_t node = 0; node < c->problem->node_count; ++node) slots->of_node[node] = number[slots->of_node[node]];
  slots->colors = colors;
  return CLV_OK;
}
