/* A two-sided placement as a minimum cut: network_build.c builds the network, network.c solves it. */
#ifndef CLEAVE_SPLIT_MINIMUM_CUT_NETWORK_OWN_H
#define CLEAVE_SPLIT_MINIMUM_CUT_NETWORK_OWN_H

#include "split/minimum_cut/flow.h"
#include "split/minimum_cut/network.h"

/* The place of a node: on one of the two sides; free, so that the cut chooses its side; or third, fixed to a device of neither
 * side. Side `one` is the sink's side; ties go to it. */
typedef enum network_place { PLACE_ONE, PLACE_OTHER, PLACE_FREE, PLACE_THIRD } network_place;

typedef struct network_side {
  uint16_t devices;
  uint32_t spaces; /* the memory spaces of those devices, as bits */
  bool is_nothing;
  const uint64_t *penalty;
} network_side;

typedef struct clv__network {
  const clv__problem *problem;
  network_side sides[2];
  const uint32_t *fixed;
  clv__network_path path;
  const uint32_t *device_weights, *space_weights; /* NULL: all weights are 1 */
  /* By node: a vertex of the network, or one of the codes below. */
  uint32_t *vertices;
  uint32_t free_count;

  clv__flow *flow; /* NULL while clv__network_build() only counts vertices and edges */
  uint32_t vertex_count, edge_count;
  int64_t constant; /* the part of the cost that does not depend on the cut */
  bool overflow;
} clv__network;

#define VERTEX_ON_ONE (UINT32_MAX - 3)
#define VERTEX_ON_OTHER (UINT32_MAX - 2)
#define VERTEX_THIRD (UINT32_MAX - 1)

static inline network_place clv__network_place(const clv__network *network, uint32_t node) {
  uint32_t vertex = network->vertices[node];
  return vertex < VERTEX_ON_ONE      ? PLACE_FREE
         : vertex == VERTEX_ON_ONE   ? PLACE_ONE
         : vertex == VERTEX_ON_OTHER ? PLACE_OTHER
                                     : PLACE_THIRD;
}

/* Walks the problem once. Adds everything to `flow`, or only counts vertices and edges if `flow` is NULL. */
void clv__network_build(clv__network *network);

#endif
