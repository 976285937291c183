/* Shared by the files of the multi-pass assignment by location. propagate.c has its passes. */
#ifndef CLEAVE_PLACE_PROPAGATE_PROPAGATE_H
#define CLEAVE_PLACE_PROPAGATE_PROPAGATE_H

#include "place/node.h"
#include "place/place.h"

typedef struct clv__propagation {
  const clv__problem *problem;
  uint32_t *devices;   /* by node. A view has a device from pass 3 on, and a cause from pass 4 on */
  const char **causes; /* by node: "" while it has no device */
  uint32_t last;       /* the last device, which is treated as the host */
  uint32_t left;       /* number of nodes without a device, not counting views */
} clv__propagation;

/* Returns the device where a value is: that of its producer or, for a graph input, its home (the last device if it has none). */
static inline uint32_t clv__propagate_value_device(const clv__propagation *p, uint32_t value) {
  uint32_t producer = p->problem->producers[value];
  if (producer != CLV__NONE) return p->devices[producer];
  uint32_t home = p->problem->value_homes == NULL ? CLV__NONE : p->problem->value_homes[value];
  return home != CLV__NONE ? home : p->last;
}

/* Returns the device where a weight is for its reader `node`: its home, or the last device. CLV__NONE if the weight is so small
 * that it is ignored, and the user did not place it: then it goes to its reader. */
static inline uint32_t clv__propagate_weight_device(const clv__propagation *p, uint32_t node, uint32_t weight) {
  uint32_t home = p->problem->weight_homes == NULL ? CLV__NONE : p->problem->weight_homes[weight];
  if (home != CLV__NONE) return home;
  return (p->problem->flags[node] & CLV__NODE_LIGHT_WEIGHT) != 0 ? CLV__NONE : p->last;
}

/* Passes 3 and 4. */
clv_status clv__propagate_best(clv__propagation *p, clv_error *error);
void clv__propagate_views(clv__propagation *p);

/* One sweep of pass 2. A device spreads from its nodes to neighbours that have no device and that it supports, along the list
 * (propagate.c) or along the edges of the graph (edges.c). `up`: from later nodes to earlier ones, not from earlier to later.
 * `host`: the last device spreads too. A device spreads across views, and across nodes that it does not support, because it may
 * support later nodes. */
typedef struct clv__sweep {
  bool up, host;
  const char *cause;
} clv__sweep;
/* `flows`: scratch memory, one element per node. */
void clv__propagate_along_edges(clv__propagation *p, const clv__sweep *sweep, uint8_t *flows);

/* Records the state after a pass in the arena (record.c). Only the last pass has a cut and copies; `cut` and `copies` are NULL
 * for the others. */
clv_status clv__propagate_record(const clv__propagation *p, const char *name, const clv__cut *cut, const clv__copies *copies,
                                 clv__arena *arena, clv__pass *pass, clv_error *error);

#endif
