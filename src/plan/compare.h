/* A plan beside what it might have been: every strategy, every single device; and with operators that a device does not run yet.
 */
#ifndef CLEAVE_PLAN_COMPARE_H
#define CLEAVE_PLAN_COMPARE_H

#include "place/place.h"
#include "plan/plan.h"

typedef struct clv__comparison {
  const char *name; /* of a strategy, or of a device that runs everything */
  bool is_single;
  bool is_plan;        /* the strategy that the plan was made with */
  const char *refusal; /* NULL; or why there is no such plan: then the figures are 0 */
  uint32_t partitions;
  uint32_t transfers; /* between partitions; those of the graph's own inputs and outputs apart */
  uint64_t transfer_bytes;
  uint64_t serial_ns, overlapped_ns, throughput_ns;
  uint64_t predicted_ns; /* of the plan's objective */
  double gap;            /* to the plan's bound; negative where it cannot be said */
} clv__comparison;

/* Places and cuts the plan's problem in every way there is, under the same prices; strategies first, in their own order, then the
 * devices. Rows and texts live in `arena`. What memory allows is not considered beyond what the strategies do. */
clv_status clv__plan_compare(const clv_plan *plan, clv__arena *arena, clv__comparison **rows, uint32_t *count, clv_error *error);

typedef struct clv__what_if {
  const char *op;         /* as the user would write it */
  uint32_t device, nodes; /* `nodes` that it does not run now */
  uint32_t partitions;
  uint64_t predicted_ns;
  int64_t saved_ns; /* of the plan's time */
} clv__what_if;

/* The plan again, made with `options` (those it was made with) and all of `supposes` at once; `row` gets its first operator. */
clv_status clv__plan_what_if(const clv_plan *plan, const clv_plan_options *options, const clv_assignment *supposes,
                             uint32_t count, clv__what_if *row, clv_error *error);
/* Each operator that some device refuses, alone: the most time saved first. */
clv_status clv__plan_what_if_all(const clv_plan *plan, const clv_plan_options *options, clv__arena *arena, clv__what_if **rows,
                                 uint32_t *count, clv_error *error);

#endif
