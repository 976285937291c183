/* `cleave bench`.
 *
 *   setting   what varies between configurations: the model, the devices, the numbers of threads and of requests, the batch
 *   config    a configuration that is ready to run
 *
 * cmd_bench.c reads the options, and has the library (cleave/bench.h) measure one configuration after the other, or those of
 * --compare-with by turns. */
#ifndef CLEAVE_CLI_BENCH_BENCH_H
#define CLEAVE_CLI_BENCH_BENCH_H

#include "cleave/bench.h"
#include "cli/job.h"

typedef struct bench_setting {
  const char *model;
  const char *devices, *threads, *batch, *in_flight; /* values of options; NULL: not given */
  bool is_peer;                                      /* a device of --compare-with */
  const char *label;                                 /* for progress lines */
} bench_setting;

typedef struct bench_config {
  cli_job job;
  clv_session *session;
  double compile_ms;
} bench_config;

/* ---- prepare.c ---- */

/* Loads, plans and compiles, and makes the inputs. During the call, cli->options has the options of this configuration alone.
 * Call bench_close() afterwards, also on failure. */
clv_status bench_open(cli_invocation *cli, const bench_setting *setting, bench_config *config, clv_error *error);
clv_bench_subject bench_subject_of(const bench_setting *setting, const bench_config *config);
void bench_close(cli_invocation *cli, bench_config *config);

#endif
