/* METIS, kept apart: what it is asked, and what comes back. */
#ifndef CLEAVE_GNN_DATA_METIS_H
#define CLEAVE_GNN_DATA_METIS_H

#include "gnn/data/graph.h"

/* An undirected graph as METIS takes it: no loops, no edge twice. */
typedef struct clv__metis_graph {
  int32_t vertex_count;
  int32_t *offsets;    /* [vertex_count + 1] */
  int32_t *neighbours; /* [offsets[vertex_count]] */
  int32_t *weights;    /* [vertex_count]: 1 + in-edges */
} clv__metis_graph;

/* Symmetrises and deduplicates. Graphs beyond 32-bit indices are CLV_INVALID_ARGUMENT with the limit. */
clv_status clv__metis_graph_make(const clv_allocator *allocator, const clv__csr *csr, clv__metis_graph *graph, clv_error *error);
void clv__metis_graph_finish(const clv_allocator *allocator, clv__metis_graph *graph);

/* METIS_PartGraphKway by communication volume: a part below k for each vertex. CLV_OUT_OF_MEMORY, CLV_DEVICE_ERROR (METIS refused
 * or died: its code, and what to do), CLV_IO_ERROR (no process could be started). One call at a time; others wait. */
clv_status clv__metis_part(const clv__metis_graph *graph, uint32_t k, uint64_t seed, uint32_t *parts, clv_error *error);

/* What stands for its version and options in keys of caches. */
const char *clv__metis_identity(void);

#endif
