/* Lanes: independent steps run in parallel, each on one thread, if that takes less time than running them one after the other on
 * all threads.
 *
 * A stretch is a run of the plan's steps that executes in lanes. Each of its steps belongs to one lane. A lane executes its steps
 * in list order. It waits only for steps of other lanes whose results it reads or whose operands it overwrites. The list order
 * remains valid for one thread. Nothing overlaps a stretch: everything before it completes before it begins, and it completes
 * before anything after it begins. */
#ifndef CLEAVE_BACKENDS_CPU_PASSES_LANES_H
#define CLEAVE_BACKENDS_CPU_PASSES_LANES_H

#include "plan.h"

/* ---- Estimated times of steps (lanes_cost.c). ---- */

typedef struct clv__cpu_task {
  double alone_us, together_us; /* on one thread, and on all of them */
  bool may_lane;
} clv__cpu_task;

void clv__cpu_task_estimate(const clv__cpu_step *step, uint32_t threads, clv__cpu_task *task);
/* The time to begin and end a parallel region. */
double clv__cpu_region_us(uint32_t threads);

/* ---- Which task runs where (lanes_schedule.c). ---- */

typedef struct clv__cpu_tasks {
  const clv__cpu_task *tasks; /* none of them takes no time */
  uint32_t count;
  const uint32_t *offsets; /* count + 1; task t depends on before[offsets[t]] … before[offsets[t + 1] - 1], all below t */
  const uint32_t *before;
} clv__cpu_tasks;

typedef struct clv__cpu_team {
  uint32_t threads, lane_count; /* lanes: at most CLV__CPU_MAX_LANES */
  bool forced;                  /* assign lanes wherever possible, even if that does not pay */
} clv__cpu_team;

typedef struct clv__cpu_schedule {
  uint32_t *order;     /* the order in which the tasks run */
  uint8_t *lane;       /* per task */
  uint32_t *stretch;   /* per task: number of its stretch, or UINT32_MAX */
  double *begin, *end; /* per task of a stretch: estimated microseconds after the stretch begins */
  uint32_t stretch_count;
} clv__cpu_schedule;

/* Chooses stretches that save at least a tenth of the time that their tasks take on all threads. There may be none. Tasks of one
 * stretch are adjacent in `order`, sorted by their begin. The arena owns the arrays. */
clv_status clv__cpu_schedule_make(const clv__cpu_tasks *tasks, const clv__cpu_team *team, clv__arena *arena,
                                  clv__cpu_schedule *schedule, clv_error *error);

/* ---- Waits between lanes (lanes_waits.c). ---- */

/* Takes `count` steps of a stretch in list order, with their lanes; `before` lists earlier steps of the stretch. clocks[i *
 * lane_count + l] is the number of steps of lane l that are sure to be complete when step i begins, whatever the speed of the
 * lanes. */
clv_status clv__cpu_waits_make(uint32_t count, const uint8_t *lanes, uint32_t lane_count, const uint32_t *offsets,
                               const uint32_t *before, clv__arena *arena, uint32_t *clocks, clv__cpu_wait **waits,
                               uint32_t *wait_counts, clv_error *error);

/* ---- Order of steps (lanes_order.c). ---- */

/* Step s depends on before[offsets[s]] … before[offsets[s + 1] - 1], all below s, possibly with duplicates. */
clv_status clv__cpu_order_find(const clv__cpu_plan *plan, clv__arena *arena, uint32_t **offsets, uint32_t **before,
                               clv_error *error);

#endif
