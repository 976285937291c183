/* The data of a subgraph that planning needs: its sizes, and the work in each share of its in-edges. */
#ifndef CLEAVE_GNN_PLAN_SUBGRAPH_SIZES_H
#define CLEAVE_GNN_PLAN_SUBGRAPH_SIZES_H

#include "gnn/data/partition.h"
#include "gnn/plan/pep.h"

/* Fills `sizes`. `arena` holds the data of its share function, so that the subgraph may be destroyed. The share function is
 * exact at multiples of 1/CLV__PEP_SHARES, where parts begin and end (portion.h). Between them it interpolates linearly,
 * because the search for balanced shares (pep_cost.c) tries shares that are not such multiples. Takes O(rows + edges) time. */
clv_status clv__subgraph_sizes_of(clv__arena *arena, const clv__subgraph *subgraph, clv__subgraph_sizes *sizes, clv_error *error);

#endif
