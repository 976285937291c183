/* The memory of a block, before and after it is compiled, and where its executables came from. */
#ifndef CLEAVE_GNN_MODEL_BLOCK_MEMORY_H
#define CLEAVE_GNN_MODEL_BLOCK_MEMORY_H

#include "gnn/model/block.h"

/* The memory of a device that a block of fixed sizes needs while it is open: its weights, the values that it reads and computes,
 * its executable and its scratch. It is never less than what a session of the block takes. */
typedef struct clv__block_need {
  /* `scratch_bytes` includes the executable. `total_bytes` is the sum of the other three. */
  uint64_t weight_bytes, value_bytes, scratch_bytes, total_bytes;
  bool fits; /* whether total_bytes fits the budget; if false, the total is an estimate */
} clv__block_need;

/* Computes the need of a block of fixed form. Asks the device's compiler for the scratch, unless the block exceeds the budget
 * even without scratch, or is far below it even with a generous guess. */
clv_status clv__block_need_of(clv_devices *devices, uint32_t device, const clv__block *block, uint64_t budget_bytes,
                              clv__block_need *need, clv_error *error);

/* Bytes of weights, executables, values and scratch for the shapes of the last run, in the devices' memory space `space`. */
uint64_t clv__block_peak_bytes(const clv__block_run *run, uint32_t space, clv_devices *devices);

/* Returns whether every partition was compiled for this run, rather than found in memory or in the cache. */
bool clv__block_was_compiled(const clv__block_run *run);
/* Removes the executables compiled for this run from the disk cache: no other run has the same sizes. Accepts a run that was
 * never opened. */
void clv__block_forget(clv__block_run *run);

#endif
