/* What the two drivers (shapes.c over types, evaluate.c over data) share of a single node: its operands, aligned, its arity, and
 * its kernel. */
#ifndef CLEAVE_ANALYSIS_NODE_H
#define CLEAVE_ANALYSIS_NODE_H

#include "graph/graph.h"
#include "operators/infer.h"

/* Nesting of If, Loop and Scan beyond which bodies are neither looked into nor run. */
enum { CLV__MAX_BODY_DEPTH = 32 };

/* The inputs before the captures. */
static inline uint32_t clv__node_explicit_inputs(const clv__node *node) {
  return node->input_count - node->capture_count;
}

/* Copies `inputs` to `aligned`, tensors whose data is not aligned to its element with a copy of the data. `float_limit_bytes`:
 * float tensors that are larger come without data instead of with a copy (inference reads only small ones). */
clv_status clv__operands_align(const clv_tensor *inputs, uint32_t count, size_t float_limit_bytes, clv_tensor *aligned,
                               const clv_allocator *allocator, clv_error *error);
/* Frees the copies. */
void clv__operands_release(const clv_tensor *inputs, uint32_t count, clv_tensor *aligned, const clv_allocator *allocator);

/* An error where the node has not the inputs and outputs that its operator needs, or is of an opset in which the operator was
 * another. */
clv_status clv__node_check(const clv__node *node, const clv__op *op, clv_error *error);

/* Runs the portable kernel of `node` (not If, Loop or Scan) on aligned inputs and typed outputs with data. CLV_NOT_SUPPORTED,
 * with the reason, where there is none. The caller puts the node's name in front of errors. */
clv_status clv__node_run(const clv__node *node, const clv_tensor *inputs, clv_tensor *outputs, const clv_allocator *allocator,
                         clv_error *error);

/* Puts "node 'name' (Op): " in front of what `error` says. */
clv_status clv__node_error(const clv__node *node, clv_status status, clv_error *error);

/* The body that attribute `name` of `node` holds, or NULL. */
const clv_graph *clv__node_body(const clv__node *node, const char *name);

#endif
