/* See box.h. Stacks the ranks that layers.h computes, and breaks a tall stack into columns side by side. */
#include "report/picture/box.h"

#include <string.h>

#include "report/label.h"
#include "report/picture/fit.h"

enum { HEAD = 34, PADDING = 14, COLUMN_GAP = 34, TURN = 7, NARROWEST = 250, WIDE = 1000 };
static const double BOLD = 1.1, OP_SIZE = 11.5, NAME_SIZE = 10.5, NAME_WIDTH = 130, PILL_WIDTH = 176, SIDE = 9, BETWEEN = 6,
                    GAP = 14;

bool clv__boxes_init(clv__boxes *boxes, const clv_plan *plan, clv__arena *arena) {
  *boxes = (clv__boxes){.plan = plan, .arena = arena};
  boxes->chip_of_node = clv__arena_allocate(arena, ((size_t)plan->graph->node_count + 1) * sizeof *boxes->chip_of_node);
  boxes->chip_of_value = clv__arena_allocate(arena, ((size_t)plan->graph->value_count + 1) * sizeof *boxes->chip_of_value);
  if (boxes->chip_of_node == NULL || boxes->chip_of_value == NULL) return false;
  memset(boxes->chip_of_node, 0xff, plan->graph->node_count * sizeof *boxes->chip_of_node);
  memset(boxes->chip_of_value, 0xff, plan->graph->value_count * sizeof *boxes->chip_of_value);
  return true;
}

/* ---- Chips ---- */

void clv__chip_label(const clv_plan *plan, const clv__chip *chip, clv__text *bold, clv__text *name) {
  double room = chip->width - 2 * SIDE + 0.5; /* half a pixel of tolerance, because the width is a sum of rounded numbers */
  if (chip->kind != CLV__CHIP_NODE) {
    clv__text type;
    clv__text_init(&type, name->allocator);
    clv__text_append(&type, " ");
    clv__label_type(&type, plan->graph, &plan->shapes->types[chip->id]);
    name->failed = name->failed || type.failed;
    double width = clv__fit_width(type.data, NAME_SIZE);
    if (width > room - 40) clv__text_finish(&type); /* drop a long type, because the name is more useful */
    clv__fit_append(name, plan->graph->values[chip->id].name, NAME_SIZE, room - clv__fit_width(type.data, NAME_SIZE));
    clv__text_append(name, "%s", type.data);
    name->failed = name->failed || type.failed;
    clv__text_finish(&type);
    return;
  }
  const clv__node *node = &plan->graph->nodes[chip->id];
  clv__fit_append(bold, clv__label_op(node), BOLD * OP_SIZE, room);
  room -= clv__fit_width(bold->data, BOLD * OP_SIZE) + BETWEEN;
  if (room >= 4 * NAME_SIZE) clv__fit_append(name, node->name, NAME_SIZE, room);
}

static double least(double a, double b) {
  return a < b ? a : b;
}

/* Sets chip->width. Returns false if memory runs out. */
static bool chip_width(const clv__boxes *boxes, clv__chip *chip, bool with_names) {
  const clv_graph *graph = boxes->plan->graph;
  if (chip->kind == CLV__CHIP_NODE) {
    const clv__node *node = &graph->nodes[chip->id];
    chip->width = 2 * SIDE + least(clv__fit_width(clv__label_op(node), BOLD * OP_SIZE), 180);
    if (with_names) chip->width += BETWEEN + least(clv__fit_width(node->name, NAME_SIZE), NAME_WIDTH);
    return true;
  }
  clv__text type;
  clv__text_init(&type, boxes->arena->allocator);
  clv__text_append(&type, "%s ", graph->values[chip->id].name);
  clv__label_type(&type, graph, &boxes->plan->shapes->types[chip->id]);
  chip->width = 2 * SIDE + least(clv__fit_width(type.data, NAME_SIZE), with_names ? PILL_WIDTH : PILL_WIDTH / 2);
  bool done = !type.failed;
  clv__text_finish(&type);
  return done;
}

/* Adds a chip for each input value, node and output value of the partition, in topological order. */
static void add_chips(clv__boxes *boxes, const clv__partition *partition, clv__box *box) {
  const clv_graph_view *view = partition->view;
  for (uint32_t i = 0; i < view->input_count; ++i) {
    clv_value_id value = view->values[view->inputs[i]];
    boxes->chip_of_value[value] = box->chip_count;
    box->chips[box->chip_count++] = (clv__chip){.kind = CLV__CHIP_INPUT, .id = value};
  }
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    boxes->chip_of_node[partition->nodes[i]] = box->chip_count;
    box->chips[box->chip_count++] = (clv__chip){.kind = CLV__CHIP_NODE, .id = partition->nodes[i]};
  }
  for (uint32_t i = 0; i < view->output_count; ++i) {
    box->chips[box->chip_count++] = (clv__chip){.kind = CLV__CHIP_OUTPUT, .id = view->values[view->outputs[i]]};
  }
}

static void forget_chips(clv__boxes *boxes, const clv__partition *partition, const clv__box *box) {
  for (uint32_t i = 0; i < partition->node_count; ++i) boxes->chip_of_node[partition->nodes[i]] = CLV__NO_ID;
  for (uint32_t i = 0; i < box->chip_count; ++i) {
    if (box->chips[i].kind == CLV__CHIP_INPUT) boxes->chip_of_value[box->chips[i].id] = CLV__NO_ID;
  }
}

/* Returns the chip that a value comes from: that of the partition's input, or that of the node that computes it. CLV__NO_ID for
 * constants. */
static uint32_t source_of(const clv__boxes *boxes, clv_value_id value) {
  if (boxes->chip_of_value[value] != CLV__NO_ID) return boxes->chip_of_value[value];
  clv_node_id producer = boxes->plan->graph->values[value].producer;
  return producer == CLV__NO_ID ? CLV__NO_ID : boxes->chip_of_node[producer];
}

/* Adds one edge per pair of chips, even if one reads the other several times. */
static bool add_edges(const clv__boxes *boxes, const clv__box *box, clv__layers_input *input) {
  const clv_graph *graph = boxes->plan->graph;
  size_t most = 0;
  for (uint32_t c = 0; c < box->chip_count; ++c) {
    most += box->chips[c].kind == CLV__CHIP_NODE ? graph->nodes[box->chips[c].id].input_count : 1;
  }
  uint32_t *from = clv__arena_allocate_zero(boxes->arena, most + 1, sizeof *from);
  uint32_t *to = clv__arena_allocate_zero(boxes->arena, most + 1, sizeof *to);
  uint32_t *last =
      clv__arena_allocate_zero(boxes->arena, (size_t)box->chip_count + 1, sizeof *last); /* by chip: 1 + its last reader so far */
  if (from == NULL || to == NULL || last == NULL) return false;
  for (uint32_t c = 0; c < box->chip_count; ++c) {
    const clv__chip *chip = &box->chips[c];
    if (chip->kind == CLV__CHIP_INPUT) continue;
    const clv__node *node = &graph->nodes[chip->kind == CLV__CHIP_NODE ? chip->id : 0];
    uint32_t count = chip->kind == CLV__CHIP_NODE ? node->input_count : 1;
    for (uint32_t i = 0; i < count; ++i) {
      clv_value_id value = chip->kind == CLV__CHIP_NODE ? node->inputs[i] : chip->id;
      uint32_t source = value == CLV__NO_ID ? CLV__NO_ID : source_of(boxes, value);
      if (source == CLV__NO_ID || source >= c || last[source] == c + 1) continue;
      last[source] = c + 1;
      from[input->edge_count] = source;
      to[input->edge_count++] = c;
    }
  }
  input->from = from;
  input->to = to;
  return true;
}

/* ---- Columns ---- */

typedef struct columns {
  uint32_t count;
  uint32_t *first;      /* indexed by column: its first rank; [count] is the number of ranks */
  uint32_t *of;         /* indexed by rank: its column */
  uint32_t tallest;     /* the largest number of ranks in a column */
  double *shift;        /* indexed by column: what to add to an x of layers.h to get the x as drawn */
  double *left;         /* indexed by column: its left edge as drawn */
  double *least, *most; /* indexed by column: its smallest and largest x, in the coordinates of layers.h */
} columns;

/* Chooses columns of about equal height that end where few edges pass. */
static bool choose_breaks(const clv__boxes *boxes, const clv__layers_input *input, const clv__layers *layers, uint32_t most_ranks,
                          columns *c) {
  uint32_t ranks = layers->rank_count;
  uint32_t *passing = clv__arena_allocate_zero(boxes->arena, (size_t)ranks + 2,
                                               sizeof *passing); /* [r]: number of edges between ranks r - 1 and r */
  c->count = ranks <= most_ranks ? 1 : (ranks + most_ranks - 1) / most_ranks;
  c->first = clv__arena_allocate_zero(boxes->arena, (size_t)c->count + 1, sizeof *c->first);
  c->of = clv__arena_allocate_zero(boxes->arena, (size_t)ranks + 1, sizeof *c->of);
  if (passing == NULL || c->first == NULL || c->of == NULL) return false;
  for (uint32_t e = 0; e < input->edge_count; ++e) {
    ++passing[layers->ranks[input->from[e]] + 1];
    --passing[layers->ranks[input->to[e]] + 1];
  }
  for (uint32_t r = 1; r <= ranks; ++r) passing[r] += passing[r - 1];
  uint32_t slack = most_ranks / 6;
  for (uint32_t k = 1; k < c->count; ++k) {
    uint32_t ideal = (uint32_t)((uint64_t)ranks * k / c->count), best = ideal;
    for (uint32_t away = 1; away <= slack; ++away) {
      if (ideal + away < ranks && passing[ideal + away] < passing[best]) best = ideal + away;
      if (ideal > c->first[k - 1] + away && passing[ideal - away] < passing[best]) best = ideal - away;
    }
    c->first[k] = best;
  }
  c->first[c->count] = ranks;
  for (uint32_t k = 0; k < c->count; ++k) {
    for (uint32_t r = c->first[k]; r < c->first[k + 1]; ++r) c->of[r] = k;
    if (c->first[k + 1] - c->first[k] > c->tallest) c->tallest = c->first[k + 1] - c->first[k];
  }
  return true;
}

static void widen(columns *c, uint32_t column, double x, double half) {
  if (x - half < c->least[column]) c->least[column] = x - half;
  if (x + half > c->most[column]) c->most[column] = x + half;
}

static bool break_into_columns(const clv__boxes *boxes, const clv__layers_input *input, const clv__layers *layers,
                               uint32_t most_ranks, columns *c, clv__box *box) {
  *c = (columns){0};
  if (!choose_breaks(boxes, input, layers, most_ranks, c)) return false;
  double *all = clv__arena_allocate_zero(boxes->arena, 4 * (size_t)c->count, sizeof *all);
  if (all == NULL) return false;
  c->shift = all;
  c->left = all + c->count;
  c->least = all + 2 * (size_t)c->count;
  c->most = all + 3 * (size_t)c->count;
  for (uint32_t k = 0; k < c->count; ++k) {
    c->least[k] = layers->width;
    c->most[k] = 0;
  }
  for (uint32_t v = 0; v < input->node_count; ++v) widen(c, c->of[layers->ranks[v]], layers->x[v], input->widths[v] / 2);
  for (uint32_t e = 0; e < input->edge_count; ++e) {
    for (uint32_t b = layers->bend_offsets[e]; b < layers->bend_offsets[e + 1]; ++b) {
      uint32_t rank = layers->ranks[input->from[e]] + 1 + b - layers->bend_offsets[e];
      widen(c, c->of[rank], layers->bends[b], 3);
    }
  }
  double x = PADDING;
  for (uint32_t k = 0; k < c->count; ++k) {
    c->left[k] = x;
    c->shift[k] = x - c->least[k];
    x += c->most[k] - c->least[k] + COLUMN_GAP;
  }
  box->width = x - COLUMN_GAP + PADDING;
  if (box->width < NARROWEST) {
    double more = (NARROWEST - box->width) / 2;
    for (uint32_t k = 0; k < c->count; ++k) {
      c->shift[k] += more;
      c->left[k] += more;
    }
    box->width = NARROWEST;
  }
  box->height = HEAD + c->tallest * (double)CLV__RANK_HEIGHT - (CLV__RANK_HEIGHT - CLV__CHIP_HEIGHT) + PADDING;
  return true;
}

static double top_of(const columns *c, uint32_t rank) {
  return HEAD + (rank - c->first[c->of[rank]]) * (double)CLV__RANK_HEIGHT;
}

typedef struct path {
  double *points;
  uint32_t count;
} path;

static void add_point(path *p, double x, double y) {
  p->points[2 * p->count] = x;
  p->points[2 * p->count + 1] = y;
  ++p->count;
}

/* Adds to an edge the part from the bottom of rank `from` to the top of rank `to`. If `to` is in the next column, this part runs
 * below the last rank of its column, up between the two columns, and enters the next column from above. */
static void add_leg(path *p, const columns *c, uint32_t from, double from_x, uint32_t to, double to_x) {
  uint32_t here = c->of[from], there = c->of[to];
  double x = from_x + c->shift[here], bottom = top_of(c, from) + CLV__CHIP_HEIGHT;
  add_point(p, x, bottom);
  if (here != there) {
    double low = top_of(c, c->first[here + 1] - 1) + CLV__CHIP_HEIGHT + TURN;
    double gutter = c->left[there] - COLUMN_GAP / 2.0;
    add_point(p, x, low);
    add_point(p, gutter, low);
    add_point(p, gutter, HEAD - TURN);
    add_point(p, to_x + c->shift[there], HEAD - TURN);
  }
  add_point(p, to_x + c->shift[there], top_of(c, to));
}

static bool route(const clv__boxes *boxes, const clv__layers_input *input, const clv__layers *layers, const columns *c,
                  clv__box *box) {
  enum { PER_LEG = 6 };
  box->wires = clv__arena_allocate_zero(boxes->arena, (size_t)input->edge_count + 1, sizeof *box->wires);
  if (box->wires == NULL) return false;
  for (uint32_t e = 0; e < input->edge_count; ++e) {
    uint32_t from = input->from[e], to = input->to[e], at = layers->ranks[from];
    uint32_t bends = layers->bend_offsets[e + 1] - layers->bend_offsets[e];
    path p = {clv__arena_allocate_zero(boxes->arena, ((size_t)bends + 1) * PER_LEG, 2 * sizeof(double)), 0};
    if (p.points == NULL) return false;
    double x = layers->x[from];
    for (uint32_t b = 0; b < bends; ++b) {
      double bend = layers->bends[layers->bend_offsets[e] + b];
      add_leg(&p, c, at, x, at + 1, bend);
      x = bend;
      ++at;
    }
    add_leg(&p, c, at, x, layers->ranks[to], layers->x[to]);
    box->wires[box->wire_count++] = (clv__wire){from, to, p.count, p.points};
  }
  return true;
}

/* ---- The layout ---- */

static bool lay_out(clv__boxes *boxes, clv__layers_input *input, bool with_names, clv__box *box, clv__layers *layers) {
  double *widths = clv__arena_allocate_zero(boxes->arena, (size_t)box->chip_count + 1, sizeof *widths);
  if (widths == NULL) return false;
  for (uint32_t i = 0; i < box->chip_count; ++i) {
    if (!chip_width(boxes, &box->chips[i], with_names)) return false;
    widths[i] = box->chips[i].width;
  }
  input->widths = widths;
  return clv__layers_make(input, boxes->arena, layers);
}

bool clv__box_make(clv__boxes *boxes, const clv__partition *partition, uint32_t most_ranks, clv__box *box) {
  *box = (clv__box){0};
  const clv_graph_view *view = partition->view;
  size_t most = (size_t)view->input_count + partition->node_count + view->output_count;
  box->chips = clv__arena_allocate_zero(boxes->arena, most + 1, sizeof *box->chips);
  if (box->chips == NULL) return false;
  add_chips(boxes, partition, box);
  clv__layers_input input = {.node_count = box->chip_count, .gap = GAP};
  clv__layers layers;
  columns c;
  bool done = add_edges(boxes, box, &input);
  forget_chips(boxes, partition, box);
  done = done && lay_out(boxes, &input, true, box, &layers);
  if (done && layers.width > WIDE) done = lay_out(boxes, &input, false, box, &layers);
  done = done && break_into_columns(boxes, &input, &layers, most_ranks, &c, box) && route(boxes, &input, &layers, &c, box);
  for (uint32_t i = 0; done && i < box->chip_count; ++i) {
    uint32_t rank = layers.ranks[i];
    box->chips[i].x = layers.x[i] + c.shift[c.of[rank]];
    box->chips[i].y = top_of(&c, rank);
  }
  return done;
}
