/* Random graphs and GNN models, and their expected results: sums in double, edge by edge, by the definitions. */
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

/* Half of the edges (of large graphs one in eight) lead to one hub, one in eight is a loop, one in eight repeats the one before;
 * the last fifth of the vertices has no edge. Features in [-1, 1). */
void test_gnn_make(test_gnn *gnn, const clv_allocator *allocator, uint32_t vertex_count, uint64_t edge_count,
                   uint32_t feature_count, uint64_t seed);
void test_gnn_finish(test_gnn *gnn);

/* Layers of random widths, heads and activations. */
clv__gnn_model *test_gnn_model(const clv_allocator *allocator, clv__gnn_type type, uint32_t layer_count, uint32_t feature_count,
                               uint64_t seed);

/* [vertex_count, width of the last layer], to be freed. */
double *test_gnn_expected(const test_gnn *gnn, const clv__gnn_model *model);
/* Fails the test, naming the worst element, if one differs by more than 1e-5 of the largest value of `expected`. */
void test_gnn_compare(const double *expected, const float *actual, size_t rows, size_t columns, const char *what);

#endif
