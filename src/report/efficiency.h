/* Compares the time of each operator of a session with a lower bound. The times are those that devices report for their steps.
 * The bound is the roofline of the nodes in each step (cost/roofline.h). */
#ifndef CLEAVE_REPORT_EFFICIENCY_H
#define CLEAVE_REPORT_EFFICIENCY_H

#include "cost/roofline.h"
#include "execute/session.h"

typedef enum clv__step_kind {
  CLV__STEP_OF_NODES,  /* a device's step: the work of one node or of several fused nodes */
  CLV__STEP_OF_DEVICE, /* a device's step that does the work of no node, such as a reorder */
  CLV__STEP_PARTITION, /* a whole partition, if its device reports no steps */
  CLV__STEP_BETWEEN,   /* the time of a partition outside the steps that its device reports */
  CLV__STEP_TRANSFER
} clv__step_kind;
const char *clv__step_kind_word(clv__step_kind kind);

typedef struct clv__op_step {
  clv__step_kind kind;
  uint32_t device, index;     /* `index` is that of the partition or transfer in the plan */
  const char *label;          /* "Conv+Relu", "reorder", "partition 3" */
  const char *implementation; /* "" if the device does not report it */
  uint32_t node_count;
  const clv_node_id *nodes;
  clv_node_id beside; /* CLV__STEP_OF_DEVICE: the node for which the device needs the step, or CLV__NO_ID */
  clv__group_work work;
  double bytes;       /* bytes moved: from `work` if it is known, otherwise as the device reports; negative if unknown */
  double ms, roof_ms; /* the median time, and its lower bound: negative if unknown, 0 if the nodes need no work */
  bool by_compute;    /* the bound is due to arithmetic, not to memory traffic */
} clv__op_step;

/* The steps with the same label on one device, added up. */
typedef struct clv__op_row {
  const char *label;
  clv__step_kind kind;
  uint32_t device, count;
  double ms, flops, bytes;   /* `bytes` is negative if it is unknown for one of the steps */
  double roof_ms, roofed_ms; /* the sum of the lower bounds that are known, and the time of the steps that have one */
  double compute_ms;         /* the part of roof_ms from steps bound by arithmetic */
  double lost_ms;            /* the sum, over the steps, of the time above the bound */
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
  clv__peaks peaks[CLV__MAX_DEVICES]; /* set if has_peaks is true: for devices that run nodes */
  double ms, roof_ms;                 /* the time of all steps, and the sum of the lower bounds that are known */

  double *samples_ms; /* [step * most_runs + run]: time of the step in that run */
  uint64_t *seen_ns;  /* indexed by step: the total time that the device had reported by the last sample */
} clv__efficiency;

/* Lists the steps, and makes the session's devices time them from now on. Call it after a run of the session. `threads` is the
 * number of threads with which the CPU works, 0 for all cores. */
clv_status clv__efficiency_begin(clv__efficiency *efficiency, clv_session *session, uint32_t threads, uint32_t most_runs,
                                 clv_error *error);
/* Stores the times of the last run. Call it after each further run, in which the session must also have timed the plan's steps
 * (clv__session_time_steps()). The session's plan must not change meanwhile. */
clv_status clv__efficiency_sample(clv__efficiency *efficiency, clv_error *error);
/* Computes the rows and ends the timing. */
clv_status clv__efficiency_make_rows(clv__efficiency *efficiency, clv_error *error);
/* Accepts a zeroed struct. */
void clv__efficiency_finish(clv__efficiency *efficiency);

/* Returns a step's time above its lower bound, or -1 if the bound is unknown. */
static inline double clv__lost_ms(const clv__op_step *step) {
  return step->roof_ms < 0 ? -1 : step->ms > step->roof_ms ? step->ms - step->roof_ms : 0;
}
/* Returns whether the lower bound of at least one step of the row is known. */
static inline bool clv__op_row_is_known(const clv__op_row *row) {
  return row->roofed_ms > 0 || row->lost_ms > 0;
}
static inline double clv__per_second(double amount, double ms) {
  return ms > 0 && amount >= 0 ? amount / (ms * 1e-3) : -1;
}

/* Writes the results as a table (efficiency_table.c). `plain_ms` is the time of a run in which steps were not timed, or 0. With
 * `all`, also lists every step. */
void clv__efficiency_write(const clv__efficiency *efficiency, double plain_ms, bool all, bool bold, clv__text *text);

#endif
