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

#ifdef __cplusplus
}
#endif
#endif
