/* Graphs of GNNs: compressed rows by destination, with features and labels. Row v lists the sources of v's in-edges, in the order
 * of the file; multi-edges and self loops stay. Vertices are 32-bit, edges are counted in 64 bits. A graph is immutable once
 * made. */
#ifndef CLEAVE_GNN_DATA_GRAPH_H
#define CLEAVE_GNN_DATA_GRAPH_H

#include "base/hash.h"
#include "base/tensor/tensor.h"
#include "gnn/data/csr.h"

typedef struct clv__gnn_graph {
  const clv_allocator *allocator;
  clv__csr csr;
  clv_tensor features; /* f32 [vertex_count, F]; no dtype: none */
  clv_tensor labels;   /* i64 [vertex_count]; no dtype: none */
  clv__hash hash;      /* of the structure: vertices, offsets, sources */
  bool borrows;        /* features and labels are another graph's, which outlives this one */
} clv__gnn_graph;

/* Reads a graph by what its file is: npz (`edge_index` [2,m], optionally `x` [n,F], `y` [n], `num_nodes`), METIS `.graph`, or a
 * text list of edges ("source destination" a line, `#` and `%` begin comments; either may be gzip). Without `x` and `num_nodes`
 * the vertices are as many as the largest id says. Memory beside the CSR is bounded: files are read twice, not kept. Errors:
 * CLV_NOT_FOUND, CLV_IO_ERROR, CLV_INVALID_MODEL with the place (line, edge), the value and what it should be: ids out of range
 * or negative, features that are not finite, shapes that do not fit. */
clv_status clv__gnn_graph_read(const clv_allocator *allocator, const char *path, clv__gnn_graph **graph, clv_error *error);
/* From edges in memory, for tests and generators: `sources[i]` to `destinations[i]`. `features` and `labels` (NULL: none) are
 * copied. */
clv_status clv__gnn_graph_make(const clv_allocator *allocator, uint32_t vertex_count, uint64_t edge_count,
                               const uint32_t *sources, const uint32_t *destinations, const clv_tensor *features,
                               const clv_tensor *labels, clv__gnn_graph **graph, clv_error *error);
/* A graph around rows, which become its own whatever this comes to; features and labels too (NULL: none). */
clv_status clv__gnn_graph_wrap(const clv_allocator *allocator, clv__csr *csr, clv_tensor *features, clv_tensor *labels,
                               clv__gnn_graph **graph, clv_error *error);
void clv__gnn_graph_destroy(clv__gnn_graph *graph); /* accepts NULL */

/* Writes npz, as it is read above. Whole or not at all. */
clv_status clv__gnn_graph_write(const clv__gnn_graph *graph, const char *path, clv_error *error);

/* A graph by the R-MAT model (Chakrabarti, Zhan, Faloutsos 2004; a, b, c, d = 0.57, 0.19, 0.19, 0.05 as in Graph500): 2^scale
 * vertices, edges_per_vertex times as many edges, ids shuffled, features of `feature_count` (0: none) uniform in [-1, 1). The
 * same seed gives the same graph, whatever the number of threads. */
clv_status clv__gnn_graph_generate(const clv_allocator *allocator, uint32_t scale, uint32_t edges_per_vertex,
                                   uint32_t feature_count, uint64_t seed, clv__gnn_graph **graph, clv_error *error);

/* The same graph with exactly one edge v -> v, at the end of each row: what GCN and GAT aggregate over, as PyTorch Geometric has
 * them. Features and labels are the first graph's, which must outlive this one. */
clv_status clv__gnn_graph_with_loops(const clv__gnn_graph *graph, clv__gnn_graph **looped, clv_error *error);

#endif
