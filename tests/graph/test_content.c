/* Content hashes of constants: they depend only on the bytes, are cached for the graph's own constants, and may be requested by
 * several threads. */
#include "models.h"
#include "support.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "graph/content.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static clv_graph *build(const clv_allocator *allocator) {
  test_graph g;
  test_graph_begin(&g, allocator, 3);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(4, 8));
  test_graph_weight(&g, "w", 2, DIMS(8, 8));
  g.seed = 3;
  test_graph_weight(&g, "same", 1, DIMS(64)); /* same seed and element count as w, but other dims */
  test_graph_weight(&g, "large", 2, DIMS(8, 200000));
  test_graph_ints(&g, "ints", 2, DIMS(5, 6));
  test_graph_node(&g, "a", "MatMul", "x,w", "y");
  return test_graph_end(&g, "y");
}

/* Hashes the bytes of the four constants of the graph from build(). */
static clv_status hashes_of(const clv_graph *graph, const clv_tensor *types, clv__hash hashes[4], clv_error *error) {
  static const char *const names[] = {"w", "same", "large", "ints"};
  clv_value_id values[4];
  for (int i = 0; i < 4; ++i) values[i] = clv__graph_find_value(graph, names[i]);
  return clv__graph_content(graph, types, values, 4, hashes, error);
}

static void of_bytes(void **state) {
  (void)state;
  test_allocator counting;
  test_allocator_init(&counting);
  clv_graph *graph = build(&counting.allocator);
  clv__hash first[4], again[4];
  clv_error error = {0};
  assert_ok(hashes_of(graph, NULL, first, &error), error);
  static const char *const names[] = {"w", "same", "large", "ints"};
  for (int i = 0; i < 4; ++i) {
    const clv_tensor *type = &graph->values[clv__graph_find_value(graph, names[i])].type;
    size_t size_bytes;
    clv__hash expected;
    assert_true(clv__tensor_size_bytes(type, &size_bytes));
    clv__hash_bytes(type->data, size_bytes, &expected);
    assert_memory_equal(first[i].bytes, expected.bytes, sizeof expected.bytes);
  }
  assert_ok(hashes_of(graph, NULL, again, &error), error);
  assert_memory_equal(first, again, sizeof first);
  clv__graph_destroy(graph);
  assert_int_equal(counting.live, 0);
}

/* If a plan folds a value to other data, the hash is that of these data, not the cached hash of the graph's own constant. The
 * new hash is not cached, because the next plan may fold other data into the same memory. */
static void beside_the_graph(void **state) {
  (void)state;
  test_allocator counting;
  test_allocator_init(&counting);
  clv_graph *graph = build(&counting.allocator);
  clv__hash own[4], other[4], third[4], expected;
  clv_error error = {0};
  assert_ok(hashes_of(graph, NULL, own, &error), error);
  clv_tensor *types = malloc(graph->value_count * sizeof *types);
  for (uint32_t v = 0; v < graph->value_count; ++v) types[v] = graph->values[v].type;
  float folded[64] = {1, 2, 3};
  types[clv__graph_find_value(graph, "w")].data = folded;
  assert_ok(hashes_of(graph, types, other, &error), error);
  clv__hash_bytes(folded, sizeof folded, &expected);
  assert_memory_equal(other[0].bytes, expected.bytes, sizeof expected.bytes);
  assert_memory_equal(&other[1], &own[1], 3 * sizeof *own);
  folded[5] = 9; /* as if the next plan folded other data at the same address */
  assert_ok(hashes_of(graph, types, third, &error), error);
  assert_memory_not_equal(third[0].bytes, other[0].bytes, sizeof expected.bytes);
  assert_ok(hashes_of(graph, NULL, third, &error), error);
  assert_memory_equal(third, own, sizeof own);
  free(types);
  clv__graph_destroy(graph);
  assert_int_equal(counting.live, 0);
}

static void strings(void **state) {
  (void)state;
  const clv_string abc[] = {{"ab", 2}, {"c", 1}}, other[] = {{"a", 1}, {"bc", 2}}, copy[] = {{"ab", 2}, {"c", 1}};
  clv_tensor a = clv__tensor_make(CLV_STRING, 1, DIMS(2), (void *)abc), b = a, c = a;
  b.data = (void *)other;
  c.data = (void *)copy;
  assert_false(clv__content_equal(&a, &b));
  assert_true(clv__content_equal(&a, &c));
}

static void *ask(void *argument) {
  clv__hash *hashes = malloc(4 * sizeof *hashes);
  clv_error error = {0};
  for (int i = 0; i < 5; ++i) {
    if (hashes_of(argument, NULL, hashes, &error) != CLV_OK) break;
  }
  return hashes;
}

static void several_threads(void **state) {
  (void)state;
  clv_graph *graph = build(clv__allocator_default());
  pthread_t threads[4];
  void *hashes[4];
  for (int i = 0; i < 4; ++i) assert_int_equal(pthread_create(&threads[i], NULL, ask, graph), 0);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], &hashes[i]);
  for (int i = 1; i < 4; ++i) assert_memory_equal(hashes[0], hashes[i], 4 * sizeof(clv__hash));
  for (int i = 0; i < 4; ++i) free(hashes[i]);
  clv__graph_destroy(graph);
}

static void no_memory(void **state) {
  (void)state;
  for (size_t fail_at = 1;; ++fail_at) {
    test_allocator counting;
    test_allocator_init(&counting);
    clv_graph *graph = build(&counting.allocator);
    clv__hash hashes[4];
    clv_error error = {0};
    counting.fail_at = counting.calls + fail_at;
    clv_status status = hashes_of(graph, NULL, hashes, &error);
    bool done = counting.calls < counting.fail_at;
    assert_true(status == (done ? CLV_OK : CLV_OUT_OF_MEMORY));
    counting.fail_at = 0;
    clv__graph_destroy(graph);
    assert_int_equal(counting.live, 0);
    if (done) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(of_bytes), cmocka_unit_test(beside_the_graph), cmocka_unit_test(strings),
                                     cmocka_unit_test(several_threads), cmocka_unit_test(no_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
