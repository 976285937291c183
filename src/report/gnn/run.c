/* The documents of runs for programs: see cleave/gnn.h. */
#include "base/document.h"
#include "base/error.h"
#include "base/options.h"
#include "base/peak.h"
#include "device/device.h"
#include "report/gnn/html.h"
#include "report/gnn/own.h"
#include "report/gnn/trace.h"
#include "report/json.h"
#include "report/label.h"

static json_t *ms(double ns) {
  return clv__json_real(1e-6 * ns);
}

static const char *time_label(double ns, char label[CLV__LABEL_BYTES]) {
  return clv__label_time((uint64_t)ns, label);
}

/* ---- The report ---- */

static json_t *make_json(const clv_gnn_run *run, const clv__gnn_account *account) {
  const clv__csr *csr = &run->graph->graph->csr;
  const clv__gnn_times *times = &run->times;
  json_t *root = json_object(), *devices = json_array();
  for (uint32_t d = 0; d < run->devices->count; ++d) json_array_append_new(devices, clv__json_text(run->devices->items[d].name));
  json_object_set_new(root, "model", clv__json_text(run->model->name));
  json_object_set_new(root, "graph", clv__json_text(run->graph->name));
  json_object_set_new(root, "devices", devices);
  json_object_set_new(root, "layers", json_integer(run->model->model->layer_count));
  json_object_set_new(root, "vertices", json_integer(csr->vertex_count));
  json_object_set_new(root, "edges", json_integer((json_int_t)csr->edge_count));
  if (run->plan != NULL) {
    clv__report_gnn_json(run->plan, account, root);
    json_object_set_new(root, "cut_from_cache", json_boolean(run->plan->partitioned.from_cache));
    json_object_set_new(root, "cut_metis_seconds", clv__json_real(run->plan->partitioned.metis_seconds));
  }
  json_object_set_new(root, "load_ms", ms(run->model->load_ns + run->graph->load_ns));
  json_object_set_new(root, "compile_ms", ms(run->compile_ns));
  json_object_set_new(root, "measured_ms", ms(times->last_ns));
  json_object_set_new(root, "first_ms", ms(times->first_ns));
  json_object_set_new(root, "warm_ms", times->count > 1 ? ms(clv__gnn_times_warm_ns(times)) : json_null());
  json_object_set_new(root, "warm_runs", json_integer(times->count - 1));
  if (run->plan != NULL) json_object_set_new(root, "state_ms", ms(run->state_ns));
  if (run->difference >= 0) json_object_set_new(root, "worst_difference", clv__json_real(run->difference));
  json_object_set_new(root, "peak_rss_bytes", json_integer((json_int_t)clv__peak_rss_bytes()));
  return root;
}

/* Appends the times of the first and of warm executions, and the prediction, which is for a warm one. */
static void append_times(const clv_gnn_run *run, clv__text *text) {
  const clv__gnn_times *times = &run->times;
  char first[CLV__LABEL_BYTES], second[CLV__LABEL_BYTES];
  clv__text_append(text, "%s in %s", times->count > 1 ? "first run" : "run", time_label(times->first_ns, first));
  if (times->count > 1)
    clv__text_append(text, ", warm in %s (median of %u)", time_label(clv__gnn_times_warm_ns(times), second), times->count - 1);
  clv__text_append(text, "; ");
  if (run->plan == NULL) return;
  clv__text_append(text, "predicted %s for a warm run%s; ", time_label(run->plan->plan->makespan_ns, first),
                   times->count > 1 ? "" : " (this was the first, cold run)");
}

static void append_report(const clv_gnn_run *run, const clv__gnn_account *account, bool detailed, bool bold, clv__text *text) {
  char first[CLV__LABEL_BYTES], second[CLV__LABEL_BYTES];
  if (run->plan != NULL && detailed) clv__report_gnn_choice(run->plan->plan, bold, text);
  if (run->plan != NULL) clv__report_gnn_blocks(account, detailed, bold, text);
  clv__label_name(text, run->model->name);
  clv__text_append(text, " over ");
  clv__label_name(text, run->graph->name);
  clv__text_append(text, ": loaded in %s, compiled in %s, ", time_label(run->model->load_ns + run->graph->load_ns, first),
                   time_label(run->compile_ns, second));
  append_times(run, text);
  if (run->state_ns > 0) clv__text_append(text, "%s more to save layers; ", time_label(run->state_ns, first));
  if (run->difference >= 0)
    clv__text_append(text, "verified: the largest difference is %.1e of the largest value; ", run->difference);
  clv__text_append(text, "peak memory %s\n", clv__label_size(clv__peak_rss_bytes(), first));
}

static clv_status report(clv_gnn_run *run, const clv_gnn_report_options *how, clv_form form, char **text, clv_error *error) {
  const clv__gnn_account *account = NULL;
  clv__text written;
  if (run->plan != NULL) CLV__TRY(clv__gnn_run_account(run, &account, error));
  if (run->times.count == 0) return clv__error_set(error, CLV_INVALID_ARGUMENT, "the run has not been executed");
  if (form == CLV_FORM_JSON) return clv__json_give(make_json(run, account), run->allocator, text, error);
  clv__text_init(&written, run->allocator);
  append_report(run, account, how->detailed, form == CLV_FORM_TERMINAL, &written);
  return clv__document_give(&written, text, error);
}

clv_status clv_gnn_run_report(clv_gnn_run *run, const clv_gnn_report_options *options, clv_form form, char **text,
                              clv_error *error) {
  clv_gnn_report_options how = CLV_GNN_REPORT_OPTIONS_INIT;
  CLV__TRY(clv__document_check(form, text, error));
  CLV__TRY(clv__argument_check(run, "run", error));
  CLV__TRY(clv__options_read(&how, sizeof how, options, "CLV_GNN_REPORT_OPTIONS_INIT", error));
  pthread_mutex_lock(&run->lock);
  clv_status status = report(run, &how, form, text, error);
  pthread_mutex_unlock(&run->lock);
  return status;
}

/* ---- Page and trace ---- */

clv_status clv_gnn_run_page(clv_gnn_run *run, const char *path, clv_emit_fn write, void *user_data, clv_error *error) {
  const clv__gnn_account *account;
  clv__text written;
  CLV__TRY(clv__argument_check(run, "run", error));
  pthread_mutex_lock(&run->lock);
  clv_status status = clv__gnn_run_account(run, &account, error);
  if (status == CLV_OK) {
    clv__text_init(&written, run->allocator);
    clv__report_gnn_html(account, &written);
  }
  pthread_mutex_unlock(&run->lock);
  return status == CLV_OK ? clv__document_write(&written, path, write, user_data, error) : status;
}

clv_status clv_gnn_run_trace(clv_gnn_run *run, const char *path, clv_emit_fn write, void *user_data, clv_error *error) {
  const clv__gnn_account *account;
  clv__text written;
  CLV__TRY(clv__argument_check(run, "run", error));
  pthread_mutex_lock(&run->lock);
  clv_status status = clv__gnn_run_account(run, &account, error);
  if (status == CLV_OK) {
    clv__text_init(&written, run->allocator);
    clv__report_gnn_trace(&run->record, run->schedule.machine, run->model->stages, &written);
  }
  pthread_mutex_unlock(&run->lock);
  return status == CLV_OK ? clv__document_write(&written, path, write, user_data, error) : status;
}
