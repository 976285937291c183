/* A session removes a device that fails, by an error or by hanging, in any call, with one request or several. The incident is
 * reported, and a lost device is not called any more. See test_faults.c for random failures. */
#include <pthread.h>

#include "backends/cpu/cpu.h"
#include "backends/vnpu/vnpu.h"
#include "execute/session.h"
#include "machine.h"

enum { ELEMENTS = 512, FOREVER = 1000000 };

/* Time limits for devices. On a loaded machine, a device that does not hang must answer within them. The short one is for a test
 * in which a device hangs 64 times. */
#if defined __SANITIZE_THREAD__ || defined __SANITIZE_ADDRESS__
#define HANG_LIMIT_S 1.0
#define SHORT_HANG_LIMIT_S 0.1
#else
#define HANG_LIMIT_S 0.25
#define SHORT_HANG_LIMIT_S 0.05
#endif

/* Selects the calls that fail: once armed, the first `after` calls of the slot pass, and the next `count` get `fate`. */
typedef struct script {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_armed;
  interposer_slot slot;
  interposer_fate fate;
  uint32_t after, count;
  uint32_t gather; /* the affected calls wait until so many of them have begun; 0: they do not wait */
  uint32_t met;
} script;

static interposer_fate follow(void *user_data, const interposer_call *call) {
  script *s = user_data;
  interposer_fate fate = {0};
  pthread_mutex_lock(&s->lock);
  if (s->is_armed && call->slot == s->slot) {
    if (s->after > 0) {
      --s->after;
    } else if (s->count > 0) {
      --s->count;
      fate = s->fate;
      ++s->met;
      pthread_cond_broadcast(&s->changed);
      while (s->met < s->gather) pthread_cond_wait(&s->changed, &s->lock);
    }
  }
  pthread_mutex_unlock(&s->lock);
  return fate;
}

typedef struct fixture {
  script script;
  interposer *faulty;
  machine m;
  clv_graph *graph;
  clv_plan *plan;
  float data[3 * 8 * 8];
  clv_tensor input, expected;
  char log[4096]; /* warnings and errors */
} fixture;

static void keep_log(void *user_data, int level, const char *text) {
  fixture *f = user_data;
  pthread_mutex_lock(&f->script.lock);
  size_t used = strlen(f->log);
  if (level <= 1) snprintf(f->log + used, sizeof f->log - used, "%d: %s\n", level, text);
  pthread_mutex_unlock(&f->script.lock);
}

typedef struct setting {
  const char *list, *pins, *option;
  uint64_t without;
  bool is_synchronous, finish_on_close;
} setting;

static void open_devices(fixture *f, const setting *what) {
  *f = (fixture){.script = {.fate = {.message = "driver(): code 9"}}};
  pthread_mutex_init(&f->script.lock, NULL);
  pthread_cond_init(&f->script.changed, NULL);
  f->faulty = interposer_create(&(interposer_options){
      .name = "faulty",
      .query = clv__vnpu_backend_query,
      .spec = "all",
      .order = what->is_synchronous ? INTERPOSER_SYNCHRONOUS : INTERPOSER_ASYNCHRONOUS,
      .without = what->without,
      .finish_on_close = what->finish_on_close,
      .hook = follow,
      .user_data = &f->script,
  });
  clv_error error = {0};
  test_allocator_init(&f->m.counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &f->m.counting.allocator;
  context.cache_directory = "";
  context.capture = CLV_CAPTURE_OFF; /* so that partitions run by execute(), which the tests let fail */
  context.log = keep_log;
  context.log_user_data = f;
  assert_ok(clv_context_create(&context, &f->m.context, &error), error);
  assert_ok(clv_context_add_backend(f->m.context, interposer_query, f->faulty, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = what->list == NULL ? "faulty,cpu" : what->list;
  devices.thread_count = 1;
  devices.device_options = &what->option;
  devices.device_option_count = what->option != NULL;
  assert_ok(clv_devices_open(f->m.context, &devices, &f->m.devices, &error), error);
}

/* Makes the graph and its plan. By default conv … relu2 and softmax are on the faulty device, and concat is on the CPU. */
static void begin(fixture *f, const setting *what) {
  clv_error error = {0};
  open_devices(f, what);
  f->graph = test_seven_nodes(&f->m.counting.allocator);
  f->plan =
      machine_plan(&f->m, f->graph, what->pins == NULL ? "concat=cpu" : what->pins, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  for (size_t i = 0; i < sizeof f->data / sizeof *f->data; ++i) f->data[i] = (float)i / 192 - 0.5f;
  f->input = f32(4, DIMS(1, 3, 8, 8), f->data);
  assert_ok(clv__graph_evaluate(f->graph, &f->input, NULL, &f->expected, NULL, NULL, f->graph->allocator, &error), error);
}

static void end(fixture *f) {
  char misuse[200];
  clv__release(&f->m.counting.allocator, f->expected.data);
  clv_plan_destroy(f->plan);
  clv_graph_destroy(f->graph);
  machine_close(&f->m);
  if (interposer_misused(f->faulty, misuse, sizeof misuse)) fail_msg("%s", misuse);
  interposer_destroy(f->faulty);
  pthread_cond_destroy(&f->script.changed);
  pthread_mutex_destroy(&f->script.lock);
}

static void arm(fixture *f, interposer_slot slot, interposer_action action, uint32_t after, uint32_t count) {
  pthread_mutex_lock(&f->script.lock);
  f->script.slot = slot;
  f->script.fate.action = action;
  f->script.after = after;
  f->script.count = count;
  f->script.is_armed = true;
  pthread_mutex_unlock(&f->script.lock);
}

static void disarm(fixture *f) {
  pthread_mutex_lock(&f->script.lock);
  f->script.is_armed = false;
  pthread_mutex_unlock(&f->script.lock);
}

static clv_session *session_with(const clv_plan *plan, double device_time_limit_s, uint32_t in_flight) {
  clv_error error = {0};
  clv_session *session;
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  options.device_time_limit_s = device_time_limit_s;
  options.in_flight = in_flight;
  assert_ok(clv_session_create(plan, &options, &session, &error), error);
  return session;
}

/* Makes a run with output memory of its own, so that several may run at once, and checks the output. */
static clv_status run(const fixture *f, clv_session *session, const clv_run_options *options, clv_error *error) {
  float room[ELEMENTS];
  clv_tensor output = f->expected;
  memset(room, 0xee, sizeof room);
  output.data = room;
  CLV__TRY(clv_session_run_with(session, &f->input, 1, &output, 1, options, error));
  for (size_t i = 0; i < ELEMENTS; ++i) {
    float expected = ((const float *)f->expected.data)[i];
    if (fabsf(room[i] - expected) < 1e-5f) continue;
    return clv__error_set(error, CLV_INVALID_MODEL, "element %zu is %g, expected %g", i, (double)room[i], (double)expected);
  }
  return CLV_OK;
}

static void check_run(const fixture *f, clv_session *session) {
  clv_error error = {0};
  assert_ok(run(f, session, NULL, &error), error);
}

/* Checks that there is one incident: the first device was removed, and its partitions moved to the second. */
static void check_taken_out(fixture *f, clv_session *session, uint32_t partitions, const char *text) {
  clv__incident incident;
  char line[640], wanted[700];
  const clv_plan *plan = clv__session_plan(session);
  assert_int_equal(clv__session_incident_count(session), 1);
  assert_false(clv__session_incident(session, 1, &incident));
  assert_true(clv__session_incident(session, 0, &incident));
  assert_int_equal(incident.device, 0);
  assert_int_equal(incident.partition_count, partitions);
  assert_int_equal(incident.onto, 2);
  assert_true(incident.status != CLV_OK && incident.cost_ms > 0);
  if (strstr(incident.text, text) == NULL) fail_msg("the incident '%s' does not contain '%s'", incident.text, text);
  for (uint32_t p = 0; p < plan->partition_count; ++p) assert_int_equal(plan->partitions[p].device, 1);
  clv__incident_text(f->m.devices, &incident, line, sizeof line);
  snprintf(wanted, sizeof wanted, "%u partition%s moved to cpu", partitions, partitions == 1 ? " was" : "s were");
  if (strncmp(line, "faulty was removed: ", 20) != 0 || strstr(line, wanted) == NULL)
    fail_msg("the text of the incident must begin with 'faulty was removed: ' and contain '%s': %s", wanted, line);
  snprintf(wanted, sizeof wanted, "1: %s", line);
  if (strstr(f->log, wanted) == NULL) fail_msg("'%s' is not in the log:\n%s", wanted, f->log);
}

/* ---- Failures in each function of the backend ---- */

static void wherever_it_fails(void **state) {
  (void)state;
  static const struct {
    interposer_slot slot;
    interposer_action action;
    clv_status status;
    bool at_creation;
  } cases[] = {
      {INTERPOSER_compile, INTERPOSER_FAIL, CLV_NOT_SUPPORTED, true},
      {INTERPOSER_compile, INTERPOSER_FAIL, CLV_TOO_LARGE, true},
      {INTERPOSER_instance_create, INTERPOSER_FAIL, CLV_DEVICE_ERROR, true},
      {INTERPOSER_buffer_alloc, INTERPOSER_FAIL, CLV_OUT_OF_MEMORY, true},
      {INTERPOSER_instance_bind_scratch, INTERPOSER_FAIL, CLV_INTERNAL_ERROR, true},
      {INTERPOSER_stream_create, INTERPOSER_FAIL, CLV_DEVICE_ERROR, false},
      {INTERPOSER_event_create, INTERPOSER_FAIL, CLV_DEVICE_ERROR, false},
      {INTERPOSER_event_record, INTERPOSER_FAIL, CLV_IO_ERROR, false},
      {INTERPOSER_copy_in, INTERPOSER_FAIL_LATER, CLV_DEVICE_ERROR, false},
      {INTERPOSER_execute, INTERPOSER_FAIL, CLV_OUT_OF_MEMORY, false},
      {INTERPOSER_execute, INTERPOSER_FAIL_LATER, CLV_DEVICE_ERROR, false},
      {INTERPOSER_copy_out, INTERPOSER_FAIL, CLV_INTERNAL_ERROR, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    for (int at_creation = 0; at_creation < 2; ++at_creation) {
      if (at_creation && !cases[i].at_creation) continue;
      if (!at_creation && cases[i].at_creation) continue;
      fixture f;
      begin(&f, &(setting){0});
      f.script.fate.status = cases[i].status;
      clv_session *session = NULL;
      if (!at_creation) session = session_with(f.plan, 0, 1);
      if (!at_creation) check_run(&f, session);
      if (!at_creation) clv_session_destroy(session); /* so that the next session's first run creates streams and events again */
      if (!at_creation) session = session_with(f.plan, 0, 1);
      arm(&f, cases[i].slot, cases[i].action, 0, FOREVER);
      if (at_creation) session = session_with(f.plan, 0, 1);
      check_run(&f, session);
      /* A partition that is too large is divided down to single nodes before the device is removed. */
      const uint32_t partitions = cases[i].status == CLV_TOO_LARGE ? 4 : 2;
      check_taken_out(&f, session, partitions, "driver(): code 9");
      disarm(&f); /* the device stays removed from this session */
      check_run(&f, session);
      check_taken_out(&f, session, partitions, "driver(): code 9");
      clv_session_destroy(session);
      session = session_with(f.plan, 0, 1); /* the next session uses the device again */
      check_run(&f, session);
      assert_int_equal(clv__session_incident_count(session), 0);
      clv_session_destroy(session);
      end(&f);
    }
  }
}

/* A device is not removed if it runs out of memory only once. */
static void short_of_memory_once(void **state) {
  (void)state;
  static const interposer_slot slots[] = {INTERPOSER_compile, INTERPOSER_buffer_alloc, INTERPOSER_instance_create,
                                          INTERPOSER_execute, INTERPOSER_copy_in};
  for (size_t i = 0; i < sizeof slots / sizeof *slots; ++i) {
    fixture f;
    begin(&f, &(setting){0});
    f.script.fate.status = CLV_OUT_OF_MEMORY;
    arm(&f, slots[i], INTERPOSER_FAIL, 0, 1);
    clv_session *session = session_with(f.plan, 0, 1);
    check_run(&f, session);
    assert_int_equal(f.script.count, 0);
    assert_int_equal(clv__session_incident_count(session), 0);
    clv_session_destroy(session);
    end(&f);
  }
}

static void short_of_memory_for_a_weight(void **state) {
  (void)state;
  for (uint32_t times = 1; times <= 2; ++times) {
    fixture f;
    open_devices(&f, &(setting){0});
    test_graph g;
    test_graph_begin(&g, &f.m.counting.allocator, 1);
    test_graph_input(&g, "x", CLV_F32, 2, DIMS(64, 64));
    test_graph_weight(&g, "w", 2, DIMS(64, 64));
    test_graph_node(&g, "y", "Add", "x,w", "y");
    f.graph = test_graph_end(&g, "y");
    f.plan = machine_plan(&f.m, f.graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    f.script.fate.status = CLV_OUT_OF_MEMORY;
    arm(&f, INTERPOSER_weight_upload, INTERPOSER_FAIL, 0, times);
    clv_session *session = session_with(f.plan, 0, 1);
    static float x[64 * 64];
    machine_check_run(session, f.plan, &(clv_tensor){.dtype = CLV_F32, .rank = 2, .dims = {64, 64}, .data = x}, "with a weight");
    assert_int_equal(clv__session_incident_count(session), times - 1);
    clv_session_destroy(session);
    end(&f);
  }
}

/* ---- No other device ---- */

static void the_first_error_is_told(void **state) {
  (void)state;
  static const setting settings[] = {{.list = "faulty", .pins = "softmax=faulty"}, {.pins = "*=faulty"}};
  for (size_t i = 0; i < 2; ++i) {
    fixture f;
    clv_error error = {0};
    begin(&f, &settings[i]);
    clv_session *session = session_with(f.plan, 0, 1);
    f.script.fate.status = CLV_IO_ERROR;
    arm(&f, INTERPOSER_execute, INTERPOSER_FAIL, 0, FOREVER);
    assert_int_equal(run(&f, session, NULL, &error), CLV_IO_ERROR);
    static const char first[] =
        "partition 0 on faulty: nodes 'conv' (Conv) to 'softmax' (Softmax): execute: driver(): code 9; "
        "then, without faulty: node '";
    if (strncmp(error.message, first, sizeof first - 1) != 0) fail_msg("'%s' does not begin with '%s'", error.message, first);
    assert_int_equal(clv_session_run(session, &f.input, 1, &(clv_tensor){0}, 1, NULL), CLV_IO_ERROR);
    assert_int_equal(clv__session_incident_count(session), 0);
    disarm(&f);
    check_run(&f, session); /* the device was not removed */
    clv_session_destroy(session);
    end(&f);
  }
}

/* An error of a run names the device's first step that failed, although a later copy reports it. */
static void a_failed_step_is_named(void **state) {
  (void)state;
  static const struct {
    interposer_slot slot;
    const char *text;
  } cases[] = {
      {INTERPOSER_execute, "partition 0 on faulty: nodes 'conv' (Conv) to 'softmax' (Softmax): execute: "},
      {INTERPOSER_copy_in, "transfer of 'x' to faulty: copy_in: "},
      {INTERPOSER_copy_out, "transfer of 'y' from faulty: copy_out: "},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    for (int is_late = 0; is_late < 2; ++is_late) {
      fixture f;
      clv_error error = {0};
      clv_session *session;
      clv_session_options options = CLV_SESSION_OPTIONS_INIT;
      options.no_fallback = true;
      begin(&f, &(setting){.pins = "*=faulty"});
      assert_ok(clv_session_create(f.plan, &options, &session, &error), error);
      arm(&f, cases[i].slot, is_late ? INTERPOSER_FAIL_LATER : INTERPOSER_FAIL, 0, 1);
      assert_int_equal(run(&f, session, NULL, &error), CLV_DEVICE_ERROR);
      char expected[160];
      snprintf(expected, sizeof expected, "%s%sdriver(): code 9", cases[i].text, is_late ? "event_synchronize: " : "");
      assert_string_equal(error.message, expected);
      disarm(&f);
      check_run(&f, session);
      clv_session_destroy(session);
      end(&f);
    }
  }
}

static bool stop_at_once(void *user_data, uint32_t steps_done, uint32_t step_count) {
  (void)user_data, (void)steps_done, (void)step_count;
  return false;
}

static void what_the_caller_wants_is_no_failure(void **state) {
  (void)state;
  fixture f;
  clv_error error = {0};
  begin(&f, &(setting){0});
  clv_session *session = session_with(f.plan, 0, 1);
  clv_run_options options = CLV_RUN_OPTIONS_INIT;
  options.progress = stop_at_once;
  /* The run fails before a step completes, and is repeated without the device. The repetition is cancelled. */
  arm(&f, INTERPOSER_copy_in, INTERPOSER_FAIL, 0, FOREVER);
  assert_int_equal(run(&f, session, &options, &error), CLV_CANCELLED);
  check_taken_out(&f, session, 2, "driver(): code 9");
  clv_tensor wrong = f32(1, DIMS(3), f.data), output = {0};
  assert_int_equal(clv_session_run(session, &wrong, 1, &output, 1, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv__session_incident_count(session), 1);
  check_run(&f, session);
  clv_session_destroy(session);
  end(&f);
}

/* ---- One device after the other ---- */

/* The second device fails too, when it runs the nodes of the first. Both must be removed, and the third must run all nodes. */
static void two_devices_one_after_the_other(void **state) {
  (void)state;
  fixture f;
  clv__incident incident;
  begin(&f, &(setting){.list = "faulty,npu,cpu", .option = "npu:fail=1"});
  clv_session *session = session_with(f.plan, 0, 1);
  arm(&f, INTERPOSER_execute, INTERPOSER_FAIL, 0, FOREVER);
  check_run(&f, session);
  assert_int_equal(clv__session_incident_count(session), 2);
  for (uint32_t i = 0; i < 2; ++i) {
    assert_true(clv__session_incident(session, i, &incident));
    assert_int_equal(incident.device, i);
    assert_int_equal(incident.onto, 2u << i);
    assert_int_equal(incident.partition_count, 2);
  }
  assert_non_null(strstr(incident.text, "launch 1 failed"));
  const clv_plan *plan = clv__session_plan(session);
  for (uint32_t p = 0; p < plan->partition_count; ++p) assert_int_equal(plan->partitions[p].device, 2);
  check_run(&f, session);
  clv_session_destroy(session);
  end(&f);
}

/* Without a third device, the run fails with the error of the first device, followed by that of the second. */
static void two_devices_and_no_third(void **state) {
  (void)state;
  fixture f;
  clv_error error = {0};
  begin(&f, &(setting){.list = "faulty,npu", .option = "npu:fail=1", .pins = "softmax=faulty"});
  clv_plan_destroy(f.plan);
  f.plan = machine_plan(&f.m, f.graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  clv_session *session = session_with(f.plan, 0, 1);
  arm(&f, INTERPOSER_execute, INTERPOSER_FAIL, 0, FOREVER);
  assert_int_equal(run(&f, session, NULL, &error), CLV_DEVICE_ERROR);
  static const char first[] =
      "partition 0 on faulty: nodes 'conv' (Conv) to 'softmax' (Softmax): execute: driver(): code 9; then, without faulty: ";
  if (strncmp(error.message, first, sizeof first - 1) != 0) fail_msg("'%s' does not begin with '%s'", error.message, first);
  assert_non_null(strstr(error.message + sizeof first, "launch 1 failed"));
  assert_non_null(strstr(error.message + sizeof first, "; then, without faulty and npu: "));
  check_run(&f, session); /* only one launch of the npu fails */
  check_run(&f, session);
  clv_session_destroy(session);
  end(&f);
}

/* ---- Step times and traces ---- */

/* What programs read about the one device that was removed. */
static void check_report(clv_session *session) {
  clv_error error = {0};
  clv_fallback_info info = {.struct_size = sizeof info};
  const clv_plan *plan = clv_session_current_plan(session);
  char *text, expected[64];
  assert_true(plan != clv_session_plan(session));
  assert_true(clv_session_fallback(session, 0, &info));
  assert_int_equal(info.status, CLV_DEVICE_ERROR);
  assert_non_null(strstr(info.reason, "driver(): code 9"));
  assert_true(info.partition_count > 0 && info.onto != 0 && (info.onto >> info.device & 1u) == 0 && info.cost_ms > 0);
  assert_ok(clv_session_report(session, CLV_REPORT_FALLBACKS, CLV_FORM_TEXT, &text, &error), error);
  snprintf(expected, sizeof expected, "%s was removed: ", plan->devices->items[info.device].name);
  assert_true(strncmp(text, expected, strlen(expected)) == 0 && strstr(text, "; recovery took ") != NULL);
  clv_text_free(text);
  assert_ok(clv_session_report(session, CLV_REPORT_FALLBACKS, CLV_FORM_JSON, &text, &error), error);
  assert_non_null(strstr(text, "\"status\": \"device error\""));
  clv_text_free(text);
  assert_false(clv_session_fallback(session, 1, &info));
  assert_null(info.reason);
}

static void times_and_traces_are_of_the_new_plan(void **state) {
  (void)state;
  fixture f;
  size_t count;
  begin(&f, &(setting){0});
  clv_session *session = session_with(f.plan, 0, 1);
  clv__session_trace(session, true);
  check_run(&f, session);
  clv__session_time_steps(session, true);
  arm(&f, INTERPOSER_execute, INTERPOSER_FAIL_LATER, 1, FOREVER);
  check_run(&f, session);
  const clv_plan *plan = clv__session_plan(session);
  assert_true(plan->step_count < f.plan->step_count);
  for (uint32_t s = 0; s < plan->step_count; ++s) assert_true(clv__session_step_time_ns(session, s) > 0);
  clv__session_time_steps(session, false);
  check_run(&f, session);
  check_taken_out(&f, session, 2, "driver(): code 9");
  check_report(session);
  const clv__trace_event *events = clv__session_trace_events(session, &count);
  assert_true(count > 0);
  for (size_t i = 0; i < count; ++i) assert_true(events[i].step == CLV__NO_ID || events[i].step < plan->step_count);
  clv_session_destroy(session);
  end(&f);
}

/* ---- Several requests ---- */

typedef struct caller {
  const fixture *f;
  clv_session *session;
  clv_status status;
  clv_error error;
} caller;

static void *call(void *cookie) {
  caller *c = cookie;
  c->status = run(c->f, c->session, NULL, &c->error);
  return NULL;
}

/* Two runs are on the device when it fails: one of them makes another plan, and both use it. */
static void two_requests_in_flight(void **state) {
  (void)state;
  for (interposer_action action = INTERPOSER_FAIL; action <= INTERPOSER_HANG; ++action) {
    fixture f;
    begin(&f, &(setting){0});
    clv_session *session = session_with(f.plan, action == INTERPOSER_HANG ? HANG_LIMIT_S : 0, 2);
    check_run(&f, session);
    f.script.gather = 2;
    arm(&f, INTERPOSER_execute, action, 0, FOREVER);
    caller callers[2] = {{.f = &f, .session = session}, {.f = &f, .session = session}};
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; ++i) assert_ok(callers[i].status, callers[i].error);
    assert_true(f.script.met >= 2);
    check_taken_out(&f, session, 2, action == INTERPOSER_HANG ? "did not answer" : "driver(): code 9");
    check_run(&f, session);
    clv_session_destroy(session);
    end(&f);
  }
}

/* A device is removed while asynchronous runs are under way or wait for a free request. All of them must end with the right
 * outputs. */
static void while_runs_were_started(void **state) {
  (void)state;
  enum { RUNS = 12 };
  static float rooms[RUNS][ELEMENTS];
  for (interposer_action action = INTERPOSER_FAIL; action <= INTERPOSER_HANG; ++action) {
    fixture f;
    begin(&f, &(setting){0});
    clv_session *session = session_with(f.plan, action == INTERPOSER_HANG ? HANG_LIMIT_S : 0, 3);
    clv_run *runs[RUNS];
    clv_tensor outputs[RUNS];
    clv_error error = {0};
    memset(rooms, 0xee, sizeof rooms);
    arm(&f, INTERPOSER_execute, action, 7, FOREVER);
    for (int i = 0; i < RUNS; ++i) {
      outputs[i] = f.expected;
      outputs[i].data = rooms[i];
      assert_ok(clv_session_start(session, &f.input, 1, &outputs[i], 1, NULL, &runs[i], &error), error);
    }
    for (int i = 0; i < RUNS; ++i) {
      assert_ok(clv_run_wait(runs[i], &error), error);
      assert_same_values(&outputs[i], &f.expected, "a run that was started");
    }
    check_taken_out(&f, session, 2, action == INTERPOSER_HANG ? "did not answer" : "driver(): code 9");
    check_run(&f, session);
    clv_session_destroy(session);
    end(&f);
  }
}

/* ---- Devices that hang ---- */

/* The operation in which the device hangs. */
typedef enum way { IN_A_RUN, IN_A_TIMED_RUN, IN_VERIFY, IN_A_CANCELLED_RUN, WAYS } way;

static void meet(fixture *f, clv_session *session, way how) {
  clv_error error = {0};
  clv__mismatch mismatch;
  clv_run_options options = CLV_RUN_OPTIONS_INIT;
  if (how == IN_VERIFY) {
    assert_ok(clv__session_verify(session, &f->input, 1, NULL, &mismatch, &error), error);
    assert_int_equal(mismatch.partition, CLV__NO_ID);
    return;
  }
  options.time_limit_s = how == IN_A_CANCELLED_RUN ? 0.002 : 0;
  clv__session_time_steps(session, how == IN_A_TIMED_RUN);
  clv_status status = run(f, session, &options, &error);
  clv__session_time_steps(session, false);
  if (how == IN_A_CANCELLED_RUN) {
    assert_int_equal(status, CLV_TIMED_OUT);
    status = run(f, session, NULL, &error);
  }
  assert_ok(status, error);
}

/* Uses the session, and makes another plan and sessions, after the device hung but before it is closed. The device must not be
 * called. */
static void go_on_without(fixture *f, clv_session *session) {
  clv_error error = {0};
  clv__mismatch mismatch;
  check_run(f, session);
  assert_ok(clv__session_verify(session, &f->input, 1, NULL, &mismatch, &error), error);
  clv_session_destroy(session);
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  clv_plan *plan;
  assert_ok(clv_plan_make(f->graph, f->m.devices, &options, &plan, &error), error);
  for (clv_node_id n = 0; n < f->graph->node_count; ++n) {
    assert_int_equal(plan->placement.devices[n], 1);
    assert_non_null(strstr(clv__capability_reason(&plan->capability, n, 0), "did not answer"));
  }
  session = session_with(plan, 0, 1);
  check_run(f, session);
  assert_int_equal(clv__session_incident_count(session), 0);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  session = session_with(f->plan, 0, 1); /* a new session for the first plan, which still uses the device */
  check_run(f, session);
  check_taken_out(f, session, 2, "did not answer");
  clv_session_destroy(session);
}

static void a_device_that_hangs_is_left_alone(void **state) {
  (void)state;
  static const interposer_slot slots[] = {INTERPOSER_execute, INTERPOSER_copy_in, INTERPOSER_copy_out, INTERPOSER_event_record};
  static const uint64_t all = (UINT64_C(1) << INTERPOSER_SLOT_COUNT) - 1;
  for (uint32_t i = 0; i < 4 * WAYS * 4; ++i) {
    interposer_slot slot = slots[i % 4];
    way how = (way)(i / 4 % WAYS);
    fixture f;
    begin(&f,
          &(setting){.without = (i / 16 & 1u) != 0 ? INTERPOSER_BIT(event_notify) : 0, .finish_on_close = (i / 32 & 1u) != 0});
    clv_session *session = session_with(f.plan, SHORT_HANG_LIMIT_S, 1);
    arm(&f, slot, INTERPOSER_HANG, i / 16 % 2, FOREVER);
    meet(&f, session, how);
    check_taken_out(&f, session, 2, "did not answer");
    interposer_log_clear(f.faulty);
    go_on_without(&f, session);
    char called[400];
    clv__release(&f.m.counting.allocator, f.expected.data);
    f.expected.data = NULL;
    clv_plan_destroy(f.plan);
    f.plan = NULL;
    clv_graph_destroy(f.graph);
    f.graph = NULL;
    clv_devices_close(f.m.devices);
    f.m.devices = NULL;
    interposer_log_text(f.faulty, all, called, sizeof called);
    if (strcmp(called, "close") != 0)
      fail_msg("%s, failure %d: the device must only be closed, but these slots were called: %s", interposer_slot_name(slot),
               (int)how, called);
    end(&f);
  }
}

/* Makes layers whose weights are streamed in every run. */
static void make_streamed(fixture *f) {
  test_graph g;
  test_graph_begin(&g, &f->m.counting.allocator, 7);
  test_graph_input(&g, "v0", CLV_F32, 2, DIMS(4, 512));
  for (int i = 0; i < 4; ++i) {
    char weight[16], inputs[32], output[16];
    snprintf(weight, sizeof weight, "w%d", i);
    snprintf(inputs, sizeof inputs, "v%d,w%d", i, i);
    snprintf(output, sizeof output, "v%d", i + 1);
    test_graph_weight(&g, weight, 2, DIMS(512, 512));
    test_graph_node(&g, output, "MatMul", inputs, output);
  }
  f->graph = test_graph_end(&g, "v4");
}

/* Makes an output whose memory the device requests once it knows the size. */
static void make_sized_by_data(fixture *f) {
  test_graph g;
  test_graph_begin(&g, &f->m.counting.allocator, 7);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(4, 512));
  test_graph_node(&g, "relu", "Relu", "x", "r");
  test_graph_node(&g, "where", "NonZero", "r", "y");
  f->graph = test_graph_end(&g, "y");
}

/* A hung device continues when it is closed: it reads weights of a model that was freed, or requests memory for a run that
 * ended. (AddressSanitizer finds accesses to freed memory.) Nodes are pinned to the device, so runs fail. */
static void what_it_may_still_come_upon(void **state) {
  (void)state;
  static const struct {
    const char *option, *pins;
    void (*make)(fixture *f);
    interposer_slot slot;
    uint32_t after;
  } cases[] = {{"faulty:memory=4500K", "v*=faulty", make_streamed, INTERPOSER_copy_in, 1},
               {NULL, "*=faulty", make_sized_by_data, INTERPOSER_execute, 0}};
  static float x[4 * 512];
  for (size_t i = 0; i < 4 * 512; ++i) x[i] = (float)(i % 7) - 3;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    fixture f;
    clv_error error = {0};
    clv_tensor input = f32(2, DIMS(4, 512), x), output = {0};
    open_devices(&f, &(setting){.option = cases[i].option, .finish_on_close = true});
    cases[i].make(&f);
    f.plan = machine_plan(&f.m, f.graph, cases[i].pins, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    uint32_t streamed = 0;
    for (uint32_t t = 0; t < f.plan->transfer_count; ++t) streamed += f.plan->transfers[t].boundary == CLV__BOUNDARY_WEIGHT;
    assert_true((streamed > 0) == (i == 0));
    clv_session *session = session_with(f.plan, HANG_LIMIT_S, 1);
    machine_check_run(session, f.plan, &input, "before");
    arm(&f, cases[i].slot, INTERPOSER_HANG, cases[i].after, 1);
    assert_int_equal(clv_session_run(session, &input, 1, &output, 1, &error), CLV_DEVICE_ERROR);
    assert_non_null(strstr(error.message, "did not answer"));
    assert_int_equal(clv_session_run(session, &input, 1, &output, 1, &error), CLV_DEVICE_ERROR);
    clv_session_destroy(session);
    end(&f); /* destroys the model before it closes the devices */
  }
}

/* A session without a time limit waits for a device that hangs. When another session marks the device as lost, the waiting run
 * must also go on without it. */
static void given_up_by_another_session(void **state) {
  (void)state;
  for (int has_notify = 0; has_notify < 2; ++has_notify) {
    fixture f;
    begin(&f, &(setting){.without = has_notify ? 0 : INTERPOSER_BIT(event_notify)});
    clv_session *limited = session_with(f.plan, HANG_LIMIT_S, 1), *patient = session_with(f.plan, 0, 1);
    f.script.gather = 2; /* both runs reach the device before it hangs */
    arm(&f, INTERPOSER_execute, INTERPOSER_HANG, 0, FOREVER);
    caller callers[2] = {{.f = &f, .session = patient}, {.f = &f, .session = limited}};
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; ++i) assert_ok(callers[i].status, callers[i].error);
    check_taken_out(&f, limited, 2, "did not answer");
    check_taken_out(&f, patient, 2, "did not answer");
    clv_session_destroy(patient);
    clv_session_destroy(limited);
    end(&f);
  }
}

/* ---- Other shapes ---- */

static void shapes_that_a_device_cannot(void **state) {
  (void)state;
  fixture f;
  open_devices(&f, &(setting){.without = INTERPOSER_BIT(instance_resize)});
  test_graph g;
  test_graph_begin(&g, &f.m.counting.allocator, 5);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(test_graph_symbol(&g, "N"), 8));
  test_graph_weight(&g, "w", 2, DIMS(8, 8));
  test_graph_node(&g, "product", "MatMul", "x,w", "p");
  test_graph_node(&g, "relu", "Relu", "p", "y");
  f.graph = test_graph_end(&g, "y");
  f.plan = machine_plan(&f.m, f.graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_int_equal(f.plan->partitions[0].device, 0);
  clv_session *session = session_with(f.plan, 0, 1);
  static float x[64];
  for (size_t i = 0; i < 64; ++i) x[i] = (float)i / 32 - 1;
  clv_tensor input = f32(2, DIMS(2, 8), x);
  machine_check_run(session, f.plan, &input, "the first shape");
  f.script.fate.status = CLV_NOT_SUPPORTED;
  arm(&f, INTERPOSER_instance_create, INTERPOSER_FAIL, 0, FOREVER);
  input.dims[0] = 5;
  machine_check_run(session, f.plan, &input, "a shape that the device cannot run");
  check_taken_out(&f, session, 1, "driver(): code 9");
  input.dims[0] = 2;
  machine_check_run(session, f.plan, &input, "the first shape again");
  clv_session_destroy(session);
  end(&f);
}

/* ---- No memory for another plan ---- */

static void without_memory_for_another_plan(void **state) {
  (void)state;
  for (size_t k = 1;; ++k) {
    fixture f;
    clv_error error = {0};
    begin(&f, &(setting){.is_synchronous = true});
    clv_session *session = session_with(f.plan, 0, 1);
    check_run(&f, session);
    arm(&f, INTERPOSER_execute, INTERPOSER_FAIL, 0, FOREVER);
    size_t calls = f.m.counting.calls;
    f.m.counting.fail_at = calls + k;
    clv_status status = run(&f, session, NULL, &error);
    bool was_reached = f.m.counting.calls >= calls + k;
    f.m.counting.fail_at = 0;
    if (status != CLV_OK) assert_int_equal(status, CLV_DEVICE_ERROR); /* the first error is returned */
    if (status == CLV_OK) check_taken_out(&f, session, 2, "driver(): code 9");
    check_run(&f, session);
    clv_session_destroy(session);
    end(&f);
    if (!was_reached) break;
    assert_true(k < 5000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wherever_it_fails),
      cmocka_unit_test(short_of_memory_once),
      cmocka_unit_test(short_of_memory_for_a_weight),
      cmocka_unit_test(the_first_error_is_told),
      cmocka_unit_test(a_failed_step_is_named),
      cmocka_unit_test(what_the_caller_wants_is_no_failure),
      cmocka_unit_test(two_devices_one_after_the_other),
      cmocka_unit_test(two_devices_and_no_third),
      cmocka_unit_test(times_and_traces_are_of_the_new_plan),
      cmocka_unit_test(two_requests_in_flight),
      cmocka_unit_test(while_runs_were_started),
      cmocka_unit_test(a_device_that_hangs_is_left_alone),
      cmocka_unit_test(what_it_may_still_come_upon),
      cmocka_unit_test(given_up_by_another_session),
      cmocka_unit_test(shapes_that_a_device_cannot),
      cmocka_unit_test(without_memory_for_another_plan),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
