/* `cleave bench`.
 *
 *   setting   what varies between configurations: the model, the devices, the numbers of threads and of requests, the batch
 *   bench     a configuration that is ready to run, and its measurements
 *   row       its results, which outlive it
 *
 * cmd_bench.c reads the options and measures one configuration after the other. compare.c measures configurations that take turns
 * (--compare-with). */
#ifndef CLEAVE_CLI_BENCH_BENCH_H
#define CLEAVE_CLI_BENCH_BENCH_H

#include "base/stop.h"
#include "cli/bench/statistics.h"
#include "cli/job.h"
#include "cli/json.h"
#include "execute/session.h"
#include "report/efficiency.h"

typedef struct bench_report bench_report; /* columns.h */

typedef struct bench_setting {
  const char *model;
  const char *devices, *threads, *batch, *in_flight; /* values of options; NULL: not given */
  bool is_peer;                                      /* a device of --compare-with */
} bench_setting;

/* How long to measure. If both limits are given, the first one reached ends the measurement. */
typedef struct bench_extent {
  uint32_t runs;        /* 0: no limit */
  uint64_t duration_ns; /* 0: no limit */
} bench_extent;

typedef struct bench {
  cli_invocation *cli;
  clv__arena arena; /* until bench_finish() */
  bench_setting setting;
  const char *label; /* for progress lines */
  cli_job job;
  clv_session *session;
  clv_tensor *outputs;
  clv_tensor *rooms; /* [in_flight * output_count]: output tensors with memory; NULL unless several requests are in flight */
  uint32_t output_count;
  bench_extent extent;
  uint32_t warmup, step_runs;
  uint32_t in_flight;
  const clv__stop *stop; /* set when the user interrupts */
  double load_ms, compile_ms, first_run_ms;
  bench_samples samples; /* the times of the measured runs, in their order */
  double total_ms;       /* sum over the bursts: each from the start of its first run to the end of its last */
  double *sorted_ms;     /* the samples, sorted: bench_conclude() */
  double *steps_ms;      /* median times, indexed by step of the session's plan */
  uint64_t peak_rss_bytes;
  clv__efficiency efficiency; /* with --operators */
} bench;

/* The number of measured runs. */
static inline size_t bench_runs(const bench *b) {
  return b->samples.count;
}

/* ---- prepare.c ---- */

/* Loads, plans and compiles, and executes the first run and the warm-up. During the call, cli->options has the options of this
 * configuration alone. */
clv_status bench_prepare(cli_invocation *cli, const bench_setting *setting, const char *label, bench *b, clv_error *error);
void bench_finish(bench *b);
/* Executes one run. If several requests may be in flight, the outputs are in b->rooms. Otherwise they are in b->outputs and in
 * the session's memory, as for a program that reads them immediately. */
clv_status bench_run_once(bench *b, double *time_ms, clv_error *error);

/* ---- measure.c, flow.c ---- */

/* Executes runs until one of the limits of `extent` is reached or the user interrupts, and adds their times to the samples. */
clv_status bench_burst(bench *b, const bench_extent *extent, clv_error *error);
/* Like bench_burst(), but keeps in_flight requests running at the same time. */
clv_status bench_burst_in_flight(bench *b, const bench_extent *extent, clv_error *error);
/* Returns whether a burst that began at `start_ns` and has made `done` runs should start another run. */
bool bench_goes_on(const bench *b, const bench_extent *extent, uint32_t done, uint64_t start_ns);
/* Allocates b->rooms. A run in a separate session determines the output types. */
clv_status bench_make_rooms(bench *b, clv_error *error);
/* Sorts the samples. Fails if there are none. */
clv_status bench_conclude(bench *b, clv_error *error);

/* ---- details.c, operators.c: measurements of a single configuration ---- */

/* Measures the times of steps and of operators, and the trace, each in separate runs. Does nothing if the user interrupted the
 * bench. */
clv_status bench_measure_details(bench *b, clv_error *error);
bool bench_wants_operators(const bench *b);
clv_status bench_measure_operators(bench *b, clv_error *error);
/* `plain_ms` is the time of a run without operator timing. */
json_t *bench_operators_json(const bench *b, double plain_ms);

/* ---- compare.c ---- */

/* Measures the settings by turns: the first one, and those that are compared with it. Adds a row for each. A configuration that
 * cannot run gets a row that says why, and is not an error of this function. */
clv_status bench_compare(cli_invocation *cli, const bench_setting *settings, const char *const *labels, uint32_t count,
                         bench_report *report, clv_error *error);

/* ---- print.c, details_json.c, captures.c ---- */

/* Report how a partition was issued (eager, captured or replayed) in the last run without step timing. If this is unknown, the
 * JSON is null and the text is empty. */
json_t *bench_issue_json(const bench *b, uint32_t partition);
void bench_issue_text(const bench *b, uint32_t partition, clv__text *text);
/* Adds the members that only the document of a single configuration has. */
void bench_details_json(const bench *b, json_t *root);
clv_status bench_print_text(const bench *b, const bench_report *report, clv_error *error);
static inline double bench_predicted_ms(const clv_plan *plan, const clv__step *step) {
  return (double)(step->is_transfer ? plan->price.copy_ns[step->index] : plan->price.partition_ns[step->index]) / 1e6;
}

#endif
