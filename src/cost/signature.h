/* The signature of a node: two nodes with equal signatures cost the same. It contains the operator, dtypes, shapes, which
 * inputs are constants, and attributes, as readable text. */
#ifndef CLEAVE_COST_SIGNATURE_H
#define CLEAVE_COST_SIGNATURE_H

#include "base/text.h"
#include "graph/view.h"
#include "operators/infer.h"

/* `Conv(f32[1,3,224,224],f32[64,3,7,7]*)>f32[1,64,112,112]{pads=3,3,3,3;strides=2,2}`: a star marks a constant. Replaces the
 * content of `text`; sets text->failed if out of memory. `whole` is a view of all nodes (clv__view_create_whole). */
void clv__signature_write(const clv_graph_view *whole, clv_node_id node, clv__text *text);

/* Whether every operand has a known shape and a known dtype other than string. Only such a node can be measured, and one
 * measurement is valid for all nodes with its signature. */
bool clv__signature_is_static(const clv_graph_view *whole, clv_node_id node);

/* Extracts the operator and the dtype of its first operand: "Conv f32". Truncates the text to `room` bytes. */
void clv__signature_family(const char *signature, char *family, size_t room);

/* Computes a node's FLOPs and bytes; 0 for unknown shapes and for views. False if out of memory. */
bool clv__node_work(const clv_graph_view *whole, clv_node_id node, clv__work *work);
/* Whether the operator only views its input: output 0 has the bytes of input 0. */
bool clv__node_is_view(const clv__node *node);
/* The node that produces input `input` at run time. CLV__NO_ID if the input is a graph input, a constant, absent, or the same
 * value as an earlier input of the node. */
clv_node_id clv__node_producer(const clv_graph_view *whole, clv_node_id node, uint32_t input);
/* Bytes of a value; 0 if unknown. */
double clv__value_bytes(const clv_graph_view *whole, clv_value_id value);

#endif
