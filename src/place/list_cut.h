/* The linear cut for strategies that do their own cutting. It works like clv__split_linear() with three differences: a view
 * never causes a boundary; for a device that states no input limit, `copy_limit` limits the values copied in for a partition;
 * and a partition also ends before a node that reads further streamed weights, so that the next partition can reuse the buffer.
 * A run is a sequence of nodes in the list that are on one device. */
#ifndef CLEAVE_PLACE_LIST_CUT_H
#define CLEAVE_PLACE_LIST_CUT_H

#include "place/place.h"

enum { CLV__PROPAGATE_COPIES = 30 }; /* the copy_limit of `propagate` */

typedef struct clv__list_cut {
  const uint32_t *order; /* the list: all nodes in a topological order. NULL: in the order of their numbers */
  uint32_t copy_limit;   /* most values and streamed weights copied per partition if its device has no limit; 0: any number */
  const char *joined;    /* cause of a view that moves to the device of its readers, or of the run around it */
  uint32_t closed;       /* bit d: no view may move to device d */
} clv__list_cut;

/* Cuts `placing` (devices, causes, groups, streamed) and stores the cut in it. Views of graph inputs are placed by their readers
 * (views.h). Any other view inside the run of another device goes into the partition of its source. If that partition is full,
 * the view joins the run and changes its device, unless it is pinned or that device does not support it. A node whose own inputs
 * exceed the stated limit of its device gives CLV_NOT_SUPPORTED; the message names the node. */
clv_status clv__place_cut_list(const clv__problem *problem, const clv__list_cut *options, clv__arena *arena,
                               clv__placing *placing, clv_error *error);

#endif
