/* A plan as lines of text: its steps in order, and what they come to. */
#ifndef CLEAVE_REPORT_STEPS_H
#define CLEAVE_REPORT_STEPS_H

#include "base/text.h"
#include "plan/plan.h"

typedef struct clv__plan_totals {
  uint32_t steps; /* partitions, inner transfers and streamed weights: what is numbered */
  uint32_t inner_transfers;
  uint64_t inner_bytes;
  uint32_t streamed_transfers; /* of weights, every run */
  uint64_t streamed_bytes;
  uint32_t own_transfers; /* of the graph's inputs and outputs */
  uint64_t own_bytes;
  bool bytes_known; /* false where a transfer's size shows only at run time */
  uint32_t folded_nodes;
} clv__plan_totals;

void clv__plan_totals_get(const clv_plan *plan, clv__plan_totals *totals);
static inline bool clv__step_is_own(const clv_plan *plan, const clv__step *step) {
  clv__boundary boundary = step->is_transfer ? plan->transfers[step->index].boundary : CLV__BOUNDARY_INNER;
  return boundary == CLV__BOUNDARY_INPUT || boundary == CLV__BOUNDARY_OUTPUT;
}

/* `Step 0: partition 0 on npu [5 nodes] …`: partitions and transfers between them are numbered; the transfers of the graph's own
 * inputs and outputs are not, and are listed where `all` is asked for. Without `all`, the middle of a long plan is left out. */
void clv__report_steps(const clv_plan *plan, bool all, clv__text *text);
/* One line a total; then what the plan takes, the bound, and where prices come from. */
void clv__report_totals(const clv_plan *plan, clv__text *text);

/* Where prices come from: "nominal: no profile"; by device where devices differ. */
void clv__report_prices(const clv_plan *plan, clv__text *text);

/* Why nodes are where they are: for every node whose name or operator matches `pattern` (NULL: all) its device, the cause, and
 * what every other device says. Returns the number of nodes that matched. */
uint32_t clv__report_explain(const clv_plan *plan, const char *pattern, clv__text *text);

#endif
