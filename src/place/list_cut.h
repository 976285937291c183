/* The linear cut of the strategies that cut themselves: as clv__split_linear(), but no boundary is made for a view, inputs are
 * limited to what a partition really takes in, and a cut is made where it lets streamed weights share a buffer. */
#ifndef CLEAVE_PLACE_LIST_CUT_H
#define CLEAVE_PLACE_LIST_CUT_H

#include "place/place.h"

enum { CLV__PROPAGATE_COPIES = 30 }; /* the copy_limit of `propagate` */

typedef struct clv__list_cut {
  const uint32_t *order; /* the list: nodes in a topological order; NULL: as they are numbered */
  uint32_t copy_limit;   /* values and streamed weights that are copied for one partition, where its device states no limit of
                            its inputs; 0: none */
  const char *joined;    /* cause of a view that goes to the device of the run around it */
  uint32_t closed;       /* bit d: no view joins a run of device d */
} clv__list_cut;

/* Cuts `placing` (devices, causes, groups, streamed) and puts the cut there. A view that stands in the run of another device goes
 * into the partition of its source; where it has none, as a view of a graph input, it joins the run, and its device changes,
 * unless it is pinned or not supported there. Views before all other nodes join the first run in the same way. A node whose own
 * inputs exceed the limit is CLV_NOT_SUPPORTED, by name. */
clv_status clv__place_cut_list(const clv__problem *problem, const clv__list_cut *options, clv__arena *arena,
                               clv__placing *placing, clv_error *error);

#endif
