/* The reference evaluator: a node, or a whole graph, node after node with the portable kernels. It is what devices are checked
 * against, what folds constants, and what runs bodies.
 *
 * circle-ok: to infer a graph is to compute what is known of it, to compute a node is to infer its outputs first, and bodies nest
 * both; shapes.h and evaluate.h are the two halves of one recursion. */
#ifndef CLEAVE_ANALYSIS_EVALUATE_H
#define CLEAVE_ANALYSIS_EVALUATE_H

#include "graph/view.h"

/* Runs one node. `inputs` (captures last) may be unaligned; absent ones have dtype CLV_DTYPE_NONE. `outputs[i]` comes back typed
 * with data allocated with `allocator`, owned by the caller; an output that the node leaves out gets dtype CLV_DTYPE_NONE. */
clv_status clv__node_evaluate(const clv_graph *graph, clv_node_id node, const clv_tensor *inputs, clv_tensor *outputs,
                              const clv_allocator *allocator, clv_error *error);

/* Called with every value as soon as it exists; the tensor is only valid in the call. */
typedef clv_status (*clv__value_fn)(void *cookie, clv_value_id value, const clv_tensor *tensor, clv_error *error);

/* Runs a graph. `inputs` in the order of graph->inputs (an absent one takes its initializer), `captures` in the order of the
 * node's captures (NULL for a model). `outputs` as above. `watch` may be NULL. */
clv_status clv__graph_evaluate(const clv_graph *graph, const clv_tensor *inputs, const clv_tensor *captures, clv_tensor *outputs,
                               clv__value_fn watch, void *cookie, const clv_allocator *allocator, clv_error *error);

/* Runs a part of a graph: `inputs` and `outputs` in the order of the view's; constants are those of its types. */
clv_status clv__view_evaluate(const clv_graph_view *view, const clv_tensor *inputs, clv_tensor *outputs,
                              const clv_allocator *allocator, clv_error *error);
/* Whether every operator of it is one of the table: others only devices know (ATen's, another domain's). */
bool clv__view_is_known(const clv_graph_view *view);

#endif
