/* A plan at work: layer after layer, subgraphs in the order of the plan, each by its PEP, all devices at the same time. Between
 * two layers the owned rows of all subgraphs are exchanged, which makes any depth exact.
 *
 * Every device has one thread, which does its tasks in the order of the subgraphs, as simulate.h has it: a task begins when the
 * block before it is done, and, within a cluster, when the block behind it is done with the subgraph queue_depth places earlier.
 * Values that cross from a block to a later one are whole in the host's memory: each part writes its rows of them. Of rows that
 * come from elsewhere each part gathers those that it reads. */
#ifndef CLEAVE_GNN_RUN_RUN_H
#define CLEAVE_GNN_RUN_RUN_H

#include "gnn/model/block.h"
#include "gnn/plan/pep.h"

/* What runs in which order: of each layer all subgraphs, once, with their PEPs. Of a PEP only blocks, devices, shares and padded
 * sizes are looked at (sizes that are too small are not used: they are worked out again). All of it outlives the run. */
typedef struct clv__gnn_place {
  uint32_t subgraph;
  const clv__pep *pep;
} clv__gnn_place;

typedef struct clv__gnn_schedule {
  const clv__machine *machine; /* its devices are found by name among those that run */
  uint32_t layer_count, k;
  const clv__gnn_place *const *layers; /* [layer_count][k] */
} clv__gnn_schedule;

typedef struct clv__gnn_run clv__gnn_run;

/* Compiles every block that the schedule has, for each of its devices: open where the device takes any shape, padded where it
 * does not. `graph` has the features, and the hash that a state is kept under; `partitioned` is of the rows that are aggregated
 * over: with self loops for GCN and GAT. All outlive the run. Errors: those of clv__gnn_check_fit(); CLV_INVALID_ARGUMENT where
 * schedule, model and subgraphs do not fit; those of blocks, with layer, block and device in front. */
clv_status clv__gnn_run_create(clv_devices *devices, const clv__gnn_model *model, const clv__gnn_graph *graph,
                               const clv__partitioned *partitioned, const clv__gnn_schedule *schedule, clv__gnn_run **run,
                               clv_error *error);
void clv__gnn_run_destroy(clv__gnn_run *run); /* accepts NULL */

typedef struct clv__gnn_progress {
  uint32_t layer, layer_count;
  uint32_t done, of; /* tasks of all layers */
  double elapsed_s,
      left_s; /* left: by predicted times as far as there are any, else by rows and edges; negative: not known yet */
} clv__gnn_progress;

typedef struct clv__gnn_run_options {
  /* Called after each task, one call at a time, in a thread of the run; false cancels it. May be NULL. */
  bool (*progress)(void *user_data, const clv__gnn_progress *progress);
  void *user_data;
  /* Where the rows are kept after each layer but the last, so that a run that was killed can go on; NULL: nowhere. What writers
   * that were killed left beside it is removed first. The file stays when the run is over, until clv__gnn_run_forget(). */
  const char *state_path;
  bool resume; /* goes on with the file where there is one: of another graph, model or plan is CLV_INVALID_ARGUMENT */
} clv__gnn_run_options;
#define CLV__GNN_RUN_OPTIONS_INIT \
  { NULL, NULL, NULL, false }

/* Runs all layers. `features` f32 [n, F] (NULL: the graph's), `out` f32 [n, width of the last layer], both with data. `options`
 * may be NULL. The first error of any device ends it, with layer, subgraph, block and device in front; what `out` holds is then
 * unspecified. CLV_CANCELLED. One call at a time. */
clv_status clv__gnn_run_execute(clv__gnn_run *run, const clv_tensor *features, clv_tensor *out,
                                const clv__gnn_run_options *options, clv_error *error);

/* Removes the rows that a run kept: for when its result is in safety. */
void clv__gnn_run_forget(const char *state_path);

/* ---- What it came to ---- */

typedef struct clv__gnn_task {
  uint32_t layer, place, cluster;                      /* clusters are counted from 0 in each layer */
  uint32_t subgraph, block, part, first, last, device; /* the machine's */
  clv__layer_sizes sizes, padded;                      /* the same unless the device is static */
  double predicted_ns;                                 /* 0: the PEP says nothing */
  uint64_t begin_ns, packed_ns, computed_ns, end_ns;   /* of the layers' time: gathering and padding first, laying out last */
} clv__gnn_task;

/* Of the last run, by layer and place. `first_layer`: what was resumed has no times. */
typedef struct clv__gnn_record {
  const clv__gnn_task *tasks;
  uint32_t task_count, first_layer;
  const double *layer_ns;           /* [layer_count] */
  double measured_ns;               /* all layers that ran, without what follows */
  double state_ns;                  /* spent on the state's file */
  uint32_t cluster_count, switches; /* clusters of all layers; a device's changes from one to another */
  uint32_t executables;             /* sessions that were made */
  uint64_t halo_rows, packed_rows;  /* rows gathered beside the targets; rows that static devices got beyond those there are */
  uint64_t packed_edges;            /* the same of edges */
} clv__gnn_record;

void clv__gnn_run_record(const clv__gnn_run *run, clv__gnn_record *record);

#endif
