/* Random graphs under random placements over the virtual NPU, an OpenCL device and the CPU: replay gives the same bits as
 * execution, both match the reference, and requests in flight at the same time do not affect each other. The OpenCL device works
 * in host memory or has its own memory. Skipped if there is no OpenCL device. */
#include <pthread.h>

#include "execute/capture/capture.h"
#include "machine.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SEEDS = 8 };
#else
enum { SEEDS = 40 };
#endif
enum { NODES = 20, RUNS = 4, THREADS = 2, IN_FLIGHT_RUNS = 20, MOST_OUTPUTS = 16, ELEMENTS = 32 };

/* Without fusion, all graphs use the same dozen kernels. With fusion, nearly every partition has kernels of its own to compile,
 * so only FUSED_SEEDS seeds are tried. */
static const char *const ways[][2] = {
    {"opencl:memory=auto", "opencl:fuse=off"}, {"opencl:memory=own", "opencl:fuse=off"}, {"opencl:memory=own", "opencl:fuse=on"}};
enum { WAYS = 3, FUSED_SEEDS = 3 };

static void open_devices(machine *m, clv_capture_policy mode, const char *const *device_options) {
  static const char *const specs[] = {"all"};
  clv_error error = {0};
  test_allocator_init(&m->counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.capture = mode;
  context.cache_directory = "";
  assert_ok(clv_context_create(&context, &m->context, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = "npu,opencl,cpu";
  devices.npu_specs = specs;
  devices.npu_spec_count = 1;
  devices.device_options = device_options;
  devices.device_option_count = 2;
  devices.thread_count = 1;
  clv_status status = clv_devices_open(m->context, &devices, &m->devices, &error);
  if (status == CLV_NOT_SUPPORTED) {
    print_message("skipped: %s\n", error.message);
    clv_context_destroy(m->context);
    skip();
  }
  assert_ok(status, error);
}

static clv_plan *random_plan(machine *m, const clv_graph *graph, uint64_t seed) {
  static const char *const splits[] = {NULL, "linear", "convex", "fewest"};
  clv_assignment pins[NODES];
  clv_error error = {0};
  uint64_t random = seed;
  for (uint32_t n = 0; n < NODES; ++n) {
    uint32_t device = (uint32_t)(test_random(&random) % clv_devices_count(m->devices));
    pins[n] = (clv_assignment){graph->nodes[n].name, clv_devices_name(m->devices, device)};
  }
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  options.split = splits[seed % 4];
  options.pins = pins;
  options.pin_count = NODES;
  clv_plan *plan;
  assert_ok(clv_plan_make(graph, m->devices, &options, &plan, &error), error);
  return plan;
}

static clv_session *open_session(const clv_plan *plan, uint32_t in_flight) {
  clv_error error = {0};
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  options.in_flight = in_flight;
  options.no_fallback = true; /* a fallback to the CPU would hide failures */
  clv_session *session;
  assert_ok(clv_session_create(plan, &options, &session, &error), error);
  return session;
}

typedef struct values {
  float in[2][ELEMENTS], out[MOST_OUTPUTS][ELEMENTS], expected[MOST_OUTPUTS][ELEMENTS];
} values;

static void make_values(const clv_graph *graph, values *v, uint64_t *random) {
  clv_error error = {0};
  clv_tensor inputs[2], expected[MOST_OUTPUTS] = {{0}};
  assert_true(graph->output_count <= MOST_OUTPUTS && graph->input_count <= 2);
  memset(v, 0, sizeof *v);
  for (size_t i = 0; i < 2 * ELEMENTS; ++i) (&v->in[0][0])[i] = test_random_float(random);
  for (uint32_t i = 0; i < graph->input_count; ++i) inputs[i] = f32(2, DIMS(4, 8), v->in[i]);
  assert_ok(clv__graph_evaluate(graph, inputs, NULL, expected, NULL, NULL, graph->allocator, &error), error);
  for (uint32_t i = 0; i < graph->output_count; ++i) {
    memcpy(v->expected[i], expected[i].data, sizeof v->expected[i]);
    clv__release(graph->allocator, expected[i].data);
  }
}

static clv_status run(clv_session *session, const clv_graph *graph, values *v, clv_error *error) {
  clv_tensor inputs[2], outputs[MOST_OUTPUTS];
  for (uint32_t i = 0; i < graph->input_count; ++i) inputs[i] = f32(2, DIMS(4, 8), v->in[i]);
  for (uint32_t i = 0; i < graph->output_count; ++i) outputs[i] = f32(2, DIMS(4, 8), v->out[i]);
  return clv_session_run(session, inputs, graph->input_count, outputs, graph->output_count, error);
}

/* Compares the outputs with the expected values, and describes the first difference in `what`. The tolerance is relative to the
 * largest element, because products and squares lose precision in smaller ones. */
static bool is_right(const clv_graph *graph, const values *v, char *what, size_t what_bytes) {
  for (uint32_t o = 0; o < graph->output_count; ++o) {
    double largest = 1;
    for (int i = 0; i < ELEMENTS; ++i) largest = fmax(largest, fabs((double)v->expected[o][i]));
    for (int i = 0; i < ELEMENTS; ++i) {
      double is = v->out[o][i], should = v->expected[o][i];
      if (fabs(is - should) <= 1e-5 * largest || (isnan(is) && isnan(should)) || is == should) continue;
      snprintf(what, what_bytes, "output %u: element %d is %g, expected %g", o, i, is, should);
      return false;
    }
  }
  return true;
}

/* ---- Replay gives the same bits as execution ---- */

typedef struct bits {
  float out[RUNS][MOST_OUTPUTS][ELEMENTS];
} bits;

static void run_mode(machine *m, const clv_graph *graph, uint64_t seed, bool is_captured, bits *result) {
  clv_error error = {0};
  clv_plan *plan = random_plan(m, graph, seed);
  clv_session *session = open_session(plan, 1);
  uint64_t random = seed;
  for (int r = 0; r < RUNS; ++r) {
    static values given[3]; /* in turn, so that a replay uses other memory than the run before */
    values *v = &given[r % 3];
    char what[160];
    make_values(graph, v, &random);
    assert_ok(run(session, graph, v, &error), error);
    if (!is_right(graph, v, what, sizeof what))
      fail_msg("seed %llu, %s, run %d: %s", (unsigned long long)seed, is_captured ? "replayed" : "executed", r, what);
    memcpy(result->out[r], v->out, sizeof v->out);
  }
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    clv__issue_info info;
    clv__session_issue(session, p, &info);
    assert_int_equal(info.issue, is_captured ? CLV__ISSUE_REPLAYED : CLV__ISSUE_EAGER);
  }
  clv_session_destroy(session);
  clv_plan_destroy(plan);
}

static void the_same_bits(void **state) {
  (void)state;
  static bits off, on;
  for (int way = 0; way < WAYS; ++way) {
    machine eager, replay;
    open_devices(&eager, CLV_CAPTURE_OFF, ways[way]);
    open_devices(&replay, CLV_CAPTURE_ON, ways[way]);
    for (uint64_t seed = 0; seed < (way == WAYS - 1 ? FUSED_SEEDS : SEEDS); ++seed) {
      clv_graph *graph = test_random_graph(clv__allocator_default(), seed, NODES);
      memset(&off, 0, sizeof off);
      memset(&on, 0, sizeof on);
      run_mode(&eager, graph, seed, false, &off);
      run_mode(&replay, graph, seed, true, &on);
      if (memcmp(&off, &on, sizeof off) != 0)
        fail_msg("seed %llu, %s: the results of the replay differ from those without capture", (unsigned long long)seed,
                 ways[way][0]);
      clv_graph_destroy(graph);
    }
    clv_devices_close(eager.devices);
    clv_context_destroy(eager.context);
    clv_devices_close(replay.devices);
    clv_context_destroy(replay.context);
  }
}

/* ---- Several requests in flight ---- */

typedef struct runner {
  clv_session *session;
  const clv_graph *graph;
  uint64_t random;
  values given[4];
  char wrong[1200];
} runner;

static void *run_many(void *argument) {
  runner *r = argument;
  clv_error error = {0};
  for (int i = 0; i < IN_FLIGHT_RUNS && r->wrong[0] == '\0'; ++i) {
    values *v = &r->given[test_random(&r->random) % 4];
    memset(v->out, 0x7f, sizeof v->out);
    if (run(r->session, r->graph, v, &error) != CLV_OK)
      snprintf(r->wrong, sizeof r->wrong, "run %d: %s", i, error.message);
    else
      (void)is_right(r->graph, v, r->wrong, sizeof r->wrong);
  }
  return NULL;
}

static void two_in_flight(void **state) {
  (void)state;
  static runner runners[THREADS];
  for (int way = 0; way < 2; ++way) {
    machine m;
    open_devices(&m, CLV_CAPTURE_AUTO, ways[way]);
    for (uint64_t seed = 0; seed < SEEDS / 4; ++seed) {
      clv_graph *graph = test_random_graph(clv__allocator_default(), seed, NODES);
      clv_plan *plan = random_plan(&m, graph, seed);
      clv_session *session = open_session(plan, THREADS);
      pthread_t threads[THREADS];
      for (int t = 0; t < THREADS; ++t) {
        runners[t] = (runner){.session = session, .graph = graph, .random = seed * THREADS + (uint64_t)t};
        for (int k = 0; k < 4; ++k) make_values(graph, &runners[t].given[k], &runners[t].random);
        assert_int_equal(pthread_create(&threads[t], NULL, run_many, &runners[t]), 0);
      }
      for (int t = 0; t < THREADS; ++t) pthread_join(threads[t], NULL);
      for (int t = 0; t < THREADS; ++t) {
        if (runners[t].wrong[0] != '\0') fail_msg("seed %llu, thread %d: %s", (unsigned long long)seed, t, runners[t].wrong);
      }
      clv_session_destroy(session);
      clv_plan_destroy(plan);
      clv_graph_destroy(graph);
    }
    clv_devices_close(m.devices);
    clv_context_destroy(m.context);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_bits), cmocka_unit_test(two_in_flight)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
