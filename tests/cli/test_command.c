/* Tests the built command as users run it: exit statuses, error lines, the printed plan, JSON and files. */
#include "outcome.h"

static void test_usage(void **state) {
  (void)state;
  expect_error("", 2, "a command is missing");
  expect_error("palan seven.onnx", 2, "unknown command 'palan'; did you mean 'plan'?");
  expect_error("plan seven.onnx --foo", 2, "unknown option '--foo'; did you mean '--force'?");
  expect_error("plan seven.onnx --zzzzzzzz", 2, "unknown option '--zzzzzzzz'; 'cleave help plan' lists the options");
  expect_error("run seven.onnx --svg a.svg", 2, "'run' has no option '--svg'; it belongs to: plan");
  expect_error("plan", 2, "MODEL|PLAN is missing");
  expect_error("plan seven.onnx again.onnx", 2, "'again.onnx' is one argument too many");
  expect_error("plan seven.onnx --devices", 2, "option '--devices' needs a value");
  expect_error("plan seven.onnx --json=1", 2, "option '--json' takes no value");
  expect_error("bench seven.onnx --runs 0", 2, "'0' is not a whole number");
  expect_error("bench seven.onnx --runs=-1", 2, "'-1' is not a whole number");
  expect_error("test x --rtol nan", 2, "is not a number");
  expect_error("plan seven.onnx --color sometimes", 2, "is not one of auto|always|never");
  expect_error("plan seven.onnx --pin conv", 2, "is not of the form PATTERN=DEV");
  expect_error("plan seven.onnx --strategy contigous", 2, "did you mean 'contiguous'?");
  expect_error("plan seven.onnx --devices tpu", 2, "device 'tpu'");
  expect_error("run seven.onnx --shape x=1xx3", 2, "is not a shape");
  expect_error("--json plan seven.onnx", 2, "options come after the command");
  expect("devices x", 2, NULL, "cleave: 'x' is one argument too many; usage: cleave devices\n");
  expect_error("run seven.onnx --devices npu,cpu --device-option npu:guard=2", 2, "device option guard=2: must be 1 or 0");
  expect_error("plan seven.onnx --npu-spec all", 2, "'--npu-spec' is given 1 time, but the devices are cpu");
}

/* No option overwrites the model. Only -o may overwrite the plan file. */
static void test_targets(void **state) {
  (void)state;
  expect_error("plan seven.onnx -o seven.onnx", 2, "is the model itself");
  expect_error("plan seven.onnx --svg ./seven.onnx", 2, "is the model itself");
  expect_error("plan seven.onnx -o -", 2, "needs a file name");
  expect("plan seven.onnx -q -o own.json", 0, NULL, "");
  expect_error("plan own.json --dot own.json", 2, "is the plan itself");
  expect_error("plan own.json -o seven.onnx", 2, "is the model itself");
  expect("plan own.json -q -o own.json", 0, NULL, "");
  expect("run own.json", 0, NULL, "");
}

/* A plan file does not contain the NPU's description. Running the plan with another NPU prints a note; another number of threads
 * does not. */
static void test_planned_devices(void **state) {
  (void)state;
  write_text("few.json", "{\"operators\": {\"Conv\": {}, \"Relu\": {}}}");
  expect("plan seven.onnx -q --devices npu,cpu --npu-spec few.json -o few-plan.json", 0, NULL, "");
  expect("run few-plan.json --npu-spec few.json --threads 1", 0, NULL, "");
  outcome other = run("run few-plan.json");
  assert_int_equal(other.status, 0);
  assert_non_null(strstr(other.err, "device 'npu' differs from the one that the plan was made for"));
  release(&other);
}

static void test_failures(void **state) {
  (void)state;
  write_bytes("broken.onnx", "\x12\xff\xff", 3);
  write_text("broken.json", "{\"cleave_plan\": ");
  expect_error("plan nothing.onnx", 1, "nothing.onnx: cannot open");
  expect_error("plan .", 1, "neither a regular file nor a directory written by 'cleave compile'");
  expect_error("plan broken.onnx", 1, "broken.onnx");
  expect_error("run broken.json", 1, "broken.json: line 1");
  write_text("graphs.json", "{\"cleave_gnn_plan\": 1, \"model\": \"m.json\"}");
  write_text("tables.json", "{\"format\": \"cleave-gnn-tables\"}");
  expect_error("run graphs.json", 1, "use it with 'cleave gnn run --plan'");
  expect_error("plan tables.json", 1, "use it with 'cleave gnn plan --profile'");
  expect_error("plan seven.onnx --pin 'nothing*=cpu'", 1, "matches no node");
  expect_error("plan seven.onnx --explain conct", 1, "did you mean 'concat'?");
  expect_error("plan seven.onnx --pin conct=cpu", 1, "'conct=cpu' matches no node of the model; did you mean 'concat'?");
  expect_error("plan seven.onnx --force Contact=cpu", 1, "did you mean 'Concat'?");
  expect_error("plan seven.onnx --force Concat=cpuu", 2, "did you mean 'cpu'?");
  expect_error("plan seven.onnx --force Concat=npu", 2,
               "in the list of devices (--devices cpu); to add it, give --devices npu,cpu");
  expect_error("plan seven.onnx --pin concat=other", 2, "'other' is not in the list of devices (--devices cpu)");
  expect_error("plan seven.onnx --what-if Sofmax@cpu", 1, "did you mean 'Softmax'?");
  expect_error("run seven.onnx --dump nope", 1, "no value named 'nope'");
  expect_error("run seven.onnx --input z=z.npy", 1, "the model's inputs: x");
  expect_error("run seven.onnx --dim batch=2", 1, "batch");
  expect_error("plan seven.onnx -o no/such/folder/p.json", 1, "no/such/folder");
  outcome result = run("plan seven.onnx -o /dev/full");
  assert_int_equal(result.status, 1);
  release(&result);
}

/* An output file that cannot be written is an error before the work starts, here before the missing model is found. If the work
 * fails later, existing files keep their content. */
static void test_outputs_first(void **state) {
  (void)state;
  static const char *const options[] = {"-o", "--svg", "--dot", "--html"};
  char arguments[128], path[128];
  for (size_t i = 0; i < sizeof options / sizeof *options; ++i) {
    snprintf(arguments, sizeof arguments, "plan nothing.onnx %s no/folder/x", options[i]);
    expect_error(arguments, 1, "no/folder/x: cannot create");
  }
  expect_error("run nothing.onnx --trace no/folder/x", 1, "no/folder/x: cannot create");
  expect_error("profile nothing.onnx -o .", 1, ".: cannot open for writing: Is a directory");
  make_folder("whole");
  write_text("whole/kept.json", "as it was");
  expect_error("plan nothing.onnx -o whole/kept.json --svg whole/new.svg", 1, "nothing.onnx: cannot open");
  snprintf(path, sizeof path, "%s/whole/kept.json", work);
  char *kept = read_whole(path);
  assert_string_equal(kept, "as it was");
  free(kept);
  assert_int_equal(unlink(path), 0);
  snprintf(path, sizeof path, "%s/whole", work);
  assert_int_equal(rmdir(path), 0); /* the folder is empty: no other file was left */
  expect_error("plan nothing.onnx -o /dev/null", 1, "nothing.onnx: cannot open");
}

/* The help text of an option that several commands accept is specific to the command. */
static void test_help_words(void **state) {
  (void)state;
  static const struct {
    const char *arguments, *said, *unsaid;
  } cases[] = {
      {"help inspect", "verdicts of every node", "timeline"},
      {"help plan", "write the plan", "write the result"},
      {"help profile", "write the measured costs", "write the result"},
      {"help run", "[default: 1]", "of random placements"},
      {"help bench", "[default: 50]", "bench: 50"},
      {"help profile", "[default: 15]", "bench: 50"},
      {"help test", "of random placements", "of random graphs"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    outcome result = run(cases[i].arguments);
    assert_int_equal(result.status, 0);
    if (strstr(result.out, cases[i].said) == NULL)
      fail_msg("cleave %s: the output does not contain '%s'", cases[i].arguments, cases[i].said);
    if (strstr(result.out, cases[i].unsaid) != NULL)
      fail_msg("cleave %s: the output contains '%s', but should not", cases[i].arguments, cases[i].unsaid);
    release(&result);
  }
}

static void test_help(void **state) {
  (void)state;
  expect("--version", 0, "cleave " CLEAVE_VERSION "\n", "");
  static const char *const verbs[] = {"devices", "inspect", "plan", "run", "bench", "test", "profile"};
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; ++i) {
    char arguments[64], head[64];
    snprintf(head, sizeof head, "cleave %s: ", verbs[i]);
    snprintf(arguments, sizeof arguments, "help %s", verbs[i]);
    outcome by_word = run(arguments);
    snprintf(arguments, sizeof arguments, "%s --help", verbs[i]);
    outcome by_option = run(arguments);
    assert_int_equal(by_word.status, 0);
    assert_int_equal(by_option.status, 0);
    assert_string_equal(by_word.out, by_option.out);
    assert_int_equal(strncmp(by_word.out, head, strlen(head)), 0);
    assert_non_null(strstr(by_word.out, "Examples"));
    release(&by_word);
    release(&by_option);
  }
  outcome all = run("--help");
  for (size_t i = 0; i < sizeof verbs / sizeof *verbs; ++i) assert_non_null(strstr(all.out, verbs[i]));
  assert_non_null(strstr(all.out, "CLEAVE_GRAPH_CACHE"));
  release(&all);
}

/* If a JSON file is neither a model nor a plan, the error says what it is and which option or command accepts it. */
static void test_other_files(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } files[] = {
      {"{\"a\": 1}", "neither a plan (\"cleave_plan\" is missing) nor a model (\"graph_inputs\" is missing)"},
      {"{\"operators\": {}}", "this is a device description, not a model: use it with --npu-spec"},
      {"{\"type\": \"gcn\", \"layers\": []}", "this is a GNN model"},
      {"{\"cleave_plan\": 1}", "the plan names no model: give it with --model FILE"},
      {"version https://git-lfs.github.com/spec/v1", "not an ONNX model: it is a Git LFS pointer"},
  };
  for (size_t i = 0; i < sizeof files / sizeof *files; ++i) {
    write_text("strange.json", files[i].text);
    expect_error("plan strange.json", 1, files[i].says);
  }
}

/* Help texts fit into 80 columns, so that a terminal breaks no word. Only examples, which are meant to be copied, may be longer.
 */
static void test_help_width(void **state) {
  (void)state;
  static const char *const texts[] = {"help",       "help devices", "help inspect", "help plan",          "help run",
                                      "help bench", "help test",    "help profile", "help check-backend", "help cache",
                                      "help gnn",   "help gnn plan"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    outcome help = run(texts[i]);
    assert_int_equal(help.status, 0);
    for (const char *line = help.out; *line != '\0';) {
      size_t length = strcspn(line, "\n");
      if (length > 80 && strncmp(line, "  cleave ", 9) != 0)
        fail_msg("%s: a line is longer than 80 characters: %.*s", texts[i], (int)length, line);
      line += length + (line[length] == '\n');
    }
    release(&help);
  }
}

/* Options for running, and the environment variables for the same settings. An option takes precedence over the variable. */
static void test_run_options(void **state) {
  (void)state;
  static const char *const fine[] = {
      "run seven.onnx -q --graph off",        "run seven.onnx -q --graph=on --graph-cache 0",
      "run seven.onnx -q --prefill-graph on", "bench seven.onnx -q --runs 4 --warmup 0 --in-flight 4 --cache-dir=",
      "run seven.onnx -q --cache-dir ''",     "bench seven.onnx -q --runs 1 --warmup 0 --graph auto --graph-cache 4294967295",
  };
  for (size_t i = 0; i < sizeof fine / sizeof *fine; ++i) {
    outcome result = run(fine[i]);
    if (result.status != 0) fail_msg("cleave %s: status %d, expected 0: %s", fine[i], result.status, result.err);
    release(&result);
  }
  expect_error("run seven.onnx --graph maybe", 2, "option '--graph': 'maybe' is not one of off|on|auto");
  expect_error("run seven.onnx --graph-cache -1", 2, "option '--graph-cache': '-1' is not a whole number");
  expect_error("run seven.onnx --prefill-graph auto", 2, "'auto' is not one of on|off");
  expect_error("bench seven.onnx --in-flight 17", 2, "option '--in-flight': '17' is not a whole number from 1 to 16");
  expect_error("plan seven.onnx --graph on", 2, "'plan' has no option '--graph'");
  assert_int_equal(setenv("CLEAVE_GRAPH", "perhaps", 1), 0);
  expect_error("run seven.onnx", 1, "environment variable CLEAVE_GRAPH is 'perhaps'");
  outcome said = run("run seven.onnx -q --graph on");
  assert_int_equal(said.status, 0);
  release(&said);
  assert_int_equal(unsetenv("CLEAVE_GRAPH"), 0);
}

/* Runs the model on both devices, where the NPU fails. The output must be that of the CPU alone, followed by a line that the NPU
 * was removed, with the reason `why`. */
static void expect_taken_out(const char *arguments, const char *why) {
  char line[512];
  outcome alone = run("run seven.onnx --devices cpu");
  snprintf(line, sizeof line, "run seven.onnx --devices npu,cpu --strategy contiguous --force Concat=cpu %s", arguments);
  outcome result = run(line);
  const char *at = strstr(result.out, "npu was removed: ");
  bool fine = result.status == 0 && strncmp(result.out, alone.out, strlen(alone.out)) == 0 && at != NULL;
  fine = fine && strstr(at, why) != NULL && strstr(at, ": 2 partitions were moved to cpu; recovery took ") != NULL;
  if (!fine)
    fail_msg("cleave %s: expected status 0, the CPU's output, and that npu was removed: '%s'; status %d, error:\n%s\noutput:\n%s",
             line, why, result.status, result.err, result.out);
  release(&alone);
  release(&result);
}

static void test_devices_that_fail(void **state) {
  (void)state;
#define SPLIT "seven.onnx --devices npu,cpu --strategy contiguous --force Concat=cpu "
  expect_taken_out("--device-option npu:fail=1", "launch 1 failed");
  expect_taken_out("--device-option npu:fail=2", "launch 2 failed");
  expect_taken_out("--device-option npu:hang=2 --device-time-limit 0.3", "it did not answer within 0.3 s");
  expect_taken_out("--device-option npu:hang=1 --device-time-limit 0.3 --verify", "it did not answer within 0.3 s");
  expect_error("run " SPLIT "--device-option npu:fail=1 --no-fallback", 1, "launch 1 failed");
  expect_error("run " SPLIT "--device-option npu:hang=1 --device-time-limit 0.3 --no-fallback", 1,
               "execute: it did not answer within");
  expect_error("run " SPLIT "--device-time-limit soon", 2, "'soon' is not a number of 0 or more");
  json_t *root = document("run " SPLIT "--json --device-option npu:fail=1", 0), *list = member(root, "fallbacks");
  assert_int_equal(json_array_size(list), 1);
  const json_t *one = json_array_get(list, 0);
  assert_string_equal(json_string_value(member(one, "device")), "npu");
  assert_non_null(strstr(json_string_value(member(one, "error")), "launch 1 failed"));
  assert_int_equal(json_integer_value(member(one, "partitions")), 2);
  assert_string_equal(json_string_value(json_array_get(member(one, "placed_on"), 0)), "cpu");
  assert_true(json_real_value(member(one, "cost_ms")) > 0);
  json_decref(root);
  root = document("run " SPLIT "--json", 0);
  assert_int_equal(json_array_size(member(root, "fallbacks")), 0);
  json_decref(root);
  /* The NPU fails in a measured run, or when steps are timed. Either way, the reported steps are those of the plan without the
   * NPU. */
  static const char *const benches[] = {"--device-option npu:fail=5", "--device-option npu:fail=9",
                                        "--in-flight 2 --device-option npu:hang=9 --device-time-limit 0.3"};
  for (size_t i = 0; i < sizeof benches / sizeof *benches; ++i) {
    char line[512];
    snprintf(line, sizeof line, "bench " SPLIT "--json --runs 3 --warmup 0 --graph off %s", benches[i]);
    root = document(line, 0);
    assert_int_equal(json_array_size(member(root, "fallbacks")), 1);
    list = member(root, "steps");
    assert_true(json_array_size(list) > 0);
    for (size_t s = 0; s < json_array_size(list); ++s) {
      assert_string_equal(json_string_value(member(json_array_get(list, s), "device")), "cpu");
      assert_true(json_real_value(member(json_array_get(list, s), "median_ms")) > 0);
    }
    json_decref(root);
  }
#undef SPLIT
}

/* The complete output for a small example: with Concat on the CPU, the NPU gets two partitions. */
static void test_golden_plan(void **state) {
  (void)state;
  expect("plan seven.onnx --devices npu,cpu --strategy contiguous --force Concat=cpu", 0,
         "Step 0:  50.1 µs  partition 0 on npu [5 nodes]  conv, relu, matmul, add, relu2\n"
         "Step 1:  20.2 µs  transfer 'r2' npu → cpu, 1.0 KiB\n"
         "Step 2:  5.41 µs  partition 1 on cpu [1 node]   concat\n"
         "Step 3:  20.4 µs  transfer 'cc' cpu → npu, 2.0 KiB\n"
         "Step 4:  50.1 µs  partition 2 on npu [1 node]   softmax\n"
         "\n"
         "3 partitions (npu: 2 with 6 nodes, cpu: 1 with 1 node)\n"
         "2 transfers between partitions, 3.0 KiB; 2 transfers of the model's inputs and outputs, 2.8 KiB\n"
         "predicted 187 µs one step after the other (bound 6.48 µs, gap ×29)\n"
         "          187 µs with devices at the same time (bound 6.48 µs, gap ×29)\n"
         "prices from: nominal figures, because no profile is given\n",
         "");
  write_text("pins.txt", "# a comment\n\n  conc*t =\tcpu  # another \r\n");
  outcome pinned = run("plan seven.onnx --devices npu,cpu --strategy contiguous --pins pins.txt"),
          forced = run("plan seven.onnx --devices=npu,cpu --strategy=contiguous --force=Concat=cpu");
  assert_int_equal(pinned.status, 0);
  assert_string_equal(pinned.out, forced.out);
  release(&pinned);
  release(&forced);
  write_text("pins.txt", "conv=cpu\nrelu\n");
  expect_error("plan seven.onnx --devices npu,cpu --pins pins.txt", 2, "pins.txt, line 2: 'relu'");
}

static void test_explain(void **state) {
  (void)state;
  outcome one = run("plan seven.onnx --devices npu,cpu --strategy contiguous --force Concat=cpu --explain concat");
  assert_int_equal(one.status, 0);
  assert_non_null(strstr(one.out, "concat (Concat) on cpu, partition 1: usr"));
  assert_null(strstr(one.out, "softmax"));
  release(&one);
  outcome all = run("plan --explain seven.onnx --devices npu,cpu --strategy contiguous");
  assert_int_equal(all.status, 0);
  assert_non_null(strstr(all.out, "conv (Conv) on npu"));
  assert_non_null(strstr(all.out, "softmax (Softmax) on npu"));
  release(&all);
}

static void test_plan_json(void **state) {
  (void)state;
  json_t *plan = document("plan seven.onnx --devices npu,cpu --strategy contiguous --force Concat=cpu --json", 0);
  assert_string_equal(json_string_value(member(plan, "strategy")), "contiguous");
  assert_int_equal(json_array_size(member(plan, "partitions")), 3);
  assert_int_equal(json_array_size(member(plan, "transfers")), 4);
  assert_int_equal(json_array_size(member(plan, "nodes")), 7);
  assert_true(json_real_value(member(plan, "predicted_ms")) > 0);
  assert_true(json_real_value(member(plan, "lower_bound_ms")) <= json_real_value(member(plan, "predicted_ms")));
  assert_true(json_real_value(member(plan, "gap")) >= 0);
  static const char *const timings[] = {"load", "place", "split"};
  for (size_t i = 0; i < 3; ++i) assert_true(json_is_real(member(member(plan, "timings_ms"), timings[i])));
  assert_int_equal(json_integer_value(member(member(plan, "totals"), "transfers")), 2);
  json_decref(plan);
}

/* A plan that is written to another folder and run from there gives the same results as the CPU alone. */
static void test_run(void **state) {
  (void)state;
  make_folder("plans");
  expect(
      "plan seven.onnx --devices npu,cpu --strategy contiguous --force Concat=cpu -q -o plans/p.json --svg plans/p.svg --dot "
      "plans/p.dot",
      0, NULL, "");
  expect("run seven.onnx --seed 7 --output-dir alone -q", 0, "", "");
  expect("run plans/p.json --seed 7 --output-dir 'split/of three' -q", 0, "", "");
  assert_same_values("alone/y.npy", "split/of three/y.npy");
  expect("run seven.onnx --seed 8 --output-dir other -q", 0, "", "");
  clv_tensor a = read_npy("alone/y.npy"), b = read_npy("other/y.npy");
  assert_true(clv__tensor_get(&a, 0) != clv__tensor_get(&b, 0));
  clv__release(clv__allocator_default(), a.data);
  clv__release(clv__allocator_default(), b.data);
  json_t *verified = document("run plans/p.json --verify --json", 0);
  assert_true(json_is_true(member(member(verified, "verify"), "equal")));
  assert_int_equal(json_integer_value(member(member(verified, "verify"), "partitions_checked")), 3);
  json_t *checks = member(member(verified, "verify"), "partitions");
  assert_int_equal(json_array_size(checks), 3);
  for (size_t p = 0; p < 3; ++p) {
    json_t *check = json_array_get(checks, p);
    assert_true(json_is_true(member(check, "compared")) && json_number_value(member(check, "share")) == 1e-4);
    assert_true(json_number_value(member(check, "difference")) <= json_number_value(member(check, "tolerance")));
  }
  json_decref(verified);
  expect_error("run plans/p.json --force Conv=cpu", 2, "'--force' has no effect on a finished plan");
  expect_error("run seven.onnx --model seven.onnx", 2, "'--model' is for plan files");
  char *svg = NULL, path[128];
  snprintf(path, sizeof path, "%s/plans/p.svg", work);
  svg = read_whole(path);
  assert_non_null(strstr(svg, "</svg>"));
  free(svg);
}

/* --dump writes a value to a file that --input can read. --verify reports a device that computes in bf16. */
static void test_dump_and_verify(void **state) {
  (void)state;
  expect("run seven.onnx --dump r2 --dump cc --output-dir inner -q", 0, "", "");
  clv_tensor inner = read_npy("inner/cc.npy");
  assert_int_equal(inner.rank, 4);
  clv__release(clv__allocator_default(), inner.data);
  expect_error("run seven.onnx --input inner/r2.npy", 1, "input 'x' is declared as f32[1,3,8,8]");
  write_text("coarse.json", "{\"compute_dtype\": \"bf16\", \"operators\": \"all\"}");
  outcome wrong =
      run("run seven.onnx --devices npu,cpu --npu-spec coarse.json --device-option npu:guard=1 --strategy contiguous "
          "--force Concat=cpu --verify");
  assert_int_equal(wrong.status, 1);
  assert_non_null(strstr(wrong.out, "partition  device  worst output  difference  tolerance  allowed\n        0  npu     r2 "));
  assert_non_null(strstr(wrong.out, "  0.0001 of "));
  assert_non_null(strstr(wrong.out, "differs: partition 0 on npu: value 'r2' ["));
  release(&wrong);
}

static void test_inspect_devices_bench(void **state) {
  (void)state;
  json_t *devices = document("devices --devices npu,cpu --json", 0);
  assert_int_equal(json_array_size(member(devices, "devices")), 2);
  assert_true(json_integer_value(member(json_array_get(member(devices, "devices"), 1), "operator_count")) > 100);
  json_decref(devices);
  json_t *inspected = document("inspect seven.onnx --devices npu,cpu --nodes --json", 0);
  assert_int_equal(json_integer_value(member(inspected, "node_count")), 7);
  assert_int_equal(json_array_size(member(inspected, "nodes")), 7);
  assert_true(json_number_value(member(inspected, "flops")) > 0);
  json_decref(inspected);
  expect_error("inspect seven.onnx --html seven.onnx", 2, "option '--html': 'seven.onnx' is the model itself; give another file");
  char path[128];
  snprintf(path, sizeof path, "%s/seven.html", work);
  outcome page = run("inspect seven.onnx --devices npu,cpu --html seven.html");
  assert_int_equal(page.status, 0);
  release(&page);
  char *written = read_whole(path);
  assert_non_null(strstr(written, "<h1>seven.onnx</h1>"));
  assert_non_null(strstr(written, "</html>"));
  free(written);
  json_t *bench = document("bench seven.onnx --runs 3 --warmup 0 --json", 0);
  static const char *const latencies[] = {"median", "p90", "p99"};
  for (size_t i = 0; i < 3; ++i) assert_true(json_real_value(member(member(bench, "latency_ms"), latencies[i])) > 0);
  assert_true(json_real_value(member(bench, "first_run_ms")) > 0);
  assert_true(json_real_value(member(bench, "load_ms")) > 0);
  assert_true(json_integer_value(member(bench, "peak_rss_bytes")) > 1000000);
  assert_int_equal(json_array_size(member(bench, "steps")), 1);
  json_decref(bench);
  outcome brief = run("bench seven.onnx --runs 3 --warmup 0 -q");
  size_t length = strlen(brief.out);
  assert_true(brief.status == 0 && length > 2 && brief.out[length - 1] == '\n' && brief.out[length - 2] != '\n');
  release(&brief);
}

/* Open sizes that are not given become 1, with a note. Names of values that are not valid file names are replaced. */
static void test_sizes_and_names(void **state) {
  (void)state;
  test_graph graph;
  test_graph_begin(&graph, clv__allocator_default(), 1);
  uint32_t symbol;
  clv_error error = {0};
  assert_ok(clv__builder_symbol(graph.builder, "N", &symbol, &error), error);
  int64_t dims[] = {CLV_DIM_SYMBOL(symbol), 4};
  test_graph_input(&graph, "a=b/c", CLV_F32, 2, dims);
  test_graph_node(&graph, "../\033[31m", "Relu", "a=b/c", "../y");
  write_model("odd.onnx", test_graph_end(&graph, "../y"));
  outcome noted = run("run odd.onnx --output-dir odd --json");
  assert_int_equal(noted.status, 0);
  assert_non_null(strstr(noted.err, "open sizes are set to 1: 'a=b/c' f32[1,4]"));
  release(&noted);
  clv_tensor y = read_npy("odd/_._y.npy");
  assert_int_equal(y.dims[0], 1);
  clv__release(clv__allocator_default(), y.data);
  expect("run odd.onnx --dim N=3 --output-dir odd3 -q", 0, "", "");
  expect("run odd.onnx --shape a=b/c=5x4 --output-dir odd5 -q", 0, "", "");
  y = read_npy("odd5/_._y.npy");
  assert_int_equal(y.dims[0], 5);
  clv__release(clv__allocator_default(), y.data);
  expect("run odd.onnx --input a=b/c=odd5/_._y.npy --output-dir again -q", 0, "", "");
  assert_same_values("again/_._y.npy", "odd5/_._y.npy"); /* the second Relu changes nothing */
  outcome plan = run("plan odd.onnx");
  assert_int_equal(plan.status, 0);
  assert_null(strchr(plan.out, '\033'));
  release(&plan);
  expect("plan odd.onnx", 0, NULL, "");
  expect("plan odd.onnx --devices npu,cpu -q", 0, NULL, "");
  expect("plan odd.onnx --devices npu,cpu --dim N=2", 0, NULL, "");
  expect("plan odd.onnx --devices npu,cpu", 0, NULL, ""); /* no note: the rows are independent, so sizes can be padded */
  outcome padded = run("plan odd.onnx --devices npu,cpu --force Relu=npu --explain -o odd.json");
  assert_non_null(strstr(padded.out, "partition 0 (open sizes padded to buckets)"));
  release(&padded);
  char path[128];
  snprintf(path, sizeof path, "%s/odd.json", work);
  json_t *written = json_load_file(path, 0, NULL);
  assert_true(json_is_true(member(json_array_get(member(written, "partitions"), 0), "bucketed")));
  json_decref(written);
  expect("plan odd.json --devices npu,cpu", 0, NULL, "");
  test_graph_begin(&graph, clv__allocator_default(), 1);
  test_graph_input(&graph, "x", CLV_F32, 2, (const int64_t[]){4, test_graph_symbol(&graph, "N")});
  test_graph_node(&graph, "sums", "Softmax", "x", "y");
  write_model("sums.onnx", test_graph_end(&graph, "y"));
  expect("plan sums.onnx --devices npu,cpu -q", 0, NULL, "");
  expect("plan sums.onnx --devices npu,cpu --dim N=2", 0, NULL, "");
  expect("plan sums.onnx --devices npu,cpu", 0, NULL,
         "device 'npu' needs fixed shapes, but sizes of the model are open, so it cannot run 1 node; set sizes with --dim and "
         "--shape, or see --explain\n");
}

#define ON_NPU "--devices npu,cpu --device-option npu:guard=1 --force Tanh=npu "

/* A plan for all sizes (--bucket) gives the same results as plans for the exact sizes. */
static void test_buckets(void **state) {
  (void)state;
  test_graph graph;
  test_graph_begin(&graph, clv__allocator_default(), 4);
  test_graph_input(&graph, "x", CLV_F32, 2, (const int64_t[]){test_graph_symbol(&graph, "N"), 4});
  test_graph_node(&graph, "tanh", "Tanh", "x", "t");
  test_graph_node(&graph, "neg", "Neg", "t", "y");
  write_model("open.onnx", test_graph_end(&graph, "y"));
  expect("run open.onnx " ON_NPU "--dim N=5 --output-dir exact -q", 0, "", "");
  outcome padded = run("run open.onnx " ON_NPU "--bucket 8 --dim N=5 --output-dir padded --verify");
  assert_int_equal(padded.status, 0);
  assert_non_null(strstr(padded.err, "are padded for devices that need fixed shapes: 'N' 5 to 8\n"));
  assert_non_null(strstr(padded.out, "all match the reference"));
  release(&padded);
  assert_same_values("padded/y.npy", "exact/y.npy");
  expect("run open.onnx " ON_NPU "--bucket 8 --input x=padded/y.npy --output-dir again -q", 0, "", "");
  expect("run open.onnx " ON_NPU "--input x=padded/y.npy --output-dir exact -q", 0, "", "");
  assert_same_values("again/y.npy", "exact/y.npy"); /* the sizes come from the input file */
  expect("plan open.onnx --devices npu,cpu --force Tanh=npu -o open.json -q", 0, NULL, "");
  expect("run open.json --dim N=5 --output-dir planned", 0, NULL,
         "open sizes are padded for devices that need fixed shapes: 'N' 5 to 64\n");
  assert_same_values("planned/y.npy", "padded/y.npy");
  outcome ones = run("bench open.json --runs 2 --warmup 0 --bucket 16");
  assert_int_equal(ones.status, 0);
  assert_non_null(strstr(ones.err, "open sizes are set to 1: 'x' f32[1,4]"));
  assert_non_null(strstr(ones.err, "'N' 1 to 16\n"));
  release(&ones);
  expect("run open.onnx --bucket 8 --dim N=5", 0, NULL,
         "option '--bucket' has no effect: no partition with open sizes is on a device that needs fixed shapes\n");
  expect_error("run open.onnx --bucket 8 --dim M=5 -q", 1, "no symbolic dimension is named 'M'");
  expect_error("run open.json --dim M=5 -q", 1, "no symbolic dimension is named 'M'");
  expect_error("run open.onnx --bucket 8 --dim N=5 --shape x=6x4", 1,
               "dimension 'N' is 5 according to 'N', but 6 according to 'x'");
  expect_error("run open.onnx --bucket 0", 2, "option '--bucket'");
  expect_error("run open.onnx " ON_NPU "--bucket 4294967295 -q", 1, "above the maximum of");
  expect("plan open.onnx --devices npu,cpu --dim N=3 -o fixed.json -q", 0, NULL, "");
  expect_error("run fixed.json --dim N=3", 2, "option '--dim' has no effect on a finished plan");
  expect_error("plan open.json --dim N=3", 2, "option '--dim' has no effect on a finished plan");
}

/* ---- cleave test ---- */

static void write_tensor(const char *name, const clv_tensor *tensor) {
  void *data;
  size_t size_bytes;
  clv_error error = {0};
  assert_ok(clv__onnx_tensor_write(tensor, "t", clv__allocator_default(), &data, &size_bytes, &error), error);
  write_bytes(name, data, size_bytes);
  clv__release(clv__allocator_default(), data);
}

/* Creates a test directory for the seven-node model. The expected output is that of a run, with `wrong` added to one element. */
static void make_case(const char *name, float wrong) {
  char path[128];
  make_folder(name);
  snprintf(path, sizeof path, "%s/test_data_set_0", name);
  make_folder(path);
  snprintf(path, sizeof path, "%s/model.onnx", name);
  write_model(path, test_seven_nodes(clv__allocator_default()));
  float x[192];
  uint64_t seed = 5;
  for (size_t i = 0; i < 192; ++i) x[i] = test_random_float(&seed);
  clv_tensor input = clv__tensor_make(CLV_F32, 4, (const int64_t[]){1, 3, 8, 8}, x);
  clv_error error = {0};
  char npy[256];
  snprintf(npy, sizeof npy, "%s/x.npy", work);
  assert_ok(clv__npy_write(clv__allocator_default(), npy, &input, &error), error);
  expect("run seven.onnx --input x=x.npy --output-dir expected -q", 0, "", "");
  clv_tensor output = read_npy("expected/y.npy");
  ((float *)output.data)[17] += wrong;
  snprintf(path, sizeof path, "%s/test_data_set_0/input_0.pb", name);
  write_tensor(path, &input);
  snprintf(path, sizeof path, "%s/test_data_set_0/output_0.pb", name);
  write_tensor(path, &output);
  clv__release(clv__allocator_default(), output.data);
}

static const char *status_of(const json_t *cases, size_t index) {
  return json_string_value(member(json_array_get(cases, index), "status"));
}

static void test_directories(void **state) {
  (void)state;
  make_folder("cases");
  make_case("cases/a", 0);
  expect("test cases", 0, "PASS        cases/a\n1 PASS, 0 FAIL, 0 UNSUPPORTED, 0 ERROR\n", "");
  json_t *placed = document("test cases --devices npu,cpu --npu-spec all --placements 8 --seed 3 --json", 0);
  assert_int_equal(json_integer_value(member(placed, "placements")), 8);
  json_decref(placed);
  expect("test cases -q --force Conv=cpu --force Erf=cpu", 0, NULL, ""); /* the model has no Erf, but --force is for all models */
  make_case("cases/b", 1);
  make_folder("cases/c");
  write_bytes("cases/c/model.onnx", "\x12\xff\xff", 3);
  make_folder("cases/d");
  make_folder("cases/d/test_data_set_0");
  test_graph graph;
  test_graph_begin(&graph, clv__allocator_default(), 1);
  test_graph_input(&graph, "x", CLV_F32, 1, (const int64_t[]){4});
  test_graph_node(&graph, "n", "NoSuchOperator", "x", "y");
  write_model("cases/d/model.onnx", test_graph_end(&graph, "y"));
  outcome text = run("test cases");
  assert_int_equal(text.status, 1);
  assert_non_null(strstr(text.out, "FAIL        cases/b: output 'y' at [0,0,2,1] is "));
  assert_non_null(strstr(text.out, "; 1 of 512 elements differ\n"));
  assert_non_null(strstr(text.out, "1 PASS, 1 FAIL, 1 UNSUPPORTED, 1 ERROR\n"));
  release(&text);
  json_t *root = document("test cases nowhere --json", 1), *cases = member(root, "cases");
  assert_int_equal(json_array_size(cases), 5);
  assert_string_equal(status_of(cases, 0), "PASS");
  assert_string_equal(status_of(cases, 1), "FAIL");
  assert_string_equal(status_of(cases, 2), "ERROR");
  assert_string_equal(status_of(cases, 3), "UNSUPPORTED");
  assert_string_equal(status_of(cases, 4), "ERROR");
  assert_int_equal(json_integer_value(member(member(root, "totals"), "ERROR")), 2);
  json_decref(root);
  expect("test cases/b --atol 2", 0, NULL, "");
  make_folder("cases/empty");
  expect("test cases/empty", 1,
         "ERROR       cases/empty: neither this folder nor one below it contains a model.onnx\n"
         "0 PASS, 0 FAIL, 0 UNSUPPORTED, 1 ERROR\n",
         "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_usage),
      cmocka_unit_test(test_targets),
      cmocka_unit_test(test_planned_devices),
      cmocka_unit_test(test_failures),
      cmocka_unit_test(test_outputs_first),
      cmocka_unit_test(test_help),
      cmocka_unit_test(test_help_words),
      cmocka_unit_test(test_other_files),
      cmocka_unit_test(test_help_width),
      cmocka_unit_test(test_run_options),
      cmocka_unit_test(test_devices_that_fail),
      cmocka_unit_test(test_golden_plan),
      cmocka_unit_test(test_explain),
      cmocka_unit_test(test_plan_json),
      cmocka_unit_test(test_run),
      cmocka_unit_test(test_dump_and_verify),
      cmocka_unit_test(test_inspect_devices_bench),
      cmocka_unit_test(test_sizes_and_names),
      cmocka_unit_test(test_buckets),
      cmocka_unit_test(test_directories),
  };
  return cmocka_run_group_tests_name("cli/command", tests, outcome_set_up, command_tear_down);
}
