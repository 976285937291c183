/* See columns.h. */
#include "bench/columns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const clv__field unknown = {NULL, NAN};

static clv__field text_field(const char *text) {
  return (clv__field){text, NAN};
}
static clv__field number_field(double number) {
  return (clv__field){NULL, number};
}
static clv__field known_number(uint32_t number) {
  return number == 0 ? unknown : number_field(number);
}

/* ---- The configuration ---- */

static clv__field get_model(const clv__result *r, double percent) {
  (void)percent;
  return text_field(r->subject->model);
}
/* The devices that were opened: those of a plan file, those that `auto` found, or those of the given list that are available. If
 * the configuration was not measured, the given list. */
static clv__field get_devices(const clv__result *r, double percent) {
  (void)percent;
  return text_field(r->subject->devices);
}
static clv__field get_threads(const clv__result *r, double percent) {
  (void)percent;
  return known_number(r->subject->thread_count);
}
static clv__field get_batch(const clv__result *r, double percent) {
  (void)percent;
  return known_number(r->subject->batch);
}
static clv__field get_in_flight(const clv__result *r, double percent) {
  (void)percent;
  return number_field(r->subject->in_flight > 0 ? r->subject->in_flight : r->measured != NULL ? r->measured->in_flight : 1);
}
static clv__field get_strategy(const clv__result *r, double percent) {
  (void)percent;
  const clv__runner *b = r->measured;
  if (b == NULL) return unknown;
  const char *name = b->plan->placement.strategy;
  return text_field(clv__arena_string(&r->bench->arena, name, strlen(name)));
}

/* ---- Measurements ---- */

static clv__field get_runs(const clv__result *r, double percent) {
  (void)percent;
  return r->measured == NULL ? unknown : number_field((double)clv__runner_runs(r->measured));
}
static clv__field get_warmup(const clv__result *r, double percent) {
  (void)percent;
  return r->measured == NULL ? unknown : number_field(r->bench->options.warmup);
}
static clv__field get_median(const clv__result *r, double percent) {
  (void)percent;
  return r->measured == NULL ? unknown : number_field(clv__sample_median(r->measured->sorted_ms, clv__runner_runs(r->measured)));
}
static clv__field get_percentile(const clv__result *r, double percent) {
  return r->measured == NULL
             ? unknown
             : number_field(clv__sample_percentile(r->measured->sorted_ms, clv__runner_runs(r->measured), percent));
}
static clv__field get_deviation(const clv__result *r, double percent) {
  (void)percent;
  return r->measured == NULL ? unknown
                             : number_field(clv__sample_deviation(r->measured->sorted_ms, clv__runner_runs(r->measured)));
}
static clv__field get_mean(const clv__result *r, double percent) {
  (void)percent;
  return r->measured == NULL ? unknown : number_field(clv__sample_mean(r->measured->sorted_ms, clv__runner_runs(r->measured)));
}
static clv__field get_min(const clv__result *r, double percent) {
  (void)percent;
  return r->measured == NULL ? unknown : number_field(r->measured->sorted_ms[0]);
}
static clv__field get_max(const clv__result *r, double percent) {
  (void)percent;
  return r->measured == NULL ? unknown : number_field(r->measured->sorted_ms[clv__runner_runs(r->measured) - 1]);
}
static clv__field get_run_rate(const clv__result *r, double percent) {
  (void)percent;
  const clv__runner *b = r->measured;
  return b == NULL || b->total_ms <= 0 ? unknown : number_field((double)clv__runner_runs(b) * 1e3 / b->total_ms);
}
static clv__field get_inference_rate(const clv__result *r, double percent) {
  const clv__field batch = get_batch(r, percent), rate = get_run_rate(r, percent);
  return number_field(isnan(batch.number) ? rate.number : rate.number * batch.number);
}
static clv__field get_predicted(const clv__result *r, double percent) {
  (void)percent;
  if (r->measured == NULL) return unknown;
  return number_field((double)clv__session_plan(r->measured->session)->price.overlapped_ns / 1e6);
}
static clv__field get_first_run(const clv__result *r, double percent) {
  (void)percent;
  return r->measured == NULL ? unknown : number_field(r->measured->first_run_ms);
}
static clv__field get_load(const clv__result *r, double percent) {
  (void)percent;
  return r->measured == NULL ? unknown : number_field(r->measured->load_ms);
}

/* ---- The comparison ---- */

static clv__field get_ratio(const clv__result *r, double percent) {
  (void)percent;
  return r->comparison == NULL || !r->comparison->agrees ? unknown : number_field(r->comparison->ratio);
}
static clv__field get_low(const clv__result *r, double percent) {
  (void)percent;
  return r->comparison == NULL || !r->comparison->agrees ? unknown : number_field(r->comparison->low);
}
static clv__field get_high(const clv__result *r, double percent) {
  (void)percent;
  return r->comparison == NULL || !r->comparison->agrees ? unknown : number_field(r->comparison->high);
}
static clv__field get_outputs(const clv__result *r, double percent) {
  (void)percent;
  return r->comparison == NULL ? unknown : text_field(r->comparison->text);
}
/* Returns why the configuration was not measured or, if it was and a device was removed, the first removal. */
static clv__field get_failure(const clv__result *r, double percent) {
  (void)percent;
  clv__incident incident;
  char text[640];
  if (r->failure != NULL) return text_field(clv__arena_string(&r->bench->arena, r->failure, strlen(r->failure)));
  if (r->measured == NULL || !clv__session_incident(r->measured->session, 0, &incident)) return unknown;
  clv__incident_text(r->measured->devices, &incident, text, sizeof text);
  return text_field(clv__arena_string(&r->bench->arena, text, strlen(text)));
}

/* ---- The list ---- */

static void add(clv_bench *bench, clv__column column) {
  bench->columns[bench->column_count++] = column;
}

/* Adds a column for each percentile, in ascending order. */
static void add_percentiles(clv_bench *bench, const double *asked, uint32_t asked_count) {
  double percents[CLV__MOST_PERCENTILES] = {90, 99}; /* programs expect these two percentiles in every document */
  uint32_t count = 2;
  for (uint32_t i = 0; i < asked_count; ++i) percents[count++] = asked[i];
  clv__sample_sort(percents, count);
  for (uint32_t i = 0; i < count; ++i) {
    bool is_asked = false;
    if (i > 0 && percents[i] == percents[i - 1]) continue;
    for (uint32_t k = 0; k < asked_count; ++k) is_asked = is_asked || asked[k] == percents[i];
    /* The 50th percentile is the median, which has its own column. */
    clv__column column = {.kind = CLV__COLUMN_REAL,
                          .decimals = 3,
                          .shown = is_asked && percents[i] != 50 ? CLV__SHOWN_ALWAYS : CLV__SHOWN_NEVER,
                          .percent = percents[i],
                          .get = get_percentile};
    snprintf(column.key, sizeof column.key, "latency_ms.p%.10g", percents[i]);
    snprintf(column.title, sizeof column.title, "p%.10g", percents[i]);
    add(bench, column);
  }
}

clv_status clv__bench_columns(clv_bench *bench, const double *percents, uint32_t count, clv_error *error) {
  static const double usual[] = {90, 99};
  if (percents == NULL) percents = usual, count = 2;
  if (count > CLV__MOST_PERCENTILES - 2)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u percentiles; the maximum is %d", count, CLV__MOST_PERCENTILES - 2);
  for (uint32_t i = 0; i < count; ++i) {
    if (!(percents[i] >= 0 && percents[i] <= 100))
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "percentile %g: expected 0 to 100", percents[i]);
  }
  add(bench, (clv__column){"model", "model", CLV__COLUMN_TEXT, 0, CLV__SHOWN_MODEL, -1, get_model});
  add(bench, (clv__column){"devices", "devices", CLV__COLUMN_LIST, 0, CLV__SHOWN_ALWAYS, -1, get_devices});
  add(bench, (clv__column){"threads", "threads", CLV__COLUMN_COUNT, 0, CLV__SHOWN_THREADS, -1, get_threads});
  add(bench, (clv__column){"batch", "batch", CLV__COLUMN_COUNT, 0, CLV__SHOWN_BATCH, -1, get_batch});
  add(bench, (clv__column){"in_flight", "in flight", CLV__COLUMN_COUNT, 0, CLV__SHOWN_IN_FLIGHT, -1, get_in_flight});
  add(bench, (clv__column){"strategy", "strategy", CLV__COLUMN_TEXT, 0, CLV__SHOWN_NEVER, -1, get_strategy});
  add(bench, (clv__column){"runs", "runs", CLV__COLUMN_COUNT, 0, CLV__SHOWN_ALWAYS, -1, get_runs});
  add(bench, (clv__column){"warmup", "warm-up", CLV__COLUMN_COUNT, 0, CLV__SHOWN_NEVER, -1, get_warmup});
  add(bench, (clv__column){"latency_ms.median", "median ms", CLV__COLUMN_REAL, 3, CLV__SHOWN_ALWAYS, -1, get_median});
  add_percentiles(bench, percents, count);
  add(bench, (clv__column){"latency_ms.stddev", "stddev", CLV__COLUMN_REAL, 3, CLV__SHOWN_ALWAYS, -1, get_deviation});
  add(bench, (clv__column){"latency_ms.min", "min ms", CLV__COLUMN_REAL, 3, CLV__SHOWN_NEVER, -1, get_min});
  add(bench, (clv__column){"latency_ms.max", "max ms", CLV__COLUMN_REAL, 3, CLV__SHOWN_NEVER, -1, get_max});
  add(bench, (clv__column){"latency_ms.mean", "mean ms", CLV__COLUMN_REAL, 3, CLV__SHOWN_NEVER, -1, get_mean});
  add(bench, (clv__column){"runs_per_second", "runs/s", CLV__COLUMN_REAL, 1, CLV__SHOWN_NEVER, -1, get_run_rate});
  add(bench,
      (clv__column){"inferences_per_second", "inferences/s", CLV__COLUMN_REAL, 1, CLV__SHOWN_ALWAYS, -1, get_inference_rate});
  add(bench, (clv__column){"predicted_ms", "predicted ms", CLV__COLUMN_REAL, 3, CLV__SHOWN_ALWAYS, -1, get_predicted});
  add(bench, (clv__column){"first_run_ms", "first run ms", CLV__COLUMN_REAL, 3, CLV__SHOWN_NEVER, -1, get_first_run});
  add(bench, (clv__column){"load_ms", "load ms", CLV__COLUMN_REAL, 3, CLV__SHOWN_NEVER, -1, get_load});
  add(bench, (clv__column){"comparison.ratio", "ratio", CLV__COLUMN_REAL, 2, CLV__SHOWN_COMPARISON, -1, get_ratio});
  add(bench, (clv__column){"comparison.low", "low", CLV__COLUMN_REAL, 2, CLV__SHOWN_COMPARISON, -1, get_low});
  add(bench, (clv__column){"comparison.high", "high", CLV__COLUMN_REAL, 2, CLV__SHOWN_COMPARISON, -1, get_high});
  add(bench, (clv__column){"comparison.outputs", "outputs", CLV__COLUMN_TEXT, 0, CLV__SHOWN_COMPARISON, -1, get_outputs});
  add(bench, (clv__column){"error", "", CLV__COLUMN_TEXT, 0, CLV__SHOWN_FAILURES, -1, get_failure});
  return CLV_OK;
}

static bool has_failures(const clv_bench *bench) {
  for (size_t r = 0; r < bench->row_count; ++r) {
    if (bench->rows[r]->figures.failure != NULL) return true;
  }
  return false;
}

bool clv__bench_has_column(const clv_bench *bench, uint32_t column, bool is_exact) {
  switch (bench->columns[column].shown) {
    case CLV__SHOWN_COMPARISON:
      return bench->is_compared;
    case CLV__SHOWN_NEVER:
      return is_exact;
    case CLV__SHOWN_ALWAYS:
      return true;
    case CLV__SHOWN_MODEL:
      return is_exact || bench->options.show_model || bench->has_models;
    case CLV__SHOWN_THREADS:
      return is_exact || bench->has_threads;
    case CLV__SHOWN_BATCH:
      return is_exact || bench->has_batch;
    case CLV__SHOWN_IN_FLIGHT:
      return is_exact || bench->has_in_flight;
    case CLV__SHOWN_FAILURES:
      return is_exact || has_failures(bench);
  }
  return false;
}

/* ---- Rows ---- */

static void set_figures(const clv__result *r, clv_bench_figures *f) {
  const clv__runner *b = r->measured;
  *f = (clv_bench_figures){.is_measured = b != NULL,
                           .is_compared = r->comparison != NULL,
                           .outputs_agree = r->comparison != NULL && r->comparison->agrees,
                           .run_count = b == NULL ? 0 : clv__runner_runs(b),
                           .median_ms = get_median(r, -1).number,
                           .mean_ms = get_mean(r, -1).number,
                           .min_ms = get_min(r, -1).number,
                           .max_ms = get_max(r, -1).number,
                           .deviation_ms = get_deviation(r, -1).number,
                           .runs_per_second = get_run_rate(r, -1).number,
                           .inferences_per_second = get_inference_rate(r, -1).number,
                           .predicted_ms = get_predicted(r, -1).number,
                           .first_run_ms = get_first_run(r, -1).number,
                           .load_ms = get_load(r, -1).number,
                           .ratio = get_ratio(r, -1).number,
                           .ratio_low = get_low(r, -1).number,
                           .ratio_high = get_high(r, -1).number};
}

/* Takes the texts of the figures from the row, which has kept them. */
static void set_texts(const clv_bench *bench, clv__row *row) {
  for (uint32_t c = 0; c < bench->column_count; ++c) {
    const char *key = bench->columns[c].key, *text = row->fields[c].text;
    if (strcmp(key, "model") == 0) row->figures.model = text;
    if (strcmp(key, "devices") == 0) row->figures.devices = text;
    if (strcmp(key, "comparison.outputs") == 0) row->figures.outputs = text;
    if (strcmp(key, "error") == 0) row->figures.failure = text;
  }
}

/* Notes which optional columns the row needs. */
static void note_columns(clv_bench *bench, const clv__result *result) {
  const clv_bench_subject *subject = result->subject;
  bench->has_threads = bench->has_threads || subject->thread_count > 0;
  bench->has_batch = bench->has_batch || subject->batch > 0;
  bench->has_in_flight = bench->has_in_flight || subject->in_flight > 0;
  if (bench->row_count > 0 && strcmp(bench->rows[0]->figures.model, subject->model) != 0) bench->has_models = true;
}

clv_status clv__bench_add_row(clv_bench *bench, const clv__result *result, clv_error *error) {
  const clv__runner *b = result->measured;
  clv__row *row = clv__arena_allocate_zero(&bench->arena, 1, sizeof *row);
  if (row == NULL || !clv__array_reserve(bench->allocator, (void **)&bench->rows, &bench->row_capacity, bench->row_count + 1,
                                         sizeof *bench->rows, bench->row_count))
    return clv__error_memory(error, sizeof *row);
  for (uint32_t c = 0; c < bench->column_count; ++c) row->fields[c] = bench->columns[c].get(result, bench->columns[c].percent);
  set_figures(result, &row->figures);
  if (b != NULL) {
    const size_t size_bytes = clv__runner_runs(b) * sizeof *row->sorted_ms;
    row->sorted_ms = clv__arena_copy(&bench->arena, b->sorted_ms, size_bytes);
    row->figures.runs_ms = clv__arena_copy(&bench->arena, b->samples.items, size_bytes);
    if (row->sorted_ms == NULL || row->figures.runs_ms == NULL) return clv__error_memory(error, size_bytes);
  }
  set_texts(bench, row);
  if (row->figures.model == NULL) return clv__error_memory(error, sizeof *row);
  note_columns(bench, result);
  bench->rows[bench->row_count++] = row;
  return CLV_OK;
}
