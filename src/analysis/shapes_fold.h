/* Values known at plan time: computing them. */
#ifndef CLEAVE_ANALYSIS_SHAPES_FOLD_H
#define CLEAVE_ANALYSIS_SHAPES_FOLD_H

#include "analysis/shapes.h"

/* Computes node `id` where all it reads is known and its outputs are static and at most `limit_bytes` each: types[output].data is
 * then set, in `arena` or, where a view or a Constant has its bytes already, pointing at those; or, for large constants of one
 * value, in a mapping added to `fills` (NULL: in `arena` too). A node that cannot be computed is left as it is: that is no error,
 * running it will say why. Only memory that is out is one. */
clv_status clv__fold_node(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, size_t limit_bytes, clv__arena *arena,
                          clv__file_map_list **fills, clv_tensor *types, clv_error *error);

/* Makes the integer or bool tensor of `type` from a content of numbers alone. */
clv_status clv__fold_content(const clv__content *content, clv__arena *arena, clv_tensor *type, clv_error *error);

#endif
