/* The handle of prices: see cleave/gnn_costs.h. */
#ifndef CLEAVE_GNN_API_COSTS_H
#define CLEAVE_GNN_API_COSTS_H

#include "gnn/measure/measure.h"
#include "gnn/tables/tables.h"

struct clv_gnn_costs {
  const clv_allocator *allocator;
  clv__tables tables;
  char *name;                 /* the file that was read or written last; NULL: none */
  clv__gnn_measured measured; /* sums over all measurements */
};

#endif
