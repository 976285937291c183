/* The memory of a compiled block, and where its executables came from. */
#ifndef CLEAVE_GNN_MODEL_BLOCK_MEMORY_H
#define CLEAVE_GNN_MODEL_BLOCK_MEMORY_H

#include "gnn/model/block.h"

/* Bytes of weights, executables, values and scratch for the shapes of the last run, in the devices' memory space `space`. */
uint64_t clv__block_peak_bytes(const clv__block_run *run, uint32_t space, clv_devices *devices);

/* Returns whether every partition was compiled for this run, rather than found in memory or in the cache. */
bool clv__block_was_compiled(const clv__block_run *run);
/* Removes the executables compiled for this run from the disk cache: no other run has the same sizes. Accepts a run that was
 * never opened. */
void clv__block_forget(clv__block_run *run);

#endif
