/* Looking for things in the graph of a GNN: what the recogniser of layers (onnx.c) asks, and the proof of what it found. */
#ifndef CLEAVE_GNN_MODEL_FIND_H
#define CLEAVE_GNN_MODEL_FIND_H

#include "analysis/shapes.h"
#include "gnn/model/model.h"

typedef struct clv__finder {
  const clv_allocator *allocator;
  const clv_graph *graph;
  clv__shapes *shapes;
  clv_value_id features, edges; /* the two inputs: float [n, F], whole numbers [2, m] */
  bool *of_features;            /* by value: it depends on them */
  clv_error *error;
} clv__finder;

/* Finds the two inputs. CLV_NOT_SUPPORTED where there are others, or more than one output. */
clv_status clv__finder_init(clv__finder *finder, const clv_allocator *allocator, const clv_graph *graph, clv_error *error);
void clv__finder_finish(clv__finder *finder);

/* The node that makes a value, or NULL. */
const clv__node *clv__find_maker(const clv__finder *finder, clv_value_id value);
bool clv__find_is(const clv__node *node, const char *op); /* of ONNX */
/* A value known before the graph runs, or NULL. */
const clv_tensor *clv__find_constant(const clv__finder *finder, clv_value_id value);
bool clv__find_of_features(const clv__finder *finder, clv_value_id value);
/* The value behind nodes that pass it on (Identity, Dropout, Cast); through_shapes: or only shape it. */
clv_value_id clv__find_through(const clv__finder *finder, clv_value_id value);
clv_value_id clv__find_through_shapes(const clv__finder *finder, clv_value_id value);
/* Whether two values are made in the same way of the same ones. `depth` begins with 0. */
bool clv__find_same(const clv__finder *finder, clv_value_id a, clv_value_id b, int depth);

/* CLV_NOT_SUPPORTED: the node (NULL: none) and why. */
clv_status clv__find_refuse(const clv__finder *finder, const clv__node *node, const char *why);

/* That the model computes what the graph does: both are run on a small random graph, node by node with the portable kernels. It
 * has loops, repeated edges and a vertex without any. CLV_NOT_SUPPORTED, with the worst number of both, where they differ. */
clv_status clv__gnn_model_prove(const clv__finder *finder, const clv__gnn_model *model);

#endif
