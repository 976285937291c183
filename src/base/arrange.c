/* Assigns intervals to memory offsets: see arrange.h.
 *
 * The greedy method orders intervals by size and puts each at the lowest offset that is free during its life: Pisarchyk and
 * Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020. If the result is above the largest sum of live bytes,
 * it also tries the orders by length of life and by the product of size and length. Each order is tried in several rounds. A
 * round takes the order of the round before, but starts with the interval that reached the highest address there. The greedy
 * method compares all pairs of intervals, which takes too long for very large sets. Sets of more than CLV__ARRANGE_PAIRS
 * intervals are therefore placed in order of time with a free list, as in a heap. This needs a little more memory, but at most
 * linear work per interval. */
#include "base/arrange.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum {
  BLOCKS_TRIED = 256,    /* free blocks examined before the arena grows at its end */
  PAIRS_TRIED = 1 << 20, /* pairs examined while searching for an order better than by size */
  ROUNDS = 64
};

typedef bool (*meet_fn)(const void *cookie, const clv__interval *a, const clv__interval *b);

static int by_size(const void *a, const void *b) {
  const clv__interval *x = *(clv__interval *const *)a, *y = *(clv__interval *const *)b;
  if (x->size_bytes != y->size_bytes) return x->size_bytes < y->size_bytes ? 1 : -1;
  return x->first != y->first ? (x->first > y->first ? 1 : -1) : (x->id > y->id) - (x->id < y->id);
}

static uint64_t length(const clv__interval *interval) {
  return interval->last - interval->first + UINT64_C(1);
}

static int by_length(const void *a, const void *b) {
  const clv__interval *x = *(clv__interval *const *)a, *y = *(clv__interval *const *)b;
  return length(x) != length(y) ? (length(x) < length(y) ? 1 : -1) : by_size(a, b);
}

static int by_area(const void *a, const void *b) {
  const clv__interval *x = *(clv__interval *const *)a, *y = *(clv__interval *const *)b;
  const double p = (double)x->size_bytes * (double)length(x), q = (double)y->size_bytes * (double)length(y);
  return p != q ? (p < q ? 1 : -1) : by_size(a, b);
}

static int by_first(const void *a, const void *b) {
  const clv__interval *x = *(clv__interval *const *)a, *y = *(clv__interval *const *)b;
  return x->first != y->first ? (x->first > y->first ? 1 : -1) : by_size(a, b);
}

static int by_last(const void *a, const void *b) {
  const clv__interval *x = *(clv__interval *const *)a, *y = *(clv__interval *const *)b;
  return x->last != y->last ? (x->last > y->last ? 1 : -1) : (x->id > y->id) - (x->id < y->id);
}

/* ---- Greedy ---- */

static bool meet_in_time(const void *cookie, const clv__interval *a, const clv__interval *b) {
  (void)cookie;
  return a->first <= b->last && b->first <= a->last;
}

typedef struct greedy {
  meet_fn meet;
  const void *cookie;
  clv__interval **order, **placed; /* placed: sorted by offset */
  size_t count;
  size_t end, best; /* the highest end of the current arrangement, and of the best one */
  size_t *offsets;  /* of the best arrangement, in the caller's original order */
  clv__interval **given;
} greedy;

static void place(const greedy *g, size_t placed_count, clv__interval *interval) {
  size_t offset = 0;
  for (size_t i = 0; i < placed_count; ++i) {
    const clv__interval *other = g->placed[i];
    if (!g->meet(g->cookie, other, interval)) continue;
    if (offset + interval->size_bytes <= other->offset) break;
    const size_t end = other->offset + other->size_bytes;
    if (end > offset) offset = end;
  }
  interval->offset = offset;
}

/* Places all intervals in the current order. Keeps the offsets if no earlier arrangement was better. */
static void place_all(greedy *g) {
  g->end = 0;
  for (size_t i = 0; i < g->count; ++i) {
    clv__interval *interval = g->order[i];
    place(g, i, interval);
    size_t at = i;
    for (; at > 0 && g->placed[at - 1]->offset > interval->offset; --at) g->placed[at] = g->placed[at - 1];
    g->placed[at] = interval;
    if (interval->offset + interval->size_bytes > g->end) g->end = interval->offset + interval->size_bytes;
  }
  if (g->end >= g->best) return;
  g->best = g->end;
  for (size_t i = 0; i < g->count; ++i) g->offsets[i] = g->given[i]->offset;
}

/* Moves the interval with the highest end in memory to the front of the order. It was placed late and left gaps below it. */
static void raise_farthest(const greedy *g) {
  size_t at = 0;
  while (g->order[at]->offset + g->order[at]->size_bytes < g->end) ++at;
  clv__interval *farthest = g->order[at];
  memmove(g->order + 1, g->order, at * sizeof *g->order);
  g->order[0] = farthest;
}

/* The largest sum of live bytes at the start of any interval. If intervals meet by overlapping in time, this is a lower bound on
 * any arrangement. With another `meet` it need not be a bound: it only says when to stop trying. */
static size_t most_at_once(const greedy *g) {
  size_t most = 0;
  for (size_t i = 0; i < g->count; ++i) {
    const clv__interval *interval = g->given[i];
    size_t alive = interval->size_bytes;
    for (size_t j = 0; j < g->count; ++j) {
      const clv__interval *other = g->given[j];
      if (j != i && other->first <= interval->first && g->meet(g->cookie, other, interval)) alive += other->size_bytes;
    }
    if (alive > most) most = alive;
  }
  return most;
}

static void arrange_greedily(greedy *g) {
  static int (*const orders[])(const void *, const void *) = {by_size, by_length, by_area};
  const size_t rounds = g->count * g->count < PAIRS_TRIED ? PAIRS_TRIED / (g->count * g->count + 1) : 0;
  const size_t least = rounds > 0 ? most_at_once(g) : SIZE_MAX;
  g->best = SIZE_MAX;
  memcpy(g->order, g->given, g->count * sizeof *g->order);
  for (size_t o = 0; o < sizeof orders / sizeof *orders && (o == 0 || g->best > least); ++o) {
    qsort(g->order, g->count, sizeof *g->order, orders[o]);
    place_all(g);
    for (size_t r = 0; r < rounds && r < ROUNDS && g->best > least; ++r) {
      raise_farthest(g);
      place_all(g);
    }
  }
  for (size_t i = 0; i < g->count; ++i) g->given[i]->offset = g->offsets[i];
}

/* ---- In time ---- */

typedef struct block {
  size_t offset, size_bytes;
} block;

typedef struct heap {
  block *free; /* sorted by offset; no block is adjacent to another one or to `top`; fewer blocks than intervals */
  size_t free_count;
  size_t top;
} heap;

static void heap_take(heap *h, clv__interval *interval) {
  size_t tried = h->free_count < BLOCKS_TRIED ? h->free_count : BLOCKS_TRIED, best = tried;
  for (size_t i = 0; i < tried; ++i) {
    if (h->free[i].size_bytes < interval->size_bytes) continue;
    if (best == tried || h->free[i].size_bytes < h->free[best].size_bytes) best = i;
  }
  if (best == tried) {
    interval->offset = h->top;
    h->top += interval->size_bytes;
    return;
  }
  block *found = &h->free[best];
  interval->offset = found->offset;
  found->offset += interval->size_bytes;
  found->size_bytes -= interval->size_bytes;
  if (found->size_bytes > 0) return;
  --h->free_count;
  memmove(found, found + 1, (h->free_count - best) * sizeof *found);
}

static void heap_give(heap *h, const clv__interval *interval) {
  size_t low = 0, high = h->free_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (h->free[middle].offset < interval->offset)
      low = middle + 1;
    else
      high = middle;
  }
  block *next = &h->free[low];
  bool joins_before = low > 0 && next[-1].offset + next[-1].size_bytes == interval->offset;
  bool joins_after = low < h->free_count && interval->offset + interval->size_bytes == next->offset;
  if (joins_before && joins_after) {
    next[-1].size_bytes += interval->size_bytes + next->size_bytes;
    --h->free_count;
    memmove(next, next + 1, (h->free_count - low) * sizeof *next);
  } else if (joins_before) {
    next[-1].size_bytes += interval->size_bytes;
  } else if (joins_after) {
    next->offset = interval->offset;
    next->size_bytes += interval->size_bytes;
  } else {
    memmove(next + 1, next, (h->free_count - low) * sizeof *next);
    *next = (block){interval->offset, interval->size_bytes};
    ++h->free_count;
  }
  const block *last = h->free_count > 0 ? &h->free[h->free_count - 1] : NULL;
  if (last != NULL && last->offset + last->size_bytes == h->top) {
    h->top = last->offset;
    --h->free_count;
  }
}

static void arrange_in_time(clv__interval **starting, clv__interval **ending, size_t count, block *blocks) {
  heap h = {.free = blocks};
  memcpy(ending, starting, count * sizeof *ending);
  qsort(starting, count, sizeof *starting, by_first);
  qsort(ending, count, sizeof *ending, by_last);
  size_t ended = 0;
  for (size_t i = 0; i < count; ++i) {
    while (ended < count && ending[ended]->last < starting[i]->first) heap_give(&h, ending[ended++]);
    heap_take(&h, starting[i]);
  }
}

static clv_status arrange(clv__interval **intervals, size_t count, meet_fn meet, const void *cookie,
                          const clv_allocator *allocator, size_t *total, clv_error *error) {
  size_t sum = 0;
  *total = 0;
  for (size_t i = 0; i < count; ++i) { /* no offset exceeds the sum of all sizes */
    if (!clv__add(sum, intervals[i]->size_bytes, &sum)) return clv__error_memory(error, SIZE_MAX);
  }
  if (count == 0) return CLV_OK;
  clv__arena arena;
  clv__arena_init(&arena, allocator);
  clv__interval **order = clv__arena_allocate(&arena, count * sizeof *order);
  clv__interval **other = clv__arena_allocate(&arena, count * sizeof *other);
  block *blocks = clv__arena_allocate(&arena, count * sizeof *blocks);
  size_t *offsets = clv__arena_allocate(&arena, count * sizeof *offsets);
  if (order == NULL || other == NULL || blocks == NULL || offsets == NULL) {
    clv__arena_finish(&arena);
    return clv__error_memory(error, count * (sizeof *order + sizeof *blocks));
  }
  if (meet != NULL) {
    arrange_greedily(&(greedy){
        .meet = meet, .cookie = cookie, .given = intervals, .order = order, .placed = other, .offsets = offsets, .count = count});
  } else {
    arrange_in_time(intervals, other, count, blocks);
  }
  clv__arena_finish(&arena);
  for (size_t i = 0; i < count; ++i) {
    const size_t end = intervals[i]->offset + intervals[i]->size_bytes;
    if (end > *total) *total = end;
  }
  return CLV_OK;
}

clv_status clv__intervals_arrange(clv__interval **intervals, size_t count, const clv_allocator *allocator, size_t *total,
                                  clv_error *error) {
  return arrange(intervals, count, count <= CLV__ARRANGE_PAIRS ? meet_in_time : NULL, NULL, allocator, total, error);
}

clv_status clv__intervals_arrange_by(clv__interval **intervals, size_t count, meet_fn meet, const void *cookie,
                                     const clv_allocator *allocator, size_t *total, clv_error *error) {
  return arrange(intervals, count, meet, cookie, allocator, total, error);
}
