/* Lower bound on the time of a group of nodes that runs as one step: its work divided by the device's peaks (peaks.h). */
#ifndef CLEAVE_COST_ROOFLINE_H
#define CLEAVE_COST_ROOFLINE_H

#include "cost/peaks.h"

/* Work as the model defines it, independent of the algorithm: Winograd, for example, needs fewer FLOPs than are counted here.
 * Values that are only used inside the group add no bytes, because such values need not be in memory. */
typedef struct clv__group_work {
  bool is_known; /* false if a size is unknown, an operator is unknown, or an operator has a body */
  double flops;
  clv__peak peak;      /* the number format of most of the work */
  double weight_bytes; /* bytes of constants */
  double moved_bytes;  /* bytes that the group reads from other groups and writes for them */
} clv__group_work;

typedef struct clv__tally {
  const clv_graph_view *whole;
  uint32_t group;   /* the current group's number, from 1 */
  uint32_t *nodes;  /* by node: the last group that contained it */
  uint32_t *values; /* by value: the last group that counted it as read */
} clv__tally;

/* Starts counting over the nodes of `whole`, which has the types of the run and must outlive the tally. */
clv_status clv__tally_init(clv__tally *tally, const clv_graph_view *whole, clv__arena *arena, clv_error *error);
/* Computes the work of the group that consists of these nodes. */
clv_status clv__tally_count(clv__tally *tally, const clv_node_id *nodes, uint32_t count, clv__group_work *work, clv_error *error);

/* Returns the lower bound in seconds; negative if unknown. Weights are read at the bandwidth for data of `resident_bytes`, moved
 * data at the bandwidth for the group's own size. Sets `by_compute` if the arithmetic takes longer than the memory traffic. */
double clv__roofline_seconds(const clv__peaks *peaks, const clv__group_work *work, double resident_bytes, bool *by_compute);

#endif
