/* The measurements (cmd_bench.c, flow.c, operators.c) and the output (print.c, captures.c) of `cleave bench`. */
#ifndef CLEAVE_CLI_BENCH_BENCH_H
#define CLEAVE_CLI_BENCH_BENCH_H

#include "base/stop.h"
#include "cli/job.h"
#include "cli/json.h"
#include "execute/session.h"
#include "report/efficiency.h"

typedef struct bench {
  cli_invocation *cli;
  cli_job job;
  clv_session *session;
  clv_tensor *outputs;
  clv_tensor *rooms; /* [in_flight * output_count]: output tensors with memory; NULL unless several requests are in flight */
  uint32_t output_count;
  uint32_t runs, warmup, step_runs; /* `runs`: after an interruption, those that were made */
  const clv__stop *stop;            /* set when the user interrupts */
  uint32_t in_flight;
  double load_ms, compile_ms, first_run_ms;
  double *latencies_ms; /* sorted after the runs */
  double total_ms;      /* from the start of the first run to the end of the last */
  double *steps_ms;     /* median times, indexed by step of the session's plan */
  uint64_t peak_rss_bytes;
  clv__efficiency efficiency; /* with --operators */
} bench;

/* Allocates b->rooms. A run in a separate session determines the output types. */
clv_status bench_make_rooms(bench *b, clv_error *error);
/* Executes the runs, in_flight at a time. Fills latencies_ms (unsorted) and total_ms; `done` counts the runs. */
clv_status bench_measure_flow(bench *b, uint32_t *done, clv_error *error);
/* Executes one run (cmd_bench.c). If several requests may be in flight, the outputs are in b->rooms. Otherwise they are in the
 * session's memory, as for a program that reads them immediately. */
clv_status bench_run_once(bench *b, double *time_ms, clv_error *error);
/* operators.c: measures the time of each operator, for --operators. `plain_ms` is the time of a run without operator timing. */
bool bench_wants_operators(const bench *b);
clv_status bench_measure_operators(bench *b, clv_error *error);
json_t *bench_operators_json(const bench *b, double plain_ms);
/* Report how a partition was issued (eager, captured or replayed) in the last run without step timing. If this is unknown, the
 * JSON is null and the text is empty. */
json_t *bench_issue_json(const bench *b, uint32_t partition);
void bench_issue_text(const bench *b, uint32_t partition, clv__text *text);
/* Report the counters of captures per device. The text has one line for each device that captured or tried to. */
json_t *bench_captures_json(const bench *b);
void bench_write_captures(const bench *b, clv__text *text);
clv_status bench_print_json(const bench *b, clv_error *error);
clv_status bench_print_text(const bench *b, clv_error *error);

#endif
