/* Computes a layered drawing of a graph: the rank of every node, the order within each rank, and the horizontal positions. The
 * graph is given as plain arrays. The time is almost linear in the number of nodes and edges. */
#ifndef CLEAVE_REPORT_PICTURE_LAYERS_H
#define CLEAVE_REPORT_PICTURE_LAYERS_H

#include "base/memory.h"

/* Nodes are numbered in topological order, so every edge leads from a lower to a higher number. */
typedef struct clv__layers_input {
  uint32_t node_count, edge_count;
  const double *widths; /* indexed by node */
  const uint32_t *from, *to;
  double gap; /* space between neighbours in a rank */
} clv__layers_input;

typedef struct clv__layers {
  uint32_t rank_count;
  uint32_t *ranks; /* indexed by node */
  double *x;       /* indexed by node: its centre */
  double width;
  /* bends[bend_offsets[e]] up to but excluding bends[bend_offsets[e + 1]] are the x at which edge e crosses the ranks between its
   * ends, from top to bottom. An edge across very many ranks has no bends. */
  uint32_t *bend_offsets;
  double *bends;
} clv__layers;

/* Returns false if memory runs out. */
bool clv__layers_make(const clv__layers_input *input, clv__arena *arena, clv__layers *layers);

#endif
