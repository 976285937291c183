/* A layered drawing of a graph: the rank of every node, the order within each rank, and the horizontal positions. Works only
 * on arrays; the time is near-linear in nodes and edges. */
#ifndef CLEAVE_REPORT_PICTURE_LAYERS_H
#define CLEAVE_REPORT_PICTURE_LAYERS_H

#include "base/memory.h"

/* Edges lead from a lower to a higher number: nodes are in topological order. */
typedef struct clv__layers_input {
  uint32_t node_count, edge_count;
  const double *widths; /* by node */
  const uint32_t *from, *to;
  double gap; /* space between neighbours in a rank */
} clv__layers_input;

typedef struct clv__layers {
  uint32_t rank_count;
  uint32_t *ranks; /* by node */
  double *x;       /* by node: its centre */
  double width;
  /* The positions at which edge e passes the ranks between its ends, from top to bottom: bends[bend_offsets[e] ..
   * bend_offsets[e + 1]). An edge across very many ranks has none. */
  uint32_t *bend_offsets;
  double *bends;
} clv__layers;

/* False if out of memory. */
bool clv__layers_make(const clv__layers_input *input, clv__arena *arena, clv__layers *layers);

#endif
