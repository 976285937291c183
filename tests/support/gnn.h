/* Random graphs and GNN models, and their expected results, which are computed from the definitions, edge by edge, in double
 * precision. */
#ifndef CLEAVE_TESTS_GNN_H
#define CLEAVE_TESTS_GNN_H

#include "gnn/data/graph.h"
#include "gnn/model/model.h"

/* A graph, and the list of edges that it was made from. */
typedef struct test_gnn {
  uint32_t vertex_count;
  uint64_t edge_count;
  uint32_t *sources, *destinations;
  clv_tensor features;
  clv__gnn_graph *graph;
} test_gnn;

/* Makes a random graph with features in [-1, 1). Half of the edges (one in eight if the graph is large) lead to one hub, one in
 * eight is a self-loop, and one in eight repeats the previous edge. The last fifth of the vertices has no edges. */
void test_gnn_make(test_gnn *gnn, const clv_allocator *allocator, uint32_t vertex_count, uint64_t edge_count,
                   uint32_t feature_count, uint64_t seed);
void test_gnn_finish(test_gnn *gnn);

/* Makes a model whose layers have random widths, heads and activations. */
clv__gnn_model *test_gnn_model(const clv_allocator *allocator, clv__gnn_type type, uint32_t layer_count, uint32_t feature_count,
                               uint64_t seed);

/* Returns the model's results, [vertex_count, width of the last layer]. The caller frees them. */
double *test_gnn_expected(const test_gnn *gnn, const clv__gnn_model *model);
/* Fails the test if any element differs by more than 1e-5 of the largest magnitude in `expected`. The message names the worst
 * element. */
void test_gnn_compare(const double *expected, const float *actual, size_t rows, size_t columns, const char *what);

#endif
