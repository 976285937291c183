/* A portion is the work of one part of a block: a range of a subgraph's owned vertices and the rows that they read, in local
 * ids of its own. A block on several devices is split into portions by in-edges. */
#ifndef CLEAVE_GNN_PLAN_PORTION_H
#define CLEAVE_GNN_PLAN_PORTION_H

#include "gnn/data/partition.h"
#include "gnn/model/stage.h"

/* Returns the owned vertex before which `share` (0 to 1) of the subgraph's in-edges lie, rounded up to a whole vertex. If the
 * subgraph has no edges, counts vertices instead. Increases with the share: 0 gives 0, 1 gives all vertices. Pricing and
 * running must round alike, so both call this function. */
uint32_t clv__subgraph_vertex_at(const clv__subgraph *subgraph, double share);

typedef struct clv__portion {
  const clv__subgraph *subgraph;
  uint32_t from, to;        /* its targets: a range of the owned vertices */
  uint64_t first_edge;      /* index of its first edge among the subgraph's edges */
  clv__layer_sizes sizes;   /* the rows are the targets, then all other sources of their in-edges, ascending */
  bool is_whole;            /* the portion is the whole subgraph, with the same ids */
  const uint32_t *rows;     /* [sizes.rows]: the subgraph's ids; NULL if is_whole */
  const uint32_t *vertices; /* [sizes.rows]: the graph's ids */
  const uint64_t *offsets;  /* [sizes.targets + 1], starting at 0 */
  const uint32_t *sources;  /* [sizes.edges]: each edge's source, as a row of the portion */
} clv__portion;

/* `arena` owns the arrays unless the portion is the whole subgraph. */
clv_status clv__portion_make(clv__arena *arena, const clv__subgraph *subgraph, uint32_t from, uint32_t to, clv__portion *portion,
                             clv_error *error);

#endif
