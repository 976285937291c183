/* Searches the graph of a GNN. The layer recogniser (onnx.c) uses these functions. This header also declares the proof of a
 * recognised model (prove.c). */
#ifndef CLEAVE_GNN_MODEL_FIND_H
#define CLEAVE_GNN_MODEL_FIND_H

#include "analysis/shapes.h"
#include "gnn/model/model.h"

typedef struct clv__finder {
  const clv_allocator *allocator;
  const clv_graph *graph;
  clv__shapes *shapes;
  clv_value_id features, edges; /* the two inputs: float [n, F], integer [2, m] */
  bool *of_features;            /* indexed by value: whether it depends on the features */
  clv_error *error;
} clv__finder;

/* Finds the two inputs. Returns CLV_NOT_SUPPORTED if there are other inputs, or more than one output. */
clv_status clv__finder_init(clv__finder *finder, const clv_allocator *allocator, const clv_graph *graph, clv_error *error);
void clv__finder_finish(clv__finder *finder);

/* Returns the node that produces a value, or NULL. */
const clv__node *clv__find_maker(const clv__finder *finder, clv_value_id value);
bool clv__find_is(const clv__node *node, const char *op); /* an operator of ONNX's domain */
/* Returns the tensor of a value that is known before the graph runs, or NULL. */
const clv_tensor *clv__find_constant(const clv__finder *finder, clv_value_id value);
bool clv__find_of_features(const clv__finder *finder, clv_value_id value);
/* Follows a value back through nodes that pass it on unchanged (Identity, Dropout, Cast). The through_shapes variant also
 * follows nodes that only reshape it. */
clv_value_id clv__find_through(const clv__finder *finder, clv_value_id value);
clv_value_id clv__find_through_shapes(const clv__finder *finder, clv_value_id value);
/* Returns whether `a` and `b` are computed by the same operations from the same values. Start with `depth` 0. */
bool clv__find_same(const clv__finder *finder, clv_value_id a, clv_value_id b, int depth);

/* Returns CLV_NOT_SUPPORTED with a message that names the node (NULL: none) and the cause. */
clv_status clv__find_refuse(const clv__finder *finder, const clv__node *node, const char *why);

/* Checks that the model computes what the graph computes. Runs both on one random graph, node by node with the reference loops.
 * The random graph has the sizes that the model was exported for, or else is small. It has a self loop, repeated edges and (if
 * it has more than two vertices) a vertex without edges. If the results differ, returns CLV_NOT_SUPPORTED with the worst pair
 * of numbers. */
clv_status clv__gnn_model_prove(const clv__finder *finder, const clv__gnn_model *model);

#endif
