/* Runs a stretch (lanes.h): one call of the launch list that contains the calls of its steps. */
#ifndef CLEAVE_BACKENDS_CPU_RUN_STRETCH_H
#define CLEAVE_BACKENDS_CPU_RUN_STRETCH_H

#include <stdatomic.h>

#include "list.h"

/* State shared by the lanes of one run, on the stack of the thread that runs the list. */
typedef struct clv__cpu_lanes {
  const clv__cpu_call *stretch;
  struct {
    _Alignas(CLV__ALIGNMENT) atomic_uint done; /* steps completed */
  } progress[CLV__CPU_MAX_LANES];
  _Atomic(const clv__cpu_call *) failed; /* the first call that failed; all lanes then stop */
  clv_status status;                     /* status of that call */
  clv_error *error;
  uint64_t *step_ns; /* per step: time of this run, if requested */
} clv__cpu_lanes;

/* Begins a call that contains the calls of its steps, until end(). `step` is its first step. NULL when memory is out; valid until
 * the next append. */
clv__cpu_call *clv__cpu_stretch_begin(clv__cpu_list *list, uint32_t step, uint32_t lane_count);
void clv__cpu_stretch_end(clv__cpu_list *list, size_t begun);
/* Makes the lane wait until other lanes have completed the steps in `waits`. */
clv_status clv__cpu_stretch_wait(clv__cpu_list *list, uint32_t step, const clv__cpu_wait *waits, uint32_t count,
                                 clv_error *error);

/* Runs the stretch on as many threads as it has lanes or, if they are not available, on one. *failed is set as in
 * clv__cpu_calls_run(). `step_ns`, per step, may be NULL; the share of each step in the stretch's time is added to it. `spare_ns`
 * has the same size. */
clv_status clv__cpu_stretch_run(const clv__cpu_call *stretch, uint64_t *step_ns, uint64_t *spare_ns, const clv__cpu_call **failed,
                                clv_error *error);
uint32_t clv__cpu_stretch_lanes(const clv__cpu_call *stretch);
/* The calls of one lane. Each lane is walked once, by its own thread. */
void clv__cpu_lanes_init(clv__cpu_lanes *lanes, const clv__cpu_call *stretch, uint64_t *step_ns, clv_error *error);
void clv__cpu_lane_walk(clv__cpu_lanes *lanes, uint32_t lane);

#endif
