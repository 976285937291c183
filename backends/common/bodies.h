/* Runs nodes with bodies (If, Loop, Scan, FlexAttention). The host evaluates the node and calls back for each node of the body,
 * which a fast kernel runs. */
#ifndef CLEAVE_BACKENDS_COMMON_BODIES_H
#define CLEAVE_BACKENDS_COMMON_BODIES_H

#include "cleave/plugin/backend.h"

/* Like host->evaluate_node(), but runs the nodes of the body with fast kernels. If the host has no evaluate_node_with(), calls
 * evaluate_node(). */
clv_status clv__fast_evaluate(const clv_host *host, const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs,
                              clv_tensor *outputs, clv_error *error);

/* A clv_run_node_fn that runs the node's fast kernel. `cookie` is the allocator (const clv_allocator *) for its scratch. */
clv_status clv__fast_run_node(void *cookie, const clv_node_call *node, clv_error *error);

#endif
