/* Many runs with more shapes than captures, in several threads, while memory is freed and allocated: every result matches the
 * reference, and memory does not grow. Also tests the settings of captures, and that replay gives the same bits as execution.
 * Also run this test under ThreadSanitizer. */
#include <pthread.h>
#include <stdatomic.h>

#include "device/memory_pool.h"
#include "execute/capture/capture.h"
#include "machine.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { RUNS = 1000 };
#else
enum { RUNS = 10000 };
#endif
enum { SHAPES = 20, VARIANTS = 5, THREADS = 2, PHASES = 10, COLUMNS = 8, MOST = SHAPES * COLUMNS };

static const char fixed_shapes[] = "{\"static_shapes\": true, \"operators\": \"all\"}";

/* ---- An allocator that counts allocated bytes ---- */

typedef struct byte_counter {
  clv_allocator allocator;
  _Atomic(size_t) live_bytes, live_count;
} byte_counter;

enum { HEADER = 64 };

static void *count_allocate(void *user_data, size_t size_bytes, size_t alignment) {
  byte_counter *counter = user_data;
  assert_true(alignment <= HEADER && size_bytes < SIZE_MAX - HEADER);
  char *block = aligned_alloc(HEADER, (size_bytes + 2 * HEADER - 1) / HEADER * HEADER);
  if (block == NULL) return NULL;
  memcpy(block, &size_bytes, sizeof size_bytes);
  atomic_fetch_add(&counter->live_bytes, size_bytes);
  atomic_fetch_add(&counter->live_count, 1);
  return block + HEADER;
}

static void count_release(void *user_data, void *pointer) {
  byte_counter *counter = user_data;
  size_t size_bytes;
  if (pointer == NULL) return;
  memcpy(&size_bytes, (char *)pointer - HEADER, sizeof size_bytes);
  atomic_fetch_sub(&counter->live_bytes, size_bytes);
  atomic_fetch_sub(&counter->live_count, 1);
  free((char *)pointer - HEADER);
}

/* ---- A model, its expected outputs, and its sessions ---- */

typedef struct world {
  byte_counter counter;
  clv_context *context;
  clv_devices *devices;
  clv_graph *graph;
  float in[VARIANTS][MOST], expected[SHAPES][VARIANTS][2][MOST];
} world;

static void open_context(world *w, clv_capture_policy mode, int32_t entries) {
  static const char *const specs[] = {fixed_shapes};
  clv_error error = {0};
  memset(w, 0, sizeof *w);
  w->counter.allocator = (clv_allocator){&w->counter, count_allocate, count_release};
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &w->counter.allocator;
  context.cache_directory = "";
  context.capture = mode;
  context.capture_cache_entries = entries;
  assert_ok(clv_context_create(&context, &w->context, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = "npu,cpu";
  devices.npu_specs = specs;
  devices.npu_spec_count = 1;
  devices.thread_count = 1;
  assert_ok(clv_devices_open(w->context, &devices, &w->devices, &error), error);
}

static void close_context(world *w) {
  clv_graph_destroy(w->graph);
  clv_devices_close(w->devices);
  clv_context_destroy(w->context);
  assert_int_equal(atomic_load(&w->counter.live_count), 0);
}

/* "y" depends on nodes on both devices; "z" is computed by the CPU alone, from and to the caller's memory. */
static void make_model(world *w) {
  clv_error error = {0};
  test_graph g;
  test_graph_begin(&g, &w->counter.allocator, 7);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(test_graph_symbol(&g, "N"), COLUMNS));
  test_graph_weight(&g, "b", 1, DIMS(COLUMNS));
  test_graph_weight(&g, "w", 2, DIMS(COLUMNS, COLUMNS));
  test_graph_node(&g, "npu/first", "Add", "x,b", "t");
  test_graph_node(&g, "cpu/middle", "Tanh", "t", "u");
  test_graph_node(&g, "cpu/aside", "Mul", "x,b", "z");
  test_graph_node(&g, "npu/last", "MatMul", "u,w", "y");
  w->graph = test_graph_end(&g, "y,z");
  uint64_t random = 11;
  for (size_t i = 0; i < VARIANTS * MOST; ++i) (&w->in[0][0])[i] = test_random_float(&random);
  for (int64_t n = 1; n <= SHAPES; ++n) {
    for (int v = 0; v < VARIANTS; ++v) {
      clv_tensor input = f32(2, DIMS(n, COLUMNS), w->in[v]), outputs[2] = {{0}};
      assert_ok(clv__graph_evaluate(w->graph, &input, NULL, outputs, NULL, NULL, w->graph->allocator, &error), error);
      for (int o = 0; o < 2; ++o) {
        memcpy(w->expected[n - 1][v][o], outputs[o].data, (size_t)n * COLUMNS * sizeof(float));
        clv__release(w->graph->allocator, outputs[o].data);
      }
    }
  }
}

typedef struct runner {
  world *w;
  clv_plan *plan;
  clv_session *session;
  bool owns_session;
  uint64_t random;
  uint32_t next; /* the next shape, in cyclic order */
  bool is_cyclic;
  uint32_t runs;
  char wrong[1100];
} runner;

static clv_status open_runner(runner *r, uint32_t in_flight, uint32_t prepared_shapes, clv_error *error) {
  clv_assignment pins[] = {{"npu/*", "npu"}, {"cpu/*", "cpu"}};
  clv_plan_options plan = CLV_PLAN_OPTIONS_INIT;
  plan.strategy = "contiguous";
  plan.pins = pins;
  plan.pin_count = 2;
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  options.in_flight = in_flight;
  options.prepared_shapes = prepared_shapes;
  options.bucket_multiple = 1;
  r->owns_session = true;
  CLV__TRY(clv_plan_make(r->w->graph, r->w->devices, &plan, &r->plan, error));
  return clv_session_create(r->plan, &options, &r->session, error);
}

static void close_runner(runner *r) {
  if (!r->owns_session) return;
  clv_session_destroy(r->session);
  clv_plan_destroy(r->plan);
}

/* Makes one run in memory that is overwritten and freed afterwards. The next run often gets the same memory. */
static bool run_once(runner *r) {
  clv_error error = {0};
  uint32_t n = 1 + (r->is_cyclic ? r->next++ % SHAPES : (uint32_t)(test_random(&r->random) % SHAPES));
  uint32_t v = (uint32_t)(test_random(&r->random) % VARIANTS);
  size_t size_bytes = n * COLUMNS * sizeof(float);
  float *memory[3];
  for (int i = 0; i < 3; ++i) {
    memory[i] = malloc(test_random(&r->random) % 4 == 0 ? size_bytes : sizeof r->w->in[0]);
    if (memory[i] == NULL) return false;
    memset(memory[i], 0x7f, size_bytes);
  }
  memcpy(memory[0], r->w->in[v], size_bytes);
  clv_tensor input = f32(2, DIMS(n, COLUMNS), memory[0]);
  clv_tensor outputs[2] = {f32(2, DIMS(n, COLUMNS), memory[1]), f32(2, DIMS(n, COLUMNS), memory[2])};
  if (clv_session_run(r->session, &input, 1, outputs, 2, &error) != CLV_OK)
    snprintf(r->wrong, sizeof r->wrong, "%s", error.message);
  for (uint32_t i = 0; i < 2 * n * COLUMNS && r->wrong[0] == '\0'; ++i) {
    uint32_t o = i % 2, k = i / 2;
    float is = memory[1 + o][k], should = r->w->expected[n - 1][v][o][k];
    if (fabsf(is - should) <= 1e-5f) continue;
    snprintf(r->wrong, sizeof r->wrong, "run %u, %u rows, output %u: element %u is %g, expected %g", r->runs, n, o, k, (double)is,
             (double)should);
  }
  for (int i = 0; i < 3; ++i) {
    memset(memory[i], 0x7f, size_bytes);
    free(memory[i]);
  }
  ++r->runs;
  return r->wrong[0] == '\0';
}

static void *run_phase(void *argument) {
  runner *r = argument;
  for (int i = 0; i < RUNS / PHASES / THREADS && run_once(r); ++i) {
    if (test_random(&r->random) % 64 == 0) clv__memory_pool_trim(r->w->devices); /* buffers are freed and allocated again */
  }
  return NULL;
}

/* After a phase, makes another session, which gets memory that other sessions used. */
static void *run_and_reopen(void *argument) {
  runner *r = argument;
  clv_error error = {0};
  (void)run_phase(r);
  close_runner(r);
  r->session = NULL;
  r->plan = NULL;
  clv__memory_pool_trim(r->w->devices);
  if (open_runner(r, 1, 4, &error) != CLV_OK) snprintf(r->wrong, sizeof r->wrong, "%s", error.message);
  return NULL;
}

static size_t live_bytes(const world *w) {
  size_t bytes = atomic_load(&w->counter.live_bytes);
  for (uint32_t space = 0; space < w->devices->space_count; ++space) {
    clv__memory_pool_counters counters;
    clv__memory_pool_counters_get(w->devices, space, &counters);
    bytes += space == CLV__SPACE_HOST ? 0 : counters.in_use_bytes + counters.kept_bytes;
  }
  return bytes;
}

/* Runs all runners at once, in phases. Returns the most memory between phases, when nothing runs. */
static size_t run_phases(const world *w, runner *runners, uint32_t count, void *(*phase)(void *), int phases) {
  size_t most = 0;
  for (int p = 0; p < phases; ++p) {
    pthread_t threads[THREADS];
    for (uint32_t i = 0; i < count; ++i) assert_int_equal(pthread_create(&threads[i], NULL, phase, &runners[i]), 0);
    for (uint32_t i = 0; i < count; ++i) pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < count; ++i) {
      if (runners[i].wrong[0] != '\0') fail_msg("thread %u: %s", i, runners[i].wrong);
    }
    const size_t now = live_bytes(w);
    if (now > most) most = now;
  }
  return most;
}

/* The shapes with captures differ from phase to phase, and so does the memory that captures need. On a busy machine, two runs may
 * first be in flight at once in a late phase, which allocates memory for the second request. So if memory has grown, it must not
 * grow again: a leak does, by more than a tenth in twice as many phases if it has made more than a tenth before. */
static void run_all(const world *w, runner *runners, uint32_t count, void *(*phase)(void *)) {
  const size_t first = run_phases(w, runners, count, phase, PHASES / 2);
  const size_t second = run_phases(w, runners, count, phase, PHASES / 2);
  if (second <= first + first / 10) return;
  const size_t third = run_phases(w, runners, count, phase, PHASES);
  if (third > second + second / 10) fail_msg("memory grew from %zu to %zu, then to %zu bytes", first, second, third);
}

static uint64_t runs_of(const runner *runners) {
  uint64_t runs = 0;
  for (uint32_t i = 0; i < THREADS; ++i) runs += runners[i].runs;
  assert_true(runs == RUNS || runs == 2 * RUNS); /* twice: see run_all() */
  return runs;
}

static void check_counters(const clv_session *session, uint64_t runs, double least_hits) {
  for (uint32_t d = 0; d < 2; ++d) {
    clv__capture_counters c;
    assert_true(clv__session_captures(session, d, &c));
    assert_int_equal(c.failures, 0);
    assert_int_equal(c.hits + c.misses, runs);
    assert_true(c.entries <= 12);
    assert_true(c.captures <= c.misses);
    print_message("device %u: %llu hits, %llu captures and %llu evictions in %llu runs\n", d, (unsigned long long)c.hits,
                  (unsigned long long)c.captures, (unsigned long long)c.evictions, (unsigned long long)runs);
    if ((double)c.hits < least_hits * (double)runs)
      fail_msg("%llu hits in %llu runs, expected at least %.0f", (unsigned long long)c.hits, (unsigned long long)runs,
               least_hits * (double)runs);
  }
}

static void each_with_a_session(bool is_cyclic, void *(*phase)(void *), double least_hits) {
  static world w;
  clv_error error = {0};
  open_context(&w, CLV_CAPTURE_AUTO, -1);
  make_model(&w);
  runner runners[THREADS];
  for (uint32_t i = 0; i < THREADS; ++i) {
    runners[i] = (runner){.w = &w, .random = 77 + i, .is_cyclic = is_cyclic};
    assert_ok(open_runner(&runners[i], 1, 4, &error), error);
  }
  run_all(&w, runners, THREADS, phase);
  check_counters(runners[0].session, runs_of(runners), least_hits);
  for (uint32_t i = 0; i < THREADS; ++i) close_runner(&runners[i]);
  close_context(&w);
}

static void shapes_in_random_order(void **state) {
  (void)state;
  each_with_a_session(false, run_phase, 0.2);
}

/* Runs use more shapes than there are captures, in cyclic order. A cache that always admits the latest capture would have no
 * hits. */
static void shapes_in_cyclic_order(void **state) {
  (void)state;
  each_with_a_session(true, run_phase, 0.2);
}

static void sessions_that_come_and_go(void **state) {
  (void)state;
  each_with_a_session(false, run_and_reopen, 0);
}

static void one_session_with_two_in_flight(void **state) {
  (void)state;
  static world w;
  clv_error error = {0};
  open_context(&w, CLV_CAPTURE_ON, -1);
  make_model(&w);
  runner runners[THREADS] = {{.w = &w, .random = 5}, {.w = &w, .random = 6}};
  assert_ok(open_runner(&runners[0], THREADS, 6, &error), error);
  runners[1].session = runners[0].session;
  run_all(&w, runners, THREADS, run_phase);
  check_counters(runners[0].session, runs_of(runners), 0.1);
  close_runner(&runners[0]);
  close_context(&w);
}

/* ---- Settings ---- */

static void few_entries(void **state) {
  (void)state;
  static world w;
  for (int32_t entries = 0; entries < 2; ++entries) {
    clv_error error = {0};
    open_context(&w, CLV_CAPTURE_ON, entries);
    make_model(&w);
    runner r = {.w = &w, .random = 3};
    assert_ok(open_runner(&r, 1, 0, &error), error);
    for (int i = 0; i < 200; ++i) {
      if (!run_once(&r)) fail_msg("%s", r.wrong);
    }
    r.is_cyclic = true;
    for (int i = 0; i < 20; ++i) { /* two shapes, ten runs each */
      r.next = i < 10 ? 3 : 4;
      if (!run_once(&r)) fail_msg("%s", r.wrong);
    }
    clv__capture_counters c;
    clv__issue_info info;
    clv__session_issue(r.session, 0, &info);
    assert_int_equal(clv__session_captures(r.session, 0, &c), entries > 0);
    if (entries == 0) {
      assert_int_equal(info.issue, CLV__ISSUE_EAGER);
      assert_string_equal(info.why, "capture is off");
    } else {
      assert_true(c.entries == 1 && c.hits > 5);
    }
    close_runner(&r);
    close_context(&w);
  }
}

static clv_status create_with(const char *name, const char *value, clv_error *error) {
  clv_context *context = NULL;
  *error = (clv_error){0};
  assert_int_equal(setenv(name, value, 1), 0);
  clv_status status = clv_context_create(NULL, &context, error);
  assert_int_equal(context != NULL, status == CLV_OK);
  clv_context_destroy(context);
  unsetenv(name);
  return status;
}

static void settings_from_the_environment(void **state) {
  (void)state;
  static const char *const good[][2] = {
      {"CLEAVE_GRAPH", "off"},         {"CLEAVE_GRAPH", "on"},        {"CLEAVE_GRAPH", "auto"},
      {"CLEAVE_GRAPH_CACHE", "0"},     {"CLEAVE_GRAPH_CACHE", "1"},   {"CLEAVE_GRAPH_CACHE", "12"},
      {"CLEAVE_PREFILL_GRAPH", "on"},  {"CLEAVE_PREFILL_GRAPH", "0"}, {"CLEAVE_PREFILL_GRAPH", "true"},
      {"CLEAVE_PREFILL_GRAPH", "yes"}, {"CLEAVE_PREFILL_GRAPH", "no"}};
  static const char *const bad[][2] = {{"CLEAVE_GRAPH", "maybe"},
                                       {"CLEAVE_GRAPH_CACHE", "many"},
                                       {"CLEAVE_GRAPH_CACHE", "-1"},
                                       {"CLEAVE_GRAPH_CACHE", "12 "},
                                       {"CLEAVE_GRAPH_CACHE", "99999999999999999999"},
                                       {"CLEAVE_PREFILL_GRAPH", "2"},
                                       {"CLEAVE_PREFILL_GRAPH", "perhaps"}};
  clv_error error;
  for (size_t i = 0; i < sizeof good / sizeof *good; ++i) assert_ok(create_with(good[i][0], good[i][1], &error), error);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    assert_int_equal(create_with(bad[i][0], bad[i][1], &error), CLV_INVALID_ARGUMENT);
    if (strstr(error.message, bad[i][0]) == NULL || strstr(error.message, bad[i][1]) == NULL)
      fail_msg("the error must contain the variable '%s' and its value '%s': %s", bad[i][0], bad[i][1], error.message);
  }
}

/* ---- Replay gives the same bits as execution ---- */

enum { NODES = 20, SEEDS = RUNS / 250, MOST_OUTPUTS = 16, ELEMENTS = 32, SAME_RUNS = 4 };

typedef struct bits {
  float out[SAME_RUNS][MOST_OUTPUTS][ELEMENTS];
  uint32_t replayed; /* number of partitions that were replayed in the last run */
} bits;

static void run_mode(uint64_t seed, clv_capture_policy mode, bits *result) {
  static world w;
  static float in[2][ELEMENTS];
  clv_error error = {0};
  memset(result, 0, sizeof *result);
  open_context(&w, mode, -1);
  w.graph = test_random_graph(&w.counter.allocator, seed, NODES);
  uint64_t random = seed;
  clv_assignment pins[NODES];
  for (uint32_t n = 0; n < NODES; ++n)
    pins[n] = (clv_assignment){w.graph->nodes[n].name, test_random(&random) % 2 == 0 ? "npu" : "cpu"};
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  options.split = seed % 2 == 0 ? "convex" : NULL;
  options.pins = pins;
  options.pin_count = NODES;
  clv_plan *plan;
  clv_session *session;
  assert_ok(clv_plan_make(w.graph, w.devices, &options, &plan, &error), error);
  assert_ok(clv_session_create(plan, NULL, &session, &error), error);
  uint32_t count = w.graph->output_count;
  assert_true(count <= MOST_OUTPUTS && w.graph->input_count <= 2);
  for (int run = 0; run < SAME_RUNS; ++run) {
    clv_tensor inputs[2], outputs[MOST_OUTPUTS];
    for (size_t i = 0; i < 2 * ELEMENTS; ++i) (&in[0][0])[i] = test_random_float(&random);
    for (uint32_t i = 0; i < w.graph->input_count; ++i) inputs[i] = f32(2, DIMS(4, 8), in[i]);
    for (uint32_t i = 0; i < count; ++i) outputs[i] = f32(2, DIMS(4, 8), result->out[run][i]);
    assert_ok(clv_session_run(session, inputs, w.graph->input_count, outputs, count, &error), error);
  }
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    clv__issue_info info;
    clv__session_issue(session, p, &info);
    result->replayed += info.issue == CLV__ISSUE_REPLAYED;
  }
  if (mode != CLV_CAPTURE_OFF) assert_int_equal(result->replayed, plan->partition_count);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  close_context(&w);
}

static void the_same_bits(void **state) {
  (void)state;
  static bits off, on, automatic;
  for (uint64_t seed = 0; seed < SEEDS; ++seed) {
    run_mode(seed, CLV_CAPTURE_OFF, &off);
    run_mode(seed, CLV_CAPTURE_ON, &on);
    run_mode(seed, CLV_CAPTURE_AUTO, &automatic);
    assert_int_equal(off.replayed, 0);
    if (memcmp(off.out, on.out, sizeof off.out) != 0)
      fail_msg("seed %llu: the results of the replay differ from those without capture", (unsigned long long)seed);
    if (memcmp(off.out, automatic.out, sizeof off.out) != 0)
      fail_msg("seed %llu: the results with automatic capture differ from those without capture", (unsigned long long)seed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shapes_in_random_order),
      cmocka_unit_test(shapes_in_cyclic_order),
      cmocka_unit_test(sessions_that_come_and_go),
      cmocka_unit_test(one_session_with_two_in_flight),
      cmocka_unit_test(few_entries),
      cmocka_unit_test(settings_from_the_environment),
      cmocka_unit_test(the_same_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
