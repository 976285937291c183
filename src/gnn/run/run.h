/* Executes a plan: layer after layer, subgraphs in the plan's order, each by its PEP, with all devices working in parallel.
 * Between two layers, the subgraphs exchange their owned rows. The result is therefore exact for any depth.
 *
 * Every device has one thread, which runs its tasks in subgraph order, as simulate.h describes. A task starts when the
 * previous block is done and, within a cluster, when the next block has finished the subgraph queue_depth positions earlier.
 * Values that cross from a block to a later one are complete in host memory: each part writes its own rows there, and gathers
 * from there the rows that it reads. */
#ifndef CLEAVE_GNN_RUN_RUN_H
#define CLEAVE_GNN_RUN_RUN_H

#include "gnn/model/block.h"
#include "gnn/plan/pep.h"

/* Defines what runs, and in which order: for each layer one turn per subgraph, with its PEP. Only a PEP's blocks,
 * devices, shares and padded sizes are used. Padded sizes that are too small are recomputed. All data must outlive the run. */
typedef struct clv__gnn_turn {
  uint32_t subgraph;
  const clv__pep *pep;
} clv__gnn_turn;

typedef struct clv__gnn_schedule {
  const clv__machine *machine; /* its devices are matched by name with the open devices */
  uint32_t layer_count, k;
  const clv__gnn_turn *const *layers; /* [layer_count][k] */
} clv__gnn_schedule;

typedef struct clv__gnn_run clv__gnn_run;

/* Compiles every block of the schedule for each of its devices: for any size if the device accepts that, otherwise for padded
 * sizes. `graph` provides the features, and the hash that identifies a state. `partitioned` has the rows for aggregation, with
 * self loops for GCN and GAT. All must outlive the run. Errors: those of clv__gnn_check_fit(); CLV_INVALID_ARGUMENT if
 * schedule, model and subgraphs do not match; CLV_TOO_LARGE if a block does not fit its device's memory (plan/memory.h); those of
 * blocks, prefixed with layer, block and device. */
clv_status clv__gnn_run_create(clv_devices *devices, const clv__gnn_model *model, const clv__gnn_graph *graph,
                               const clv__partitioned *partitioned, const clv__gnn_schedule *schedule, clv__gnn_run **run,
                               clv_error *error);
void clv__gnn_run_destroy(clv__gnn_run *run); /* accepts NULL */
/* Closes all blocks, which frees the devices' memory. The record of the last run stays valid; the run must not run again. */
void clv__gnn_run_close(clv__gnn_run *run); /* accepts NULL */

typedef struct clv__gnn_progress {
  uint32_t layer, layer_count;
  uint32_t done, of;        /* number of tasks over all layers */
  double elapsed_s, left_s; /* left_s uses predicted times if available, otherwise rows and edges; negative: not known yet */
} clv__gnn_progress;

typedef struct clv__gnn_run_options {
  /* Called after each task, one call at a time, on a thread of the run. Returning false cancels the run. May be NULL. */
  bool (*progress)(void *user_data, const clv__gnn_progress *progress);
  void *user_data;
  /* File that keeps the rows after each layer except the last, so that a killed run can resume; NULL: none. Leftovers of
   * killed writers next to it are removed first. The file remains after the run, until clv__gnn_run_forget(). */
  const char *state_path;
  bool resume; /* resume from the file if it exists; CLV_INVALID_ARGUMENT if it belongs to another graph, model or plan */
} clv__gnn_run_options;
#define CLV__GNN_RUN_OPTIONS_INIT \
  { NULL, NULL, NULL, false }

/* Runs all layers. `features` is f32 [n, F] (NULL: the graph's) and `out` is f32 [n, width of the last layer]; both must have
 * data. `options` may be NULL. The first error of any device ends the run, prefixed with layer, subgraph, block and device;
 * `out` is then unspecified. Returns CLV_CANCELLED if cancelled. Not reentrant: one call at a time. */
clv_status clv__gnn_run_execute(clv__gnn_run *run, const clv_tensor *features, clv_tensor *out,
                                const clv__gnn_run_options *options, clv_error *error);

/* Removes a run's state file. Call it once the result is saved. */
void clv__gnn_run_forget(const char *state_path);

/* ---- Results of a run ---- */

typedef struct clv__gnn_task {
  uint32_t layer, turn, cluster;                       /* clusters are counted from 0 in each layer */
  uint32_t subgraph, block, part, first, last, device; /* device: index in the machine */
  clv__layer_sizes sizes, padded;                      /* equal unless the device needs fixed shapes */
  double predicted_ns;                                 /* 0: the PEP has no prediction */
  uint64_t begin_ns, packed_ns, computed_ns,
      end_ns; /* since the start of the layers: begin to packed is gathering and padding; computed to end is laying out */
} clv__gnn_task;

/* What the last run did, by layer and turn. Layers before `first_layer` were resumed and have no times. */
typedef struct clv__gnn_record {
  const clv__gnn_task *tasks;
  uint32_t task_count, first_layer;
  const double *layer_ns;           /* [layer_count] */
  double measured_ns;               /* time of all executed layers, without the state file */
  double state_ns;                  /* time spent on the state file */
  uint32_t cluster_count, switches; /* clusters over all layers; times that a device changed to another cluster */
  uint32_t executables;             /* number of sessions created */
  uint64_t halo_rows, packed_rows;  /* rows gathered in addition to the targets; rows added as padding */
  uint64_t packed_edges;            /* edges added as padding */
  /* By device of the machine: the most memory that its open blocks took at one time; 0: it has no limit. */
  uint64_t taken_bytes[CLV__PEP_DEVICES];
} clv__gnn_record;

void clv__gnn_run_record(const clv__gnn_run *run, clv__gnn_record *record);

#endif
