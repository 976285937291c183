/* Buckets: the sizes that devices of fixed shapes have executables for, one for each block and padded size. Two of them are
 * merged into one that is as large as either where the time that its padding adds, over all parts of all subgraphs, is less than
 * what compiling one more executable takes, as the tables have it; where they do not say, all stay. */
#ifndef CLEAVE_GNN_PLAN_BUCKETS_H
#define CLEAVE_GNN_PLAN_BUCKETS_H

#include "gnn/plan/choose.h"

/* A layer's plans, whose parts are padded further. */
typedef struct clv__bucketing {
  clv__arena *arena;
  const clv__costs *costs;
  const clv__choose_cut *cut;
  clv__pep *peps;           /* [k] */
  const uint32_t *sequence; /* [k] */
  /* What it came to. */
  double makespan_ns;
  uint32_t merge_count;
  const clv__bucket_merge *merges;
} clv__bucketing;

/* The best pair first, until none pays. No merge makes the schedule longer, by simulation, than it saves of compiling. */
clv_status clv__buckets_merge(clv__bucketing *bucketing, clv_error *error);

/* The same of what was chosen for a layer, and of each device alone (`lists` has its plans), so that the one is still no slower
 * than the other: plans, sequence, timeline and times of single devices of `chosen`. */
clv_status clv__choose_buckets(clv__arena *arena, const clv__costs *costs, const clv__choose_cut *cut, const clv__pep_list *lists,
                               clv__chosen_layer *chosen, clv_error *error);

#endif
