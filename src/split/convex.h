/* Shared by the steps of the convex split. A grouping is a list of slots. Each slot has a colour, every node is in a slot of its
 * colour, and every edge of the graph leads to the same slot or a later one. So the graph of slots is acyclic, and any move of
 * nodes that preserves this keeps it acyclic. Conversely, every acyclic grouping is such a list, in any of its topological
 * orders. */
#ifndef CLEAVE_SPLIT_CONVEX_H
#define CLEAVE_SPLIT_CONVEX_H

#include "split/split.h"

/* Edges between nodes in one direction, as CSR. Each edge has the node at its other end and the saving if both nodes are in one
 * slot (0 for nodes of different colours). */
typedef struct clv__edges {
  uint32_t *offsets, *nodes;
  uint64_t *savings;
} clv__edges;

typedef struct clv__convex {
  const clv__problem *problem;
  clv__arena scratch; /* lives as long as the split */
  uint32_t
      color_count;  /* a colour is a device, or a device with a group claimed for it; hosted views have colours of their own */
  uint32_t *colors; /* by node */
  uint32_t *color_devices; /* by colour */
  bool *color_is_claimed;  /* by colour: its nodes should stay together */
  uint32_t device_count;   /* devices that have at least one node */
  bool fewest, has_views, has_claims;
  clv__edges in, out; /* built on demand by clv__convex_edges() */
} clv__convex;

typedef struct clv__slots {
  uint32_t count;
  uint32_t *of_node;
  uint32_t *colors;  /* by slot */
  uint64_t cost_ns;  /* launches plus lost savings: the part of the serial time that the grouping affects */
  uint32_t filled;   /* slots that have a node */
  uint32_t bare;     /* slots that have only views */
  bool loses;        /* some saving is lost */
  uint8_t *contents; /* by slot: bit 0: it has a node; bit 1: it has a node that is not a view */
} clv__slots;

/* Disjoint sets of nodes: the first node of each set represents it. If `next` is not NULL, it links the nodes of each set into a
 * ring. */
static inline uint32_t clv__find(uint32_t *root, uint32_t node) {
  while (root[node] != node) node = root[node] = root[root[node]];
  return node;
}
static inline void clv__join(uint32_t *root, uint32_t *next, uint32_t x, uint32_t y) {
  uint32_t a = clv__find(root, x), b = clv__find(root, y);
  if (a == b) return;
  root[a < b ? b : a] = a < b ? a : b;
  if (next == NULL) return;
  uint32_t after = next[a];
  next[a] = next[b];
  next[b] = after;
}

clv_status clv__slots_init(clv__convex *c, clv__slots *slots, clv_error *error); /* allocates room for one slot per node */
/* Fills in cost_ns, filled, bare, loses and contents. */
void clv__slots_price(const clv__convex *c, clv__slots *slots);
/* Returns whether `a` is better: by time, then by the number of slots; for `fewest` by number first. */
bool clv__slots_better(const clv__convex *c, const clv__slots *a, const clv__slots *b);
/* Swaps `best` and `other` if `other` is better. */
void clv__slots_take_better(const clv__convex *c, clv__slots *best, clv__slots *other);
clv_status clv__convex_edges(clv__convex *c, clv_error *error);

/* levels.c: for two colours, the fewest slots with every node as early as possible. If savings are lost, or slots might be left
 * with only views, `has_other` becomes true, and `other` has every node as late as possible in the same slots. Both must be
 * initialised; their previous contents are ignored. */
clv_status clv__slots_levels(clv__convex *c, clv__slots *best, clv__slots *other, bool *has_other, clv_error *error);

/* candidates.c: forms slots in rounds (rounds.h) in several ways. Stores the best result in `best`, which must be initialised;
 * its previous contents are ignored. For two colours this gives the fewest slots. */
clv_status clv__slots_rounds(clv__convex *c, clv__slots *best, clv_error *error);
/* For each pair of a producer and a reader whose saving `best` loses: runs the rounds again with the two kept together, and
 * keeps the result if it is better. Does nothing for graphs of more than a few thousand nodes. */
clv_status clv__slots_keep_pairs(clv__convex *c, clv__slots *best, clv_error *error);

/* shift.c: moves nodes between slots if that keeps more savings or empties a slot. Never makes a grouping worse. */
clv_status clv__slots_shift(clv__convex *c, clv__slots *slots, clv_error *error);

/* split_slots.c: cuts slots further to honour the limits of their devices, and separates independent parts if that costs nothing.
 * It renumbers the slots, without empty ones, in an order in which they can run. */
clv_status clv__slots_split(clv__convex *c, clv__slots *slots, clv_error *error);
/* order.c: numbers slots in an order that lets devices overlap. `offsets` and `nodes` are the nodes of each slot as CSR. */
clv_status clv__slots_order(clv__convex *c, clv__slots *slots, const uint32_t *offsets, const uint32_t *nodes, clv_error *error);

#endif
