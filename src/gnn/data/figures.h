/* Statistics of a graph and of its partitioning. */
#ifndef CLEAVE_GNN_DATA_FIGURES_H
#define CLEAVE_GNN_DATA_FIGURES_H

#include "gnn/data/partition.h"

typedef struct clv__range {
  uint64_t least, most;
} clv__range;

typedef struct clv__graph_figures {
  clv__range in_degree, out_degree;
  uint64_t sourceless; /* vertices without an in-edge */
  uint64_t isolated;   /* vertices without edges to or from other vertices */
  uint64_t loops;      /* edges v -> v */
  uint64_t repeated;   /* edges that already occur earlier in their row */
  uint64_t rows_bytes; /* size of the compressed rows in memory */
} clv__graph_figures;

clv_status clv__graph_figures_make(const clv_allocator *allocator, const clv__csr *csr, clv__graph_figures *figures,
                                   clv_error *error);

/* Ranges (minimum and maximum) over the subgraphs, and sums over all of them. */
typedef struct clv__cut_figures {
  clv__range owned, halo, in_edges;
  uint64_t cut_edges, communication_volume;
  uint32_t empty; /* number of parts that own no vertices */
} clv__cut_figures;

void clv__cut_figures_make(const clv__partitioned *partitioned, clv__cut_figures *figures);

#endif
