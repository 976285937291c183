/* Makes a configuration ready and executes its measured runs. See runner.h. */
#include <string.h>

#include "base/clock.h"
#include "base/peak_memory.h"
#include "bench/columns.h"
#include "bench/runner.h"

enum { STEP_RUNS_LEAST = 3, STEP_RUNS_MOST = 20 };

void clv__runner_tell(const clv__runner *b, clv_bench_phase phase, uint64_t done, uint64_t of) {
  const clv_bench_options *options = &b->bench->options;
  if (options->progress == NULL) return;
  const clv_bench_progress now = {.struct_size = sizeof now,
                                  .phase = phase,
                                  .label = b->subject.label,
                                  .done = done,
                                  .of = of,
                                  .seconds = b->total_ms / 1e3,
                                  .of_seconds = options->duration_s};
  options->progress(options->user_data, &now);
}

/* ---- One run ---- */

clv_status clv__runner_run(clv__runner *b, double *time_ms, clv_error *error) {
  clv_tensor *outputs = b->rooms != NULL ? b->rooms : b->outputs;
  if (b->rooms == NULL) memset(outputs, 0, b->output_count * sizeof *outputs);
  uint64_t start = clv__clock_ns();
  CLV__TRY(clv_session_run(b->session, b->subject.inputs, b->subject.input_count, outputs, b->output_count, error));
  *time_ms = clv__ms(start, clv__clock_ns());
  return CLV_OK;
}

/* ---- The configuration ---- */

static clv_status warm_up(clv__runner *b, clv_error *error) {
  double ignored;
  const uint32_t warmup = b->bench->options.warmup;
  clv__runner_tell(b, CLV_BENCH_FIRST_RUN, 0, (uint64_t)warmup + 1);
  if (b->in_flight > 1)
    CLV__TRY(clv__runner_first_in_flight(b, &b->first_run_ms, error));
  else
    CLV__TRY(clv__runner_run(b, &b->first_run_ms, error));
  for (uint32_t i = 0; i < warmup; ++i) CLV__TRY(clv__runner_run(b, &ignored, error));
  clv__runner_tell(b, CLV_BENCH_RUNS, 0, b->bench->extent.runs);
  return CLV_OK;
}

clv_status clv__runner_begin(clv_bench *bench, const clv_bench_subject *subject, clv__runner *b, clv_error *error) {
  *b = (clv__runner){.bench = bench, .subject = *subject, .session = subject->session};
  clv__arena_init(&b->arena, bench->allocator);
  b->load_ms = subject->load_ms + subject->plan_ms + subject->compile_ms;
  b->plan = clv_session_plan(b->session);
  b->graph = b->plan->graph;
  b->devices = b->plan->devices;
  b->in_flight = clv__session_options(b->session)->in_flight;
  const uint32_t runs = bench->extent.runs;
  b->step_runs = runs == 0 || runs > STEP_RUNS_MOST ? STEP_RUNS_MOST : runs;
  if (b->step_runs < STEP_RUNS_LEAST) b->step_runs = STEP_RUNS_LEAST;
  b->output_count = b->graph->output_count + b->plan->kept_count;
  b->outputs = clv__arena_allocate_zero(&b->arena, b->output_count, sizeof *b->outputs);
  if (b->outputs == NULL) return clv__error_memory(error, b->output_count * sizeof *b->outputs);
  return warm_up(b, error);
}

void clv__runner_finish(clv__runner *b) {
  if (b->bench == NULL) return;
  clv__efficiency_finish(&b->efficiency);
  clv__samples_finish(&b->samples, b->arena.allocator);
  clv__arena_finish(&b->arena);
  *b = (clv__runner){0};
}

/* ---- Measured runs ---- */

bool clv__runner_goes_on(const clv__runner *b, const clv__bench_extent *extent, uint32_t done, uint64_t start_ns) {
  if (clv__poll_stops(&b->bench->poll) || (extent->runs > 0 && done >= extent->runs)) return false;
  clv__runner_tell(b, CLV_BENCH_RUNS, clv__runner_runs(b), b->bench->extent.runs);
  return done == 0 || extent->duration_ns == 0 || clv__clock_ns() - start_ns < extent->duration_ns;
}

static clv_status burst(clv__runner *b, const clv__bench_extent *extent, uint64_t start_ns, clv_error *error) {
  const double before_ms = b->total_ms;
  for (uint32_t done = 0; clv__runner_goes_on(b, extent, done, start_ns); ++done) {
    double time_ms;
    CLV__TRY(clv__runner_run(b, &time_ms, error));
    if (!clv__samples_add(&b->samples, b->arena.allocator, time_ms)) return clv__error_memory(error, sizeof time_ms);
    b->total_ms = before_ms + clv__ms(start_ns, clv__clock_ns());
  }
  return CLV_OK;
}

clv_status clv__runner_burst(clv__runner *b, const clv__bench_extent *extent, clv_error *error) {
  return b->in_flight > 1 ? clv__runner_burst_in_flight(b, extent, error) : burst(b, extent, clv__clock_ns(), error);
}

clv_status clv__runner_conclude(clv__runner *b, clv_error *error) {
  const size_t count = clv__runner_runs(b);
  if (count == 0) return clv__error_set(error, CLV_CANCELLED, "interrupted before the first run");
  b->sorted_ms = clv__arena_copy(&b->arena, b->samples.items, count * sizeof *b->sorted_ms);
  if (b->sorted_ms == NULL) return clv__error_memory(error, count * sizeof *b->sorted_ms);
  clv__sample_sort(b->sorted_ms, count);
  b->peak_rss_bytes = clv__peak_memory_bytes();
  return CLV_OK;
}
