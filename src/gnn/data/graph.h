/* GNN graphs: compressed rows by destination, with features and labels. Row v lists the sources of v's in-edges in file order.
 * Multi-edges and self loops are kept. Vertex ids are 32-bit; edge counts are 64-bit. A graph is immutable once constructed. */
#ifndef CLEAVE_GNN_DATA_GRAPH_H
#define CLEAVE_GNN_DATA_GRAPH_H

#include "base/hash.h"
#include "base/tensor/tensor.h"
#include "gnn/data/csr.h"

typedef struct clv__gnn_graph {
  const clv_allocator *allocator;
  clv__csr csr;
  clv_tensor features;                   /* f32 [vertex_count, F]; dtype none: the graph has no features */
  clv_tensor labels;                     /* i64 [vertex_count]; dtype none: the graph has no labels */
  clv__hash hash;                        /* of the structure: vertices, offsets, sources */
  bool borrows_features, borrows_labels; /* another owner outlives this graph: another graph or, for features, the program */
} clv__gnn_graph;

/* Reads a graph. The file's first bytes and its name's ending determine its format:
 * - npz (`edge_index` [2,m]; optional: `x` [n,F], `y` [n], `num_nodes`);
 * - METIS `.graph`, may be gzip-compressed;
 * - a text edge list, one "source destination" per line, `#` and `%` start comments; may be gzip-compressed.
 * Without `x` and `num_nodes`, the largest id determines the vertex count. Memory beyond the CSR is bounded: files are read
 * twice and not kept. Errors: CLV_NOT_FOUND, CLV_IO_ERROR, and CLV_INVALID_MODEL for ids that are negative or out of range,
 * features that are not finite, and shapes that do not match. The message of CLV_INVALID_MODEL names the place (line, edge), the
 * value and the expected value. */
clv_status clv__gnn_graph_read(const clv_allocator *allocator, const char *path, clv__gnn_graph **graph, clv_error *error);
/* Builds a graph from edges in memory, for tests and generators. Edge i goes from `sources[i]` to `destinations[i]`. Copies
 * `features` and `labels` (NULL: none). */
clv_status clv__gnn_graph_make(const clv_allocator *allocator, uint32_t vertex_count, uint64_t edge_count,
                               const uint32_t *sources, const uint32_t *destinations, const clv_tensor *features,
                               const clv_tensor *labels, clv__gnn_graph **graph, clv_error *error);
/* Wraps rows in a graph. Takes ownership of the content of `csr`, `features` and `labels` (NULL: none); on failure, releases
 * it. */
clv_status clv__gnn_graph_wrap(const clv_allocator *allocator, clv__csr *csr, clv_tensor *features, clv_tensor *labels,
                               clv__gnn_graph **graph, clv_error *error);
void clv__gnn_graph_destroy(clv__gnn_graph *graph); /* accepts NULL */

/* Set the graph's features, replacing those that it has. clv__gnn_graph_set_features() takes numbers [vertex_count, F], which
 * must be finite in f32, and copies them unless `borrows`, for which they must be f32; errors are CLV_INVALID_ARGUMENT.
 * clv__gnn_graph_draw_features() draws `count` numbers per vertex from `seed`, uniform in [-1, 1).
 * clv__gnn_graph_read_features() reads an .npy file; errors as in clv__gnn_graph_read(). */
clv_status clv__gnn_graph_set_features(clv__gnn_graph *graph, const clv_tensor *features, bool borrows, clv_error *error);
clv_status clv__gnn_graph_draw_features(clv__gnn_graph *graph, uint32_t count, uint64_t seed, clv_error *error);
clv_status clv__gnn_graph_read_features(clv__gnn_graph *graph, const char *path, clv_error *error);

/* Writes the graph as npz, in the format that clv__gnn_graph_read() reads. Writes the whole file or nothing. */
clv_status clv__gnn_graph_write(const clv__gnn_graph *graph, const char *path, clv_error *error);

/* Generates a graph by the R-MAT model (Chakrabarti, Zhan, Faloutsos 2004) with a, b, c, d = 0.57, 0.19, 0.19, 0.05 as in
 * Graph500. It has 2^scale vertices and edges_per_vertex times as many edges. Ids are shuffled. The `feature_count` features
 * (0: none) are uniform in [-1, 1). The same seed gives the same graph for any number of threads. */
clv_status clv__gnn_graph_generate(const clv_allocator *allocator, uint32_t scale, uint32_t edges_per_vertex,
                                   uint32_t feature_count, uint64_t seed, clv__gnn_graph **graph, clv_error *error);

/* Returns the same graph with exactly one self loop per vertex, at the end of its row. GCN and GAT aggregate over this graph,
 * as in PyTorch Geometric. The result borrows features and labels from `graph`, which must outlive it. */
clv_status clv__gnn_graph_with_loops(const clv__gnn_graph *graph, clv__gnn_graph **looped, clv_error *error);

#endif
