/* Functions on a single node, for shapes.c (which infers types) and evaluate.c (which computes data): aligned operands, arity and
 * kernel. */
#ifndef CLEAVE_ANALYSIS_NODE_H
#define CLEAVE_ANALYSIS_NODE_H

#include "graph/graph.h"
#include "operators/infer.h"
#include "operators/run.h"

/* Bodies of If, Loop and Scan that are nested deeper than this are neither inspected nor run. */
enum { CLV__MAX_BODY_DEPTH = 32 };

/* Number of inputs before the captures. */
static inline uint32_t clv__node_explicit_inputs(const clv__node *node) {
  return node->input_count - node->capture_count;
}

/* Copies `inputs` to `aligned`. A tensor whose data is not aligned to its element gets an aligned copy of the data. A float
 * tensor that is not aligned and is larger than `float_limit_bytes` gets no data at all, because inference reads only small
 * ones. */
clv_status clv__operands_align(const clv_tensor *inputs, uint32_t count, size_t float_limit_bytes, clv_tensor *aligned,
                               const clv_allocator *allocator, clv_error *error);
/* Frees the copies that clv__operands_align() made. */
void clv__operands_release(const clv_tensor *inputs, uint32_t count, clv_tensor *aligned, const clv_allocator *allocator);

/* An error if the node does not have the inputs and outputs that its operator needs, or if the operator had another meaning in
 * the node's opset. */
clv_status clv__node_check(const clv__node *node, const clv__op *op, clv_error *error);

/* Runs the reference loops of an operator. Returns CLV_NOT_SUPPORTED, with the reason, if there are none for the call. */
clv_status clv__call_run(const char *domain, const clv__kernel_call *call, const clv_allocator *allocator);

/* Runs the reference loops of `node` (not If, Loop or Scan) on aligned inputs and typed outputs with data. Returns
 * CLV_NOT_SUPPORTED, with the reason, if there are none. The caller puts the node's name in front of errors. */
clv_status clv__node_run(const clv__node *node, const clv_tensor *inputs, clv_tensor *outputs, const clv_allocator *allocator,
                         clv_error *error);

/* Prepends "node 'name' (Op): " to the text of `error`. */
clv_status clv__node_error(const clv__node *node, clv_status status, clv_error *error);

/* The body in attribute `name` of `node`, or NULL. */
const clv_graph *clv__node_body(const clv__node *node, const char *name);

#endif
