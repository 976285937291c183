/* The second step of clv__diagram_make(): chooses the y and the column of each item, in order. Each item is placed as high as its
 * dependencies and the items already positioned allow, so that items that can run at the same time are side by side. */
#include <math.h>

#include "report/picture/diagram.h"

enum { TALLEST = 1500, SHORTEST_COLUMN = 700, GAP_HEIGHT = 40 }; /* pictures higher than TALLEST are divided into columns */

static double row_gap(const clv__diagram *d) {
  return d->form == CLV__FORM_LINES ? 8 : 18;
}
static double label_height(const clv__diagram *d) {
  return d->form == CLV__FORM_LINES ? 17 : 20;
}

typedef struct heights {
  double *lanes, *gutters; /* indexed by lane: the first free y in the lane, and in the gutter to its right */
  double top, most;        /* the top of the column, and the largest y of all items so far */
  uint32_t column;
} heights;

static void begin_column(const clv__diagram *d, heights *h) {
  h->top = d->top + d->lane_head + 14;
  for (uint32_t i = 0; i < d->lane_count; ++i) h->lanes[i] = h->gutters[i] = h->top;
}

static double larger(double a, double b) {
  return a > b ? a : b;
}

/* Counts the transfers directly after item `index` that come from the same item as `index` does. */
static uint32_t count_siblings(const clv__diagram *d, uint32_t index) {
  uint32_t count = 0, source = d->sources[d->source_offsets[index]];
  for (uint32_t i = index + 1; i < d->item_count && !clv__item_is_box(&d->items[i]); ++i, ++count) {
    if (d->source_offsets[i] == d->source_offsets[i + 1] || d->sources[d->source_offsets[i]] != source) break;
  }
  return count;
}

/* Returns the smallest y at which an item is in free space and below its dependencies. */
static double least_y(const clv__diagram *d, const heights *h, const clv__item *item, uint32_t index) {
  uint32_t low = item->from < item->to ? item->from : item->to, high = item->from + item->to - low;
  bool box = clv__item_is_box(item);
  double y = h->top;
  if (box) {
    y = h->lanes[low];
  } else if (item->kind == CLV__ITEM_GAP) {
    for (uint32_t l = 0; l < d->lane_count; ++l) y = larger(y, larger(h->lanes[l], h->gutters[l]));
    return y + 12;
  } else {
    for (uint32_t l = low; l < high; ++l) y = larger(y, h->gutters[l] + label_height(d) - 4);
    for (uint32_t l = low + 1; l < high; ++l) y = larger(y, h->lanes[l] + label_height(d) - 4);
    if (low == high) y = larger(y, h->lanes[low] + label_height(d) - 4);
  }
  uint32_t entered = 0; /* number of lines counted so far that enter this box; each enters below the previous one */
  for (uint32_t i = d->source_offsets[index]; i < d->source_offsets[index + 1]; ++i) {
    const clv__item *source = &d->items[d->sources[i]];
    if (source->column != h->column) continue;
    if (clv__item_is_box(source)) {
      double leave = clv__item_exit(d, source) - label_height(d) * count_siblings(d, index);
      y = larger(y, source->y + (box ? source->height + row_gap(d) : larger(leave, clv__item_exit(d, source) / 2)));
    } else {
      double room = larger(item->height - clv__item_entry(d) - 8, 0);
      double enter = clv__item_entry(d) + (label_height(d) * entered++ < room ? label_height(d) * (entered - 1) : room);
      y = larger(y, box ? source->y - enter : source->y + 8);
    }
  }
  return y;
}

static void occupy(const clv__diagram *d, heights *h, const clv__item *item) {
  uint32_t low = item->from < item->to ? item->from : item->to, high = item->from + item->to - low;
  double bottom = item->y + item->height;
  if (clv__item_is_box(item)) {
    h->lanes[low] = bottom + row_gap(d);
  } else if (item->kind == CLV__ITEM_GAP) {
    for (uint32_t l = 0; l < d->lane_count; ++l) h->lanes[l] = h->gutters[l] = bottom + row_gap(d);
  } else {
    for (uint32_t l = low; l < high; ++l) h->gutters[l] = item->y + 5;
    for (uint32_t l = low + 1; l < high; ++l) h->lanes[l] = item->y + 8;
    if (low == high) h->lanes[low] = item->y + 8;
  }
  h->most = larger(h->most, bottom);
}

/* Positions all items, in columns of about `limit` height. No column starts directly after a transfer, so that transfers stay
 * in the same column as the box that follows them. */
static void position_items(clv__diagram *d, heights *h, double limit) {
  h->column = 0;
  h->most = 0;
  begin_column(d, h);
  for (uint32_t i = 0; i < d->item_count; ++i) {
    clv__item *item = &d->items[i];
    if (item->kind == CLV__ITEM_GAP) item->height = GAP_HEIGHT;
    bool may_break = i > 0 && d->items[i - 1].kind != CLV__ITEM_TRANSFER && d->items[i - 1].kind != CLV__ITEM_SHARED;
    double y = least_y(d, h, item, i);
    if (may_break && y + item->height > d->top + limit && y > h->top) {
      ++h->column;
      begin_column(d, h);
      y = least_y(d, h, item, i);
    }
    item->y = y;
    item->column = h->column;
    occupy(d, h, item);
  }
  d->column_count = h->column + 1;
  d->height = h->most + 26;
}

static double widest_box(const clv__diagram *d, uint32_t lane) {
  double width = d->form == CLV__FORM_LINES ? 372 : d->form == CLV__FORM_CARDS ? 300 : 220;
  if (d->lanes[lane].device == CLV__NO_ID) width = 96;
  for (uint32_t i = 0; i < d->item_count; ++i) {
    if (d->items[i].box != NULL && d->items[i].from == lane) width = larger(width, d->items[i].box->width);
  }
  return width;
}

bool clv__diagram_position(clv__diagram *diagram, clv__arena *arena) {
  clv__diagram *d = diagram;
  heights h = {.lanes = clv__arena_allocate_zero(arena, (size_t)d->lane_count + 1, sizeof *h.lanes),
               .gutters = clv__arena_allocate_zero(arena, (size_t)d->lane_count + 1, sizeof *h.gutters)};
  if (h.lanes == NULL || h.gutters == NULL) return false;
  d->gutter = d->form == CLV__FORM_LINES ? 214 : 228;
  double width = 60;
  for (uint32_t l = 0; l < d->lane_count; ++l) {
    d->lanes[l].box_width = widest_box(d, l);
    width += d->lanes[l].box_width + 60 + (l > 0 ? d->gutter : 0);
  }
  position_items(d, &h, INFINITY);
  double tall = d->height - d->top;
  if (tall > TALLEST) {
    double columns = ceil(sqrt(1.2 * tall / width)); /* enough columns to make the picture wider than tall, like a screen */
    double limit = tall / columns * 1.04 + d->lane_head;
    position_items(d, &h, limit > SHORTEST_COLUMN ? limit : SHORTEST_COLUMN);
  }
  return true;
}
