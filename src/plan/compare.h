/* Compares a plan with its alternatives: every strategy, every single device, and operators that a device does not run yet. */
#ifndef CLEAVE_PLAN_COMPARE_H
#define CLEAVE_PLAN_COMPARE_H

#include "place/place.h"
#include "plan/plan.h"

typedef struct clv__comparison {
  const char *name; /* name of a strategy, or of a device that runs everything */
  bool is_single;
  bool is_plan;        /* the row is for the strategy that made the plan */
  const char *refusal; /* NULL; or why there is no such plan: then all figures are 0 */
  uint32_t partitions;
  uint32_t transfers; /* between partitions, not counting the graph's own inputs and outputs */
  uint64_t transfer_bytes;
  uint64_t serial_ns, overlapped_ns, throughput_ns;
  uint64_t predicted_ns; /* by the plan's objective */
  double gap;            /* (predicted time - the plan's lower bound) / bound; negative if it is unknown */
} clv__comparison;

/* Makes the plan again under the same prices, choices and limits with every strategy, in the order of clv__strategies, and then
 * on every single device. Rows and texts live in `arena`. */
clv_status clv__plan_compare(const clv_plan *plan, clv__arena *arena, clv__comparison **rows, uint32_t *count, clv_error *error);

typedef struct clv__what_if {
  const char *op;         /* the operator's name, as the user would write it */
  uint32_t device, nodes; /* `nodes`: how many nodes of this operator the device does not run now */
  const char *refusal;    /* NULL; or why there would be no plan: then the figures below are 0 */
  uint32_t partitions;
  uint64_t predicted_ns;
  int64_t saved_ns; /* reduction of the plan's time */
} clv__what_if;

/* Makes the plan again with its original `options`, supposing that devices support all operators of `supposes`. `row` gets the
 * first operator of `supposes`; a refusal lives in `arena`. */
clv_status clv__plan_what_if(const clv_plan *plan, const clv_plan_options *options, const clv_assignment *supposes,
                             uint32_t count, clv__arena *arena, clv__what_if *row, clv_error *error);
/* Tries each operator that some device rejects, one at a time. Rows are sorted by the time saved, the most first. */
clv_status clv__plan_what_if_all(const clv_plan *plan, const clv_plan_options *options, clv__arena *arena, clv__what_if **rows,
                                 uint32_t *count, clv_error *error);

#endif
