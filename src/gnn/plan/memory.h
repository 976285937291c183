/* The memory of devices that have a limit. Plans and runs both ask here, so that a plan that is called feasible runs.
 *
 * A device's budget is its limit, divided by the number of devices of the plan that share its memory space. A part fits if its
 * block, compiled for exactly its sizes, fits the budget alone (clv__block_need_of()). The blocks of a run are all open at the
 * same time if the budget allows that. If not, the device's least recently used blocks are closed to make room (run/block.c). So
 * a run takes at most the smaller of the budget and the sum over its blocks. The values that wait between two blocks, of up to
 * queue_depth subgraphs, are in host memory. */
#ifndef CLEAVE_GNN_PLAN_MEMORY_H
#define CLEAVE_GNN_PLAN_MEMORY_H

#include "gnn/model/block_memory.h"

enum { CLV__MEMORY_DEVICES = 4 };

/* A block on a device, at one size. */
typedef struct clv__memory_key {
  uint32_t layer, device, first, last; /* device: index in the machine */
  clv__layer_sizes sizes;
} clv__memory_key;

typedef struct clv__memory_entry {
  clv__memory_key key;
  clv__block_need need;
  bool is_counted;                /* whether the current count of a run's blocks contains the entry */
  struct clv__memory_entry *next; /* the next entry of the same layer, device and stages */
} clv__memory_entry;

typedef struct clv__gnn_memory {
  clv__arena *arena;
  clv_devices *devices;
  const clv__stages *stages; /* [layer_count] */
  uint32_t layer_count, device_count, device_of[CLV__MEMORY_DEVICES];
  uint64_t limit_bytes[CLV__MEMORY_DEVICES], budget_bytes[CLV__MEMORY_DEVICES]; /* 0: no limit */
  clv__memory_entry **lists; /* the answers so far, by layer, device and stages */
  clv_status status;         /* the first failure of clv__memory_fits(), which reports only yes or no */
  clv_error error;
  /* The largest need, and the sum of the needs, of the counted blocks. */
  uint64_t most_bytes[CLV__MEMORY_DEVICES], sum_bytes[CLV__MEMORY_DEVICES];
} clv__gnn_memory;

/* Whether blocks on the device are compiled for exactly the sizes that they run with. True also for devices that accept any
 * size but have a memory limit, because the memory of a block is known in advance only if its sizes are fixed. */
static inline bool clv__device_runs_fixed(const clv__device *device) {
  return device->info.static_shapes_only || device->info.memory_limit_bytes > 0;
}

/* `device_of` maps the machine's devices to open devices, and is copied. All other arguments must outlive `memory`. The arena
 * owns what `memory` points to. */
clv_status clv__memory_init(clv__gnn_memory *memory, clv__arena *arena, clv_devices *devices, const uint32_t *device_of,
                            uint32_t device_count, const clv__stages *stages, uint32_t layer_count, clv_error *error);

/* Returns the need of a block on a device with a limit. Each answer is kept, so that a device is asked only once about a block
 * and size. */
clv_status clv__gnn_memory_need(clv__gnn_memory *memory, const clv__memory_key *key, clv__memory_entry **entry, clv_error *error);
/* Returns whether the block fits the budget of its device; true if the device has no limit. Sets `bytes` to the block's need; 0
 * if the device has no limit. */
bool clv__memory_fits(clv__gnn_memory *memory, const clv__memory_key *key, uint64_t *bytes);

/* Starts counting the blocks of a run: sets the sums to 0. */
void clv__memory_count_none(clv__gnn_memory *memory);
/* Adds a block of the run, at one size, to the sums of its device. The same block at the same size is counted only once. Returns
 * CLV_TOO_LARGE if the block does not fit the device's budget. Does nothing if the device has no limit. */
clv_status clv__gnn_memory_count(clv__gnn_memory *memory, const clv__memory_key *key, clv_error *error);
/* The most memory of the device that a run with the counted blocks takes; 0 without a limit. */
static inline uint64_t clv__memory_taken(const clv__gnn_memory *memory, uint32_t device) {
  uint64_t sum = memory->sum_bytes[device], budget = memory->budget_bytes[device];
  return sum < budget ? sum : budget;
}

#endif
