/* See view.h. */
#include "graph/view.h"

#include <stdlib.h>
#include <string.h>

static int compare_ids(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* Index of `id` in a sorted array, or CLV_NO_VALUE. */
static uint32_t find_id(const uint32_t *sorted, uint32_t count, uint32_t id) {
  uint32_t low = 0, high = count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (sorted[middle] < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count && sorted[low] == id ? low : CLV_NO_VALUE;
}

static const clv_tensor *type_of(const clv_graph *graph, const clv_tensor *types, clv_value_id value) {
  return types != NULL ? &types[value] : &graph->values[value].type;
}

static bool fill_operands(clv_graph_view *view, clv__arena *arena) {
  const clv_graph *graph = view->graph;
  uint64_t total = 0;
  for (uint32_t i = 0; i < view->node_count; ++i) {
    total += graph->nodes[view->nodes[i]].input_count + graph->nodes[view->nodes[i]].output_count;
  }
  uint32_t *offsets = clv__arena_allocate_zero(arena, (size_t)view->node_count + 1, sizeof *offsets);
  uint32_t *operands = clv__arena_allocate_zero(arena, total, sizeof *operands);
  if (offsets == NULL || operands == NULL || total > UINT32_MAX) return false;
  uint32_t at = 0;
  for (uint32_t i = 0; i < view->node_count; ++i) {
    const clv__node *node = &graph->nodes[view->nodes[i]];
    offsets[i] = at;
    for (uint32_t k = 0; k < node->input_count + node->output_count; ++k) {
      clv_value_id id = k < node->input_count ? node->inputs[k] : node->outputs[k - node->input_count];
      operands[at++] = id == CLV__NO_ID                          ? CLV_NO_VALUE
                       : view->value_count == graph->value_count ? id
                                                                 : find_id(view->values, view->value_count, id);
    }
  }
  offsets[view->node_count] = at;
  view->operand_offsets = offsets;
  view->operands = operands;
  return true;
}

clv_status clv__view_create_whole(const clv_graph *graph, const clv_tensor *types, clv__arena *arena, clv_graph_view **out,
                                  clv_error *error) {
  *out = NULL;
  clv_graph_view *view = clv__arena_allocate_zero(arena, 1, sizeof *view);
  clv_node_id *nodes = clv__arena_allocate_zero(arena, graph->node_count, sizeof *nodes);
  clv_value_id *values = clv__arena_allocate_zero(arena, graph->value_count, sizeof *values);
  if (view == NULL || nodes == NULL || values == NULL) return clv__error_memory(error, graph->value_count * sizeof *values);
  for (uint32_t i = 0; i < graph->node_count; ++i) nodes[i] = i;
  for (uint32_t i = 0; i < graph->value_count; ++i) values[i] = i;
  *view = (clv_graph_view){
      .graph = graph,
      .types = types,
      .node_count = graph->node_count,
      .nodes = nodes,
      .value_count = graph->value_count,
      .values = values,
      .input_count = graph->input_count,
      .inputs = graph->inputs,
      .output_count = graph->output_count,
      .outputs = graph->outputs,
  };
  if (!fill_operands(view, arena)) return clv__error_memory(error, graph->node_count * sizeof(uint32_t));
  *out = view;
  return CLV_OK;
}

/* Whether a value produced inside the view is an output of the view: if it is in `kept`, is an output of the graph, or is read by
 * a node outside. */
static bool leaves(const clv_graph_view *view, const bool *kept, clv_value_id value) {
  const clv_graph *graph = view->graph;
  if (graph->values[value].is_output || (kept != NULL && kept[value])) return true;
  for (uint32_t i = graph->use_offsets[value]; i < graph->use_offsets[value + 1]; ++i) {
    if (find_id(view->nodes, view->node_count, graph->use_nodes[i]) == CLV_NO_VALUE) return true;
  }
  return false;
}

static bool collect_values(clv_graph_view *view, clv__arena *arena) {
  const clv_graph *graph = view->graph;
  uint64_t total = 0;
  for (uint32_t i = 0; i < view->node_count; ++i) {
    total += graph->nodes[view->nodes[i]].input_count + graph->nodes[view->nodes[i]].output_count;
  }
  uint32_t *values = clv__arena_allocate_zero(arena, total, sizeof *values);
  if (values == NULL) return false;
  size_t count = 0;
  for (uint32_t i = 0; i < view->node_count; ++i) {
    const clv__node *node = &graph->nodes[view->nodes[i]];
    for (uint32_t k = 0; k < node->input_count; ++k) {
      if (node->inputs[k] != CLV__NO_ID) values[count++] = node->inputs[k];
    }
    for (uint32_t k = 0; k < node->output_count; ++k) {
      if (node->outputs[k] != CLV__NO_ID) values[count++] = node->outputs[k];
    }
  }
  qsort(values, count, sizeof *values, compare_ids);
  uint32_t unique = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i == 0 || values[i] != values[i - 1]) values[unique++] = values[i];
  }
  view->values = values;
  view->value_count = unique;
  return true;
}

clv_status clv__view_create(const clv_graph *graph, const clv_tensor *types, const clv_node_id *nodes, uint32_t node_count,
                            const bool *kept, clv__arena *arena, clv_graph_view **out, clv_error *error) {
  *out = NULL;
  clv_graph_view *view = clv__arena_allocate_zero(arena, 1, sizeof *view);
  if (view == NULL) return clv__error_memory(error, sizeof *view);
  view->graph = graph;
  view->types = types;
  view->node_count = node_count;
  view->nodes = clv__arena_copy(arena, nodes, node_count * sizeof *nodes);
  uint32_t *inputs = NULL, *outputs = NULL;
  if (view->nodes != NULL && collect_values(view, arena)) {
    inputs = clv__arena_allocate_zero(arena, view->value_count, sizeof *inputs);
    outputs = clv__arena_allocate_zero(arena, view->value_count, sizeof *outputs);
  }
  if (inputs == NULL || outputs == NULL) return clv__error_memory(error, node_count * sizeof *nodes);
  for (uint32_t v = 0; v < view->value_count; ++v) {
    clv_value_id id = view->values[v];
    clv_node_id producer = graph->values[id].producer;
    bool inside = producer != CLV__NO_ID && find_id(view->nodes, node_count, producer) != CLV_NO_VALUE;
    if (clv__value_is_constant(graph, types, id)) continue; /* its readers have its bytes: it is neither an input nor an output */
    if (!inside) inputs[view->input_count++] = v;
    if (inside && leaves(view, kept, id)) outputs[view->output_count++] = v;
  }
  view->inputs = inputs;
  view->outputs = outputs;
  if (!fill_operands(view, arena)) return clv__error_memory(error, node_count * sizeof *nodes);
  *out = view;
  return CLV_OK;
}

/* ---- The accessors of the plugin ABI ---- */

static uint32_t graph_node_count(const clv_graph_view *graph) {
  return graph->node_count;
}
static uint32_t graph_value_count(const clv_graph_view *graph) {
  return graph->value_count;
}
static uint32_t graph_input_count(const clv_graph_view *graph) {
  return graph->input_count;
}
static uint32_t graph_output_count(const clv_graph_view *graph) {
  return graph->output_count;
}
static uint32_t graph_input(const clv_graph_view *graph, uint32_t index) {
  return graph->inputs[index];
}
static uint32_t graph_output(const clv_graph_view *graph, uint32_t index) {
  return graph->outputs[index];
}

static void graph_node(const clv_graph_view *graph, uint32_t index, clv_node_info *info) {
  const clv__node *node = clv__view_node(graph, index);
  const uint32_t *operands = graph->operands + graph->operand_offsets[index];
  uint32_t struct_size = info->struct_size;
  const clv_node_info filled = {
      .struct_size = struct_size,
      .opset = node->opset,
      .name = node->name,
      .op = node->op,
      .domain = node->domain,
      .input_count = node->input_count,
      .output_count = node->output_count,
      .attribute_count = node->attributes.count,
      .capture_count = node->capture_count,
      .inputs = operands,
      .outputs = operands + node->input_count,
      .attributes = node->attributes.items,
  };
  memcpy(info, &filled, struct_size < sizeof filled ? struct_size : sizeof filled);
}

static void graph_value(const clv_graph_view *graph, uint32_t value, clv_value_info *info) {
  clv_value_id id = graph->values[value];
  const clv__value *source = &graph->graph->values[id];
  bool constant = clv__value_is_constant(graph->graph, graph->types, id);
  uint32_t struct_size = info->struct_size;
  bool whole = graph->inputs == graph->graph->inputs; /* its inputs and outputs are not sorted, so find_id() cannot search them */
  clv_value_info filled = {
      .struct_size = struct_size,
      .is_input = !constant && (whole ? source->is_input : find_id(graph->inputs, graph->input_count, value) != CLV_NO_VALUE),
      .is_output = whole ? source->is_output : find_id(graph->outputs, graph->output_count, value) != CLV_NO_VALUE,
      .name = source->name,
      .type = *type_of(graph->graph, graph->types, id),
      .is_constant = constant,
      .is_streamed = clv__view_streams(graph, value),
  };
  if (!constant) filled.type.data = NULL;
  memcpy(info, &filled, struct_size < sizeof filled ? struct_size : sizeof filled);
}

static const char *graph_symbol_name(const clv_graph_view *graph, uint32_t symbol) {
  return clv__graph_symbol_name(graph->graph, symbol);
}

void clv__view_fill_host(clv_host *host) {
  host->graph_node_count = graph_node_count;
  host->graph_value_count = graph_value_count;
  host->graph_input_count = graph_input_count;
  host->graph_output_count = graph_output_count;
  host->graph_input = graph_input;
  host->graph_output = graph_output;
  host->graph_node = graph_node;
  host->graph_value = graph_value;
  host->graph_symbol_name = graph_symbol_name;
}
