/* Keeps a fixed number of requests in flight. See runner.h. */
#include <string.h>

#include "base/clock.h"
#include "bench/runner.h"

static void *make_room(void *user_data, uint32_t output, const clv_tensor *type) {
  clv__runner *b = user_data;
  size_t size_bytes;
  (void)output;
  return clv__tensor_size_bytes(type, &size_bytes) ? clv__arena_allocate_data(&b->arena, size_bytes) : NULL;
}

/* Makes the rooms of the other requests, of the same types as those of the first. */
static clv_status make_other_rooms(clv__runner *b, clv_error *error) {
  for (uint32_t i = b->output_count; i < b->in_flight * b->output_count; ++i) {
    size_t size_bytes;
    b->rooms[i] = b->rooms[i % b->output_count];
    if (!clv__tensor_size_bytes(&b->rooms[i], &size_bytes)) return clv__error_memory(error, SIZE_MAX);
    b->rooms[i].data = clv__arena_allocate_data(&b->arena, size_bytes);
    if (b->rooms[i].data == NULL) return clv__error_memory(error, size_bytes);
  }
  return CLV_OK;
}

clv_status clv__runner_first_in_flight(clv__runner *b, double *time_ms, clv_error *error) {
  clv_run_options options = CLV_RUN_OPTIONS_INIT;
  options.allocate = make_room;
  options.user_data = b;
  b->rooms = clv__arena_allocate_zero(&b->arena, (size_t)b->in_flight * b->output_count, sizeof *b->rooms);
  if (b->rooms == NULL) return clv__error_memory(error, b->output_count * sizeof *b->rooms);
  const uint64_t start = clv__clock_ns();
  CLV__TRY(
      clv_session_run_with(b->session, b->subject.inputs, b->subject.input_count, b->rooms, b->output_count, &options, error));
  *time_ms = clv__ms(start, clv__clock_ns());
  return make_other_rooms(b, error);
}

typedef struct flight {
  clv_run *run;
  uint64_t start_ns;
  size_t sample; /* the index of the run's time in the samples */
} flight;

static clv_status take_off(clv__runner *b, flight *f, uint32_t place, clv_error *error) {
  f->start_ns = clv__clock_ns();
  f->sample = clv__runner_runs(b);
  if (!clv__samples_add(&b->samples, b->arena.allocator, 0)) return clv__error_memory(error, sizeof(double));
  return clv_session_start(b->session, b->subject.inputs, b->subject.input_count, &b->rooms[(size_t)place * b->output_count],
                           b->output_count, NULL, &f->run, error);
}

static clv_status land(clv__runner *b, flight *f, clv_error *error) {
  if (f->run == NULL) return CLV_OK;
  clv_status status = clv_run_wait(f->run, error);
  f->run = NULL;
  b->samples.items[f->sample] = clv__ms(f->start_ns, clv__clock_ns());
  return status;
}

clv_status clv__runner_burst_in_flight(clv__runner *b, const clv__bench_extent *extent, clv_error *error) {
  flight flights[CLV_MAX_IN_FLIGHT] = {{0}};
  clv_status status = CLV_OK;
  const uint64_t start_ns = clv__clock_ns();
  const double before_ms = b->total_ms;
  for (uint32_t i = 0; status == CLV_OK && clv__runner_goes_on(b, extent, i, start_ns); ++i) {
    flight *f = &flights[i % b->in_flight]; /* runs end roughly in the order in which they started, so wait for the oldest */
    status = land(b, f, error);
    if (status == CLV_OK) status = take_off(b, f, i % b->in_flight, error);
    b->total_ms = before_ms + clv__ms(start_ns, clv__clock_ns());
  }
  for (uint32_t k = 0; k < b->in_flight; ++k) {
    clv_status landed = land(b, &flights[k], status == CLV_OK ? error : NULL);
    if (status == CLV_OK) status = landed;
  }
  b->total_ms = before_ms + clv__ms(start_ns, clv__clock_ns());
  return status;
}
