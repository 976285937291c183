/* A bucket is a size for which a device that needs fixed shapes has an executable: one for each block and padded size. Two
 * buckets merge into one that covers both sizes if the added padding time, over all parts of all subgraphs, is less than the
 * time to compile one more executable. The tables give the compile time. If they lack it, all buckets stay. */
#ifndef CLEAVE_GNN_PLAN_BUCKETS_H
#define CLEAVE_GNN_PLAN_BUCKETS_H

#include "gnn/plan/choose.h"

/* A layer's plans, whose parts may receive more padding. */
typedef struct clv__bucketing {
  clv__arena *arena;
  const clv__costs *costs;
  const clv__choose_cut *cut;
  clv__pep *peps;           /* [k] */
  const uint32_t *sequence; /* [k] */
  /* Results. */
  double makespan_ns;
  uint32_t merge_count;
  const clv__bucket_merge *merges;
} clv__bucketing;

/* Merges the best pair first, until no merge pays. A merge never lengthens the simulated schedule by more than it saves in
 * compile time. */
clv_status clv__buckets_merge(clv__bucketing *bucketing, clv_error *error);

/* Merges the buckets of a layer's chosen plans. Also merges those of the plans that run everything on one device (from `lists`),
 * so that the comparison with single devices is fair. Keeps the fastest result in `chosen`: updates its plans, sequence, timeline
 * and single-device times. */
clv_status clv__choose_buckets(clv__arena *arena, const clv__costs *costs, const clv__choose_cut *cut, const clv__pep_list *lists,
                               clv__chosen_layer *chosen, clv_error *error);

#endif
