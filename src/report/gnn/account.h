/* A plan of GNN inference task by task and block by block, as it was predicted and, beside it, as it ran: what texts, JSON and
 * the page tell of it. */
#ifndef CLEAVE_REPORT_GNN_ACCOUNT_H
#define CLEAVE_REPORT_GNN_ACCOUNT_H

#include "gnn/plan/plan.h"
#include "gnn/run/run.h"

/* A part of a block at work on a subgraph. Times count from the begin of the first layer. */
typedef struct clv__gnn_span {
  uint32_t layer, place, cluster, subgraph, block, part, first, last, device; /* the machine's; stages, last is not in it */
  clv__layer_sizes sizes, padded;
  double start_ns, end_ns;                          /* as simulated */
  bool has_run;                                     /* the rest is set */
  double begin_ns, packed_ns, computed_ns, done_ns; /* as in clv__gnn_task */
} clv__gnn_span;

/* All tasks of one block of a cluster on one device. */
typedef struct clv__gnn_block_sum {
  uint32_t layer, cluster, block, first, last, device;
  uint32_t tasks, has_run;                      /* has_run: of the tasks */
  double predicted_ns, measured_ns, packing_ns; /* the latter two of those that ran; packing is in measured */
} clv__gnn_block_sum;

typedef struct clv__gnn_layer_sum {
  double start_ns, predicted_ns, begin_ns, measured_ns; /* begin: of the measured one */
  bool has_run;
} clv__gnn_layer_sum;

typedef struct clv__gnn_device_sum {
  double predicted_ns, measured_ns; /* at work; predicted with switches */
} clv__gnn_device_sum;

typedef struct clv__gnn_account {
  const clv__gnn_plan *plan;
  const clv__stages *stages;     /* [layer_count] */
  const clv__gnn_record *record; /* NULL: it has not run */
  uint32_t span_count, block_count, cluster_count, switches;
  clv__gnn_span *spans;       /* by layer and place */
  clv__gnn_block_sum *blocks; /* by layer, cluster and block */
  clv__gnn_layer_sum *layers;
  clv__gnn_device_sum devices[CLV__PEP_DEVICES];
  clv__gnn_overhead overhead; /* as planned */
  uint64_t rows, edges;       /* that the blocks work on without it: sums over the parts */
} clv__gnn_account;

/* `record` (may be NULL) is of a run by this plan; all of it, plan and stages outlive the account, which lives in the arena. */
clv_status clv__gnn_account_make(clv__arena *arena, const clv__gnn_plan *plan, const clv__stages *stages,
                                 const clv__gnn_record *record, clv__gnn_account *account, clv_error *error);

/* "gather to normalize"; a block of one stage: its name. */
void clv__gnn_block_name(const clv__stages *stages, uint32_t first, uint32_t last, char *name, size_t room);

#endif
