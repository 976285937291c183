/* Nodes with bodies (If, Loop, Scan, FlexAttention), which the host iterates and whose nodes run here, with the fast kernels. */
#ifndef CLEAVE_BACKENDS_COMMON_KERNELS_BODIES_H
#define CLEAVE_BACKENDS_COMMON_KERNELS_BODIES_H

#include "cleave/plugin/backend.h"

/* As host->evaluate_node(). A host that is older than evaluate_node_with() runs the nodes itself. */
clv_status clv__fast_evaluate(const clv_host *host, const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs,
                              clv_tensor *outputs, clv_error *error);

/* A clv_run_node_fn: the node's fast kernel. `cookie` is the allocator (const clv_allocator *) of its scratch. */
clv_status clv__fast_run_node(void *cookie, const clv_node_call *node, clv_error *error);

#endif
