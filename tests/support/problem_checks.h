/* Checks that hold for every cut, list of moves and price, computed independently from the problem: promises 1 and 6 of the
 * design. Each check fails the test with the error; test_problem_at() sets the problem that the message names. */
#ifndef CLEAVE_TESTS_PROBLEM_CHECKS_H
#define CLEAVE_TESTS_PROBLEM_CHECKS_H

#include "problems.h"
#include "split/split.h"

/* Names the current problem in the messages of the checks below: `what` and the seed; NULL: none. */
void test_problem_at(const clv__problem *problem, uint64_t seed, const char *what);
/* Fails the test with the problem printed. */
void test_problem_fail(const uint32_t *devices, const char *format, ...) CLV_PRINTF(2, 3);

/* Every node on a device that supports it, and on its pin's. */
void test_check_placement(const clv__problem *problem, const uint32_t *devices);
/* Every node in exactly one partition, of its device; partitions convex and in an order in which they can run; no limit exceeded;
 * no two groups in one partition. */
void test_check_cut(const clv__problem *problem, const uint32_t *devices, const uint32_t *groups, const clv__cut *cut);
/* Replays the steps: every value is present where and when it is read; each is copied to a memory space at most once, never
 * to where it already is, not before the first partition there needs it, and never without a reader; outputs end in host memory.
 * Streamed weights are copied before each partition that reads them. */
void test_check_moves(const clv__problem *problem, const clv__cut *cut, const uint16_t *streamed, const clv__moves *moves);
/* The prices of partitions, moves and the three totals. */
void test_check_price(const clv__problem *problem, const clv__cut *cut, const clv__moves *moves, const clv__price *price);

#endif
