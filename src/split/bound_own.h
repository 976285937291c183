/* The parts of clv__bound(): bound.c has clv__bound() itself and the serial bound; bound_lanes.c and bound_balance.c have the
 * bounds for devices that run side by side. */
#ifndef CLEAVE_SPLIT_BOUND_OWN_H
#define CLEAVE_SPLIT_BOUND_OWN_H

#include "split/minimum_cut/network.h"
#include "split/split.h"

/* The least time of a node on each device, in half nanoseconds: its time minus half of every saving it takes part in there.
 * Every saving of a partition splits into halves that belong to two of its nodes. So a partition takes at least the sum of
 * these times over its nodes, and also over any subset of them, because none is negative (clv__problem_clamp_savings()). The
 * time is CLV__NO_TIME if the verdict or the pin excludes the device. */
typedef struct clv__reduced {
  const clv__problem *problem;
  uint64_t *halves; /* [node * device_count + device] */
  bool any_work;    /* some node is not a view */
  uint32_t forced;  /* bits of the devices that must run some node other than a view */
} clv__reduced;

static inline uint64_t clv__bound_add(uint64_t a, uint64_t b) {
  uint64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? CLV__NO_TIME : sum;
}

/* Converts half nanoseconds to nanoseconds, rounding up: times are whole. */
static inline uint64_t clv__bound_whole(uint64_t halves) {
  return halves / 2 + halves % 2;
}

/* Computes the time of the longest path through the graph. No schedule is shorter. */
clv_status clv__bound_way(const clv__reduced *reduced, const clv_allocator *allocator, uint64_t *time_ns, clv_error *error);
/* A lower bound on the load of the fullest lane (split.h, clv__price), without copies. */
uint64_t clv__bound_work(const clv__reduced *reduced);
/* A lower bound on the load of the fullest lane for two devices, including copies and the launches along `path`. It is 0 if there
 * are not exactly two devices with separate memories. */
clv_status clv__bound_balance(const clv__reduced *reduced, clv__network_path path, const clv_allocator *allocator,
                              uint64_t *time_ns, clv_error *error);

/* The work limit of a search for better prices or weights: the node counts of all networks that it solves add up to about this
 * number, so that it takes about as long as placing a plan. clv__bound_steps() returns the number of steps, from 1 to `most`,
 * of a search that solves `networks` networks per step. */
#define CLV__BOUND_WORK 150000u
static inline uint32_t clv__bound_steps(uint32_t node_count, uint32_t networks, uint32_t most) {
  uint32_t steps = CLV__BOUND_WORK / (node_count * networks + 1);
  return steps > most ? most : steps == 0 ? 1 : steps;
}

/* Raises `*best` to `bound` if that is higher. Returns false after four steps in a row (counted in `*idle_steps`) that each
 * raised `*best` by less than a thousandth: more steps are not worth their time. */
static inline bool clv__bound_grows(uint64_t bound, uint64_t *best, uint32_t *idle_steps) {
  bool grows = bound > *best + *best / 1024;
  if (bound > *best) *best = bound;
  *idle_steps = grows ? 0 : *idle_steps + 1;
  return *idle_steps < 4;
}

/* If the times of a network are too large to add up, the network gives no bound. This is not an error: the sums of bound.c
 * still give one, so this returns CLV_OK instead. */
static inline clv_status clv__bound_tolerate(clv_status status) {
  return status == CLV_INVALID_ARGUMENT ? CLV_OK : status;
}

#endif
