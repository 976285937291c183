/* Where intervals lie in memory: see arrange.h.
 *
 * Greedy by size, each at the lowest offset free during its life: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural
 * Net Inference", 2020; where that is above what no arrangement is below, by length of life and by the product of both, too. It
 * looks at every pair, so very many are walked in time instead, with a list of free blocks as a heap has
 * one: a little more memory, no more than linear work for each. */
#include "base/arrange.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum {
  BLOCKS_TRIED = 256,    /* free blocks looked at before memory is added at the end */
  ORDERS_TRIED_TO = 1024 /* up to so many intervals other orders are tried than that by size */
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

static int by_address(const void *a, const void *b) {
  const clv__interval *x = *(clv__interval *const *)a, *y = *(clv__interval *const *)b;
  return (x > y) - (x < y);
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

/* `placed` is kept in order of offset. */
static void place(meet_fn meet, const void *cookie, clv__interval *const *placed, size_t placed_count, clv__interval *interval) {
  size_t offset = 0;
  for (size_t i = 0; i < placed_count; ++i) {
    if (!meet(cookie, placed[i], interval)) continue;
    if (offset + interval->size_bytes <= placed[i]->offset) break;
    size_t end = placed[i]->offset + placed[i]->size_bytes;
    if (end > offset) offset = end;
  }
  interval->offset = offset;
}

static void place_all(meet_fn meet, const void *cookie, clv__interval *const *order, clv__interval **placed, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    place(meet, cookie, placed, i, order[i]);
    size_t at = i;
    for (; at > 0 && placed[at - 1]->offset > order[i]->offset; --at) placed[at] = placed[at - 1];
    placed[at] = order[i];
  }
}

static size_t end_of(clv__interval *const *intervals, size_t count) {
  size_t end = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t own = intervals[i]->offset + intervals[i]->size_bytes;
    if (own > end) end = own;
  }
  return end;
}

/* The most that meets where one begins: in time, no arrangement takes less; elsewhere it is as good a place to stop. */
static size_t most_at_once(meet_fn meet, const void *cookie, clv__interval *const *intervals, size_t count) {
  size_t most = 0;
  for (size_t i = 0; i < count; ++i) {
    size_t alive = intervals[i]->size_bytes;
    for (size_t j = 0; j < count; ++j) {
      if (j != i && intervals[j]->first <= intervals[i]->first && meet(cookie, intervals[j], intervals[i]))
        alive += intervals[j]->size_bytes;
    }
    if (alive > most) most = alive;
  }
  return most;
}

/* Orders one after the other, until one reaches what no arrangement is below; the best is kept. */
static void arrange_greedily(meet_fn meet, const void *cookie, clv__interval **order, clv__interval **placed, size_t *offsets,
                             size_t count) {
  static int (*const orders[])(const void *, const void *) = {by_size, by_length, by_area};
  size_t best = SIZE_MAX;
  const bool few = count <= ORDERS_TRIED_TO;
  const size_t least = few ? most_at_once(meet, cookie, order, count) : 0;
  for (size_t o = 0; o < (few ? sizeof orders / sizeof *orders : 1) && best > least; ++o) {
    qsort(order, count, sizeof *order, orders[o]);
    place_all(meet, cookie, order, placed, count);
    const size_t end = end_of(order, count);
    if (end >= best) continue;
    best = end;
    qsort(order, count, sizeof *order, by_address);
    for (size_t i = 0; i < count; ++i) offsets[i] = order[i]->offset;
  }
  qsort(order, count, sizeof *order, by_address);
  for (size_t i = 0; i < count; ++i) order[i]->offset = offsets[i];
}

/* ---- In time ---- */

typedef struct block {
  size_t offset, size_bytes;
} block;

typedef struct heap {
  block *free; /* by offset, none touching another or the top; fewer than there are intervals */
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
  for (size_t i = 0; i < count; ++i) { /* no offset is beyond the sum of all sizes */
    if (!clv__add(sum, intervals[i]->size_bytes, &sum)) return clv__error_memory(error, SIZE_MAX);
  }
  clv__interval **other = clv__allocate(allocator, count * sizeof *other);
  if (other == NULL) return clv__error_memory(error, count * sizeof *other);
  if (meet != NULL) {
    size_t *offsets = clv__allocate(allocator, count * sizeof *offsets);
    if (offsets == NULL) {
      clv__release(allocator, other);
      return clv__error_memory(error, count * sizeof *offsets);
    }
    arrange_greedily(meet, cookie, intervals, other, offsets, count);
    clv__release(allocator, offsets);
  } else {
    block *blocks = clv__allocate(allocator, count * sizeof *blocks);
    if (blocks == NULL) {
      clv__release(allocator, other);
      return clv__error_memory(error, count * sizeof *blocks);
    }
    arrange_in_time(intervals, other, count, blocks);
    clv__release(allocator, blocks);
  }
  clv__release(allocator, other);
  *total = end_of(intervals, count);
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
