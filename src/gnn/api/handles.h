/* The objects of cleave/gnn.h. Each holds an object of the library and what its functions need besides: the context, names for
 * messages, times. */
#ifndef CLEAVE_GNN_API_HANDLES_H
#define CLEAVE_GNN_API_HANDLES_H

#include <pthread.h>
#include <stdatomic.h>

#include "cleave/gnn.h"
#include "gnn/planning.h"
#include "gnn/run/account.h"
#include "gnn/run/single.h"

enum { CLV__HASH_TEXT = 2 * CLV__HASH_BYTES + 1 };

struct clv_gnn_graph {
  clv_context *context;
  clv__gnn_graph *graph;
  char *name;
  char hash[CLV__HASH_TEXT];
  double load_ns;    /* the time to make or read the graph and its features */
  atomic_uint users; /* plans and runs that exist */
};

struct clv_gnn_parts {
  const clv_allocator *allocator;
  clv__membership membership;
};

struct clv_gnn_model {
  clv_context *context;
  clv__gnn_model *model;
  clv__stages *stages; /* [layer_count] */
  char *name;
  char hash[CLV__HASH_TEXT];
  double load_ns;
};

struct clv_gnn_plan {
  const clv_allocator *allocator;
  clv_devices *devices;
  const clv_gnn_model *model;
  clv_gnn_graph *graph;
  clv__arena arena;
  clv__gnn_plan *plan;
  clv__gnn_account account;   /* without a run */
  clv__gnn_planning planning; /* empty for a plan from a file */
  clv__tables tables;         /* the prices that the planning refers to */
  clv__choice choice;
  uint32_t top_k;
  double cut_ns, plan_ns;
  pthread_mutex_t lock;         /* protects `partitioned` */
  clv__partitioned partitioned; /* built for the first run, or for a plan from a file; subgraphs NULL: not built */
};

enum { CLV__GNN_WARM_TIMES = 1000 };

/* The times of a run's executions. */
typedef struct clv__gnn_times {
  uint32_t count; /* of all executions */
  double first_ns, last_ns;
  uint64_t
      warm_ns[CLV__GNN_WARM_TIMES]; /* of the latest ones, without the first: execution i + 1 is at i % CLV__GNN_WARM_TIMES */
} clv__gnn_times;

struct clv_gnn_run {
  const clv_allocator *allocator;
  clv_devices *devices;
  const clv_gnn_model *model;
  clv_gnn_graph *graph;
  clv_gnn_plan *plan; /* NULL: the graph runs in one piece */
  pthread_mutex_t lock;
  clv__arena arena;
  clv__gnn_schedule schedule;
  clv__gnn_run *run;       /* of a plan */
  clv__gnn_single *single; /* without a plan */
  uint32_t device;         /* of `single` */
  bool is_closed;          /* clv_gnn_run_verify() closed the blocks: the next execution compiles them again */
  clv__gnn_record record;
  clv__arena account_arena;
  clv__gnn_account account; /* of the last execution; plan NULL: not made yet */
  clv__gnn_times times;
  double compile_ns, state_ns, difference; /* difference: the last that clv_gnn_run_verify() found; negative: not verified */
  clv_tensor output;                       /* the run's own memory for results; its data is NULL until it is needed */
};

/* The mutable graph of a const handle: plans and runs count themselves as its users. Ends with clv__gnn_graph_unuse(). */
clv_gnn_graph *clv__gnn_graph_use(const clv_gnn_graph *graph);
void clv__gnn_graph_unuse(clv_gnn_graph *graph); /* accepts NULL */

/* CLV_INVALID_ARGUMENT, with the name, if an argument is NULL. */
clv_status clv__argument_check(const void *argument, const char *name, clv_error *error);

/* Partitions the graph as clv_gnn_plan_make() does, but chooses nothing: only `planning` is set. Ends with
 * clv_gnn_plan_destroy(). */
clv_status clv__gnn_plan_cut(const clv_gnn_model *model, const clv_gnn_graph *graph, clv_devices *devices,
                             const clv_gnn_plan_options *options, clv_gnn_plan **plan, clv_error *error);
/* The subgraphs of the plan, built on the first call. */
clv_status clv__gnn_plan_partition(clv_gnn_plan *plan, const clv__partitioned **partitioned, clv_error *error);
/* The last execution's account, for a run that is locked. CLV_INVALID_ARGUMENT if there was none, CLV_NOT_SUPPORTED without a
 * plan. */
clv_status clv__gnn_run_account(clv_gnn_run *run, const clv__gnn_account **account, clv_error *error);
/* The median of the latest executions, without the first; negative if there was only one. */
double clv__gnn_times_warm_ns(const clv__gnn_times *times);
/* Copies a task for callers. */
bool clv__gnn_task_fill(const clv__gnn_account *account, uint32_t index, clv_gnn_task_info *info);

#endif
