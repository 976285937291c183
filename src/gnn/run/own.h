/* What the files of a run share: check.c and plan/make.c (made), run.c (layer after layer), program.c (executables),
 * values.c (what a task reads and writes), layer.c (threads), state.c (the file between two layers). */
#ifndef CLEAVE_GNN_RUN_OWN_H
#define CLEAVE_GNN_RUN_OWN_H

#include "gnn/data/graph.h"
#include "gnn/plan/portion.h"
#include "gnn/run/run.h"
#include "gnn/run/sweep.h"

/* A block compiled for one device, open or for one padded size. */
typedef struct clv__run_program {
  uint32_t layer, first, last, device; /* the machine's */
  bool is_static;
  clv__layer_sizes sizes; /* where it is static */
  uint32_t uses;          /* tasks of a run */
  clv__block_run run;
} clv__run_program;

typedef struct clv__run_task {
  clv__gnn_task said;
  const clv__portion *portion;
  clv__sweep sweep; /* of devices in the host's memory: the portion is run piece by piece */
  size_t program;   /* of the run's */
  double weight;    /* of progress */
} clv__run_task;

/* Where the values that cross inside of a subgraph's PEP are, in the memory that the place is given. */
typedef struct clv__run_place {
  uint32_t subgraph, cluster, block_count, run; /* run: its place within the cluster */
  uint32_t first_task[CLV__PEP_BLOCKS + 1];     /* of each block, and the end */
  uint32_t left[CLV__PEP_BLOCKS];               /* tasks of a block that are not done; under the lock */
  clv__value_set crossing;
  size_t offsets[CLV__LAYER_VALUES], size_bytes;
  uint32_t room; /* CLV__NO_ID: none (yet); under the lock */
} clv__run_place;

typedef struct clv__run_layer {
  clv__stages stages;
  clv__run_place *places; /* [k] */
  uint32_t task_count, cluster_count;
  clv__run_task *tasks;
  size_t room_bytes; /* the most that a place needs */
} clv__run_layer;

/* Memory that grows and is used again. */
typedef struct clv__run_memory {
  void *data;
  size_t size_bytes;
} clv__run_memory;

typedef struct clv__run_portion {
  clv__portion portion;
  struct clv__run_portion *next; /* of the subgraph */
} clv__run_portion;

struct clv__gnn_run {
  const clv_allocator *allocator;
  clv_devices *devices;
  const clv__gnn_model *model;
  const clv__gnn_graph *graph;
  const clv__partitioned *partitioned;
  const clv__gnn_schedule *schedule;
  clv__arena arena;
  uint32_t device_of[CLV__PEP_DEVICES]; /* the machine's device among `devices` */
  uint32_t vertex_count, task_count;
  clv__run_layer *layers;      /* [layer_count] */
  clv__run_portion **portions; /* [k] */
  clv__run_program *programs;
  size_t program_count, program_capacity;
  bool is_in_order;  /* the vertices are in the order of `rows` anyway */
  uint32_t *rows;    /* [vertex_count]: where a vertex's row lies between layers: subgraph after subgraph */
  float *degrees;    /* [vertex_count]: GCN */
  float *between[2]; /* the rows of inner layers, in turn */
  clv__run_memory scratch[CLV__PEP_DEVICES];
  /* Rooms for values that cross, given to places and back; under the lock while a layer runs. */
  clv__run_memory *rooms; /* [k] */
  bool *room_is_taken;
  /* Of the last run. */
  clv__gnn_task *said;                                           /* [task_count] */
  double *layer_ns, state_ns, weight, weight_done, weight_begun; /* begun: what had been done before */
  uint32_t first_layer, tasks_done;
};

static inline clv__csr clv__run_portion_csr(const clv__portion *portion) {
  return (clv__csr){(uint32_t)portion->sizes.targets, portion->sizes.edges, portion->offsets, portion->sources};
}

/* ---- program.c ---- */

/* The program for a task, made where it is the first that needs it; programs may move until all are there, so that the index is
 * what is given. */
clv_status clv__run_program_find(clv__gnn_run *run, const clv__gnn_task *task, bool is_static, size_t *index, clv_error *error);
clv_status clv__run_programs_open(clv__gnn_run *run, clv_error *error);
void clv__run_programs_close(clv__gnn_run *run);

/* ---- values.c ---- */

/* Rows of all vertices, at `order` (NULL: as they are numbered) of them. */
typedef struct clv__run_rows {
  float *data;
  const uint32_t *order;
  uint32_t columns;
} clv__run_rows;

/* Memory to lay out what the task reads, of its device; one task at a time uses it. */
clv_status clv__run_task_reserve(clv__gnn_run *run, const clv__run_layer *layer, const clv__run_task *task, clv_error *error);

/* Runs one task: packs, executes, lays out. `room` is where crossing values are. */
clv_status clv__run_task_execute(clv__gnn_run *run, clv__run_layer *layer, clv__run_task *task, const clv__run_rows *in,
                                 const clv__run_rows *out, char *room, uint64_t start_ns, clv_error *error);

/* ---- layer.c ---- */

clv_status clv__run_layer_execute(clv__gnn_run *run, uint32_t layer, const clv__run_rows *in, const clv__run_rows *out,
                                  const clv__gnn_run_options *options, uint64_t start_ns, clv_error *error);

/* ---- state.c ---- */

/* Hash of what a state belongs to. */
void clv__run_state_key(const clv__gnn_run *run, const clv_tensor *features, clv__hash *key);
clv_status clv__run_state_write(const char *path, const clv__hash *key, uint32_t layers_done, const float *rows, size_t count,
                                clv_error *error);
/* `layers_done` 0: there is no file. `rows`, with room for the widest layer, gets what the last layer that is done gave. */
clv_status clv__run_state_read(const clv__gnn_run *run, const char *path, const clv__hash *key, uint32_t *layers_done,
                               float *rows, clv_error *error);
/* The same of what a file holds; of the run it needs vertices, layers and their widths. `path` is for errors. */
clv_status clv__run_state_parse(const clv__gnn_run *run, const char *path, const void *data, size_t size_bytes,
                                const clv__hash *key, uint32_t *layers_done, float *rows, clv_error *error);

/* Whether the plan can be run; finds its devices among those that are open (check.c). */
clv_status clv__run_check_schedule(clv__gnn_run *run, clv_error *error);

#endif
