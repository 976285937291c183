/* What happened when in the runs of a session: recorded while it is asked for, as report/trace.c writes it. */
#ifndef CLEAVE_EXECUTE_TRACE_H
#define CLEAVE_EXECUTE_TRACE_H

#include "execute/session.h"

typedef enum clv__trace_kind {
  CLV__TRACE_RUN,     /* of a request, from bind to hand-over */
  CLV__TRACE_PREPARE, /* for shapes that were not met before */
  CLV__TRACE_STEP,    /* a partition or transfer on its lane: from when it could begin to when its end was told */
  CLV__TRACE_ISSUE,   /* what the driver spent on handing it to the device */
  CLV__TRACE_WAIT,    /* the driver, for devices */
  CLV__TRACE_CAPTURE  /* launches recorded */
} clv__trace_kind;

typedef struct clv__trace_event {
  clv__trace_kind kind;
  uint32_t request;
  uint32_t lane;             /* STEP: of the schedule */
  uint32_t step;             /* of the plan, or CLV__NO_ID */
  uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
  bool is_replay;            /* STEP: of a captured graph */
} clv__trace_event;

/* Recording costs each step an event of its own. */
void clv__session_trace(clv_session *session, bool on);
/* What was recorded so far, in no order; valid until the next run. */
const clv__trace_event *clv__session_trace_events(const clv_session *session, size_t *count);

#endif
