/* What the steps of the convex split share. A grouping is made as a list of slots: each has a colour, every node is in a slot of
 * its colour, and every edge of the graph goes to the same or a later slot. So the graph of slots is acyclic, whatever is moved
 * as long as this holds; and every acyclic grouping is such a list, in any of its topological orders. */
#ifndef CLEAVE_SPLIT_CONVEX_H
#define CLEAVE_SPLIT_CONVEX_H

#include "split/split.h"

/* Edges between nodes as CSR, one direction: for each the node at the other end, and what is saved where both are in one slot (0
 * for nodes of different colours). */
typedef struct clv__edges {
  uint32_t *offsets, *nodes;
  uint64_t *savings;
} clv__edges;

typedef struct clv__convex {
  const clv__problem *problem;
  clv__arena scratch;      /* dies with the split */
  uint32_t color_count;    /* a colour: a device, or a device and what was claimed for it together */
  uint32_t *colors;        /* by node */
  uint32_t *color_devices; /* by colour */
  bool *color_is_claimed;  /* by colour: its nodes would be together */
  uint32_t device_count;   /* devices that have a node */
  bool fewest, has_views, has_claims;
  clv__edges in, out; /* made when asked for: clv__convex_edges() */
} clv__convex;

typedef struct clv__slots {
  uint32_t count;
  uint32_t *of_node;
  uint32_t *colors;  /* by slot */
  uint64_t cost_ns;  /* launches, and savings lost: what a grouping can change of the serial time */
  uint32_t filled;   /* slots with a node */
  uint32_t bare;     /* slots with views alone */
  bool loses;        /* some saving is lost */
  uint8_t *contents; /* by slot: bit 0 any node, bit 1 one that is no view */
} clv__slots;

/* Sets of nodes: the first node of each stands for it; with `next` (may be NULL) they are rings too. */
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

clv_status clv__slots_init(clv__convex *c, clv__slots *slots, clv_error *error); /* room for a slot a node */
/* Fills in cost_ns, filled, bare, loses and contents. */
void clv__slots_price(const clv__convex *c, clv__slots *slots);
/* Whether `a` is the better one: by time, then by number; for `fewest` the other way round. */
bool clv__slots_better(const clv__convex *c, const clv__slots *a, const clv__slots *b);
/* Exchanges them where `other` is better. */
void clv__slots_take_better(const clv__convex *c, clv__slots *best, clv__slots *other);
clv_status clv__convex_edges(clv__convex *c, clv_error *error);

/* levels.c: for two colours the fewest slots, every node as early as it can. Where savings are lost or slots might be left to
 * views alone, `other` has every node as late as it can. Both are initialised and not looked at. */
clv_status clv__slots_levels(clv__convex *c, clv__slots *best, clv__slots *other, bool *has_other, clv_error *error);

/* candidates.c: colours in turn, each time everything of the colour that is ready. The best of several ways, into `best` (which
 * is initialised and not looked at). For two colours the fewest slots. */
clv_status clv__slots_rounds(clv__convex *c, clv__slots *best, clv_error *error);
/* The same with pairs kept together whose savings `best` loses, one after the other, where that is worth the slots it adds. Gives
 * up on graphs of some thousand nodes. */
clv_status clv__slots_keep_pairs(clv__convex *c, clv__slots *best, clv_error *error);

/* shift.c: moves nodes between slots where that keeps more savings or empties a slot. Never makes a grouping worse. */
clv_status clv__slots_shift(clv__convex *c, clv__slots *slots, clv_error *error);

/* pieces.c: cuts slots further for the limits of their devices, and takes independent parts asunder where that is free. Slots
 * are numbered anew, without empty ones, in an order to run them in. */
clv_status clv__slots_pieces(clv__convex *c, clv__slots *slots, clv_error *error);
/* order.c: numbers slots in an order that lets devices overlap. `offsets` and `nodes`: their nodes as CSR. */
clv_status clv__slots_order(clv__convex *c, clv__slots *slots, const uint32_t *offsets, const uint32_t *nodes, clv_error *error);

#endif
