/* Computes the results from the samples: medians, work, lower bounds, and rows by operator. See efficiency.h. */
#include <stdlib.h>
#include <string.h>

#include "report/efficiency.h"

static int compare_reals(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void set_medians(clv__efficiency *e) {
  const uint32_t runs = e->run_count;
  for (uint32_t s = 0; s < e->step_count && runs > 0; ++s) {
    double *samples = e->samples_ms + (size_t)s * e->most_runs;
    qsort(samples, runs, sizeof *samples, compare_reals);
    e->steps[s].ms = runs % 2 == 1 ? samples[runs / 2] : (samples[runs / 2 - 1] + samples[runs / 2]) / 2;
    e->ms += e->steps[s].ms;
  }
}

static clv_status count_work(clv__efficiency *e, double *resident, clv_error *error) {
  const clv_graph *graph = clv__session_plan(e->session)->graph;
  clv_graph_view *whole;
  clv__tally tally;
  CLV__TRY(clv__view_create_whole(graph, clv__session_types(e->session), &e->arena, &whole, error));
  CLV__TRY(clv__tally_init(&tally, whole, &e->arena, error));
  for (uint32_t s = 0; s < e->step_count; ++s) {
    clv__op_step *step = &e->steps[s];
    if (step->node_count == 0) continue;
    CLV__TRY(clv__tally_count(&tally, step->nodes, step->node_count, &step->work, error));
    if (step->work.is_known) step->bytes = step->work.weight_bytes + step->work.moved_bytes;
    resident[step->device] += step->work.weight_bytes;
  }
  return CLV_OK;
}

/* Measures the peaks of every device that runs nodes. Devices that compute on the host's CPU share one measurement. */
static clv_status measure_peaks(clv__efficiency *e, clv_error *error) {
  clv_devices *devices = clv__session_plan(e->session)->devices;
  const clv__peaks *host = NULL;
  for (uint32_t s = 0; s < e->step_count; ++s) {
    const uint32_t d = e->steps[s].device;
    if (e->steps[s].node_count == 0 || e->has_peaks[d] || clv__device_is_lost(&devices->items[d])) continue;
    const bool is_host = strcmp(devices->items[d].info.kind, "cpu") == 0;
    if (is_host && host != NULL)
      e->peaks[d] = *host;
    else
      CLV__TRY(clv__peaks_measure(devices, d, e->thread_count, &e->peaks[d], error));
    if (is_host) host = &e->peaks[d];
    e->has_peaks[d] = true;
  }
  return CLV_OK;
}

static void find_roofs(clv__efficiency *e, const double *resident) {
  for (uint32_t s = 0; s < e->step_count; ++s) {
    clv__op_step *step = &e->steps[s];
    step->roof_ms = step->node_count == 0 ? 0 : -1;
    if (step->node_count == 0 || !e->has_peaks[step->device]) continue;
    const double seconds = clv__roofline_seconds(&e->peaks[step->device], &step->work, resident[step->device], &step->by_compute);
    if (seconds < 0) continue;
    step->roof_ms = seconds * 1e3;
    e->roof_ms += step->roof_ms;
  }
}

/* ---- Rows ---- */

static bool belongs(const clv__op_row *row, const clv__op_step *step) {
  return row->kind == step->kind && row->device == step->device && strcmp(row->label, step->label) == 0;
}

static void add_to_row(clv__op_row *row, const clv__op_step *step) {
  ++row->count;
  row->ms += step->ms;
  row->flops += step->work.flops;
  row->bytes = row->bytes < 0 || step->bytes < 0 ? -1 : row->bytes + step->bytes;
  if (step->roof_ms < 0) return;
  row->lost_ms += clv__lost_ms(step);
  row->roof_ms += step->roof_ms;
  row->roofed_ms += step->ms;
  if (step->by_compute) row->compute_ms += step->roof_ms;
}

static int compare_rows(const void *a, const void *b) {
  const clv__op_row *x = a, *y = b;
  if (x->ms != y->ms) return x->ms > y->ms ? -1 : 1;
  return strcmp(x->label, y->label);
}

static clv_status make_rows(clv__efficiency *e, clv_error *error) {
  e->rows = clv__arena_allocate_zero(&e->arena, e->step_count, sizeof *e->rows);
  if (e->rows == NULL) return clv__error_memory(error, e->step_count * sizeof *e->rows);
  for (uint32_t s = 0; s < e->step_count; ++s) {
    const clv__op_step *step = &e->steps[s];
    uint32_t r = step->kind == CLV__STEP_PARTITION ? e->row_count : 0; /* each partition has its own row */
    while (r < e->row_count && !belongs(&e->rows[r], step)) ++r;
    if (r == e->row_count)
      e->rows[e->row_count++] = (clv__op_row){.label = step->label, .kind = step->kind, .device = step->device};
    add_to_row(&e->rows[r], step);
  }
  qsort(e->rows, e->row_count, sizeof *e->rows, compare_rows);
  return CLV_OK;
}

clv_status clv__efficiency_make_rows(clv__efficiency *e, clv_error *error) {
  double resident[CLV__MAX_DEVICES] = {0};
  CLV__TRY(clv__session_time_operators(e->session, false, error));
  set_medians(e);
  CLV__TRY(count_work(e, resident, error));
  CLV__TRY(measure_peaks(e, error));
  find_roofs(e, resident);
  return make_rows(e, error);
}
