/* Tests `cleave compile` as users run it: the written directory runs elsewhere, without the model and without compiling.
 * Directories that are not Cleave's, are damaged or incomplete, or come from another machine give the right errors and notes. */
#include "outcome.h"

#include <dirent.h>
#include <sys/stat.h>

#define NPU "--strategy contiguous --devices npu,cpu --npu-spec all --pin relu=cpu "

/* Makes a graph of two matrix products, with weights of 9 KiB, and a Relu between them. */
static clv_graph *two_products(void) {
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 3);
  test_graph_input(&g, "x", CLV_F32, 2, (const int64_t[]){4, 48});
  test_graph_weight(&g, "w", 2, (const int64_t[]){48, 48});
  test_graph_weight(&g, "w2", 2, (const int64_t[]){48, 48});
  test_graph_node(&g, "first", "MatMul", "x,w", "a");
  test_graph_node(&g, "relu", "Relu", "a", "b");
  test_graph_node(&g, "second", "MatMul", "b,w2", "y");
  return test_graph_end(&g, "y");
}

static uint32_t count_of(const char *text, const char *part) {
  uint32_t count = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) ++count;
  return count;
}

/* Runs the command, whose arguments must include -v. Checks how many of the NPU's partitions were `loaded` from the directory,
 * and how many were `compiled`. */
static void expect_origins(const char *arguments, uint32_t loaded, uint32_t compiled) {
  outcome result = run(arguments);
  uint32_t from_folder = count_of(result.err, "on npu: loaded from the compiled directory"),
           made = count_of(result.err, "on npu: compiled");
  if (result.status != 0 || from_folder != loaded || made != compiled)
    fail_msg("cleave %s: status %d, %u executables loaded and %u compiled; expected status 0, %u and %u\n%s", arguments,
             result.status, from_folder, made, loaded, compiled, result.err);
  release(&result);
}

static void expect_note(const char *arguments, const char *part) {
  outcome result = run(arguments);
  if (result.status != 0 || strstr(result.err, part) == NULL)
    fail_msg("cleave %s: expected status 0 and a note with '%s'; status %d, standard error:\n%s", arguments, part, result.status,
             result.err);
  release(&result);
}

static void expect_shell(const char *line) {
  if (shell(line) != 0) fail_msg("the shell command '%s' failed: %s", line, err);
}

static void test_usage(void **state) {
  (void)state;
  expect_error("compile seven.onnx", 2, "option '-o DIR' is missing");
  expect_error("compile seven.onnx -o no/such/place", 1, "no/such/place: cannot create");
  expect_error("compile seven.onnx -o seven.onnx", 1, "not a directory");
  expect_error("compile nothing.onnx -o none", 1, "nothing.onnx: cannot open");
  expect_error("run .", 1, "'compiled.json'");
  expect_error("compile seven.onnx --graph on -o none", 2, "'compile' has no option '--graph'");
  outcome help = run("help compile");
  assert_non_null(strstr(help.out, "-o, --output DIR"));
  release(&help);
  assert_int_not_equal(shell("ls -d none .*.new-*"), 0); /* the failed commands left no files */
}

/* The directory alone suffices: the model is deleted, the directory is moved and read-only, and the cache is disabled. */
static void test_run(void **state) {
  (void)state;
  write_model("own.onnx", two_products());
  expect("run own.onnx -q --cache-dir '' " NPU "--output-dir wanted", 0, NULL, NULL);
  json_t *written = document("compile own.onnx --json --cache-dir '' " NPU "-o own", 0), *partition;
  size_t index, executables = 0, npu = 0;
  json_array_foreach(member(written, "partitions"), index, partition) {
    bool is_npu = strcmp(json_string_value(member(partition, "device")), "npu") == 0;
    npu += is_npu;
    executables += json_array_size(member(partition, "executables"));
    assert_int_equal(json_array_size(member(partition, "executables")), is_npu);
    assert_int_equal(json_is_string(member(partition, "reason")), !is_npu);
    assert_true(json_integer_value(member(partition, "onnx_bytes")) > 0);
  }
  assert_true(npu >= 2 && executables == npu && index > npu);
  json_decref(written);
  expect_shell("mkdir away && mv own away/it && rm own.onnx && chmod -R a-w away/it");
  expect_origins("run away/it -v --cache-dir '' --output-dir found", (uint32_t)npu, 0);
  assert_same_values("found/y.npy", "wanted/y.npy");
  expect("run away/it -q --cache-dir '' --verify", 0, NULL, NULL);
  json_t *measured = document("bench away/it --json --runs 1 --warmup 0 --cache-dir ''", 0);
  json_t *sources = member(measured, "executables");
  assert_int_equal(json_integer_value(member(sources, "from_folder")), npu);
  assert_int_equal(json_integer_value(member(sources, "compiled")), 0);
  json_decref(measured);
  expect_error("run away/it --model x.onnx", 2, "contains its model");
  expect_error("run away/it --strategy ready", 2, "has no effect on a finished plan");
  expect_shell("chmod -R u+w away/it");
}

/* An existing directory is replaced if `cleave compile` wrote it or if it is empty. Otherwise it is an error, and nothing
 * changes. */
static void test_targets(void **state) {
  (void)state;
  make_folder("empty");
  expect("compile seven.onnx -q " NPU "-o empty", 0, NULL, NULL);
  mode_t before = umask(027);
  expect("compile seven.onnx -q " NPU "-o empty", 0, NULL, NULL);
  umask(before);
  expect_shell("test $(stat -c %a empty) = 750");
  expect("compile seven.onnx -q --devices cpu -o empty/", 0, NULL, NULL);
  assert_int_not_equal(shell("ls empty/*.clvx"), 0); /* no file of the previous directory is left */
  expect("run empty -q", 0, NULL, NULL);
  expect("compile empty -q -o empty", 0, NULL, NULL); /* MODEL and -o are the same directory */
  expect("run empty -q", 0, NULL, NULL);
  write_text("empty/notes.txt", "mine");
  expect_error("compile seven.onnx -o empty", 1, "contains 'notes.txt'");
  expect("run empty -q", 0, NULL, NULL);
  make_folder("other");
  write_text("other/plan.json", "{}");
  expect_error("compile seven.onnx -o other", 1, "not a compiled model");
  expect_shell("test \"$(cat other/plan.json)\" = '{}'");
  expect_shell("mkdir .late.new-abcdef && touch .late.new-abcdef/weights.data .late.new-abcdef/model.onnx.tmp-abcdef");
  expect("compile seven.onnx -q -o late", 0, NULL, NULL);
  assert_int_not_equal(shell("ls -d .*.new-*"), 0); /* the remains of a killed process were removed too */
  expect_shell("ln -s late link");
  expect("compile seven.onnx -q -o link", 0, NULL, NULL);
  expect_shell("test -h link && test -d late");
  outcome full = run("compile seven.onnx -o /proc/cleave");
  assert_int_equal(full.status, 1);
  release(&full);
}

/* Damages the files of a directory one after the other. Either the partition is compiled again, with a note, or the run fails. */
static void test_damage(void **state) {
  (void)state;
  write_model("two.onnx", two_products());
  expect("compile two.onnx -q --cache-dir '' " NPU "-o sound", 0, NULL, NULL);
  expect("run sound -q --cache-dir '' --output-dir wanted2", 0, NULL, NULL);
  expect_shell("ls sound/*.clvx | head -1 | xargs basename >name && cp -r sound bad");
  expect_shell("printf 'x' | dd of=bad/$(cat name) bs=1 seek=400 conv=notrunc");
  expect_note("run bad --cache-dir '' --output-dir found2", "damaged: the checksum does not match");
  assert_same_values("found2/y.npy", "wanted2/y.npy");
  expect_shell("truncate -s 100 bad/$(cat name)");
  expect_note("run bad --cache-dir ''", "truncated or damaged");
  expect_shell(": >bad/$(cat name)");
  expect_note("run bad --cache-dir ''", "truncated: 0 bytes");
  expect_shell("rm bad/$(cat name)");
  expect_note("run bad --cache-dir ''", "does not exist");
  expect_note("run bad", "it is compiled again");
  expect_note("run bad", "one from the cache is used");
  expect_note("run sound --deterministic --cache-dir ''", "other options than");
  expect_note("run sound --npu-spec default --cache-dir ''", "other device or driver than");
  expect_shell("rm -r bad && cp -r sound bad && printf 'x' | dd of=bad/weights.data bs=1 seek=3 conv=notrunc");
  expect_error("run bad", 1, "the plan was made for a model with hash");
  expect_shell("truncate -s 10 bad/weights.data");
  expect_error("run bad", 1, "external data 'weights.data' has 10 bytes");
  static const char *const needed[] = {"weights.data", "model.onnx", "plan.json"};
  for (size_t i = 0; i < sizeof needed / sizeof *needed; ++i) {
    char line[160];
    snprintf(line, sizeof line, "rm -r bad && cp -r sound bad && rm bad/%s", needed[i]);
    expect_shell(line);
    expect_error("run bad", 1, "No such file or directory: copy the directory again, or compile the model again");
  }
  expect_shell("rm bad/compiled.json");
  expect_error("run bad", 1, "'compiled.json'");
}

static void test_lists(void **state) {
  (void)state;
  static const struct {
    const char *edit, *says;
  } edits[] = {
      {"s/\"cleave_compiled\": 1/\"cleave_compiled\": 2/", "compiled directory of unknown version 2;"},
      {"s/\"cleave_compiled\": 1/\"cleave_compiled\": \"1\"/", "'cleave_compiled' is missing"},
      {"s/\"partitions\"/\"parts\"/", "'partitions' is missing"},
      {"s/\"devices\"/\"dev\"/", "'devices' is missing"},
      {"s/\"options\"/\"opt\"/", "'options' is missing"},
      {"s/\"bucket\": 0/\"bucket\": -1/", "'options' is missing"},
      {"s/\"precision\": null/\"precision\": \"f8\"/", "'precision' is missing"},
      {"s/\"partition-0.clvx\"/\"..\\/x.clvx\"/", "'executables' is missing"},
      {"s/\"partition-0.onnx\"/\"\\/etc\\/passwd\"/", "'partitions' is missing"},
      {"s/\"npu_specs\": \\[\\]/\"npu_specs\": [\"..\\/few.json\"]/", "'npu_specs' is missing"},
      {"$d", "compiled.json: line"},
  };
  expect("compile seven.onnx -q --strategy contiguous --devices npu,cpu -o listed", 0, NULL, NULL);
  expect_shell("cp listed/compiled.json kept.json");
  for (size_t i = 0; i < sizeof edits / sizeof *edits; ++i) {
    char line[256];
    snprintf(line, sizeof line, "sed '%s' kept.json >listed/compiled.json && ! cmp -s kept.json listed/compiled.json",
             edits[i].edit);
    expect_shell(line);
    expect_error("run listed", 1, edits[i].says);
  }
}

/* The directory contains the devices' descriptions, the profile, and the options of compiling. A run uses all of them again. */
static void test_settings(void **state) {
  (void)state;
  write_text("few.json", "{\"operators\": {\"Conv\": {}, \"Relu\": {}}}");
  expect("compile seven.onnx -q --strategy contiguous --devices npu,cpu --npu-spec few.json --deterministic -o few", 0, NULL,
         NULL);
  expect_shell("rm few.json");
  expect("run few -q --cache-dir ''", 0, NULL, NULL);
  outcome result = run("run few --cache-dir ''");
  assert_string_equal(result.err, ""); /* no note about a different device or different options */
  release(&result);
  expect("plan seven.onnx -q --devices npu,cpu -o planned.json", 0, NULL, "");
  expect("compile planned.json -q -o from-plan", 0, NULL, NULL);
  expect("run from-plan", 0, NULL, NULL);
}

/* With --bucket, sizes stay open. The directory contains the bucket of the given sizes; a run with sizes of another bucket
 * compiles for that bucket. */
static void test_bucket(void **state) {
  (void)state;
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 3);
  test_graph_input(&g, "x", CLV_F32, 2, (const int64_t[]){test_graph_symbol(&g, "n"), 32});
  test_graph_weight(&g, "w", 2, (const int64_t[]){32, 32});
  test_graph_node(&g, "product", "MatMul", "x,w", "h");
  test_graph_node(&g, "relu", "Relu", "h", "y");
  write_model("open.onnx", test_graph_end(&g, "y"));
  expect("compile open.onnx -q --cache-dir '' --strategy contiguous --devices npu,cpu --bucket 8 --dim n=13 -o open", 0, NULL,
         NULL);
  outcome result = run("run open --dim n=13 -v --cache-dir ''");
  assert_int_equal(result.status, 0);
  assert_int_equal(count_of(result.err, "on npu: compiled"), 0);
  assert_true(count_of(result.err, "on npu: loaded from the compiled directory") > 0);
  release(&result);
  result = run("run open --dim n=77 -v --cache-dir '' --verify");
  assert_int_equal(result.status, 0);
  assert_true(count_of(result.err, "on npu: compiled") > 0);
  release(&result);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_usage),  cmocka_unit_test(test_run),   cmocka_unit_test(test_targets),
      cmocka_unit_test(test_damage), cmocka_unit_test(test_lists), cmocka_unit_test(test_settings),
      cmocka_unit_test(test_bucket),
  };
  return cmocka_run_group_tests(tests, outcome_set_up, command_tear_down);
}
