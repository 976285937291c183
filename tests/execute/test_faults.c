/* Devices that fail in each call, at random, by hanging, or by computing wrong values. Whatever happens, runs end in time with
 * the right outputs (or, without fallback, with an error that names the device), nothing leaks, no freed object of the device is
 * used, and the session remains usable.
 *
 * Every schedule is drawn from its seed: the devices, a small random graph, which device runs what, and what fails when.
 * CLEAVE_TEST_PERCENT=1000 runs ten times as many; CLEAVE_TEST_SEED=N runs only the schedule of seed N. */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>

#include "backends/cpu/cpu.h"
#include "backends/vnpu/vnpu.h"
#include "execute/session.h"
#include "machine.h"

enum { SCHEDULES = 5000, SECONDS_EACH = 30, RUNS = 3, MOST_OUTPUTS = 16 };

/* Time limits of devices in schedules that hang. On a loaded machine, devices that work may exceed a limit as well. Such a
 * schedule is repeated with the next limit. */
static const double time_limits_s[] = {0.004, 0.04, 0.4, 4};
enum { TIME_LIMITS = sizeof time_limits_s / sizeof *time_limits_s };

typedef enum fault {
  FAULT_AT_CALL, /* one call fails */
  FAULT_RANDOM,  /* each call may fail */
  FAULT_SLOT,    /* from some stage on, all calls of a slot fail */
  FAULT_SLOT_AT, /* one call of a slot fails */
  FAULT_HANG,    /* the device hangs at a call */
  FAULT_DELAY,   /* some calls are slow */
  FAULT_KINDS
} fault;

/* The stage from which calls fail. */
typedef enum stage { STAGE_OPEN, STAGE_PLAN, STAGE_SESSION, STAGE_FIRST_RUN, STAGE_LATER_RUN, STAGE_COUNT } stage;

typedef struct schedule {
  uint64_t seed, random;
  fault kind;
  stage from;
  bool is_faulty_alone; /* the only device besides the CPU */
  bool is_asynchronous;
  pthread_mutex_t lock; /* protects the members below: calls come from several threads */
  bool is_armed;
  uint64_t left;        /* calls until the one that fails or hangs */
  interposer_slot slot; /* FAULT_SLOT */
  interposer_action action;
  clv_status status;
  uint64_t done;       /* faults so far */
  double time_limit_s; /* of devices; 0: none */
} schedule;

static volatile uint64_t current_seed;
static void on_alarm(int number) {
  char text[64];
  (void)number;
  int size = snprintf(text, sizeof text, "schedule %llu hangs\n", (unsigned long long)current_seed);
  if (write(2, text, (size_t)size) < 0) _exit(2);
  abort();
}

/* ---- Faults ---- */

static bool is_hit(schedule *s, const interposer_call *call) {
  switch (s->kind) {
    case FAULT_AT_CALL:
      return s->left > 0 && --s->left == 0;
    case FAULT_RANDOM:
      return test_random(&s->random) % 12 == 0;
    case FAULT_SLOT:
      return call->slot == s->slot;
    case FAULT_SLOT_AT:
      return call->slot == s->slot && s->left > 0 && --s->left == 0;
    case FAULT_HANG:
      return interposer_slot_enqueues(call->slot) && s->left > 0 && --s->left == 0;
    default:
      return test_random(&s->random) % 16 == 0;
  }
}

static interposer_fate strike(void *user_data, const interposer_call *call) {
  schedule *s = user_data;
  interposer_fate fate = {.status = s->status};
  pthread_mutex_lock(&s->lock);
  if (s->is_armed && call->slot != INTERPOSER_close && is_hit(s, call)) {
    ++s->done;
    fate.action = s->action;
    if (s->kind == FAULT_DELAY) fate.delay_s = 1e-4;
  }
  pthread_mutex_unlock(&s->lock);
  return fate;
}

static void arm(schedule *s, bool is_armed) {
  pthread_mutex_lock(&s->lock);
  s->is_armed = is_armed;
  pthread_mutex_unlock(&s->lock);
}

static void reach(schedule *s, stage now) {
  if (s->from == now) arm(s, true);
}

static const clv_status statuses[] = {CLV_DEVICE_ERROR, CLV_OUT_OF_MEMORY, CLV_NOT_SUPPORTED, CLV_INTERNAL_ERROR, CLV_TOO_LARGE};

static void draw(schedule *s, uint64_t seed) {
  *s = (schedule){.seed = seed, .random = seed * 7919};
  uint64_t *r = &s->random;
  s->kind = (fault)(test_random(r) % FAULT_KINDS);
  if (s->kind == FAULT_DELAY && test_random(r) % 8 != 0) s->kind = FAULT_AT_CALL; /* delays prove little and take time */
  s->from = (stage)(test_random(r) % STAGE_COUNT);
  s->is_faulty_alone = test_random(r) % 2 == 0;
  s->is_asynchronous = s->kind == FAULT_HANG || test_random(r) % 4 != 0;
  s->left = 1 + test_random(r) % (s->kind == FAULT_HANG        ? 8
                                  : s->kind == FAULT_SLOT_AT   ? 2
                                  : s->from >= STAGE_FIRST_RUN ? 10
                                                               : 40);
  do {
    s->slot = (interposer_slot)(test_random(r) % INTERPOSER_SLOT_COUNT);
  } while (!interposer_slot_fails(s->slot));
  s->status = statuses[test_random(r) % (sizeof statuses / sizeof *statuses)];
  s->action = s->kind == FAULT_HANG     ? INTERPOSER_HANG
              : s->kind == FAULT_DELAY  ? INTERPOSER_PASS
              : test_random(r) % 3 == 0 ? INTERPOSER_FAIL_LATER
                                        : INTERPOSER_FAIL;
}

/* ---- Devices, graph and plan of a schedule ---- */

/* The CPU supports every node. The other devices support nodes that the seed chooses. */
static bool supports(void *user_data, const char *device, const clv_node_info *node, char reason[160]) {
  const schedule *s = user_data;
  uint64_t hash = s->seed + (uint8_t)device[0];
  for (const char *at = node->name; *at != '\0'; ++at) hash = hash * 31 + (uint8_t)*at;
  (void)reason;
  return strcmp(device, "cpu") == 0 || test_random(&hash) % 3 != 0;
}

typedef struct world {
  schedule *schedule;
  interposer *faulty;
  test_allocator counting;
  clv_context *context;
  clv_devices *devices;
  clv_graph *graph;
  clv_plan *plan;
  uint32_t input_count, output_count;
  float data[2][32];
  clv_tensor inputs[2], expected[MOST_OUTPUTS];
  char problem[1200]; /* the first one found; "": none */
} world;

/* Records the first problem. It is reported once the world is closed, if the schedule need not be repeated. */
static CLV_PRINTF(2, 3) void complain(world *w, const char *format, ...) {
  va_list arguments;
  if (w->problem[0] != '\0') return;
  va_start(arguments, format);
  vsnprintf(w->problem, sizeof w->problem, format, arguments);
  va_end(arguments);
}

static void check_error(world *w, const clv_error *error, const char *what) {
  if (strstr(error->message, "faulty") == NULL) complain(w, "%s fails without naming the device: %s", what, error->message);
}

static interposer *make_faulty(schedule *s) {
  static const uint64_t left_out[] = {0,
                                      INTERPOSER_CAPTURE,
                                      INTERPOSER_BIT(event_notify),
                                      INTERPOSER_SCRATCH,
                                      INTERPOSER_BIT(instance_resize),
                                      INTERPOSER_BLOBS | INTERPOSER_BIT(event_notify)};
  bool is_npu = test_random(&s->random) % 2 == 0;
  return interposer_create(&(interposer_options){
      .name = "faulty",
      .query = is_npu ? clv__vnpu_backend_query : clv__cpu_backend_query,
      .spec = is_npu ? "all" : NULL,
      .memory_space = s->is_asynchronous && !is_npu ? "far" : NULL, /* a memory space of its own, so that copies are needed */
      .order = s->is_asynchronous ? INTERPOSER_ASYNCHRONOUS : INTERPOSER_SYNCHRONOUS,
      .without = left_out[test_random(&s->random) % (sizeof left_out / sizeof *left_out)],
      .finish_on_close = test_random(&s->random) % 2 == 0,
      .hook = strike,
      .user_data = s});
}

/* Returns false if the device could not be opened. */
static bool world_open(world *w, schedule *s) {
  clv_error error = {0};
  *w = (world){.schedule = s, .faulty = make_faulty(s)};
  pthread_mutex_init(&s->lock, NULL);
  test_allocator_init(&w->counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &w->counting.allocator;
  context.cache_directory = "";
  context.capture = test_random(&s->random) % 2 == 0 ? CLV_CAPTURE_ON : CLV_CAPTURE_OFF;
  assert_ok(clv_context_create(&context, &w->context, &error), error);
  assert_ok(clv_context_add_backend(w->context, interposer_query, w->faulty, &error), error);
  reach(s, STAGE_OPEN);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = s->is_faulty_alone ? "faulty,cpu" : "faulty,npu,cpu";
  devices.thread_count = 1;
  clv_status status = clv_devices_open(w->context, &devices, &w->devices, &error);
  if (status != CLV_OK) check_error(w, &error, "opening the devices");
  return status == CLV_OK;
}

/* Whether the device exceeded its time limit. */
static bool is_lost(const world *w, uint32_t device) {
  return atomic_load(&w->devices->items[device].is_lost);
}

static void world_close(world *w) {
  char misuse[200];
  arm(w->schedule, false);
  clv_plan_destroy(w->plan);
  for (uint32_t i = 0; i < w->output_count; ++i) clv__release(&w->counting.allocator, w->expected[i].data);
  clv_graph_destroy(w->graph);
  bool was_lost = w->devices != NULL && is_lost(w, 0);
  clv_devices_close(w->devices);
  clv_context_destroy(w->context);
  if (!was_lost && interposer_left(w->faulty) > 0) {
    fail_msg("%llu objects of the device were not destroyed", (unsigned long long)interposer_left(w->faulty));
  }
  if (interposer_misused(w->faulty, misuse, sizeof misuse)) fail_msg("%s", misuse);
  if (w->counting.live != 0) fail_msg("%zu allocations were not released", w->counting.live);
  interposer_destroy(w->faulty);
  pthread_mutex_destroy(&w->schedule->lock);
}

static void make_inputs(world *w) {
  clv_error error = {0};
  uint64_t random = w->schedule->seed;
  w->graph = test_random_graph(&w->counting.allocator, w->schedule->seed, 2 + (uint32_t)(test_random(&random) % 8));
  w->input_count = w->graph->input_count;
  w->output_count = w->graph->output_count;
  assert_true(w->input_count <= 2 && w->output_count <= MOST_OUTPUTS);
  for (uint32_t i = 0; i < w->input_count; ++i) {
    for (uint32_t k = 0; k < 32; ++k) w->data[i][k] = test_random_float(&random);
    w->inputs[i] = *clv_graph_input_type(w->graph, i);
    w->inputs[i].data = w->data[i];
  }
  assert_ok(clv__graph_evaluate(w->graph, w->inputs, NULL, w->expected, NULL, NULL, &w->counting.allocator, &error), error);
}

/* Makes the plan. Returns false if a call to the faulty device failed; the error must name the device. */
static bool make_plan(world *w) {
  static const char *const strategies[] = {"contiguous", "contiguous", "ready", "delegate"}; /* most of them ignore prices */
  clv_error error = {0};
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  uint64_t random = w->schedule->seed + 1;
  options.strategy = strategies[test_random(&random) % 4];
  options.objective = test_random(&random) % 2 == 0 ? "overlap" : "latency";
  options.support = supports;
  options.support_user_data = w->schedule;
  reach(w->schedule, STAGE_PLAN);
  clv_status status = clv_plan_make(w->graph, w->devices, &options, &w->plan, &error);
  if (status != CLV_OK) check_error(w, &error, "making the plan");
  return status == CLV_OK;
}

static clv_session_options session_options(const schedule *s) {
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  options.device_time_limit_s = s->time_limit_s;
  options.in_flight = 1 + (uint32_t)(s->seed % 2);
  return options;
}

static clv_status run(world *w, clv_session *session, clv_error *error) {
  static float room[MOST_OUTPUTS][32];
  clv_tensor outputs[MOST_OUTPUTS];
  for (uint32_t i = 0; i < w->output_count; ++i) {
    outputs[i] = w->expected[i];
    outputs[i].data = memset(room[i], 0xee, sizeof room[i]);
  }
  CLV__TRY(clv_session_run(session, w->inputs, w->input_count, outputs, w->output_count, error));
  for (uint32_t i = 0; i < w->output_count; ++i) assert_same_values(&outputs[i], &w->expected[i], "after a fault");
  return CLV_OK;
}

/* ---- Without fallback: runs fail, and succeed again once the device works ---- */

static void run_without_fallback(world *w) {
  clv_error error = {0};
  clv_session *session;
  schedule *s = w->schedule;
  clv_session_options options = session_options(s);
  options.no_fallback = true;
  reach(s, STAGE_SESSION);
  if (clv_session_create(w->plan, &options, &session, &error) != CLV_OK) {
    check_error(w, &error, "creating the session");
    assert_null(session);
    arm(s, false);
    if (clv_session_create(w->plan, &options, &session, &error) != CLV_OK) {
      complain(w, "creating the session fails although the device works again: %s", error.message);
      return;
    }
  }
  for (uint32_t i = 0; i < RUNS; ++i) {
    if (i < 2) reach(s, i == 0 ? STAGE_FIRST_RUN : STAGE_LATER_RUN);
    if (run(w, session, &error) != CLV_OK) check_error(w, &error, "a run");
  }
  arm(s, false);
  if (run(w, session, &error) != CLV_OK) {
    check_error(w, &error, "a run without the device");
    if (!is_lost(w, 0)) complain(w, "the run fails although the device works again: %s", error.message);
  }
  clv_session_destroy(session);
}

/* ---- With fallback: outputs are always right ---- */

static void run_with_fallback(world *w) {
  clv_error error = {0};
  clv_session *session;
  schedule *s = w->schedule;
  clv_session_options options = session_options(s);
  reach(s, STAGE_SESSION);
  if (clv_session_create(w->plan, &options, &session, &error) != CLV_OK) {
    complain(w, "creating the session fails: %s", error.message);
    return;
  }
  for (uint32_t i = 0; i < RUNS; ++i) {
    if (i < 2) reach(s, i == 0 ? STAGE_FIRST_RUN : STAGE_LATER_RUN);
    if (run(w, session, &error) != CLV_OK) complain(w, "run %u fails: %s", i, error.message);
  }
  arm(s, false);
  if (run(w, session, &error) != CLV_OK) complain(w, "the run after the faults fails: %s", error.message);
  clv_session_destroy(session);
}

/* ---- Schedules ---- */

/* Whether a device that works exceeded its time limit: it was lost, or stopped and removed from the session. */
static bool is_slow(const world *w) {
  bool any = false, is_stopped = strstr(w->problem, "it did not finish within") != NULL;
  for (uint32_t d = 1; w->devices != NULL && d < w->devices->count; ++d) {
    char place[80];
    snprintf(place, sizeof place, " on %s: ", w->devices->items[d].name);
    any = any || is_lost(w, d) || (is_stopped && strstr(w->problem, place) != NULL);
  }
  return any;
}

static void begin(uint64_t seed) {
  current_seed = seed;
  alarm(SECONDS_EACH);
}

/* Runs the schedule. Returns whether a fault occurred. */
static bool play(const schedule *drawn, void (*go)(world *)) {
  for (int limit = 0;; ++limit) {
    schedule s = *drawn;
    world w;
    begin(s.seed);
    if (s.kind == FAULT_HANG) s.time_limit_s = time_limits_s[limit];
    bool is_open = world_open(&w, &s);
    if (is_open) make_inputs(&w);
    if (is_open && make_plan(&w)) go(&w);
    bool again = is_slow(&w) && limit + 1 < TIME_LIMITS;
    world_close(&w);
    if (again) continue;
    if (w.problem[0] != '\0') fail_msg("seed %llu: %s", (unsigned long long)s.seed, w.problem);
    return s.done > 0;
  }
}

/* Runs schedules until `count` of them had a fault. Some end before their fault occurs. */
static void schedules(uint64_t first, uint64_t count, void (*go)(world *)) {
  const char *one = getenv("CLEAVE_TEST_SEED");
  uint64_t struck = 0, most = 4 * count;
  if (one != NULL) first = strtoull(one, NULL, 10), most = 1;
  for (uint64_t seed = first; seed < first + most && struck < count; ++seed) {
    schedule s;
    draw(&s, seed);
    struck += play(&s, go);
  }
  alarm(0);
  if (one == NULL) assert_true(struck == count);
}

static void errors_without_fallback(void **state) {
  (void)state;
  schedules(1, test_some(SCHEDULES / 4), run_without_fallback);
}

static void right_answers_with_fallback(void **state) {
  (void)state;
  schedules(100000, test_some(SCHEDULES), run_with_fallback);
}

/* ---- Each call of each slot fails once ---- */

/* Makes a session and runs in which the `at`-th call of the slot fails. Returns false if there are fewer calls. */
static bool fail_at(uint64_t seed, interposer_slot slot, interposer_action action, uint64_t at, void (*go)(world *)) {
  schedule s;
  draw(&s, seed);
  s.kind = FAULT_SLOT_AT, s.from = STAGE_SESSION, s.is_asynchronous = seed % 3 != 0;
  s.slot = slot, s.action = action, s.left = at, s.status = statuses[at % 2];
  return play(&s, go);
}

static void each_call(void (*go)(world *)) {
  uint64_t struck = 0;
  for (interposer_slot slot = 0; slot < INTERPOSER_SLOT_COUNT; ++slot) {
    if (!interposer_slot_fails(slot)) continue;
    for (uint64_t seed = 200000; seed < 200000 + test_some(20); ++seed) {
      for (interposer_action action = INTERPOSER_FAIL; action <= INTERPOSER_FAIL_LATER; ++action) {
        if (action == INTERPOSER_FAIL_LATER && !interposer_slot_enqueues(slot)) continue;
        for (uint64_t at = 1; fail_at(seed, slot, action, at, go); ++at) ++struck;
      }
    }
  }
  alarm(0);
  if (struck < test_some(200)) fail_msg("only %llu calls failed, so the test checks too little", (unsigned long long)struck);
}

static void each_call_without_fallback(void **state) {
  (void)state;
  each_call(run_without_fallback);
}

static void each_call_with_fallback(void **state) {
  (void)state;
  each_call(run_with_fallback);
}

/* ---- Wrong values ---- */

static interposer_fate spoil_one(void *user_data, const interposer_call *call) {
  uint64_t *left = user_data;
  if (call->slot != INTERPOSER_execute || *left == 0 || --*left > 0) return (interposer_fate){0};
  return (interposer_fate){.action = INTERPOSER_CORRUPT};
}

/* Each partition of the device in turn computes wrong values once. Verification names it. */
static void nonsense_is_caught(void **state) {
  (void)state;
  uint32_t caught = 0;
  for (uint64_t seed = 300000; seed < 300000 + test_some(200); ++seed) {
    clv_error error = {0};
    schedule s;
    world w;
    begin(seed);
    draw(&s, seed);
    s.from = STAGE_COUNT;
    assert_true(world_open(&w, &s));
    make_inputs(&w);
    assert_true(make_plan(&w));
    clv_session *session = machine_session(w.plan);
    uint64_t at = 0;
    for (uint32_t p = 0; p < w.plan->partition_count; ++p) {
      clv__mismatch mismatch;
      if (w.plan->partitions[p].device != 0 || w.plan->partitions[p].view->output_count == 0) {
        at += w.plan->partitions[p].device == 0;
        continue; /* without outputs, nothing can be wrong */
      }
      uint64_t left = ++at;
      interposer_set_hook(w.faulty, spoil_one, &left);
      assert_ok(clv__session_verify(session, w.inputs, w.input_count, &mismatch, &error), error);
      if (left != 0) fail_msg("seed %llu: partition %u was not run", (unsigned long long)seed, p);
      if (mismatch.partition != p)
        fail_msg("seed %llu: partition %u is wrong, but verification names %u", (unsigned long long)seed, p, mismatch.partition);
      ++caught;
    }
    interposer_set_hook(w.faulty, NULL, NULL);
    assert_ok(run(&w, session, &error), error);
    clv_session_destroy(session);
    world_close(&w);
  }
  alarm(0);
  assert_true(caught > 0);
}

int main(void) {
  signal(SIGALRM, on_alarm);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nonsense_is_caught),          cmocka_unit_test(each_call_without_fallback),
      cmocka_unit_test(errors_without_fallback),     cmocka_unit_test(each_call_with_fallback),
      cmocka_unit_test(right_answers_with_fallback),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
