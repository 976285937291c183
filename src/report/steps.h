/* Prints a plan as text: its steps in order, totals, and explanations of the placement. */
#ifndef CLEAVE_REPORT_STEPS_H
#define CLEAVE_REPORT_STEPS_H

#include "base/text.h"
#include "plan/plan.h"

typedef struct clv__plan_totals {
  uint32_t steps; /* steps with a number: partitions, transfers between partitions, and streamed weights */
  uint32_t inner_transfers;
  uint64_t inner_bytes;
  uint32_t streamed_transfers; /* of weights that are copied in every run */
  uint64_t streamed_bytes;
  uint32_t own_transfers; /* transfers of the inputs and outputs of the graph; these have no number */
  uint64_t own_bytes;
  bool bytes_known;      /* false if the size of a transfer is known only at run time */
  uint32_t folded_nodes; /* computed when planning, so they are in no partition */
} clv__plan_totals;

void clv__plan_totals_get(const clv_plan *plan, clv__plan_totals *totals);
/* Returns whether a step copies an input or output of the graph: such a step has no number. */
static inline bool clv__step_is_own(const clv_plan *plan, const clv__step *step) {
  clv__boundary boundary = step->is_transfer ? plan->transfers[step->index].boundary : CLV__BOUNDARY_INNER;
  return boundary == CLV__BOUNDARY_INPUT || boundary == CLV__BOUNDARY_OUTPUT;
}

/* Appends a line per step, such as `Step 0: partition 0 on npu [5 nodes] …`. Only with `all`, also lists the transfers of the
 * graph's inputs and outputs, which have no number. Without `all`, omits the middle of a long plan. */
void clv__report_steps(const clv_plan *plan, bool all, clv__text *text);
/* Appends one line per total, then the predicted time of the plan, the bound, and the source of the prices. */
void clv__report_totals(const clv_plan *plan, clv__text *text);

/* Appends the source of the prices, such as "profile of 2026-11-21", for each device if devices differ. */
void clv__report_prices(const clv_plan *plan, clv__text *text);

#endif
