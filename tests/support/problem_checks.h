/* Checks that hold for every cut, list of copies and price. They recompute everything from the problem, without the code of the
 * library that they check. In particular, partitions must be convex and in an executable order, and each value must be in the
 * memory space in which it is read, but be copied there at most once. A check that finds an error fails the test; the message
 * names the problem set by test_problem_at(). */
#ifndef CLEAVE_TESTS_PROBLEM_CHECKS_H
#define CLEAVE_TESTS_PROBLEM_CHECKS_H

#include "problems.h"
#include "split/split.h"

/* Sets the problem that the messages of the checks below name by `what` and the seed. Before a message, the problem is printed;
 * if `problem` is NULL, nothing is. */
void test_problem_at(const clv__problem *problem, uint64_t seed, const char *what);
/* Fails the test with a message, after printing the problem set by test_problem_at() and the placement `devices` (may be
 * NULL). */
void test_problem_fail(const uint32_t *devices, const char *format, ...) CLV_PRINTF(2, 3);

/* Checks that every node is on a device that supports it, and on the device it is pinned to. */
void test_check_placement(const clv__problem *problem, const uint32_t *devices);
/* Checks that every node is in exactly one partition, and that the partition is on the node's device; that partitions are
 * convex, in an executable order and within the limits; and that no partition has nodes of two groups (`groups`, by node). */
void test_check_cut(const clv__problem *problem, const uint32_t *devices, const uint32_t *groups, const clv__cut *cut);
/* Replays the copies. Every value must be in the right memory space when it is read. It must be copied to a memory space at most
 * once, only if a partition there reads it, immediately before the first one that does, and never to where it already is. Outputs
 * must end in host memory. Streamed weights must be copied before each partition that reads them. */
void test_check_moves(const clv__problem *problem, const clv__cut *cut, const uint16_t *streamed, const clv__copies *copies);
/* Checks the times of partitions and copies, and the plan's serial, overlapped and throughput time. */
void test_check_price(const clv__problem *problem, const clv__cut *cut, const clv__copies *copies, const clv__price *price);

#endif
