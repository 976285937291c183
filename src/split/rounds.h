/* Forms slots in rounds: each round takes one colour, and puts all its nodes that are ready into a slot. See rounds.c. */
#ifndef CLEAVE_SPLIT_ROUNDS_H
#define CLEAVE_SPLIT_ROUNDS_H

#include "split/convex.h"

/* Nodes that must stay together. A set is ready when all its members are. One member, the root, represents the set; arrays `by
 * root` are indexed by it. */
typedef struct clv__node_sets {
  uint32_t *root; /* by node */
  uint32_t *next; /* by node: the next member, in a ring */
} clv__node_sets;

typedef struct clv__rounds {
  clv__convex *c;
  clv__node_sets sets;
  uint32_t *pending; /* by root: the number of edges into its set whose producers have not run yet */
  uint32_t *link;    /* by root: the next set in the list of ready sets of its colour */
  /* By colour: its first ready set, and the longest chain of changes of its ready sets. Then a list of the colours that have
   * ready sets. */
  uint32_t *heads, *longest, *active;
  uint64_t *weight; /* by colour: the sum over its ready sets of their longest chain of changes, plus 1 per set */
  uint32_t active_count;
  uint32_t *tails[2]; /* [backward], then by node: the largest number of colour changes on a path that starts there */
} clv__rounds;

typedef enum clv__rounds_rule {
  CLV__ROUNDS_LONGEST,  /* the colour that starts the longest chain of changes */
  CLV__ROUNDS_HEAVIEST, /* the colour with the largest sum of such chains */
  CLV__ROUNDS_CHEAPEST  /* the colour with the shortest launch: meanwhile other colours accumulate work */
} clv__rounds_rule;

/* How a run chooses the next colour. If `guide` is NULL, by `rule`, but the first colour is `start` if one of its nodes is
 * ready. Otherwise it follows `guide`, the colours of the slots of an earlier run, except for slot `left_out` (CLV__NONE:
 * none). */
typedef struct clv__rounds_way {
  bool backward; /* from the last slot to the first: a node is ready once all its readers have run */
  clv__rounds_rule rule;
  uint32_t start; /* a colour, or CLV__NONE */
  const uint32_t *guide;
  uint32_t guide_count, left_out;
} clv__rounds_way;

/* Initialises the rounds. The node sets are the groups that were claimed together. */
clv_status clv__rounds_init(clv__rounds *r, clv__convex *c, clv_error *error);
/* Fills `slots` and prices them. Returns false if the guide ends before all nodes have run. Breaks up node sets that wait for
 * each other. */
bool clv__rounds_run(clv__rounds *r, const clv__rounds_way *way, clv__slots *slots);

/* Merges the sets of the two nodes: from now on all their members stay together. */
void clv__node_sets_join(const clv__convex *c, clv__node_sets *sets, uint32_t x, uint32_t y);

#endif
