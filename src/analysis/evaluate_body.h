/* Between evaluate.c (a graph runs its nodes) and evaluate_body.c (If, Loop and Scan run a graph): the two call each other, one
 * level deeper each time. */
#ifndef CLEAVE_ANALYSIS_EVALUATE_BODY_H
#define CLEAVE_ANALYSIS_EVALUATE_BODY_H

#include "analysis/evaluate.h"
#include "operators/run.h"

/* Where an evaluation is, and who runs its nodes. */
typedef struct clv__evaluation {
  uint32_t depth;           /* bodies around it */
  clv_run_node_fn run_node; /* NULL: the reference loops */
  void *cookie;
} clv__evaluation;

/* As clv__graph_evaluate() and clv__node_evaluate(), within `how`. */
clv_status clv__graph_evaluate_at(const clv_graph *graph, const clv_tensor *inputs, const clv_tensor *captures,
                                  clv_tensor *outputs, clv__value_fn watch, void *cookie, const clv__evaluation *how,
                                  const clv_allocator *allocator, clv_error *error);
clv_status clv__node_evaluate_at(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, clv_tensor *outputs,
                                 const clv__evaluation *how, const clv_allocator *allocator, clv_error *error);

/* Runs an If, Loop, Scan or FlexAttention node, whose bodies are those of `how`. `outputs` come in zeroed; on failure those that
 * have a dtype hold data for the caller to free. */
clv_status clv__body_evaluate(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, clv_tensor *outputs,
                              const clv__evaluation *how, const clv_allocator *allocator, clv_error *error);

/* Runs a Loop or Scan node once; Scan of opset 8 over one sequence (evaluate_batched.c runs it over all), whose inputs are those
 * behind the lengths. */
clv_status clv__body_iterate(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, const clv_tensor *captures,
                             clv_tensor *outputs, const clv__evaluation *how, const clv_allocator *allocator, clv_error *error);
clv_status clv__scan_evaluate_batched(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs,
                                      const clv_tensor *captures, clv_tensor *outputs, const clv__evaluation *how,
                                      const clv_allocator *allocator, clv_error *error);
/* Inputs of a Scan's body: those of the node, in opset 8 without the lengths before them. */
uint32_t clv__scan_inputs(const clv__node *node);

/* As clv__body_evaluate(), of a FlexAttention node (evaluate_flex.c). */
clv_status clv__flex_evaluate(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, clv_tensor *outputs,
                              const clv__evaluation *how, const clv_allocator *allocator, clv_error *error);

/* Runs a node's kernel: by how->run_node, or, where that is NULL or does not support it, by the reference loops. Operands as
 * clv__node_run() has them. */
clv_status clv__call_evaluate(const char *domain, const clv__kernel_call *call, const clv__evaluation *how,
                              const clv_allocator *allocator);

/* A copy with data of its own. */
clv_status clv__tensor_clone(const clv_tensor *from, clv_tensor *to, const clv_allocator *allocator, clv_error *error);

#endif
