/* Executes runs in which devices time their own steps, and makes JSON of the results. See report/efficiency.h. */
#include <string.h>

#include "bench/columns.h"
#include "bench/runner.h"
#include "report/json.h"

/* Ends early, without an error, if a device is removed or the bench is stopped. */
static clv_status measure(clv__runner *b, clv_error *error) {
  const uint32_t before = clv__session_incident_count(b->session);
  CLV__TRY(clv__efficiency_begin(&b->efficiency, b->session, b->subject.thread_count, b->step_runs, error));
  clv__session_time_steps(b->session, true);
  clv_status status = CLV_OK;
  for (uint32_t run = 0; run < b->step_runs && status == CLV_OK && !clv__poll_stops(&b->bench->poll); ++run) {
    double ignored;
    status = clv__runner_run(b, &ignored, error);
    if (clv__session_incident_count(b->session) != before) break; /* a device was removed, so the steps differ */
    if (status == CLV_OK) status = clv__efficiency_sample(&b->efficiency, error);
    clv__runner_tell(b, CLV_BENCH_OPERATORS, run + 1, b->step_runs);
  }
  clv__session_time_steps(b->session, false);
  return status;
}

clv_status clv__runner_measure_operators(clv__runner *b, clv_error *error) {
  for (;;) {
    const uint32_t before = clv__session_incident_count(b->session);
    CLV__TRY(measure(b, error));
    if (clv__session_incident_count(b->session) == before) break;
    clv__efficiency_finish(&b->efficiency);
  }
  if (clv__poll_stops(&b->bench->poll)) return clv__session_time_operators(b->session, false, error);
  clv__runner_tell(b, CLV_BENCH_PEAKS, 0, 1);
  CLV__TRY(clv__efficiency_make_rows(&b->efficiency, error));
  b->has_operators = true;
  return CLV_OK;
}

/* ---- JSON ---- */

static json_t *known_real(double number) {
  return number >= 0 ? clv__json_real(number) : json_null();
}

static void put_rates(json_t *object, double flops, double bytes, double ms) {
  json_object_set_new(object, "flops", clv__json_real(flops));
  json_object_set_new(object, "bytes", known_real(bytes));
  json_object_set_new(object, "flops_per_second", known_real(clv__per_second(flops, ms)));
  json_object_set_new(object, "bytes_per_second", known_real(clv__per_second(bytes, ms)));
}

/* Adds the keys about the roofline. `ms` is the measured time of the steps whose roofline is known. */
static void put_roof(json_t *object, bool by_compute, double roof_ms, double ms, double lost_ms) {
  json_object_set_new(object, "bound", roof_ms > 0 ? json_string(by_compute ? "compute" : "memory") : json_null());
  json_object_set_new(object, "roofline_ms", known_real(roof_ms));
  json_object_set_new(object, "roofline", roof_ms > 0 && ms > 0 ? clv__json_real(roof_ms / ms) : json_null());
  json_object_set_new(object, "lost_ms", known_real(lost_ms));
}

static json_t *node_names(const clv_graph *graph, const clv_node_id *nodes, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < count; ++i) json_array_append_new(list, clv__json_text(graph->nodes[nodes[i]].name));
  return list;
}

static json_t *step_json(const clv__runner *b, const clv__op_step *step) {
  const clv_graph *graph = b->graph;
  json_t *object = json_object();
  json_object_set_new(object, "operator", clv__json_text(step->label));
  json_object_set_new(object, "kind", json_string(clv__step_kind_word(step->kind)));
  json_object_set_new(object, "device", clv__json_text(b->devices->items[step->device].name));
  json_object_set_new(object, step->kind == CLV__STEP_TRANSFER ? "transfer" : "partition", json_integer(step->index));
  json_object_set_new(object, "implementation", clv__json_text(step->implementation));
  json_object_set_new(object, "nodes", node_names(graph, step->nodes, step->node_count));
  json_object_set_new(object, "beside",
                      step->kind == CLV__STEP_OF_DEVICE && step->beside != CLV__NO_ID
                          ? clv__json_text(graph->nodes[step->beside].name)
                          : json_null());
  json_object_set_new(object, "ms", clv__json_real(step->ms));
  put_rates(object, step->work.flops, step->bytes, step->ms);
  put_roof(object, step->by_compute, step->roof_ms, step->ms, clv__lost_ms(step));
  return object;
}

static json_t *row_json(const clv__runner *b, const clv__op_row *row) {
  const double total_ms = b->efficiency.ms;
  const bool is_known = clv__op_row_is_known(row);
  json_t *object = json_object();
  json_object_set_new(object, "operator", clv__json_text(row->label));
  json_object_set_new(object, "kind", json_string(clv__step_kind_word(row->kind)));
  json_object_set_new(object, "device", clv__json_text(b->devices->items[row->device].name));
  json_object_set_new(object, "count", json_integer(row->count));
  json_object_set_new(object, "ms", clv__json_real(row->ms));
  json_object_set_new(object, "share", clv__json_real(total_ms > 0 ? row->ms / total_ms : 0));
  put_rates(object, row->flops, row->bytes, row->ms);
  put_roof(object, 2 * row->compute_ms > row->roof_ms, is_known ? row->roof_ms : -1, row->roofed_ms,
           is_known ? row->lost_ms : -1);
  return object;
}

static json_t *peaks_json(const clv__runner *b) {
  json_t *list = json_array();
  for (uint32_t d = 0; d < b->devices->count; ++d) {
    const clv__peaks *peaks = &b->efficiency.peaks[d];
    if (!b->efficiency.has_peaks[d]) continue;
    json_t *object = json_object(), *flops = json_object(), *sizes = json_array();
    for (uint32_t p = 0; p < CLV__PEAK_COUNT; ++p) {
      const double rate = peaks->flops_per_second[p];
      json_object_set_new(flops, clv__peak_name((clv__peak)p), known_real(rate > 0 ? rate : -1));
    }
    for (uint32_t i = 0; i < peaks->size_count; ++i) {
      json_t *size = json_object();
      json_object_set_new(size, "bytes", json_integer((json_int_t)peaks->sizes_bytes[i]));
      json_object_set_new(size, "read_bytes_per_second", clv__json_real(peaks->read_bytes_per_second[i]));
      json_object_set_new(size, "copy_bytes_per_second", clv__json_real(peaks->copy_bytes_per_second[i]));
      json_array_append_new(sizes, size);
    }
    json_object_set_new(object, "device", clv__json_text(b->devices->items[d].name));
    json_object_set_new(object, "threads", peaks->thread_count > 0 ? json_integer(peaks->thread_count) : json_null());
    json_object_set_new(object, "flops_per_second", flops);
    json_object_set_new(object, "bandwidth", sizes);
    json_array_append_new(list, object);
  }
  return list;
}

json_t *clv__runner_operators_json(const clv__runner *b, double plain_ms) {
  const clv__efficiency *e = &b->efficiency;
  if (!b->has_operators) return json_null();
  json_t *object = json_object(), *rows = json_array(), *steps = json_array(), *silent = json_array();
  for (uint32_t r = 0; r < e->row_count; ++r) json_array_append_new(rows, row_json(b, &e->rows[r]));
  for (uint32_t s = 0; s < e->step_count; ++s) json_array_append_new(steps, step_json(b, &e->steps[s]));
  for (uint32_t d = 0; d < b->devices->count; ++d) {
    if ((e->silent >> d & 1u) != 0) json_array_append_new(silent, clv__json_text(b->devices->items[d].name));
  }
  json_object_set_new(object, "runs", json_integer(e->run_count));
  json_object_set_new(object, "ms", clv__json_real(e->ms));
  json_object_set_new(object, "roofline_ms", clv__json_real(e->roof_ms));
  json_object_set_new(object, "roofline", plain_ms > 0 ? clv__json_real(e->roof_ms / plain_ms) : json_null());
  json_object_set_new(object, "peaks", peaks_json(b));
  json_object_set_new(object, "rows", rows);
  json_object_set_new(object, "steps", steps);
  json_object_set_new(object, "idle_nodes", node_names(b->graph, e->idle, e->idle_count));
  json_object_set_new(object, "silent_devices", silent);
  return object;
}
