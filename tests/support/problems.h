/* Seeded random problems of placing and splitting (split/problem.h), of all the shapes that have been found to matter. A problem
 * lives in the arena given and is the same whenever the seed and the options are. What to check them with: problem_checks.h;
 * what the best answer is: problem_brute.h. */
#ifndef CLEAVE_TESTS_PROBLEMS_H
#define CLEAVE_TESTS_PROBLEMS_H

#include <stdio.h>

#include "split/problem.h"

typedef enum test_shape {
  TEST_CHAIN,
  TEST_TREE_IN,    /* values join, each read once */
  TEST_TREE_OUT,   /* values fan out */
  TEST_DIAMONDS,   /* fork, two branches, join */
  TEST_SKIPS,      /* a chain with reads of what was made some nodes ago */
  TEST_RANDOM,     /* each node reads anything before it */
  TEST_OUTPUTS,    /* the same, of nodes with several outputs, some of them read by nobody */
  TEST_COMPONENTS, /* several chains side by side in one list */
  TEST_LADDER,     /* two chains with rungs: every other node of the one reads the other */
  TEST_SHAPE_COUNT
} test_shape;

/* What a problem may have; which of them it has, and how much, is drawn for each problem. */
enum {
  TEST_PARTIAL = 1u << 0,  /* devices that do not support everything; without it all do */
  TEST_VIEWS = 1u << 1,    /* and nodes with weights too small to choose by */
  TEST_SAVINGS = 1u << 2,  /* fusions */
  TEST_LAUNCHES = 1u << 3, /* launches that take time */
  TEST_SHARED = 1u << 4,   /* devices that share a memory space, with the host or with each other */
  TEST_PINS = 1u << 5,
  TEST_LIMITS = 1u << 6, /* of inputs and nodes a partition; every node alone is within them */
  TEST_WEIGHTS = 1u << 7,
  TEST_HOMES = 1u << 8,  /* weights and values that the user has put somewhere */
  TEST_MEMORY = 1u << 9, /* limits of memory: weights may not fit. Not in TEST_ALL: such a problem may have no answer */
  TEST_ALL = (1u << 9) - 1
};

typedef struct test_problem_options {
  uint32_t min_nodes, max_nodes;     /* at least 1 */
  uint32_t min_devices, max_devices; /* 1 to 4 */
  uint32_t features;
  test_shape shape; /* TEST_SHAPE_COUNT: any */
} test_problem_options;

/* Fails the program (memory aside there is nothing that can go wrong). */
clv__problem *test_problem_make(uint64_t seed, const test_problem_options *options, clv__arena *arena);

/* Everything, a line a node and a line a value; for failures. `devices` (by node) may be NULL. */
void test_problem_print(FILE *file, uint64_t seed, const clv__problem *problem, const uint32_t *devices);

#endif
