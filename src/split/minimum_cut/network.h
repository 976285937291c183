/* The exact two-sided placement: which nodes go to device `one` and which to device `other` so that node + transfer + fusion cost
 * is least, as a minimum cut. A value has one auxiliary vertex for each direction, so that it is paid for once however many
 * readers are over there; a fusion is a saving lost when its two nodes part; a launch is paid once for a device that has any node
 * (with `launches`), which keeps the cut exact too and the bound below every plan. */
#ifndef CLEAVE_SPLIT_MINIMUM_CUT_NETWORK_H
#define CLEAVE_SPLIT_MINIMUM_CUT_NETWORK_H

#include "split/problem.h"

/* Some nodes on one way through the graph, in order, none of them a view: where two that follow each other are on different
 * devices, another partition begins, which no other change along the way leads into. So launches may be charged for those
 * changes, and the sum stays below what any cut of the placement pays. */
typedef struct clv__network_path {
  uint32_t count;
  const uint32_t *nodes;
} clv__network_path;

typedef struct clv__network_options {
  uint32_t one, other;                         /* devices; a tie goes to `one`  */
  const uint32_t *fixed;                       /* by node, may be NULL: a device it stays on (any device), or CLV__NONE: free */
  const uint64_t *penalty_one, *penalty_other; /* by node, may be NULL: added to its time there (multipliers of memory budgets) */
  bool launches;                               /* one for each of the two that has a node other than a view */
  clv__network_path path; /* count 0: none. Else, instead of that: the first node's launch and all changes' */
} clv__network_options;

/* Fills `devices` (by node; fixed nodes with where they are) and `cost_ns`: the least cost, which is clv__price_placement() of
 * `devices` and penalties and launches as asked for. Nodes that only one of the two supports, or that are pinned to one, go
 * there. Where the cut was too much work (flow.h), `cost_ns` is below that of `devices` and of any other placement.
 * CLV_NOT_SUPPORTED where a free node runs on neither, CLV_INVALID_ARGUMENT where the times are too large to add up. */
clv_status clv__network_solve(const clv__problem *problem, const clv__network_options *options, const clv_allocator *allocator,
                              uint32_t *devices, uint64_t *cost_ns, clv_error *error);

#define CLV__NETWORK_WEIGHT 64u

/* Two sides for bounds: each is a set of devices (bits) of which every node, value and fusion takes the best for itself, so that
 * the cut is below all placements on those devices. Sets must not overlap. */
typedef struct clv__network_sides {
  uint16_t one, other;
  bool other_is_nothing;         /* nothing on `other` has a price: only its copies from and to `one` have */
  const uint64_t *penalty_other; /* by node, may be NULL */
  clv__network_path path;        /* changes along it pay the least launch of the side they lead to */
  /* By device, by memory space; may be NULL: all times on that device, all copies to and from that space so many times over. At
   * most CLV__NETWORK_WEIGHT. */
  const uint32_t *device_weights, *space_weights;
} clv__network_sides;

/* The least cost, or where that is too much work one below it; `on_other` (by node, may be NULL) tells the sides. */
clv_status clv__network_bound(const clv__problem *problem, const clv__network_sides *sides, const clv_allocator *allocator,
                              uint8_t *on_other, uint64_t *cost_ns, clv_error *error);

/* The way through the graph along which nodes ask for other devices most often: what they must have weighs more than what is
 * best for each alone, and that more than length. `nodes` is for the caller to release. */
clv_status clv__network_path_find(const clv__problem *problem, const clv_allocator *allocator, uint32_t **nodes, uint32_t *count,
                                  clv_error *error);

#endif
