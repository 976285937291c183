/* Builds compressed rows (CSR) by destination from a stream of edges. Row v lists the sources of v's in-edges, in the order of
 * the edges. */
#ifndef CLEAVE_GNN_DATA_CSR_H
#define CLEAVE_GNN_DATA_CSR_H

#include "cleave/context.h"
#include "gnn/data/edges.h"

typedef struct clv__csr {
  uint32_t vertex_count; /* rows */
  uint64_t edge_count;
  const uint64_t *offsets; /* [vertex_count + 1]; row v is [offsets[v], offsets[v + 1]) */
  const uint32_t *sources; /* [edge_count] */
} clv__csr;

/* Builds the rows by destination. Each row keeps the order of the edges. Allocates: release with clv__csr_finish(). */
clv_status clv__csr_build(const clv_allocator *allocator, clv__edge_source *source, clv__csr *csr, clv_error *error);
/* Build the rows from 64-bit arrays: from pairs, where edge i goes from sources[i] to destinations[i] and vertex_count may be
 * CLV__VERTICES_UNKNOWN; or from rows, where the sources of v's in-edges are at [offsets[v], offsets[v + 1]) and `offsets` has
 * vertex_count + 1 entries. vertex_count is at most CLV__MOST_VERTICES. CLV_INVALID_ARGUMENT, with the edge or the row, for ids
 * out of range and for offsets that do not ascend from 0 to edge_count (arrays.c). */
clv_status clv__csr_from_pairs(const clv_allocator *allocator, uint64_t vertex_count, uint64_t edge_count, const int64_t *sources,
                               const int64_t *destinations, clv__csr *csr, clv_error *error);
clv_status clv__csr_from_rows(const clv_allocator *allocator, uint64_t vertex_count, uint64_t edge_count, const int64_t *offsets,
                              const int64_t *sources, clv__csr *csr, clv_error *error);
void clv__csr_finish(const clv_allocator *allocator, clv__csr *csr);

/* The number of threads that work on edge arrays in parallel. */
uint32_t clv__edge_threads(void);

#endif
