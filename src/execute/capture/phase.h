/* Determines whether a run is a prefill or a decode step of a model that generates, from its attention nodes and types. */
#ifndef CLEAVE_EXECUTE_CAPTURE_PHASE_H
#define CLEAVE_EXECUTE_CAPTURE_PHASE_H

#include "graph/graph.h"

typedef enum clv__phase_kind {
  CLV__PHASE_NONE,    /* no attention with a phase, as in an encoder */
  CLV__PHASE_PREFILL, /* some attention with a phase has several queries, or an unknown number */
  CLV__PHASE_DECODE   /* each such attention has one query (or none) */
} clv__phase_kind;

typedef struct clv__phase {
  clv__phase_kind kind;
  uint32_t attention_count; /* attentions with a phase */
  clv_node_id node;     /* the attention node (in a pattern: the Softmax) with the most queries; CLV__NO_ID if there is none */
  int64_t query_length; /* the number of its queries, or CLV_DIM_UNKNOWN */
} clv__phase;

/* Finds the attentions of a graph that have a phase, and sets `phase`. The following count as attention: ONNX's Attention and
 * similar operators of com.microsoft; ATen's scaled_dot_product_attention; and the pattern that most exporters emit: MatMul of
 * two computed values, then scale, mask and similar operators, Softmax over the last axis, and MatMul with a computed value.
 * Bodies of If, Loop and Scan are not searched.
 *
 * An attention has a phase if its keys or values come from a cache, or if it is causal (attention.h). `types` is by value: the
 * types of the run. */
void clv__phase_read(const clv_graph *graph, const clv_tensor *types, clv__phase *phase);

#endif
