/* Making a plan from another one while a session uses it. Shared by without_device.c, which places the nodes of lost devices
 * again; with_strategy.c; halves.c, which divides a partition; and without_device_begin.c, which copies what does not change
 * from the old plan. */
#ifndef CLEAVE_PLAN_WITHOUT_DEVICE_H
#define CLEAVE_PLAN_WITHOUT_DEVICE_H

#include "plan/make.h"

typedef struct clv__leaving {
  clv_plan *plan;      /* the new plan: its origin and lost devices are set */
  const clv_plan *old; /* the plan with the current placement */
  const clv__strategy *strategy;
  uint32_t lost; /* bits of the devices to remove now */
  clv__placing placing;
} clv__leaving;

static inline bool clv__is_bit(uint32_t bits, uint32_t device) {
  return (bits >> device & 1u) != 0;
}

/* Returns the input of a strategy that places `problem` with the plan's objective, split and claims. */
static inline clv__place_input clv__leaving_input(const clv_plan *plan, const clv__problem *problem) {
  return (clv__place_input){.problem = problem,
                            .objective = plan->objective,
                            .split = plan->split,
                            .split_is_given = plan->split_is_given,
                            .claims = plan->claims};
}

/* Copies a text into the arena. The copy of NULL is NULL. */
clv_status clv__leaving_text(clv__arena *arena, const char *text, const char **copy, clv_error *error);
/* Creates an empty plan without the devices `lost` (bits). Its origin is that of `old`, or `old` itself if it is an original.
 * The caller destroys l->plan. */
clv_status clv__leaving_create(const clv_plan *old, uint32_t lost, clv__leaving *l, clv_error *error);
/* Sets plan->same_partitions. */
clv_status clv__leaving_find_same(clv__leaving *l, clv_error *error);
/* Prepares verdicts, prices and the user's choices for placing. Fails if no remaining device supports a node, or if a node is
 * pinned to a removed device. */
clv_status clv__leaving_begin(clv__leaving *l, const char *reason, clv_error *error);

#endif
