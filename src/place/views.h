/* Where views of graph inputs go. A view of a computed value follows its source into the source's partition; a view of a graph
 * input has no such partition. */
#ifndef CLEAVE_PLACE_VIEWS_H
#define CLEAVE_PLACE_VIEWS_H

#include "place/place.h"

typedef struct clv__view_options {
  const uint32_t *order; /* the list: nodes in a topological order; NULL: in the order of their numbers */
  const char *joined;    /* cause of a view that moves to the device of its readers */
  uint32_t closed;       /* bit d: no view may join device d */
} clv__view_options;

typedef struct clv__views {
  uint32_t *order; /* the list, with each view of a graph input just before its first reader, or in front */
  bool *stays; /* by node: a view of a graph input that keeps its device when the list is cut: it is with its first reader, or in
                  front */
} clv__views;

/* Places each view of a graph input, unless it is pinned or claimed, so that it causes no copy. Graph inputs start in host
 * memory. If a reader of the view works in host memory, or the view is an output of the graph, the view stays in host memory;
 * otherwise it joins the device of its first reader. A view of such a view is treated in the same way. Sets `views`, in the
 * arena. */
clv_status clv__place_views(const clv__problem *problem, const clv__view_options *options, clv__arena *arena,
                            clv__placing *placing, clv__views *views, clv_error *error);

#endif
