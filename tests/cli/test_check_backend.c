/* Tests `cleave check-backend` as users run it: the table, the JSON document, and wrong usage. */
#include <jansson.h>

#include "command.h"

/* Runs `cleave check-backend ARGUMENTS` and returns its exit status. Standard output and standard error are then in `out`. */
static int run(const char *arguments) {
  char line[8192];
  snprintf(line, sizeof line, "'%s' check-backend %s 2>&1 </dev/null", command, arguments);
  FILE *pipe = popen(line, "r");
  assert_non_null(pipe);
  out[fread(out, 1, sizeof out - 1, pipe)] = '\0';
  int status = pclose(pipe);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void expect(const char *arguments, int status, const char *part) {
  int is = run(arguments);
  if (is != status || strstr(out, part) == NULL)
    fail_msg("cleave check-backend %s: expected status %d and '%s'; status %d, output:\n%s", arguments, status, part, is, out);
}

static void test_table(void **state) {
  (void)state;
  expect("cpu --section life --section planning", 0, "section   passed  failed  skipped");
  assert_non_null(strstr(out, " 0 failed, "));
  assert_null(strstr(out, "operators"));
  assert_null(strstr(out, "SKIP"));
  expect("cpu --section planning -v", 0, "the backend lacks the optional slot 'node_seconds'");
  expect("npu --npu-spec all --section errors -q", 0, "passed, 0 failed");
  assert_null(strstr(out, "what it checks"));
}

static void test_json(void **state) {
  (void)state;
  expect("npu --section life --section errors --seed 7 --json", 0, "{");
  json_t *root = json_loads(out, 0, NULL);
  assert_non_null(root);
  assert_string_equal(json_string_value(json_object_get(root, "backend")), "vnpu");
  assert_int_equal(json_integer_value(json_object_get(root, "seed")), 7);
  assert_int_equal(json_integer_value(json_object_get(root, "failed")), 0);
  const json_t *sections = json_object_get(root, "sections");
  assert_int_equal(json_array_size(sections), 2);
  json_int_t passed = 0;
  for (size_t i = 0; i < 2; ++i) {
    const json_t *section = json_array_get(sections, i);
    passed += json_integer_value(json_object_get(section, "passed"));
    assert_int_equal(json_array_size(json_object_get(section, "failures")), 0);
  }
  assert_int_equal(json_integer_value(json_object_get(root, "passed")), passed);
  json_decref(root);
}

/* Two checks with the same seed print the same output, so that a failure can be repeated. */
static void test_seed(void **state) {
  (void)state;
  char first[sizeof out];
  assert_int_equal(run("npu --section operators --every 40 --seed 3 -q"), 0);
  strcpy(first, out);
  assert_int_equal(run("npu --section operators --every 40 --seed 3 -q"), 0);
  assert_string_equal(out, first);
}

static void test_refused(void **state) {
  (void)state;
  expect("", 2, "LIB.so|DEVICE is missing");
  expect("nobody", 2, "nobody");
  expect("cpu --section nonsense", 2, "boundaries");
  expect("cpu,npu", 2, "one device");
  expect("none.so", 2, "./none.so");
  expect("./none.so", 2, "none.so");
  expect("cpu --device-option cpu:nonsense=1", 2, "nonsense");
  expect("cpu --devices npu", 2, "--devices");
}

static int set_up(void **state) {
  (void)state;
  if (!command_find()) return -1;
  return setenv("CLEAVE_CACHE_DIR", "", 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_table),
      cmocka_unit_test(test_json),
      cmocka_unit_test(test_seed),
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
