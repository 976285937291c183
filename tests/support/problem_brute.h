/* Optimal solutions of small problems by exhaustive search, to check strategies, splits and bounds. Uses nothing of src/split,
 * so that mistakes there are found. */
#ifndef CLEAVE_TESTS_PROBLEM_BRUTE_H
#define CLEAVE_TESTS_PROBLEM_BRUTE_H

#include "problems.h"

/* Node + transfer + fusion cost of a placement: an independent clv__price_placement(). */
uint64_t test_placement_ns(const clv__problem *problem, const uint32_t *devices);

/* The launch of every device that has a node other than a view, once. */
uint64_t test_launches_once(const clv__problem *problem, const uint32_t *devices);

/* The least cost over all placements that respect pins and verdicts; `best` (by node, may be NULL) is one with this cost. With
 * `launches`, test_launches_once() is added. */
uint64_t test_brute_placement(const clv__problem *problem, bool launches, uint32_t *best);

/* The least serial time of any grouping of this placement into convex partitions with an acyclic graph and within limits; and the
 * fewest partitions of any. Up to TEST_BRUTE_GROUP_NODES nodes. */
enum { TEST_BRUTE_GROUP_NODES = 12 };
typedef struct test_best_groups {
  uint64_t serial_ns;
  uint32_t fewest; /* of all groupings, ignoring limits */
  uint32_t fewest_in_limits;
} test_best_groups;
test_best_groups test_brute_groups(const clv__problem *problem, const uint32_t *devices);

/* The least serial time, throughput time and overlapped time over all placements and groupings. The overlapped time also tries
 * all orders of the partitions, so it is for very few nodes. Each comes with a placement that reaches it. */
uint64_t test_brute_serial(const clv__problem *problem, uint32_t *best);
typedef struct test_best_lanes {
  uint64_t overlapped_ns, throughput_ns;
} test_best_lanes;
test_best_lanes test_brute_lanes(const clv__problem *problem);

#endif
