/* Tests `cleave cache` as users run it: listing, verifying and pruning. */
#include <jansson.h>

#include "command.h"
#include "formats/onnx/onnx.h"
#include "models.h"

/* Runs `cleave ARGUMENTS`. Checks the exit status, and that standard error (if `status` is 2) or standard output (otherwise)
 * contains `part`. */
static void expect(const char *arguments, int status, const char *part) {
  char line[8192];
  snprintf(line, sizeof line, "'%s' %s", command, arguments);
  int is = shell(line);
  if (is != status || strstr(status == 2 ? err : out, part) == NULL)
    fail_msg("cleave %s: expected status %d and '%s'; status %d, standard error:\n%s\nstandard output:\n%s", arguments, status,
             part, is, err, out);
}

static json_t *document(const char *arguments, int status) {
  expect(arguments, status, "{");
  json_t *root = json_loads(out, 0, NULL);
  assert_non_null(root);
  return root;
}

static json_int_t number(const json_t *root, const char *name) {
  const json_t *found = json_object_get(root, name);
  if (found == NULL) fail_msg("the JSON output has no key '%s':\n%s", name, out);
  return json_is_array(found) ? (json_int_t)json_array_size(found) : json_integer_value(found);
}

static int set_up(void **state) {
  (void)state;
  if (!command_set_up()) return -1;
  clv_graph *graph = test_seven_nodes(clv__allocator_default());
  void *data;
  size_t size_bytes;
  char path[128];
  clv_error error = {0};
  snprintf(path, sizeof path, "%s/seven.onnx", work);
  assert_ok(clv__onnx_write(graph->whole, SIZE_MAX, clv__allocator_default(), &data, &size_bytes, &error), error);
  assert_ok(clv__file_write(path, data, size_bytes, &error), error);
  clv__release(clv__allocator_default(), data);
  clv__graph_destroy(graph);
  return 0;
}

#define RUN "run seven.onnx --devices npu,cpu --strategy contiguous --force Concat=cpu -v "

static void life(void **state) {
  (void)state;
  expect("cache ls", 0, "0 executables, 0 B, in kept (which does not exist)");
  expect("cache verify", 0, "0 damaged");
  expect("cache prune --all", 0, "0 files removed");
  expect(RUN, 0, ""); /* two partitions on the NPU, and one on the CPU, whose backend cannot save executables */
  assert_non_null(strstr(err, "compiled and kept"));
  assert_non_null(strstr(err, "its backend cannot save executables"));
  expect(RUN, 0, "");
  assert_non_null(strstr(err, "loaded from disk"));
  assert_null(strstr(err, "compiled and kept"));
  expect("cache ls", 0, "2 executables");
  assert_non_null(strstr(out, "vnpu 2"));
  assert_non_null(strstr(out, "MatMul"));
  expect("cache ls -q", 0, "device");
  assert_null(strstr(out, "executables"));
  json_t *root = document("cache ls --json", 0);
  assert_int_equal(number(root, "entries"), 2);
  assert_int_equal(number(root, "problems"), 0);
  const json_t *first = json_array_get(json_object_get(root, "entries"), 0);
  assert_string_equal(json_string_value(json_object_get(first, "backend")), "vnpu");
  assert_true(number(first, "size_bytes") > 300 && number(first, "node_count") > 0);
  json_decref(root);
  /* Damage one byte of a file. */
  assert_int_equal(shell("for f in kept/*/*.clvx; do printf x | dd of=$f bs=1 seek=280 conv=notrunc; break; done"), 0);
  expect("cache verify", 1, "damaged: the checksum does not match");
  root = document("cache verify --json", 1);
  assert_int_equal(number(root, "whole"), 1);
  assert_int_equal(number(root, "bad"), 1);
  json_decref(root);
  expect("cache verify -q", 1, "damaged");
  expect("cache prune", 0, "1 file removed");
  assert_non_null(strstr(out, "(1 damaged); 1 left"));
  expect("cache verify", 0, "1 executable intact, 0 damaged");
  /* A folder in the place of a file. */
  assert_int_equal(shell("for f in kept/*/*.clvx; do mkdir $(echo $f | sed 's/......clvx/0badd.clvx/'); break; done"), 0);
  expect("cache verify", 1, "not a regular file");
  expect("cache prune", 0, "1 file removed");
  expect("cache verify", 0, "1 executable intact, 0 damaged");
  expect("cache prune --max-age 1h", 0, "0 files removed");
  assert_int_equal(shell("touch -d '3 hours ago' kept/*/*.clvx"), 0);
  expect("cache prune --max-age 4h --max-size 1M", 0, "0 files removed");
  expect("cache prune --max-age 2h", 0, "1 file removed");
  expect(RUN, 0, "");
  root = document("cache prune --max-size 10 --json", 0);
  assert_int_equal(number(root, "removed"), 2);
  assert_int_equal(number(root, "kept"), 0);
  json_decref(root);
  expect(RUN "--cache-dir other", 0, "");
  expect("cache ls", 0, "0 executables");
  expect("cache ls --cache-dir other", 0, "2 executables");
  expect("cache prune --all -q --cache-dir other", 0, "");
  assert_string_equal(out, "");
  expect("cache ls --cache-dir=other", 0, "0 executables, 0 B, in other\n");
}

static void mistakes(void **state) {
  (void)state;
  expect("cache", 2, "ls|verify|prune is missing");
  expect("cache list", 2, "'list' is not one of ls, verify, prune");
  expect("cache ls --all", 2, "'--all' belongs to 'cleave cache prune'");
  expect("cache prune --all --max-size 5", 2, "'--all' removes everything");
  expect("cache prune --max-size 5x", 2, "'5x' is not a size");
  expect("cache prune --max-size 99999999999T", 2, "is not a size");
  expect("cache prune --max-age 5", 2, "'5' is not an age");
  expect("cache prune --max-age 0d", 2, "'0d' is not an age");
  expect("cache ls --cache-dir ''", 2, "no cache directory is set");
  expect("cache ls --devices cpu", 2, "'cache' has no option '--devices'");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(life), cmocka_unit_test(mistakes)};
  return cmocka_run_group_tests_name("cli/cache", tests, set_up, command_tear_down);
}
