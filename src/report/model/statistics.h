/* Statistics of a constant's elements, and texts of single elements. */
#ifndef CLEAVE_REPORT_MODEL_STATISTICS_H
#define CLEAVE_REPORT_MODEL_STATISTICS_H

#include "base/text.h"
#include "graph/graph.h"

typedef struct clv__statistics {
  size_t count;                           /* all elements */
  size_t zeros, nans, infinities;         /* how many of the elements are 0, NaN, infinite */
  double least, largest, mean, deviation; /* of the finite elements; 0 if there are none */
} clv__statistics;

/* Reads all elements of a constant of `graph`, a few at a time. Its shape must be known. `tensor->data` may be unaligned. Bools
 * count as 0 and 1; strings only have a count. The deviation is that of a population. Returns CLV_IO_ERROR if the model's file
 * was truncated. */
clv_status clv__statistics_find(const clv_graph *graph, const clv_tensor *tensor, clv__statistics *statistics, clv_error *error);
/* Calls `each` for each of the first elements of a constant of `graph`, at most `most` of them. Its argument `some` is a small,
 * aligned tensor that contains the element, at `index`. */
clv_status clv__statistics_first(const clv_graph *graph, const clv_tensor *tensor, size_t most,
                                 void (*each)(void *cookie, const clv_tensor *some, size_t index), void *cookie,
                                 clv_error *error);

#endif
