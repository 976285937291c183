/* Shared by the files of a run: check.c and make.c (preparing a run), run.c (layer after layer), block.c (executables),
 * values.c (a task's inputs and outputs), layer.c (threads), state.c (the file between two layers). */
#ifndef CLEAVE_GNN_RUN_OWN_H
#define CLEAVE_GNN_RUN_OWN_H

#include <pthread.h>

#include "gnn/data/graph.h"
#include "gnn/plan/memory.h"
#include "gnn/plan/portion.h"
#include "gnn/run/run.h"
#include "gnn/run/sweep.h"

/* A block compiled for one device, either for any size or for one size. */
typedef struct clv__run_block {
  uint32_t layer, first, last, device; /* device: index in the machine */
  bool is_static;                      /* the device needs fixed shapes: values are padded */
  bool is_fixed;                       /* compiled for `sizes`: is_static, or the device has a memory limit */
  clv__layer_sizes sizes;
  uint32_t uses; /* the number of the run's tasks that use it */
  clv__block_run run;
  /* For devices with a memory limit; guarded by the run's memory_lock. */
  bool is_open;
  uint64_t need_bytes, used_at; /* used_at: the value of clv__run_space.uses at the last use */
} clv__run_block;

typedef struct clv__run_task {
  clv__gnn_task said;
  const clv__portion *portion;
  clv__sweep sweep; /* for devices in host memory: runs the portion piece by piece */
  size_t block;     /* index among the run's blocks */
  double weight;    /* how much the task counts in the progress */
} clv__run_task;

/* The turn of one subgraph in a layer: its tasks, and the offsets of the values that cross between its blocks, in the room
 * assigned to the turn. */
typedef struct clv__run_turn {
  uint32_t subgraph, cluster, block_count, run; /* run: the turn's position within its cluster */
  uint32_t first_task[CLV__PEP_BLOCKS + 1];     /* index of each block's first task; the last entry is the end of the tasks */
  uint32_t left[CLV__PEP_BLOCKS];               /* unfinished tasks per block; guarded by the lock */
  clv__value_set crossing;
  size_t offsets[CLV__LAYER_VALUES], size_bytes;
  uint32_t room; /* CLV__NO_ID: none (yet); guarded by the lock */
} clv__run_turn;

typedef struct clv__run_layer {
  clv__stages stages;
  clv__run_turn *turns; /* [k] */
  uint32_t task_count, cluster_count;
  clv__run_task *tasks;
  size_t room_bytes; /* the largest size that a turn needs */
} clv__run_layer;

/* A buffer that grows and is reused. */
typedef struct clv__run_memory {
  void *data;
  size_t size_bytes;
} clv__run_memory;

/* The memory of a device with a limit: that of its open blocks. */
typedef struct clv__run_space {
  uint64_t open_bytes, taken_bytes, uses; /* open: the sum of the open blocks' needs; taken: the most that open blocks took at one
                                             time, as their sessions report it; uses: how often a block was requested */
} clv__run_space;

typedef struct clv__run_portion {
  clv__portion portion;
  struct clv__run_portion *next; /* next portion of the same subgraph */
} clv__run_portion;

struct clv__gnn_run {
  const clv_allocator *allocator;
  clv_devices *devices;
  const clv__gnn_model *model;
  const clv__gnn_graph *graph;
  const clv__partitioned *partitioned;
  const clv__gnn_schedule *schedule;
  clv__arena arena;
  uint32_t device_of[CLV__PEP_DEVICES]; /* maps the machine's devices to indices in `devices` */
  uint32_t vertex_count, task_count;
  clv__run_layer *layers;      /* [layer_count] */
  clv__run_portion **portions; /* [k] */
  clv__run_block *blocks;
  size_t block_count, block_capacity;
  bool is_in_order;  /* vertex order equals the order of `rows` */
  uint32_t *rows;    /* [vertex_count]: row of each vertex in `between`, where the vertices are sorted by subgraph */
  float *degrees;    /* [vertex_count]: in-edges of each vertex; only for GCN */
  float *between[2]; /* the results of all layers but the last; consecutive layers alternate between the two buffers */
  clv__run_memory scratch[CLV__PEP_DEVICES];
  clv__gnn_memory memory;
  pthread_mutex_t memory_lock;
  clv__run_space spaces[CLV__PEP_DEVICES];
  /* Rooms: buffers for the values that cross between blocks. A turn takes a room and returns it when its last block is done.
   * The lock guards them while a layer runs. */
  clv__run_memory *rooms; /* [k] */
  bool *room_is_taken;
  /* Results of the last run. */
  clv__gnn_task *said; /* [task_count] */
  /* weight_begun: the weight of the layers that were done before this run. */
  double *layer_ns, state_ns, weight, weight_done, weight_begun;
  uint32_t first_layer, tasks_done;
};

static inline clv__csr clv__run_portion_csr(const clv__portion *portion) {
  return (clv__csr){(uint32_t)portion->sizes.targets, portion->sizes.edges, portion->offsets, portion->sources};
}

/* ---- block.c ---- */

/* Finds the block for a task, or creates it if the task is the first to need it. Returns its index, because blocks may
 * move until all exist. */
clv_status clv__run_block_find(clv__gnn_run *run, const clv__gnn_task *task, bool is_static, size_t *index, clv_error *error);
clv_status clv__run_blocks_open(clv__gnn_run *run, clv_error *error);
/* Opens the block if it is closed. Closes other blocks of its device if the memory is needed, the least recently used first.
 * Called by the device's thread before each task. */
clv_status clv__run_block_hold(clv__gnn_run *run, clv__run_block *block, clv_error *error);
void clv__run_blocks_close(clv__gnn_run *run);

/* ---- values.c ---- */

/* The rows of all vertices. `order` gives each vertex's row; NULL: vertex order. */
typedef struct clv__run_rows {
  float *data;
  const uint32_t *order;
  uint32_t columns;
} clv__run_rows;

/* Makes the device's scratch memory large enough for laying out the task's inputs. Only one task at a time uses that memory. */
clv_status clv__run_task_reserve(clv__gnn_run *run, const clv__run_layer *layer, const clv__run_task *task, clv_error *error);

/* Runs one task: packs its inputs, executes its block, and lays out the outputs. `room` holds the values that cross between
 * blocks. */
clv_status clv__run_task_execute(clv__gnn_run *run, clv__run_layer *layer, clv__run_task *task, const clv__run_rows *in,
                                 const clv__run_rows *out, char *room, uint64_t start_ns, clv_error *error);

/* ---- layer.c ---- */

clv_status clv__run_layer_execute(clv__gnn_run *run, uint32_t layer, const clv__run_rows *in, const clv__run_rows *out,
                                  const clv__gnn_run_options *options, uint64_t start_ns, clv_error *error);

/* ---- state.c ---- */

/* Hashes everything that a state depends on. */
void clv__run_state_key(const clv__gnn_run *run, const clv_tensor *features, clv__hash *key);
clv_status clv__run_state_write(const char *path, const clv__hash *key, uint32_t layers_done, const float *rows, size_t count,
                                clv_error *error);
/* Reads a state. `layers_done` is 0 if there is no file. `rows` must have room for the widest layer; it receives the result of
 * the last completed layer. */
clv_status clv__run_state_read(const clv__gnn_run *run, const char *path, const clv__hash *key, uint32_t *layers_done,
                               float *rows, clv_error *error);
/* Like clv__run_state_read(), but parses a file's content. Uses only the run's vertices, layers and widths. `path` is for
 * error messages. */
clv_status clv__run_state_parse(const clv__gnn_run *run, const char *path, const void *data, size_t size_bytes,
                                const clv__hash *key, uint32_t *layers_done, float *rows, clv_error *error);

/* check.c: checks that the schedule can run, and finds its devices among the open ones. */
clv_status clv__run_check_schedule(clv__gnn_run *run, clv_error *error);

#endif
