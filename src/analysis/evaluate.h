/* The reference evaluator. It runs one node, or a whole graph node by node, with the reference loops. Devices are checked against
 * it. It also folds constants and runs bodies.
 *
 * circle-ok: shapes.h and evaluate.h depend on each other. Inferring a graph computes the values that are known at plan time, and
 * computing a node first infers its outputs. */
#ifndef CLEAVE_ANALYSIS_EVALUATE_H
#define CLEAVE_ANALYSIS_EVALUATE_H

#include "graph/view.h"

/* Runs one node. `inputs` (captures last) may be unaligned; an absent input has dtype CLV_DTYPE_NONE. On success `outputs[i]`
 * is typed, and its data is from `allocator`; the caller releases the data. An output that the node omits gets dtype
 * CLV_DTYPE_NONE. On failure all `outputs` are zero. */
clv_status clv__node_evaluate(const clv_graph *graph, clv_node_id node, const clv_tensor *inputs, clv_tensor *outputs,
                              const clv_allocator *allocator, clv_error *error);

/* Like clv__node_evaluate(), but nodes run, and the evaluation may be stopped, as `how` says. `how` NULL: the reference loops
 * run the node to its end. */
clv_status clv__node_evaluate_with(const clv_graph *graph, clv_node_id node, const clv_tensor *inputs, clv_tensor *outputs,
                                   const clv_evaluation *how, const clv_allocator *allocator, clv_error *error);

/* Called with every value as soon as it exists. The tensor is valid only during the call. */
typedef clv_status (*clv__value_fn)(void *cookie, clv_value_id value, const clv_tensor *tensor, clv_error *error);

/* Runs a graph. `inputs` are in the order of graph->inputs; an absent input takes its initializer. `captures` are in the order of
 * the node's captures (NULL for a model). `outputs` are as for clv__node_evaluate(), in the order of graph->outputs.
 * `watch` may be NULL. */
clv_status clv__graph_evaluate(const clv_graph *graph, const clv_tensor *inputs, const clv_tensor *captures, clv_tensor *outputs,
                               clv__value_fn watch, void *cookie, const clv_allocator *allocator, clv_error *error);

/* Like clv__graph_evaluate(), but nodes run, and the evaluation may be stopped, as `how` says. `how` NULL: the reference loops
 * run all nodes to the end. */
clv_status clv__graph_evaluate_with(const clv_graph *graph, const clv_tensor *inputs, const clv_tensor *captures,
                                    clv_tensor *outputs, clv__value_fn watch, void *cookie, const clv_evaluation *how,
                                    const clv_allocator *allocator, clv_error *error);

/* Runs part of a graph. `inputs` and `outputs` are in the order of the view's inputs and outputs. A value is a constant if the
 * view's type of the value has data. */
clv_status clv__view_evaluate(const clv_graph_view *view, const clv_tensor *inputs, clv_tensor *outputs,
                              const clv_allocator *allocator, clv_error *error);
/* Whether every operator in the view is in the operator table. Operators outside the table (those of ATen or of another domain)
 * are known only to devices. */
bool clv__view_is_known(const clv_graph_view *view);

#endif
