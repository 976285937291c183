/* What `cleave bench` measures (cmd_bench.c, flow.c) and prints (print.c, graphs.c). */
#ifndef CLEAVE_CLI_BENCH_BENCH_H
#define CLEAVE_CLI_BENCH_BENCH_H

#include "cli/job.h"
#include "cli/json.h"
#include "execute/session.h"
#include "report/efficiency.h"

typedef struct bench {
  cli_invocation *cli;
  cli_job job;
  clv_session *session;
  clv_tensor *outputs;
  clv_tensor *rooms; /* with several requests in flight: outputs of each, with memory */
  uint32_t output_count;
  uint32_t runs, warmup, step_runs;
  uint32_t in_flight;
  double load_ms, compile_ms, first_run_ms;
  double *latencies_ms; /* sorted after the runs */
  double total_ms;      /* of all of them: with several in flight, less than their sum */
  double *steps_ms;     /* median, by step of the session's plan */
  uint64_t peak_rss_bytes;
  clv__efficiency efficiency; /* with --operators */
} bench;

/* Makes b->rooms: the types of outputs are those of a run in a session of its own. */
clv_status bench_make_rooms(bench *b, clv_error *error);
/* Runs with in_flight requests at a time; fills latencies_ms (in no order) and total_ms. */
clv_status bench_measure_flow(bench *b, clv_error *error);
/* One run; outputs lie in the session's memory, as a program that reads them at once would have it, unless several requests may
 * be in flight (cmd_bench.c). */
clv_status bench_run_once(bench *b, double *time_ms, clv_error *error);
/* What operators take, where that is asked for (operators.c). `plain_ms`: a run that is not timed. */
bool bench_wants_operators(const bench *b);
clv_status bench_measure_operators(bench *b, clv_error *error);
json_t *bench_operators_json(const bench *b, double plain_ms);
/* How a partition was issued in the last run that was not timed step by step; null, or nothing, where that is not known. */
json_t *bench_issue_json(const bench *b, uint32_t partition);
void bench_issue_text(const bench *b, uint32_t partition, clv__text *text);
/* Counters of captured graphs by device; a line a device that captured. */
json_t *bench_graphs_json(const bench *b);
void bench_write_graphs(const bench *b, clv__text *text);
clv_status bench_print_json(const bench *b, clv_error *error);
clv_status bench_print_text(const bench *b, clv_error *error);

#endif
