/* Content hashes of a graph's constants. The graph's own constants (initializers, tensors of Constant nodes) are hashed once,
 * on first request, and kept with the graph. Constants folded outside the graph are hashed every time. */
#ifndef CLEAVE_GRAPH_CONTENT_H
#define CLEAVE_GRAPH_CONTENT_H

#include "graph/graph.h"

/* Hashes the bytes of `count` values that have data in `types` (by value id; NULL: as declared). Strings are hashed with their
 * lengths; dtype and dims are not hashed. Hashes large values in parallel. Callable from any thread. */
clv_status clv__graph_content(const clv_graph *graph, const clv_tensor *types, const clv_value_id *values, size_t count,
                              clv__hash *hashes, clv_error *error);
/* Whether two constants of the same type have the same bytes. Neither is NULL. */
bool clv__content_equal(const clv_tensor *a, const clv_tensor *b);

#endif
