/* The functions of cleave/bench.h: the numbers of runs, the figures against the samples, and the documents against the figures.
 */
#include <jansson.h>

#include "machine.h"

typedef struct fixture {
  machine m;
  clv_graph *graph;
  clv_plan *plan;
  clv_session *session;
  float data[3 * 8 * 8];
  clv_tensor input;
  clv_bench_subject subject;
} fixture;

static void begin(fixture *f, uint32_t in_flight) {
  static const char *const spec = "all";
  clv_error error = {0};
  uint64_t seed = 3;
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  machine_open(&f->m, "npu,cpu", 1, &spec);
  f->graph = test_seven_nodes(&f->m.counting.allocator);
  f->plan = machine_plan(&f->m, f->graph, "concat=cpu,softmax=npu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  options.in_flight = in_flight;
  assert_ok(clv_session_create(f->plan, &options, &f->session, &error), error);
  for (size_t i = 0; i < sizeof f->data / sizeof *f->data; ++i) f->data[i] = test_random_float(&seed);
  f->input = *clv_graph_input_type(f->graph, 0);
  f->input.data = f->data;
  f->subject = (clv_bench_subject)CLV_BENCH_SUBJECT_INIT;
  f->subject.session = f->session;
  f->subject.inputs = &f->input;
  f->subject.input_count = 1;
  f->subject.model = "seven.onnx";
  f->subject.label = "seven";
  f->subject.plan_ms = 2;
  f->subject.compile_ms = 3;
}

static void end(fixture *f) {
  clv_session_destroy(f->session);
  clv_plan_destroy(f->plan);
  clv_graph_destroy(f->graph);
  machine_close(&f->m);
}

static clv_bench *create(const fixture *f, const clv_bench_options *options) {
  clv_error error = {0};
  clv_bench *bench;
  assert_ok(clv_bench_create(f->m.context, options, &bench, &error), error);
  return bench;
}

static clv_bench_figures figures_of(const clv_bench *bench, uint32_t row) {
  clv_bench_figures figures = {.struct_size = sizeof figures};
  assert_true(clv_bench_row(bench, row, &figures));
  return figures;
}

static char *table_of(const clv_bench *bench, clv_bench_form form) {
  clv_error error = {0};
  char *text;
  assert_ok(clv_bench_table(bench, form, &text, &error), error);
  return text;
}

static char *details_of(clv_bench *bench, clv_bench_level level, clv_form form) {
  clv_error error = {0};
  char *text;
  assert_ok(clv_bench_details(bench, level, form, &text, &error), error);
  return text;
}

static double real_of(const json_t *object, const char *name, const char *key) {
  const json_t *value = json_object_get(name == NULL ? object : json_object_get(object, name), key);
  if (!json_is_number(value)) fail_msg("'%s' is not a number", key);
  return json_number_value(value);
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Computes the figures of the samples again. */
static void check_samples(const clv_bench *bench, uint32_t row, uint64_t runs) {
  const clv_bench_figures f = figures_of(bench, row);
  double sorted[64], sum = 0;
  assert_true(f.is_measured && f.failure == NULL && !f.is_compared);
  assert_int_equal(f.run_count, runs);
  for (uint64_t i = 0; i < runs; ++i) {
    assert_true(f.runs_ms[i] > 0);
    sorted[i] = f.runs_ms[i];
    sum += sorted[i];
  }
  qsort(sorted, runs, sizeof *sorted, compare);
  assert_float_equal(f.min_ms, sorted[0], 0);
  assert_float_equal(f.max_ms, sorted[runs - 1], 0);
  assert_float_equal(f.mean_ms, (sum / (double)runs), 1e-6);
  const double median = runs % 2 == 1 ? sorted[runs / 2] : (sorted[runs / 2 - 1] + sorted[runs / 2]) / 2;
  assert_float_equal(f.median_ms, median, 1e-6);
  assert_float_equal(clv_bench_percentile(bench, row, 100), sorted[runs - 1], 0);
  assert_float_equal(clv_bench_percentile(bench, row, 0), sorted[0], 0);
  assert_true(f.first_run_ms > 0 && f.predicted_ms > 0 && f.runs_per_second > 0 && f.load_ms == 5);
}

static void check_details(clv_bench *bench, const fixture *f, bool has_operators) {
  const clv_bench_figures row = figures_of(bench, 0);
  char *text = details_of(bench, CLV_BENCH_USUAL, CLV_FORM_TEXT), *brief = details_of(bench, CLV_BENCH_BRIEF, CLV_FORM_TEXT);
  char *dumped = details_of(bench, CLV_BENCH_USUAL, CLV_FORM_JSON), median[64];
  snprintf(median, sizeof median, "median %.3f ms, p90 ", row.median_ms);
  assert_true(strncmp(text, median, strlen(median)) == 0);
  assert_non_null(strstr(text, "\nstep         device  predicted ms"));
  assert_int_equal(strstr(text, "\noperator ") != NULL, has_operators);
  assert_null(strstr(brief, "predicted ms  measured ms"));
  json_t *root = json_loads(dumped, 0, NULL);
  assert_non_null(root);
  assert_float_equal(real_of(root, "latency_ms", "median"), row.median_ms, 1e-6);
  assert_float_equal(real_of(root, "latency_ms", "p90"), clv_bench_percentile(bench, 0, 90), 1e-6);
  assert_float_equal(real_of(root, "timings_ms", "compile"), 3, 0);
  assert_int_equal(json_array_size(json_object_get(root, "samples_ms")), row.run_count);
  assert_int_equal(json_array_size(json_object_get(root, "steps")), f->plan->step_count);
  assert_true(real_of(json_array_get(json_object_get(root, "steps"), 0), NULL, "median_ms") > 0);
  assert_string_equal(json_string_value(json_object_get(root, "model")), "seven.onnx");
  assert_int_equal(json_is_object(json_object_get(root, "operators")), has_operators);
  assert_true(json_is_false(json_object_get(root, "interrupted")));
  assert_null(json_object_get(root, "comparison"));
  json_decref(root);
  clv_text_free(dumped);
  clv_text_free(brief);
  clv_text_free(text);
}

typedef struct watched {
  uint32_t phases[4];
  uint64_t stop_after; /* measured runs; 0: never */
  uint64_t runs;
} watched;

static void watch(void *user_data, const clv_bench_progress *progress) {
  watched *w = user_data;
  ++w->phases[progress->phase];
  if (progress->phase == CLV_BENCH_RUNS) w->runs = progress->done;
  assert_string_equal(progress->label, "seven");
}

static bool go_on(void *user_data) {
  const watched *w = user_data;
  return w->stop_after == 0 || w->runs + 1 < w->stop_after;
}

static void one_configuration(void **state) {
  (void)state;
  for (uint32_t in_flight = 1; in_flight <= 3; in_flight += 2) {
    fixture f;
    clv_error error = {0};
    watched w = {.stop_after = 0};
    clv_bench_options options = CLV_BENCH_OPTIONS_INIT;
    char trace[64];
    begin(&f, in_flight);
    snprintf(trace, sizeof trace, "/tmp/cleave-bench-%d.json", (int)getpid());
    options.runs = 7;
    options.warmup = 2;
    options.steps = options.operators = true;
    options.trace_path = trace;
    options.go_on = go_on;
    options.progress = watch;
    options.user_data = &w;
    clv_bench *bench = create(&f, &options);
    assert_ok(clv_bench_measure(bench, &f.subject, &error), error);
    check_samples(bench, 0, 7);
    check_details(bench, &f, true);
    assert_string_equal(figures_of(bench, 0).devices, "npu,cpu");
    for (int p = 0; p < 4; ++p) assert_true(w.phases[p] > 0);
    assert_int_equal(access(trace, R_OK), 0);
    unlink(trace);
    clv_bench_destroy(bench);
    end(&f);
  }
}

/* Stopped after three of many runs: the figures are of these three, and steps are not measured. */
static void a_stopped_bench_keeps_its_runs(void **state) {
  (void)state;
  fixture f;
  clv_error error = {0};
  watched w = {.stop_after = 4};
  clv_bench_options options = CLV_BENCH_OPTIONS_INIT;
  begin(&f, 1);
  options.duration_s = 1000;
  options.steps = options.operators = true;
  options.go_on = go_on;
  options.progress = watch;
  options.user_data = &w;
  clv_bench *bench = create(&f, &options);
  assert_ok(clv_bench_measure(bench, &f.subject, &error), error);
  check_samples(bench, 0, 4);
  assert_int_equal(w.phases[CLV_BENCH_OPERATORS], 0);
  char *text = details_of(bench, CLV_BENCH_ALL, CLV_FORM_TEXT);
  assert_non_null(strstr(text, "\ninterrupted after 4 runs\n"));
  assert_null(strstr(text, "measured ms"));
  clv_text_free(text);
  assert_int_equal(clv_bench_measure(bench, &f.subject, &error), CLV_CANCELLED); /* stopped before its first run */
  clv_bench_figures none = {.struct_size = sizeof none};
  assert_false(clv_bench_row(bench, 1, &none));
  assert_int_equal(clv_bench_details(bench, CLV_BENCH_ALL, CLV_FORM_TEXT, &text, &error), CLV_INVALID_ARGUMENT);
  clv_bench_destroy(bench);
  end(&f);
}

/* ---- Several configurations ---- */

static size_t count_lines(const char *text) {
  size_t count = 0;
  for (; *text != '\0'; ++text) count += *text == '\n';
  return count;
}

static void check_forms(const clv_bench *bench) {
  char *text = table_of(bench, CLV_BENCH_TEXT), *csv = table_of(bench, CLV_BENCH_CSV);
  char *markdown = table_of(bench, CLV_BENCH_MARKDOWN), *dumped = table_of(bench, CLV_BENCH_JSON);
  assert_true(strncmp(text, "devices ", 8) == 0 &&
              strstr(text, "'ratio': the time of a run, divided by that of npu,cpu") != NULL);
  assert_null(strstr(text, "threads"));
  assert_true(strncmp(csv, "model,devices,threads,batch,in_flight,strategy,runs,", 51) == 0);
  assert_int_equal(count_lines(csv), 4);
  assert_true(strncmp(markdown, "| devices | ", 12) == 0);
  assert_int_equal(count_lines(markdown), 5);
  json_t *root = json_loads(dumped, 0, NULL), *rows = json_object_get(root, "rows");
  assert_int_equal(json_array_size(rows), 3);
  assert_string_equal(json_string_value(json_object_get(json_array_get(rows, 2), "error")), "no such device");
  assert_true(json_is_null(json_object_get(json_object_get(json_array_get(rows, 2), "latency_ms"), "median")));
  assert_float_equal(real_of(json_array_get(rows, 1), "comparison", "ratio"), figures_of(bench, 1).ratio, 1e-6);
  json_decref(root);
  clv_text_free(dumped);
  clv_text_free(markdown);
  clv_text_free(csv);
  clv_text_free(text);
}

static void configurations_take_turns(void **state) {
  (void)state;
  fixture f;
  clv_error error = {0};
  clv_bench_options options = CLV_BENCH_OPTIONS_INIT;
  begin(&f, 1);
  clv_plan *plan = machine_plan(&f.m, f.graph, "*=cpu", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *other = machine_session(plan);
  clv_bench_subject subjects[3] = {f.subject, f.subject, CLV_BENCH_SUBJECT_INIT};
  subjects[1].session = other;
  subjects[2].model = "seven.onnx";
  subjects[2].devices = "absent";
  subjects[2].failure = "no such device";
  options.runs = 20;
  clv_bench *bench = create(&f, &options);
  assert_ok(clv_bench_compare(bench, subjects, 3, &error), error);
  const clv_bench_figures first = figures_of(bench, 0), second = figures_of(bench, 1), third = figures_of(bench, 2);
  assert_true(first.is_measured && !first.is_compared && isnan(first.ratio) && first.run_count == 20);
  assert_true(second.is_measured && second.is_compared && second.outputs_agree && second.run_count == 20);
  assert_string_equal(second.outputs, "agree");
  assert_true(second.ratio > 0 && second.ratio_low <= second.ratio && second.ratio <= second.ratio_high);
  assert_true(!third.is_measured && !third.is_compared && isnan(third.median_ms) && third.run_count == 0);
  assert_string_equal(third.failure, "no such device");
  assert_string_equal(third.devices, "absent");
  assert_true(isnan(clv_bench_percentile(bench, 2, 50)) && isnan(clv_bench_percentile(bench, 3, 50)));
  check_forms(bench);
  clv_bench_destroy(bench);
  clv_session_destroy(other);
  clv_plan_destroy(plan);
  end(&f);
}

/* The second configuration gets other inputs, so its outputs differ. */
static void outputs_that_differ(void **state) {
  (void)state;
  fixture f;
  clv_error error = {0};
  clv_bench_options options = CLV_BENCH_OPTIONS_INIT;
  float data[3 * 8 * 8] = {1};
  begin(&f, 2);
  clv_tensor input = f.input;
  input.data = data;
  clv_session *other = machine_session(f.plan);
  clv_bench_subject subjects[2] = {f.subject, f.subject};
  subjects[1].inputs = &input;
  subjects[1].session = other;
  options.runs = 3;
  clv_bench *bench = create(&f, &options);
  assert_ok(clv_bench_compare(bench, subjects, 2, &error), error);
  const clv_bench_figures row = figures_of(bench, 1);
  assert_true(row.is_measured && row.is_compared && !row.outputs_agree && isnan(row.ratio) && row.run_count == 3);
  assert_true(strncmp(row.outputs, "differ: 'y' element ", 20) == 0 && strstr(row.outputs, " on npu,cpu (tolerance ") != NULL);
  clv_bench_destroy(bench);
  clv_session_destroy(other);
  end(&f);
}

/* ---- Bad input ---- */

static void bad_input(void **state) {
  (void)state;
  static const double above = 101, many[15] = {0};
  fixture f;
  clv_error error = {0};
  clv_bench *bench = NULL;
  char *text;
  clv_bench_options options = CLV_BENCH_OPTIONS_INIT;
  begin(&f, 1);
  options.percentiles = &above;
  options.percentile_count = 1;
  assert_int_equal(clv_bench_create(f.m.context, &options, &bench, &error), CLV_INVALID_ARGUMENT);
  assert_string_equal(error.message, "percentile 101: expected 0 to 100");
  options.percentiles = many;
  options.percentile_count = 15;
  assert_int_equal(clv_bench_create(f.m.context, &options, &bench, &error), CLV_INVALID_ARGUMENT);
  options = (clv_bench_options)CLV_BENCH_OPTIONS_INIT;
  options.duration_s = -1;
  assert_int_equal(clv_bench_create(f.m.context, &options, &bench, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_bench_create(NULL, NULL, &bench, &error), CLV_INVALID_ARGUMENT);
  assert_null(bench);
  bench = create(&f, NULL);
  clv_bench_subject subject = f.subject;
  subject.session = NULL;
  assert_int_equal(clv_bench_measure(bench, &subject, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_bench_compare(bench, &subject, 1, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_bench_compare(bench, &subject, 0, &error), CLV_INVALID_ARGUMENT);
  clv_tensor wrong = f.input;
  wrong.dims[1] = 5;
  subject = f.subject;
  subject.inputs = &wrong;
  assert_int_equal(clv_bench_measure(bench, &subject, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "input 'x'"));
  assert_int_equal(clv_bench_details(bench, CLV_BENCH_ALL, CLV_FORM_TEXT, &text, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_bench_details(bench, (clv_bench_level)3, CLV_FORM_TEXT, &text, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_bench_table(bench, (clv_bench_form)5, &text, &error), CLV_INVALID_ARGUMENT);
  assert_ok(clv_bench_compare(bench, &subject, 1, &error), error); /* a row with the error */
  assert_non_null(strstr(figures_of(bench, 0).failure, "input 'x'"));
  subject.struct_size = 3;
  assert_int_equal(clv_bench_measure(bench, &subject, &error), CLV_INVALID_ARGUMENT);
  clv_bench_destroy(bench);
  clv_bench_destroy(NULL);
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_configuration),
      cmocka_unit_test(a_stopped_bench_keeps_its_runs),
      cmocka_unit_test(configurations_take_turns),
      cmocka_unit_test(outputs_that_differ),
      cmocka_unit_test(bad_input),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
