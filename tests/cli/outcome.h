/* Checks the results of running the command: exit status, output, JSON documents and files. */
#ifndef CLEAVE_TESTS_CLI_OUTCOME_H
#define CLEAVE_TESTS_CLI_OUTCOME_H

#include <jansson.h>
#include <sys/stat.h>

#include "base/text.h"
#include "command.h"
#include "formats/arrays/npy.h"
#include "formats/onnx/onnx.h"
#include "models.h"

typedef struct outcome {
  int status;
  char *out, *err; /* standard output and error, on the heap */
} outcome;

static inline char *read_whole(const char *path) {
  clv__file_map map;
  clv_error error = {0};
  assert_ok(clv__file_map_open(path, &map, &error), error);
  char *text = malloc(map.size_bytes + 1);
  assert_non_null(text);
  if (map.size_bytes > 0) memcpy(text, map.data, map.size_bytes);
  text[map.size_bytes] = '\0';
  clv__file_map_close(&map);
  return text;
}

/* Runs `cleave ARGUMENTS` in the folder, through the shell. */
static inline outcome run(const char *arguments) {
  char line[8192], path[128];
  outcome result;
  assert_true(snprintf(line, sizeof line, "'%s' %s", command, arguments) < (int)sizeof line);
  result.status = shell(line);
  snprintf(path, sizeof path, "%s/out.txt", work);
  result.out = read_whole(path);
  snprintf(path, sizeof path, "%s/err.txt", work);
  result.err = read_whole(path);
  return result;
}

static inline void release(outcome *result) {
  free(result->out);
  free(result->err);
}

static inline void expect(const char *arguments, int status, const char *prints, const char *complains) {
  outcome result = run(arguments);
  bool fine = result.status == status && (prints == NULL || strcmp(result.out, prints) == 0) &&
              (complains == NULL || strcmp(result.err, complains) == 0);
  if (!fine)
    fail_msg("cleave %s: status %d, expected %d\nstandard error:\n%s\nexpected:\n%s\nstandard output:\n%s\nexpected:\n%s",
             arguments, result.status, status, result.err, complains == NULL ? "(anything)" : complains, result.out,
             prints == NULL ? "(anything)" : prints);
  release(&result);
}

/* Checks the exit status, and that standard error is a single line that begins with "cleave: " and contains `part`. */
static inline void expect_error(const char *arguments, int status, const char *part) {
  outcome result = run(arguments);
  size_t length = strlen(result.err);
  bool one_line = length > 0 && strchr(result.err, '\n') == result.err + length - 1;
  if (result.status != status || !one_line || strstr(result.err, part) == NULL || strncmp(result.err, "cleave: ", 8) != 0) {
    fail_msg("cleave %s: expected status %d and one line 'cleave: ...' with '%s'; status %d, error:\n%s\noutput:\n%s", arguments,
             status, part, result.status, result.err, result.out);
  }
  release(&result);
}

/* Returns the document that a command with --json prints. Checks the exit status. */
static inline json_t *document(const char *arguments, int status) {
  outcome result = run(arguments);
  json_error_t where;
  json_t *root = json_loads(result.out, 0, &where);
  if (result.status != status || root == NULL)
    fail_msg("cleave %s: expected status %d and a JSON document; status %d, JSON error '%s', standard error:\n%s", arguments,
             status, result.status, root == NULL ? where.text : "", result.err);
  release(&result);
  return root;
}

static inline json_t *member(const json_t *object, const char *name) {
  json_t *found = json_object_get(object, name);
  if (found == NULL) fail_msg("the JSON output has no key '%s'", name);
  return found;
}

static inline void write_bytes(const char *name, const void *data, size_t size_bytes) {
  char path[256];
  clv_error error = {0};
  snprintf(path, sizeof path, "%s/%s", work, name);
  assert_ok(clv__file_write(path, data, size_bytes, &error), error);
}

static inline void write_text(const char *name, const char *text) {
  write_bytes(name, text, strlen(text));
}

static inline void write_model(const char *name, clv_graph *graph) {
  void *data;
  size_t size_bytes;
  clv_error error = {0};
  assert_ok(clv__onnx_write(graph->whole, SIZE_MAX, clv__allocator_default(), &data, &size_bytes, &error), error);
  write_bytes(name, data, size_bytes);
  clv__release(clv__allocator_default(), data);
  clv__graph_destroy(graph);
}

static inline void make_folder(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", work, name);
  assert_int_equal(mkdir(path, 0777), 0);
}

static inline clv_tensor read_npy(const char *name) {
  char path[256];
  clv_tensor tensor;
  clv_error error = {0};
  snprintf(path, sizeof path, "%s/%s", work, name);
  assert_ok(clv__npy_read(clv__allocator_default(), path, &tensor, &error), error);
  return tensor;
}

static inline void assert_same_values(const char *a_name, const char *b_name) {
  clv_tensor a = read_npy(a_name), b = read_npy(b_name);
  size_t count;
  assert_true(clv__tensor_same_type(&a, &b));
  assert_true(clv__tensor_count(&a, &count));
  for (size_t i = 0; i < count; ++i) assert_float_equal(clv__tensor_get(&a, i), clv__tensor_get(&b, i), 1e-5);
  clv__release(clv__allocator_default(), a.data);
  clv__release(clv__allocator_default(), b.data);
}

/* Creates the folder, and in it a model of seven nodes, seven.onnx. */
static inline int outcome_set_up(void **state) {
  (void)state;
  if (!command_set_up()) return -1;
  write_model("seven.onnx", test_seven_nodes(clv__allocator_default()));
  return 0;
}

#endif
