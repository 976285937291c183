/* See groups.h. Each group is contracted to one item, numbered by its first node; a node without a group is an item of its own.
 * An item is appended to the order once all its producers are; if several items are ready, the first in the list comes next. If
 * no item is ready, groups wait for each other, or a group waits for itself through nodes outside it. Then the item of the
 * first node that is not yet in the order is broken up: its nodes that are ready are appended without the rest of the item. */
#include "place/groups.h"

#include <string.h>

enum { BREAKS = 32 }; /* a group broken up this often is split into single nodes, so that the time stays linear */

typedef struct ordering {
  const clv__problem *problem;
  uint32_t *item_of; /* by node: its item */
  uint32_t *next;    /* by node: the next member of its item */
  uint32_t *head;    /* by item: its first remaining member */
  uint32_t *pending; /* by item: the number of its reads whose values other items have not computed yet */
  uint8_t *breaks;   /* by item: how often it was broken up */
  uint8_t *done;     /* by node: it is in the order */
  uint32_t *heap, heap_count;
  uint32_t *order, count;
} ordering;

static void heap_push(ordering *o, uint32_t item) {
  uint32_t at = o->heap_count++;
  for (; at > 0 && o->heap[(at - 1) / 2] > item; at = (at - 1) / 2) o->heap[at] = o->heap[(at - 1) / 2];
  o->heap[at] = item;
}

static uint32_t heap_pop(ordering *o) {
  uint32_t top = o->heap[0], moved = o->heap[--o->heap_count], at = 0;
  for (;;) {
    uint32_t child = 2 * at + 1;
    if (child >= o->heap_count) break;
    if (child + 1 < o->heap_count && o->heap[child + 1] < o->heap[child]) ++child;
    if (o->heap[child] >= moved) break;
    o->heap[at] = o->heap[child];
    at = child;
  }
  o->heap[at] = moved;
  return top;
}

static void emit(ordering *o, uint32_t node) {
  const clv__problem *problem = o->problem;
  o->order[o->count++] = node;
  o->done[node] = 1;
  for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
    uint32_t value = problem->writes[w];
    for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
      uint32_t item = o->item_of[problem->readers[i]];
      if (item != o->item_of[node] && --o->pending[item] == 0) heap_push(o, item);
    }
  }
}

static uint32_t count_pending(const ordering *o, uint32_t node) {
  const clv__problem *problem = o->problem;
  uint32_t count = 0;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    uint32_t producer = problem->producers[problem->reads[r]];
    count += producer != CLV__NONE && !o->done[producer] && o->item_of[producer] != o->item_of[node];
  }
  return count;
}

static bool is_ready(const ordering *o, uint32_t node) {
  const clv__problem *problem = o->problem;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    uint32_t producer = problem->producers[problem->reads[r]];
    if (producer != CLV__NONE && !o->done[producer]) return false;
  }
  return true;
}

/* Appends to the order the members of the item that are ready, or become ready meanwhile. Members are ascending, so one walk
 * finds all of them. */
static void break_item(ordering *o, uint32_t item) {
  uint32_t *link = &o->head[item];
  while (*link != CLV__NONE) {
    uint32_t node = *link;
    if (is_ready(o, node)) {
      *link = o->next[node];
      emit(o, node);
    } else {
      link = &o->next[node];
    }
  }
  if (++o->breaks[item] < BREAKS) return;
  uint32_t left = o->head[item];
  for (uint32_t node = left; node != CLV__NONE; node = o->next[node]) o->item_of[node] = node;
  for (uint32_t node = left, next; node != CLV__NONE; node = next) {
    next = o->next[node];
    o->next[node] = CLV__NONE;
    o->head[node] = node;
    o->pending[node] = count_pending(o, node);
    if (o->pending[node] == 0) heap_push(o, node);
  }
}

static void contract(ordering *o, const uint32_t *groups, uint32_t *first, uint32_t *newest) {
  uint32_t count = o->problem->node_count;
  memset(first, 0xff, count * sizeof *first); /* CLV__NONE */
  for (uint32_t n = 0; n < count; ++n) {
    uint32_t group = groups[n];
    o->next[n] = CLV__NONE;
    o->item_of[n] = o->head[n] = n;
    if (group == CLV__NONE) continue;
    if (first[group] == CLV__NONE)
      first[group] = n;
    else
      o->next[newest[group]] = n;
    o->item_of[n] = first[group];
    newest[group] = n;
  }
}

static void order_items(ordering *o) {
  uint32_t count = o->problem->node_count;
  for (uint32_t n = 0; n < count; ++n) o->pending[o->item_of[n]] += count_pending(o, n);
  for (uint32_t n = 0; n < count; ++n) {
    if (o->item_of[n] == n && o->pending[n] == 0) heap_push(o, n);
  }
  for (uint32_t lowest = 0; o->count < count;) {
    if (o->heap_count > 0) {
      uint32_t item = heap_pop(o);
      for (uint32_t node = o->head[item]; node != CLV__NONE; node = o->next[node]) emit(o, node);
      o->head[item] = CLV__NONE;
      continue;
    }
    while (o->done[lowest]) ++lowest; /* all nodes before it are done, so it is ready; another member keeps its item waiting */
    break_item(o, o->item_of[lowest]);
  }
}

clv_status clv__groups_order(const clv__problem *problem, const uint32_t *groups, clv__arena *arena, uint32_t **order,
                             clv_error *error) {
  size_t count = problem->node_count;
  ordering o = {.problem = problem, .order = clv__arena_allocate(arena, count * sizeof *o.order)};
  uint32_t *words = clv__allocate_zero(arena->allocator, count * 7 * sizeof *words);
  uint8_t *bytes = clv__allocate_zero(arena->allocator, count * 2);
  clv_status status = CLV_OK;
  if (o.order == NULL || words == NULL || bytes == NULL) {
    status = clv__error_memory(error, count * 7 * sizeof *words);
    goto cleanup;
  }
  o.item_of = words, o.next = words + count, o.head = words + 2 * count, o.pending = words + 3 * count;
  o.heap = words + 4 * count, o.breaks = bytes, o.done = bytes + count;
  contract(&o, groups, words + 5 * count, words + 6 * count);
  order_items(&o);
  *order = o.order;
cleanup:
  clv__release(arena->allocator, bytes);
  clv__release(arena->allocator, words);
  return status;
}
