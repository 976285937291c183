/* Shared by the two phases of the minimum cut: flow_reduce.c shrinks the network, flow.c solves what is left of it.
 *
 * The network is stored mirrored: flow runs from the sink to the source. The final search, for the vertices that can still reach
 * the end of the flow, then finds the cut nearest to the source. So `excess` is what a vertex receives from the sink, and is
 * negative if the vertex can pass flow on to the source. A vertex that ends on the source's side `drains`; the others `keep`
 * their excess. */
#ifndef CLEAVE_SPLIT_MINIMUM_CUT_FLOW_OWN_H
#define CLEAVE_SPLIT_MINIMUM_CUT_FLOW_OWN_H

#include "split/minimum_cut/flow.h"

#define NO_ARC UINT32_MAX
#define NO_VERTEX UINT32_MAX
#define ENDLESS (CLV__FLOW_LIMIT * 2) /* replaces infinite capacities; finite flow cannot reduce it to the limit */

enum {
  VERTEX_LIVE = 0,
  VERTEX_KEEPS = 1,
  VERTEX_DRAINS = 2,
  VERTEX_ELIMINATED = 4, /* then bit 4 + 2 * (u drains) + (w drains) says whether it drains, for neighbours u and w */
  VERTEX_QUEUED = 8      /* only for a live vertex */
};

typedef struct clv__flow_arc { /* the reverse of an arc is arc ^ 1 */
  int64_t capacity;            /* the residual capacity */
  uint32_t head, next;
} clv__flow_arc;

typedef struct clv__flow_vertex {
  int64_t excess;
  uint32_t first;       /* its first arc. Of an eliminated vertex: its neighbour u */
  uint32_t label;       /* its degree during the reduction; then a lower bound on the distance to the source */
  uint32_t current;     /* the arc to continue with. Of an eliminated vertex: its neighbour w, or NO_VERTEX */
  uint32_t next, prior; /* the vertices after and before it in its list */
  uint8_t state;
} clv__flow_vertex;

struct clv__flow {
  const clv_allocator *allocator;
  uint32_t vertex_count, arc_count, arc_room;
  clv__flow_vertex *vertices;
  clv__flow_arc *arcs;
  int64_t cost;   /* flow already sent */
  int64_t finite; /* the sum of all finite capacities */
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

/* Gives the vertex `plus` more flow from the sink, and room to pass `minus` more on to the source. What it can pass straight
 * through counts as flow sent. */
void clv__flow_feed(clv__flow *flow, clv__flow_vertex *vertex, int64_t plus, int64_t minus);
/* Decides or eliminates vertices until no rule applies to any vertex. clv__flow_expand() assigns sides to the eliminated vertices
 * once the sides of all others are known. */
void clv__flow_reduce(clv__flow *flow);
void clv__flow_expand(clv__flow *flow);

#endif
