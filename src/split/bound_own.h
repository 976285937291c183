/* The parts of clv__bound(): bound.c has the entry and the serial bound, bound_lanes.c what holds of devices that run side by
 * side. */
#ifndef CLEAVE_SPLIT_BOUND_OWN_H
#define CLEAVE_SPLIT_BOUND_OWN_H

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
/* What the fullest lane has to do. */
clv_status clv__bound_work(const clv__reduced *reduced, const clv_allocator *allocator, uint64_t *time_ns, clv_error *error);

#endif
