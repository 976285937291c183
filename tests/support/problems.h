/* Seeded random placement and split problems (split/problem.h), in shapes that have revealed errors before. A problem lives in
 * the given arena and depends only on the seed and the options. problem_checks.h checks solutions; problem_brute.h finds optimal
 * ones. */
#ifndef CLEAVE_TESTS_PROBLEMS_H
#define CLEAVE_TESTS_PROBLEMS_H

#include <stdio.h>

#include "split/problem.h"

typedef enum test_shape {
  TEST_CHAIN,
  TEST_TREE_IN,    /* nodes read one or two values, and each value is read once */
  TEST_TREE_OUT,   /* nodes read one value, and values are read several times */
  TEST_DIAMONDS,   /* repeatedly: one node, two branches that read it, one node that reads both */
  TEST_SKIPS,      /* a chain in which nodes also read much earlier values */
  TEST_RANDOM,     /* each node reads one or several earlier values, chosen at random */
  TEST_OUTPUTS,    /* like TEST_RANDOM, with several outputs per node, some without readers */
  TEST_COMPONENTS, /* several chains side by side in one list */
  TEST_LADDER,     /* two parallel chains; every second node of one also reads from the other */
  TEST_SHAPE_COUNT
} test_shape;

/* Features that a problem may have; each problem has a random selection of them. */
enum {
  TEST_PARTIAL = 1u << 0,  /* some devices do not support all nodes */
  TEST_VIEWS = 1u << 1,    /* views, and nodes whose weights are too small to matter */
  TEST_SAVINGS = 1u << 2,  /* fusions, which save time */
  TEST_LAUNCHES = 1u << 3, /* launches that take time */
  TEST_SHARED = 1u << 4,   /* devices that share a memory space, with the host or with each other */
  TEST_PINS = 1u << 5,
  TEST_LIMITS = 1u << 6, /* limits of inputs and nodes per partition; no single node exceeds them */
  TEST_WEIGHTS = 1u << 7,
  TEST_HOMES = 1u << 8,   /* weights and values whose device is given by the user */
  TEST_MEMORY = 1u << 9,  /* memory limits: weights may not fit. Not in TEST_ALL: such a problem may have no solution */
  TEST_HOSTED = 1u << 10, /* with TEST_VIEWS: views that some devices leave to the host (clv__is_hosted()) */
  TEST_ALL = ((1u << 9) - 1) | TEST_HOSTED
};

typedef struct test_problem_options {
  uint32_t min_nodes, max_nodes;     /* at least 1 */
  uint32_t min_devices, max_devices; /* 1 to 4 */
  uint32_t features;
  test_shape shape; /* TEST_SHAPE_COUNT: any */
} test_problem_options;

/* Makes a random problem. Aborts the program if memory runs out; there are no other errors. */
clv__problem *test_problem_make(uint64_t seed, const test_problem_options *options, clv__arena *arena);

/* Prints the whole problem, one line per node and per value, after a failure. `devices` (by node) may be NULL. */
void test_problem_print(FILE *file, uint64_t seed, const clv__problem *problem, const uint32_t *devices);

#endif
