/* What makes two nodes cost the same: operator, dtypes, shapes, which inputs are constants, attributes; as a readable text. */
#ifndef CLEAVE_COST_SIGNATURE_H
#define CLEAVE_COST_SIGNATURE_H

#include "base/text.h"
#include "graph/view.h"
#include "operators/infer.h"

/* `Conv(f32[1,3,224,224],f32[64,3,7,7]*)>f32[1,64,112,112]{pads=3,3,3,3;strides=2,2}`: a star is a constant. Replaces what is in
 * `text`; text->failed when memory is out. `whole` is a view of all nodes (clv__view_create_whole). */
void clv__signature_write(const clv_graph_view *whole, clv_node_id node, clv__text *text);

/* Whether every operand has a known dtype (no strings) and shape, so that the node can be measured, and measured once for all. */
bool clv__signature_is_static(const clv_graph_view *whole, clv_node_id node);

/* Operator and the dtype of the first operand: "Conv f32". Cut where `room` ends. */
void clv__signature_family(const char *signature, char *family, size_t room);

/* FLOPs and bytes; zero where shapes are not known, and for views. False when memory is out. */
bool clv__node_work(const clv_graph_view *whole, clv_node_id node, clv__work *work);
/* Output 0 has the bytes of input 0. */
bool clv__node_is_view(const clv__node *node);
/* The node that makes what input `input` reads while running, or CLV__NO_ID: inputs of the graph, constants, absent ones, and
 * what an earlier input of the node reads too. */
clv_node_id clv__node_producer(const clv_graph_view *whole, clv_node_id node, uint32_t input);
/* Bytes of a value; 0 where they are not known. */
double clv__value_bytes(const clv_graph_view *whole, clv_value_id value);

#endif
