/* Ends runs while a device works: by cancellation and by time limits, in loops that would never end, in queues, and while runs
 * wait for a device's turn. A run that is not stopped hangs, and with it the test. Also run this test under ThreadSanitizer. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "../analysis/bodies.h"
#include "backends/cpu/cpu.h"
#include "machine.h"

static const char *const specs[] = {"all"};

enum { ELEMENTS = 6 };
static const int64_t FOREVER = INT64_C(1) << 60;

/* p = x + x; l = p + `times` * x, by a Loop that captures x; y = -l. With `is_empty`, the body has no nodes, and y = -p. */
static clv_graph *make_loop(const clv_allocator *allocator, bool is_empty) {
  test_graph g, body;
  test_graph_begin(&g, allocator, 7);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(ELEMENTS));
  test_graph_input(&g, "times", CLV_I64, 0, NULL);
  test_graph_input(&g, "on", CLV_BOOL, 0, NULL);
  test_graph_node(&g, "p", "Add", "x,x", "p");
  test_graph_begin(&body, allocator, 1);
  body_input(&body, "i");
  body_input(&body, "go");
  body_input(&body, "v");
  if (!is_empty) test_graph_node(&body, "", "Identity", "go", "go2");
  if (!is_empty) test_graph_node(&body, "", "Add", "v,x", "v2");
  body_node(&g, "Loop", "times,on,p", "l", "body", body_end(&body, &g, is_empty ? "go,v" : "go2,v2"), NULL, NULL, 0);
  test_graph_node(&g, "y", "Neg", "l", "y");
  return test_graph_end(&g, "y");
}

typedef struct scene {
  machine m;
  clv_graph *graph;
  clv_plan *plan;
  clv_session *session;
} scene;

static void begin(scene *s, const char *devices, const char *pins, bool is_empty, const clv_session_options *options) {
  clv_error error = {0};
  machine_open(&s->m, devices, 1, specs);
  s->graph = make_loop(&s->m.counting.allocator, is_empty);
  s->plan = machine_plan(&s->m, s->graph, pins, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_ok(clv_session_create(s->plan, options, &s->session, &error), error);
}

static void end(scene *s) {
  clv_session_destroy(s->session);
  clv_plan_destroy(s->plan);
  clv_graph_destroy(s->graph);
  machine_close(&s->m);
}

typedef struct job {
  float x[ELEMENTS], y[ELEMENTS];
  int64_t times;
  bool on;
  clv_tensor inputs[3], output;
  clv_run *run;
} job;

static void make_job(job *j, int64_t times, uint64_t seed) {
  for (int i = 0; i < ELEMENTS; ++i) j->x[i] = test_random_float(&seed);
  j->times = times;
  j->on = true;
  j->inputs[0] = f32(1, DIMS(ELEMENTS), j->x);
  j->inputs[1] = clv__tensor_make(CLV_I64, 0, NULL, &j->times);
  j->inputs[2] = clv__tensor_make(CLV_BOOL, 0, NULL, &j->on);
  j->output = f32(1, DIMS(ELEMENTS), j->y);
}

static void start(const scene *s, job *j, const clv_run_options *options) {
  clv_error error = {0};
  assert_ok(clv_session_start(s->session, j->inputs, 3, &j->output, 1, options, &j->run, &error), error);
}

static void end_cancelled(const job *j) {
  clv_error error = {0};
  assert_int_equal(clv_run_wait(j->run, &error), CLV_CANCELLED);
  assert_string_equal(error.message, "the run was cancelled");
}

/* The session still gives right outputs. */
static void check_next(const scene *s, bool is_empty, const char *what) {
  clv_error error = {0};
  job j;
  make_job(&j, 3, 99);
  if (clv_session_run(s->session, j.inputs, 3, &j.output, 1, &error) != CLV_OK) fail_msg("%s: %s", what, error.message);
  for (int i = 0; i < ELEMENTS; ++i) {
    float expected = j.x[i] + j.x[i];
    for (int k = 0; k < 3 && !is_empty; ++k) expected += j.x[i];
    if (j.y[i] != -expected) fail_msg("%s: element %d is %g; expected %g", what, i, (double)j.y[i], (double)-expected);
  }
}

static void pause_ms(long ms) {
  nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

static const struct {
  const char *devices, *pins;
} places[] = {{"cpu", NULL}, {"npu", NULL}, {"npu,cpu", "p=npu,Loop=cpu,y=npu"}, {"npu,cpu", "p=cpu,Loop=npu,y=cpu"}};
enum { PLACES = sizeof places / sizeof *places };

static void endless_loops(void **state) {
  (void)state;
  for (size_t p = 0; p < PLACES; ++p) {
    for (int is_empty = 0; is_empty < 2; ++is_empty) {
      scene s;
      begin(&s, places[p].devices, places[p].pins, is_empty, NULL);
      clv_error error = {0};
      job j;
      make_job(&j, FOREVER, p);
      clv_run_options options = CLV_RUN_OPTIONS_INIT;
      options.time_limit_s = 0.02;
      assert_int_equal(clv_session_run_with(s.session, j.inputs, 3, &j.output, 1, &options, &error), CLV_TIMED_OUT);
      assert_string_equal(error.message, "the run exceeded its time limit of 0.02 s");
      check_next(&s, is_empty, places[p].devices);
      for (int wait_ms = 0; wait_ms < 12; wait_ms += 4) {
        start(&s, &j, NULL);
        pause_ms(wait_ms);
        assert_false(clv_run_is_done(j.run));
        clv_run_cancel(j.run);
        end_cancelled(&j);
        check_next(&s, is_empty, places[p].devices);
      }
      end(&s);
    }
  }
}

/* Runs that wait, in the queue or for their turn on a device, can be ended (cancelled or timed out) while
 * another run goes on. */
static void waiting_runs(void **state) {
  (void)state;
  for (size_t p = 0; p < PLACES; ++p) {
    for (uint32_t in_flight = 1; in_flight <= 2; ++in_flight) {
      scene s;
      clv_session_options options = CLV_SESSION_OPTIONS_INIT;
      options.in_flight = in_flight;
      begin(&s, places[p].devices, places[p].pins, false, &options);
      clv_error error = {0};
      job jobs[5];
      clv_run_options limited = CLV_RUN_OPTIONS_INIT;
      limited.time_limit_s = 0.05;
      for (uint32_t i = 0; i < 5; ++i) {
        make_job(&jobs[i], FOREVER, i);
        start(&s, &jobs[i], i == 3 ? &limited : NULL);
        if (i == 0) pause_ms(5);
      }
      for (uint32_t i = 1; i < 5; ++i) {
        if (i == 3) continue;
        clv_run_cancel(jobs[i].run);
        end_cancelled(&jobs[i]);
      }
      assert_int_equal(clv_run_wait(jobs[3].run, &error), CLV_TIMED_OUT);
      if (in_flight == 1) { /* a caller that waits for a free request */
        job late;
        make_job(&late, 1, 8);
        assert_int_equal(clv_session_run_with(s.session, late.inputs, 3, &late.output, 1, &limited, &error), CLV_TIMED_OUT);
      }
      assert_false(clv_run_is_done(jobs[0].run));
      clv_run_cancel(jobs[0].run);
      end_cancelled(&jobs[0]);
      check_next(&s, false, places[p].devices);
      end(&s);
    }
  }
}

static void note_done(void *user_data, clv_status status) {
  atomic_fetch_add((atomic_uint *)user_data, status == CLV_CANCELLED ? 1 : 100);
}

static void queued_runs_tell(void **state) {
  (void)state;
  scene s;
  atomic_uint told = 0;
  begin(&s, "cpu", NULL, false, NULL);
  job first, queued;
  make_job(&first, FOREVER, 1);
  make_job(&queued, FOREVER, 2);
  clv_run_options options = CLV_RUN_OPTIONS_INIT;
  options.done = note_done;
  options.user_data = &told;
  start(&s, &first, NULL);
  start(&s, &queued, &options);
  clv_run_cancel(queued.run);
  assert_true(clv_run_is_done(queued.run));
  assert_int_equal(atomic_load(&told), 1);
  clv_run_cancel(queued.run); /* no effect */
  end_cancelled(&queued);
  assert_int_equal(atomic_load(&told), 1);
  clv_run_cancel(first.run);
  end_cancelled(&first);
  end(&s);
}

/* If a device exceeds the time limit for devices, the run fails with an error that names the device. The CPU works in the
 * caller's thread, so it is also stopped. */
static void slow_devices(void **state) {
  (void)state;
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  options.device_time_limit_s = 0.05;
  options.no_fallback = true;
  for (size_t p = 0; p < PLACES; ++p) {
    scene s;
    begin(&s, places[p].devices, places[p].pins, false, &options);
    clv_error error = {0};
    job j;
    make_job(&j, FOREVER, p);
    assert_int_equal(clv_session_run(s.session, j.inputs, 3, &j.output, 1, &error), CLV_DEVICE_ERROR);
    bool is_here = p == 0 || p == 2; /* the loop runs on the CPU, in the caller's thread */
    const char *device = is_here ? " on cpu: node" : " on npu: node";
    const char *what =
        is_here ? "execute: it did not finish within 0.05 s, and was stopped" : "execute: it did not answer within 0.05 s";
    const char *at = strstr(error.message, what);
    if (strncmp(error.message, "partition ", 10) != 0 || strstr(error.message, device) == NULL || at == NULL ||
        strcmp(at, what) != 0)
      fail_msg("the error must begin with 'partition ', contain '%s' and end with '%s': %s", device, what, error.message);
    end(&s); /* closes a device whose engine is inside the loop */
  }
}

/* ---- Calls that do not return ---- */

typedef struct told {
  atomic_uint calls;
  char message[256];
} told;

static void note_stuck(void *user_data, const char *message) {
  told *t = user_data;
  snprintf(t->message, sizeof t->message, "%s", message);
  atomic_fetch_add(&t->calls, 1);
}

/* Lets execute() take 1.4 s. The session reports a call that has not returned 1 s after the limit, which is 0.1 s. */
static interposer_fate delay_execute(void *user_data, const interposer_call *called) {
  (void)user_data;
  return (interposer_fate){.delay_s = called->slot == INTERPOSER_execute ? 1.4 : 0};
}

/* The session calls the program's function `stuck` about a device whose call does not return. If the call returns after all,
 * the run on a device that works in the caller's thread fails, because the time limit was exceeded. */
static void stuck_devices(void **state) {
  (void)state;
  static const interposer_order orders[] = {INTERPOSER_SYNCHRONOUS, INTERPOSER_ASYNCHRONOUS};
  for (size_t i = 0; i < 2; ++i) {
    scene s;
    told t = {0};
    interposer *slow =
        interposer_create(&(interposer_options){.name = "slow", .query = clv__cpu_backend_query, .order = orders[i]});
    machine_open_with(&s.m, slow, "slow,cpu", 0, NULL);
    s.graph = make_loop(&s.m.counting.allocator, false);
    s.plan = machine_plan(&s.m, s.graph, "*=slow", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    clv_session_options options = CLV_SESSION_OPTIONS_INIT;
    options.device_time_limit_s = 0.1;
    options.stuck = note_stuck;
    options.user_data = &t;
    options.no_fallback = true;
    clv_error error = {0};
    assert_ok(clv_session_create(s.plan, &options, &s.session, &error), error);
    interposer_set_hook(slow, delay_execute, NULL);
    job j;
    make_job(&j, 2, 1);
    clv_status status = clv_session_run(s.session, j.inputs, 3, &j.output, 1, &error);
    /* On the asynchronous device the run may succeed, because all of its work is done when the call returns. */
    if (orders[i] == INTERPOSER_SYNCHRONOUS) {
      assert_int_equal(status, CLV_DEVICE_ERROR);
      assert_non_null(strstr(error.message, " on slow: nodes"));
      assert_non_null(strstr(error.message, "it did not finish within 0.1 s"));
    }
    assert_int_equal(atomic_load(&t.calls), 1);
    assert_non_null(strstr(t.message, " on slow: nodes"));
    assert_non_null(strstr(t.message, "the call has not returned after 1.1 s, and cannot be interrupted"));
    interposer_set_hook(slow, NULL, NULL);
    end(&s);
    interposer_destroy(slow);
  }
}

/* Cancels runs at random moments. A run that would not end by itself must return CLV_CANCELLED. */
static void random_moments(void **state) {
  (void)state;
  uint64_t seed = 5;
  for (size_t p = 0; p < PLACES; ++p) {
    scene s;
    clv_session_options options = CLV_SESSION_OPTIONS_INIT;
    options.in_flight = 2;
    begin(&s, places[p].devices, places[p].pins, false, &options);
    for (uint32_t round = 0; round < test_some(100); ++round) {
      job jobs[3];
      for (uint32_t i = 0; i < 3; ++i) {
        make_job(&jobs[i], test_random(&seed) % 2 == 0 ? 5 : FOREVER, test_random(&seed));
        start(&s, &jobs[i], NULL);
      }
      nanosleep(&(struct timespec){0, (long)(test_random(&seed) % 400) * 1000}, NULL);
      for (uint32_t i = 3; i-- > 0;) {
        if (jobs[i].times == FOREVER || test_random(&seed) % 2 == 0) clv_run_cancel(jobs[i].run);
      }
      for (uint32_t i = 0; i < 3; ++i) {
        clv_error error = {0};
        clv_status status = clv_run_wait(jobs[i].run, &error);
        if (status != CLV_CANCELLED && (status != CLV_OK || jobs[i].times == FOREVER)) {
          fail_msg("round %u, run %u: status %s, expected CLV_CANCELLED%s: %s", round, i, clv_status_name(status),
                   jobs[i].times == FOREVER ? "" : " or CLV_OK", error.message);
        }
      }
      if (round % 8 == 0) check_next(&s, false, places[p].devices);
    }
    end(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(endless_loops), cmocka_unit_test(waiting_runs),  cmocka_unit_test(queued_runs_tell),
      cmocka_unit_test(slow_devices),  cmocka_unit_test(stuck_devices), cmocka_unit_test(random_moments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
