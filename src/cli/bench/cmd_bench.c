/* `cleave bench`: measures a model's latency, as a whole and step by step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/trim.h"
#include "cli/bench/bench.h"
#include "cli/console.h"
#include "cli/interrupt.h"
#include "report/trace.h"

enum { STEP_RUNS_LEAST = 3, STEP_RUNS_MOST = 20, TRACED_RUNS = 3 };

static int compare_reals(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(const double *sorted, uint32_t count) {
  return count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

clv_status bench_run_once(bench *b, double *time_ms, clv_error *error) {
  clv_tensor *outputs = b->rooms != NULL ? b->rooms : b->outputs;
  if (b->rooms == NULL) memset(outputs, 0, b->output_count * sizeof *outputs);
  uint64_t start = clv__clock_ns();
  CLV__TRY(clv_session_run(b->session, b->job.inputs.tensors, b->job.inputs.count, outputs, b->output_count, error));
  *time_ms = cli_ms(start, clv__clock_ns());
  return CLV_OK;
}

static clv_status prepare(bench *b, clv_error *error) {
  cli_invocation *cli = b->cli;
  b->runs = (uint32_t)cli_number(cli, OPTION_RUNS, 50);
  b->warmup = (uint32_t)cli_number(cli, OPTION_WARMUP, 5);
  b->step_runs = b->runs < STEP_RUNS_LEAST ? STEP_RUNS_LEAST : b->runs > STEP_RUNS_MOST ? STEP_RUNS_MOST : b->runs;
  CLV__TRY(cli_job_load(cli, cli->options->operands[0], &b->job, error));
  CLV__TRY(cli_job_plan(cli, &b->job, true, error));
  clv_session_options options;
  cli_job_session_options(cli, &b->job, &options);
  b->in_flight = options.in_flight;
  cli_progress(cli, "compiling %s", b->job.path);
  uint64_t start = clv__clock_ns();
  CLV__TRY(clv_session_create(b->job.plan, &options, &b->session, error));
  cli_job_note_compiled(cli, &b->job, b->session);
  (void)clv__memory_trim();
  b->compile_ms = cli_ms(start, clv__clock_ns());
  b->load_ms = b->job.load_ms + b->job.plan_ms + b->compile_ms;
  CLV__TRY(cli_inputs_fill(cli, &b->job, cli_number(cli, OPTION_SEED, 0), error));
  b->output_count = b->job.graph->output_count + b->job.plan->kept_count;
  b->outputs = clv__arena_allocate_zero(&cli->arena, b->output_count, sizeof *b->outputs);
  b->latencies_ms = clv__arena_allocate_zero(&cli->arena, b->runs, sizeof *b->latencies_ms);
  if (b->outputs == NULL || b->latencies_ms == NULL) return clv__error_memory(error, b->runs * sizeof(double));
  return b->in_flight > 1 ? bench_make_rooms(b, error) : CLV_OK;
}

static clv_status measure_runs(bench *b, clv_error *error) {
  double ignored;
  cli_progress(b->cli, "%s: first run", b->job.path);
  CLV__TRY(bench_run_once(b, &b->first_run_ms, error));
  for (uint32_t i = 0; i < b->warmup; ++i) CLV__TRY(bench_run_once(b, &ignored, error));
  b->stop = cli_interrupt_keep();
  uint64_t start = clv__clock_ns();
  uint32_t done = 0;
  while (b->in_flight == 1 && done < b->runs && !clv__is_stopped(b->stop)) {
    CLV__TRY(bench_run_once(b, &b->latencies_ms[done++], error));
    cli_progress(b->cli, "%s: run %u of %u", b->job.path, done, b->runs);
  }
  b->total_ms = cli_ms(start, clv__clock_ns());
  if (b->in_flight > 1) CLV__TRY(bench_measure_flow(b, &done, error));
  b->runs = done;
  if (done == 0) return clv__error_set(error, CLV_CANCELLED, "interrupted before the first run");
  qsort(b->latencies_ms, b->runs, sizeof *b->latencies_ms, compare_reals);
  b->peak_rss_bytes = cli_peak_rss_bytes();
  return CLV_OK;
}

static clv_status time_steps(bench *b, clv_error *error) {
  uint32_t steps = clv__session_plan(b->session)->step_count, before = clv__session_incident_count(b->session);
  double *samples = clv__arena_allocate_zero(&b->cli->arena, (size_t)steps * b->step_runs, sizeof *samples), ignored;
  b->steps_ms = clv__arena_allocate_zero(&b->cli->arena, steps, sizeof *b->steps_ms);
  if (samples == NULL || b->steps_ms == NULL) return clv__error_memory(error, (size_t)steps * b->step_runs * sizeof *samples);
  clv__session_time_steps(b->session, true);
  for (uint32_t run = 0; run < b->step_runs && !clv__is_stopped(b->stop); ++run) {
    CLV__TRY(bench_run_once(b, &ignored, error));
    if (clv__session_incident_count(b->session) != before) break; /* a device was removed, so the steps differ */
    for (uint32_t s = 0; s < steps; ++s) {
      samples[(size_t)s * b->step_runs + run] = (double)clv__session_step_time_ns(b->session, s) / 1e6;
    }
  }
  clv__session_time_steps(b->session, false);
  if (clv__is_stopped(b->stop)) {
    b->steps_ms = NULL;
    return CLV_OK;
  }
  for (uint32_t s = 0; s < steps; ++s) {
    double *of_step = samples + (size_t)s * b->step_runs;
    qsort(of_step, b->step_runs, sizeof *of_step, compare_reals);
    b->steps_ms[s] = median(of_step, b->step_runs);
  }
  return CLV_OK;
}

/* Measures steps in runs of their own, because waiting after each step makes a run slower. If a device is removed meanwhile, the
 * plan changes, and all steps are measured again. */
static clv_status measure_steps(bench *b, clv_error *error) {
  uint32_t before;
  do {
    before = clv__session_incident_count(b->session);
    CLV__TRY(time_steps(b, error));
  } while (clv__session_incident_count(b->session) != before);
  return CLV_OK;
}

/* Traces further runs, so that tracing does not affect the measured ones. */
static clv_status trace_runs(bench *b, clv_error *error) {
  const char *path = cli_text(b->cli, OPTION_TRACE, NULL);
  if (path == NULL) return CLV_OK;
  double ignored;
  size_t count;
  clv__session_trace(b->session, true);
  for (uint32_t i = 0; i < TRACED_RUNS; ++i) CLV__TRY(bench_run_once(b, &ignored, error));
  clv__session_trace(b->session, false);
  const clv__trace_event *events = clv__session_trace_events(b->session, &count);
  return clv__report_trace(clv__session_plan(b->session), events, count, path, error);
}

/* The measurements beside those of the runs. An interrupted bench leaves them out. */
static clv_status measure_more(bench *b, clv_error *error) {
  CLV__TRY(trace_runs(b, error));
  if (!clv__is_stopped(b->stop)) CLV__TRY(measure_steps(b, error));
  return clv__is_stopped(b->stop) ? CLV_OK : bench_measure_operators(b, error);
}

static clv_status execute(cli_invocation *cli, clv_error *error) {
  bench b = {.cli = cli};
  clv_status status = prepare(&b, error);
  if (status == CLV_OK) status = measure_runs(&b, error);
  if (status == CLV_OK && !clv__is_stopped(b.stop)) status = measure_more(&b, error);
  if (status == CLV_OK) status = cli->json ? bench_print_json(&b, error) : bench_print_text(&b, error);
  if (cli_is_interrupted()) cli->exit_status = cli_interrupt_status();
  cli_interrupt_keep_end();
  clv__efficiency_finish(&b.efficiency);
  clv_session_destroy(b.session);
  cli_job_finish(cli, &b.job);
  return status;
}

const cli_command cli_command_bench = {
    .name = "bench",
    .operands = "MODEL|PLAN|DIR",
    .min_operands = 1,
    .max_operands = 1,
    .summary = "measure the time of a model, in total and per step",
    .description =
        "Loads, plans and compiles the model, runs it once (the first run), warms up, and then measures --runs runs on the same\n"
        "inputs. The load time is everything before the first run. The times of partitions and transfers are measured in\n"
        "separate runs, because waiting after each step takes time. With --operators, further runs measure each operator on\n"
        "devices that report operator times, and the peak compute and memory speed of this machine. Operators that take long\n"
        "and are far from their roofline are the ones worth optimising.",
    .examples =
        "  cleave bench resnet50.onnx --runs 100                 # measure 100 runs\n"
        "  cleave bench resnet50.onnx --threads 2 --operators    # also measure each operator\n"
        "  cleave bench plan.json --threads 2 --json             # measure a plan; print JSON\n",
    .execute = execute,
};
