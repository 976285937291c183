/* Subgraphs as plans see them: sizes, and what falls to each share of the in-edges. */
#ifndef CLEAVE_GNN_PLAN_PIECE_H
#define CLEAVE_GNN_PLAN_PIECE_H

#include "gnn/data/partition.h"
#include "gnn/plan/pep.h"

/* Fills `piece`; what its share function needs is in `arena`, so that the subgraph may go. Exact at multiples of
 * 1/CLV__PEP_SHARES, where parts are cut (portion.h); between them a straight line, for the search. In time of order rows and
 * edges. */
clv_status clv__piece_of(clv__arena *arena, const clv__subgraph *subgraph, clv__piece *piece, clv_error *error);

#endif
