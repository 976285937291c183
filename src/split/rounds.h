/* Rounds: one colour after the other, each time everything of it that is ready. See rounds.c. */
#ifndef CLEAVE_SPLIT_ROUNDS_H
#define CLEAVE_SPLIT_ROUNDS_H

#include "split/convex.h"

/* Nodes that go together: a set is ready when all of it is. A root stands for each; what is kept by root is kept there. */
typedef struct clv__node_sets {
  uint32_t *root; /* by node */
  uint32_t *next; /* by node: the others, in a ring */
} clv__node_sets;

typedef struct clv__rounds {
  clv__convex *c;
  clv__node_sets sets;
  uint32_t *pending; /* by root: edges from outside that are not there yet */
  uint32_t *link;    /* by root: ready lists */
  uint32_t *heads, *longest, *active;
  uint64_t *weight; /* by colour: of what is ready */
  uint32_t active_count;
  uint32_t *tails[2]; /* forward, backward: by node, the longest chain of changes that begins there */
} clv__rounds;

typedef enum clv__rounds_rule {
  CLV__ROUNDS_LONGEST,  /* the colour from which the longest chain of changes begins */
  CLV__ROUNDS_HEAVIEST, /* the colour with the largest sum of such chains */
  CLV__ROUNDS_CHEAPEST  /* the colour with the shortest launch: the others gather work meanwhile */
} clv__rounds_rule;

/* How a run chooses the next colour: by a rule, the first time `start` if something of that is ready; or by the slots of an
 * earlier run, one of which may be left out. */
typedef struct clv__rounds_way {
  bool backward; /* from the last slot to the first, everything that nothing waits for any more */
  clv__rounds_rule rule;
  uint32_t start; /* a colour, or CLV__NONE */
  const uint32_t *guide;
  uint32_t guide_count, left_out;
} clv__rounds_way;

/* Node sets are what was claimed together. */
clv_status clv__rounds_init(clv__rounds *r, clv__convex *c, clv_error *error);
/* Fills `slots`, priced. False where the guide does not suffice. Undoes node sets that wait for each other. */
bool clv__rounds_run(clv__rounds *r, const clv__rounds_way *way, clv__slots *slots);

/* From now on the two nodes and all that go with them go together. */
void clv__node_sets_join(const clv__convex *c, clv__node_sets *sets, uint32_t x, uint32_t y);

#endif
