/* From graph to outputs: plans for two devices give the outputs of the reference, and every failed allocation is reported as a
 * status. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/evaluate.h"
#include "cleave/cleave.h"
#include "formats/onnx/onnx.h"
#include "models.h"
#include "plan/plan.h"

typedef struct machine {
  clv_context *context;
  clv_devices *devices;
} machine;

static machine open_machine(const clv_allocator *allocator, const char *list, const char *spec) {
  machine m = {0};
  clv_error error = {0};
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  options.allocator = allocator;
  assert_ok(clv_context_create(&options, &m.context, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = list;
  devices.npu_spec_count = spec != NULL;
  devices.npu_specs = &spec;
  assert_ok(clv_devices_open(m.context, &devices, &m.devices, &error), error);
  return m;
}

static void close_machine(machine *m) {
  clv_devices_close(m->devices);
  clv_context_destroy(m->context);
}

enum { MAX_TENSORS = 16 };

/* Makes random inputs for a graph whose inputs are f32 with known sizes. */
static uint32_t make_inputs(const clv_graph *graph, clv_tensor inputs[MAX_TENSORS]) {
  uint64_t seed = 99;
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    inputs[i] = *clv_graph_input_type(graph, i);
    size_t count;
    assert_true(clv__tensor_count(&inputs[i], &count));
    float *data = malloc((count + 1) * sizeof *data);
    for (size_t k = 0; k < count; ++k) data[k] = test_random_float(&seed);
    inputs[i].data = data;
  }
  return graph->input_count;
}

static void free_inputs(clv_tensor *inputs, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) free(inputs[i].data);
}

static void assert_close(const clv_tensor *actual, const clv_tensor *expected, const char *what) {
  size_t count;
  assert_true(clv__tensor_same_type(actual, expected));
  assert_true(clv__tensor_count(expected, &count));
  double largest = 1e-30;
  for (size_t i = 0; i < count; ++i) largest = fmax(largest, fabs(clv__tensor_get(expected, i)));
  for (size_t i = 0; i < count; ++i) {
    double e = clv__tensor_get(expected, i), a = clv__tensor_get(actual, i);
    if (isnan(e) && isnan(a)) continue;
    if (!(fabs(e - a) <= 1e-5 * largest)) fail_msg("%s: element %zu is %g, expected %g", what, i, a, e);
  }
}

/* Runs a plan and compares every output with the reference evaluator. */
static void check_plan(const clv_plan *plan, const char *what) {
  clv_error error = {0};
  const clv_graph *graph = plan->graph;
  clv_tensor inputs[MAX_TENSORS], outputs[MAX_TENSORS] = {{0}}, expected[MAX_TENSORS] = {{0}};
  uint32_t input_count = make_inputs(graph, inputs);
  assert_ok(clv__graph_evaluate(graph, inputs, NULL, expected, NULL, NULL, graph->allocator, &error), error);
  clv_session *session;
  assert_ok(clv_session_create(plan, NULL, &session, &error), error);
  for (int run = 0; run < 2; ++run) {
    memset(outputs, 0, sizeof outputs);
    assert_ok(clv_session_run(session, inputs, input_count, outputs, graph->output_count, &error), error);
    for (uint32_t i = 0; i < graph->output_count; ++i) assert_close(&outputs[i], &expected[i], what);
  }
  clv_session_destroy(session);
  for (uint32_t i = 0; i < graph->output_count; ++i) clv__release(graph->allocator, expected[i].data);
  free_inputs(inputs, input_count);
}

static void seven_nodes_in_five_steps(void **state) {
  (void)state;
  machine m = open_machine(NULL, "npu,cpu", NULL);
  clv_graph *graph = test_seven_nodes(clv__allocator_default());
  clv_error error = {0};
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  clv_assignment force = {"Concat", "cpu"};
  options.force_count = 1;
  options.forces = &force;
  clv_plan *plan;
  assert_ok(clv_plan_make(graph, m.devices, &options, &plan, &error), error);
  char steps[512] = "";
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const clv__step *step = &plan->steps[s];
    char *at = steps + strlen(steps);
    size_t room = sizeof steps - strlen(steps);
    if (!step->is_transfer) {
      const clv__partition *partition = &plan->partitions[step->index];
      snprintf(at, room, "%s[%u] ", plan->devices->items[partition->device].name, partition->node_count);
    } else if (plan->transfers[step->index].boundary == CLV__BOUNDARY_INNER) {
      snprintf(at, room, "->%s ", plan->devices->spaces[plan->transfers[step->index].to]);
    } else {
      snprintf(at, room, plan->transfers[step->index].boundary == CLV__BOUNDARY_INPUT ? "in " : "out ");
    }
  }
  const char *npu_space = plan->devices->spaces[plan->devices->items[0].space];
  char expected[512];
  snprintf(expected, sizeof expected, "in npu[5] ->host cpu[1] ->%s npu[1] out ", npu_space);
  assert_string_equal(steps, expected);
  check_plan(plan, "seven nodes");
  clv_plan_destroy(plan);
  clv__graph_destroy(graph);
  close_machine(&m);
}

/* ---- Random graphs under random placements ---- */

static clv_plan *random_plan(const clv_graph *graph, clv_devices *devices, uint64_t seed) {
  clv_error error = {0};
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  clv_assignment pins[256];
  assert_true(graph->node_count <= 256);
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    pins[n] = (clv_assignment){graph->nodes[n].name,
                               clv_devices_name(devices, (uint32_t)(test_random(&seed) % clv_devices_count(devices)))};
  }
  options.pins = pins;
  options.pin_count = graph->node_count;
  clv_plan *plan;
  assert_ok(clv_plan_make(graph, devices, &options, &plan, &error), error);
  return plan;
}

/* Checks that every node is in one partition, that every value is computed or copied to a memory space before it is read there,
 * and that it is copied there at most once. */
static void check_properties(const clv_plan *plan) {
  const clv_graph *graph = plan->graph;
  uint32_t spaces = plan->devices->space_count;
  bool *there = calloc((size_t)graph->value_count * spaces, 1);
  bool *copied = calloc((size_t)graph->value_count * spaces, 1);
  uint32_t *times = calloc(graph->node_count + 1, sizeof *times);
  for (uint32_t i = 0; i < graph->input_count; ++i) there[(size_t)graph->inputs[i] * spaces] = true;
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const clv__step *step = &plan->steps[s];
    for (uint32_t i = 0; i < step->dependency_count; ++i) assert_true(step->dependencies[i] < s);
    if (step->is_transfer) {
      const clv__transfer *t = &plan->transfers[step->index];
      assert_true(t->from != t->to);
      assert_true(there[(size_t)t->value * spaces + t->from]);
      assert_false(copied[(size_t)t->value * spaces + t->to]);
      copied[(size_t)t->value * spaces + t->to] = there[(size_t)t->value * spaces + t->to] = true;
      continue;
    }
    const clv__partition *p = &plan->partitions[step->index];
    uint32_t space = plan->devices->items[p->device].space;
    for (uint32_t i = 0; i < p->view->input_count; ++i) {
      assert_true(there[(size_t)p->view->values[p->view->inputs[i]] * spaces + space]);
    }
    for (uint32_t i = 0; i < p->view->output_count; ++i) {
      there[(size_t)p->view->values[p->view->outputs[i]] * spaces + space] = true;
    }
    for (uint32_t i = 0; i < p->node_count; ++i) {
      ++times[p->nodes[i]];
      assert_int_equal(plan->placement.devices[p->nodes[i]], p->device);
    }
  }
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    assert_int_equal(times[n], plan->shapes->node_folded[n] ? 0 : 1);
    assert_non_null(plan->placement.causes[n]);
    assert_true(plan->placement.causes[n][0] != '\0');
  }
  for (uint32_t i = 0; i < graph->output_count; ++i) {
    clv_value_id value = graph->outputs[i];
    assert_true(there[(size_t)value * spaces] || plan->shapes->types[value].data != NULL);
  }
  free(there);
  free(copied);
  free(times);
}

static void random_graphs(void **state) {
  (void)state;
  machine two = open_machine(NULL, "npu,cpu", "all");
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    clv_graph *graph = test_random_graph(clv__allocator_default(), seed, 5 + (uint32_t)(seed % 40));
    for (uint64_t placement = 0; placement < 3; ++placement) {
      char what[64];
      snprintf(what, sizeof what, "graph %llu, placement %llu", (unsigned long long)seed, (unsigned long long)placement);
      clv_plan *plan = random_plan(graph, two.devices, seed * 31 + placement);
      check_properties(plan);
      check_plan(plan, what);
      clv_plan_destroy(plan);
    }
    clv__graph_destroy(graph);
  }
  close_machine(&two);
}

static void plans_repeat_byte_for_byte(void **state) {
  (void)state;
  machine m = open_machine(NULL, "npu,cpu", "all");
  clv_graph *graph = test_random_graph(clv__allocator_default(), 5, 40);
  clv_error error = {0};
  char *texts[2];
  for (int i = 0; i < 2; ++i) {
    clv_plan *plan = random_plan(graph, m.devices, 77);
    assert_ok(clv__plan_to_json(plan, false, &texts[i], &error), error);
    clv_plan_destroy(plan);
  }
  assert_string_equal(texts[0], texts[1]);
  for (int i = 0; i < 2; ++i) clv__release(clv__allocator_default(), texts[i]);
  clv__graph_destroy(graph);
  close_machine(&m);
}

/* ---- Failed allocations ---- */

/* Runs everything from the bytes of a model to its outputs. Any status is fine, as long as all memory is released. */
static clv_status whole_path(const clv_allocator *allocator, const void *model, size_t size_bytes, const clv_tensor *inputs,
                             uint32_t input_count) {
  clv_context *context = NULL;
  clv_devices *devices = NULL;
  clv_graph *graph = NULL;
  clv_plan *plan = NULL;
  clv_session *session = NULL;
  clv_error error = {0};
  clv_context_options context_options = CLV_CONTEXT_OPTIONS_INIT;
  context_options.allocator = allocator;
  clv_devices_options devices_options = CLV_DEVICES_OPTIONS_INIT;
  devices_options.list = "npu,cpu";
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  clv_assignment force = {"Concat", "cpu"};
  options.force_count = 1;
  options.forces = &force;
  clv_tensor outputs[1] = {{0}};
  clv_status status;
  CLV__TRY_GOTO(clv_context_create(&context_options, &context, &error));
  CLV__TRY_GOTO(clv_devices_open(context, &devices_options, &devices, &error));
  CLV__TRY_GOTO(clv_graph_load_memory(context, model, size_bytes, CLV_BORROW, &graph, &error));
  CLV__TRY_GOTO(clv_plan_make(graph, devices, &options, &plan, &error));
  CLV__TRY_GOTO(clv_session_create(plan, NULL, &session, &error));
  CLV__TRY_GOTO(clv_session_run(session, inputs, input_count, outputs, 1, &error));
cleanup:
  if (status != CLV_OK) assert_true(error.message[0] != '\0');
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  clv_devices_close(devices);
  clv_context_destroy(context);
  return status;
}

static void every_allocation_fails_once(void **state) {
  (void)state;
  clv_error error = {0};
  clv_graph *source = test_seven_nodes(clv__allocator_default());
  void *model;
  size_t size_bytes;
  assert_ok(clv__onnx_write(source->whole, SIZE_MAX, clv__allocator_default(), &model, &size_bytes, &error), error);
  clv_tensor inputs[MAX_TENSORS];
  uint32_t input_count = make_inputs(source, inputs);
  test_allocator counting;
  test_allocator_init(&counting);
  assert_int_equal(whole_path(&counting.allocator, model, size_bytes, inputs, input_count), CLV_OK);
  size_t total = counting.calls;
  assert_true(total > 50);
  for (size_t fail_at = 1; fail_at <= total; ++fail_at) {
    test_allocator_init(&counting);
    counting.fail_at = fail_at;
    clv_status status = whole_path(&counting.allocator, model, size_bytes, inputs, input_count);
    if (counting.live != 0)
      fail_msg("after allocation %zu of %zu failed, %zu allocations are not released", fail_at, total, counting.live);
    if (status == CLV_OK && counting.calls >= fail_at) continue; /* the allocation was optional */
  }
  clv__release(clv__allocator_default(), model);
  free_inputs(inputs, input_count);
  clv__graph_destroy(source);
}

static void wrong_inputs_are_named(void **state) {
  (void)state;
  machine m = open_machine(NULL, "cpu", NULL);
  clv_graph *graph = test_seven_nodes(clv__allocator_default());
  clv_error error = {0};
  clv_plan *plan;
  assert_ok(clv_plan_make(graph, m.devices, NULL, &plan, &error), error);
  clv_session *session;
  assert_ok(clv_session_create(plan, NULL, &session, &error), error);
  clv_tensor inputs[MAX_TENSORS], outputs[1] = {{0}};
  uint32_t input_count = make_inputs(graph, inputs);
  clv_tensor wrong = inputs[0];
  wrong.dims[3] = 9;
  assert_int_equal(clv_session_run(session, &wrong, 1, outputs, 1, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "'x' is f32[1,3,8,9], but the plan was made for f32[1,3,8,8]"));
  wrong = inputs[0];
  wrong.dtype = CLV_F64;
  assert_int_equal(clv_session_run(session, &wrong, 1, outputs, 1, &error), CLV_INVALID_ARGUMENT);
  wrong = inputs[0];
  wrong.data = NULL;
  assert_int_equal(clv_session_run(session, &wrong, 1, outputs, 1, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_session_run(session, inputs, 0, outputs, 1, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_session_run(session, inputs, 1, outputs, 0, &error), CLV_INVALID_ARGUMENT);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv__graph_destroy(graph);
  free_inputs(inputs, input_count);
  close_machine(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(seven_nodes_in_five_steps),  cmocka_unit_test(random_graphs),
      cmocka_unit_test(plans_repeat_byte_for_byte), cmocka_unit_test(every_allocation_fails_once),
      cmocka_unit_test(wrong_inputs_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
