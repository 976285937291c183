/* Concurrent runs: several requests in flight; runs that are started and awaited, cancelled, limited in time, or observed by
 * callbacks. Also run this test under ThreadSanitizer. */
#include <pthread.h>
#include <stdatomic.h>

#include "machine.h"

#define SLOW(name, us)                                                                                                 \
  "{\"name\": \"" name "\", \"static_shapes\": false, \"operators\": \"all\", \"speed\": {\"launch_overhead_us\": " us \
  ", \"copy_latency_us\": 20}}"

enum { ELEMENTS = 32, MOST_OUTPUTS = 16, RUNS = 40 };

/* A graph with two [4, 8] inputs, its plan on three devices, and a session. */
typedef struct scene {
  machine m;
  clv_graph *graph;
  clv_plan *plan;
  clv_session *session;
} scene;

static void begin(scene *s, uint64_t seed, clv_session_options options) {
  static const char *const specs[] = {SLOW("one", "100"), SLOW("two", "50")};
  machine_open(&s->m, "one,two,cpu", 2, specs);
  s->graph = test_random_graph(&s->m.counting.allocator, seed, 20);
  clv_assignment pins[20];
  for (clv_node_id n = 0; n < s->graph->node_count; ++n) {
    pins[n] = (clv_assignment){s->graph->nodes[n].name, clv_devices_name(s->m.devices, (uint32_t)(test_random(&seed) % 3))};
  }
  clv_plan_options plan = CLV_PLAN_OPTIONS_INIT;
  plan.strategy = "contiguous";
  plan.pins = pins;
  plan.pin_count = s->graph->node_count;
  clv_error error = {0};
  assert_ok(clv_plan_make(s->graph, s->m.devices, &plan, &s->plan, &error), error);
  assert_ok(clv_session_create(s->plan, &options, &s->session, &error), error);
}

static void end(scene *s) {
  clv_session_destroy(s->session);
  clv_plan_destroy(s->plan);
  clv_graph_destroy(s->graph);
  machine_close(&s->m);
}

/* The inputs, outputs and expected outputs of one run. */
typedef struct job {
  float a[ELEMENTS], b[ELEMENTS];
  clv_tensor inputs[2], outputs[MOST_OUTPUTS], expected[MOST_OUTPUTS];
  clv_run *run;
} job;

static void make_job(const scene *s, job *j, uint64_t seed) {
  clv_error error = {0};
  memset(j, 0, sizeof *j);
  for (size_t i = 0; i < ELEMENTS; ++i) {
    j->a[i] = test_random_float(&seed);
    j->b[i] = test_random_float(&seed);
  }
  j->inputs[0] = f32(2, DIMS(4, 8), j->a);
  j->inputs[1] = f32(2, DIMS(4, 8), j->b);
  const clv_allocator *allocator = s->graph->allocator;
  assert_true(s->graph->output_count <= MOST_OUTPUTS);
  assert_ok(clv__graph_evaluate(s->graph, j->inputs, NULL, j->expected, NULL, NULL, allocator, &error), error);
  for (uint32_t i = 0; i < s->graph->output_count; ++i) {
    size_t size_bytes;
    assert_true(clv__tensor_size_bytes(&j->expected[i], &size_bytes));
    j->outputs[i] = j->expected[i];
    j->outputs[i].data = calloc(1, size_bytes + 1);
  }
}

static void check_job(const scene *s, const job *j) {
  for (uint32_t i = 0; i < s->graph->output_count; ++i) assert_same_values(&j->outputs[i], &j->expected[i], "a run");
}

static void finish_job(const scene *s, job *j) {
  for (uint32_t i = 0; i < s->graph->output_count; ++i) {
    clv__release(s->graph->allocator, j->expected[i].data);
    free(j->outputs[i].data);
  }
}

static clv_session_options in_flight(uint32_t count) {
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  options.in_flight = count;
  return options;
}

/* ---- Several runs at once ---- */

static void started_runs(void **state) {
  (void)state;
  for (uint32_t count = 1; count <= CLV_MAX_IN_FLIGHT; ++count) {
    scene s;
    begin(&s, 3 + count, in_flight(count));
    static job jobs[RUNS];
    clv_error error = {0};
    for (uint32_t i = 0; i < RUNS; ++i) make_job(&s, &jobs[i], i);
    for (uint32_t i = 0; i < RUNS; ++i) {
      assert_ok(
          clv_session_start(s.session, jobs[i].inputs, 2, jobs[i].outputs, s.graph->output_count, NULL, &jobs[i].run, &error),
          error);
      memset(jobs[i].inputs, 0xff, sizeof jobs[i].inputs); /* clv_session_start() has copied the tensors */
    }
    for (uint32_t i = 0; i < RUNS; ++i) assert_ok(clv_run_wait(jobs[i].run, &error), error);
    for (uint32_t i = 0; i < RUNS; ++i) check_job(&s, &jobs[i]);
    for (uint32_t i = 0; i < RUNS; ++i) finish_job(&s, &jobs[i]);
    end(&s);
  }
}

typedef struct worker {
  scene *s;
  job j;
  clv_status status;
  clv_error error;
} worker;

static void *run_often(void *argument) {
  worker *w = argument;
  for (int i = 0; i < RUNS && w->status == CLV_OK; ++i) {
    w->status = clv_session_run(w->s->session, w->j.inputs, 2, w->j.outputs, w->s->graph->output_count, &w->error);
  }
  return NULL;
}

/* There are more threads than requests, so threads wait for a free request. */
static void threads_of_one_session(void **state) {
  (void)state;
  scene s;
  begin(&s, 11, in_flight(2));
  worker workers[5];
  pthread_t threads[5];
  for (uint32_t i = 0; i < 5; ++i) {
    workers[i] = (worker){.s = &s};
    make_job(&s, &workers[i].j, 100 + i);
    assert_int_equal(pthread_create(&threads[i], NULL, run_often, &workers[i]), 0);
  }
  for (uint32_t i = 0; i < 5; ++i) pthread_join(threads[i], NULL);
  for (uint32_t i = 0; i < 5; ++i) {
    assert_ok(workers[i].status, workers[i].error);
    check_job(&s, &workers[i].j);
    finish_job(&s, &workers[i].j);
  }
  end(&s);
}

static void no_room_of_its_own(void **state) {
  (void)state;
  scene s;
  begin(&s, 5, in_flight(2));
  job j;
  make_job(&s, &j, 1);
  clv_tensor outputs[MOST_OUTPUTS] = {{0}};
  clv_error error = {0};
  assert_int_equal(clv_session_run(s.session, j.inputs, 2, outputs, s.graph->output_count, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "has no memory: with several requests in flight"));
  assert_ok(clv_session_run(s.session, j.inputs, 2, j.outputs, s.graph->output_count, &error), error);
  check_job(&s, &j);
  finish_job(&s, &j);
  end(&s);
}

/* ---- How runs end ---- */

typedef struct watch {
  atomic_uint done, failed, calls;
  uint32_t last, stop_after;
  bool is_ascending;
} watch;

static bool watch_progress(void *user_data, uint32_t done, uint32_t count) {
  watch *w = user_data;
  atomic_fetch_add(&w->calls, 1);
  w->is_ascending &= done >= w->last && done <= count;
  w->last = done;
  return w->stop_after == 0 || atomic_load(&w->calls) < w->stop_after;
}

static void note_done(void *user_data, clv_status status) {
  watch *w = user_data;
  atomic_fetch_add(&w->failed, status != CLV_OK);
  atomic_fetch_add(&w->done, 1);
}

static void progress_and_done(void **state) {
  (void)state;
  scene s;
  begin(&s, 8, in_flight(1));
  job j;
  make_job(&s, &j, 4);
  clv_error error = {0};
  watch w = {.is_ascending = true};
  clv_run_options options = CLV_RUN_OPTIONS_INIT;
  options.progress = watch_progress;
  options.done = note_done;
  options.user_data = &w;
  assert_ok(clv_session_start(s.session, j.inputs, 2, j.outputs, s.graph->output_count, &options, &j.run, &error), error);
  assert_ok(clv_run_wait(j.run, &error), error);
  check_job(&s, &j);
  assert_int_equal(atomic_load(&w.done), 1);
  assert_int_equal(atomic_load(&w.failed), 0);
  assert_true(w.is_ascending && w.last == s.plan->step_count);
  /* Cancels a run after each possible number of steps; the next run gives the right outputs. */
  for (uint32_t stop = 1; stop <= atomic_load(&w.calls); ++stop) {
    watch c = {.is_ascending = true, .stop_after = stop};
    options.user_data = &c;
    clv_status status = clv_session_run_with(s.session, j.inputs, 2, j.outputs, s.graph->output_count, &options, &error);
    if (status != CLV_OK) {
      assert_int_equal(status, CLV_CANCELLED);
      assert_string_equal(error.message, "the run was cancelled by its progress callback");
    }
    assert_ok(clv_session_run(s.session, j.inputs, 2, j.outputs, s.graph->output_count, &error), error);
    check_job(&s, &j);
  }
  finish_job(&s, &j);
  end(&s);
}

static void cancelled(void **state) {
  (void)state;
  scene s;
  begin(&s, 9, in_flight(2));
  static job jobs[RUNS];
  clv_error error = {0};
  uint32_t stopped = 0;
  uint64_t seed = 77;
  for (uint32_t i = 0; i < RUNS; ++i) make_job(&s, &jobs[i], i);
  for (uint32_t i = 0; i < RUNS; ++i) {
    assert_ok(clv_session_start(s.session, jobs[i].inputs, 2, jobs[i].outputs, s.graph->output_count, NULL, &jobs[i].run, &error),
              error);
  }
  for (uint32_t i = RUNS; i-- > 0;) {
    if (i == RUNS - 1 || test_random(&seed) % 2 == 0) clv_run_cancel(jobs[i].run);
  }
  for (uint32_t i = 0; i < RUNS; ++i) {
    error.message[0] = '\0';
    clv_status status = clv_run_wait(jobs[i].run, &error);
    if (status == CLV_OK) {
      check_job(&s, &jobs[i]);
    } else {
      assert_int_equal(status, CLV_CANCELLED);
      assert_string_equal(error.message, "the run was cancelled");
      ++stopped;
    }
    finish_job(&s, &jobs[i]);
  }
  assert_true(stopped > 0); /* at least the last run was cancelled before it began, because 39 runs were ahead of it */
  end(&s);
}

static void limited_in_time(void **state) {
  (void)state;
  scene s;
  begin(&s, 10, in_flight(1));
  job j;
  make_job(&s, &j, 2);
  clv_error error = {0};
  clv_run_options options = CLV_RUN_OPTIONS_INIT;
  options.time_limit_s = 1e-5;
  assert_int_equal(clv_session_run_with(s.session, j.inputs, 2, j.outputs, s.graph->output_count, &options, &error),
                   CLV_TIMED_OUT);
  assert_string_equal(error.message, "the run exceeded its time limit of 1e-05 s");
  options.time_limit_s = 1000;
  assert_ok(clv_session_run_with(s.session, j.inputs, 2, j.outputs, s.graph->output_count, &options, &error), error);
  check_job(&s, &j);
  options.time_limit_s = -1;
  assert_int_equal(clv_session_run_with(s.session, j.inputs, 2, j.outputs, s.graph->output_count, &options, &error),
                   CLV_INVALID_ARGUMENT);
  finish_job(&s, &j);
  end(&s);
}

/* The callback `done` is called before clv_run_wait() returns. */
static void every_end_is_told(void **state) {
  (void)state;
  scene s;
  begin(&s, 12, in_flight(3));
  static job jobs[6];
  clv_error error = {0};
  watch w = {.is_ascending = true};
  clv_run_options options = CLV_RUN_OPTIONS_INIT;
  options.done = note_done;
  options.user_data = &w;
  for (uint32_t i = 0; i < 6; ++i) {
    make_job(&s, &jobs[i], i);
    assert_ok(
        clv_session_start(s.session, jobs[i].inputs, 2, jobs[i].outputs, s.graph->output_count, &options, &jobs[i].run, &error),
        error);
  }
  for (uint32_t i = 0; i < 6; ++i) assert_ok(clv_run_wait(jobs[i].run, &error), error);
  assert_int_equal(atomic_load(&w.done), 6);
  for (uint32_t i = 0; i < 6; ++i) finish_job(&s, &jobs[i]);
  end(&s);
}

static void wrong_calls(void **state) {
  (void)state;
  clv_error error = {0};
  clv_run *run = (clv_run *)&error;
  assert_int_equal(clv_session_start(NULL, NULL, 0, NULL, 0, NULL, &run, &error), CLV_INVALID_ARGUMENT);
  assert_null(run);
  assert_int_equal(clv_run_wait(NULL, &error), CLV_INVALID_ARGUMENT);
  clv_run_cancel(NULL);
  assert_true(clv_run_is_done(NULL));
  scene s;
  begin(&s, 5, in_flight(1));
  clv_session *session;
  assert_int_equal(
      clv_session_create(s.plan, &(clv_session_options){sizeof(clv_session_options), .in_flight = 17}, &session, &error),
      CLV_INVALID_ARGUMENT);
  assert_string_equal(error.message, "17 requests in flight; the maximum is 16");
  const clv_session_options f16 = {sizeof(clv_session_options), .precision = CLV_F16};
  assert_int_equal(clv_session_create(s.plan, &f16, &session, &error), CLV_INVALID_ARGUMENT);
  assert_string_equal(error.message, "precision f16: expected f32 or bf16");
  end(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(started_runs),       cmocka_unit_test(threads_of_one_session),
      cmocka_unit_test(no_room_of_its_own), cmocka_unit_test(progress_and_done),
      cmocka_unit_test(cancelled),          cmocka_unit_test(limited_in_time),
      cmocka_unit_test(every_end_is_told),  cmocka_unit_test(wrong_calls),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
