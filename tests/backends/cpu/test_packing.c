/* Tests on which threads constants are packed: small constants on the calling thread, which must start no others; large ones on
 * all threads of the device. In both cases, the results must match the reference evaluator's. */
#include <dirent.h>

#include "cpu_host.h"

enum { THREADS = 3 };

static int count_threads(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/task");
  assert_non_null(folder);
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) count += entry->d_name[0] != '.';
  (void)closedir(folder);
  return count;
}

/* Two convolutions and a matrix product. */
static clv_graph *make(uint64_t seed, int64_t channels, int64_t columns) {
  test_graph t;
  const int64_t image[4] = {2, channels, 9, 9}, kernel[4] = {channels, channels, 3, 3};
  const int64_t pads[4] = {1, 1, 1, 1}, shape[2] = {2, channels * 49}, matrix[2] = {channels * 49, columns};
  test_graph_begin(&t, clv__allocator_default(), seed);
  test_graph_input(&t, "x", CLV_F32, 4, image);
  test_graph_weight(&t, "w", 4, kernel);
  test_graph_weight(&t, "v", 4, kernel);
  test_graph_weight(&t, "m", 2, matrix);
  test_graph_ints(&t, "shape", 2, shape);
  test_graph_node_ints(&t, "first", "Conv", "x,w", "a", "pads", true, 4, pads);
  test_graph_node(&t, "second", "Conv", "a,v", "b");
  test_graph_node(&t, "flat", "Reshape", "b,shape", "c");
  test_graph_node(&t, "product", "MatMul", "c,m", "d");
  return test_graph_end(&t, "d");
}

typedef struct compiled {
  cpu_host cpu;
  cpu_program program;
  clv_graph *graph;
  int started; /* number of threads that compile() started */
} compiled;

static void compile(compiled *made, uint64_t seed, int64_t channels, int64_t columns) {
  clv_error error = {0};
  cpu_host_threads = THREADS;
  made->graph = make(seed, channels, columns);
  assert_ok(cpu_host_open(&made->cpu, clv__allocator_default(), NULL, NULL, &error), error);
  const int before = count_threads();
  assert_ok(cpu_program_open(&made->program, &made->cpu, made->graph, NULL, &error), error);
  made->started = count_threads() - before;
}

static void check_and_close(compiled *made, uint64_t seed) {
  clv_error error = {0};
  clv_graph *graph = made->graph;
  clv_tensor x = random_tensor(graph->allocator, &seed, 4, graph->values[graph->inputs[0]].type.dims);
  clv_tensor got = {.rank = CLV_RANK_UNKNOWN}, wanted = {0};
  assert_ok(cpu_program_run(&made->program, &x, &got, &error), error);
  assert_ok(clv__graph_evaluate(graph, &x, NULL, &wanted, NULL, NULL, graph->allocator, &error), error);
  assert_tensor(&got, &wanted, "constants just packed");
  clv__release(graph->allocator, got.data);
  clv__release(graph->allocator, wanted.data);
  clv__release(graph->allocator, x.data);
  cpu_program_close(&made->program);
  cpu_host_close(&made->cpu);
  clv__graph_destroy(graph);
}

/* The test counts the threads of the process, and OpenMP keeps the threads that it has started. So the small models are
 * compiled before the large one, and nothing runs before the last is compiled. */
static void test_threads(void **state) {
  (void)state;
  static const int64_t channels[] = {3, 17, 64, 384}, columns[] = {1, 31, 47, 64};
  enum { COUNT = 4, LARGE = COUNT - 1 };
  compiled made[COUNT];
#ifdef _OPENMP
  const int most = THREADS - 1;
#else
  const int most = 0;
#endif
  for (int i = 0; i < COUNT; ++i) {
    compile(&made[i], (uint64_t)i + 1, channels[i], columns[i]);
    assert_int_equal(made[i].started, i == LARGE ? most : 0);
  }
  for (int i = 0; i < COUNT; ++i) check_and_close(&made[i], (uint64_t)i + 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
