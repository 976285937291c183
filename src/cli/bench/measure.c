/* Executes the measured runs. See bench.h. */
#include <string.h>

#include "base/clock.h"
#include "cli/bench/bench.h"
#include "cli/console.h"

static void show_progress(const bench *b) {
  const double seconds = b->total_ms / 1e3;
  if (b->extent.duration_ns > 0)
    cli_progress(b->cli, "%s: %.1f of %.1f s, %zu runs", b->label, seconds, (double)b->extent.duration_ns / 1e9, bench_runs(b));
  else
    cli_progress(b->cli, "%s: run %zu of %u", b->label, bench_runs(b), b->extent.runs);
}

bool bench_goes_on(const bench *b, const bench_extent *extent, uint32_t done, uint64_t start_ns) {
  if (clv__is_stopped(b->stop) || (extent->runs > 0 && done >= extent->runs)) return false;
  show_progress(b);
  return done == 0 || extent->duration_ns == 0 || clv__clock_ns() - start_ns < extent->duration_ns;
}

static clv_status burst(bench *b, const bench_extent *extent, uint64_t start_ns, clv_error *error) {
  const double before_ms = b->total_ms;
  for (uint32_t done = 0; bench_goes_on(b, extent, done, start_ns); ++done) {
    double time_ms;
    CLV__TRY(bench_run_once(b, &time_ms, error));
    if (!bench_samples_add(&b->samples, b->cli->allocator, time_ms)) return clv__error_memory(error, sizeof time_ms);
    b->total_ms = before_ms + cli_ms(start_ns, clv__clock_ns());
  }
  return CLV_OK;
}

clv_status bench_burst(bench *b, const bench_extent *extent, clv_error *error) {
  return b->in_flight > 1 ? bench_burst_in_flight(b, extent, error) : burst(b, extent, clv__clock_ns(), error);
}

clv_status bench_conclude(bench *b, clv_error *error) {
  const size_t count = bench_runs(b);
  if (count == 0) return clv__error_set(error, CLV_CANCELLED, "interrupted before the first run");
  b->sorted_ms = clv__arena_copy(&b->arena, b->samples.items, count * sizeof *b->sorted_ms);
  if (b->sorted_ms == NULL) return clv__error_memory(error, count * sizeof *b->sorted_ms);
  bench_sort(b->sorted_ms, count);
  b->peak_rss_bytes = cli_peak_rss_bytes();
  return CLV_OK;
}
