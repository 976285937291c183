/* Runs nodes with bodies (If, Loop, Scan, FlexAttention). The host evaluates the node itself, and calls back for each node of
 * its body. The callback runs that node of the body with its fast kernel. It returns CLV_NOT_SUPPORTED if there is no kernel or
 * the kernel does not accept the call; the host then uses its reference kernel. */
#ifndef CLEAVE_BACKENDS_COMMON_BODIES_H
#define CLEAVE_BACKENDS_COMMON_BODIES_H

#include "base/stop.h"
#include "cleave/plugin/backend.h"

/* Like host->evaluate_node(), but runs the nodes of the body with fast kernels, and returns CLV_CANCELLED early once `stop` is
 * set. `stop` may be NULL. If the host has no evaluate_node_with(), calls evaluate_node() and ignores `stop`. */
clv_status clv__fast_evaluate(const clv_host *host, const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs,
                              clv_tensor *outputs, const clv__stop *stop, clv_error *error);

/* The cookie of the functions that clv__fast_evaluation() returns. */
typedef struct clv__fast_run {
  const clv_allocator *allocator; /* allocates the kernels' scratch */
  const clv__stop *stop;          /* may be NULL */
} clv__fast_run;

/* Returns the functions that host->evaluate_node_with() calls to run the nodes of a body with fast kernels. They read `run`, so
 * it must stay valid until evaluate_node_with() returns. */
clv_evaluation clv__fast_evaluation(clv__fast_run *run);

#endif
