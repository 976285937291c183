/* Asking a graph about sizes and names. Unstable: may change until 1.0. Any thread may call these functions. */
#ifndef CLEAVE_GRAPH_CONTENTS_H
#define CLEAVE_GRAPH_CONTENTS_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Checks sizes as clv_plan_make() does: that each names an input or a symbolic dimension, and agrees with the graph's
 * declarations and with the other sizes. Errors: CLV_NOT_FOUND for an unknown name; CLV_INVALID_ARGUMENT, with the size and what
 * it contradicts; CLV_OUT_OF_MEMORY. */
CLV_API CLV_MUST_USE clv_status clv_graph_check_sizes(const clv_graph *graph, const clv_size *sizes, uint32_t count,
                                                      clv_error *error);

/* Counts the nodes that a pin with this pattern (clv_plan_options.pins) would assign or, with `of_operators`, a force. */
CLV_API uint32_t clv_graph_count_matches(const clv_graph *graph, const char *pattern, bool of_operators);

/* The names of a node. Strings are valid as long as the graph. */
typedef struct clv_graph_node_info {
  uint32_t struct_size;
  const char *name; /* never empty: `Op#index` if the model has no name for the node, or repeats it */
  const char *op;
  const char *domain;      /* "" is the ONNX domain */
  const char *source_name; /* in a model that is not ONNX; "": the same as above */
  const char *source_op;
} clv_graph_node_info;
CLV_API uint32_t clv_graph_node_count(const clv_graph *graph);
/* Fill as many bytes of `info` as its struct_size says. Return false, and fill it with zeros, for an index beyond the count. */
CLV_API bool clv_graph_node(const clv_graph *graph, uint32_t index, clv_graph_node_info *info);

typedef struct clv_graph_value_info {
  uint32_t struct_size;
  bool is_constant; /* an initializer, also one whose bytes are missing, or an input with a default */
  const char *name; /* "": none */
} clv_graph_value_info;
CLV_API uint32_t clv_graph_value_count(const clv_graph *graph);
CLV_API bool clv_graph_value(const clv_graph *graph, uint32_t index, clv_graph_value_info *info);

#ifdef __cplusplus
}
#endif
#endif
