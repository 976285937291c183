/* The times of steps, and the trace, of a single configuration. See runner.h. */
#include "bench/columns.h"
#include "bench/runner.h"

enum { TRACED_RUNS = 3 };

static clv_status time_steps(clv__runner *b, clv_error *error) {
  uint32_t steps = clv__session_plan(b->session)->step_count, before = clv__session_incident_count(b->session);
  double *samples = clv__arena_allocate_zero(&b->arena, (size_t)steps * b->step_runs, sizeof *samples), ignored;
  b->steps_ms = clv__arena_allocate_zero(&b->arena, steps, sizeof *b->steps_ms);
  if (samples == NULL || b->steps_ms == NULL) return clv__error_memory(error, (size_t)steps * b->step_runs * sizeof *samples);
  clv__session_time_steps(b->session, true);
  for (uint32_t run = 0; run < b->step_runs && !clv__poll_stops(&b->bench->poll); ++run) {
    CLV__TRY(clv__runner_run(b, &ignored, error));
    if (clv__session_incident_count(b->session) != before) break; /* a device was removed, so the steps differ */
    for (uint32_t s = 0; s < steps; ++s) {
      samples[(size_t)s * b->step_runs + run] = (double)clv__session_step_time_ns(b->session, s) / 1e6;
    }
  }
  clv__session_time_steps(b->session, false);
  if (clv__poll_stops(&b->bench->poll)) {
    b->steps_ms = NULL;
    return CLV_OK;
  }
  for (uint32_t s = 0; s < steps; ++s) {
    double *of_step = samples + (size_t)s * b->step_runs;
    clv__sample_sort(of_step, b->step_runs);
    b->steps_ms[s] = clv__sample_median(of_step, b->step_runs);
  }
  return CLV_OK;
}

/* Measures steps in runs of their own, because waiting after each step makes a run slower. If a device is removed meanwhile, the
 * plan changes, and all steps are measured again. */
static clv_status measure_steps(clv__runner *b, clv_error *error) {
  uint32_t before;
  do {
    before = clv__session_incident_count(b->session);
    CLV__TRY(time_steps(b, error));
  } while (clv__session_incident_count(b->session) != before);
  return CLV_OK;
}

/* Traces further runs, so that tracing does not affect the measured ones. */
static clv_status trace_runs(clv__runner *b, clv_error *error) {
  const char *path = b->bench->options.trace_path;
  clv_trace_options options = CLV_TRACE_OPTIONS_INIT;
  if (path == NULL) return CLV_OK;
  double ignored;
  clv_session_trace_start(b->session);
  for (uint32_t i = 0; i < TRACED_RUNS; ++i) CLV__TRY(clv__runner_run(b, &ignored, error));
  clv_session_trace_stop(b->session);
  options.inputs = b->subject.inputs;
  options.input_count = b->subject.input_count;
  return clv_session_trace_write(b->session, &options, path, NULL, NULL, error);
}

clv_status clv__runner_measure_details(clv__runner *b, clv_error *error) {
  const clv_bench_options *options = &b->bench->options;
  clv__poll *poll = &b->bench->poll;
  if (!clv__poll_stops(poll)) CLV__TRY(trace_runs(b, error));
  if (options->steps && !clv__poll_stops(poll)) CLV__TRY(measure_steps(b, error));
  return options->operators && !clv__poll_stops(poll) ? clv__runner_measure_operators(b, error) : CLV_OK;
}
