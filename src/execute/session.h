/* What the command and the tests see of a session beyond the public interface. */
#ifndef CLEAVE_EXECUTE_SESSION_H
#define CLEAVE_EXECUTE_SESSION_H

#include "cleave/session.h"
#include "compile/compile.h"

/* The plan that it runs: the one it was made from, or, where a device was taken out, another. Valid until the next run. */
const clv_plan *clv__session_plan(clv_session *session);

/* What a run with inputs of these types would prepare first, now; their data is not looked at. */
clv_status clv__session_prepare(clv_session *session, const clv_tensor *types, uint32_t count, clv_error *error);

/* A device that failed, and was taken out of the session. */
typedef struct clv__incident {
  uint32_t device;
  clv_status status; /* and text: what it failed with */
  char text[256];
  uint32_t partition_count; /* that it had, and that were placed again */
  uint32_t onto;            /* bits of devices: where */
  double cost_ms;           /* of what was begun in vain, placing and compiling; what is done again comes on top */
} clv__incident;
uint32_t clv__session_incident_count(clv_session *session);
/* False where there are not as many. */
bool clv__session_incident(clv_session *session, uint32_t index, clv__incident *incident);
/* "npu was taken out: …: 3 partitions were placed again on cpu" */
void clv__incident_text(const clv_devices *devices, const clv__incident *incident, char *text, size_t size_bytes);

/* Where the executable of partition `index` came from when the session was made. */
const clv__origin *clv__session_origin(const clv_session *session, uint32_t index);
/* Takes out of the cache on disk what was compiled, and not found, when the session was made: nobody will ask for it again. */
void clv__session_forget(clv_session *session);

/* Per step of the last run; wall time around each step with a wait after it, only when asked for: it serialises devices. */
void clv__session_time_steps(clv_session *session, bool on);
/* Nanoseconds of step `index` of the session's plan in the last timed run. */
uint64_t clv__session_step_time_ns(const clv_session *session, uint32_t index);

/* What devices' own steps take, in runs whose steps are timed. Between runs; not while several threads run the session.
 * clv__session_time_operators(): for every partition that the last run had, from now on, and anew; or no more. A device that
 * cannot is no error. clv__session_operators(): the steps of partition `index` of the session's plan, their nodes being indices
 * into its own. CLV_NOT_SUPPORTED: its device does not tell. */
clv_status clv__session_time_operators(clv_session *session, bool on, clv_error *error);
clv_status clv__session_operators(clv_session *session, uint32_t index, clv_step_fn found, void *cookie, clv_error *error);
/* By value: the types of the last run; valid until the next. */
const clv_tensor *clv__session_types(clv_session *session);

/* Of one memory space. */
typedef struct clv__space_stats {
  const char *name;
  uint64_t planned_bytes; /* of boundary values, of all requests; the largest set of shapes met */
  uint64_t bound_bytes;   /* the most alive at one step, where steps come one after the other: such a run cannot need less */
  uint64_t scratch_bytes; /* of instances, shared by those of one request and device */
  uint64_t peak_bytes;    /* most ever given out by the space's pool, to all sessions */
  uint64_t limit_bytes;   /* 0: none */
} clv__space_stats;

typedef struct clv__session_stats {
  double compile_ms;       /* all partitions, and uploads of weights */
  uint64_t weight_bytes;   /* uploaded to devices */
  uint64_t resident_bytes; /* executables, beside weights */
  clv__program_counters executables;
  uint32_t space_count;
  clv__space_stats spaces[CLV__MAX_DEVICES + 1];
} clv__session_stats;
void clv__session_stats_get(clv_session *session, clv__session_stats *stats);

/* ---- verify.c ---- */

typedef struct clv__mismatch {
  uint32_t partition; /* CLV__NO_ID: everything agreed */
  clv_value_id value;
  size_t element; /* flat index of the worst one */
  double expected, actual;
  double largest;   /* largest magnitude among the expected */
  double tolerance; /* that was allowed, absolute */
  uint32_t partitions_checked;
  uint32_t partitions_unknown; /* of these: run, but with an operator that has no reference */
} clv__mismatch;

/* Runs every partition on the reference evaluator's inputs and compares what it writes with the reference. The tolerance is that
 * of the dtype (base/tensor/compare.h), times the largest magnitude of the value (bf16's for f32, where the session's precision
 * is bf16); a tenth of that where a partition rounds to integers. */
clv_status clv__session_verify(clv_session *session, const clv_tensor *inputs, uint32_t input_count, clv__mismatch *mismatch,
                               clv_error *error);

/* ---- trace.c ---- */

/* What happened when in the runs of a session: recorded while it is asked for, as report/trace.c writes it. */
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
