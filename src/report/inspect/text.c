/* Writes an inspection as text. See inspect.h. */
#include <string.h>

#include "report/inspect/inspect.h"
#include "report/label.h"
#include "report/table.h"

enum { MOST_REASONS = 6, NAME_COLUMNS = 80 }; /* most reasons per device without -v; most columns of a name */

static bool inputs_are_open(const clv_inspection *in) {
  const clv_graph *graph = in->graph;
  bool open = false;
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    open = open || !clv__tensor_is_static(&in->shapes->types[graph->inputs[i]]);
  }
  return open;
}

static void write_summary(const clv_inspection *in, const char *name, bool bold, clv__text *text) {
  const clv_graph *graph = in->graph;
  char number[CLV__LABEL_BYTES], size[CLV__LABEL_BYTES];
  clv__text_append(text, "%s%s%s\n", bold ? "\033[1m" : "", name, bold ? "\033[0m" : "");
  clv__text_append(text, "IR version %lld, opsets", (long long)graph->ir_version);
  for (uint32_t i = 0; i < graph->import_count; ++i) {
    clv__text_append(text, "%s ", i > 0 ? "," : "");
    clv__label_name(text, graph->imports[i].domain[0] == '\0' ? "ai.onnx" : graph->imports[i].domain);
    clv__text_append(text, " %d", graph->imports[i].version);
  }
  clv__text_append(text, "\n");
  clv__label_plural(text, graph->node_count, "node");
  if (in->folded_nodes > 0) {
    clv__text_append(text, ", of which %llu %s computed when planning", (unsigned long long)in->folded_nodes,
                     in->folded_nodes == 1 ? "is" : "are");
  }
  clv__text_append(text, "\n");
  clv__label_plural(text, in->parameter_count, "parameter");
  clv__text_append(text, " in ");
  clv__label_plural(text, in->parameter_values, "initializer");
  clv__text_append(text, ", %s", clv__label_size(in->parameter_bytes, size));
  if (in->unbound_bytes > 0)
    clv__text_append(text, ", of which %s are not in the model file", clv__label_size(in->unbound_bytes, size));
  clv__text_append(text, "\n");
  if (in->folded_count > 0) {
    clv__label_plural(text, in->folded_count, "number");
    clv__text_append(text, " computed when planning, %s\n", clv__label_size(in->folded_bytes, size));
  }
  clv__label_count(in->flops, number);
  clv__text_append(text, "%s%s%sFLOP per run%s\n", in->flops_complete ? "" : "at least ", number,
                   strchr(number, ' ') != NULL ? "" : " ", /* "GFLOP", but "7 FLOP" */
                   in->flops_complete    ? ""
                   : inputs_are_open(in) ? " (shapes are open: --shape and --dim set them)"
                                         : " (the FLOPs of some nodes are known only at run time)");
}

static void write_values(const clv_inspection *in, const char *title, const clv_value_id *values, uint32_t count, bool bold,
                         clv__text *text) {
  const clv_graph *graph = in->graph;
  clv__table table;
  clv__table_init(&table, text->allocator, "lll", true);
  clv__table_cell(&table, "%s", title);
  clv__table_cell(&table, "type");
  clv__table_cell(&table, "%s", "");
  for (uint32_t i = 0; i < count; ++i) {
    clv__text name, type;
    clv__text_init(&name, text->allocator);
    clv__text_init(&type, text->allocator);
    clv__label_short(&name, graph->values[values[i]].name, NAME_COLUMNS);
    clv__label_type(&type, graph, &in->shapes->types[values[i]]);
    clv__table_cell(&table, "%s", name.data);
    clv__table_cell(&table, "%s", type.data);
    clv__table_cell(&table, "%s", graph->values[values[i]].type.data != NULL ? "has a default" : "");
    clv__text_finish(&type);
    clv__text_finish(&name);
  }
  clv__text_append(text, "\n");
  clv__table_write(&table, 0, bold, text);
  clv__table_finish(&table);
}

static void write_operators(const clv_inspection *in, bool bold, clv__text *text) {
  const clv_devices *devices = in->devices;
  clv__table table;
  char alignments[CLV__MAX_DEVICES + 4] = "lrr", label[CLV__LABEL_BYTES];
  uint32_t shown = devices->count < CLV__TABLE_MAX_COLUMNS - 3 ? devices->count : CLV__TABLE_MAX_COLUMNS - 3;
  memset(alignments + 3, 'r', shown);
  alignments[3 + shown] = '\0';
  clv__table_init(&table, text->allocator, alignments, true);
  clv__table_cell(&table, "operator");
  clv__table_cell(&table, "nodes");
  clv__table_cell(&table, "FLOP");
  for (uint32_t d = 0; d < shown; ++d) clv__table_cell(&table, "%s", devices->items[d].name);
  for (uint32_t i = 0; i < in->row_count; ++i) {
    const clv__inspected_operator *row = &in->rows[i];
    clv__table_cell(&table, "%s%s%s", row->domain, row->domain[0] != '\0' ? "." : "", row->op);
    clv__table_cell(&table, "%u", row->count);
    clv__table_cell(&table, "%s", row->flops_complete ? clv__label_count(row->flops, label) : "?");
    for (uint32_t d = 0; d < shown; ++d) {
      uint32_t asked = row->count - row->folded;
      if (asked == 0)
        clv__table_cell(&table, "const");
      else if (row->supported[d] == asked)
        clv__table_cell(&table, "yes");
      else if (row->supported[d] == 0)
        clv__table_cell(&table, "no");
      else
        clv__table_cell(&table, "%u of %u", row->supported[d], asked);
    }
  }
  clv__text_append(text, "\n");
  clv__table_write(&table, 0, bold, text);
  clv__table_finish(&table);
}

/* Writes the reasons for which a device rejects nodes: a line per operator and reason, with the number of nodes and the first
 * of them. */
static void write_reasons(const clv_inspection *in, uint32_t device, bool all, clv__text *text) {
  const clv_graph *graph = in->graph;
  uint32_t distinct = 0;
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    const char *reason = clv__capability_reason(&in->capability, n, device);
    if (reason == NULL) continue;
    bool first = true;
    for (clv_node_id k = 0; k < n && first; ++k) {
      first = clv__capability_reason(&in->capability, k, device) != reason || strcmp(graph->nodes[k].op, graph->nodes[n].op) != 0;
    }
    if (!first) continue;
    if (distinct == 0) clv__text_append(text, "\n%s cannot run:\n", in->devices->items[device].name);
    if (distinct++ == MOST_REASONS && !all) {
      clv__text_append(text, "  … (-v lists all)\n");
      return;
    }
    uint32_t count = 0;
    for (clv_node_id k = n; k < graph->node_count; ++k) {
      count +=
          clv__capability_reason(&in->capability, k, device) == reason && strcmp(graph->nodes[k].op, graph->nodes[n].op) == 0;
    }
    clv__text_append(text, "  ");
    clv__label_name(text, graph->nodes[n].op);
    clv__text_append(text, ": ");
    clv__label_name(text, reason);
    clv__text_append(text, " (");
    clv__label_plural(text, count, "node");
    clv__text_append(text, count == 1 ? ": " : ", first: ");
    clv__label_short(text, graph->nodes[n].name, 40);
    clv__text_append(text, ")\n");
  }
}

static void append_types(const clv_inspection *in, const clv_value_id *values, uint32_t count, clv__text *text) {
  for (uint32_t i = 0; i < count; ++i) {
    clv__text_append(text, i > 0 ? ", " : "");
    if (values[i] == CLV__NO_ID)
      clv__text_append(text, "-");
    else
      clv__label_type(text, in->graph, &in->shapes->types[values[i]]);
  }
}

static void write_nodes(const clv_inspection *in, bool bold, clv__text *text) {
  const clv_graph *graph = in->graph;
  clv__table table;
  char label[CLV__LABEL_BYTES];
  bool from_source = false; /* set for formats other than ONNX */
  for (clv_node_id n = 0; n < graph->node_count; ++n) from_source = from_source || graph->nodes[n].source_op[0] != '\0';
  clv__table_init(&table, text->allocator, from_source ? "rlllllr" : "rllllr", true);
  static const char *const titles[] = {"#", "node", "from", "operator", "reads", "writes", "FLOP"};
  for (uint32_t i = 0; i < sizeof titles / sizeof *titles; ++i) {
    if (i != 2 || from_source) clv__table_cell(&table, "%s", titles[i]);
  }
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    const clv__node *node = &graph->nodes[n];
    clv__text name, reads, writes;
    clv__text_init(&name, text->allocator);
    clv__label_short(&name, node->name, NAME_COLUMNS);
    clv__text_init(&reads, text->allocator);
    clv__text_init(&writes, text->allocator);
    append_types(in, node->inputs, node->input_count, &reads);
    append_types(in, node->outputs, node->output_count, &writes);
    const double flops = in->node_flops[n];
    clv__table_cell(&table, "%u", n);
    clv__table_cell(&table, "%s", name.data);
    if (from_source) clv__table_cell(&table, "%s", node->source_op);
    clv__table_cell(&table, "%s%s%s", node->domain, node->domain[0] != '\0' ? "." : "", node->op);
    clv__table_cell(&table, "%s", reads.data);
    clv__table_cell(&table, "%s", writes.data);
    clv__table_cell(&table, "%s", in->shapes->node_folded[n] ? "const" : flops >= 0 ? clv__label_count(flops, label) : "?");
    clv__text_finish(&writes);
    clv__text_finish(&reads);
    clv__text_finish(&name);
  }
  clv__text_append(text, "\n");
  clv__table_write(&table, 0, bold, text);
  clv__table_finish(&table);
}

void clv__inspect_text(const clv_inspection *in, const char *name, bool nodes, bool all_reasons, bool bold, clv__text *text) {
  write_summary(in, name, bold, text);
  write_values(in, "input", in->graph->inputs, in->graph->input_count, bold, text);
  write_values(in, "output", in->graph->outputs, in->graph->output_count, bold, text);
  write_operators(in, bold, text);
  for (uint32_t d = 0; d < in->devices->count; ++d) write_reasons(in, d, all_reasons, text);
  if (nodes) write_nodes(in, bold, text);
}
