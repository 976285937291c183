/* Measures one block of a layer at one size on one device. */
#ifndef CLEAVE_GNN_MEASURE_POINT_H
#define CLEAVE_GNN_MEASURE_POINT_H

#include "gnn/measure/measure.h"

typedef struct clv__measured_block {
  const clv__gnn_planning *planning;
  const clv__gnn_measure_options *options;
  const clv__tables *tables; /* contains the times of copies */
  uint32_t layer, device, first, last;
} clv__measured_block;

/* Measures the block as a run executes it: compiled for the size on a device that needs fixed shapes, otherwise for any size,
 * and piece by piece if a run does that (run/sweep.h). Sets the point's time, spread and peak and, for fixed shapes, the
 * compile time. If the device lacks memory, marks the point as infeasible. */
clv_status clv__measure_block(const clv__measured_block *block, clv__layer_sizes sizes, clv__table_point *point,
                              clv_error *error);
/* Sets the point's time from the device's speed model, and marks the point as synthetic. Returns CLV_NOT_SUPPORTED if the
 * device has no model for the block. */
clv_status clv__model_block(const clv__measured_block *block, clv__layer_sizes sizes, clv__table_point *point, clv_error *error);

/* Returns the block's copy time from the tables. 0 if the tables do not have it, or if the device uses host memory. */
double clv__measured_copies_ns(const clv__measured_block *block, clv__layer_sizes sizes);

/* Measures the extra time of a run that follows a run of another executable. Runs two executables, one per size, in turns of
 * two runs each. Writes 2 * `rounds` samples; a sample is 0 if there is no extra time. */
clv_status clv__measure_turns(const clv__measured_block *block, clv__layer_sizes one, clv__layer_sizes other, uint32_t rounds,
                              uint64_t *samples_ns, clv_error *error);

#endif
