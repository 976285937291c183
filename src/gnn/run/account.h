/* The predicted times of a GNN plan and the measured times of a run, by task, block, layer and device. Texts, JSON and the page
 * show these figures. */
#ifndef CLEAVE_GNN_RUN_ACCOUNT_H
#define CLEAVE_GNN_RUN_ACCOUNT_H

#include "gnn/plan/plan.h"
#include "gnn/run/run.h"

/* One task: a block, or one device's part of a block, runs on a subgraph. `turn` is the position of the subgraph in the layer's
 * order. The block consists of stages `first` up to but excluding `last`. `device` is an index in the plan's machine. Times count
 * from the start of the first layer. */
typedef struct clv__gnn_span {
  uint32_t layer, turn, cluster, subgraph, block, part, first, last, device;
  clv__layer_sizes sizes, padded;
  double start_ns, end_ns;                          /* as simulated */
  bool has_run;                                     /* the task ran, and the next four fields are set */
  double begin_ns, packed_ns, computed_ns, done_ns; /* as in clv__gnn_task */
} clv__gnn_span;

/* All tasks of one block of a cluster on one device. */
typedef struct clv__gnn_block_sum {
  uint32_t layer, cluster, block, first, last, device;
  uint32_t tasks, has_run;                      /* has_run: how many of the tasks ran */
  double predicted_ns, measured_ns, packing_ns; /* measured (including packing) and packing: only of tasks that ran */
} clv__gnn_block_sum;

typedef struct clv__gnn_layer_sum {
  double start_ns, predicted_ns, begin_ns, measured_ns; /* start and duration, as simulated and in the run */
  bool has_run;
} clv__gnn_layer_sum;

typedef struct clv__gnn_device_sum {
  /* The time in which the device is busy; the predicted one includes the time of switching executables. */
  double predicted_ns, measured_ns;
} clv__gnn_device_sum;

typedef struct clv__gnn_account {
  const clv__gnn_plan *plan;
  const clv__stages *stages;     /* [layer_count] */
  const clv__gnn_record *record; /* NULL if the plan was not run */
  uint32_t span_count, block_count, cluster_count, switches;
  clv__gnn_span *spans;       /* by layer and turn */
  clv__gnn_block_sum *blocks; /* by layer, cluster and block */
  clv__gnn_layer_sum *layers;
  clv__gnn_device_sum devices[CLV__PEP_DEVICES];
  clv__gnn_overhead overhead; /* the overhead of the tasks as they ran or, without a run, as planned */
  uint64_t rows, edges;       /* processed by the blocks of all subgraphs, excluding the overhead */
} clv__gnn_account;

/* Fills `account`, with memory from the arena. `record` may be NULL; otherwise it must be of a run with this plan. The record,
 * the plan and the stages must outlive the account. */
clv_status clv__gnn_account_make(clv__arena *arena, const clv__gnn_plan *plan, const clv__stages *stages,
                                 const clv__gnn_record *record, clv__gnn_account *account, clv_error *error);

/* Names a block by its first and last stage: "gather to normalize". A block of one stage has the stage's name. */
void clv__gnn_block_name(const clv__stages *stages, uint32_t first, uint32_t last, char *name, size_t room);

#endif
