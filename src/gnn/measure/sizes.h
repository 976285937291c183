/* Which sizes a block is measured at: those of shares of the subgraphs that plans are made for, from the smallest to the largest.
 * */
#ifndef CLEAVE_GNN_MEASURE_SIZES_H
#define CLEAVE_GNN_MEASURE_SIZES_H

#include "gnn/planning.h"

enum { CLV__MEASURE_ENOUGH = 6, CLV__MEASURE_MOST_STEPS = 16, CLV__MEASURE_MOST_SIZES = 2 * CLV__MEASURE_MOST_STEPS + 6 };

typedef struct clv__measured_size {
  clv__share share;       /* what falls to a device; of none where there are no targets */
  clv__layer_sizes sizes; /* what the block works on then: padded where the device is static */
  bool is_needed;         /* a bound, or one of the few without which there is no line between them */
} clv__measured_size;

typedef struct clv__measure_sizes {
  uint32_t count;
  clv__measured_size items[CLV__MEASURE_MOST_SIZES]; /* by rows and edges */
} clv__measure_sizes;

/* What `block` works on where a device gets `share`. */
clv__layer_sizes clv__measure_sizes_of(const clv__gnn_planning *planning, const clv__chain_block *block, bool is_static,
                                       const clv__share *share);
/* Of all shares that a plan may give a device: those that bound rows, edges and edges a row, so that what lies between is known,
 * and, in each of `steps` geometric ranges of rows and edges but the last, the one with the fewest and the one with the most
 * edges (or targets) a row. Those within a few percent of each other count as one; where too few are left, larger ones are added.
 * None where no share has a target. */
void clv__measure_sizes_find(const clv__gnn_planning *planning, const clv__chain_block *block, bool is_static, uint32_t steps,
                             clv__measure_sizes *sizes);

#endif
