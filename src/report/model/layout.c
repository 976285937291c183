/* See layout.h. The layout of layers.h is computed twice. The ranks of the first layout show which values come from far above.
 * Each reader of such a value gets a line for it, the boxes are measured with these lines, and the second layout gives the
 * positions. */
#include "report/model/layout.h"

#include "report/label.h"
#include "report/model/statistics.h"
#include "report/picture/fit.h"
#include "report/picture/layers.h"

enum { HEAD = 24, LINE = 15, FOOT = 6, PILL = 22, BETWEEN_RANKS = 58, MARGIN = 24, FAR = 24, MARK = 10, SHOWN_ELEMENTS = 4 };
static const double OP_SIZE = 1.1 * 11.5, NAME_SIZE = 10.5, SIDE = 9, BETWEEN = 6, WIDEST = 270, NARROWEST = 64, NAME_WIDTH = 130,
                    GAP = 20;

typedef struct drawing {
  const clv__model_texts *texts;
  const clv_graph *graph;
  clv__arena *arena;
  clv__model_layout *out;
  uint32_t *box_of_node, *box_of_value; /* CLV__NO_ID: none; only inputs of the graph have a box for their value */
  uint32_t edge_count, *from, *to;      /* one edge per pair of boxes and value */
  clv_value_id *values;                 /* indexed by edge */
} drawing;

/* ---- Texts ---- */

static bool is_known(const clv_graph *graph, const clv_tensor *types, clv_value_id value) {
  return graph->values[value].is_unbound || types[value].data != NULL;
}

bool clv__model_is_inlined(const clv_graph *graph, const clv_tensor *types, clv_value_id value) {
  const clv__value *v = &graph->values[value];
  if (v->producer == CLV__NO_ID) return !v->is_input && is_known(graph, types, value);
  const clv__node *node = &graph->nodes[v->producer];
  return node->input_count == 0 && node->output_count == 1 && is_known(graph, types, value);
}

static double shorter(double a, double b) {
  return a < b ? a : b;
}
static double longer(double a, double b) {
  return a > b ? a : b;
}

void clv__model_box_text(const clv__model_texts *texts, const clv__model_box *box, clv__text *bold, clv__text *name) {
  double room = box->width - 2 * SIDE + 0.5 - (box->kind == CLV__MODEL_NODE ? MARK * texts->marks : 0);
  if (box->kind != CLV__MODEL_NODE) {
    clv__fit_append(name, texts->graph->values[box->id].name, NAME_SIZE, room);
    return;
  }
  const clv__node *node = &texts->graph->nodes[box->id];
  clv__fit_append(bold, clv__label_op(node), OP_SIZE, room);
  room -= clv__fit_width(bold->data, OP_SIZE) + BETWEEN;
  if (room >= shorter(4 * NAME_SIZE, clv__fit_width(node->name, NAME_SIZE))) clv__fit_append(name, node->name, NAME_SIZE, room);
}

static void append_element(void *cookie, const clv_tensor *some, size_t index) {
  clv__text *text = cookie;
  clv__text_append(text, index > 0 ? ", " : " = ");
  clv__label_element(text, some, index);
}

/* Appends what follows the name in a line: the elements of a small constant, otherwise the type. */
static void append_kind(const clv__model_texts *texts, const clv__model_line *line, clv__text *text) {
  const clv_tensor *type = &texts->types[line->value];
  size_t count;
  bool small = !line->far && type->data != NULL && clv__tensor_count(type, &count) && count > 0 && count <= SHOWN_ELEMENTS;
  if (small && clv__statistics_first(texts->model, type, count, append_element, text, NULL) == CLV_OK) return;
  clv__text_append(text, " ");
  clv__label_type(text, texts->graph, type);
}

void clv__model_line_text(const clv__model_texts *texts, const clv__model_box *box, const clv__model_line *line,
                          clv__text *text) {
  double room = box->width - 2 * SIDE + 0.5;
  const char *name = texts->graph->values[line->value].name;
  clv__text kind, whole;
  clv__text_init(&kind, text->allocator);
  clv__text_init(&whole, text->allocator);
  append_kind(texts, line, &kind);
  double needed = clv__fit_width(kind.data, NAME_SIZE), start = line->far ? clv__fit_width("↑ ", NAME_SIZE) : 0;
  if (line->far) clv__text_append(&whole, "↑ ");
  if (needed > room - 40) needed = shorter(needed, (room - start) * 0.7);
  clv__fit_append(&whole, name, NAME_SIZE, room - start - needed);
  clv__fit_append(&whole, kind.data, NAME_SIZE, longer(needed, room - clv__fit_width(whole.data, NAME_SIZE)) + 0.1);
  clv__text_append(text, "%s", whole.data);
  text->failed = text->failed || kind.failed || whole.failed;
  clv__text_finish(&whole);
  clv__text_finish(&kind);
}

/* ---- Boxes and edges ---- */

static void add_box(drawing *d, clv__model_kind kind, uint32_t id) {
  uint32_t *place = kind == CLV__MODEL_NODE ? &d->box_of_node[id] : &d->box_of_value[id];
  if (kind != CLV__MODEL_OUTPUT) *place = d->out->box_count;
  d->out->boxes[d->out->box_count++] = (clv__model_box){.kind = kind, .id = id};
}

static bool is_drawn(const drawing *d, clv_node_id n) {
  const clv__node *node = &d->graph->nodes[n];
  return !(node->output_count == 1 && node->outputs[0] != CLV__NO_ID &&
           clv__model_is_inlined(d->graph, d->texts->types, node->outputs[0]));
}

/* Adds inputs that something reads, nodes, and outputs, in topological order. */
static void add_boxes(drawing *d) {
  const clv_graph *graph = d->graph;
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    if (!is_known(graph, d->texts->types, graph->inputs[i])) add_box(d, CLV__MODEL_INPUT, graph->inputs[i]);
  }
  for (uint32_t i = 0; i < graph->capture_count; ++i) {
    if (d->box_of_value[graph->captures[i]] == CLV__NO_ID) add_box(d, CLV__MODEL_INPUT, graph->captures[i]);
  }
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    if (is_drawn(d, n)) add_box(d, CLV__MODEL_NODE, n);
  }
  for (uint32_t i = 0; i < graph->output_count; ++i) add_box(d, CLV__MODEL_OUTPUT, graph->outputs[i]);
}

/* Returns the box that a value comes from, or CLV__NO_ID if the value is drawn as a line in the boxes of its readers. */
static uint32_t source_of(const drawing *d, clv_value_id value) {
  if (d->box_of_value[value] != CLV__NO_ID) return d->box_of_value[value];
  clv_node_id producer = d->graph->values[value].producer;
  return producer == CLV__NO_ID ? CLV__NO_ID : d->box_of_node[producer];
}

static uint32_t operands_of(const drawing *d, const clv__model_box *box, const clv_value_id **values) {
  *values = box->kind == CLV__MODEL_NODE ? d->graph->nodes[box->id].inputs : &box->id;
  return box->kind == CLV__MODEL_NODE ? d->graph->nodes[box->id].input_count : box->kind == CLV__MODEL_OUTPUT ? 1 : 0;
}

static bool add_edges(drawing *d) {
  size_t most = 0;
  const clv_value_id *values;
  for (uint32_t b = 0; b < d->out->box_count; ++b) most += operands_of(d, &d->out->boxes[b], &values);
  d->from = clv__arena_allocate_zero(d->arena, most + 1, sizeof *d->from);
  d->to = clv__arena_allocate_zero(d->arena, most + 1, sizeof *d->to);
  d->values = clv__arena_allocate_zero(d->arena, most + 1, sizeof *d->values);
  d->out->lines = clv__arena_allocate_zero(d->arena, most + 1, sizeof *d->out->lines);
  /* Indexed by value: 1 + the last box so far that has an edge for it; 0: none. */
  uint32_t *last = clv__arena_allocate_zero(d->arena, (size_t)d->graph->value_count + 1, sizeof *last);
  if (d->from == NULL || d->to == NULL || d->values == NULL || d->out->lines == NULL || last == NULL) return false;
  for (uint32_t b = 0; b < d->out->box_count; ++b) {
    uint32_t count = operands_of(d, &d->out->boxes[b], &values);
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t source = values[i] == CLV__NO_ID ? CLV__NO_ID : source_of(d, values[i]);
      if (source == CLV__NO_ID || source >= b || last[values[i]] == b + 1) continue;
      last[values[i]] = b + 1;
      d->from[d->edge_count] = source;
      d->to[d->edge_count] = b;
      d->values[d->edge_count++] = values[i];
    }
  }
  return true;
}

/* Returns whether an edge is so long that its value is drawn as a line in the reader's box. The limit is that of layers.h,
 * which does not lead longer edges around boxes. */
static bool is_far(const clv__layers *layers, const drawing *d, uint32_t edge) {
  return layers->ranks[d->to[edge]] - layers->ranks[d->from[edge]] > FAR;
}

/* Adds a line for every constant and every value from far above that a box reads. */
static void add_lines(drawing *d, const clv__layers *layers) {
  clv__model_layout *out = d->out;
  uint32_t e = 0;
  for (uint32_t b = 0; b < out->box_count; ++b) {
    clv__model_box *box = &out->boxes[b];
    const clv_value_id *values;
    uint32_t count = operands_of(d, box, &values);
    box->line_first = out->line_count;
    for (uint32_t i = 0; i < count; ++i) {
      if (values[i] == CLV__NO_ID) continue;
      if (e < d->edge_count && d->to[e] == b && d->values[e] == values[i]) {
        if (is_far(layers, d, e)) out->lines[out->line_count++] = (clv__model_line){values[i], true};
        ++e;
      } else if (source_of(d, values[i]) == CLV__NO_ID) {
        out->lines[out->line_count++] = (clv__model_line){values[i], false};
      }
    }
    box->line_count = out->line_count - box->line_first;
  }
}

/* ---- Ports ---- */

/* Adds a port for each value of a box that a wire carries. A box with too many such values gets one port for all of them. */
static bool add_ports(drawing *d, const clv__layers *layers) {
  clv__model_layout *out = d->out;
  bool *used = clv__arena_allocate_zero(d->arena, (size_t)d->graph->value_count + 1, sizeof *used);
  out->ports = clv__arena_allocate_zero(d->arena, (size_t)d->graph->value_count + 1, sizeof *out->ports);
  if (used == NULL || out->ports == NULL) return false;
  for (uint32_t e = 0; e < d->edge_count; ++e) used[d->values[e]] = used[d->values[e]] || !is_far(layers, d, e);
  for (uint32_t b = 0; b < out->box_count; ++b) {
    clv__model_box *box = &out->boxes[b];
    box->port_first = out->port_count;
    if (box->kind == CLV__MODEL_OUTPUT) continue;
    const clv_value_id *values = box->kind == CLV__MODEL_NODE ? d->graph->nodes[box->id].outputs : &box->id;
    uint32_t count = box->kind == CLV__MODEL_NODE ? d->graph->nodes[box->id].output_count : 1;
    for (uint32_t i = 0; i < count; ++i) {
      if (values[i] != CLV__NO_ID && used[values[i]]) out->ports[out->port_count++].value = values[i];
    }
    box->port_count = out->port_count - box->port_first;
  }
  return true;
}

static double port_width(const drawing *d, clv_value_id value, bool *failed) {
  clv__text type;
  clv__text_init(&type, d->arena->allocator);
  clv__label_type(&type, d->graph, &d->texts->types[value]);
  double width = clv__fit_width(type.data, NAME_SIZE);
  *failed = *failed || type.failed;
  clv__text_finish(&type);
  return shorter(width, WIDEST);
}

/* Returns the width of all labels below a box, and sets the x of its ports relative to the left end of the labels. */
static double spread_ports(drawing *d, const clv__model_box *box, bool *failed) {
  clv__model_port *ports = &d->out->ports[box->port_first];
  if (box->port_count > CLV__MODEL_PORTS) { /* one label, "12 values" */
    for (uint32_t i = 0; i < box->port_count; ++i) ports[i].x = 35;
    return 70;
  }
  double width = 0;
  for (uint32_t i = 0; i < box->port_count; ++i) {
    double own = port_width(d, ports[i].value, failed);
    ports[i].x = width + (i > 0 ? GAP : 0) + own / 2;
    width = ports[i].x + own / 2;
  }
  return width;
}

/* ---- Sizes ---- */

static double line_width(const drawing *d, const clv__model_line *line, bool *failed) {
  clv__text text;
  clv__text_init(&text, d->arena->allocator);
  append_kind(d->texts, line, &text);
  double width = clv__fit_width(text.data, NAME_SIZE) + (line->far ? clv__fit_width("↑ ", NAME_SIZE) : 0);
  width += shorter(clv__fit_width(d->graph->values[line->value].name, NAME_SIZE), NAME_WIDTH);
  *failed = *failed || text.failed;
  clv__text_finish(&text);
  return width;
}

static void measure(const drawing *d, clv__model_box *box, bool *failed) {
  const clv_graph *graph = d->graph;
  if (box->kind != CLV__MODEL_NODE) {
    box->width = 2 * SIDE + shorter(clv__fit_width(graph->values[box->id].name, NAME_SIZE), WIDEST);
    box->height = PILL;
  } else {
    const clv__node *node = &graph->nodes[box->id];
    box->width = 2 * SIDE + MARK * d->texts->marks + shorter(clv__fit_width(clv__label_op(node), OP_SIZE), 180) + BETWEEN +
                 shorter(clv__fit_width(node->name, NAME_SIZE), NAME_WIDTH);
    box->height = HEAD;
  }
  uint32_t shown = box->line_count < CLV__MODEL_LINES ? box->line_count : CLV__MODEL_LINES;
  for (uint32_t i = 0; i < shown; ++i) {
    box->width = longer(box->width, 2 * SIDE + line_width(d, &d->out->lines[box->line_first + i], failed));
  }
  if (shown > 0) box->height += shown * LINE + (box->line_count > shown ? LINE : 0) + FOOT;
  box->width = longer(NARROWEST, shorter(box->width, WIDEST));
}

/* ---- The layout ---- */

static bool place(drawing *d, const clv__layers *layers, const double *label_widths) {
  clv__model_layout *out = d->out;
  out->rank_count = layers->rank_count;
  out->tops = clv__arena_allocate_zero(d->arena, (size_t)layers->rank_count + 1, sizeof *out->tops);
  out->bottoms = clv__arena_allocate_zero(d->arena, (size_t)layers->rank_count + 1, sizeof *out->bottoms);
  out->wires = clv__arena_allocate_zero(d->arena, (size_t)d->edge_count + 1, sizeof *out->wires);
  if (out->tops == NULL || out->bottoms == NULL || out->wires == NULL) return false;
  for (uint32_t b = 0; b < out->box_count; ++b) {
    clv__model_box *box = &out->boxes[b];
    box->rank = layers->ranks[b];
    box->x = MARGIN + layers->x[b];
    for (uint32_t i = 0; i < box->port_count; ++i) out->ports[box->port_first + i].x += box->x - label_widths[b] / 2;
    out->bottoms[box->rank] = longer(out->bottoms[box->rank], box->height);
  }
  double y = MARGIN;
  for (uint32_t r = 0; r < out->rank_count; ++r) {
    out->tops[r] = y;
    out->bottoms[r] += y;
    y = out->bottoms[r] + BETWEEN_RANKS;
  }
  out->width = layers->width + 2 * MARGIN;
  out->height = y - BETWEEN_RANKS + MARGIN;
  for (uint32_t e = 0; e < d->edge_count; ++e) {
    if (is_far(layers, d, e)) continue;
    uint32_t port = out->boxes[d->from[e]].port_first;
    while (out->ports[port].value != d->values[e]) ++port;
    for (uint32_t b = layers->bend_offsets[e]; b < layers->bend_offsets[e + 1]; ++b) layers->bends[b] += MARGIN;
    out->wires[out->wire_count++] =
        (clv__model_wire){d->from[e], d->to[e], port, layers->bend_offsets[e + 1] - layers->bend_offsets[e],
                          &layers->bends[layers->bend_offsets[e]]};
  }
  return true;
}

bool clv__model_lay_out(const clv__model_texts *texts, clv__arena *arena, clv__model_layout *layout) {
  *layout = (clv__model_layout){0};
  drawing d = {.texts = texts, .graph = texts->graph, .arena = arena, .out = layout};
  const clv_graph *graph = d.graph;
  size_t most = (size_t)graph->input_count + graph->capture_count + graph->node_count + graph->output_count;
  layout->boxes = clv__arena_allocate_zero(arena, most + 1, sizeof *layout->boxes);
  d.box_of_node = clv__arena_allocate(arena, ((size_t)graph->node_count + 1) * sizeof *d.box_of_node);
  d.box_of_value = clv__arena_allocate(arena, ((size_t)graph->value_count + 1) * sizeof *d.box_of_value);
  double *widths = clv__arena_allocate_zero(arena, most + 1, sizeof *widths);
  double *label_widths = clv__arena_allocate_zero(arena, most + 1, sizeof *label_widths);
  if (layout->boxes == NULL || d.box_of_node == NULL || d.box_of_value == NULL || widths == NULL || label_widths == NULL)
    return false;
  memset(d.box_of_node, 0xff, ((size_t)graph->node_count + 1) * sizeof *d.box_of_node);
  memset(d.box_of_value, 0xff, ((size_t)graph->value_count + 1) * sizeof *d.box_of_value);
  add_boxes(&d);
  if (!add_edges(&d)) return false;
  clv__layers_input input = {layout->box_count, d.edge_count, widths, d.from, d.to, GAP};
  clv__layers layers;
  if (!clv__layers_make(&input, arena, &layers)) return false;
  add_lines(&d, &layers);
  if (!add_ports(&d, &layers)) return false;
  bool failed = false;
  for (uint32_t b = 0; b < layout->box_count; ++b) {
    measure(&d, &layout->boxes[b], &failed);
    label_widths[b] = spread_ports(&d, &layout->boxes[b], &failed);
    widths[b] = longer(layout->boxes[b].width, label_widths[b]);
  }
  return !failed && clv__layers_make(&input, arena, &layers) && place(&d, &layers, label_widths);
}
