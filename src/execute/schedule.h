/* In which order a plan's steps are issued, on which stream each runs, and what it waits for. */
#ifndef CLEAVE_EXECUTE_SCHEDULE_H
#define CLEAVE_EXECUTE_SCHEDULE_H

#include "plan/plan.h"

/* A lane is an in-order stream: one a device for its partitions, one for copies between its memory and the host's. A device that
 * works in the caller's thread does everything in its first. */
#define CLV__MAX_LANES (2 * CLV__MAX_DEVICES)
static inline uint32_t clv__lane_device(uint32_t lane) {
  return lane / 2;
}

typedef struct clv__track {
  uint32_t lane;
  uint32_t position;     /* in its lane */
  uint32_t wait_count;   /* steps to wait for: in other lanes, the last one of each; what another wait implies is left out */
  const uint32_t *waits; /* on_device of them by an event of the same device, the rest on the host */
  uint32_t device_waits; /* the first so many of `waits` */
  bool is_recorded;      /* somebody waits for it: an event is recorded after it */
  bool is_watched;       /* the host is one of them, or the end of the run is, which no other step it waits for implies */
} clv__track;

typedef struct clv__schedule {
  uint32_t step_count, lane_count;
  clv__track *tracks;                   /* by step */
  uint32_t lanes[CLV__MAX_LANES];       /* those in use, in the order of their first steps */
  uint32_t lane_ends[CLV__MAX_LANES];   /* by lane: how many steps it has */
  uint32_t *lane_steps[CLV__MAX_LANES]; /* by lane: its steps, ascending */
  uint32_t *clocks;                     /* [step * lane_count + i]: how many steps of lanes[i] are over before the step begins */
  uint32_t *lane_index;                 /* by lane: its index in `lanes`, or CLV__NO_ID */
} clv__schedule;

/* Two steps of which the second must wait for the first, beside what the plan says. */
typedef struct clv__edge {
  uint32_t before, after;
} clv__edge;

typedef struct clv__schedule_rules {
  bool is_serial;         /* every step waits for the one before */
  const bool *sized_late; /* by step: it makes values whose size is known only when it is over; NULL: none does */
  const clv__edge *edges; /* ascending by `after`; each from an earlier to a later step */
  size_t edge_count;
} clv__schedule_rules;

/* Lives in the arena. Memory grows with steps times lanes. */
clv_status clv__schedule_make(const clv_plan *plan, const clv__schedule_rules *rules, clv__arena *arena, clv__schedule *schedule,
                              clv_error *error);

/* True when step `before` is over whenever step `after` begins. */
static inline bool clv__schedule_is_before(const clv__schedule *schedule, uint32_t before, uint32_t after) {
  const clv__track *track = &schedule->tracks[before];
  return schedule->clocks[(size_t)after * schedule->lane_count + schedule->lane_index[track->lane]] > track->position;
}

#endif
