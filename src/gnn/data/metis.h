/* The only interface to METIS: the graph that it receives, and the part of each vertex that it returns. */
#ifndef CLEAVE_GNN_DATA_METIS_H
#define CLEAVE_GNN_DATA_METIS_H

#include "gnn/data/graph.h"

/* An undirected graph in METIS's format, without self loops or duplicate edges. */
typedef struct clv__metis_graph {
  int32_t vertex_count;
  int32_t *offsets;    /* [vertex_count + 1] */
  int32_t *neighbours; /* [offsets[vertex_count]] */
  int32_t *weights;    /* [vertex_count]: 1 + the number of in-edges */
} clv__metis_graph;

/* Symmetrises and deduplicates the edges. Returns CLV_INVALID_ARGUMENT, naming the limit, for graphs beyond 32-bit indices. */
clv_status clv__metis_graph_make(const clv_allocator *allocator, const clv__csr *csr, clv__metis_graph *graph, clv_error *error);
void clv__metis_graph_finish(const clv_allocator *allocator, clv__metis_graph *graph);

/* Runs METIS_PartGraphKway with the communication-volume objective. Writes a part number below k for each vertex. Errors:
 * CLV_OUT_OF_MEMORY; CLV_DEVICE_ERROR if METIS refused or died (the message gives its code and the remedy); CLV_IO_ERROR if no
 * process could be started. Concurrent calls run one at a time. */
clv_status clv__metis_part(const clv__metis_graph *graph, uint32_t k, uint64_t seed, uint32_t *parts, clv_error *error);

/* Identifies METIS's version and options in cache keys. */
const char *clv__metis_identity(void);

#endif
