/* See columns.h. */
#include "cli/bench/columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench.h"

static const bench_field unknown = {NULL, NAN};

static bench_field text_field(const char *text) {
  return (bench_field){text, NAN};
}
static bench_field number_field(double number) {
  return (bench_field){NULL, number};
}
static bench_field option_number(const char *text) {
  return text == NULL ? unknown : number_field(strtod(text, NULL));
}

/* ---- The configuration ---- */

static bench_field get_model(const bench_result *r, double percent) {
  (void)percent;
  return text_field(r->setting->model);
}
/* Returns the devices that were opened: those of a plan file, those that `auto` found, or those of the given list that are
 * available. If the configuration was not measured, returns the given list. */
static bench_field get_devices(const bench_result *r, double percent) {
  (void)percent;
  if (r->measured == NULL) return text_field(r->setting->devices);
  const clv_devices *devices = r->measured->job.devices;
  bench_field field = unknown;
  clv__text names;
  clv__text_init(&names, r->measured->cli->allocator);
  for (uint32_t d = 0; d < devices->count; ++d) clv__text_append(&names, "%s%s", d > 0 ? "," : "", devices->items[d].name);
  field.text = clv__arena_string(&r->measured->cli->arena, names.data, names.size_bytes);
  clv__text_finish(&names);
  return field;
}
static bench_field get_threads(const bench_result *r, double percent) {
  (void)percent;
  return option_number(r->setting->threads);
}
static bench_field get_batch(const bench_result *r, double percent) {
  (void)percent;
  return option_number(r->setting->batch);
}
static bench_field get_in_flight(const bench_result *r, double percent) {
  (void)percent;
  return option_number(r->setting->in_flight != NULL ? r->setting->in_flight : "1");
}
static bench_field get_strategy(const bench_result *r, double percent) {
  (void)percent;
  const bench *b = r->measured;
  if (b == NULL) return unknown;
  const char *name = b->job.plan->placement.strategy;
  return text_field(clv__arena_string(&b->cli->arena, name, strlen(name)));
}

/* ---- Measurements ---- */

static bench_field get_runs(const bench_result *r, double percent) {
  (void)percent;
  return r->measured == NULL ? unknown : number_field((double)bench_runs(r->measured));
}
static bench_field get_warmup(const bench_result *r, double percent) {
  (void)percent;
  return r->measured == NULL ? unknown : number_field(r->measured->warmup);
}
static bench_field get_median(const bench_result *r, double percent) {
  (void)percent;
  return r->measured == NULL ? unknown : number_field(bench_median(r->measured->sorted_ms, bench_runs(r->measured)));
}
static bench_field get_percentile(const bench_result *r, double percent) {
  return r->measured == NULL ? unknown : number_field(bench_percentile(r->measured->sorted_ms, bench_runs(r->measured), percent));
}
static bench_field get_deviation(const bench_result *r, double percent) {
  (void)percent;
  return r->measured == NULL ? unknown : number_field(bench_deviation(r->measured->sorted_ms, bench_runs(r->measured)));
}
static bench_field get_mean(const bench_result *r, double percent) {
  (void)percent;
  return r->measured == NULL ? unknown : number_field(bench_mean(r->measured->sorted_ms, bench_runs(r->measured)));
}
static bench_field get_min(const bench_result *r, double percent) {
  (void)percent;
  return r->measured == NULL ? unknown : number_field(r->measured->sorted_ms[0]);
}
static bench_field get_max(const bench_result *r, double percent) {
  (void)percent;
  return r->measured == NULL ? unknown : number_field(r->measured->sorted_ms[bench_runs(r->measured) - 1]);
}
static bench_field get_run_rate(const bench_result *r, double percent) {
  (void)percent;
  const bench *b = r->measured;
  return b == NULL || b->total_ms <= 0 ? unknown : number_field((double)bench_runs(b) * 1e3 / b->total_ms);
}
static bench_field get_inference_rate(const bench_result *r, double percent) {
  const bench_field batch = get_batch(r, percent), rate = get_run_rate(r, percent);
  return number_field(isnan(batch.number) ? rate.number : rate.number * batch.number);
}
static bench_field get_predicted(const bench_result *r, double percent) {
  (void)percent;
  if (r->measured == NULL) return unknown;
  return number_field((double)clv__session_plan(r->measured->session)->price.overlapped_ns / 1e6);
}
static bench_field get_first_run(const bench_result *r, double percent) {
  (void)percent;
  return r->measured == NULL ? unknown : number_field(r->measured->first_run_ms);
}
static bench_field get_load(const bench_result *r, double percent) {
  (void)percent;
  return r->measured == NULL ? unknown : number_field(r->measured->load_ms);
}

/* ---- The comparison ---- */

static bench_field get_ratio(const bench_result *r, double percent) {
  (void)percent;
  return r->comparison == NULL || !r->comparison->agrees ? unknown : number_field(r->comparison->ratio);
}
static bench_field get_low(const bench_result *r, double percent) {
  (void)percent;
  return r->comparison == NULL || !r->comparison->agrees ? unknown : number_field(r->comparison->low);
}
static bench_field get_high(const bench_result *r, double percent) {
  (void)percent;
  return r->comparison == NULL || !r->comparison->agrees ? unknown : number_field(r->comparison->high);
}
static bench_field get_outputs(const bench_result *r, double percent) {
  (void)percent;
  return r->comparison == NULL ? unknown : text_field(r->comparison->text);
}
/* Returns why the configuration was not measured or, if it was and a device was removed, the first removal. */
static bench_field get_failure(const bench_result *r, double percent) {
  (void)percent;
  clv__incident incident;
  char text[640];
  if (r->failure != NULL) return text_field(clv__arena_string(&r->cli->arena, r->failure->message, strlen(r->failure->message)));
  if (r->measured == NULL || !clv__session_incident(r->measured->session, 0, &incident)) return unknown;
  clv__incident_text(r->measured->job.devices, &incident, text, sizeof text);
  return text_field(clv__arena_string(&r->cli->arena, text, strlen(text)));
}

/* ---- The list ---- */

static void add(bench_report *report, bench_column column) {
  report->columns[report->column_count++] = column;
}

static clv_status read_percentiles(cli_invocation *cli, double *percents, bool *is_asked, uint32_t *count, clv_error *error) {
  uint32_t given;
  const char **texts = cli_split(cli, cli_text(cli, OPTION_PERCENTILES, "90,99"), &given);
  *count = 0;
  if (texts == NULL) return clv__error_memory(error, given * sizeof *texts);
  if (given > BENCH_MOST_PERCENTILES - 2)
    return cli_usage(cli, error, "option '--percentiles': at most %d, not %u", BENCH_MOST_PERCENTILES - 2, given);
  for (uint32_t i = 0; i < given; ++i) {
    percents[(*count)++] = strtod(texts[i], NULL);
    if (percents[i] > 100) return cli_usage(cli, error, "option '--percentiles': '%s' is above 100", texts[i]);
  }
  const uint32_t asked = *count;
  percents[(*count)++] = 90; /* programs expect these two percentiles in every document */
  percents[(*count)++] = 99;
  bench_sort(percents, *count);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < *count; ++i) {
    if (kept == 0 || percents[kept - 1] != percents[i]) percents[kept++] = percents[i];
  }
  *count = kept;
  for (uint32_t i = 0; i < kept; ++i) {
    is_asked[i] = false;
    for (uint32_t k = 0; k < asked; ++k) is_asked[i] = is_asked[i] || strtod(texts[k], NULL) == percents[i];
  }
  return CLV_OK;
}

static clv_status add_percentiles(bench_report *report, clv_error *error) {
  double percents[BENCH_MOST_PERCENTILES];
  bool is_asked[BENCH_MOST_PERCENTILES];
  uint32_t count;
  CLV__TRY(read_percentiles(report->cli, percents, is_asked, &count, error));
  for (uint32_t i = 0; i < count; ++i) {
    /* The 50th percentile is the median, which has its own column. */
    bench_column column = {.kind = BENCH_REAL,
                           .decimals = 3,
                           .is_shown = is_asked[i] && percents[i] != 50,
                           .percent = percents[i],
                           .get = get_percentile};
    snprintf(column.key, sizeof column.key, "latency_ms.p%.10g", percents[i]);
    snprintf(column.title, sizeof column.title, "p%.10g", percents[i]);
    add(report, column);
  }
  return CLV_OK;
}

clv_status bench_report_init(bench_report *report, cli_invocation *cli, const bench_shown *shown, uint32_t capacity,
                             clv_error *error) {
  *report = (bench_report){.cli = cli, .row_capacity = capacity};
  report->rows = clv__arena_allocate_zero(&cli->arena, capacity, sizeof *report->rows);
  if (report->rows == NULL) return clv__error_memory(error, capacity * sizeof *report->rows);
  add(report, (bench_column){"model", "model", BENCH_TEXT, 0, shown->model, -1, get_model});
  add(report, (bench_column){"devices", "devices", BENCH_LIST, 0, true, -1, get_devices});
  add(report, (bench_column){"threads", "threads", BENCH_COUNT, 0, shown->threads, -1, get_threads});
  add(report, (bench_column){"batch", "batch", BENCH_COUNT, 0, shown->batch, -1, get_batch});
  add(report, (bench_column){"in_flight", "in flight", BENCH_COUNT, 0, shown->in_flight, -1, get_in_flight});
  add(report, (bench_column){"strategy", "strategy", BENCH_TEXT, 0, false, -1, get_strategy});
  add(report, (bench_column){"runs", "runs", BENCH_COUNT, 0, true, -1, get_runs});
  add(report, (bench_column){"warmup", "warm-up", BENCH_COUNT, 0, false, -1, get_warmup});
  add(report, (bench_column){"latency_ms.median", "median ms", BENCH_REAL, 3, true, -1, get_median});
  CLV__TRY(add_percentiles(report, error));
  add(report, (bench_column){"latency_ms.stddev", "stddev", BENCH_REAL, 3, true, -1, get_deviation});
  add(report, (bench_column){"latency_ms.min", "min ms", BENCH_REAL, 3, false, -1, get_min});
  add(report, (bench_column){"latency_ms.max", "max ms", BENCH_REAL, 3, false, -1, get_max});
  add(report, (bench_column){"latency_ms.mean", "mean ms", BENCH_REAL, 3, false, -1, get_mean});
  add(report, (bench_column){"runs_per_second", "runs/s", BENCH_REAL, 1, false, -1, get_run_rate});
  add(report, (bench_column){"inferences_per_second", "inferences/s", BENCH_REAL, 1, true, -1, get_inference_rate});
  add(report, (bench_column){"predicted_ms", "predicted ms", BENCH_REAL, 3, true, -1, get_predicted});
  add(report, (bench_column){"first_run_ms", "first run ms", BENCH_REAL, 3, false, -1, get_first_run});
  add(report, (bench_column){"load_ms", "load ms", BENCH_REAL, 3, false, -1, get_load});
  if (shown->comparison) {
    add(report, (bench_column){"comparison.ratio", "ratio", BENCH_REAL, 2, true, -1, get_ratio});
    add(report, (bench_column){"comparison.low", "low", BENCH_REAL, 2, true, -1, get_low});
    add(report, (bench_column){"comparison.high", "high", BENCH_REAL, 2, true, -1, get_high});
    add(report, (bench_column){"comparison.outputs", "outputs", BENCH_TEXT, 0, true, -1, get_outputs});
  }
  add(report, (bench_column){"error", "", BENCH_TEXT, 0, true, -1, get_failure});
  return CLV_OK;
}

clv_status bench_report_add(bench_report *report, const bench_result *result, clv_error *error) {
  bench_row *row = &report->rows[report->row_count];
  clv__arena *arena = &report->cli->arena;
  const bench *b = result->measured;
  row->is_measured = b != NULL;
  for (uint32_t c = 0; c < report->column_count; ++c) row->fields[c] = report->columns[c].get(result, report->columns[c].percent);
  if (b != NULL) {
    row->sample_count = bench_runs(b);
    row->samples_ms = clv__arena_copy(arena, b->samples.items, row->sample_count * sizeof *row->samples_ms);
    if (row->samples_ms == NULL) return clv__error_memory(error, row->sample_count * sizeof *row->samples_ms);
  }
  ++report->row_count;
  return CLV_OK;
}

bool bench_report_has_results(const bench_report *report) {
  for (uint32_t r = 0; r < report->row_count; ++r) {
    if (report->rows[r].is_measured) return true;
  }
  return false;
}

const char *bench_report_common_failure(const bench_report *report) {
  const uint32_t column = report->column_count - 1;
  const char *first = report->row_count > 0 ? report->rows[0].fields[column].text : NULL;
  for (uint32_t r = 1; first != NULL && r < report->row_count; ++r) {
    const char *text = report->rows[r].fields[column].text;
    if (text == NULL || strcmp(text, first) != 0) return NULL;
  }
  return first;
}
