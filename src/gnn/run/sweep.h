/* Runs a block over its targets in pieces of one shape. Intermediate values then fit the caches, and only the block's inputs
 * and outputs need memory proportional to the graph. */
#ifndef CLEAVE_GNN_RUN_SWEEP_H
#define CLEAVE_GNN_RUN_SWEEP_H

#include "gnn/data/graph.h"
#include "gnn/model/block.h"

/* How the targets of a block are divided. */
typedef struct clv__sweep {
  uint32_t piece;       /* targets per piece; the last pieces overlap to keep this size; 0: the block runs as a whole */
  uint64_t piece_edges; /* the largest number of edges of a piece; pieces are compiled for this number */
} clv__sweep;

/* The first stage from which a layer can be swept. Earlier stages compute values of all rows, once. Returns stages->count for
 * GCN, which scales the rows before gathering them. */
uint32_t clv__stages_sweep_from(const clv__stages *stages);
/* Divides block [first, last) over the vertices of `csr`, the targets, by their in-edges. `piece` of the result is 0 if sweeping
 * does not pay (few pieces, or one piece with most of the edges), if the block starts before clv__stages_sweep_from(), or if it
 * reads or computes values per edge or computes values per row. */
clv__sweep clv__sweep_find(const clv__stages *stages, uint32_t first, uint32_t last, const clv__csr *csr);
/* Extra memory for sweeping, in bytes. */
size_t clv__sweep_bytes(const clv__sweep *sweep);
/* The number of times that the block runs to cover `targets` targets; 1 if it runs as a whole. */
static inline uint64_t clv__sweep_pieces(const clv__sweep *sweep, uint64_t targets) {
  return sweep->piece == 0 ? 1 : (targets + sweep->piece - 1) / sweep->piece;
}
/* The sizes of one execution of the block. `rows` is the number of rows that it reads. */
static inline clv__layer_sizes clv__sweep_sizes(const clv__sweep *sweep, uint64_t rows) {
  return (clv__layer_sizes){rows, sweep->piece, sweep->piece_edges};
}
/* Like clv__block_execute(), but piece by piece, with the edges from `csr`. The block's outputs must have data. */
clv_status clv__sweep_execute(const clv__sweep *sweep, const clv__csr *csr, clv__block_run *run, void *memory,
                              clv__layer_values *values, clv_error *error);

/* A block compiled for the pieces of a graph, with its memory. */
typedef struct clv__block_sweep {
  const clv_allocator *allocator;
  clv__block_run run; /* compiled for one piece */
  const clv__csr *csr;
  clv__sweep sweep;
  void *memory;
} clv__block_sweep;

/* Opens stages [first, last) like clv__block_open(), for the result of clv__sweep_find(). `csr` must outlive `opened`. */
clv_status clv__block_sweep_open(clv_devices *devices, uint32_t device, const clv__stages *stages, uint32_t first, uint32_t last,
                                 const clv__csr *csr, const clv__sweep *sweep, clv__block_sweep *opened, clv_error *error);
void clv__block_sweep_close(clv__block_sweep *sweep); /* accepts a zeroed struct */
clv_status clv__block_sweep_execute(clv__block_sweep *sweep, clv__layer_values *values, clv_error *error);

#endif
