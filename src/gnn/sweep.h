/* A block run over its targets piece by piece, all of one shape: what it makes between its stages then fits the caches, and only
 * what it reads and gives takes memory of the length of the graph. */
#ifndef CLEAVE_GNN_SWEEP_H
#define CLEAVE_GNN_SWEEP_H

#include "gnn/block.h"
#include "gnn/graph.h"

typedef struct clv__block_sweep {
  const clv_allocator *allocator;
  clv__block_run run; /* of one piece */
  const clv__csr *csr;
  uint32_t piece;       /* targets of each; the last ones overlap, so that it has as many */
  uint64_t piece_edges; /* room for its edges */
  int64_t *offsets;     /* of a piece, from 0 */
  int32_t *sources;     /* where the graph's end before the room does */
} clv__block_sweep;

/* The first stage from which on a layer can be swept: what comes before makes values of all rows, once (stages->count: GCN, whose
 * rows are scaled where they are gathered). */
uint32_t clv__stages_sweep_from(const clv__stages *stages);
/* Whether it is worth it: the graph has several pieces, and none has most of its edges. */
bool clv__block_sweep_pays(const clv__stages *stages, const clv__csr *csr);

/* Stages [first, last), `first` not before clv__stages_sweep_from() and `last` behind the stages that need edges, over all rows
 * of a graph, as clv__block_open() does it. `csr` must outlive the sweep. */
clv_status clv__block_sweep_open(clv_devices *devices, uint32_t device, const clv__stages *stages, uint32_t first, uint32_t last,
                                 const clv__csr *csr, const clv_session_options *options, clv__block_sweep *sweep,
                                 clv_error *error);
void clv__block_sweep_close(clv__block_sweep *sweep); /* accepts a zeroed one */

/* As clv__block_execute(), but for the edges, which are the graph's. What the block makes must have data. */
clv_status clv__block_sweep_execute(clv__block_sweep *sweep, clv__layer_values *values, clv_error *error);

#endif
