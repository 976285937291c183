/* Checks that hold for every cut, list of copies and price, computed independently from the problem. In particular, partitions
 * are convex and in an executable order, and values are where they are read and copied at most once per memory space. A check
 * that finds an error fails the test; the message names the problem set by test_problem_at(). */
#ifndef CLEAVE_TESTS_PROBLEM_CHECKS_H
#define CLEAVE_TESTS_PROBLEM_CHECKS_H

#include "problems.h"
#include "split/split.h"

/* Sets the problem that the messages of the checks below name by `what` and the seed. `problem` may be NULL. */
void test_problem_at(const clv__problem *problem, uint64_t seed, const char *what);
/* Fails the test, and prints the problem. */
void test_problem_fail(const uint32_t *devices, const char *format, ...) CLV_PRINTF(2, 3);

/* Checks that every node is on a device that supports it, and on the device it is pinned to. */
void test_check_placement(const clv__problem *problem, const uint32_t *devices);
/* Checks that every node is in exactly one partition, which is on its device; that partitions are convex, in an executable order
 * and within the limits; and that no partition has nodes of two groups. */
void test_check_cut(const clv__problem *problem, const uint32_t *devices, const uint32_t *groups, const clv__cut *cut);
/* Replays the copies. Every value must be in the right memory space when it is read. It must be copied to a memory space at most
 * once, only if a partition there reads it, immediately before the first one that does, and never to where it already is. Outputs
 * must end in host memory. Streamed weights must be copied before each partition that reads them. */
void test_check_moves(const clv__problem *problem, const clv__cut *cut, const uint16_t *streamed, const clv__copies *copies);
/* Checks the times of partitions and copies, and the three totals. */
void test_check_price(const clv__problem *problem, const clv__cut *cut, const clv__copies *copies, const clv__price *price);

#endif
