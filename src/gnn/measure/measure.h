/* Measures the cost tables that price plans: the blocks of a layer that plans may give to a device, for several numbers of rows
 * and edges, executed as in a run; copies between each device and the host; gathering in host memory; the costs of merging,
 * switching and exchanging. The results are only useful if the machine is otherwise idle. */
#ifndef CLEAVE_GNN_MEASURE_MEASURE_H
#define CLEAVE_GNN_MEASURE_MEASURE_H

#include "gnn/model/block.h"
#include "gnn/planning.h"
#include "gnn/tables/tables.h"

typedef struct clv__gnn_measure_progress {
  const char *device;
  uint32_t layer, done, of; /* `done` of `of` sizes are measured so far */
  double left_s;            /* remaining time; negative: not known yet */
} clv__gnn_measure_progress;

typedef struct clv__gnn_measure_options {
  uint32_t runs; /* runs per measurement; fewer if a run takes long */
  /* Number of ranges of sizes, in a geometric series from the smallest share of any subgraph to the whole graph. A block is
   * measured at up to two sizes of each range. */
  uint32_t steps;
  uint64_t seed;
  /* Approximate time limit for measuring blocks. 0: no limit, and every block that a device runs is measured. Otherwise these
   * are omitted: blocks that no plan on these devices (and those in the tables) can contain; blocks that take longer than
   * their whole layer on the same device; and, except for whole layers, the largest sizes if time runs out. */
  double limit_s;
  /* Runs nothing: queries the devices' own speed models, for virtual devices. The results are marked as synthetic. Gathering
   * in host memory is still measured. The costs of merging, switching and exchanging are not recorded. Returns
   * CLV_NOT_SUPPORTED for a device without a model. */
  bool asks_models;
  bool only_copies; /* measures only copies, merging and exchanging, for devices whose blocks were measured elsewhere; records
                       no device fingerprints */
  /* May be NULL. Returning false cancels the measurement with CLV_CANCELLED. */
  bool (*progress)(void *user_data, const clv__gnn_measure_progress *progress);
  void *user_data;
} clv__gnn_measure_options;
#define CLV__GNN_MEASURE_OPTIONS_INIT \
  { 5, 6, 1, 0, false, false, NULL, NULL }

/* Statistics of the measured blocks. */
typedef struct clv__gnn_measured {
  uint32_t blocks, needless, cut_off; /* all blocks; blocks omitted because their whole layer takes less time; blocks whose
                                         largest sizes, or all sizes, were omitted for lack of time */
  uint32_t points;
} clv__gnn_measured;

/* Measures the costs of the subgraphs of the planning on all of its devices, adds them to `tables`, and fits the tables. If a
 * device does not use host memory, a block's time is the run's time minus the time of copies in and out, which have their own
 * tables. A size that exceeds the device's memory is recorded as infeasible; other failures end the measurement. Executables
 * for a single size are not kept in the cache. `measured` may be NULL. */
clv_status clv__gnn_measure(const clv__gnn_planning *planning, const clv__gnn_measure_options *options, clv__tables *tables,
                            clv__gnn_measured *measured, clv_error *error);

#endif
