/* The third step of clv__diagram_make(): routes the lines between the items, and derives the widths of the lanes from the lines.
 * Lines run in vertical tracks beside the boxes. A line that would be too long, or for which no track is free, is replaced by a
 * mark at its end with the number of the partition that it comes from. */
#include <math.h>
#include <string.h>

#include "report/picture/diagram.h"

enum { LEFT, RIGHT, MOST_TRACKS = 7, NO_TRACK = 0xff, MARGIN = 28, FARTHEST_LINES = 34, MOST_GATHERED = 3 };
static const double TRACK = 7, FIRST_TRACK = 12, LANE_PADDING = 14, TAP = 7, COLUMN_GAP = 44, MARK_ROOM = 46;

typedef struct wiring {
  clv__diagram *d;
  clv__arena *arena;
  uint32_t *offsets, *sinks; /* CSR by item: the items that depend on it */
  double *taps;              /* by index in `sinks`: the tap, which is the y at which the line enters the sink */
  uint8_t *entered;          /* by item: the number of lines so far that enter it from a track */
  uint8_t *tracks;           /* [2 * item + side]: the track of the lines from the item */
  bool *marked;              /* by index in `sinks`: a mark replaces the line */
  bool *side_marked;         /* [2 * lane + side]: there are marks on this side of the lane */
} wiring;

static bool index_sinks(wiring *w) {
  const clv__diagram *d = w->d;
  uint32_t count = d->source_offsets[d->item_count];
  w->offsets = clv__arena_allocate_zero(w->arena, (size_t)d->item_count + 2, sizeof *w->offsets);
  w->sinks = clv__arena_allocate_zero(w->arena, (size_t)count + 1, sizeof *w->sinks);
  w->taps = clv__arena_allocate_zero(w->arena, (size_t)count + 1, sizeof *w->taps);
  w->entered = clv__arena_allocate_zero(w->arena, (size_t)d->item_count + 1, 1);
  w->tracks = clv__arena_allocate_zero(w->arena, (size_t)d->item_count + 1, 2);
  w->marked = clv__arena_allocate_zero(w->arena, (size_t)count + 1, sizeof *w->marked);
  w->side_marked = clv__arena_allocate_zero(w->arena, (size_t)d->lane_count + 1, 2 * sizeof *w->side_marked);
  if (w->offsets == NULL || w->sinks == NULL || w->taps == NULL || w->entered == NULL || w->tracks == NULL || w->marked == NULL ||
      w->side_marked == NULL) {
    return false;
  }
  for (uint32_t e = 0; e < count; ++e) ++w->offsets[d->sources[e] + 2];
  for (uint32_t i = 0; i < d->item_count; ++i) w->offsets[i + 2] += w->offsets[i + 1];
  for (uint32_t i = 0; i < d->item_count; ++i) {
    for (uint32_t e = d->source_offsets[i]; e < d->source_offsets[i + 1]; ++e) w->sinks[w->offsets[d->sources[e] + 1]++] = i;
  }
  memset(w->tracks, NO_TRACK, 2 * (size_t)d->item_count);
  return true;
}

/* ---- List of lines ---- */

static uint32_t side_towards(uint32_t lane, uint32_t other) {
  return other < lane ? LEFT : RIGHT;
}

/* Returns the side of the lane on which the line from item `s` to item `t` runs. Lines between boxes run on the outer side, away
 * from the transfers. */
static uint32_t side_of(const clv__diagram *d, const clv__item *s, const clv__item *t) {
  if (!clv__item_is_box(s)) return side_towards(s->to, s->from);
  if (!clv__item_is_box(t)) return side_towards(t->from, t->to);
  return s->to + 1 == d->lane_count && d->lane_count > 1 ? RIGHT : LEFT;
}

/* Returns whether a line needs no track, because it leads straight across or straight down to the next box. */
static bool is_direct(const clv__item *s, const clv__item *t, const uint32_t *next_box, uint32_t s_index, uint32_t t_index) {
  if (s->column != t->column) return false;
  bool from_box = clv__item_is_box(s), to_box = clv__item_is_box(t);
  if (from_box && to_box) return next_box[s_index] == t_index;
  if (from_box) return t->y >= s->y + 5 && t->y <= s->y + s->height - 5;
  return to_box && s->y >= t->y + 5 && s->y <= t->y + t->height - 5;
}

/* Returns, for each box, the next box in its lane if no line crosses the lane between them, else CLV__NO_ID. */
static uint32_t *find_next_boxes(const wiring *w) {
  const clv__diagram *d = w->d;
  uint32_t last[CLV__MAX_DEVICES + 1];
  uint32_t *next = clv__arena_allocate(w->arena, ((size_t)d->item_count + 1) * sizeof *next);
  if (next == NULL) return NULL;
  memset(last, 0xff, sizeof last);
  for (uint32_t i = d->item_count; i-- > 0;) {
    const clv__item *item = &d->items[i];
    next[i] = last[item->from];
    if (clv__item_is_box(item)) last[item->from] = i;
    /* A gap, or a transfer that crosses a lane, separates the boxes above it from those below. */
    if (item->kind == CLV__ITEM_GAP) memset(last, 0xff, sizeof last);
    uint32_t low = item->from < item->to ? item->from : item->to, high = item->from + item->to - low;
    for (uint32_t l = low + 1; l < high; ++l) last[l] = CLV__NO_ID;
  }
  return next;
}

static double exit_of(const clv__diagram *d, const clv__item *item) {
  return clv__item_is_box(item) ? item->y + clv__item_exit(d, item) : item->y;
}

/* Returns the y at which the next line from a track enters an item. */
static double next_tap(const wiring *w, uint32_t index) {
  const clv__item *item = &w->d->items[index];
  if (!clv__item_is_box(item)) return item->y;
  double down = clv__item_entry(w->d) + TAP * w->entered[index];
  if (w->entered[index] < UINT8_MAX) ++w->entered[index];
  return item->y + fmin(down, item->height - 6);
}

/* Chooses the taps of the lines that leave an item on one side, then a track that is free from the item to the last tap. If
 * there is none, marks replace these lines. */
static void choose_track(wiring *w, uint32_t index, uint32_t side, const uint32_t *next_box, double (*ends)[2][MOST_TRACKS]) {
  clv__diagram *d = w->d;
  const clv__item *item = &d->items[index];
  double last = -1, first = exit_of(d, item);
  for (uint32_t e = w->offsets[index]; e < w->offsets[index + 1]; ++e) {
    uint32_t sink = w->sinks[e];
    const clv__item *to = &d->items[sink];
    if (side_of(d, item, to) != side || is_direct(item, to, next_box, index, sink)) continue;
    bool gathers = !clv__item_is_box(to) && d->source_offsets[sink + 1] - d->source_offsets[sink] > MOST_GATHERED;
    bool far = to->column != item->column || gathers || (d->form == CLV__FORM_LINES && sink - index > FARTHEST_LINES);
    w->marked[e] = far;
    if (far) continue;
    w->taps[e] = next_tap(w, sink);
    last = fmax(last, w->taps[e]);
  }
  if (last < 0) return;
  double *lane_ends = ends[item->to][side];
  for (uint32_t k = 0; k < MOST_TRACKS; ++k) {
    if (lane_ends[k] + 3 > first) continue;
    lane_ends[k] = last;
    w->tracks[2 * index + side] = (uint8_t)k;
    if (k + 1 > d->lanes[item->to].tracks[side]) d->lanes[item->to].tracks[side] = k + 1;
    return;
  }
  for (uint32_t e = w->offsets[index]; e < w->offsets[index + 1]; ++e) {
    const clv__item *to = &d->items[w->sinks[e]];
    if (side_of(d, item, to) == side && !is_direct(item, to, next_box, index, w->sinks[e])) w->marked[e] = true;
  }
}

static bool choose_tracks(wiring *w, const uint32_t *next_box) {
  clv__diagram *d = w->d;
  size_t bytes = ((size_t)d->lane_count + 1) * 2 * MOST_TRACKS * sizeof(double);
  double(*ends)[2][MOST_TRACKS] = clv__arena_allocate(w->arena, bytes);
  if (ends == NULL) return false;
  uint32_t column = CLV__NO_ID;
  for (uint32_t i = 0; i < d->item_count; ++i) {
    if (d->items[i].column != column) { /* all tracks are free at the top of a column */
      column = d->items[i].column;
      for (uint32_t l = 0; l <= d->lane_count; ++l) {
        for (uint32_t k = 0; k < MOST_TRACKS; ++k) ends[l][LEFT][k] = ends[l][RIGHT][k] = -1;
      }
    }
    choose_track(w, i, LEFT, next_box, ends);
    choose_track(w, i, RIGHT, next_box, ends);
    for (uint32_t e = w->offsets[i]; e < w->offsets[i + 1]; ++e) {
      const clv__item *to = &d->items[w->sinks[e]];
      if (w->marked[e] && clv__item_is_box(to)) w->side_marked[2 * to->from + LEFT] = true;
    }
  }
  return true;
}

/* ---- Positions of lanes ---- */

static void position_lanes(wiring *w) {
  clv__diagram *d = w->d;
  double x = 0;
  for (uint32_t l = 0; l < d->lane_count; ++l) {
    clv__lane *lane = &d->lanes[l];
    double room[2];
    for (uint32_t side = LEFT; side <= RIGHT; ++side) {
      room[side] = LANE_PADDING + (lane->tracks[side] > 0 ? FIRST_TRACK - 6 + TRACK * lane->tracks[side] : 0);
      if (w->side_marked[2 * l + side]) room[side] = fmax(room[side], MARK_ROOM);
    }
    lane->left = x;
    lane->box_left = x + room[LEFT];
    lane->width = room[LEFT] + lane->box_width + room[RIGHT];
    x += lane->width + d->gutter;
  }
  d->column_width = x - d->gutter + COLUMN_GAP;
  d->width = 2 * MARGIN + d->column_count * d->column_width - COLUMN_GAP;
}

static double column_left(const clv__diagram *d, const clv__item *item) {
  return MARGIN + item->column * d->column_width;
}
static double edge_x(const clv__diagram *d, const clv__item *item, uint32_t lane, uint32_t side) {
  return column_left(d, item) + d->lanes[lane].box_left + (side == RIGHT ? d->lanes[lane].box_width : 0);
}
static double track_x(const wiring *w, uint32_t index, uint32_t lane, uint32_t side) {
  double away = FIRST_TRACK + TRACK * w->tracks[2 * index + side];
  return edge_x(w->d, &w->d->items[index], lane, side) + (side == RIGHT ? away : -away);
}

/* ---- Drawing ---- */

static bool add_line(wiring *w, const clv__line *like, uint32_t count, const double *points) {
  clv__line *line = &w->d->lines[w->d->line_count++];
  *line = *like;
  line->point_count = count;
  line->points = clv__arena_copy(w->arena, points, 2 * count * sizeof *points);
  return line->points != NULL;
}

/* Returns whether a transfer's line starts at the box that it comes from, without a track. */
static bool begins_at_box(const wiring *w, uint32_t index, const uint32_t *next_box) {
  const clv__diagram *d = w->d;
  for (uint32_t e = d->source_offsets[index]; e < d->source_offsets[index + 1]; ++e) {
    if (is_direct(&d->items[d->sources[e]], &d->items[index], next_box, d->sources[e], index)) return true;
  }
  return false;
}

/* Draws the line of a transfer from one lane to another. */
static bool draw_across(wiring *w, uint32_t index, const uint32_t *next_box) {
  const clv__diagram *d = w->d;
  const clv__item *item = &d->items[index];
  uint32_t out = side_towards(item->from, item->to), in = side_towards(item->to, item->from);
  double start = edge_x(d, item, item->from, out), end = edge_x(d, item, item->to, in);
  bool arrow = true, direct = false;
  if (!begins_at_box(w, index, next_box)) {
    for (uint32_t e = d->source_offsets[index]; e < d->source_offsets[index + 1]; ++e) {
      uint32_t source = d->sources[e], side = side_of(d, &d->items[source], item);
      if (d->items[source].column == item->column && w->tracks[2 * source + side] != NO_TRACK) {
        start = track_x(w, source, item->from, side);
      }
    }
  }
  for (uint32_t e = w->offsets[index]; e < w->offsets[index + 1]; ++e) {
    direct = direct || is_direct(item, &d->items[w->sinks[e]], next_box, index, w->sinks[e]);
  }
  if (!direct && w->tracks[2 * index + in] != NO_TRACK) {
    end = track_x(w, index, item->to, in);
    arrow = false;
  }
  return add_line(w, &(clv__line){.arrow = arrow, .dashed = item->own, .dotted = item->kind == CLV__ITEM_SHARED}, 2,
                  (const double[]){start, item->y, end, item->y});
}

/* Draws the lines that leave an item on one side: one line along its track to the last tap, with a branch to every other tap. */
static bool draw_track(wiring *w, uint32_t index, uint32_t side, const uint32_t *next_box) {
  const clv__diagram *d = w->d;
  const clv__item *item = &d->items[index];
  if (w->tracks[2 * index + side] == NO_TRACK) return true;
  double x = track_x(w, index, item->to, side), edge = edge_x(d, item, item->to, side), top = exit_of(d, item);
  uint32_t last = CLV__NO_ID;
  for (uint32_t e = w->offsets[index]; e < w->offsets[index + 1]; ++e) {
    const clv__item *to = &d->items[w->sinks[e]];
    if (side_of(d, item, to) != side || w->marked[e] || is_direct(item, to, next_box, index, w->sinks[e])) continue;
    if (last == CLV__NO_ID || w->taps[e] > w->taps[last]) last = e;
  }
  clv__line like = {.dashed = item->own, .dotted = item->kind == CLV__ITEM_SHARED};
  for (uint32_t e = w->offsets[index]; e < w->offsets[index + 1]; ++e) {
    const clv__item *to = &d->items[w->sinks[e]];
    if (side_of(d, item, to) != side || w->marked[e] || is_direct(item, to, next_box, index, w->sinks[e])) continue;
    like.arrow = clv__item_is_box(to);
    double end = like.arrow ? edge : x, y = w->taps[e];
    double all[] = {edge, top, x, top, x, y, end, y};
    uint32_t skip = e != last ? 2 : clv__item_is_box(item) ? 0 : 1, count = 4 - skip - (like.arrow ? 0 : 1);
    if (count > 1 && !add_line(w, &like, count, all + 2 * skip)) return false;
  }
  return true;
}

static bool draw_down(wiring *w, uint32_t index, const uint32_t *next_box) {
  const clv__diagram *d = w->d;
  const clv__item *item = &d->items[index];
  for (uint32_t e = w->offsets[index]; e < w->offsets[index + 1]; ++e) {
    const clv__item *to = &d->items[w->sinks[e]];
    if (!clv__item_is_box(to) || !is_direct(item, to, next_box, index, w->sinks[e])) continue;
    double x = (edge_x(d, item, item->to, LEFT) + edge_x(d, item, item->to, RIGHT)) / 2;
    const double points[] = {x, item->y + item->height, x, to->y};
    if (!add_line(w, &(clv__line){.arrow = true}, 2, points)) return false;
  }
  return true;
}

/* Returns the partition that produces an item's data, or CLV__NO_ID for inputs of the graph. */
static uint32_t origin_of(const clv__diagram *d, uint32_t index) {
  /* Goes back from item to source until it finds a box. The longest way has four items: a copy to a device, its source, a value
   * in shared memory, then a copy to the host, then the box of the partition. */
  for (uint32_t steps = 0; steps < 4; ++steps) {
    if (clv__item_is_box(&d->items[index])) return d->items[index].index;
    if (d->source_offsets[index] == d->source_offsets[index + 1]) return CLV__NO_ID;
    index = d->sources[d->source_offsets[index]];
  }
  return CLV__NO_ID;
}

static bool draw_marks(wiring *w) {
  clv__diagram *d = w->d;
  uint32_t *mark_of = clv__arena_allocate(w->arena, ((size_t)d->item_count + 1) * sizeof *mark_of);
  if (mark_of == NULL) return false;
  memset(mark_of, 0xff, ((size_t)d->item_count + 1) * sizeof *mark_of);
  for (uint32_t i = 0; i < d->item_count; ++i) {
    for (uint32_t e = w->offsets[i]; e < w->offsets[i + 1]; ++e) {
      uint32_t sink = w->sinks[e], origin = origin_of(d, i);
      if (!w->marked[e] || origin == CLV__NO_ID) continue;
      const clv__item *to = &d->items[sink];
      bool box = clv__item_is_box(to);
      uint32_t side = box ? (uint32_t)LEFT : side_of(d, &d->items[i], to);
      if (mark_of[sink] == CLV__NO_ID) {
        mark_of[sink] = d->mark_count++;
        /* The mark is to the left of a box, or at the start of a transfer's line, on the side away from the line's end. */
        d->marks[mark_of[sink]] = (clv__mark){.x = edge_x(d, to, to->from, side), .right = !box && side == LEFT};
        d->marks[mark_of[sink]].y = box ? to->y + fmin(to->height / 2, 30) : to->y;
      }
      clv__mark *mark = &d->marks[mark_of[sink]];
      bool known = false;
      for (uint32_t k = 0; k < mark->count && k < 3; ++k) known = known || mark->numbers[k] == origin;
      if (known) continue;
      if (mark->count < 3) mark->numbers[mark->count] = origin;
      ++mark->count;
    }
  }
  return true;
}

bool clv__diagram_connect(clv__diagram *diagram, clv__arena *arena) {
  clv__diagram *d = diagram;
  wiring w = {.d = d, .arena = arena};
  if (!index_sinks(&w)) return false;
  uint32_t *next_box = find_next_boxes(&w);
  if (next_box == NULL || !choose_tracks(&w, next_box)) return false;
  position_lanes(&w);
  size_t edges = d->source_offsets[d->item_count];
  d->lines = clv__arena_allocate_zero(arena, edges + d->item_count + 1, sizeof *d->lines);
  d->marks = clv__arena_allocate_zero(arena, (size_t)d->item_count + 1, sizeof *d->marks);
  if (d->lines == NULL || d->marks == NULL) return false;
  for (uint32_t i = 0; i < d->item_count; ++i) {
    const clv__item *item = &d->items[i];
    if (item->kind == CLV__ITEM_GAP) continue;
    bool done = clv__item_is_box(item) ? draw_down(&w, i, next_box) : draw_across(&w, i, next_box);
    if (!done || !draw_track(&w, i, LEFT, next_box) || !draw_track(&w, i, RIGHT, next_box)) return false;
  }
  return draw_marks(&w);
}
