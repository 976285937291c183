/* Running a stretch (lanes.h): one call of the launch list that holds those of its steps. */
#ifndef CLEAVE_BACKENDS_CPU_RUN_STRETCH_H
#define CLEAVE_BACKENDS_CPU_RUN_STRETCH_H

#include <stdatomic.h>

#include "list.h"

/* What the lanes of one run share: on the stack of the thread that runs the list. */
typedef struct clv__cpu_lanes {
  const clv__cpu_call *stretch;
  struct {
    _Alignas(CLV__ALIGNMENT) atomic_uint done; /* steps */
  } progress[CLV__CPU_MAX_LANES];
  _Atomic(const clv__cpu_call *) failed; /* the first that did; the lanes stop */
  clv_status status;                     /* its */
  clv_error *error;
  uint64_t *step_ns; /* by step: time it took this time, where it is wanted */
} clv__cpu_lanes;

/* A call whose steps' calls follow within it, until end(). `step` is its first. NULL when memory is out; valid until the next. */
clv__cpu_call *clv__cpu_stretch_begin(clv__cpu_list *list, uint32_t step, uint32_t lane_count);
void clv__cpu_stretch_end(clv__cpu_list *list, size_t begun);
/* The lane goes on when others have done what `waits` says. */
clv_status clv__cpu_stretch_wait(clv__cpu_list *list, uint32_t step, const clv__cpu_wait *waits, uint32_t count,
                                 clv_error *error);

/* Runs the stretch, on as many threads as it has lanes, or, where they are not to be had, on one. *failed as clv__cpu_calls_run()
 * has it. `step_ns`, by step, or NULL: what its steps took of the stretch's time is added; `spare_ns` has as much room. */
clv_status clv__cpu_stretch_run(const clv__cpu_call *stretch, uint64_t *step_ns, uint64_t *spare_ns, const clv__cpu_call **failed,
                                clv_error *error);
uint32_t clv__cpu_stretch_lanes(const clv__cpu_call *stretch);
/* The calls of one lane. Every lane is walked once, each by a thread of its own. */
void clv__cpu_lanes_init(clv__cpu_lanes *lanes, const clv__cpu_call *stretch, uint64_t *step_ns, clv_error *error);
void clv__cpu_lane_walk(clv__cpu_lanes *lanes, uint32_t lane);

#endif
