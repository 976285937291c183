/* One block of a layer at one size, on one device: between measure.c and point.c. */
#ifndef CLEAVE_GNN_MEASURE_POINT_H
#define CLEAVE_GNN_MEASURE_POINT_H

#include "gnn/measure/measure.h"

typedef struct clv__measured_block {
  const clv__gnn_planning *planning;
  const clv__gnn_measure_options *options;
  const clv__tables *tables; /* copies are there */
  uint32_t layer, device, first, last;
} clv__measured_block;

/* As a run by a plan has it: compiled for the size where the device's shapes are fixed, open otherwise, and piece by piece where
 * the run does that. Sets the point's time, spread and peak, and, of fixed shapes, what compiling took; or that it is
 * infeasible. */
clv_status clv__measure_block(const clv__measured_block *block, clv__layer_sizes sizes, clv__table_point *point,
                              clv_error *error);
/* What the device's speed model says of the same. CLV_NOT_SUPPORTED where there is none. */
clv_status clv__model_block(const clv__measured_block *block, clv__layer_sizes sizes, clv__table_point *point, clv_error *error);

/* What copies take beside the block, by the tables; 0 where they do not know, and of a device in the host's memory. */
double clv__measured_copies_ns(const clv__measured_block *block, clv__layer_sizes sizes);

/* What a run takes longer behind one of another executable: of two, of either size, in turns of two. 2 * `rounds` samples, 0
 * where it takes no longer. */
clv_status clv__measure_turns(const clv__measured_block *block, clv__layer_sizes one, clv__layer_sizes other, uint32_t rounds,
                              uint64_t *samples_ns, clv_error *error);

#endif
