/* Where slots lie in their space's arena: those whose lives do not meet share bytes.
 *
 * Greedy by size, each at the lowest offset free during its life: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural
 * Net Inference", 2020. It looks at every pair, so plans of very many slots are walked in time instead, with a list of free
 * blocks as a heap has one: a little more memory, no more than linear work for each. */
#include <stdlib.h>
#include <string.h>

#include "execute/internal.h"

enum {
  GREEDY_SLOTS = 4096, /* 8 million pairs: milliseconds */
  BLOCKS_TRIED = 256   /* free blocks looked at before memory is added at the end */
};

static int by_size(const void *a, const void *b) {
  const clv__slot *x = *(clv__slot *const *)a, *y = *(clv__slot *const *)b;
  if (x->size_bytes != y->size_bytes) return x->size_bytes < y->size_bytes ? 1 : -1;
  return x->first != y->first ? (x->first > y->first ? 1 : -1) : (x->value > y->value) - (x->value < y->value);
}

static int by_first(const void *a, const void *b) {
  const clv__slot *x = *(clv__slot *const *)a, *y = *(clv__slot *const *)b;
  return x->first != y->first ? (x->first > y->first ? 1 : -1) : by_size(a, b);
}

static int by_last(const void *a, const void *b) {
  const clv__slot *x = *(clv__slot *const *)a, *y = *(clv__slot *const *)b;
  return x->last != y->last ? (x->last > y->last ? 1 : -1) : (x->value > y->value) - (x->value < y->value);
}

/* ---- Greedy ---- */

static bool meet(const clv__slot *a, const clv__slot *b) {
  return a->first <= b->last && b->first <= a->last;
}

/* `placed` is kept in order of offset. */
static void place(clv__slot *const *placed, size_t placed_count, clv__slot *slot) {
  size_t offset = 0;
  for (size_t i = 0; i < placed_count; ++i) {
    if (!meet(placed[i], slot)) continue;
    if (offset + slot->size_bytes <= placed[i]->offset) break;
    size_t end = placed[i]->offset + placed[i]->size_bytes;
    if (end > offset) offset = end;
  }
  slot->offset = offset;
}

static void arrange_greedily(clv__slot **order, clv__slot **placed, size_t count) {
  qsort(order, count, sizeof *order, by_size);
  for (size_t i = 0; i < count; ++i) {
    place(placed, i, order[i]);
    size_t at = i;
    for (; at > 0 && placed[at - 1]->offset > order[i]->offset; --at) placed[at] = placed[at - 1];
    placed[at] = order[i];
  }
}

/* ---- In time ---- */

typedef struct block {
  size_t offset, size_bytes;
} block;

typedef struct heap {
  block *free; /* by offset, none touching another or the top; fewer than there are slots */
  size_t free_count;
  size_t top;
} heap;

static void heap_take(heap *h, clv__slot *slot) {
  size_t tried = h->free_count < BLOCKS_TRIED ? h->free_count : BLOCKS_TRIED, best = tried;
  for (size_t i = 0; i < tried; ++i) {
    if (h->free[i].size_bytes < slot->size_bytes) continue;
    if (best == tried || h->free[i].size_bytes < h->free[best].size_bytes) best = i;
  }
  if (best == tried) {
    slot->offset = h->top;
    h->top += slot->size_bytes;
    return;
  }
  block *found = &h->free[best];
  slot->offset = found->offset;
  found->offset += slot->size_bytes;
  found->size_bytes -= slot->size_bytes;
  if (found->size_bytes > 0) return;
  --h->free_count;
  memmove(found, found + 1, (h->free_count - best) * sizeof *found);
}

static void heap_give(heap *h, const clv__slot *slot) {
  size_t low = 0, high = h->free_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (h->free[middle].offset < slot->offset)
      low = middle + 1;
    else
      high = middle;
  }
  block *next = &h->free[low];
  bool joins_before = low > 0 && next[-1].offset + next[-1].size_bytes == slot->offset;
  bool joins_after = low < h->free_count && slot->offset + slot->size_bytes == next->offset;
  if (joins_before && joins_after) {
    next[-1].size_bytes += slot->size_bytes + next->size_bytes;
    --h->free_count;
    memmove(next, next + 1, (h->free_count - low) * sizeof *next);
  } else if (joins_before) {
    next[-1].size_bytes += slot->size_bytes;
  } else if (joins_after) {
    next->offset = slot->offset;
    next->size_bytes += slot->size_bytes;
  } else {
    memmove(next + 1, next, (h->free_count - low) * sizeof *next);
    *next = (block){slot->offset, slot->size_bytes};
    ++h->free_count;
  }
  const block *last = h->free_count > 0 ? &h->free[h->free_count - 1] : NULL;
  if (last != NULL && last->offset + last->size_bytes == h->top) {
    h->top = last->offset;
    --h->free_count;
  }
}

static void arrange_in_time(clv__slot **starting, clv__slot **ending, size_t count, block *blocks) {
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

clv_status clv__slots_arrange(clv__slot **slots, size_t count, const clv_allocator *allocator, size_t *total, clv_error *error) {
  size_t sum = 0;
  *total = 0;
  for (size_t i = 0; i < count; ++i) { /* no offset is beyond the sum of all sizes */
    if (!clv__add(sum, slots[i]->size_bytes, &sum)) return clv__error_memory(error, SIZE_MAX);
  }
  clv__slot **other = clv__allocate(allocator, count * sizeof *other);
  if (other == NULL) return clv__error_memory(error, count * sizeof *other);
  if (count <= GREEDY_SLOTS) {
    arrange_greedily(slots, other, count);
  } else {
    block *blocks = clv__allocate(allocator, count * sizeof *blocks);
    if (blocks == NULL) {
      clv__release(allocator, other);
      return clv__error_memory(error, count * sizeof *blocks);
    }
    arrange_in_time(slots, other, count, blocks);
    clv__release(allocator, blocks);
  }
  clv__release(allocator, other);
  for (size_t i = 0; i < count; ++i) {
    if (slots[i]->offset + slots[i]->size_bytes > *total) *total = slots[i]->offset + slots[i]->size_bytes;
  }
  return CLV_OK;
}
