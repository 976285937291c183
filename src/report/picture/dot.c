/* See dot.h. */
#include "report/picture/dot.h"

#include "report/label.h"
#include "report/picture/palette.h"

/* Appends a name, escaped for the inside of a quoted string of the DOT language. */
static void append_quoted(clv__text *text, const char *name) {
  clv__text clean;
  clv__text_init(&clean, text->allocator);
  clv__label_name(&clean, name);
  for (const char *at = clean.data; *at != '\0'; ++at) {
    if (*at == '"' || *at == '\\') clv__text_append(text, "\\");
    clv__text_append_bytes(text, at, 1);
  }
  text->failed = text->failed || clean.failed;
  clv__text_finish(&clean);
}

static void append_partition(const clv_plan *plan, uint32_t index, clv__text *text) {
  const clv__partition *partition = &plan->partitions[index];
  const clv__colors *colors = clv__palette(clv__palette_index(partition->device), false);
  clv__text_append(text, "  subgraph cluster_%u {\n    label=\"partition %u on ", index, index);
  append_quoted(text, plan->devices->items[partition->device].name);
  clv__text_append(text, "\"; style=\"rounded,filled\"; fillcolor=\"%s\"; color=\"%s\"; fontcolor=\"%s\";\n", colors->lane,
                   colors->stroke, colors->stroke);
  for (uint32_t i = 0; i < partition->node_count; ++i) {
    const clv__node *node = &plan->graph->nodes[partition->nodes[i]];
    clv__text_append(text, "    n%u [label=\"", partition->nodes[i]);
    append_quoted(text, node->name);
    clv__text_append(text, "\\n");
    append_quoted(text, node->op);
    clv__text_append(text, "\", fillcolor=\"%s\", color=\"%s\"];\n", colors->fill, colors->stroke);
  }
  clv__text_append(text, "  }\n");
}

static void append_edge_end(const clv_plan *plan, clv_value_id value, bool crosses, clv__text *text) {
  const clv_tensor *type = &plan->shapes->types[value];
  size_t size_bytes;
  char label[CLV__LABEL_BYTES];
  clv__text_append(text, " [label=\"");
  append_quoted(text, plan->graph->values[value].name);
  if (crosses) {
    clv__text_append(text, "\\n%s",
                     clv__tensor_size_bytes(type, &size_bytes) ? clv__label_size(size_bytes, label) : "size unknown");
    clv__text_append(text, "\", penwidth=2, color=\"#c0392b\", fontcolor=\"#c0392b\"];\n");
  } else {
    clv__text_append(text, "\"];\n");
  }
}

/* Appends the edges into a node: from nodes that run, and from the graph's inputs. */
static void append_edges(const clv_plan *plan, clv_node_id id, clv__text *text) {
  const clv__node *node = &plan->graph->nodes[id];
  uint32_t space = plan->devices->items[plan->placement.devices[id]].space;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    clv_value_id value = node->inputs[i];
    if (value == CLV__NO_ID || clv__value_is_constant(plan->graph, plan->shapes->types, value))
      continue; /* constants are not drawn */
    clv_node_id producer = plan->graph->values[value].producer;
    uint32_t from = producer == CLV__NO_ID ? CLV__SPACE_HOST : plan->devices->items[plan->placement.devices[producer]].space;
    if (producer == CLV__NO_ID)
      clv__text_append(text, "  v%u -> n%u", value, id);
    else
      clv__text_append(text, "  n%u -> n%u", producer, id);
    append_edge_end(plan, value, from != space, text);
  }
}

void clv__report_dot(const clv_plan *plan, clv__text *text) {
  const clv_graph *graph = plan->graph;
  clv__text_append(text,
                   "digraph plan {\n"
                   "  graph [fontname=\"Helvetica\", fontsize=12, ranksep=0.4, nodesep=0.3];\n"
                   "  node [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\", fontname=\"Helvetica\", fontsize=11];\n"
                   "  edge [fontname=\"Helvetica\", fontsize=9, color=\"#5b616b\", fontcolor=\"#5b616b\"];\n");
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    clv__text_append(text, "  v%u [shape=ellipse, label=\"", graph->inputs[i]);
    append_quoted(text, graph->values[graph->inputs[i]].name);
    clv__text_append(text, "\"];\n");
  }
  for (uint32_t p = 0; p < plan->partition_count; ++p) append_partition(plan, p, text);
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    if (plan->placement.devices[n] != CLV__NO_ID) append_edges(plan, n, text);
  }
  for (uint32_t i = 0; i < graph->output_count; ++i) {
    clv_value_id value = graph->outputs[i];
    clv__text_append(text, "  o%u [shape=ellipse, label=\"", i);
    append_quoted(text, graph->values[value].name);
    clv__text_append(text, "\"];\n");
    clv_node_id producer = graph->values[value].producer;
    if (clv__value_is_constant(plan->graph, plan->shapes->types, value)) continue;
    if (producer == CLV__NO_ID) {
      clv__text_append(text, "  v%u -> o%u;\n", value, i);
    } else {
      clv__text_append(text, "  n%u -> o%u", producer, i);
      append_edge_end(plan, value, plan->devices->items[plan->placement.devices[producer]].space != CLV__SPACE_HOST, text);
    }
  }
  clv__text_append(text, "}\n");
}
