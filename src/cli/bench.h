/* What `cleave bench` measures (cmd_bench.c, bench_flow.c) and prints (bench_print.c, bench_graphs.c). */
#ifndef CLEAVE_CLI_BENCH_H
#define CLEAVE_CLI_BENCH_H

#include "cli/job.h"
#include "cli/json.h"
#include "execute/session.h"

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
} bench;

/* Makes b->rooms: the types of outputs are those of a run in a session of its own. */
clv_status bench_make_rooms(bench *b, clv_error *error);
/* Runs with in_flight requests at a time; fills latencies_ms (in no order) and total_ms. */
clv_status bench_measure_flow(bench *b, clv_error *error);
/* How a partition was issued in the last run that was not timed step by step; null, or nothing, where that is not known. */
json_t *bench_issue_json(const bench *b, uint32_t partition);
void bench_issue_text(const bench *b, uint32_t partition, clv__text *text);
/* Counters of captured graphs by device; a line a device that captured. */
json_t *bench_graphs_json(const bench *b);
void bench_write_graphs(const bench *b, clv__text *text);
clv_status bench_print_json(const bench *b, clv_error *error);
clv_status bench_print_text(const bench *b, clv_error *error);

#endif
