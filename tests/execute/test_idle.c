/* After a run no thread waits in a busy loop: the process uses no CPU time. */
#include <time.h>

#include "machine.h"

enum { ROWS = 256, WINDOWS = 10 };

static double cpu_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void sleep_ms(long ms) {
  struct timespec left = {ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&left, &left) != 0) continue;
}

/* Makes two matrix products, large enough to use all threads of the CPU. With two devices, each runs one of them. */
static clv_graph *two_products(const clv_allocator *allocator) {
  test_graph g;
  test_graph_begin(&g, allocator, 5);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(ROWS, ROWS));
  test_graph_weight(&g, "w", 2, DIMS(ROWS, ROWS));
  test_graph_node(&g, "first", "MatMul", "x,w", "h");
  test_graph_node(&g, "second", "MatMul", "h,w", "y");
  return test_graph_end(&g, "y");
}

static void idle_after(const char *devices, const char *pins) {
  machine m;
  clv_error error = {0};
  const char *spec = "all";
  machine_open(&m, devices, 1, &spec);
  clv_graph *graph = two_products(&m.counting.allocator);
  clv_plan *plan = machine_plan(&m, graph, pins, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *session = machine_session(plan);
  static float data[ROWS * ROWS];
  uint64_t seed = 6;
  for (int i = 0; i < ROWS * ROWS; ++i) data[i] = test_random_float(&seed);
  clv_tensor input = f32(2, DIMS(ROWS, ROWS), data), output = {0};
  for (int i = 0; i < 20; ++i) assert_ok(clv_session_run(session, &input, 1, &output, 1, &error), error);
  double least = 1;
  for (int i = 0; i < WINDOWS && least > 0.01; ++i) { /* one idle window suffices: threads may fall asleep late */
    sleep_ms(100);
    double begin = cpu_s();
    sleep_ms(200);
    least = fmin(least, (cpu_s() - begin) / 0.2);
  }
  if (least > 0.01) fail_msg("%s: an idle process uses %.1f %% of a core, at most 1 %% is allowed", devices, least * 100);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

static void the_cpu_sleeps(void **state) {
  (void)state;
  idle_after("cpu", NULL);
}

static void other_devices_sleep(void **state) {
  (void)state;
  idle_after("npu,cpu", "first=npu,second=cpu");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_cpu_sleeps), cmocka_unit_test(other_devices_sleep)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
