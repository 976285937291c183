/* The best answers to small problems, by trying all: what strategies, splits and bounds are held against. Nothing of src/split is
 * used, so that a mistake there shows. */
#ifndef CLEAVE_TESTS_PROBLEM_BRUTE_H
#define CLEAVE_TESTS_PROBLEM_BRUTE_H

#include "problems.h"

/* Node + transfer + fusion cost of a placement: clv__price_placement() anew. */
uint64_t test_placement_ns(const clv__problem *problem, const uint32_t *devices);

/* The launch of every device that has a node other than a view, once. */
uint64_t test_launches_once(const clv__problem *problem, const uint32_t *devices);

/* The least of that over all placements (pins and verdicts kept); `best` (by node, may be NULL) is one that has it. With
 * `launches`, test_launches_once() comes on top. */
uint64_t test_brute_placement(const clv__problem *problem, bool launches, uint32_t *best);

/* The least serial time of any grouping of this placement into convex partitions whose graph is acyclic, limits kept; and the
 * fewest partitions of any. Up to TEST_BRUTE_GROUP_NODES nodes. */
enum { TEST_BRUTE_GROUP_NODES = 12 };
typedef struct test_best_groups {
  uint64_t serial_ns;
  uint32_t fewest; /* of all groupings, limits apart */
  uint32_t fewest_in_limits;
} test_best_groups;
test_best_groups test_brute_groups(const clv__problem *problem, const uint32_t *devices);

/* The least of all placements and groupings: of the serial time, of the throughput, and of the overlapped time, which goes
 * through all orders of the partitions too and is for a handful of nodes. Each has a placement that reaches it. */
uint64_t test_brute_serial(const clv__problem *problem, uint32_t *best);
typedef struct test_best_lanes {
  uint64_t overlapped_ns, throughput_ns;
} test_best_lanes;
test_best_lanes test_brute_lanes(const clv__problem *problem);

#endif
