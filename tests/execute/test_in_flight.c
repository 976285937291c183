/* Several requests in flight on devices with little memory: a session whose requests do not fit is refused, and the error
 * states how many would fit; otherwise all of them run at the same time, within the device's memory, and no device is
 * removed. */
#include "machine.h"

enum { ROWS = 16, WIDTH = 24, CHAIN = 6 };

/* Products and sums, alternately on two devices, so that values cross between them. */
static clv_graph *chain(const clv_allocator *allocator) {
  test_graph g;
  char name[16], in[40], out[16];
  test_graph_begin(&g, allocator, 3);
  test_graph_input(&g, "v0", CLV_F32, 2, DIMS(ROWS, WIDTH));
  for (uint32_t i = 0; i < CHAIN; ++i) {
    snprintf(name, sizeof name, "w%u", i);
    test_graph_weight(&g, name, 2, DIMS(WIDTH, WIDTH));
    snprintf(in, sizeof in, "v%u,w%u", i, i);
    snprintf(out, sizeof out, "p%u", i);
    snprintf(name, sizeof name, "product%u", i);
    test_graph_node(&g, name, "MatMul", in, out);
    snprintf(in, sizeof in, "p%u,v%u", i, i);
    snprintf(out, sizeof out, "v%u", i + 1);
    snprintf(name, sizeof name, "sum%u", i);
    test_graph_node(&g, name, "Add", in, out);
  }
  return test_graph_end(&g, out);
}

typedef struct scene {
  machine m;
  clv_graph *graph;
  clv_plan *plan;
} scene;

/* Makes the plan on an NPU with `memory_bytes` of memory (0: no limit) and a second NPU without a limit. Returns false if the
 * model does not fit. */
static bool begin(scene *s, uint64_t memory_bytes) {
  char first[200];
  const char *const specs[] = {
      first, "{\"name\": \"two\", \"operators\": \"all\", \"speed\": {\"launch_overhead_us\": 200, \"copy_latency_us\": 20}}"};
  snprintf(first, sizeof first, "{\"name\": \"one\", \"operators\": \"all\", \"alignment\": 64, \"memory\": %llu}",
           (unsigned long long)memory_bytes);
  machine_open(&s->m, "one,two", 2, specs);
  s->graph = chain(&s->m.counting.allocator);
  const clv_assignment pins[] = {{"product*", "one"}, {"sum*", "two"}};
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  options.pins = pins;
  options.pin_count = 2;
  clv_error error = {0};
  return clv_plan_make(s->graph, s->m.devices, &options, &s->plan, &error) == CLV_OK;
}

static void end(scene *s) {
  clv_plan_destroy(s->plan);
  clv_graph_destroy(s->graph);
  machine_close(&s->m);
}

static clv_status open_session(const scene *s, uint32_t in_flight, clv_session **session, clv_error *error) {
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  options.in_flight = in_flight;
  return clv_session_create(s->plan, &options, session, error);
}

/* Runs all requests at the same time, twice, and checks their outputs and the memory of the limited device. */
static void check_session(const scene *s, clv_session *session, uint32_t in_flight) {
  static float data[CLV_MAX_IN_FLIGHT][ROWS * WIDTH], results[CLV_MAX_IN_FLIGHT][ROWS * WIDTH];
  clv_run *runs[CLV_MAX_IN_FLIGHT];
  clv_tensor inputs[CLV_MAX_IN_FLIGHT], outputs[CLV_MAX_IN_FLIGHT];
  clv_error error = {0};
  for (uint32_t round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < in_flight; ++i) {
      uint64_t seed = 100 * round + i;
      for (uint32_t k = 0; k < ROWS * WIDTH; ++k) data[i][k] = test_random_float(&seed);
      inputs[i] = f32(2, DIMS(ROWS, WIDTH), data[i]);
      outputs[i] = f32(2, DIMS(ROWS, WIDTH), results[i]);
      assert_ok(clv_session_start(session, &inputs[i], 1, &outputs[i], 1, NULL, &runs[i], &error), error);
    }
    for (uint32_t i = 0; i < in_flight; ++i) assert_ok(clv_run_wait(runs[i], &error), error);
    for (uint32_t i = 0; i < in_flight; ++i) {
      clv_tensor expected = {0};
      assert_ok(clv__graph_evaluate(s->graph, &inputs[i], NULL, &expected, NULL, NULL, s->graph->allocator, &error), error);
      assert_same_values(&outputs[i], &expected, "in flight");
      clv__release(s->graph->allocator, expected.data);
    }
  }
  assert_int_equal(clv__session_incident_count(session), 0);
  clv__session_stats stats;
  clv__session_stats_get(session, &stats);
  const clv__space_stats *space = &stats.spaces[s->m.devices->items[0].space];
  const uint64_t weights = s->plan->needs[0].weight_bytes + s->plan->needs[0].held_bytes;
  assert_true(space->limit_bytes == 0 || space->peak_bytes + weights <= space->limit_bytes);
}

/* Returns how many requests fit, according to a refusal. */
static uint32_t number_that_fits(const clv_error *error, uint32_t in_flight) {
  char begin_of[64];
  const char *at = strstr(error->message, "; at most ");
  snprintf(begin_of, sizeof begin_of, "one: %u requests in flight need ", in_flight);
  if (strstr(error->message, begin_of) == NULL || at == NULL)
    fail_msg("the refusal must contain '%s' and '; at most ': %s", begin_of, error->message);
  return (uint32_t)strtoul(at + strlen("; at most "), NULL, 10);
}

static void as_many_as_fit(void **state) {
  (void)state;
  uint32_t planned = 0, refused = 0, whole = 0;
  for (uint64_t kibibytes = 14; kibibytes <= 280; kibibytes += kibibytes < 40 ? 2 : 20) {
    scene s = {0};
    if (begin(&s, kibibytes * 1024)) {
      ++planned;
      clv_session *session = NULL;
      clv_error error = {0};
      uint32_t fits = CLV_MAX_IN_FLIGHT;
      clv_status status = open_session(&s, fits, &session, &error);
      if (status != CLV_OK) {
        assert_int_equal(status, CLV_TOO_LARGE);
        assert_null(session);
        ++refused;
        fits = number_that_fits(&error, CLV_MAX_IN_FLIGHT);
        assert_true(fits >= 1 && fits < CLV_MAX_IN_FLIGHT);
        assert_int_equal(open_session(&s, fits + 1, &session, &error), CLV_TOO_LARGE); /* `fits` is the largest number */
        assert_int_equal(number_that_fits(&error, fits + 1), fits);
        assert_ok(open_session(&s, fits, &session, &error), error);
      } else {
        ++whole;
      }
      check_session(&s, session, fits);
      clv_session_destroy(session);
    }
    end(&s);
  }
  assert_true(planned > 8 && refused > 3 && whole > 1);
}

static void without_limit(void **state) {
  (void)state;
  scene s = {0};
  clv_error error = {0};
  clv_session *session;
  (void)begin(&s, 1u << 30);
  assert_ok(open_session(&s, CLV_MAX_IN_FLIGHT, &session, &error), error);
  check_session(&s, session, CLV_MAX_IN_FLIGHT);
  clv_session_destroy(session);
  end(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_many_as_fit), cmocka_unit_test(without_limit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
