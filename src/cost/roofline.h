/* The least that a group of nodes could take if they ran as one step: its work over what the device can do at best (peaks.h). */
#ifndef CLEAVE_COST_ROOFLINE_H
#define CLEAVE_COST_ROOFLINE_H

#include "cost/peaks.h"

/* Work as the model has it, whatever algorithm does it: Winograd's needs fewer FLOPs than are counted here. Values between the
 * group's own nodes do not count: they need not be in memory. */
typedef struct clv__group_work {
  bool is_known; /* false where a size is open, or an operator has a body or is not known */
  double flops;
  clv__peak peak;      /* what most of it is computed in */
  double weight_bytes; /* constants */
  double moved_bytes;  /* read from other groups, and written for them */
} clv__group_work;

typedef struct clv__tally {
  const clv_graph_view *whole;
  uint32_t group;  /* how many were counted */
  uint32_t *nodes; /* by node and by value: the group that had it last */
  uint32_t *values;
} clv__tally;

/* `whole` has the types of the run, and outlives the tally. */
clv_status clv__tally_init(clv__tally *tally, const clv_graph_view *whole, clv__arena *arena, clv_error *error);
clv_status clv__tally_count(clv__tally *tally, const clv_node_id *nodes, uint32_t count, clv__group_work *work, clv_error *error);

/* Seconds; negative where they are not known. Weights come from where as much as `resident_bytes` lies, what is moved from where
 * the group's own lies. `by_compute`: arithmetic takes longer than memory. */
double clv__roofline_seconds(const clv__peaks *peaks, const clv__group_work *work, double resident_bytes, bool *by_compute);

#endif
