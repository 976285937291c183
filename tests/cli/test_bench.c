/* Tests what `cleave bench` offers beyond one model on one list of devices: statistics of the samples, durations, batches,
 * tables of several configurations in all formats, and comparisons of configurations that run in turns. The tests compare
 * measured times only with each other, never with fixed limits. */
#include <math.h>

#include "outcome.h"

#define QUICK " --runs 6 --warmup 1 "

static double number(const json_t *object, const char *name) {
  const json_t *found = member(object, name);
  if (!json_is_number(found)) fail_msg("the JSON value of '%s' is not a number", name);
  return json_number_value(found);
}

static const char *text(const json_t *object, const char *name) {
  const json_t *found = member(object, name);
  if (!json_is_string(found)) fail_msg("the JSON value of '%s' is not a string", name);
  return json_string_value(found);
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* ---- Statistics ---- */

/* Checks latency_ms against the row's own samples. */
static void check_statistics(json_t *row, const double *percents, size_t percent_count) {
  const json_t *list = member(row, "samples_ms"), *latency = member(row, "latency_ms");
  const size_t count = json_array_size(list);
  double *samples = calloc(count + 1, sizeof *samples), mean = 0, squares = 0;
  assert_true(count > 0 && count == (size_t)json_integer_value(member(row, "runs")));
  for (size_t i = 0; i < count; ++i) mean += samples[i] = json_number_value(json_array_get(list, i));
  mean /= (double)count;
  for (size_t i = 0; i < count; ++i) squares += (samples[i] - mean) * (samples[i] - mean);
  qsort(samples, count, sizeof *samples, compare);
  const double median = (samples[(count - 1) / 2] + samples[count / 2]) / 2;
  assert_true(samples[0] > 0);
  assert_float_equal(number(latency, "median"), median, 1e-6 * median);
  assert_float_equal(number(latency, "mean"), mean, 1e-6 * mean);
  assert_float_equal(number(latency, "min"), samples[0], 1e-6 * mean);
  assert_float_equal(number(latency, "max"), samples[count - 1], 1e-6 * mean);
  if (count > 1)
    assert_float_equal(number(latency, "stddev"), sqrt(squares / (double)(count - 1)), 1e-6 * mean);
  else
    assert_true(json_is_null(member(latency, "stddev")));
  for (size_t p = 0; p < percent_count; ++p) {
    char name[32];
    snprintf(name, sizeof name, "p%g", percents[p]);
    size_t rank = 1; /* of the smallest sample that at least percents[p] % of all samples do not exceed */
    while (100.0 * (double)rank < percents[p] * (double)count - 1e-6) ++rank;
    const double expected = percents[p] == 50 ? median : samples[rank - 1];
    assert_float_equal(number(latency, name), expected, 1e-6 * mean);
  }
  free(samples);
}

static void test_statistics(void **state) {
  (void)state;
  static const double asked[] = {0, 12.5, 50, 90, 95, 99, 99.9, 100}, usual[] = {90, 99};
  json_t *one = document("bench seven.onnx -q --json --runs 37 --percentiles 0,12.5,50,95,99.9,100", 0);
  check_statistics(one, asked, sizeof asked / sizeof *asked); /* percentiles 90 and 99 are always reported */
  json_decref(one);
  one = document("bench seven.onnx -q --json --runs 1 --warmup 0", 0);
  check_statistics(one, usual, 2);
  json_decref(one);
  outcome shown = run("bench seven.onnx -q --runs 40 --percentiles 50,75,99.9");
  assert_int_equal(shown.status, 0);
  assert_non_null(strstr(shown.out, ", p75 "));
  assert_non_null(strstr(shown.out, ", p99.9 "));
  assert_non_null(strstr(shown.out, ", stddev "));
  assert_null(strstr(shown.out, ", p90 "));
  assert_null(strstr(shown.out, ", p50 "));
  assert_non_null(strstr(shown.out, " of 40 runs\n"));
  release(&shown);
}

static void test_duration(void **state) {
  (void)state;
  json_t *one = document("bench seven.onnx -q --json --duration 50ms", 0);
  double sum = 0;
  for (size_t i = 0; i < json_array_size(member(one, "samples_ms")); ++i)
    sum += json_number_value(json_array_get(member(one, "samples_ms"), i));
  assert_true(sum > 0 && json_integer_value(member(one, "runs")) > 0);
  /* The last run may end at any time after 50 ms; without it, the runs took less. */
  const size_t count = json_array_size(member(one, "samples_ms"));
  assert_true(sum - json_number_value(json_array_get(member(one, "samples_ms"), count - 1)) < 50);
  json_decref(one);
  one = document("bench seven.onnx -q --json --duration 1h --runs 5", 0); /* ends at the limit that is reached first */
  assert_int_equal(json_integer_value(member(one, "runs")), 5);
  json_decref(one);
  one = document("bench seven.onnx -q --json --duration 0.02 --in-flight 3 --devices npu,cpu", 0);
  assert_true(json_integer_value(member(one, "runs")) >= 1);
  json_decref(one);
}

/* ---- Several configurations ---- */

static void write_batched(void) {
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 5);
  const int64_t n = test_graph_symbol(&g, "N"), s = test_graph_symbol(&g, "S");
  test_graph_input(&g, "x", CLV_F32, 2, (const int64_t[]){n, 8});
  test_graph_input(&g, "y", CLV_F32, 2, (const int64_t[]){n, s});
  test_graph_input(&g, "z", CLV_F32, 1, (const int64_t[]){s});
  test_graph_weight(&g, "w", 2, (const int64_t[]){8, 4});
  test_graph_node(&g, "product", "MatMul", "x,w", "p");
  test_graph_node(&g, "sum", "Add", "y,z", "t");
  write_model("batched.onnx", test_graph_end(&g, "p,t"));
}

static void test_sweep(void **state) {
  (void)state;
  static const double usual[] = {90, 99};
  json_t *root = document(
      "bench seven.onnx batched.onnx -q --json" QUICK "--devices cpu --devices npu,cpu --threads 1,2 --in-flight 1,2,16", 0);
  json_t *rows = member(root, "rows");
  assert_int_equal(json_array_size(rows), 24);
  assert_true(json_is_false(member(root, "interrupted")));
  for (size_t i = 0; i < 24; ++i) { /* in the order of rows, the number of requests in flight varies fastest */
    static const int in_flight[] = {1, 2, 16};
    json_t *row = json_array_get(rows, i);
    assert_string_equal(text(row, "model"), i < 12 ? "seven.onnx" : "batched.onnx");
    assert_int_equal(json_array_size(member(row, "devices")), i / 6 % 2 + 1);
    assert_int_equal(number(row, "threads"), i / 3 % 2 + 1);
    assert_int_equal(number(row, "in_flight"), in_flight[i % 3]);
    assert_int_equal(number(row, "runs"), 6);
    assert_true(json_is_null(member(row, "error")) && json_is_null(member(row, "batch")));
    assert_true(number(row, "predicted_ms") > 0 && number(row, "runs_per_second") > 0);
    assert_true(number(row, "first_run_ms") > 0 && number(row, "load_ms") > 0);
    check_statistics(row, usual, 2);
  }
  json_decref(root);
}

static void test_batch(void **state) {
  (void)state;
  json_t *root = document("bench batched.onnx seven.onnx -q --json" QUICK "--batch 3,5 --dim S=2", 0),
         *rows = member(root, "rows");
  for (size_t i = 0; i < 2; ++i) {
    const json_t *row = json_array_get(rows, i);
    const double batch = i == 0 ? 3 : 5, rate = number(row, "runs_per_second");
    assert_int_equal(number(row, "batch"), batch);
    assert_float_equal(number(row, "inferences_per_second"), batch * rate, 1e-6 * batch * rate);
  }
  for (size_t i = 2; i < 4; ++i) { /* the rows of seven.onnx, whose batch is fixed, have errors instead of measurements */
    const json_t *row = json_array_get(rows, i);
    assert_non_null(
        strstr(text(row, "error"), i == 2 ? "the model has no batch of 3: input '" : "the model has no batch of 5: "));
    assert_true(json_is_null(member(row, "runs")) && json_array_size(member(row, "samples_ms")) == 0);
  }
  json_decref(root);
  /* S is the first dimension of z, but also the second of y. Therefore it is not a batch size, and stays open. */
  outcome shown = run("bench batched.onnx" QUICK "--batch 7");
  assert_int_equal(shown.status, 0);
  assert_non_null(strstr(shown.err, "open sizes are set to 1: 'y' f32[7,1] ("));
  assert_non_null(strstr(shown.out, " inferences per second, batch 7\n"));
  release(&shown);
  expect_error("bench batched.onnx -q --batch 4 --dim N=2", 1, "--dim sets 'N', the batch, to 2, but --batch is 4");
  expect_error("bench seven.onnx --batch 4", 1,
               "; export the model with a symbol as first dimension that no other dimension of an input uses");
  expect_error("bench seven.onnx --batch 0", 2, "option '--batch': '0' is not a whole number from 1");
  expect_error("run seven.onnx --batch 2", 2, "'run' has no option '--batch'; it belongs to: bench");
  outcome same = run("bench seven.onnx -q --runs 2 --batch 1"); /* the batch that the model is made for */
  assert_int_equal(same.status, 0);
  release(&same);
  outcome planned = run("plan batched.onnx -q --dim N=2 --dim S=2 -o fixed.json");
  assert_int_equal(planned.status, 0);
  release(&planned);
  expect_error("bench fixed.json -q --batch 2", 2, "option '--batch' has no effect on a finished plan");
}

static size_t count_lines(const char *lines) {
  size_t count = 0;
  for (; *lines != '\0'; ++lines) count += *lines == '\n';
  return count;
}

static void test_formats(void **state) {
  (void)state;
#define TWO "bench seven.onnx none.onnx -q" QUICK "--percentiles 95 "
  outcome table = run(TWO), csv = run(TWO "--csv"), markdown = run(TWO "--markdown");
  assert_true(table.status == 0 && csv.status == 0 && markdown.status == 0);
  assert_int_equal(count_lines(table.out), 3);
  assert_int_equal(strncmp(table.out, "model       devices  runs  median ms", 36), 0);
  assert_non_null(strstr(table.out, "\nnone.onnx"));
  assert_non_null(strstr(table.out, "none.onnx: cannot open"));
  assert_int_equal(count_lines(csv.out), 3);
  assert_int_equal(strncmp(csv.out, "model,devices,threads,batch,in_flight,strategy,runs,warmup,latency_ms.median,", 76), 0);
  assert_non_null(strstr(csv.out, ",latency_ms.p90,latency_ms.p95,latency_ms.p99,latency_ms.stddev,"));
  assert_non_null(strstr(csv.out, "\nseven.onnx,cpu,,,1,optimal,6,1,"));
  assert_non_null(strstr(csv.out, "\nnone.onnx,,,,1,,,,,,,,,,,,,,,,,none.onnx: cannot open"));
  assert_int_equal(count_lines(markdown.out), 4);
  assert_int_equal(strncmp(markdown.out, "| model | devices | runs | median ms | p95 | stddev |", 53), 0);
  assert_non_null(strstr(markdown.out, "\n| seven.onnx | cpu | 6 | "));
  release(&table);
  release(&csv);
  release(&markdown);
  outcome one = run("bench seven.onnx -q --csv" QUICK); /* also for a single configuration */
  assert_true(one.status == 0 && count_lines(one.out) == 2);
  release(&one);
  expect_error("bench seven.onnx --csv --json", 2, "give one of --json, --csv and --markdown");
  expect_error("bench seven.onnx --csv --operators", 2, "option '--operators' is for a single configuration");
  expect_error("bench seven.onnx --threads 1,2 --trace t.json", 2, "option '--trace' is for a single configuration");
  expect_error("bench seven.onnx --threads 1,", 2, "option '--threads': '' is not a whole number");
  expect_error("bench seven.onnx --in-flight 1,17", 2, "option '--in-flight': '17' is not a whole number from 1 to 16");
  expect_error("bench seven.onnx --percentiles 90,101", 2, "option '--percentiles': '101' is above 100");
  expect_error("bench seven.onnx --percentiles ninety", 2, "option '--percentiles': 'ninety' is not a number");
  expect_error("bench seven.onnx --duration 5y", 2, "option '--duration': '5y' is not a duration, such as 10s");
  expect_error("run seven.onnx --threads 1,2", 2, "option '--threads': '1,2' is not a whole number");
  outcome none = run("bench none.onnx other.onnx -q"); /* nothing was measured */
  assert_int_equal(none.status, 1);
  release(&none);
}

/* A device's options apply to the configurations that have the device. */
static void test_options_of_devices(void **state) {
  (void)state;
  json_t *root = document(
      "bench seven.onnx -q --json" QUICK "--devices cpu --devices npu,cpu --npu-spec all --device-option npu:memory=1M", 0);
  for (size_t i = 0; i < 2; ++i) assert_true(json_is_null(member(json_array_get(member(root, "rows"), i), "error")));
  json_decref(root);
  /* If no configuration has the device of an option, there is one error, not a table of errors. */
  expect_error("bench seven.onnx -q" QUICK "--devices cpu --devices npu,cpu --device-option gpu:x=1", 1, "gpu");
  expect_error("bench seven.onnx --devices cpu --npu-spec all", 2,
               "option '--npu-spec' is given 1 time, but the devices are cpu");
}

/* If a device failed and was removed, the row has the times of the other devices and reports the removal. The row still lists
 * all devices that were opened. */
static void test_removed_devices(void **state) {
  (void)state;
  json_t *root = document("bench seven.onnx -q --json" QUICK
                          "--devices npu,cpu --devices cpu --strategy contiguous --device-option npu:fail=5 --graph off",
                          0);
  const json_t *first = json_array_get(member(root, "rows"), 0), *second = json_array_get(member(root, "rows"), 1);
  assert_int_equal(strncmp(text(first, "error"), "npu was removed: ", 17), 0);
  assert_int_equal(number(first, "runs"), 6);
  assert_true(json_is_null(member(second, "error")));
  json_decref(root);
  outcome table = run("bench seven.onnx -q" QUICK "--devices gpu:7,cpu --devices cpu,npu");
  if (table.status != 0) fail_msg("status %d, expected 0\n%s%s", table.status, table.out, table.err);
  assert_non_null(strstr(table.out, "\ncpu "));
  assert_non_null(strstr(table.out, "\ncpu,npu "));
  release(&table);
}

/* ---- Comparisons ---- */

/* A device that computes in f16 has outputs that differ by more than the tolerance of f32; the outputs of a device that
 * computes in f32 are within it. */
static void test_compare(void **state) {
  (void)state;
  static const double usual[] = {90, 99};
  write_text("exact.json", "{\"operators\": \"all\"}");
  write_text("coarse.json", "{\"operators\": \"all\", \"compute_dtype\": \"f16\"}");
  json_t *root = document("bench seven.onnx -q --json --runs 25 --compare-with npu,none --npu-spec exact.json", 0);
  json_t *rows = member(root, "rows");
  assert_int_equal(json_array_size(rows), 3);
  for (size_t i = 0; i < 2; ++i) {
    json_t *row = json_array_get(rows, i), *comparison = member(row, "comparison");
    assert_int_equal(number(row, "runs"), 25);
    check_statistics(row, usual, 2);
    if (i == 0) {
      assert_true(json_is_null(member(comparison, "ratio")) && json_is_null(member(comparison, "outputs")));
      continue;
    }
    assert_string_equal(text(comparison, "outputs"), "agree");
    const double ratio = number(comparison, "ratio"), low = number(comparison, "low"), high = number(comparison, "high");
    assert_true(low > 0 && low <= ratio && ratio <= high);
  }
  assert_non_null(strstr(text(json_array_get(rows, 2), "error"), "none"));
  json_decref(root);
  root = document("bench seven.onnx -q --json --runs 5 --compare-with npu --npu-spec coarse.json", 1);
  json_t *comparison = member(json_array_get(member(root, "rows"), 1), "comparison");
  assert_int_equal(strncmp(text(comparison, "outputs"), "differ: 'y' element ", 8), 0);
  assert_true(json_is_null(member(comparison, "ratio")));
  json_decref(root);
  outcome shown = run("bench seven.onnx -q --runs 5 --compare-with npu --npu-spec exact.json --in-flight 1,2 --pin relu=cpu");
  /* --pin applies to the plan for cpu, but not to that for npu, where it would be an error. */
  assert_int_equal(shown.status, 0);
  assert_non_null(strstr(shown.out, "  ratio"));
  assert_non_null(strstr(shown.out, "agree\n"));
  assert_non_null(strstr(shown.out, "'ratio': the time of a run, divided by that of cpu: "));
  release(&shown);
  outcome planned = run("plan seven.onnx -q --devices npu,cpu --npu-spec all -o plan.json");
  assert_int_equal(planned.status, 0);
  release(&planned);
  /* For cpu, the model of plan.json is planned again. */
  shown = run("bench plan.json -q --runs 3 --compare-with cpu --npu-spec all");
  assert_int_equal(shown.status, 0);
  assert_non_null(strstr(shown.out, "\nnpu,cpu "));
  assert_non_null(strstr(shown.out, "agree\n"));
  release(&shown);
}

static int set_up(void **state) {
  if (outcome_set_up(state) != 0) return -1;
  write_batched();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_statistics),      cmocka_unit_test(test_duration), cmocka_unit_test(test_sweep),
      cmocka_unit_test(test_batch),           cmocka_unit_test(test_formats),  cmocka_unit_test(test_options_of_devices),
      cmocka_unit_test(test_removed_devices), cmocka_unit_test(test_compare),
  };
  return cmocka_run_group_tests_name("cli/bench", tests, set_up, command_tear_down);
}
