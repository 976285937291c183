/* What the two phases of the minimum cut share: flow_reduce.c makes the network small, flow.c solves what is left.
 *
 * The network is kept mirrored: flow runs from the sink to the source. The search at the end, for what can still reach the place
 * that flow runs to, then finds the cut nearest to the source. So `excess` is what a vertex gets from the sink, negative where it
 * can pass flow on to the source; a vertex that ends on the side of the source `drains`, the others `keep` their excess. */
#ifndef CLEAVE_SPLIT_MINIMUM_CUT_FLOW_OWN_H
#define CLEAVE_SPLIT_MINIMUM_CUT_FLOW_OWN_H

#include "split/minimum_cut/flow.h"

#define NO_ARC UINT32_MAX
#define NO_VERTEX UINT32_MAX
#define ENDLESS                                                                                                   \
  (CLV__FLOW_LIMIT * 2) /* what infinite capacities become: with all finite ones taken off, still above the limit \
                         */

enum {
  VERTEX_LIVE = 0,
  VERTEX_KEEPS = 1,
  VERTEX_DRAINS = 2,
  VERTEX_ELIMINATED = 4, /* its side follows from its neighbours': bit 4 + 2 * u drains + w drains */
  VERTEX_QUEUED = 8      /* of a live vertex */
};

typedef struct clv__flow_arc { /* arc ^ 1 is its reverse */
  int64_t capacity;            /* what is left of it */
  uint32_t head, next;
} clv__flow_arc;

typedef struct clv__flow_vertex {
  int64_t excess;
  uint32_t first;       /* arc. Of an eliminated vertex: its neighbour u */
  uint32_t label;       /* degree while the network is reduced, then the distance to the source, from below */
  uint32_t current;     /* arc to go on with. Of an eliminated vertex: its neighbour w, or NO_VERTEX */
  uint32_t next, prior; /* in the list that it is in */
  uint8_t state;
} clv__flow_vertex;

struct clv__flow {
  const clv_allocator *allocator;
  uint32_t vertex_count, arc_count, arc_room;
  clv__flow_vertex *vertices;
  clv__flow_arc *arcs;
  int64_t cost;   /* flow already sent */
  int64_t finite; /* of all finite capacities */
  bool refused;   /* a capacity was negative */
  bool is_cut_short;
  uint32_t eliminated;
};

static inline bool clv__flow_is_live(const clv__flow_vertex *vertex) {
  return (vertex->state & ~VERTEX_QUEUED) == VERTEX_LIVE;
}
static inline int64_t clv__flow_plus(int64_t a, int64_t b) {
  return a + b < ENDLESS ? a + b : ENDLESS;
}

/* Gives the vertex `plus` from the sink and `minus` to the source; what passes straight through is flow. */
void clv__flow_feed(clv__flow *flow, clv__flow_vertex *vertex, int64_t plus, int64_t minus);
/* Decides or eliminates vertices until none is left to which a rule applies; clv__flow_expand() gives the eliminated ones their
 * sides when those of all others are known. */
void clv__flow_reduce(clv__flow *flow);
void clv__flow_expand(clv__flow *flow);

#endif
