/* Where part of a graph rounds numbers to integers. A number halfway between two integers may be rounded either way, and
 * everything that is computed from it changes too. So two correct results differ by steps of a quantisation grid. */
#ifndef CLEAVE_ANALYSIS_ROUNDING_H
#define CLEAVE_ANALYSIS_ROUNDING_H

#include "graph/view.h"

typedef struct clv__rounding {
  uint32_t times; /* the most roundings on a path from the view's inputs to the value */
  double step;    /* the step of the quantisation grid on which the value's numbers lie, in the value's unit; 0: no known grid */
} clv__rounding;

/* Fills `roundings`, an array of view->value_count. The view's inputs and constants count as exact. The bodies of nodes are not
 * examined. */
void clv__view_roundings(const clv_graph_view *view, clv__rounding *roundings);

#endif
