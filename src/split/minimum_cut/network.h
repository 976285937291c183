/* The exact two-sided placement by minimum cut: which nodes go to device `one` and which to device `other`, for the least node +
 * transfer + fusion cost. A value has one auxiliary vertex per direction, so its copy is paid once, however many readers are on
 * the far side. A fusion is a saving that is lost if its two nodes are on different devices. With `launches`, each device that
 * has a node pays one launch; the result is still exact, and a lower bound on every plan. */
#ifndef CLEAVE_SPLIT_MINIMUM_CUT_NETWORK_H
#define CLEAVE_SPLIT_MINIMUM_CUT_NETWORK_H

#include "split/problem.h"

/* Nodes along one path through the graph, in order, none of them a view. If two consecutive nodes are on different devices,
 * another partition begins there, and no other change along the path leads into that partition. So a launch may be charged per
 * change, and the sum stays below what any cut of the placement pays. */
typedef struct clv__network_path {
  uint32_t count;
  const uint32_t *nodes;
} clv__network_path;

typedef struct clv__network_options {
  uint32_t one, other;   /* devices; ties go to `one` */
  const uint32_t *fixed; /* by node: the device on which it stays (any device), or CLV__NONE; NULL: no node is fixed */
  const uint64_t *penalty_one, *penalty_other; /* by node, may be NULL: added to its time on that device (for memory limits) */
  bool launches;          /* charge one launch for each of the two devices that has a node other than a view */
  clv__network_path path; /* if count > 0, replaces `launches`: charges the first node's launch and one per change of device */
} clv__network_options;

/* Fills `devices` (by node; a fixed node gets its fixed device) and `cost_ns`. The cost is the least possible:
 * clv__price_placement() of `devices` plus the requested penalties and launches. A node that only one of the two supports, or
 * that is pinned to one, goes there. If the cut was too much work (flow.h), `cost_ns` is below the cost of `devices` and of any
 * other placement. Returns CLV_NOT_SUPPORTED if a free node runs on neither device, CLV_INVALID_ARGUMENT if the times are too
 * large to add up. */
clv_status clv__network_solve(const clv__problem *problem, const clv__network_options *options, const clv_allocator *allocator,
                              uint32_t *devices, uint64_t *cost_ns, clv_error *error);

#define CLV__NETWORK_WEIGHT 64u

/* Two sides for bounds. Each side is a set of devices (bits), and every node, value and fusion has the best price within the set.
 * So the cost of the cut is at most that of any placement on those devices. The sets must not overlap. */
typedef struct clv__network_sides {
  uint16_t one, other;
  bool other_is_nothing; /* nodes on `other` cost only their penalties, and a copy between the sides costs only its part between
                            the memory of `one` and the host */
  const uint64_t *penalty_other; /* by node, may be NULL */
  clv__network_path path;        /* each change of side along it pays the cheapest launch of the side that it leads to */
  /* By device and by memory space; may be NULL. Factors for all times on that device, and for all copies to and from that space.
   * At most CLV__NETWORK_WEIGHT. */
  const uint32_t *device_weights, *space_weights;
} clv__network_sides;

/* Computes the least cost of the two sides, or a lower bound on it if the exact cost takes too much work (flow.h). `on_other`
 * (by node, may be NULL) is set to whether the node is on side `other`. */
clv_status clv__network_bound(const clv__problem *problem, const clv__network_sides *sides, const clv_allocator *allocator,
                              uint8_t *on_other, uint64_t *cost_ns, clv_error *error);

/* Finds the path along which the best device of the nodes changes most often. Forced changes of device count most, then changes
 * between the best devices of the nodes, then the length. The caller releases `nodes`. */
clv_status clv__network_path_find(const clv__problem *problem, const clv_allocator *allocator, uint32_t **nodes, uint32_t *count,
                                  clv_error *error);

#endif
