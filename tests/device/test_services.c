/* Tests services of the host that backends call: making a view of a part of a graph, and storing results for later
 * processes. */
#include <string.h>

#include "../cache/folder.h"
#include "device/device.h"
#include "machine.h"

static clv_context *open_context(const char *cache) {
  clv_error error = {0};
  clv_context *context;
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  options.cache_directory = cache;
  assert_ok(clv_context_create(&options, &context, &error), error);
  return context;
}

/* y = (x + w) * x; z = relu(y); out = z + x */
static clv_graph *make_graph(void) {
  test_graph g;
  test_graph_begin(&g, clv__allocator_default(), 7);
  test_graph_input(&g, "x", CLV_F32, 1, (const int64_t[]){4});
  test_graph_weight(&g, "w", 1, (const int64_t[]){4});
  test_graph_node(&g, "first", "Add", "x,w", "a");
  test_graph_node(&g, "second", "Mul", "a,x", "y");
  test_graph_node(&g, "third", "Relu", "y", "z");
  test_graph_node(&g, "fourth", "Add", "z,x", "out");
  return test_graph_end(&g, "out");
}

static void parts(void **state) {
  (void)state;
  clv_context *context = open_context("");
  const clv_host *host = clv__context_host(context);
  clv_graph *graph = make_graph();
  clv_error error = {0};
  clv_graph_view *part, *inner;
  assert_ok(host->graph_part(host->self, graph->whole, (uint32_t[]){0, 2}, 2, &part, &error), error);
  assert_int_equal(host->graph_node_count(part), 2);
  assert_int_equal(host->graph_input_count(part), 2); /* x and y; the constant w is not an input */
  assert_int_equal(host->graph_output_count(part), 2);
  clv_node_info node = {.struct_size = sizeof node};
  host->graph_node(part, 1, &node);
  assert_string_equal(node.op, "Relu");
  assert_ok(host->graph_part(host->self, part, (uint32_t[]){1}, 1, &inner, &error), error);
  host->graph_node(inner, 0, &node);
  assert_string_equal(node.op, "Relu");
  host->graph_part_close(host->self, inner);
  host->graph_part_close(host->self, part);
  host->graph_part_close(host->self, NULL);
  static const uint32_t wrong[][2] = {{1, 0}, {2, 2}, {0, 4}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    assert_int_equal(host->graph_part(host->self, graph->whole, wrong[i], 2, &part, &error), CLV_INVALID_ARGUMENT);
    assert_null(part);
  }
  clv_graph_destroy(graph);
  clv_context_destroy(context);
}

static void expect_remembered(const clv_host *host, const char *backend, const char *key, const char *expected) {
  clv_error error = {0};
  void *data;
  size_t size_bytes;
  clv_status status = host->recall(host->self, backend, key, &data, &size_bytes, &error);
  if (expected == NULL) {
    assert_int_equal(status, CLV_NOT_FOUND);
    assert_null(data);
    assert_true(error.message[0] != '\0');
    return;
  }
  assert_ok(status, error);
  assert_int_equal(size_bytes, strlen(expected));
  assert_memory_equal(data, expected, size_bytes);
  clv__release(host->allocator, data);
}

static void memory(void **state) {
  (void)state;
  folder f;
  folder_make(&f);
  clv_error error = {0};
  clv_context *context = open_context(f.path);
  const clv_host *host = clv__context_host(context);
  expect_remembered(host, "some", "CPU 1.0", NULL);
  assert_ok(host->remember(host->self, "some", "CPU 1.0", "first", 5, &error), error);
  assert_ok(host->remember(host->self, "some", "CPU 2.0", "other", 5, &error), error);
  assert_ok(host->remember(host->self, "some", "", "", 0, &error), error);
  expect_remembered(host, "some", "CPU 1.0", "first");
  assert_ok(host->remember(host->self, "some", "CPU 1.0", "second one", 10, &error), error);
  clv_context_destroy(context);
  context = open_context(f.path);
  host = clv__context_host(context);
  expect_remembered(host, "some", "CPU 1.0", "second one");
  expect_remembered(host, "some", "CPU 2.0", "other");
  expect_remembered(host, "some", "", "");
  expect_remembered(host, "somebody", "CPU 1.0", NULL);
  clv_context_destroy(context);
  folder_remove(f.path);
}

static void no_memory(void **state) {
  (void)state;
  clv_error error = {0};
  clv_context *context = open_context("");
  const clv_host *host = clv__context_host(context);
  expect_remembered(host, "some", "CPU 1.0", NULL);
  assert_int_equal(host->remember(host->self, "some", "CPU 1.0", "first", 5, &error), CLV_NOT_FOUND);
  assert_non_null(strstr(error.message, "no cache directory"));
  clv_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(parts), cmocka_unit_test(memory), cmocka_unit_test(no_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
