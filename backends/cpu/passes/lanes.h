/* Lanes: independent steps side by side, each on one thread, where that takes less time than one after the other on all of them.
 *
 * A stretch is a run of the plan's steps that is done in lanes: each of its steps belongs to one, a lane does its own in the
 * order of the list, and waits only for steps of other lanes whose results it reads or whose operands it overwrites. The list's
 * order stays right for one thread. Around a stretch everything is over before the next thing begins. */
#ifndef CLEAVE_BACKENDS_CPU_PASSES_LANES_H
#define CLEAVE_BACKENDS_CPU_PASSES_LANES_H

#include "plan.h"

/* ---- What a step would take (lanes_cost.c). ---- */

typedef struct clv__cpu_task {
  double alone_us, together_us; /* on one thread, on all of them */
  bool may_lane;
} clv__cpu_task;

void clv__cpu_task_estimate(const clv__cpu_step *step, uint32_t threads, clv__cpu_task *task);
/* Beginning and ending a parallel region. */
double clv__cpu_region_us(uint32_t threads);

/* ---- Which task runs where (lanes_schedule.c). ---- */

typedef struct clv__cpu_tasks {
  const clv__cpu_task *tasks; /* none takes no time */
  uint32_t count;
  const uint32_t *offsets; /* count + 1; task t comes after before[offsets[t]] … before[offsets[t + 1] - 1], all below t */
  const uint32_t *before;
} clv__cpu_tasks;

typedef struct clv__cpu_team {
  uint32_t threads, lane_count; /* lanes: at most CLV__CPU_MAX_LANES */
  bool forced;                  /* lanes for whatever may have them, whether it pays or not */
} clv__cpu_team;

typedef struct clv__cpu_schedule {
  uint32_t *order;     /* the tasks as they shall follow one another */
  uint8_t *lane;       /* by task */
  uint32_t *stretch;   /* by task: its number, or UINT32_MAX */
  double *begin, *end; /* by task of a stretch: microseconds after its beginning, as estimated */
  uint32_t stretch_count;
} clv__cpu_schedule;

/* Stretches where they save a tenth of what their tasks take on all threads; none is as good an answer. Tasks of one stretch
 * follow one another in `order`, in the order of their beginnings. Arrays are the arena's. */
clv_status clv__cpu_schedule_make(const clv__cpu_tasks *tasks, const clv__cpu_team *team, clv__arena *arena,
                                  clv__cpu_schedule *schedule, clv_error *error);

/* ---- Who waits for whom (lanes_waits.c). ---- */

/* `count` steps of a stretch in the list's order, with their lanes and, as `before`, earlier steps of the stretch.
 * clocks[i * lane_count + l]: how many steps of lane l are over when step i begins, whatever the speed of the lanes. */
clv_status clv__cpu_waits_make(uint32_t count, const uint8_t *lanes, uint32_t lane_count, const uint32_t *offsets,
                               const uint32_t *before, clv__arena *arena, uint32_t *clocks, clv__cpu_wait **waits,
                               uint32_t *wait_counts, clv_error *error);

/* ---- What comes before what (lanes_order.c). ---- */

/* Step s must come after before[offsets[s]] … before[offsets[s + 1] - 1], all below s, some perhaps twice. */
clv_status clv__cpu_order_find(const clv__cpu_plan *plan, clv__arena *arena, uint32_t **offsets, uint32_t **before,
                               clv_error *error);

#endif
