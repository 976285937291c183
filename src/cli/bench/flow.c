/* Keeps a fixed number of requests in flight. See bench.h. */
#include <string.h>

#include "base/clock.h"
#include "cli/bench/bench.h"
#include "cli/console.h"

static clv_status make_rooms(bench *b, const clv_tensor *types, clv_error *error) {
  clv__arena *arena = &b->arena;
  b->rooms = clv__arena_allocate_zero(arena, (size_t)b->in_flight * b->output_count, sizeof *b->rooms);
  if (b->rooms == NULL) return clv__error_memory(error, b->output_count * sizeof *b->rooms);
  for (uint32_t i = 0; i < b->in_flight * b->output_count; ++i) {
    size_t size_bytes;
    b->rooms[i] = types[i % b->output_count];
    if (!clv__tensor_size_bytes(&b->rooms[i], &size_bytes)) return clv__error_memory(error, SIZE_MAX);
    b->rooms[i].data = clv__arena_allocate_data(arena, size_bytes);
    if (b->rooms[i].data == NULL) return clv__error_memory(error, size_bytes);
  }
  return CLV_OK;
}

clv_status bench_make_rooms(bench *b, clv_error *error) {
  clv_session *session;
  clv_session_options options;
  cli_job_session_options(b->cli, &b->job, &options);
  options.in_flight = 1;
  CLV__TRY(clv_session_create(b->job.plan, &options, &session, error));
  memset(b->outputs, 0, b->output_count * sizeof *b->outputs);
  clv_status status = clv_session_run(session, b->job.inputs.tensors, b->job.inputs.count, b->outputs, b->output_count, error);
  if (status == CLV_OK) status = make_rooms(b, b->outputs, error);
  clv_session_destroy(session);
  return status;
}

typedef struct flight {
  clv_run *run;
  uint64_t start_ns;
  size_t sample; /* the index of the run's time in the samples */
} flight;

static clv_status take_off(bench *b, flight *f, uint32_t place, clv_error *error) {
  f->start_ns = clv__clock_ns();
  f->sample = bench_runs(b);
  if (!bench_samples_add(&b->samples, b->cli->allocator, 0)) return clv__error_memory(error, sizeof(double));
  return clv_session_start(b->session, b->job.inputs.tensors, b->job.inputs.count, &b->rooms[(size_t)place * b->output_count],
                           b->output_count, NULL, &f->run, error);
}

static clv_status land(bench *b, flight *f, clv_error *error) {
  if (f->run == NULL) return CLV_OK;
  clv_status status = clv_run_wait(f->run, error);
  f->run = NULL;
  b->samples.items[f->sample] = cli_ms(f->start_ns, clv__clock_ns());
  return status;
}

clv_status bench_burst_in_flight(bench *b, const bench_extent *extent, clv_error *error) {
  flight flights[CLV_MAX_IN_FLIGHT] = {{0}};
  clv_status status = CLV_OK;
  const uint64_t start_ns = clv__clock_ns();
  const double before_ms = b->total_ms;
  for (uint32_t i = 0; status == CLV_OK && bench_goes_on(b, extent, i, start_ns); ++i) {
    flight *f = &flights[i % b->in_flight]; /* runs end roughly in the order in which they started, so wait for the oldest */
    status = land(b, f, error);
    if (status == CLV_OK) status = take_off(b, f, i % b->in_flight, error);
    b->total_ms = before_ms + cli_ms(start_ns, clv__clock_ns());
  }
  for (uint32_t k = 0; k < b->in_flight; ++k) {
    clv_status landed = land(b, &flights[k], status == CLV_OK ? error : NULL);
    if (status == CLV_OK) status = landed;
  }
  b->total_ms = before_ms + cli_ms(start_ns, clv__clock_ns());
  return status;
}
