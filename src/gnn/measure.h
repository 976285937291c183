/* Measuring the tables that plans are priced with: every block of a layer that a device runs, over rows and edges, as a run would
 * have it; copies between each device and the host; gathering in the host's memory; what merging, switching and exchanging take.
 * Needs a quiet machine to be of use. */
#ifndef CLEAVE_GNN_MEASURE_H
#define CLEAVE_GNN_MEASURE_H

#include "gnn/block.h"
#include "gnn/planning.h"
#include "gnn/tables.h"

typedef struct clv__gnn_measure_options {
  uint32_t runs;                     /* of each thing; what takes long gets fewer */
  uint32_t row_steps, density_steps; /* of the grid: geometric, from the smallest part of any subgraph to the whole graph */
  uint64_t seed;
  /* Nothing is run: devices are asked what their own speed models say, for virtual ones. What they say is marked as synthetic;
   * gathering in the host's memory is measured all the same; of what schedules take nothing is said. A device without a model is
   * CLV_NOT_SUPPORTED. */
  bool asks_models;
  bool only_copies; /* and threads: of devices whose blocks were measured elsewhere, which are not said to be these */
  /* May be NULL; false ends it with CLV_CANCELLED. */
  bool (*progress)(void *user_data, const char *device, uint32_t layer, uint32_t done, uint32_t of);
  void *user_data;
} clv__gnn_measure_options;
#define CLV__GNN_MEASURE_OPTIONS_INIT \
  { 5, 5, 4, 1, false, false, NULL, NULL }

/* Measures what the planning's cuts need of all of its devices into `tables`, and fits them. Of a device whose memory is not the
 * host's a block's time is that of a run less that of copying what goes in and out, which has tables of its own. What a device
 * has no memory for is kept as infeasible; other failures end it. */
clv_status clv__gnn_measure(const clv__gnn_planning *planning, const clv__gnn_measure_options *options, clv__tables *tables,
                            clv_error *error);

#endif
