/* Searches for a plan of a small model that keeps all limits, by trying placements and groupings as plan files. Does not use
 * the strategies, the splits or the fitting of memory that it checks. */
#ifndef CLEAVE_TESTS_PLAN_BRUTE_H
#define CLEAVE_TESTS_PLAN_BRUTE_H

#include "plan/plan.h"

enum { PLAN_BRUTE_NODES = 8 };

/* Tries all placements that `choices` (by node: bits of devices) allows, and for each placement all groupings into partitions
 * that can run one after the other. Each grouping is tried in one order, once with all weights streamed and once with none.
 * Stops at the first plan that keeps all limits, and returns it; the caller destroys it. NULL: there is none among the first
 * `most` groupings. `count` receives the number of groupings that were tried. */
clv_plan *test_brute_plan(const clv_graph *graph, clv_devices *devices, const uint32_t *choices, uint32_t most, uint32_t *count);

#endif
