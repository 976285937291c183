/* Portions: what a part of a block works on, a range of a subgraph's owned vertices with the rows that they read, in ids of its
 * own. A block on several devices is shared out so, by in-edges. */
#ifndef CLEAVE_GNN_PLAN_PORTION_H
#define CLEAVE_GNN_PLAN_PORTION_H

#include "gnn/data/partition.h"
#include "gnn/model/stage.h"

/* The owned vertex before which `share` (0 to 1) of the subgraph's in-edges lie, rounded up to a whole vertex; where there are no
 * edges, of its vertices. Ascends with the share: 0 gives 0, 1 all of them. Whoever prices a share and whoever runs it must round
 * alike, so that both ask here. */
uint32_t clv__subgraph_vertex_at(const clv__subgraph *subgraph, double share);

typedef struct clv__portion {
  const clv__subgraph *subgraph;
  uint32_t from, to;        /* its targets, of the owned vertices */
  uint64_t first_edge;      /* of the subgraph's */
  clv__layer_sizes sizes;   /* rows: targets first, then all others that their in-edges come from, ascending */
  bool is_whole;            /* its ids are the subgraph's */
  const uint32_t *rows;     /* [sizes.rows]: the subgraph's ids; NULL where it is whole */
  const uint32_t *vertices; /* [sizes.rows]: the graph's ids */
  const uint64_t *offsets;  /* [sizes.targets + 1], from 0 */
  const uint32_t *sources;  /* [sizes.edges]: rows */
} clv__portion;

/* The arrays of one that is not whole are in `arena`. */
clv_status clv__portion_make(clv__arena *arena, const clv__subgraph *subgraph, uint32_t from, uint32_t to, clv__portion *portion,
                             clv_error *error);

#endif
