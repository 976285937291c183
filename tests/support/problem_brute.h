/* Optimal solutions of small problems by exhaustive search, to check strategies, splits and bounds. Does not use the algorithms
 * of src/split, in order to find their errors. */
#ifndef CLEAVE_TESTS_PROBLEM_BRUTE_H
#define CLEAVE_TESTS_PROBLEM_BRUTE_H

#include "problems.h"
#include "split/split.h"

/* The cost of a placement: nodes plus transfers, less the savings of fusions. An independent implementation of
 * clv__price_placement(). */
uint64_t test_placement_ns(const clv__problem *problem, const uint32_t *devices);

/* The sum of the launch times of the devices that run a node other than a view, one launch per device. */
uint64_t test_launches_once(const clv__problem *problem, const uint32_t *devices);

/* The least cost over all placements that respect pins and verdicts. If `launches`, the cost includes test_launches_once().
 * `best` (indexed by node, may be NULL) receives a placement with this cost. */
uint64_t test_brute_placement(const clv__problem *problem, bool launches, uint32_t *best);

/* The best groupings of a placement into convex partitions whose graph is acyclic: the least serial time of the groupings
 * within the limits (UINT64_MAX: no grouping is), and the fewest partitions. For up to TEST_BRUTE_GROUP_NODES nodes. */
enum { TEST_BRUTE_GROUP_NODES = 12 };
typedef struct test_best_groups {
  uint64_t serial_ns;
  uint32_t fewest;           /* of all groupings, ignoring limits */
  uint32_t fewest_in_limits; /* CLV__NONE: no grouping is within the limits */
} test_best_groups;
test_best_groups test_brute_groups(const clv__problem *problem, const uint32_t *devices);

/* The least serial time, throughput time and overlapped time over all placements and groupings. The throughput time is that of
 * the busiest device or copy lane. The overlapped time also tries all orders of the partitions, so it is for very few nodes.
 * `best` receives a placement with the least serial time. */
uint64_t test_brute_serial(const clv__problem *problem, uint32_t *best);
typedef struct test_best_lanes {
  uint64_t overlapped_ns, throughput_ns;
} test_best_lanes;
test_best_lanes test_brute_lanes(const clv__problem *problem);

/* The functions below respect memory limits (problem_budgets.c). They accept problems of two devices and at most
 * TEST_BUDGET_NODES nodes, without limits of inputs and nodes per partition and without weights placed by the user. They abort
 * if a problem is larger. */
enum { TEST_BUDGET_NODES = 9 };
/* The least serial time of any plan that fits: over all placements, all sequences of partitions, and all choices of streamed
 * weights (any subset per device, not only prefixes of one order). UINT64_MAX: nothing fits. */
uint64_t test_brute_budgets(const clv__problem *problem);
/* The serial time of one plan; `needs` receives the bytes that it needs in the memory of each device with a limit. */
uint64_t test_run_budgets(const clv__problem *problem, const clv__cut *cut, const uint16_t *streamed, uint64_t *needs);

#endif
