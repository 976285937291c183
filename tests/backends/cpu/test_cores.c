/* Tests that the threads of a device run on the cores that its options name. OpenMP's threads are bound together with the calling
 * thread, which gets its own cores back afterwards. Also tests which options are rejected, and with which message, and the error
 * if the system creates fewer threads for a run than for compiling. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cpu/cores.h"
#include "backends/cpu/device.h"
#include "cpu_host.h"

static void refuse(const char *list, const char *node, const char *what) {
  clv_error error = {0};
  clv__cpu_cores *cores;
  assert_int_equal(clv__cpu_cores_create(clv__allocator_default(), list, node, &cores, &error), CLV_INVALID_ARGUMENT);
  assert_null(cores);
  if (strstr(error.message, what) == NULL) fail_msg("the error message '%s' does not contain '%s'", error.message, what);
}

static void what_is_not_there_is_refused(void **state) {
  (void)state;
  static const char *const lists[] = {"",  "x", "1-", "-1", "2-1", "0,", ",0", "0-1-2", "0;1", "1024", "99999999999999999999",
                                      " 0"};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i) refuse(lists[i], NULL, "expected numbers below");
  refuse("1000-1023", NULL, "this process may use only");
  refuse(NULL, "1023", "this NUMA node does not exist");
  refuse(NULL, "one", "expected the number of a NUMA node");
  refuse("0", "0", "give only one of them");
}

static int first_core(void) {
  cpu_set_t allowed;
  assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int core = 0;
  while (!CPU_ISSET(core, &allowed)) ++core;
  return core;
}

static void lists_are_read_and_written(void **state) {
  (void)state;
  clv_error error = {0};
  clv__cpu_cores *cores;
  char list[48], text[64];
  const int core = first_core();
  snprintf(list, sizeof list, "%d,%d-%d", core, core, core);
  assert_ok(clv__cpu_cores_create(clv__allocator_default(), list, NULL, &cores, &error), error);
  clv__cpu_cores_text(cores, text, sizeof text);
  snprintf(list, sizeof list, "%d", core);
  assert_string_equal(text, list);
  assert_int_equal(clv__cpu_cores_count(cores), 1);
  clv__cpu_cores_destroy(clv__allocator_default(), cores);
}

/* The number of threads in the calling thread's team whose cores are not those of `set`. */
static int count_elsewhere(int team, const cpu_set_t *set) {
  int elsewhere = 0;
#pragma omp parallel num_threads(team) reduction(+ : elsewhere)
  {
    cpu_set_t own;
    elsewhere += sched_getaffinity(0, sizeof own, &own) != 0 || !CPU_EQUAL(&own, set);
  }
  return elsewhere;
}

/* Alternates between a device that is bound to one core and a device that may use any core. Then uses the bound device with
 * more threads. In each device, all threads must run on the cores of that device. */
static void threads_go_where_they_are_told(void **state) {
  (void)state;
  clv_error error = {0};
  cpu_host bound, any;
  cpu_set_t one, all;
  char list[16];
  const int core = first_core();
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  snprintf(list, sizeof list, "%d", core);
  cpu_host_threads = 0;
  assert_ok(cpu_host_open(&bound, clv__allocator_default(), "cores", list, &error), error);
  assert_int_equal(bound.device->thread_count, 1);
  cpu_host_close(&bound);
  cpu_host_threads = 3;
  assert_ok(cpu_host_open(&bound, clv__allocator_default(), "cores", list, &error), error);
  assert_ok(cpu_host_open(&any, clv__allocator_default(), NULL, NULL, &error), error);
  assert_int_equal(count_elsewhere(3, &all), 0); /* OpenMP starts a team before the thread enters a device */
  for (int round = 0; round < 3; ++round) {
    int before = 0;
    assert_ok(clv__cpu_threads_enter(bound.device, &before, &error), error);
    assert_int_equal(count_elsewhere(3, &one), 0);
    const int inner = clv__cpu_threads_enter_one();
    clv__cpu_threads_leave_one(inner);
    assert_int_equal(count_elsewhere(3, &one), 0);
    clv__cpu_threads_leave(before);
    cpu_set_t own;
    assert_int_equal(sched_getaffinity(0, sizeof own, &own), 0);
    assert_true(CPU_EQUAL(&own, &all));
    assert_ok(clv__cpu_threads_enter(any.device, &before, &error), error);
    assert_int_equal(count_elsewhere(3, &all), 0);
    clv__cpu_threads_leave(before);
  }
  int before = 0;
  assert_ok(clv__cpu_threads_enter(bound.device, &before, &error), error);
  assert_int_equal(count_elsewhere(5, &one), 0); /* new threads inherit the cores of their caller */
  clv__cpu_threads_leave(before);
  cpu_host_close(&any);
  cpu_host_close(&bound);
}

/* Checks that the number of a NUMA node selects at least one core. Uses the first node with cores that this process may use. */
static void a_node_is_its_cores(void **state) {
  (void)state;
  clv_error error = {0};
  clv__cpu_cores *cores;
  char node[16];
  for (int n = 0; n < 64; ++n) {
    snprintf(node, sizeof node, "%d", n);
    if (clv__cpu_cores_create(clv__allocator_default(), NULL, node, &cores, &error) != CLV_OK) continue;
    assert_true(clv__cpu_cores_count(cores) >= 1);
    clv__cpu_cores_destroy(clv__allocator_default(), cores);
    return;
  }
  skip(); /* the system reports no NUMA nodes */
}

enum { SOME_USER = 54321, SKIPPED = 77 };

/* Compiles a convolution for two threads and runs it when no more threads can be created. Exits with 0 if the run fails with an
 * error that says so; without the error, OpenMP would end the process. */
static void run_child(void) {
  const struct rlimit none = {1, 1};
  const int64_t image[4] = {1, 8, 16, 16}, kernel[4] = {8, 8, 3, 3};
  clv_error error = {0};
  cpu_host cpu;
  cpu_program program;
  test_graph t;
  uint64_t seed = 1;
  clv_tensor result = {.rank = CLV_RANK_UNKNOWN};
  if (geteuid() == 0 && setuid(SOME_USER) != 0) _exit(SKIPPED);
  cpu_host_threads = 2;
  test_graph_begin(&t, clv__allocator_default(), seed);
  test_graph_input(&t, "x", CLV_F32, 4, image);
  test_graph_weight(&t, "w", 4, kernel);
  test_graph_node(&t, "c", "Conv", "x,w", "y");
  clv_graph *graph = test_graph_end(&t, "y");
  assert_ok(cpu_host_open(&cpu, clv__allocator_default(), NULL, NULL, &error), error);
  assert_ok(cpu_program_open(&program, &cpu, graph, NULL, &error), error);
  clv_tensor x = random_tensor(graph->allocator, &seed, 4, image);
  if (setrlimit(RLIMIT_NPROC, &none) != 0) _exit(SKIPPED);
  const clv_status status = cpu_program_run(&program, &x, &result, &error);
  const bool is_clear = strstr(error.message, "only 1 of the 2 threads that the model was compiled for") != NULL;
  clv__release(graph->allocator, x.data);
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  clv__graph_destroy(graph);
  _exit(status == CLV_OUT_OF_MEMORY && is_clear ? 0 : 1);
}

static void fewer_threads_than_compiled_for(void **state) {
  (void)state;
#ifndef _OPENMP
  skip();
#endif
  int status = 0;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) run_child();
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == SKIPPED) skip();
  assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      /* first: a child that is forked after OpenMP has started threads has none of them */
      cmocka_unit_test(fewer_threads_than_compiled_for),
      cmocka_unit_test(what_is_not_there_is_refused),
      cmocka_unit_test(lists_are_read_and_written),
      cmocka_unit_test(threads_go_where_they_are_told),
      cmocka_unit_test(a_node_is_its_cores),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
