/* Compares a plan with its alternatives: every strategy, every single device, and operators that a device does not run yet. */
#ifndef CLEAVE_PLAN_COMPARE_H
#define CLEAVE_PLAN_COMPARE_H

#include "place/place.h"
#include "plan/plan.h"

typedef struct clv__comparison {
  const char *name; /* name of a strategy, or of a device that runs everything */
  bool is_single;
  bool is_plan;        /* the row is for the strategy that made the plan */
  const char *refusal; /* NULL: there is such a plan; otherwise why there is none: then all figures are 0 */
  uint32_t partitions;
  uint32_t transfers; /* between partitions, not counting the graph's own inputs and outputs */
  uint64_t transfer_bytes;
  uint64_t serial_ns, overlapped_ns, throughput_ns;
  uint64_t predicted_ns; /* by the plan's objective */
  double gap; /* (predicted_ns - bound) / bound, where `bound` is the lower bound of the plan that is compared; -1: the bound is
                 0, so the gap is unknown */
} clv__comparison;

/* Makes a row for each strategy, in the order of clv__strategies, and then one for each device that runs everything. For each
 * row it makes the plan again, under the same prices, choices and limits. Only the row of the plan's own strategy has the
 * figures of `plan` itself. Rows and texts live in `arena`. CLV_CANCELLED if `poll`, which may be NULL, says that it should
 * end. */
clv_status clv__plan_compare(const clv_plan *plan, clv__poll *poll, clv__arena *arena, clv__comparison **rows, uint32_t *count,
                             clv_error *error);

typedef struct clv__what_if {
  const char *op;         /* the operator that the device is supposed to support, as the user would write it */
  uint32_t device, nodes; /* `nodes`: how many nodes of this operator the device does not run now */
  const char *refusal;    /* NULL: there would be a plan; otherwise why not: then the figures below are 0 */
  uint32_t partitions;
  uint64_t predicted_ns;
  int64_t saved_ns; /* by how much the plan's predicted time would fall; negative: it would rise */
} clv__what_if;

/* Makes the plan again with its original `options`, supposing that the device of each entry of `supposes` supports the operator
 * of that entry. `row` has the operator and device of the first entry, and counts the nodes of all entries. row->refusal lives
 * in `arena`. */
clv_status clv__plan_what_if(const clv_plan *plan, const clv_plan_options *options, const clv_assignment *supposes,
                             uint32_t count, clv__arena *arena, clv__what_if *row, clv_error *error);
/* Makes a row for each pair of a device and an operator that this device rejects, supposing only that it supports this
 * operator. Rows are sorted by the time saved, the most first. */
clv_status clv__plan_what_if_all(const clv_plan *plan, const clv_plan_options *options, clv__arena *arena, clv__what_if **rows,
                                 uint32_t *count, clv_error *error);

#endif
