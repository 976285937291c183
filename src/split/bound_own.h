/* The parts of clv__bound(): bound.c has the entry and the serial bound, bound_lanes.c what holds of devices that run side by
 * side. */
#ifndef CLEAVE_SPLIT_BOUND_OWN_H
#define CLEAVE_SPLIT_BOUND_OWN_H

#include "split/minimum_cut/network.h"
#include "split/split.h"

/* What a node takes at least on each device, in half nanoseconds: its time, less half of every saving that it takes part in
 * there. Whatever a partition saves is halves of its nodes, so that it takes no less than the sum over them, nor over some of
 * them, as none is below zero (clv__problem_clamp_savings()). CLV__NO_TIME where verdict or pin keeps it away. */
typedef struct clv__reduced {
  const clv__problem *problem;
  uint64_t *halves; /* [node * device_count + device] */
  bool any_work;    /* a node other than a view */
  uint32_t forced;  /* bits of devices that some node other than a view must be on */
} clv__reduced;

static inline uint64_t clv__bound_add(uint64_t a, uint64_t b) {
  uint64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? CLV__NO_TIME : sum;
}

/* From its halves, up: times are whole. */
static inline uint64_t clv__bound_whole(uint64_t halves) {
  return halves / 2 + halves % 2;
}

/* The time of the longest way through the graph: no schedule is shorter. */
clv_status clv__bound_way(const clv__reduced *reduced, const clv_allocator *allocator, uint64_t *time_ns, clv_error *error);
/* What the fullest lane has to do, copies left out. */
uint64_t clv__bound_work(const clv__reduced *reduced);
/* The same of two devices, copies and the launches along `path` taken in; 0 where that does not apply. */
clv_status clv__bound_balance(const clv__reduced *reduced, clv__network_path path, const clv_allocator *allocator,
                              uint64_t *time_ns, clv_error *error);

/* Networks that may be solved for better prices or weights, counted in nodes: about as many as a plan's own placing takes. */
#define CLV__BOUND_WORK 150000u
static inline uint32_t clv__bound_steps(uint32_t node_count, uint32_t networks, uint32_t most) {
  uint32_t steps = CLV__BOUND_WORK / (node_count * networks + 1);
  return steps > most ? most : steps == 0 ? 1 : steps;
}

/* Raises `*best`; false where it has not grown by a thousandth for several steps: then more are not worth their time. */
static inline bool clv__bound_grows(uint64_t bound, uint64_t *best, uint32_t *idle_steps) {
  bool grows = bound > *best + *best / 1024;
  if (bound > *best) *best = bound;
  *idle_steps = grows ? 0 : *idle_steps + 1;
  return *idle_steps < 4;
}

/* A network whose times are too large to add up gives no bound, and no error: the sums still do. */
static inline clv_status clv__bound_tolerate(clv_status status) {
  return status == CLV_INVALID_ARGUMENT ? CLV_OK : status;
}

#endif
