/* What a compiled block holds in memory, and where it came from. */
#ifndef CLEAVE_GNN_MODEL_BLOCK_MEMORY_H
#define CLEAVE_GNN_MODEL_BLOCK_MEMORY_H

#include "gnn/model/block.h"

/* Weights, executables, values and scratch of the last run's shapes, in memory space `space` of the devices. */
uint64_t clv__block_peak_bytes(const clv__block_run *run, uint32_t space, clv_devices *devices);

/* Whether all of it was compiled for this run, rather than found in memory or in the cache. */
bool clv__block_was_compiled(const clv__block_run *run);
/* What was compiled for it is not kept on disk: it is of sizes that no other run has. Accepts one that was never opened. */
void clv__block_forget(clv__block_run *run);

#endif
