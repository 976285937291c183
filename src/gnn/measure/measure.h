/* Measuring the tables that plans are priced with: the blocks of a layer that plans may give a device, over rows and edges, as a
 * run would have them; copies between each device and the host; gathering in the host's memory; what merging, switching and
 * exchanging take. Needs a quiet machine to be of use. */
#ifndef CLEAVE_GNN_MEASURE_MEASURE_H
#define CLEAVE_GNN_MEASURE_MEASURE_H

#include "gnn/model/block.h"
#include "gnn/planning.h"
#include "gnn/tables/tables.h"

typedef struct clv__gnn_measure_progress {
  const char *device;
  uint32_t layer, done, of;
  double left_s; /* of time; negative: nobody knows yet */
} clv__gnn_measure_progress;

typedef struct clv__gnn_measure_options {
  uint32_t runs;  /* of each thing; what takes long gets fewer */
  uint32_t steps; /* of the sizes: geometric, from the smallest share of any subgraph to the whole graph */
  uint64_t seed;
  /* About how long measuring blocks may take. 0: as long as it takes, and of every block that a device runs. Otherwise blocks are
   * left out that no plan on these devices (and those that the tables have) can hold, those that take longer than their whole
   * layer does on the same device, and, of all but whole layers, what there is no time for: the largest sizes. */
  double limit_s;
  /* Nothing is run: devices are asked what their own speed models say, for virtual ones. What they say is marked as synthetic;
   * gathering in the host's memory is measured all the same; of what schedules take nothing is said. A device without a model is
   * CLV_NOT_SUPPORTED. */
  bool asks_models;
  bool only_copies; /* and threads: of devices whose blocks were measured elsewhere, which are not said to be these */
  /* May be NULL; false ends it with CLV_CANCELLED. */
  bool (*progress)(void *user_data, const clv__gnn_measure_progress *progress);
  void *user_data;
} clv__gnn_measure_options;
#define CLV__GNN_MEASURE_OPTIONS_INIT \
  { 5, 6, 1, 0, false, false, NULL, NULL }

/* What became of the blocks. */
typedef struct clv__gnn_measured {
  uint32_t blocks, needless, cut_off; /* all; left out since their layer takes less time; without their largest sizes, or any */
  uint32_t points;
} clv__gnn_measured;

/* Measures what the planning's cuts need of all of its devices into `tables`, and fits them. Of a device whose memory is not the
 * host's a block's time is that of a run less that of copying what goes in and out, which has tables of its own. What a device
 * has no memory for is kept as infeasible; other failures end it. Executables of one size are not kept in the cache. `measured`
 * may be NULL. */
clv_status clv__gnn_measure(const clv__gnn_planning *planning, const clv__gnn_measure_options *options, clv__tables *tables,
                            clv__gnn_measured *measured, clv_error *error);

#endif
