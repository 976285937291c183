/* A context with open devices, and functions that plan a graph, run the plan and check its outputs. Errors fail the test. */
#ifndef CLEAVE_TESTS_MACHINE_H
#define CLEAVE_TESTS_MACHINE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/evaluate.h"
#include "cleave/cleave.h"
#include "execute/session.h"
#include "interposer.h"
#include "models.h"
#include "place/place.h"
#include "plan/plan.h"
#include "support.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static inline uint32_t strategy_count(void) {
  uint32_t count = 0;
  while (clv__strategies[count] != NULL) ++count;
  return count;
}

typedef struct machine {
  test_allocator counting;
  clv_context *context;
  clv_devices *devices;
} machine;

/* Opens the devices in `list`. The interposer `faulty` (may be NULL) is added to the backends. */
static inline void machine_open_with(machine *m, interposer *faulty, const char *list, uint32_t spec_count,
                                     const char *const *specs) {
  clv_error error = {0};
  test_allocator_init(&m->counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &m->counting.allocator;
  assert_ok(clv_context_create(&context, &m->context, &error), error);
  if (faulty != NULL) assert_ok(clv_context_add_backend(m->context, interposer_query, faulty, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = list;
  devices.npu_spec_count = spec_count;
  devices.npu_specs = specs;
  assert_ok(clv_devices_open(m->context, &devices, &m->devices, &error), error);
}

static inline void machine_open(machine *m, const char *list, uint32_t spec_count, const char *const *specs) {
  machine_open_with(m, NULL, list, spec_count, specs);
}

static inline void machine_close(machine *m) {
  clv_devices_close(m->devices);
  clv_context_destroy(m->context);
  assert_int_equal(m->counting.live, 0);
}

/* Plans the graph. `pins` has the form "node=device,node=device" (NULL: no pins); node names may be patterns. */
static inline clv_plan *machine_plan(machine *m, const clv_graph *graph, const char *pins, clv_plan_options options) {
  char text[512];
  clv_assignment items[32];
  uint32_t count = 0;
  snprintf(text, sizeof text, "%s", pins == NULL ? "" : pins);
  for (char *at = strtok(text, ","); at != NULL; at = strtok(NULL, ",")) {
    char *equals = strchr(at, '=');
    assert_true(equals != NULL && count < 32);
    *equals = '\0';
    items[count++] = (clv_assignment){at, equals + 1};
  }
  if (options.strategy == NULL) options.strategy = "contiguous"; /* tests place their nodes with pins */
  options.pins = items;
  options.pin_count = count;
  clv_error error = {0};
  clv_plan *plan;
  assert_ok(clv_plan_make(graph, m->devices, &options, &plan, &error), error);
  return plan;
}

/* Returns the text of the plan's file, allocated by the plan's allocator. */
static inline char *json_of(const clv_plan *plan) {
  clv_error error = {0};
  char *text;
  assert_ok(clv__plan_to_json(plan, false, &text, &error), error);
  return text;
}

/* The number of transfers of streamed weights. */
static inline uint32_t streamed_of(const clv_plan *plan) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < plan->transfer_count; ++i) count += plan->transfers[i].boundary == CLV__BOUNDARY_WEIGHT;
  return count;
}

static inline clv_session *machine_session(const clv_plan *plan) {
  clv_error error = {0};
  clv_session *session;
  assert_ok(clv_session_create(plan, NULL, &session, &error), error);
  return session;
}

static inline void assert_same_values(const clv_tensor *actual, const clv_tensor *expected, const char *what) {
  size_t count;
  if (!clv__tensor_same_type(actual, expected)) {
    char is[160], should[160];
    clv__tensor_text(actual, is, sizeof is);
    clv__tensor_text(expected, should, sizeof should);
    fail_msg("%s: the output is %s, expected %s", what, is, should);
  }
  assert_true(clv__tensor_count(expected, &count));
  for (size_t i = 0; i < count; ++i) {
    double e = clv__tensor_get(expected, i), a = clv__tensor_get(actual, i);
    if (!(fabs(e - a) <= 1e-5 * fmax(1, fabs(e)))) fail_msg("%s: element %zu is %g, expected %g", what, i, a, e);
  }
}

/* Runs the session once, with outputs in the session's memory. Compares every output with the reference evaluator's. */
static inline void machine_check_run(clv_session *session, const clv_plan *plan, const clv_tensor *inputs, const char *what) {
  clv_error error = {0};
  const clv_graph *graph = plan->graph;
  clv_tensor outputs[16] = {{0}}, expected[16] = {{0}};
  assert_true(graph->output_count + plan->kept_count <= 16);
  assert_ok(clv__graph_evaluate(graph, inputs, NULL, expected, NULL, NULL, graph->allocator, &error), error);
  assert_ok(clv_session_run(session, inputs, graph->input_count, outputs, graph->output_count + plan->kept_count, &error), error);
  for (uint32_t i = 0; i < graph->output_count; ++i) {
    assert_same_values(&outputs[i], &expected[i], what);
    clv__release(graph->allocator, expected[i].data);
  }
}

/* Like machine_check_run(), but in a new session with random inputs: at most two f32 inputs of up to 32 elements. */
static inline void machine_check_random(const clv_plan *plan, const char *what) {
  float data[2][32];
  uint64_t seed = 5;
  clv_tensor inputs[2];
  for (uint32_t i = 0; i < plan->graph->input_count; ++i) {
    for (uint32_t k = 0; k < 32; ++k) data[i][k] = test_random_float(&seed);
    inputs[i] = *clv_graph_input_type(plan->graph, i);
    inputs[i].data = data[i];
  }
  clv_session *session = machine_session(plan);
  machine_check_run(session, plan, inputs, what);
  clv_session_destroy(session);
}

/* Fails if the session takes more memory than its plan states, or the plan states more than a device has. Call it after runs: it
 * compares the most that the session ever had. */
static inline void machine_check_memory(clv_session *session, const clv_plan *plan, const char *what) {
  clv__session_stats stats;
  uint64_t weights = 0;
  bool is_unlimited = false; /* some device has weights that the plan does not count */
  if (clv__session_incident_count(session) > 0) fail_msg("%s: a device was removed", what);
  clv__session_stats_get(session, &stats);
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    const uint64_t limit = plan->devices->items[d].info.memory_limit_bytes;
    const uint32_t space = plan->devices->items[d].space;
    uint64_t states = plan->needs[d].value_bytes, need = plan->needs[d].total_bytes;
    is_unlimited = is_unlimited || (limit == 0 && space != CLV__SPACE_HOST);
    if (limit == 0) continue;
    weights += plan->needs[d].weight_bytes;
    for (uint32_t e = 0; e < plan->devices->count; ++e) { /* all devices that share the memory of device d */
      if (plan->devices->items[e].space == space) states += plan->needs[e].scratch_bytes + plan->needs[e].held_bytes;
    }
    if (stats.spaces[space].peak_bytes > states || need > limit) {
      fail_msg("%s: device %u uses %llu bytes besides weights (plan: %llu), and needs %llu by the plan (limit: %llu)", what, d,
               (unsigned long long)stats.spaces[space].peak_bytes, (unsigned long long)states, (unsigned long long)need,
               (unsigned long long)limit);
    }
  }
  if (!is_unlimited && stats.weight_bytes > weights)
    fail_msg("%s: %llu bytes of weights, but the plan states %llu", what, (unsigned long long)stats.weight_bytes,
             (unsigned long long)weights);
}

static inline clv_tensor f32(int32_t rank, const int64_t *dims, void *data) {
  return clv__tensor_make(CLV_F32, rank, dims, data);
}

#endif
