/* The order in which a plan's steps are issued, the stream of each step, and its waits. */
#ifndef CLEAVE_EXECUTE_SCHEDULE_H
#define CLEAVE_EXECUTE_SCHEDULE_H

#include "plan/plan.h"

/* A lane is an in-order stream. Each device has one for its partitions and one for copies between its memory and the host's. A
 * device that works in the caller's thread uses only the first. */
#define CLV__MAX_LANES (2 * CLV__MAX_DEVICES)
static inline uint32_t clv__lane_device(uint32_t lane) {
  return lane / 2;
}

typedef struct clv__track {
  uint32_t lane;
  uint32_t position;     /* index of the step in its lane */
  uint32_t wait_count;   /* how many steps of other lanes it waits for: at most one per lane; implied waits are left out */
  const uint32_t *waits; /* the steps that it waits for */
  uint32_t device_waits; /* the device waits (by events) for this many of `waits`, from the first on; the host for the rest */
  bool is_recorded;      /* some wait refers to it, so an event is recorded after it */
  bool is_watched;       /* the host needs its completion: a step waits for it on the host, or the end of the run does */
} clv__track;

typedef struct clv__schedule {
  uint32_t step_count, lane_count;
  clv__track *tracks;                   /* indexed by step */
  uint32_t lanes[CLV__MAX_LANES];       /* the lanes in use, in the order of their first steps */
  uint32_t lane_ends[CLV__MAX_LANES];   /* indexed by lane: how many steps it has */
  uint32_t *lane_steps[CLV__MAX_LANES]; /* indexed by lane: its steps, ascending */
  uint32_t *clocks;     /* [step * lane_count + i]: how many steps of lanes[i] are complete before the step begins */
  uint32_t *lane_index; /* indexed by lane: its index in `lanes`, or CLV__NO_ID */
} clv__schedule;

/* A dependency in addition to those of the plan: step `after` must wait for step `before`. */
typedef struct clv__edge {
  uint32_t before, after;
} clv__edge;

typedef struct clv__schedule_rules {
  bool is_serial;         /* every step waits for the one before */
  const bool *sized_late; /* indexed by step: the host must see its completion before it issues steps that wait for it, because
                             only then it knows the sizes of its outputs, or can pad or cut them; NULL: none */
  const clv__edge *edges; /* ascending by `after`; each from an earlier to a later step */
  size_t edge_count;
} clv__schedule_rules;

/* Builds the schedule in the arena. Its memory grows with steps times lanes. */
clv_status clv__schedule_make(const clv_plan *plan, const clv__schedule_rules *rules, clv__arena *arena, clv__schedule *schedule,
                              clv_error *error);

/* Returns whether step `before` is always complete when step `after` begins. */
static inline bool clv__schedule_is_before(const clv__schedule *schedule, uint32_t before, uint32_t after) {
  const clv__track *track = &schedule->tracks[before];
  return schedule->clocks[(size_t)after * schedule->lane_count + schedule->lane_index[track->lane]] > track->position;
}

#endif
