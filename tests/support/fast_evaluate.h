/* Runs a graph node by node with the fast kernels. A device that uses these kernels must give bit for bit the results of this
 * function, regardless of the order of nodes, the memory layout and the partitions. The kernels themselves are compared with
 * the reference loops elsewhere (tests/operators, --verify). */
#ifndef CLEAVE_TESTS_FAST_EVALUATE_H
#define CLEAVE_TESTS_FAST_EVALUATE_H

#include "analysis/evaluate.h"
#include "backends/common/bodies.h"

static inline clv_status evaluate_fast(const clv_graph *graph, const clv_tensor *inputs, clv_tensor *outputs, clv__value_fn watch,
                                       void *cookie, const clv_allocator *allocator, clv_error *error) {
  clv__fast_run run = {allocator, NULL};
  const clv_evaluation how = clv__fast_evaluation(&run);
  return clv__graph_evaluate_with(graph, inputs, NULL, outputs, watch, cookie, &how, allocator, error);
}

#endif
