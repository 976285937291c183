/* See data.h. Arrays instead of objects, and indices in `texts` instead of repeated texts, keep pages with thousands of nodes
 * small.
 *
 *   texts    operators, domains, types, reasons; text 0 is ""
 *   devices  {name, description, color}
 *   facts    [name, value]: the IR version, operator sets and metadata of the model
 *   graphs   the model, then the bodies of its nodes. Each is {name, parent, node, width, height, …} with the lists
 *     nodes    [name, op, domain, opset, source name, folded, inputs, outputs, attributes, FLOPs or -1,
 *               by device: the reason why it cannot run the node, or ""]; bodies have no FLOPs and no reasons
 *     values   [name, type, producer or -1, kind, statistics or null]; kinds: 0 computed, 1 input, 2 initializer,
 *               3 computed when planning, 4 weight that is not in the file, 5 value of the outer graph
 *     boxes    [kind (0 node, 1 input, 2 output), id, x, rank, width, height, bold text, name, ports, lines]
 *     wires    [from box, to box, port of the source box, bends…]
 *     ranks    [top, bottom]
 *     inputs, outputs: ids of values
 *   attributes  [name, text, graph or -1]
 *   ports       [x, value]
 *   lines       [text, value, 1 if the value comes from far above]
 *   statistics  [elements, bytes, zeros, NaNs, infinities, min, max, mean, deviation, first elements]; numbers that do not exist
 * are null */
#include "report/model/data.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/view.h"
#include "report/label.h"
#include "report/model/layout.h"
#include "report/model/statistics.h"
#include "report/page/html_json.h"
#include "report/page/texts.h"
#include "report/picture/palette.h"

enum { FIRST_ELEMENTS = 16, ATTRIBUTE_ELEMENTS = 64, ATTRIBUTE_TEXT = 2000, MOST_MARKS = 6 };

/* A graph of the page. */
typedef struct part {
  const clv_graph *graph;
  const clv_tensor *types;
  uint32_t parent, node; /* the part and the node whose body this is; CLV__NO_ID: the model itself */
} part;

typedef struct data {
  const clv__model *model;
  clv__text *text;
  clv__html_texts texts;
  part *parts; /* grows while parts are written: each appends the bodies of its nodes */
  size_t part_count, part_capacity;
  clv_error *error;
  clv_status status;
} data;

static void append_id(clv__text *text, uint32_t id) {
  if (id == CLV__NO_ID)
    clv__text_append(text, "-1");
  else
    clv__text_append(text, "%u", id);
}

static void append_ids(clv__text *text, const uint32_t *ids, uint32_t count) {
  clv__text_append(text, "[");
  for (uint32_t i = 0; i < count; ++i) {
    if (i > 0) clv__text_append(text, ",");
    append_id(text, ids[i]);
  }
  clv__text_append(text, "]");
}

/* Appends a text as a JSON string, and frees it. */
static void append_text(data *d, clv__text *string) {
  clv__html_json_string(d->text, string->data);
  d->text->failed = d->text->failed || string->failed;
  clv__text_finish(string);
}

/* ---- Parts ---- */

static uint32_t add_part(data *d, const clv_graph *graph, const clv_tensor *types, uint32_t parent, uint32_t node) {
  if (!clv__array_reserve(d->text->allocator, (void **)&d->parts, &d->part_capacity, d->part_count + 1, sizeof *d->parts,
                          d->part_count)) {
    d->text->failed = true;
    return CLV__NO_ID;
  }
  d->parts[d->part_count] = (part){graph, types, parent, node};
  return (uint32_t)d->part_count++;
}

/* Returns the types of a body's values, as declared. Values from outside the body have the types of the outer graph. The names
 * of sizes are left out, because they belong to the outer graph. */
static const clv_tensor *declared_types(data *d, const part *p) {
  const clv_graph *graph = p->graph;
  clv_tensor *types = clv__arena_allocate_zero(&d->texts.arena, (size_t)graph->value_count + 1, sizeof *types);
  if (types == NULL) {
    d->text->failed = true;
    return NULL;
  }
  for (clv_value_id v = 0; v < graph->value_count; ++v) {
    types[v] = graph->values[v].type;
    if (types[v].dtype == CLV_DTYPE_NONE) types[v].rank = CLV_RANK_UNKNOWN;
  }
  const part *outer = &d->parts[p->parent];
  const clv__node *node = &outer->graph->nodes[p->node];
  for (uint32_t i = 0; i < graph->capture_count; ++i) {
    clv_tensor *type = &types[graph->captures[i]];
    *type = outer->types[node->inputs[node->input_count - node->capture_count + graph->capture_index[i]]];
    type->data = NULL;
    for (int32_t k = 0; k < type->rank; ++k) type->dims[k] = type->dims[k] < 0 ? CLV_DIM_UNKNOWN : type->dims[k];
  }
  return types;
}

/* ---- Values ---- */

static void append_element(void *cookie, const clv_tensor *some, size_t index) {
  clv__text *text = cookie;
  clv__text element;
  clv__text_init(&element, text->allocator);
  clv__label_element(&element, some, index);
  if (index > 0) clv__text_append(text, ",");
  clv__html_json_string(text, element.data);
  text->failed = text->failed || element.failed;
  clv__text_finish(&element);
}

static void append_number(clv__text *text, bool exists, double number) {
  if (exists && isfinite(number))
    clv__text_append(text, ",%.9g", number);
  else
    clv__text_append(text, ",null");
}

static void append_statistics(data *d, const clv_tensor *tensor) {
  clv__statistics s;
  size_t size_bytes = 0;
  if (d->status == CLV_OK) d->status = clv__statistics_find(d->model->graph, tensor, &s, d->error);
  if (d->status != CLV_OK || !clv__tensor_size_bytes(tensor, &size_bytes)) {
    clv__text_append(d->text, "null");
    return;
  }
  bool any = tensor->dtype != CLV_STRING && s.count > s.nans + s.infinities;
  clv__text_append(d->text, "[%zu,%zu,%zu,%zu,%zu", s.count, size_bytes, s.zeros, s.nans, s.infinities);
  append_number(d->text, any, s.least);
  append_number(d->text, any, s.largest);
  append_number(d->text, any, s.mean);
  append_number(d->text, any, s.deviation);
  clv__text_append(d->text, ",[");
  d->status = clv__statistics_first(d->model->graph, tensor, FIRST_ELEMENTS, append_element, d->text, d->error);
  clv__text_append(d->text, "]]");
}

static int kind_of(const part *p, clv_value_id v) {
  const clv__value *value = &p->graph->values[v];
  if (value->is_unbound) return 4;
  if (value->capture != CLV__NO_ID) return 5;
  if (p->types[v].data != NULL) return value->producer == CLV__NO_ID ? 2 : 3;
  return value->is_input ? 1 : 0;
}

static void append_values(data *d, const part *p) {
  const clv_graph *graph = p->graph;
  clv__text_append(d->text, "\"values\":[");
  for (clv_value_id v = 0; v < graph->value_count && d->status == CLV_OK; ++v) {
    clv__text type;
    clv__text_init(&type, d->text->allocator);
    clv__label_type(&type, graph, &p->types[v]);
    clv__text_append(d->text, "%s[", v > 0 ? ",\n" : "");
    clv__html_json_string(d->text, graph->values[v].name);
    clv__text_append(d->text, ",%u,", clv__html_text_number(&d->texts, type.data));
    append_id(d->text, graph->values[v].producer);
    clv__text_append(d->text, ",%d,", kind_of(p, v));
    if (p->types[v].data != NULL)
      append_statistics(d, &p->types[v]);
    else
      clv__text_append(d->text, "null");
    clv__text_append(d->text, "]");
    d->text->failed = d->text->failed || type.failed;
    clv__text_finish(&type);
  }
  clv__text_append(d->text, "],\n");
}

/* ---- Nodes ---- */

static void append_list(const clv_attribute *a, clv__text *text) {
  bool list = a->is_list || a->count != 1;
  clv__text_append(text, "%s", list ? "[" : "");
  for (size_t i = 0; i < a->count && i < ATTRIBUTE_ELEMENTS && text->size_bytes < ATTRIBUTE_TEXT; ++i) {
    clv__text_append(text, "%s", i > 0 ? ", " : "");
    if (a->kind == CLV_ATTRIBUTE_INTS) {
      clv__text_append(text, "%" PRId64, a->ints[i]);
    } else if (a->kind == CLV_ATTRIBUTE_FLOATS) {
      clv__text_append(text, "%.7g", (double)a->floats[i]);
    } else {
      clv_tensor string = {.dtype = CLV_STRING, .rank = 0, .data = (void *)(uintptr_t)&a->strings[i]};
      clv__label_element(text, &string, 0);
    }
  }
  if (a->count > ATTRIBUTE_ELEMENTS) clv__text_append(text, ", … %zu in total", a->count);
  clv__text_append(text, "%s", list ? "]" : "");
}

static void append_after(void *cookie, const clv_tensor *some, size_t index) {
  clv__text_append(cookie, index > 0 ? ", " : " = ");
  clv__label_element(cookie, some, index);
}

static void append_attribute(data *d, uint32_t part_index, clv_node_id n, const clv_attribute *a) {
  const clv_graph *graph = d->parts[part_index].graph;
  uint32_t body = CLV__NO_ID;
  clv__text text;
  clv__text_init(&text, d->text->allocator);
  if (a->kind == CLV_ATTRIBUTE_GRAPH) {
    body = add_part(d, a->graph->graph, NULL, part_index, n);
    clv__text_append(&text, "graph of ");
    clv__label_plural(&text, a->graph->graph->node_count, "node");
  } else if (a->kind == CLV_ATTRIBUTE_TENSOR) {
    size_t count;
    clv__label_type(&text, graph, a->tensor);
    if (d->status == CLV_OK) {
      d->status = clv__statistics_first(d->model->graph, a->tensor, FIRST_ELEMENTS, append_after, &text, d->error);
    }
    if (clv__tensor_count(a->tensor, &count) && count > FIRST_ELEMENTS) clv__text_append(&text, ", …");
  } else {
    append_list(a, &text);
  }
  clv__text_append(d->text, "[");
  clv__html_json_string(d->text, a->name);
  clv__text_append(d->text, ",");
  append_text(d, &text);
  clv__text_append(d->text, ",");
  append_id(d->text, body);
  clv__text_append(d->text, "]");
}

static void append_node(data *d, uint32_t part_index, clv_node_id n) {
  const clv__model *model = d->model;
  const clv__node *node = &d->parts[part_index].graph->nodes[n];
  bool whole = part_index == 0, folded = whole && model->shapes->node_folded[n];
  clv__text_append(d->text, "%s[", n > 0 ? ",\n" : "");
  clv__html_json_string(d->text, node->name);
  clv__text_append(d->text, ",%u,%u,%d,", clv__html_text_number(&d->texts, clv__label_op(node)),
                   clv__html_text_number(&d->texts, node->source_op[0] != '\0' ? node->op : node->domain), node->opset);
  clv__html_json_string(d->text,
                        node->source_name != NULL && strcmp(node->source_name, node->name) != 0 ? node->source_name : "");
  clv__text_append(d->text, ",%d,", folded);
  append_ids(d->text, node->inputs, node->input_count);
  clv__text_append(d->text, ",");
  append_ids(d->text, node->outputs, node->output_count);
  clv__text_append(d->text, ",[");
  for (uint32_t i = 0; i < node->attributes.count; ++i) {
    if (i > 0) clv__text_append(d->text, ",");
    append_attribute(d, part_index, n, &node->attributes.items[i]);
  }
  if (whole && model->flops[n] >= 0 && isfinite(model->flops[n]))
    clv__text_append(d->text, "],%.6g,[", model->flops[n]);
  else
    clv__text_append(d->text, "],-1,[");
  for (uint32_t i = 0; whole && i < model->devices->count; ++i) {
    clv__text_append(d->text, "%s%u", i > 0 ? "," : "",
                     clv__html_text_number(&d->texts, clv__capability_reason(model->capability, n, i)));
  }
  clv__text_append(d->text, "]]");
}

/* ---- The picture ---- */

static void append_box(data *d, const clv__model_texts *texts, const clv__model_layout *layout, const clv__model_box *box) {
  clv__text bold, name;
  clv__text_init(&bold, d->text->allocator);
  clv__text_init(&name, d->text->allocator);
  clv__model_box_text(texts, box, &bold, &name);
  clv__text_append(d->text, "[%d,%u,%.1f,%u,%.0f,%.0f,%u,", (int)box->kind, box->id, box->x, box->rank, box->width, box->height,
                   clv__html_text_number(&d->texts, bold.data));
  d->text->failed = d->text->failed || bold.failed;
  clv__text_finish(&bold);
  append_text(d, &name);
  clv__text_append(d->text, ",[");
  for (uint32_t i = 0; i < box->port_count; ++i) {
    const clv__model_port *port = &layout->ports[box->port_first + i];
    clv__text_append(d->text, "%s[%.1f,%u]", i > 0 ? "," : "", port->x, port->value);
  }
  clv__text_append(d->text, "],[");
  for (uint32_t i = 0; i < box->line_count && i < CLV__MODEL_LINES; ++i) {
    const clv__model_line *line = &layout->lines[box->line_first + i];
    clv__text label;
    clv__text_init(&label, d->text->allocator);
    clv__model_line_text(texts, box, line, &label);
    clv__text_append(d->text, "%s[", i > 0 ? "," : "");
    append_text(d, &label);
    clv__text_append(d->text, ",%u,%d]", line->value, line->far);
  }
  if (box->line_count > CLV__MODEL_LINES)
    clv__text_append(d->text, ",[\"and %u more\",-1,0]", box->line_count - CLV__MODEL_LINES);
  clv__text_append(d->text, "]]");
}

static void append_picture(data *d, const part *p) {
  clv__arena arena;
  clv__model_layout layout;
  uint32_t marks = p->parent == CLV__NO_ID ? d->model->devices->count : 0;
  clv__model_texts texts = {p->graph, d->model->graph, p->types, marks < MOST_MARKS ? marks : MOST_MARKS};
  clv__arena_init(&arena, d->text->allocator);
  if (clv__model_lay_out(&texts, &arena, &layout)) {
    clv__text_append(d->text, "\"width\":%.0f,\"height\":%.0f,\"boxes\":[", layout.width, layout.height);
    for (uint32_t b = 0; b < layout.box_count; ++b) {
      clv__text_append(d->text, "%s", b > 0 ? ",\n" : "");
      append_box(d, &texts, &layout, &layout.boxes[b]);
    }
    clv__text_append(d->text, "],\n\"wires\":[");
    for (uint32_t w = 0; w < layout.wire_count; ++w) {
      const clv__model_wire *wire = &layout.wires[w];
      clv__text_append(d->text, "%s[%u,%u,%u", w > 0 ? "," : "", wire->from, wire->to,
                       wire->port - layout.boxes[wire->from].port_first);
      for (uint32_t i = 0; i < wire->bend_count; ++i) clv__text_append(d->text, ",%.0f", wire->bends[i]);
      clv__text_append(d->text, "]");
    }
    clv__text_append(d->text, "],\n\"ranks\":[");
    for (uint32_t r = 0; r < layout.rank_count; ++r) {
      clv__text_append(d->text, "%s[%.0f,%.0f]", r > 0 ? "," : "", layout.tops[r], layout.bottoms[r]);
    }
    clv__text_append(d->text, "]}");
  } else {
    d->text->failed = true;
  }
  clv__arena_finish(&arena);
}

static void append_part(data *d, uint32_t index) {
  if (d->parts[index].types == NULL) d->parts[index].types = declared_types(d, &d->parts[index]);
  part p = d->parts[index]; /* a copy, because the list grows */
  if (d->text->failed) return;
  clv__text_append(d->text, "%s{\"name\":", index > 0 ? ",\n" : "");
  clv__html_json_string(d->text, p.graph->name);
  clv__text_append(d->text, ",\"parent\":");
  append_id(d->text, p.parent);
  clv__text_append(d->text, ",\"node\":");
  append_id(d->text, p.node);
  clv__text_append(d->text, ",\"inputs\":");
  append_ids(d->text, p.graph->inputs, p.graph->input_count);
  clv__text_append(d->text, ",\"outputs\":");
  append_ids(d->text, p.graph->outputs, p.graph->output_count);
  clv__text_append(d->text, ",\n\"nodes\":[");
  for (clv_node_id n = 0; n < p.graph->node_count && d->status == CLV_OK && !d->text->failed; ++n) append_node(d, index, n);
  clv__text_append(d->text, "],\n");
  append_values(d, &p);
  append_picture(d, &p);
}

/* ---- The page's data ---- */

static void append_fact(data *d, const char *name, const char *value) {
  clv__html_json_string(d->text, name);
  clv__text_append(d->text, ",");
  clv__html_json_string(d->text, value);
  clv__text_append(d->text, "]");
}

static void append_head(data *d) {
  const clv_graph *graph = d->model->graph;
  const clv_devices *devices = d->model->devices;
  clv__text_append(d->text, "{\"devices\":[");
  for (uint32_t i = 0; i < devices->count; ++i) {
    clv__text_append(d->text, "%s{\"name\":", i > 0 ? "," : "");
    clv__html_json_string(d->text, devices->items[i].name);
    clv__text_append(d->text, ",\"description\":");
    clv__html_json_string(d->text, devices->items[i].info.description);
    clv__text_append(d->text, ",\"color\":%u}", clv__palette_index(i));
  }
  char version[24];
  snprintf(version, sizeof version, "%" PRId64, graph->ir_version);
  clv__text_append(d->text, "],\n\"facts\":[[");
  append_fact(d, "IR version", version);
  for (uint32_t i = 0; i < graph->import_count; ++i) {
    snprintf(version, sizeof version, "opset %d", graph->imports[i].version);
    clv__text_append(d->text, ",[");
    append_fact(d, graph->imports[i].domain[0] == '\0' ? "ai.onnx" : graph->imports[i].domain, version);
  }
  for (uint32_t i = 0; i < graph->metadata_count; ++i) {
    clv__text_append(d->text, ",[");
    append_fact(d, graph->metadata[2 * i], graph->metadata[2 * i + 1]);
  }
  clv__text_append(d->text, "],\n\"graphs\":[");
}

clv_status clv__model_data(const clv__model *model, clv__text *text, clv_error *error) {
  data d = {.model = model, .text = text, .error = error, .status = clv__graph_check_files(model->graph, error)};
  clv__html_texts_init(&d.texts, text->allocator);
  append_head(&d);
  (void)add_part(&d, model->graph, model->shapes->types, CLV__NO_ID, CLV__NO_ID);
  for (uint32_t i = 0; i < d.part_count && d.status == CLV_OK && !text->failed; ++i) append_part(&d, i);
  clv__text_append(text, "],\n\"texts\":");
  clv__html_texts_write(&d.texts, text);
  clv__text_append(text, "}");
  if (d.status == CLV_OK) d.status = clv__graph_check_files(model->graph, error);
  clv__html_texts_finish(&d.texts);
  clv__release(text->allocator, d.parts);
  return d.status;
}
