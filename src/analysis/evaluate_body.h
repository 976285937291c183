/* Shared by evaluate.c (a graph runs its nodes) and evaluate_body.c (If, Loop and Scan run a graph). The two files call each
 * other, one level of nesting deeper each time. */
#ifndef CLEAVE_ANALYSIS_EVALUATE_BODY_H
#define CLEAVE_ANALYSIS_EVALUATE_BODY_H

#include "analysis/evaluate.h"
#include "operators/run.h"

/* The depth of an evaluation, and the functions that run its nodes and end it early. */
typedef struct clv__evaluation {
  uint32_t depth;           /* number of enclosing bodies */
  const clv_evaluation *by; /* NULL: the reference loops run the nodes, to the end */
} clv__evaluation;

/* Like clv__graph_evaluate() and clv__node_evaluate(), at the depth and with the functions that `how` gives. */
clv_status clv__graph_evaluate_at(const clv_graph *graph, const clv_tensor *inputs, const clv_tensor *captures,
                                  clv_tensor *outputs, clv__value_fn watch, void *cookie, const clv__evaluation *how,
                                  const clv_allocator *allocator, clv_error *error);
clv_status clv__node_evaluate_at(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, clv_tensor *outputs,
                                 const clv__evaluation *how, const clv_allocator *allocator, clv_error *error);

/* Runs an If, Loop, Scan or FlexAttention node; its bodies run as `how` says. The caller must zero `outputs` before the call.
 * On failure, the caller must free the data of the outputs that have a dtype. */
clv_status clv__body_evaluate(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, clv_tensor *outputs,
                              const clv__evaluation *how, const clv_allocator *allocator, clv_error *error);

/* Runs all iterations of a Loop or Scan node. For Scan of opset 8 it runs those of one sequence, and `inputs` begins after the
 * lengths; clv__scan_evaluate_batched() calls it for each sequence. */
clv_status clv__body_iterate(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, const clv_tensor *captures,
                             clv_tensor *outputs, const clv__evaluation *how, const clv_allocator *allocator, clv_error *error);
clv_status clv__scan_evaluate_batched(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs,
                                      const clv_tensor *captures, clv_tensor *outputs, const clv__evaluation *how,
                                      const clv_allocator *allocator, clv_error *error);
/* Number of inputs of a Scan's body: those of the node, without the lengths that precede them in opset 8. */
uint32_t clv__scan_inputs(const clv__node *node);

/* Like clv__body_evaluate(), for a FlexAttention node (evaluate_flex.c). */
clv_status clv__flex_evaluate(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, clv_tensor *outputs,
                              const clv__evaluation *how, const clv_allocator *allocator, clv_error *error);

/* Runs a node's kernel with how->by->run_node. If that is NULL or does not support the node, runs the reference loops. The
 * operands are as in clv__node_run(). */
clv_status clv__call_evaluate(const char *domain, const clv__kernel_call *call, const clv__evaluation *how,
                              const clv_allocator *allocator);

/* Copies a tensor together with its data. */
clv_status clv__tensor_clone(const clv_tensor *from, clv_tensor *to, const clv_allocator *allocator, clv_error *error);

#endif
