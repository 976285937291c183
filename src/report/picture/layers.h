/* A layered drawing of a graph: a rank for every node, an order within each rank, and where everything stands from left to right.
 * Works on arrays alone; time is near-linear in nodes and edges. */
#ifndef CLEAVE_REPORT_PICTURE_LAYERS_H
#define CLEAVE_REPORT_PICTURE_LAYERS_H

#include "base/memory.h"

/* Edges lead from a lower number to a higher one: nodes are in topological order. */
typedef struct clv__layers_input {
  uint32_t node_count, edge_count;
  const double *widths; /* by node */
  const uint32_t *from, *to;
  double gap; /* between neighbours of a rank */
} clv__layers_input;

typedef struct clv__layers {
  uint32_t rank_count;
  uint32_t *ranks; /* by node */
  double *x;       /* by node: its middle */
  double width;
  /* Where edge e passes the ranks between its ends: bends[bend_offsets[e] .. bend_offsets[e + 1]), downwards. An edge over very
   * many ranks has none. */
  uint32_t *bend_offsets;
  double *bends;
} clv__layers;

/* False when memory is out. */
bool clv__layers_make(const clv__layers_input *input, clv__arena *arena, clv__layers *layers);

#endif
