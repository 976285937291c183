/* Parallel execution plans (PEPs) of one subgraph and one layer: 1 to 3 blocks over the layer's stages, each on one device or
 * shared among several. No device is in two blocks. These are numbers only: nothing runs here.
 *
 * Prices and the simulation (simulate.h) assume that a run behaves as follows. Values pass through host memory. A device has
 * one thread. A task is a device's part of a block. It occupies the device for packing, copying in, computing and copying out,
 * in that order. Packing gathers the rows that the task reads, converts values to the padded form and back, and puts results
 * into vertex order. A device that shares the host's memory copies nothing, and neither do blocks between devices that share
 * another memory. Each part of a block starts when its device is free and ends when it is done. The block is done after its
 * last part, plus `merge_ns` for each part beyond the first. */
#ifndef CLEAVE_GNN_PLAN_PEP_H
#define CLEAVE_GNN_PLAN_PEP_H

#include "base/text.h"
#include "gnn/plan/pep_cost.h"

typedef struct clv__pep {
  uint32_t block_count;
  clv__pep_block blocks[CLV__PEP_BLOCKS];
  double time_ns;                   /* the time if no other subgraph runs: the sum of the times of the blocks */
  double ideal_ns;                  /* time_ns if shares were not rounded */
  double load_ns[CLV__PEP_DEVICES]; /* the time of each device's task; 0: the device is not used */
  double head_ns[CLV__PEP_DEVICES], tail_ns[CLV__PEP_DEVICES]; /* time before and after a used device's task */
  uint8_t stage_of[CLV__PEP_DEVICES];                          /* the block that the device is in; CLV__PEP_BLOCKS: none */
  uint64_t key;                                                /* the PEP key: a hash of what clv__pep_same() compares */
} clv__pep;

/* Computes all other members of `pep` from its blocks. */
void clv__pep_finish(clv__pep *pep);
/* Returns whether the keys are equal: the same blocks, devices and shares, and, on devices that need fixed shapes, the same
 * padded sizes. */
bool clv__pep_same(const clv__pep *a, const clv__pep *b);
/* Returns the device that runs everything alone, or CLV__NO_ID if there are several. */
uint32_t clv__pep_single(const clv__pep *pep);
/* Appends a description: "gpu 0-4 x0.85 + cpu 0-4 x0.15 | npu 4-7". */
void clv__pep_describe(const clv__pep *pep, const clv__machine *machine, clv__text *text);

/* Fills in the question for each block of a plan: the stages between `cuts`, on `sets`. */
void clv__block_questions(const clv__machine *machine, uint32_t blocks, const uint32_t *cuts, const uint32_t *sets,
                          clv__block_question *questions);

typedef struct clv__pep_options {
  uint32_t top_k;    /* plans kept per subgraph, besides those on one device; 0: all that are not dominated */
  uint32_t variants; /* for a block of two parts: number of shares to try on each side of the two nearest to the balanced one */
  uint32_t most_blocks, most_parts; /* limits on a plan's blocks, and on a block's parts; 0: none. 1 block: data parallelism only;
                                       1 part: pipelines only; both: one device */
} clv__pep_options;
#define CLV__PEP_OPTIONS_INIT \
  { 0, 1, 0, 0 }

typedef struct clv__pep_list {
  uint32_t count;
  clv__pep *items;              /* sorted by time */
  uint32_t structures;          /* assignments of blocks to device sets that the stages allow */
  uint32_t priced;              /* plans: structures with shares, whose costs are all known */
  uint32_t unknown, infeasible; /* structures without a price: outside the tables; beyond a device's memory */
  clv__least_memory least;      /* over the infeasible structures; set even if there is no plan */
} clv__pep_list;

/* Makes all plans of a subgraph. If there is none, returns CLV_TOO_LARGE with the least memory that a device would need, or
 * CLV_NOT_SUPPORTED with the reason for the whole layer on the first device. */
clv_status clv__peps_make(clv__arena *arena, const clv__costs *costs, const clv__subgraph_sizes *subgraph,
                          const clv__pep_options *options, clv__pep_list *list, clv_error *error);

#endif
