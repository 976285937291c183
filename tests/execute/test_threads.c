/* Several threads share a graph and devices; each has its own plans and sessions. Also run this test under ThreadSanitizer. */
#include "machine.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 4 };

typedef struct job {
  const machine *m;
  const clv_graph *graph;
  const char *pin; /* the nodes pinned to the CPU */
  const clv_tensor *input, *expected;
  clv_status status;
  clv_error error;
} job;

static clv_status one_round(job *j) {
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  clv_assignment pin = {j->pin, "cpu"};
  options.pins = &pin;
  options.pin_count = 1;
  clv_plan *plan = NULL;
  clv_session *session = NULL;
  clv_tensor output = {0};
  clv_status status;
  CLV__TRY_GOTO(clv_plan_make(j->graph, j->m->devices, &options, &plan, &j->error));
  CLV__TRY_GOTO(clv_session_create(plan, NULL, &session, &j->error));
  for (int run = 0; run < 3; ++run) {
    output.data = NULL;
    CLV__TRY_GOTO(clv_session_run(session, j->input, 1, &output, 1, &j->error));
    for (size_t i = 0; i < 512; ++i) {
      if (fabs(clv__tensor_get(&output, i) - clv__tensor_get(j->expected, i)) < 1e-5) continue;
      CLV__TRY_GOTO(clv__error_set(&j->error, CLV_INTERNAL_ERROR, "element %zu is wrong", i));
    }
  }
cleanup:
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  return status;
}

static void *work(void *argument) {
  job *j = argument;
  for (int round = 0; round < ROUNDS && j->status == CLV_OK; ++round) j->status = one_round(j);
  return NULL;
}

static void sessions_in_parallel(void **state) {
  (void)state;
  static const char *const specs[] = {"all"}, *const pins[THREADS] = {"concat", "relu*", "conv", "concat"};
  machine m;
  machine_open(&m, "npu,cpu", 1, specs);
  clv_graph *graph = test_seven_nodes(&m.counting.allocator);
  float data[3 * 8 * 8];
  for (size_t i = 0; i < sizeof data / sizeof *data; ++i) data[i] = (float)i / 192;
  clv_tensor input = f32(4, DIMS(1, 3, 8, 8), data), expected = {0};
  clv_error error = {0};
  assert_ok(clv__graph_evaluate(graph, &input, NULL, &expected, NULL, NULL, graph->allocator, &error), error);
  pthread_t threads[THREADS];
  job jobs[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    jobs[i] = (job){.m = &m, .graph = graph, .pin = pins[i], .input = &input, .expected = &expected};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; ++i) assert_ok(jobs[i].status, jobs[i].error);
  clv__release(graph->allocator, expected.data);
  clv_graph_destroy(graph);
  machine_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sessions_in_parallel)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
