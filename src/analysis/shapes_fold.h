/* Computes the values known at plan time. */
#ifndef CLEAVE_ANALYSIS_SHAPES_FOLD_H
#define CLEAVE_ANALYSIS_SHAPES_FOLD_H

#include "analysis/shapes.h"

/* The memory and work that folding may still use. The limit keeps a small model from making planning slow or large. */
typedef struct clv__fold_budget {
  size_t bytes;      /* for computed values, and for temporary values in bodies */
  double operations; /* FLOPs of the reference loops, plus the bytes that they read and write */
} clv__fold_budget;

/* Returns the budget of a graph: 64 MiB (or graph->fold_bytes) and 10^9 operations, plus four bytes and a hundred operations for
 * each byte of its weights. `graph` NULL: the budget of a graph without weights. */
clv__fold_budget clv__fold_budget_of(const clv_graph *graph);

/* Whether the value is in one of the mappings `fills` and larger than what is left of the budget. If so, planning must not read
 * its data, because every page that is read counts as memory of the process. */
bool clv__fold_is_too_large(const clv_tensor *value, const clv__file_map_list *fills, const clv__fold_budget *budget);

/* Computes node `id` if all its inputs are known, its outputs are static and at most `limit_bytes` each, and its cost is within
 * the budget, which it reduces. Then sets types[output].data. The data is in `arena`, unless the bytes exist already (the input
 * of a view, the tensor of a Constant): then `data` points to these bytes. A large constant that repeats one element goes into a
 * mapping that is added to `fills` (NULL: into `arena` too). A node that cannot be computed is left unchanged. That is not an
 * error, since running the node will report the reason. Only running out of memory is an error. */
clv_status clv__fold_node(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, size_t limit_bytes,
                          clv__fold_budget *budget, clv__arena *arena, clv__file_map_list **fills, clv_tensor *types,
                          clv_error *error);

/* Creates the integer or bool tensor of `type` from a content that holds only numbers. */
clv_status clv__fold_content(const clv__content *content, clv__arena *arena, clv_tensor *type, clv_error *error);

#endif
