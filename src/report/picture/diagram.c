/* See diagram.h. Chooses the form of the picture, its lanes and its items. */
#include "report/picture/diagram.h"

#include <string.h>

#include "report/steps.h"

enum {
  MOST_NODES = 260,     /* plans with more nodes do not use CLV__FORM_NODES */
  MOST_CARDS = 36,      /* plans with more steps use CLV__FORM_LINES */
  MOST_NODE_STEPS = 90, /* plans with more steps do not use CLV__FORM_NODES */
  FEW_PARTITIONS = 20,
  MOST_ITEMS = 640, /* of plans with more steps, the middle is omitted */
  KEPT_HEAD = 440,
  KEPT_TAIL = 160,
  MERGED = 3,       /* longer sequences of transfers between the same lanes become one line */
  MERGED_LINES = 2, /* like MERGED, for CLV__FORM_LINES */
  MOST_RANKS = 26,  /* boxes with more ranks get a second column */
  CARD_HEIGHT = 92,
  LINE_HEIGHT = 30,
  LANE_HEAD = 40
};

typedef struct building {
  clv__diagram *d;
  clv__arena *arena;
  uint32_t *item_of_step, *first_reader; /* indexed by step: its item; the first partition step that depends on it */
  uint32_t *shared_item, *shared_lane;   /* indexed by step: the item and lane of the last share() of its output */
  uint32_t *step_sources;                /* pairs (item, item that it depends on), from which index_sources() builds a CSR */
  size_t source_count, source_capacity;
} building;

/* ---- Lanes ---- */

static bool host_needs_lane(const clv_plan *plan) {
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    if (plan->devices->items[d].space == CLV__SPACE_HOST) return false;
  }
  return plan->transfer_count > 0;
}

/* Adds the lanes in the order of the device list. If there are three or more lanes, and the first lane of host memory is to the
 * right of the middle, that lane moves to the middle, because most transfers lead to it. */
static bool add_lanes(building *b) {
  clv__diagram *d = b->d;
  const clv_devices *devices = d->plan->devices;
  bool host = host_needs_lane(d->plan);
  d->lane_count = devices->count + host;
  d->lanes = clv__arena_allocate_zero(b->arena, (size_t)d->lane_count + 1, sizeof *d->lanes);
  if (d->lanes == NULL) return false;
  uint32_t order[CLV__MAX_DEVICES + 1], hub = d->lane_count;
  for (uint32_t i = 0; i < d->lane_count; ++i) {
    order[i] = i < devices->count ? i : CLV__NO_ID;
    bool works_in_host = order[i] == CLV__NO_ID || devices->items[i].space == CLV__SPACE_HOST;
    if (works_in_host && hub == d->lane_count) hub = i;
  }
  if (d->lane_count > 2 && hub > d->lane_count / 2) {
    uint32_t middle = d->lane_count / 2, moved = order[hub];
    memmove(&order[middle + 1], &order[middle], (hub - middle) * sizeof *order);
    order[middle] = moved;
  }
  for (uint32_t i = 0; i < d->lane_count; ++i) {
    d->lanes[i].device = order[i];
    if (order[i] != CLV__NO_ID) d->lane_of_device[order[i]] = i;
  }
  return true;
}

static uint32_t lane_of_space(const clv__diagram *d, uint32_t space) {
  const clv_devices *devices = d->plan->devices;
  for (uint32_t i = 0; i < devices->count; ++i) {
    if (devices->items[i].space == space) return d->lane_of_device[i];
  }
  for (uint32_t i = 0; i < d->lane_count; ++i) {
    if (d->lanes[i].device == CLV__NO_ID) return i;
  }
  return 0;
}

/* ---- Items ---- */

/* Sets the lanes of a transfer. If several devices share a memory space, these are the lanes of the device that produces the
 * value and of the device that reads it first. */
static void set_transfer_lanes(const building *b, const clv__step *step, uint32_t number, clv__item *item) {
  const clv_plan *plan = b->d->plan;
  const clv__transfer *transfer = &plan->transfers[step->index];
  item->from = lane_of_space(b->d, transfer->from);
  item->to = lane_of_space(b->d, transfer->to);
  for (uint32_t i = 0; i < step->dependency_count; ++i) {
    const clv__step *maker = &plan->steps[step->dependencies[i]];
    if (maker->is_transfer) continue;
    uint32_t device = plan->partitions[maker->index].device;
    if (plan->devices->items[device].space == transfer->from) item->from = b->d->lane_of_device[device];
  }
  if (b->first_reader[number] != CLV__NO_ID) {
    uint32_t device = plan->partitions[plan->steps[b->first_reader[number]].index].device;
    if (plan->devices->items[device].space == transfer->to) item->to = b->d->lane_of_device[device];
  }
}

static clv__item make_item(const building *b, uint32_t step_index) {
  const clv_plan *plan = b->d->plan;
  const clv__step *step = &plan->steps[step_index];
  clv__item item = {.kind = CLV__ITEM_PARTITION, .index = step->index, .count = 1};
  if (step->is_transfer) {
    const clv__transfer *transfer = &plan->transfers[step->index];
    item.kind = CLV__ITEM_TRANSFER;
    item.own = clv__step_is_own(plan, step);
    item.size_bytes = transfer->size_bytes;
    item.size_known = transfer->size_known;
    if (plan->price.copy_ns != NULL) item.time_ns = plan->price.copy_ns[step->index];
    set_transfer_lanes(b, step, step_index, &item);
  } else {
    item.from = item.to = b->d->lane_of_device[plan->partitions[step->index].device];
    if (plan->price.partition_ns != NULL) item.time_ns = plan->price.partition_ns[step->index];
  }
  return item;
}

static bool find_first_readers(building *b) {
  const clv_plan *plan = b->d->plan;
  size_t bytes = ((size_t)plan->step_count + 1) * sizeof(uint32_t);
  b->first_reader = clv__arena_allocate(b->arena, bytes);
  b->item_of_step = clv__arena_allocate(b->arena, bytes);
  b->shared_item = clv__arena_allocate(b->arena, bytes);
  b->shared_lane = clv__arena_allocate(b->arena, bytes);
  if (b->first_reader == NULL || b->item_of_step == NULL || b->shared_item == NULL || b->shared_lane == NULL) return false;
  memset(b->first_reader, 0xff, bytes);
  memset(b->item_of_step, 0xff, bytes);
  memset(b->shared_item, 0xff, bytes);
  memset(b->shared_lane, 0xff, bytes);
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    if (plan->steps[s].is_transfer) continue;
    for (uint32_t i = 0; i < plan->steps[s].dependency_count; ++i) {
      uint32_t *reader = &b->first_reader[plan->steps[s].dependencies[i]];
      if (*reader == CLV__NO_ID) *reader = s;
    }
  }
  return true;
}

/* Chooses the steps of a long plan to omit: from *first up to but excluding *end. */
static void choose_gap(const clv_plan *plan, uint32_t *first, uint32_t *end) {
  *first = *end = plan->step_count;
  if (plan->step_count <= MOST_ITEMS) return;
  *first = KEPT_HEAD;
  *end = plan->step_count - KEPT_TAIL;
}

static bool add_source(building *b, uint32_t item, uint32_t source) {
  if (!clv__array_reserve(b->arena->allocator, (void **)&b->step_sources, &b->source_capacity, 2 * (b->source_count + 1),
                          sizeof *b->step_sources, 2 * b->source_count)) {
    return false;
  }
  b->step_sources[2 * b->source_count] = item;
  b->step_sources[2 * b->source_count + 1] = source;
  ++b->source_count;
  return true;
}

static uint32_t lane_after(const clv__item *item) {
  return item->to;
}

/* Adds an item for the output of step `source` that a device in `lane` reads in shared memory, unless the previous call for
 * this step was for the same lane. Returns the item, or CLV__NO_ID if memory runs out. */
static uint32_t share(building *b, uint32_t source, uint32_t lane) {
  clv__diagram *d = b->d;
  if (b->shared_lane[source] == lane) return b->shared_item[source];
  uint32_t from = b->item_of_step[source], item = d->item_count++;
  d->items[item] = (clv__item){.kind = CLV__ITEM_SHARED, .count = 1, .from = d->items[from].to, .to = lane};
  b->shared_item[source] = item;
  b->shared_lane[source] = lane;
  return add_source(b, item, from) ? item : CLV__NO_ID;
}

static bool merges(const clv__diagram *d, const clv__item *a, const clv__item *b) {
  return a->kind == CLV__ITEM_TRANSFER && b->kind == CLV__ITEM_TRANSFER && a->from == b->from && a->to == b->to &&
         (a->own == b->own || d->form == CLV__FORM_LINES);
}

/* Adds one item for the `count` steps from step `s` on. */
static bool add_item(building *b, uint32_t s, uint32_t count) {
  clv__diagram *d = b->d;
  const clv_plan *plan = d->plan;
  clv__item item = make_item(b, s);
  for (uint32_t k = 1; k < count; ++k) {
    clv__item more = make_item(b, s + k);
    item.size_bytes += more.size_bytes;
    item.size_known = item.size_known && more.size_known;
    item.time_ns += more.time_ns;
    item.own = item.own && more.own;
  }
  item.count = count;
  /* First add the items for values that this item reads in shared memory. */
  for (uint32_t k = 0; k < count; ++k) {
    for (uint32_t i = 0; i < plan->steps[s + k].dependency_count; ++i) {
      uint32_t source = plan->steps[s + k].dependencies[i], from = b->item_of_step[source];
      if (from == CLV__NO_ID || lane_after(&d->items[from]) == item.from) continue;
      if (share(b, source, item.from) == CLV__NO_ID) return false;
    }
  }
  uint32_t index = d->item_count++;
  d->items[index] = item;
  for (uint32_t k = 0; k < count; ++k) {
    b->item_of_step[s + k] = index;
    for (uint32_t i = 0; i < plan->steps[s + k].dependency_count; ++i) {
      uint32_t source = plan->steps[s + k].dependencies[i], from = b->item_of_step[source];
      if (from == CLV__NO_ID) continue;
      if (lane_after(&d->items[from]) != item.from) from = share(b, source, item.from);
      if (from == CLV__NO_ID || !add_source(b, index, from)) return false;
    }
  }
  return true;
}

static bool add_items(building *b) {
  const clv_plan *plan = b->d->plan;
  size_t shared = 0;
  for (uint32_t s = 0; s < plan->step_count; ++s) shared += plan->steps[s].dependency_count;
  b->d->items = clv__arena_allocate_zero(b->arena, (size_t)plan->step_count + shared + 2, sizeof *b->d->items);
  if (b->d->items == NULL) return false;
  uint32_t gap_first, gap_end;
  choose_gap(plan, &gap_first, &gap_end);
  for (uint32_t s = 0; s < plan->step_count;) {
    if (s == gap_first) {
      b->d->items[b->d->item_count++] =
          (clv__item){.kind = CLV__ITEM_GAP, .count = gap_end - gap_first, .to = b->d->lane_count - 1};
      s = gap_end;
      continue;
    }
    uint32_t end = s + 1, stop = s < gap_first ? gap_first : plan->step_count;
    clv__item first = make_item(b, s);
    while (end < stop) {
      clv__item next = make_item(b, end);
      if (!merges(b->d, &first, &next)) break;
      ++end;
    }
    uint32_t count = end - s > (b->d->form == CLV__FORM_LINES ? MERGED_LINES : MERGED) ? end - s : 1;
    for (uint32_t k = s; k < end; k += count) {
      if (!add_item(b, k, count)) return false;
    }
    s = end;
  }
  return true;
}

/* Builds the CSR of sources from the pairs, which are already sorted by item. */
static bool index_sources(building *b) {
  clv__diagram *d = b->d;
  d->source_offsets = clv__arena_allocate_zero(b->arena, (size_t)d->item_count + 2, sizeof *d->source_offsets);
  d->sources = clv__arena_allocate_zero(b->arena, b->source_count + 1, sizeof *d->sources);
  if (d->source_offsets == NULL || d->sources == NULL) return false;
  for (size_t i = 0; i < b->source_count; ++i) ++d->source_offsets[b->step_sources[2 * i] + 1];
  for (uint32_t i = 0; i < d->item_count; ++i) d->source_offsets[i + 1] += d->source_offsets[i];
  for (size_t i = 0; i < b->source_count; ++i) d->sources[i] = b->step_sources[2 * i + 1];
  return true;
}

static bool make_boxes(building *b) {
  clv__diagram *d = b->d;
  clv__boxes boxes;
  if (!clv__boxes_init(&boxes, d->plan, b->arena)) return false;
  for (uint32_t i = 0; i < d->item_count; ++i) {
    clv__item *item = &d->items[i];
    if (item->kind != CLV__ITEM_PARTITION) continue;
    item->height = d->form == CLV__FORM_LINES ? LINE_HEIGHT : CARD_HEIGHT;
    if (d->form != CLV__FORM_NODES) continue;
    clv__box *box = clv__arena_allocate_zero(b->arena, 1, sizeof *box);
    if (box == NULL || !clv__box_make(&boxes, &d->plan->partitions[item->index], MOST_RANKS, box)) return false;
    item->box = box;
    item->height = box->height;
  }
  return true;
}

bool clv__diagram_make(const clv_plan *plan, bool collapse, double head, clv__arena *arena, clv__diagram *diagram) {
  *diagram = (clv__diagram){.plan = plan, .top = head, .lane_head = LANE_HEAD};
  building b = {.d = diagram, .arena = arena};
  uint32_t nodes = 0;
  for (uint32_t p = 0; p < plan->partition_count; ++p) nodes += plan->partitions[p].node_count;
  bool few = nodes <= MOST_NODES && plan->step_count <= MOST_NODE_STEPS;
  bool worth = plan->partition_count <= FEW_PARTITIONS ||
               nodes >= 3 * (uint64_t)plan->partition_count; /* otherwise, one card per partition shows almost as much */
  diagram->form = !collapse && few && worth ? CLV__FORM_NODES : plan->step_count > MOST_CARDS ? CLV__FORM_LINES : CLV__FORM_CARDS;
  bool done = add_lanes(&b) && find_first_readers(&b) && add_items(&b) && index_sources(&b) && make_boxes(&b) &&
              clv__diagram_position(diagram, arena) && clv__diagram_connect(diagram, arena);
  clv__release(arena->allocator, b.step_sources);
  return done;
}
