/* The part of a session that the command and the tests use beyond the public interface. */
#ifndef CLEAVE_EXECUTE_SESSION_H
#define CLEAVE_EXECUTE_SESSION_H

#include "base/stop.h"
#include "base/tensor/compare.h"
#include "cleave/session.h"
#include "compile/compile.h"

/* The plan that the session runs: the original one, or another one if a device was removed. Valid until the next run. */
const clv_plan *clv__session_plan(clv_session *session);

/* The session's options, with all defaults filled in. */
const clv_session_options *clv__session_options(const clv_session *session);

/* Prepares the session for inputs of these types, as a run would do first. Ignores their data. */
clv_status clv__session_prepare(clv_session *session, const clv_tensor *types, uint32_t count, clv_error *error);

/* A device that failed and was removed from the session. */
typedef struct clv__incident {
  uint32_t device;
  clv_status status; /* the status and the text of its failure */
  char text[256];
  uint32_t partition_count; /* number of partitions that it had, all of which were placed again */
  uint32_t onto;            /* bits of the devices that received these partitions */
  double cost_ms;           /* time of the failed attempt, of placing and of compiling, without the repetition of the run */
} clv__incident;
uint32_t clv__session_incident_count(clv_session *session);
/* Gets incident `index` of the session. Returns false if there are not that many incidents. */
bool clv__session_incident(clv_session *session, uint32_t index, clv__incident *incident);
/* Writes a text such as "npu was removed: …: 3 partitions were moved to cpu". */
void clv__incident_text(const clv_devices *devices, const clv__incident *incident, char *text, size_t size_bytes);

/* Returns where the executable of partition `index` came from when the session's current engine was made. */
const clv__origin *clv__session_origin(const clv_session *session, uint32_t index);
/* Removes from the disk cache the executables that the session compiled when it was made. For executables that nothing will
 * request again. */
void clv__session_forget(clv_session *session);

/* Switches the timing of steps on or off: whether runs measure the wall time of each step, including a wait for its completion.
 * Off by default, because it serialises the devices. */
void clv__session_time_steps(clv_session *session, bool on);
/* Returns the time of step `index` of the session's plan in the last timed run, in nanoseconds; 0 if there was none. */
uint64_t clv__session_step_time_ns(const clv_session *session, uint32_t index);

/* Times of the steps inside a partition (such as kernels), as measured by its device, in runs whose steps are timed. Call between
 * runs, and not while several threads run the session. clv__session_time_operators() switches the measurement on for every
 * partition of the last run and starts anew, or switches it off. A device that cannot measure is not an error.
 * clv__session_operators() lists the steps of partition `index` of the session's plan; their nodes are indices into the
 * partition's own nodes. CLV_NOT_SUPPORTED: its device does not report steps. */
clv_status clv__session_time_operators(clv_session *session, bool on, clv_error *error);
clv_status clv__session_operators(clv_session *session, uint32_t index, clv_step_fn found, void *cookie, clv_error *error);
/* Returns the types of the last run, by value. They are valid until the next run. */
const clv_tensor *clv__session_types(clv_session *session);

/* The statistics of one memory space. */
typedef struct clv__space_stats {
  const char *name;
  uint64_t planned_bytes; /* for boundary values of all requests, each with its largest set of shapes so far */
  uint64_t bound_bytes;   /* lower bound of planned_bytes if steps run one after the other: the most bytes alive at one step */
  uint64_t scratch_bytes; /* for instances; those of one request and device share it */
  uint64_t peak_bytes;    /* the most that the space's pool ever allocated, for all sessions */
  uint64_t need_bytes;    /* what the plan states for the space (clv__memory_need.total_bytes); 0 without a limit */
  uint64_t limit_bytes;   /* 0: none */
} clv__space_stats;

typedef struct clv__session_stats {
  double compile_ms;       /* all partitions, including uploads of weights */
  uint64_t weight_bytes;   /* uploaded to devices */
  uint64_t resident_bytes; /* executables, without their weights */
  clv__executables_counters executables;
  uint32_t space_count;
  clv__space_stats spaces[CLV__MAX_DEVICES + 1];
} clv__session_stats;
void clv__session_stats_get(clv_session *session, clv__session_stats *stats);

/* ---- verify.c ---- */

/* How a partition compared: its output that came closest to its tolerance, or went furthest beyond it. */
typedef struct clv__partition_check {
  clv_value_id value;         /* CLV__NO_ID: not compared, because an operator has no reference, or there is nothing to compare */
  clv__tolerance allowed;     /* the rule that gives the tolerance */
  clv__difference difference; /* of the output's worst element */
} clv__partition_check;

typedef struct clv__mismatch {
  uint32_t partition; /* CLV__NO_ID: everything agreed */
  clv_value_id value;
  size_t element; /* flat index of the worst element */
  double expected, actual;
  double largest;   /* the largest magnitude among the expected values */
  double tolerance; /* the allowed difference, absolute */
  uint32_t partitions_checked;
  uint32_t partitions_unknown; /* of these: executed but not compared, because an operator has no reference */
  uint32_t partitions_hosted;  /* of these: not executed, because the host renames their views */
  /* One per checked partition. The session owns them; its next verification frees them. */
  const clv__partition_check *checks;
} clv__mismatch;

/* Runs every partition on the reference evaluator's inputs and compares its outputs with the reference. The tolerance is that of
 * the dtype (base/tensor/compare.h) times the largest magnitude of the value. If the session's precision is bf16, f32 has the
 * tolerance of bf16. A value that the partition rounded to integers may also be off by one step of its quantisation grid; if it
 * was rounded n times in sequence, by the square root of n steps, because independent errors add up like that. A float that is
 * computed from such a value and lies on no grid has steps of 1/127 of its largest magnitude. `poll` is asked before each
 * partition; NULL: the verification cannot be stopped. */
clv_status clv__session_verify(clv_session *session, const clv_tensor *inputs, uint32_t input_count, clv__poll *poll,
                               clv__mismatch *mismatch, clv_error *error);

/* ---- trace.c ---- */

/* The timeline of a session's runs: recorded on request, and written by report/trace.c. */
typedef enum clv__trace_kind {
  CLV__TRACE_RUN,     /* a whole run: from binding the inputs to handing over the outputs */
  CLV__TRACE_PREPARE, /* preparing for new shapes */
  CLV__TRACE_STEP,   /* a partition or transfer on its lane: from its earliest possible start until its completion was reported */
  CLV__TRACE_ISSUE,  /* the driver's time to hand a step to the device */
  CLV__TRACE_WAIT,   /* the driver waits for devices */
  CLV__TRACE_CAPTURE /* recording the launches of a capture */
} clv__trace_kind;

typedef struct clv__trace_event {
  clv__trace_kind kind;
  uint32_t request;
  uint32_t lane;             /* STEP: its lane in the schedule */
  uint32_t step;             /* in the plan, or CLV__NO_ID */
  uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
  bool is_replay;            /* STEP: from a capture */
} clv__trace_event;

/* Switches recording on or off. Recording costs one extra event per step. */
void clv__session_trace(clv_session *session, bool on);
/* Discards the events recorded so far. */
void clv__session_trace_discard(clv_session *session);
/* Returns the events recorded so far, in no particular order. They are valid until the next run. */
const clv__trace_event *clv__session_trace_events(const clv_session *session, size_t *count);

#endif
