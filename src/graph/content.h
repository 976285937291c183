/* Content hashes of a graph's constants. Those that are the graph's own (initializers, tensors of Constant nodes) are hashed
 * once, when first asked for, and remembered with the graph; what was folded beside it is hashed every time. */
#ifndef CLEAVE_GRAPH_CONTENT_H
#define CLEAVE_GRAPH_CONTENT_H

#include "graph/graph.h"

/* Hashes of the bytes (strings: with their lengths; never of dtype or dims) of `count` values, which have data in `types` (by
 * value id; NULL: as declared). Large ones in parallel. Any thread. */
clv_status clv__graph_content(const clv_graph *graph, const clv_tensor *types, const clv_value_id *values, size_t count,
                              clv__hash *hashes, clv_error *error);
/* Whether two constants of the same type hold the same bytes. Neither is NULL. */
bool clv__content_equal(const clv_tensor *a, const clv_tensor *b);

#endif
