/* Parallel execution plans (PEPs) of one subgraph and one layer: 1 to 3 blocks over the layer's stages, each on one device or
 * shared out among several, no device in two blocks. Plain numbers: nothing here runs.
 *
 * How a run behaves, which prices and the simulation (simulate.h) assume. Values pass through host memory. A device has one
 * thread; a task of it, its part of a block, takes the device for packing (gathering the rows that it reads, laying values out in
 * padded form and without it again, results in the order of the vertices), copying in, computing and copying out, one after the
 * other; a device that shares the host's memory copies
 * nothing, and neither do blocks between devices that share another. Parts of a block begin each when its device is free, end
 * when it is done; the block is done `merge_ns` for each part beyond the first after the last of them. */
#ifndef CLEAVE_GNN_PLAN_PEP_H
#define CLEAVE_GNN_PLAN_PEP_H

#include "base/text.h"
#include "gnn/plan/pep_cost.h"

typedef struct clv__pep {
  uint32_t block_count;
  clv__pep_block blocks[CLV__PEP_BLOCKS];
  double time_ns;                                              /* alone: all blocks one after the other */
  double ideal_ns;                                             /* the same with shares that are not rounded */
  double load_ns[CLV__PEP_DEVICES];                            /* of each device; 0: not used */
  double head_ns[CLV__PEP_DEVICES], tail_ns[CLV__PEP_DEVICES]; /* what must pass before and after a used device's task */
  uint8_t stage_of[CLV__PEP_DEVICES];                          /* the block that it is in; CLV__PEP_BLOCKS: none */
  uint64_t key;                                                /* a hash of the key; clv__pep_same() decides */
} clv__pep;

/* Sets what follows from the blocks: sums, heads and tails, the key. */
void clv__pep_finish(clv__pep *pep);
/* Same key: the same blocks, devices and shares, and, where static devices take part, the same padded sizes. */
bool clv__pep_same(const clv__pep *a, const clv__pep *b);
/* The device that runs all of it alone; CLV__NO_ID: there are several. */
uint32_t clv__pep_single(const clv__pep *pep);
/* "gpu 0-4 x0.85 + cpu 0-4 x0.15 | npu 4-7" */
void clv__pep_describe(const clv__pep *pep, const clv__machine *machine, clv__text *text);

/* What is asked of each block of a plan: stages between `cuts`, on `sets`. */
void clv__block_questions(const clv__machine *machine, uint32_t blocks, const uint32_t *cuts, const uint32_t *sets,
                          clv__block_question *questions);

typedef struct clv__pep_options {
  uint32_t top_k;                   /* plans kept a subgraph, beside those on one device; 0: all that are not dominated */
  uint32_t variants;                /* shares tried beside the two nearest to the balanced one, on each side */
  uint32_t most_blocks, most_parts; /* of a plan, and of each of its blocks; 0: no limit. 1 block: data parallel alone; 1 part:
                                       pipelines alone; both: one device */
} clv__pep_options;
#define CLV__PEP_OPTIONS_INIT \
  { 0, 1, 0, 0 }

typedef struct clv__pep_list {
  uint32_t count;
  clv__pep *items;              /* by time */
  uint32_t structures;          /* blocks on sets of devices that the stages allow */
  uint32_t priced;              /* of these with shares: all whose costs are known */
  uint32_t unknown, infeasible; /* structures without a price: outside the tables; beyond a memory */
} clv__pep_list;

/* All plans of a piece. None is CLV_NOT_SUPPORTED, with the reason of the first device's whole layer. */
clv_status clv__peps_make(clv__arena *arena, const clv__costs *costs, const clv__piece *piece, const clv__pep_options *options,
                          clv__pep_list *list, clv_error *error);

#endif
