/* See measure.h. */
#include "gnn/measure/measure.h"

#include <math.h>

#include "base/clock.h"
#include "base/error.h"
#include "gnn/measure/copies.h"
#include "gnn/measure/measure_own.h"

#define LEAST_COPIED (UINT64_C(1) << 20)

/* Measures gathering in host memory, and copies between the host and each device that has memory of its own. */
static clv_status measure_copies(const clv__measuring *m, uint64_t most_bytes, clv_error *error) {
  const clv__gnn_planning *p = m->planning;
  const clv__gnn_measure_options *options = m->options;
  const clv_allocator *allocator = p->arena.allocator;
  CLV__TRY(clv__measure_packing(m->tables, allocator, most_bytes, options->runs, options->seed, error));
  for (uint32_t d = 0; d < p->machine.device_count; ++d) {
    if (p->machine.devices[d].space == 0) continue;
    const clv__device *device = &p->devices->items[d];
    clv_status status = options->asks_models
                            ? clv__model_device_copies(m->tables, device, most_bytes, error)
                            : clv__measure_device_copies(m->tables, allocator, device, most_bytes, options->runs, error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "copies of %s", p->machine.devices[d].name);
  }
  return clv__tables_fit(m->tables, error);
}

/* The largest size of the copies to measure: the next power of two at or above `moved_bytes`. */
static uint64_t copied_bytes(uint64_t moved_bytes) {
  double most = fmax((double)LEAST_COPIED, (double)moved_bytes);
  /* At most 4 GiB: larger copies get no price, so no plan contains them. */
  return UINT64_C(1) << (uint32_t)fmin(32, ceil(log2(most)));
}

static clv_status measure_all(clv__measuring *m, clv_error *error) {
  const clv__gnn_planning *p = m->planning;
  const clv__gnn_measure_options *options = m->options;
  /* With a time limit, needless blocks are found first, and copies that are so large that only needless blocks make them are
   * not measured. So the first call measures smaller copies, and a second one follows if larger ones are needed. */
  bool at_once = options->asks_models || options->only_copies || options->limit_s <= 0;
  uint64_t most_bytes = copied_bytes(clv__measure_entries_bytes(m, at_once));
  CLV__TRY(measure_copies(m, most_bytes, error));
  if (!options->asks_models) CLV__TRY(clv__measure_threads(m->tables, p->machine.device_count, options->runs, error));
  if (options->only_copies) return CLV_OK;
  if (!options->asks_models) CLV__TRY(clv__measure_switches(p, options, m->tables, error));
  CLV__TRY(clv__measure_entries_try(m, error));
  uint64_t more_bytes = copied_bytes(clv__measure_entries_bytes(m, true));
  if (more_bytes > most_bytes) CLV__TRY(measure_copies(m, more_bytes, error));
  CLV__TRY(clv__measure_entries_rest(m, error));
  return clv__tables_fit(m->tables, error);
}

clv_status clv__gnn_measure(const clv__gnn_planning *planning, const clv__gnn_measure_options *options, clv__tables *tables,
                            clv__gnn_measured *measured, clv_error *error) {
  clv__gnn_measured unasked;
  clv__measuring m = {.planning = planning, .options = options, .tables = tables, .begin_ns = clv__clock_ns()};
  m.measured = measured != NULL ? measured : &unasked;
  *m.measured = (clv__gnn_measured){0};
  if (options->runs == 0 || options->steps < 2 || options->steps > CLV__MEASURE_MOST_STEPS || !(options->limit_s >= 0))
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "%u runs over %u sizes in %g s; expected at least 1 run, 2 to %d sizes, and 0 s (no limit) or more",
                          options->runs, options->steps, options->limit_s, CLV__MEASURE_MOST_STEPS);
  for (uint32_t d = 0; d < planning->machine.device_count && !options->only_copies; ++d)
    CLV__TRY(
        clv__tables_put_device(tables, planning->machine.devices[d].name, planning->devices->items[d].info.fingerprint, error));
  clv_status status = clv__measure_entries_find(&m, error);
  if (status == CLV_OK) status = measure_all(&m, error);
  clv__measure_entries_finish(&m);
  return status;
}
