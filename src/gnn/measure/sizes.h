/* Selects the sizes at which a block is measured: those of the shares of the planned subgraphs, from the smallest to the
 * largest. */
#ifndef CLEAVE_GNN_MEASURE_SIZES_H
#define CLEAVE_GNN_MEASURE_SIZES_H

#include "gnn/planning.h"

enum { CLV__MEASURE_ENOUGH = 6, CLV__MEASURE_MOST_STEPS = 16, CLV__MEASURE_MOST_SIZES = 2 * CLV__MEASURE_MOST_STEPS + 6 };

typedef struct clv__measured_size {
  clv__share share;       /* a device's share; targets 0: no actual share has this size */
  clv__layer_sizes sizes; /* the block's sizes for this share; padded if the device needs fixed shapes */
  bool is_needed;         /* a bound of the shares, or one of the few more sizes that a fit needs */
} clv__measured_size;

typedef struct clv__measure_sizes {
  uint32_t count;
  clv__measured_size items[CLV__MEASURE_MOST_SIZES]; /* sorted by rows and edges */
} clv__measure_sizes;

/* The sizes that `block` works on if a device gets `share`. */
clv__layer_sizes clv__measure_sizes_of(const clv__gnn_planning *planning, const clv__chain_block *block, bool is_static,
                                       const clv__share *share);
/* Selects from all shares that a plan may give to a device. Includes those that bound rows, edges and edges per row, so that
 * everything in between is known. Then divides rows and edges into `steps` geometric ranges; each range contributes the share
 * with the fewest and the one with the most edges (or targets) per row. The last range contributes only if there are too few
 * sizes otherwise. Sizes within a few percent of each other count as one. If there are still too few for a fit, adds sizes
 * larger than any share. Selects no size if no share has a target. */
void clv__measure_sizes_find(const clv__gnn_planning *planning, const clv__chain_block *block, bool is_static, uint32_t steps,
                             clv__measure_sizes *sizes);

#endif
