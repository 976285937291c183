/* Compares the time of each operator of a session with its lower bound. The times are those that devices report for their own
 * steps; the bound is the roofline of the nodes in each step (cost/roofline.h). */
#ifndef CLEAVE_REPORT_EFFICIENCY_H
#define CLEAVE_REPORT_EFFICIENCY_H

#include "cost/roofline.h"
#include "execute/session.h"

typedef enum clv__step_kind {
  CLV__STEP_OF_NODES,  /* a device's step: the work of one node or of several fused nodes */
  CLV__STEP_OF_DEVICE, /* a device's step that the model does not ask for, such as a reorder */
  CLV__STEP_PARTITION, /* a whole partition, if its device reports no steps */
  CLV__STEP_BETWEEN,   /* time of a partition outside its device's steps */
  CLV__STEP_TRANSFER
} clv__step_kind;
const char *clv__step_kind_word(clv__step_kind kind);

typedef struct clv__op_step {
  clv__step_kind kind;
  uint32_t device, index;     /* index of the partition or transfer */
  const char *label;          /* "Conv+Relu", "reorder", "partition 3" */
  const char *implementation; /* "" if the device does not report it */
  uint32_t node_count;
  const clv_node_id *nodes;
  clv_node_id beside; /* CLV__STEP_OF_DEVICE: the node that it serves, or CLV__NO_ID */
  clv__group_work work;
  double bytes;       /* as in `work`, otherwise as the device reports; negative: unknown */
  double ms, roof_ms; /* median time; lower bound: negative if unknown, 0 if the model asks for no work */
  bool by_compute;
} clv__op_step;

/* All steps with the same label on one device. */
typedef struct clv__op_row {
  const char *label;
  clv__step_kind kind;
  uint32_t device, count;
  double ms, flops, bytes;   /* `bytes` is negative if it is unknown for one of the steps */
  double roof_ms, roofed_ms; /* the lower bound, and the time of the steps for which it is known */
  double compute_ms;         /* the part of roof_ms spent on arithmetic */
  double lost_ms;            /* sum over the steps of the time above the bound */
} clv__op_row;

typedef struct clv__efficiency {
  clv__arena arena;
  clv_session *session;
  uint32_t thread_count, most_runs, run_count;
  uint32_t step_count;
  clv__op_step *steps; /* in the order of the plan's steps; within a partition, in its device's order */
  uint32_t row_count;
  clv__op_row *rows; /* slowest first */
  uint32_t idle_count;
  clv_node_id *idle; /* nodes without any work: views, constants */
  uint32_t silent;   /* bit mask of devices that report no steps */
  bool has_peaks[CLV__MAX_DEVICES];
  clv__peaks peaks[CLV__MAX_DEVICES]; /* of devices that run work */
  double ms, roof_ms;                 /* of all steps; roof_ms: of the steps where it is known */

  double *samples_ms; /* [step * most_runs + run] */
  uint64_t *seen_ns;  /* by step: the device's total time at the last sample */
} clv__efficiency;

/* Call after a run of the session. From now on the session's devices time their steps. `threads`: threads of the host's
 * processor, 0 for all. */
clv_status clv__efficiency_begin(clv__efficiency *efficiency, clv_session *session, uint32_t threads, uint32_t most_runs,
                                 clv_error *error);
/* Call after each further run, whose steps the session also timed (clv__session_time_steps()). The plan must be the same. */
clv_status clv__efficiency_sample(clv__efficiency *efficiency, clv_error *error);
/* Computes the rows and ends the timing. */
clv_status clv__efficiency_make_rows(clv__efficiency *efficiency, clv_error *error);
/* Accepts one that was never begun (all zero). */
void clv__efficiency_finish(clv__efficiency *efficiency);

/* The time above the roofline; negative if unknown. */
static inline double clv__lost_ms(const clv__op_step *step) {
  return step->roof_ms < 0 ? -1 : step->ms > step->roof_ms ? step->ms - step->roof_ms : 0;
}
/* Whether at least one step of the row has a known roofline. */
static inline bool clv__op_row_is_known(const clv__op_row *row) {
  return row->roofed_ms > 0 || row->lost_ms > 0;
}
static inline double clv__per_second(double amount, double ms) {
  return ms > 0 && amount >= 0 ? amount / (ms * 1e-3) : -1;
}

/* Writes the table for people (efficiency_table.c). `plain_ms`: the time of a run without timing; `all`: also lists every
 * step. */
void clv__efficiency_write(const clv__efficiency *efficiency, double plain_ms, bool all, bool bold, clv__text *text);

#endif
