/* Views: any subset of a graph's nodes as a graph of its own. Backends see partitions as views. The graph accessors of the
 * plugin ABI (clv_host) are implemented here. */
#ifndef CLEAVE_GRAPH_VIEW_H
#define CLEAVE_GRAPH_VIEW_H

#include "cleave/plugin/backend.h"
#include "graph/graph.h"

struct clv_graph_view {
  const clv_graph *graph;
  const clv_tensor *types; /* by value id of the graph; NULL: as declared. See clv__value_is_constant() */
  /* Like `types`, but with the data of the streamed weights, which a device gets as inputs of each run. NULL: no weight is
   * streamed. */
  const clv_tensor *unstreamed;
  const clv__file_map_list *fills; /* file mappings that hold some of the constants in `types`; may be NULL */
  uint32_t node_count;
  const clv_node_id *nodes; /* view node -> graph node */
  uint32_t value_count;
  const clv_value_id *values; /* view value -> graph value */
  uint32_t input_count;
  const uint32_t *inputs; /* view values, ascending by graph value id */
  uint32_t output_count;
  const uint32_t *outputs;
  const uint32_t *operand_offsets; /* operands of view node i start at operands[operand_offsets[i]]: inputs, then outputs */
  const uint32_t *operands;        /* view values or CLV_NO_VALUE */
};

/* Creates a view of `nodes` in `arena`. The nodes are ascending and therefore topologically ordered. The inputs are the values
 * read that are neither produced inside nor constant. The outputs are the values produced inside that are read outside, are
 * outputs of the graph, or are `kept` (by value id; may be NULL). `types` must outlive the view. */
clv_status clv__view_create(const clv_graph *graph, const clv_tensor *types, const clv_node_id *nodes, uint32_t node_count,
                            const bool *kept, clv__arena *arena, clv_graph_view **view, clv_error *error);

/* A view of a whole graph. Inputs and outputs are those of the graph, in its order, whether used or not. */
clv_status clv__view_create_whole(const clv_graph *graph, const clv_tensor *types, clv__arena *arena, clv_graph_view **view,
                                  clv_error *error);

/* Sets the graph accessors of `host`. */
void clv__view_fill_host(clv_host *host);

static inline const clv__node *clv__view_node(const clv_graph_view *view, uint32_t node) {
  return &view->graph->nodes[view->nodes[node]];
}
static inline const clv_tensor *clv__view_type(const clv_graph_view *view, uint32_t value) {
  clv_value_id id = view->values[value];
  return view->types != NULL ? &view->types[id] : &view->graph->values[id].type;
}
/* Whether the value is a weight that is streamed: an input of the view, although it is known before the graph runs. */
static inline bool clv__view_streams(const clv_graph_view *view, uint32_t value) {
  clv_value_id id = view->values[value];
  return view->unstreamed != NULL && clv__value_is_constant(view->graph, view->unstreamed, id) &&
         !clv__value_is_constant(view->graph, view->types, id);
}
/* The number of inputs that a device's max_partition_inputs limits: those that are not streamed. */
static inline uint32_t clv__view_limited_inputs(const clv_graph_view *view) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < view->input_count; ++i) count += !clv__view_streams(view, view->inputs[i]);
  return count;
}

#endif
