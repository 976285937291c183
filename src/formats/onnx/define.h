/* Writes the bodies of Cleave's own operators (operators/body.h), as functions or in place of a node. */
#ifndef CLEAVE_FORMATS_ONNX_DEFINE_H
#define CLEAVE_FORMATS_ONNX_DEFINE_H

#include "base/text.h"
#include "graph/graph.h"
#include "operators/body.h"

/* Returns the body of a node, or NULL if it has none for the opset of ai.onnx that the graph imports. */
const clv__body *clv__onnx_body(const clv_graph *graph, const clv__node *node);

/* Writes a body as field MODEL_FUNCTIONS. */
void clv__onnx_write_function(clv__text *out, const clv_graph *graph, const clv__body *body);

/* If the node does not state the attribute that its body refers to, writes this attribute with its default value as a field of
 * the call. Functions declare their defaults, but the reference evaluator of onnx ignores them. */
void clv__onnx_write_default(clv__text *out, const clv__node *node, const clv__body *body);

/* Writes the nodes of a body as fields GRAPH_NODE, instead of a node whose body it is. The values between them get the name of
 * the node's output as a prefix. */
void clv__onnx_write_expanded(clv__text *out, const clv_graph *graph, const clv__node *node, const clv__body *body);

#endif
