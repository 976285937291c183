/* Placement strategies: each decides, for every node, the device that runs it, and says why. */
#ifndef CLEAVE_PLACE_PLACE_H
#define CLEAVE_PLACE_PLACE_H

#include "split/plan.h"

/* What a strategy starts from. It fills plan->placement.{devices,causes,notes} for all nodes that are not folded. */
typedef struct clv__place_input {
  clv_plan *plan;
  const uint32_t *pinned; /* by node: a device that must be kept, or CLV__NO_ID */
} clv__place_input;

typedef clv_status (*clv__place_fn)(const clv__place_input *input, clv_error *error);

typedef struct clv__strategy {
  const char *name;
  const char *summary; /* one line, for help texts */
  clv__place_fn place;
} clv__strategy;

/* Ended by an entry with name NULL. */
extern const clv__strategy clv__strategies[];
const clv__strategy *clv__strategy_find(const char *name);

clv_status clv__place_contiguous(const clv__place_input *input, clv_error *error);

/* Resolves pins and forces to devices (pins.c): by node, CLV__NO_ID where nothing is said. A pin on a device that does not
 * support the node, or a pattern that matches nothing, is an error. Allocated with the graph's allocator. */
clv_status clv__pins_resolve(const clv_plan *plan, const clv_plan_options *options, uint32_t **pinned, clv_error *error);

/* Moves partitions that do not fit their device's memory to the next device that supports all of their nodes (memory.c); `moved`
 * says whether any was. Pinned nodes do not move: then it is an error. */
clv_status clv__place_within_memory(clv_plan *plan, const uint32_t *pinned, bool *moved, clv_error *error);

#endif
