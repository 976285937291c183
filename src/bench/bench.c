/* The public interface: see cleave/bench.h. */
#include "cleave/bench.h"

#include <math.h>
#include <string.h>

#include "base/document.h"
#include "base/options.h"
#include "bench/columns.h"
#include "device/device.h"
#include "report/json.h"

enum { RUNS = 50 };

/* ---- The bench ---- */

static clv_status read_options(clv_bench *bench, const clv_bench_options *given, clv_error *error) {
  clv_bench_options *options = &bench->options;
  *options = (clv_bench_options)CLV_BENCH_OPTIONS_INIT;
  CLV__TRY(clv__options_read(options, sizeof *options, given, "CLV_BENCH_OPTIONS_INIT", error));
  CLV__TRY(clv__options_list(options->percentiles, options->percentile_count, "percentiles", error));
  if (!(options->duration_s >= 0 && options->duration_s <= 1e9))
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "duration of %g s: expected 0 (no limit) to 1e9", options->duration_s);
  bench->extent.duration_ns = (uint64_t)(options->duration_s * 1e9);
  bench->extent.runs = options->runs == 0 && options->duration_s == 0 ? RUNS : options->runs;
  bench->poll = (clv__poll){.go_on = options->go_on, .user_data = options->user_data};
  CLV__TRY(clv__bench_columns(bench, options->percentiles, options->percentile_count, error));
  options->percentiles = NULL;
  if (options->trace_path == NULL) return CLV_OK;
  options->trace_path = clv__arena_string(&bench->arena, options->trace_path, strlen(options->trace_path));
  return options->trace_path == NULL ? clv__error_memory(error, 0) : CLV_OK;
}

clv_status clv_bench_create(clv_context *context, const clv_bench_options *options, clv_bench **out, clv_error *error) {
  if (context == NULL || out == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "context and bench must not be NULL");
  *out = NULL;
  const clv_allocator *allocator = clv__context_allocator(context);
  clv_bench *bench = clv__allocate_zero(allocator, sizeof *bench);
  if (bench == NULL) return clv__error_memory(error, sizeof *bench);
  bench->allocator = allocator;
  clv__arena_init(&bench->arena, allocator);
  const clv_status status = read_options(bench, options, error);
  if (status == CLV_OK)
    *out = bench;
  else
    clv_bench_destroy(bench);
  return status;
}

/* Releases the measurements of the last configuration. Its session may not exist any more. */
static void forget_last(clv_bench *bench) {
  clv__runner_finish(&bench->last);
}

void clv_bench_destroy(clv_bench *bench) {
  if (bench == NULL) return;
  forget_last(bench);
  clv__release(bench->allocator, bench->rows);
  clv__arena_finish(&bench->arena);
  clv__release(bench->allocator, bench);
}

/* ---- Subjects ---- */

static const char *keep(clv_bench *bench, const char *text) {
  return clv__arena_string(&bench->arena, text, strlen(text));
}

/* Returns the names of the session's devices, separated by commas; NULL if memory runs out. */
static const char *devices_of(clv_bench *bench, const clv_session *session) {
  const clv_devices *devices = clv_session_plan(session)->devices;
  clv__text names;
  clv__text_init(&names, bench->allocator);
  for (uint32_t d = 0; d < devices->count; ++d) clv__text_append(&names, "%s%s", d > 0 ? "," : "", devices->items[d].name);
  const char *kept = names.failed ? NULL : keep(bench, names.data);
  clv__text_finish(&names);
  return kept;
}

clv_status clv__bench_read_subject(clv_bench *bench, const clv_bench_subject *given, clv_bench_subject *subject,
                                   clv_error *error) {
  clv_bench_subject read = CLV_BENCH_SUBJECT_INIT;
  if (given == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "subject must not be NULL");
  CLV__TRY(clv__options_read(&read, sizeof read, given, "CLV_BENCH_SUBJECT_INIT", error));
  if (read.session == NULL && read.failure == NULL)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "a subject needs a session, or a failure that says why it has none");
  if (read.session != NULL && read.inputs == NULL && read.input_count > 0)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "a subject with %u input%s needs inputs", read.input_count,
                          CLV__S(read.input_count));
  *subject = read;
  subject->failure = keep(bench, read.failure == NULL ? "" : read.failure);
  subject->label = keep(bench, read.label == NULL ? "" : read.label);
  subject->model = keep(bench, read.model == NULL ? "" : read.model);
  subject->model_path = read.model_path == NULL ? subject->model : keep(bench, read.model_path);
  subject->devices =
      read.session != NULL ? devices_of(bench, read.session) : keep(bench, read.devices == NULL ? "" : read.devices);
  const bool is_kept = subject->failure != NULL && subject->label != NULL && subject->model != NULL &&
                       subject->model_path != NULL && subject->devices != NULL;
  return is_kept ? CLV_OK : clv__error_memory(error, 0);
}

/* ---- A single configuration ---- */

static clv_status measure(clv_bench *bench, const clv_bench_subject *subject, clv_error *error) {
  clv__runner *b = &bench->last;
  CLV__TRY(clv__runner_begin(bench, subject, b, error));
  CLV__TRY(clv__runner_burst(b, &bench->extent, error));
  CLV__TRY(clv__runner_conclude(b, error));
  CLV__TRY(clv__runner_measure_details(b, error));
  const clv__result result = {.bench = bench, .subject = subject, .measured = b};
  bench->last_row = (uint32_t)bench->row_count;
  return clv__bench_add_row(bench, &result, error);
}

clv_status clv_bench_measure(clv_bench *bench, const clv_bench_subject *given, clv_error *error) {
  clv_bench_subject subject;
  if (bench == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "bench must not be NULL");
  CLV__TRY(clv__bench_read_subject(bench, given, &subject, error));
  forget_last(bench);
  if (subject.session == NULL) {
    const clv__result result = {.bench = bench, .subject = &subject, .failure = subject.failure};
    return clv__bench_add_row(bench, &result, error);
  }
  const clv_status status = measure(bench, &subject, error);
  if (status != CLV_OK) forget_last(bench);
  return status;
}

/* ---- Results ---- */

bool clv_bench_row(const clv_bench *bench, uint32_t index, clv_bench_figures *figures) {
  static const clv_bench_figures none = {0};
  const bool exists = index < bench->row_count;
  clv__info_fill(figures, exists ? &bench->rows[index]->figures : &none, sizeof none);
  return exists;
}

double clv_bench_percentile(const clv_bench *bench, uint32_t row, double percent) {
  if (row >= bench->row_count || !(percent >= 0 && percent <= 100)) return NAN;
  const clv__row *of = bench->rows[row];
  return of->figures.run_count == 0 ? NAN : clv__sample_percentile(of->sorted_ms, of->figures.run_count, percent);
}

clv_status clv_bench_details(clv_bench *bench, clv_bench_level level, clv_form form, char **out, clv_error *error) {
  CLV__TRY(clv__document_check(form, out, error));
  if (bench == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "bench must not be NULL");
  if (level != CLV_BENCH_BRIEF && level != CLV_BENCH_USUAL && level != CLV_BENCH_ALL)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "level %d is unknown: give CLV_BENCH_BRIEF, _USUAL or _ALL", (int)level);
  if (bench->last.bench == NULL)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "there are no details: clv_bench_measure() has measured nothing");
  if (form == CLV_FORM_JSON) {
    json_t *root = json_object();
    clv__bench_row_json(bench, bench->last_row, root);
    clv__runner_details_json(&bench->last, root);
    return clv__json_give(root, bench->allocator, out, error);
  }
  clv__text text;
  clv__text_init(&text, bench->allocator);
  clv__runner_details_text(&bench->last, level, form == CLV_FORM_TERMINAL, &text);
  return clv__document_give(&text, out, error);
}
