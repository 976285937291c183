/* Measures the time of sessions: see cleave/bench.h.
 *
 *   runner    a configuration with its measurements
 *   row       its results, which outlive it
 *
 * measure.c makes a single configuration ready, runs it and measures its details. compare.c measures configurations that take
 * turns. columns.h has the rows. */
#ifndef CLEAVE_BENCH_RUNNER_H
#define CLEAVE_BENCH_RUNNER_H

#include <jansson.h>

#include "base/stop.h"
#include "base/text.h"
#include "bench/statistics.h"
#include "cleave/bench.h"
#include "cleave/session_info.h"
#include "cleave/trace.h"
#include "execute/session.h"
#include "report/efficiency.h"

/* How long to measure. If both limits are given, the first one reached ends the measurement. */
typedef struct clv__bench_extent {
  uint32_t runs;        /* 0: no limit */
  uint64_t duration_ns; /* 0: no limit */
} clv__bench_extent;

typedef struct clv__runner {
  clv_bench *bench;
  clv__arena arena;          /* until clv__runner_finish() */
  clv_bench_subject subject; /* its texts are in the arena of the bench */
  clv_session *session;
  const clv_plan *plan; /* the session's first plan */
  const clv_graph *graph;
  const clv_devices *devices;
  clv_tensor *outputs;
  clv_tensor *rooms; /* [in_flight * output_count]: output tensors with memory; NULL unless several requests are in flight */
  uint32_t output_count;
  uint32_t in_flight, step_runs;
  double load_ms, first_run_ms;
  clv__samples samples; /* the times of the measured runs, in their order */
  double total_ms;      /* sum over the bursts: each from the start of its first run to the end of its last */
  double *sorted_ms;    /* the samples, sorted: clv__runner_conclude() */
  double *steps_ms;     /* median times, indexed by step of the session's plan; NULL: not measured */
  uint64_t peak_rss_bytes;
  bool has_operators;
  clv__efficiency efficiency; /* if `has_operators` */
} clv__runner;

/* The number of measured runs. */
static inline size_t clv__runner_runs(const clv__runner *b) {
  return b->samples.count;
}

/* bench.c: reads a caller's subject, and copies its texts to the arena of the bench. Sets all texts. */
clv_status clv__bench_read_subject(clv_bench *bench, const clv_bench_subject *given, clv_bench_subject *subject,
                                   clv_error *error);

/* ---- measure.c, flow.c ---- */

/* Copies the subject, and executes the first run and the warm-up. */
clv_status clv__runner_begin(clv_bench *bench, const clv_bench_subject *subject, clv__runner *b, clv_error *error);
void clv__runner_finish(clv__runner *b); /* accepts one that is all zero */
/* Executes one run. If several requests may be in flight, the outputs are in b->rooms. Otherwise they are in b->outputs and in
 * the session's memory, as for a program that reads them immediately. */
clv_status clv__runner_run(clv__runner *b, double *time_ms, clv_error *error);
/* Executes runs until one of the limits of `extent` is reached or go_on() stops the bench, and adds their times to the samples.
 */
clv_status clv__runner_burst(clv__runner *b, const clv__bench_extent *extent, clv_error *error);
/* Like clv__runner_burst(), but keeps in_flight requests running at the same time. */
clv_status clv__runner_burst_in_flight(clv__runner *b, const clv__bench_extent *extent, clv_error *error);
/* Returns whether a burst that began at `start_ns` and has made `done` runs should start another run. */
bool clv__runner_goes_on(const clv__runner *b, const clv__bench_extent *extent, uint32_t done, uint64_t start_ns);
/* Executes the first run where several requests may be in flight, and makes b->rooms, because it shows the types of outputs. */
clv_status clv__runner_first_in_flight(clv__runner *b, double *time_ms, clv_error *error);
/* Sorts the samples. Fails if there are none. */
clv_status clv__runner_conclude(clv__runner *b, clv_error *error);
void clv__runner_tell(const clv__runner *b, clv_bench_phase phase, uint64_t done, uint64_t of);

/* ---- details.c, operators.c: measurements of a single configuration ---- */

/* Measures the times of steps and of operators, and the trace, each in separate runs. Does nothing if the bench was stopped. */
clv_status clv__runner_measure_details(clv__runner *b, clv_error *error);
clv_status clv__runner_measure_operators(clv__runner *b, clv_error *error);
/* `plain_ms` is the time of a run without operator timing. */
json_t *clv__runner_operators_json(const clv__runner *b, double plain_ms);

/* ---- details_text.c, details_json.c ---- */

/* Finds how the partition was issued (eager, captured or replayed) in the last run without step timing. Returns false if this is
 * unknown, for example because the session removed a device and now runs another plan. */
bool clv__runner_launch(const clv__runner *b, uint32_t partition, clv_launch_info *info);
const char *clv__launch_word(clv_launch_state state);
/* Adds the members that only the document of a single configuration has. */
void clv__runner_details_json(const clv__runner *b, json_t *root);
void clv__runner_details_text(const clv__runner *b, clv_bench_level level, bool is_terminal, clv__text *text);
static inline double clv__predicted_ms(const clv_plan *plan, const clv__step *step) {
  return (double)(step->is_transfer ? plan->price.copy_ns[step->index] : plan->price.partition_ns[step->index]) / 1e6;
}

#endif
