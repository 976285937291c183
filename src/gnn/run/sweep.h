/* A block run over its targets piece by piece, all of one shape: what it makes between its stages then fits the caches, and only
 * what it reads and gives takes memory of the length of the graph. */
#ifndef CLEAVE_GNN_RUN_SWEEP_H
#define CLEAVE_GNN_RUN_SWEEP_H

#include "gnn/data/graph.h"
#include "gnn/model/block.h"

/* How the targets of a block are parted. */
typedef struct clv__sweep {
  uint32_t piece;       /* targets of each piece; the last ones overlap, so that it has as many; 0: not at all */
  uint64_t piece_edges; /* room for its edges */
} clv__sweep;

/* The first stage from which on a layer can be swept: what comes before makes values of all rows, once (stages->count: GCN, whose
 * rows are scaled where they are gathered). */
uint32_t clv__stages_sweep_from(const clv__stages *stages);
/* Pieces of block [first, last) over the in-edges of `csr`'s vertices, the targets. piece is 0 where it is not worth it (few
 * pieces, or one with most of the edges), where the block begins before clv__stages_sweep_from(), and where it makes or reads
 * values of edges or makes values of rows. */
clv__sweep clv__sweep_find(const clv__stages *stages, uint32_t first, uint32_t last, const clv__csr *csr);
/* Bytes of memory that sweeping needs for itself. */
size_t clv__sweep_bytes(const clv__sweep *sweep);
/* How often the block runs over `targets`; once, where it is not swept. */
static inline uint64_t clv__sweep_pieces(const clv__sweep *sweep, uint64_t targets) {
  return sweep->piece == 0 ? 1 : (targets + sweep->piece - 1) / sweep->piece;
}
/* What the block is run for: `rows` are what it reads. */
static inline clv__layer_sizes clv__sweep_sizes(const clv__sweep *sweep, uint64_t rows) {
  return (clv__layer_sizes){rows, sweep->piece, sweep->piece_edges};
}
/* As clv__block_execute(), piece by piece, but for the edges, which are those of `csr`. What the block makes must have data. */
clv_status clv__sweep_execute(const clv__sweep *sweep, const clv__csr *csr, clv__block_run *run, void *memory,
                              clv__layer_values *values, clv_error *error);

/* A block compiled for the pieces of a graph, with the memory it takes. */
typedef struct clv__block_sweep {
  const clv_allocator *allocator;
  clv__block_run run; /* of one piece */
  const clv__csr *csr;
  clv__sweep sweep;
  void *memory;
} clv__block_sweep;

/* Stages [first, last), as clv__block_open() does it, for what clv__sweep_find() says. `csr` must outlive it. */
clv_status clv__block_sweep_open(clv_devices *devices, uint32_t device, const clv__stages *stages, uint32_t first, uint32_t last,
                                 const clv__csr *csr, const clv__sweep *sweep, clv__block_sweep *opened, clv_error *error);
void clv__block_sweep_close(clv__block_sweep *sweep); /* accepts a zeroed one */
clv_status clv__block_sweep_execute(clv__block_sweep *sweep, clv__layer_values *values, clv_error *error);

#endif
