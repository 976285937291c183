/* What each operator of a session takes, and what it would take at least: times that devices tell of their own steps, beside the
 * roofline of the nodes that each step does (cost/roofline.h). */
#ifndef CLEAVE_REPORT_EFFICIENCY_H
#define CLEAVE_REPORT_EFFICIENCY_H

#include "cost/roofline.h"
#include "execute/session.h"

typedef enum clv__step_kind {
  CLV__STEP_OF_NODES,  /* of a device: the work of one node, or of several fused ones */
  CLV__STEP_OF_DEVICE, /* of a device: nothing that the model asks for, as a reorder */
  CLV__STEP_PARTITION, /* all of a partition: its device does not tell more */
  CLV__STEP_BETWEEN,   /* of a partition, beside its device's steps */
  CLV__STEP_TRANSFER
} clv__step_kind;
const char *clv__step_kind_word(clv__step_kind kind);

typedef struct clv__op_step {
  clv__step_kind kind;
  uint32_t device, index;     /* index: of the partition or transfer */
  const char *label;          /* "Conv+Relu", "reorder", "partition 3" */
  const char *implementation; /* "" where the device does not say */
  uint32_t node_count;
  const clv_node_id *nodes;
  clv_node_id beside; /* DEVICE: the node it is for, or CLV__NO_ID */
  clv__group_work work;
  double bytes;       /* as in `work`, else as the device says; negative: not known */
  double ms, roof_ms; /* at the median; at least: negative where that is not known, 0 where the model asks for nothing */
  bool by_compute;
} clv__op_step;

/* All steps of one label on one device. */
typedef struct clv__op_row {
  const char *label;
  clv__step_kind kind;
  uint32_t device, count;
  double ms, flops, bytes;   /* bytes negative: not known of one of them */
  double roof_ms, roofed_ms; /* at least, and how long those took of which that is known */
  double compute_ms;         /* the part of roof_ms that is arithmetic */
  double lost_ms;            /* of each step what it took beyond that, added up */
} clv__op_row;

typedef struct clv__efficiency {
  clv__arena arena;
  clv_session *session;
  uint32_t thread_count, most_runs, run_count;
  uint32_t step_count;
  clv__op_step *steps; /* in the order of the plan's steps and, within a partition, of its device's */
  uint32_t row_count;
  clv__op_row *rows; /* what takes longest first */
  uint32_t idle_count;
  clv_node_id *idle; /* nodes that nothing is done for: views, constants */
  uint32_t silent;   /* bits of devices that do not tell */
  bool has_peaks[CLV__MAX_DEVICES];
  clv__peaks peaks[CLV__MAX_DEVICES]; /* of those that run something */
  double ms, roof_ms;                 /* all steps; roof_ms: of those where it is known */

  double *samples_ms; /* [step * most_runs + run] */
  uint64_t *seen_ns;  /* by step: what the device had counted before */
} clv__efficiency;

/* After a run of the session: from now on its devices time their steps. `threads`: of the host's processor, 0 for all. */
clv_status clv__efficiency_begin(clv__efficiency *efficiency, clv_session *session, uint32_t threads, uint32_t most_runs,
                                 clv_error *error);
/* After each further run, whose steps the session timed as well (clv__session_time_steps()). The plan is the same. */
clv_status clv__efficiency_sample(clv__efficiency *efficiency, clv_error *error);
/* Works it all out, and ends the timing. */
clv_status clv__efficiency_make_rows(clv__efficiency *efficiency, clv_error *error);
/* Accepts one that was never begun, all zero. */
void clv__efficiency_finish(clv__efficiency *efficiency);

/* What it took beyond its roofline; negative where that is not known. */
static inline double clv__lost_ms(const clv__op_step *step) {
  return step->roof_ms < 0 ? -1 : step->ms > step->roof_ms ? step->ms - step->roof_ms : 0;
}
/* The row's: at least one of its steps has a roofline that is known. */
static inline bool clv__op_row_is_known(const clv__op_row *row) {
  return row->roofed_ms > 0 || row->lost_ms > 0;
}
static inline double clv__per_second(double amount, double ms) {
  return ms > 0 && amount >= 0 ? amount / (ms * 1e-3) : -1;
}

/* The table for people (efficiency_table.c). `plain_ms`: what a run takes when nothing is timed; `all`: every step as well. */
void clv__efficiency_write(const clv__efficiency *efficiency, double plain_ms, bool all, bool bold, clv__text *text);

#endif
