/* Tests `cleave bench` and `cleave profile`: the measured times add up, and all nodes and members of the JSON are there. */
#include "outcome.h"

/* Checks the JSON of --operators: every node is in exactly one step or idle, the times of rows and steps add up to the total,
 * and all members that other programs read are present. `silent`: the expected number of devices that report no steps. */
static void check_operators(const char *devices, const char *pins, size_t silent) {
  char line[512];
  snprintf(line, sizeof line,
           "bench seven.onnx --runs 3 --warmup 0 --threads 1 --operators --json --strategy contiguous --devices %s %s", devices,
           pins);
  json_t *bench = document(line, 0), *all = member(bench, "operators"), *item;
  static const char *const of_both[] = {"operator", "kind",        "device",           "ms",
                                        "flops",    "bytes",       "flops_per_second", "bytes_per_second",
                                        "bound",    "roofline_ms", "roofline",         "lost_ms"};
  static const char *const names[] = {"conv", "relu", "matmul", "add", "relu2", "concat", "softmax"};
  uint32_t seen[7] = {0};
  double rows_ms = 0, steps_ms = 0;
  size_t i;
  json_t *steps = member(all, "steps"), *rows = member(all, "rows"), *idle = member(all, "idle_nodes");
  json_array_foreach(rows, i, item) {
    for (size_t k = 0; k < sizeof of_both / sizeof *of_both; ++k) (void)member(item, of_both[k]);
    assert_true(json_integer_value(member(item, "count")) > 0);
    assert_true(json_number_value(member(item, "share")) <= 1.0 + 1e-9);
    rows_ms += json_number_value(member(item, "ms"));
    if (strcmp(json_string_value(member(item, "kind")), "nodes") == 0) assert_true(json_number_value(member(item, "ms")) > 0);
  }
  json_array_foreach(steps, i, item) {
    json_t *node;
    size_t at;
    for (size_t k = 0; k < sizeof of_both / sizeof *of_both; ++k) (void)member(item, of_both[k]);
    steps_ms += json_number_value(member(item, "ms"));
    json_array_foreach(member(item, "nodes"), at, node) {
      for (size_t k = 0; k < 7; ++k) seen[k] += strcmp(json_string_value(node), names[k]) == 0;
    }
  }
  json_array_foreach(idle, i, item) {
    for (size_t k = 0; k < 7; ++k) seen[k] += strcmp(json_string_value(item), names[k]) == 0;
  }
  for (size_t k = 0; k < 7; ++k) assert_int_equal(seen[k], 1);
  const double ms = json_number_value(member(all, "ms"));
  assert_true(ms > 0 && rows_ms > ms * 0.999 && rows_ms < ms * 1.001 && steps_ms > ms * 0.999 && steps_ms < ms * 1.001);
  assert_true(json_number_value(member(all, "roofline_ms")) > 0);
  assert_true(json_number_value(member(all, "roofline")) > 0);
  assert_int_equal(json_array_size(member(all, "silent_devices")), silent);
  json_t *peaks = json_array_get(member(all, "peaks"), 0);
  assert_true(json_number_value(member(member(peaks, "flops_per_second"), "f32")) > 0);
  assert_true(json_array_size(member(peaks, "bandwidth")) > 0);
  json_decref(bench);
}

static void test_bench_operators(void **state) {
  (void)state;
  check_operators("cpu", "", 0);
  check_operators("cpu", "--in-flight 4", 0);
  check_operators("npu,cpu", "--pin relu=cpu --pin concat=cpu", 1);
  json_t *bench = document("bench seven.onnx --runs 1 --warmup 0 --json", 0);
  assert_true(json_is_null(member(bench, "operators")));
  json_decref(bench);
  expect_error("run seven.onnx --operators", 2, "--operators");
  outcome table = run("bench seven.onnx --runs 3 --warmup 0 --threads 1 --operators -q");
  assert_int_equal(table.status, 0);
  assert_non_null(strstr(table.out, "\noperator "));
  assert_non_null(strstr(table.out, "\nConv+Relu "));
  assert_non_null(strstr(table.out, "\ntotal "));
  assert_null(strstr(table.out, "\nstep "));
  release(&table);
  table = run("bench seven.onnx --runs 3 --warmup 0 --threads 1 --operators -v");
  assert_non_null(strstr(table.out, "conv and 1 more"));
  release(&table);
}

/* Checks how each partition was issued in the last run (`state`), why it was eager (`reason`; NULL: not checked), and the
 * capture counters of each device. `hits` is negative if there are no counters. */
static void bench_of_graphs(const char *options, const char *state, const char *reason, int64_t hits) {
  char line[256];
  snprintf(line, sizeof line, "bench seven.onnx --devices npu,cpu --strategy contiguous --pin concat=cpu --runs 3 --json %s",
           options);
  json_t *bench = document(line, 0), *steps = member(bench, "steps"), *graphs = member(bench, "graphs");
  uint32_t partitions = 0;
  for (size_t s = 0; s < json_array_size(steps); ++s) {
    json_t *graph = json_object_get(json_array_get(steps, s), "graph");
    if (graph == NULL) continue; /* a transfer */
    ++partitions;
    assert_string_equal(json_string_value(member(graph, "state")), state);
    if (reason != NULL) assert_string_equal(json_string_value(member(graph, "reason")), reason);
  }
  assert_true(partitions > 1);
  assert_int_equal(json_object_size(graphs), hits < 0 ? 0 : 2);
  for (int d = 0; hits >= 0 && d < 2; ++d) {
    json_t *counters = member(graphs, d == 0 ? "npu" : "cpu");
    assert_int_equal(json_integer_value(member(counters, "hits")), hits);
    assert_int_equal(json_integer_value(member(counters, "entries")), hits > 0);
    assert_int_equal(json_integer_value(member(counters, "bytes")) > 0, hits > 0);
    assert_int_equal(json_is_real(member(counters, "saved_ms")),
                     d == 0); /* not known for the CPU, which runs its kernels in the calling thread */
  }
  json_decref(bench);
}

static void test_bench_graphs(void **state) {
  (void)state;
  bench_of_graphs("--warmup 2 --graph on", "replayed", NULL, 5);
  bench_of_graphs("--warmup 2 --graph auto", "replayed", NULL, 4);
  bench_of_graphs("--warmup 2 --graph off", "eager", "capture is off", -1);
  bench_of_graphs("--warmup 2 --graph on --graph-cache 0", "eager", "capture is off", -1);
  outcome text = run("bench seven.onnx --devices npu --runs 3 --warmup 2 --graph on");
  assert_non_null(strstr(text.out, "\ncaptures on npu: 1 made, 1 kept ("));
  assert_non_null(strstr(text.out, "), launched in 6 of 6 runs; "));
  assert_non_null(strstr(text.out, "  replayed  "));
  release(&text);
}

/* A profile is measured, extended and used for planning. A file that is not a profile is not overwritten. */
static void test_profile(void **state) {
  (void)state;
  json_t *root = document("profile seven.onnx --devices npu,cpu --runs 2 -o costs.json --json", 0);
  json_t *devices = member(root, "devices");
  assert_int_equal(json_array_size(devices), 2);
  for (size_t d = 0; d < 2; ++d) {
    assert_int_equal(json_integer_value(member(json_array_get(devices, d), "nodes_measured")), 7);
    assert_true(json_number_value(member(json_array_get(devices, d), "launch_us")) > 0);
  }
  json_decref(root);
  root = document("plan seven.onnx --devices npu,cpu --profile costs.json --json", 0);
  assert_true(json_number_value(member(root, "predicted_ms")) > 0);
  assert_int_equal(json_string_length(member(root, "profile")), 64);
  json_decref(root);
  expect("profile seven.onnx --runs 2 -q -o costs.json", 0, NULL, "");
  write_text("costs.txt", "my notes");
  expect_error("profile seven.onnx -o costs.txt", 1, "'costs.txt' exists and cannot be extended");
  expect_error("plan seven.onnx --profile costs.txt", 1, "costs.txt: line 1");
  expect_error("plan seven.onnx --profile none.json", 1, "none.json");
  expect_error("profile none.onnx -o costs.json", 1, "none.onnx");
  expect_error("profile --runs 0", 2, "--runs");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bench_operators),
      cmocka_unit_test(test_bench_graphs),
      cmocka_unit_test(test_profile),
  };
  return cmocka_run_group_tests_name("cli/measuring", tests, outcome_set_up, command_tear_down);
}
