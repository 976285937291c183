/* Making plans: pins are kept or rejected, partitions that do not fit into memory move, errors list every device's reason, plan
 * files can be read back, and invalid edits of them are rejected. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleave/cleave.h"
#include "models.h"
#include "place/place.h"
#include "plan/plan.h"

typedef struct fixture {
  clv_context *context;
  clv_devices *devices;
  clv_graph *graph;
} fixture;

static void open_spec(fixture *f, const char *spec, const char *option) {
  clv_error error = {0};
  assert_ok(clv_context_create(NULL, &f->context, &error), error);
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  options.list = "npu,cpu";
  options.device_options = &option;
  options.device_option_count = option != NULL;
  options.npu_specs = &spec;
  options.npu_spec_count = spec != NULL;
  assert_ok(clv_devices_open(f->context, &options, &f->devices, &error), error);
  f->graph = test_seven_nodes(clv__allocator_default());
}

static void open_with(fixture *f, const char *option) {
  open_spec(f, NULL, option);
}

static void close_all(fixture *f) {
  clv_graph_destroy(f->graph);
  clv_devices_close(f->devices);
  clv_context_destroy(f->context);
}

static clv_plan *plan_with(fixture *f, clv_plan_options *options) {
  clv_error error = {0};
  clv_plan *plan;
  assert_ok(clv_plan_make(f->graph, f->devices, options, &plan, &error), error);
  return plan;
}

static void pins_hold(void **state) {
  (void)state;
  fixture f;
  open_with(&f, NULL);
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  clv_assignment pins[] = {{"relu*", "cpu"}, {"relu2", "npu"}};
  clv_assignment forces[] = {{"Relu", "npu"}, {"MatMul", "cpu"}};
  options.pins = pins;
  options.pin_count = 2;
  options.forces = forces;
  options.force_count = 2;
  clv_plan *plan = plan_with(&f, &options);
  static const struct {
    const char *node;
    const char *device;
    const char *cause;
  } expected[] = {{"conv", "npu", "first"}, {"relu", "cpu", "usr"}, {"matmul", "cpu", "usr"}, {"relu2", "npu", "usr"}};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; ++i) {
    clv_node_id node = clv__graph_find_node(f.graph, expected[i].node);
    assert_string_equal(f.devices->items[plan->placement.devices[node]].name, expected[i].device);
    assert_string_equal(plan->placement.causes[node], expected[i].cause);
  }
  clv_plan_destroy(plan);
  close_all(&f);
}

/* Two patterns, or two pins by name, that put a node on different devices are refused in either order. The error names both.
 * The same applies to forced operators. */
static void pins_agree(void **state) {
  (void)state;
  static const clv_assignment cases[][2] = {
      {{"relu*", "cpu"}, {"*lu2", "npu"}}, {{"*lu2", "npu"}, {"relu*", "cpu"}}, {{"relu2", "cpu"}, {"relu2", "npu"}}};
  fixture f;
  open_with(&f, NULL);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    for (int forced = 0; forced < 2; ++forced) {
      clv_error error = {0};
      clv_plan *plan;
      clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
      static const clv_assignment forces[] = {{"Re*", "cpu"}, {"R*u", "npu"}};
      if (forced == 1)
        options.forces = forces, options.force_count = 2;
      else
        options.pins = cases[i], options.pin_count = 2;
      assert_int_equal(clv_plan_make(f.graph, f.devices, &options, &plan, &error), CLV_INVALID_ARGUMENT);
      assert_non_null(strstr(error.message, forced == 1 ? "'Re*=cpu'" : cases[i][0].pattern));
      assert_non_null(strstr(error.message, forced == 1 ? "'R*u=npu'" : cases[i][1].pattern));
    }
  }
  close_all(&f);
}

static bool no_matmul_on_npu(void *user_data, const char *device, const clv_node_info *node, char reason[160]) {
  (void)user_data;
  if (strcmp(device, "npu") != 0 || strcmp(node->op, "MatMul") != 0) return true;
  snprintf(reason, 160, "the program said so");
  return false;
}

static bool nothing_at_all(void *user_data, const char *device, const clv_node_info *node, char reason[160]) {
  (void)user_data;
  (void)node;
  snprintf(reason, 160, "not on %s", device);
  return false;
}

static void expect_refusal(fixture *f, clv_plan_options *options, const char *text) {
  clv_error error = {0};
  clv_plan *plan = NULL;
  assert_int_not_equal(clv_plan_make(f->graph, f->devices, options, &plan, &error), CLV_OK);
  assert_null(plan);
  if (strstr(error.message, text) == NULL) fail_msg("'%s' does not say '%s'", error.message, text);
}

static void refusals_say_why(void **state) {
  (void)state;
  fixture f;
  open_with(&f, NULL);
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  clv_assignment pin = {"matmul", "npu"};
  options.pins = &pin;
  options.pin_count = 1;
  options.support = no_matmul_on_npu;
  expect_refusal(&f, &options, "node 'matmul' (MatMul) is pinned to npu, which cannot run it: the program said so");
  pin = (clv_assignment){"nothing", "npu"};
  expect_refusal(&f, &options, "'nothing=npu' matches no node of the model");
  pin = (clv_assignment){"relu", "gpu"};
  expect_refusal(&f, &options, "device 'gpu' is not in the list");
  options.pin_count = 0;
  options.support = nothing_at_all;
  expect_refusal(&f, &options, "node 'conv' (Conv): no device can run it: npu: not on npu; cpu: not on cpu");
  options.support = NULL;
  options.strategy = "magic";
  expect_refusal(&f, &options, "strategy 'magic' is unknown; expected one of: optimal, contiguous, propagate");
  close_all(&f);
}

static clv_graph *additions(void) {
  test_graph g;
  int64_t square[] = {64, 64};
  test_graph_begin(&g, clv__allocator_default(), 1);
  test_graph_input(&g, "v0", CLV_F32, 2, square);
  for (int i = 0; i < 4; ++i) {
    char name[8], inputs[16], output[8];
    snprintf(name, sizeof name, "w%d", i);
    snprintf(inputs, sizeof inputs, "v%d,w%d", i, i);
    snprintf(output, sizeof output, "v%d", i + 1);
    test_graph_weight(&g, name, 2, square);
    test_graph_node(&g, output, "Add", inputs, output);
  }
  return test_graph_end(&g, "v4");
}

/* The NPU does not support Relu, and the CPU is not in the list: the error names the CPU if options.name_others is set. */
static void other_devices_are_named(void **state) {
  (void)state;
  fixture f = {.graph = test_seven_nodes(clv__allocator_default())};
  clv_error error = {0};
  const char *spec = "{\"operators\": {\"Conv\": {}}}";
  assert_ok(clv_context_create(NULL, &f.context, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = "npu";
  devices.npu_specs = &spec;
  devices.npu_spec_count = 1;
  assert_ok(clv_devices_open(f.context, &devices, &f.devices, &error), error);
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  clv_plan *plan;
  assert_int_equal(clv_plan_make(f.graph, f.devices, &options, &plan, &error), CLV_NOT_SUPPORTED);
  assert_null(strstr(error.message, "able to run it"));
  options.name_others = true;
  assert_int_equal(clv_plan_make(f.graph, f.devices, &options, &plan, &error), CLV_NOT_SUPPORTED);
  const char *others = strstr(error.message, "; not in the list of devices, but able to run it: ");
  if (others == NULL || strstr(others, "cpu") == NULL) fail_msg("the error does not name cpu as able: %s", error.message);
  assert_non_null(strstr(error.message, "node 'relu' (Relu): no device can run it: npu: "));
  close_all(&f);
}

/* Four additions whose weights do not fit into memory together, on a device that cannot stream them, because it takes weights
 * only as constants. They move to the CPU, unless they are pinned. */
static void memory_moves_partitions(void **state) {
  (void)state;
  fixture f;
  open_spec(&f, "{\"operators\": {\"Add\": {\"constant_inputs\": [1]}}}", "npu:memory=64K");
  clv_graph_destroy(f.graph);
  f.graph = additions();
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  clv_plan *plan = plan_with(&f, &options);
  for (clv_node_id n = 0; n < f.graph->node_count; ++n) {
    assert_string_equal(f.devices->items[plan->placement.devices[n]].name, "cpu");
    assert_string_equal(plan->placement.causes[n], "memory");
    assert_non_null(strstr(plan->placement.notes[n], "would need"));
  }
  clv_plan_destroy(plan);
  clv_assignment pin = {"v*", "npu"};
  options.pins = &pin;
  options.pin_count = 1;
  expect_refusal(&f, &options, "npu would need at least 98304 bytes but has 65536");
  close_all(&f);
}

/* The same additions on a device that takes weights as inputs, so they can be streamed: memory for one addition at a time is
 * enough for all. */
static void one_addition_at_a_time(void **state) {
  (void)state;
  fixture f;
  open_with(&f, "npu:memory=48K");
  clv_graph_destroy(f.graph);
  f.graph = additions();
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  clv_assignment pin = {"v*", "npu"};
  options.pins = &pin;
  options.pin_count = 1;
  for (uint32_t s = 0; clv__strategies[s] != NULL; ++s) {
    options.strategy = clv__strategies[s]->name;
    clv_plan *plan = plan_with(&f, &options);
    assert_int_equal(plan->partition_count, 4);
    assert_int_equal(plan->needs[0].total_bytes, 48 << 10);
    clv_plan_destroy(plan);
  }
  close_all(&f);
}

/* ---- The plan file ---- */

static char *read_text(const char *path) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  char *text = calloc(1, 1 << 16);
  assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
  fclose(file);
  return text;
}

static void expect_broken(fixture *f, const char *path, const char *text, const char *from, const char *to, const char *message) {
  char *edited = calloc(1, strlen(text) + strlen(to) + 1);
  const char *at = strstr(text, from);
  if (at == NULL) fail_msg("the plan has no '%s'", from);
  memcpy(edited, text, (size_t)(at - text));
  strcat(edited, to);
  strcat(edited, at + strlen(from));
  clv_error error = {0};
  assert_ok(clv__file_write(path, edited, strlen(edited), &error), error);
  clv_plan *plan = NULL;
  assert_int_not_equal(clv_plan_read(f->graph, f->devices, path, NULL, &plan, &error), CLV_OK);
  assert_null(plan);
  if (strstr(error.message, message) == NULL) fail_msg("'%s' does not say '%s'", error.message, message);
  free(edited);
}

/* If a node's entry names another device than its partition, the node was moved by hand, and its old cause no longer
 * applies. */
static void expect_moved(fixture *f, const char *path, const char *text) {
  const char *entry = strstr(text, "\"op\": \"Conv\"");
  assert_non_null(entry);
  char *edited = strdup(text), *device = strstr(edited + (entry - text), "\"npu\"");
  assert_non_null(device);
  memcpy(device, "\"cpu\"", 5);
  clv_error error = {0};
  clv_plan *plan;
  assert_ok(clv__file_write(path, edited, strlen(edited), &error), error);
  assert_ok(clv_plan_read(f->graph, f->devices, path, NULL, &plan, &error), error);
  clv_node_id conv = clv__graph_find_node(f->graph, "conv"), relu = clv__graph_find_node(f->graph, "relu");
  assert_string_equal(f->devices->items[plan->placement.devices[conv]].name, "npu");
  assert_string_equal(plan->placement.causes[conv], "file");
  assert_string_equal(plan->placement.causes[relu], "first");
  clv_plan_destroy(plan);
  free(edited);
}

static void plan_files_read_back(void **state) {
  (void)state;
  fixture f;
  open_with(&f, NULL);
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  clv_assignment force = {"Concat", "cpu"};
  options.forces = &force;
  options.force_count = 1;
  clv_plan *plan = plan_with(&f, &options), *again;
  char path[] = "/tmp/cleave-plan-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  clv_error error = {0};
  assert_ok(clv_plan_write(plan, path, &error), error);
  char *text = read_text(path);
  assert_ok(clv_plan_read(f.graph, f.devices, path, NULL, &again, &error), error);
  assert_ok(clv_plan_write(again, path, &error), error);
  char *text_again = read_text(path);
  assert_string_equal(text, text_again);
  expect_moved(&f, path, text);
  expect_broken(&f, path, text, "\"model_hash\": \"", "\"model_hash\": \"0", "the plan was made for a model with hash 0");
  expect_broken(&f, path, text, "\"device\": \"npu\"", "\"device\": \"dsp\"",
                "partition 0: device 'dsp' is not one of the open devices");
  expect_broken(&f, path, text, "    \"conv\",\n", "", "node 'conv' is in no partition");
  expect_broken(&f, path, text, "    \"conv\",\n", "    \"conv\",\n    \"softmax\",\n", "node 'softmax' is in two partitions");
  expect_broken(&f, path, text, "    \"conv\",\n", "    \"what\",\n", "the model has no node 'what'");
  expect_broken(&f, path, text, "{", "[", "line 2");
  expect_broken(&f, path, text, "\"cleave_plan\": 1", "\"cleave_plan\": 9", "plan file of unknown version 9");
  free(text);
  free(text_again);
  unlink(path);
  clv_plan_destroy(again);
  clv_plan_destroy(plan);
  close_all(&f);
}

/* ---- Cancelling ---- */

typedef struct counted {
  uint32_t calls, last; /* planning is cancelled at call number `last` */
} counted;

static bool go_on(void *user_data) {
  counted *c = user_data;
  assert_true(c->calls < c->last); /* planning does not call this again after it was told to stop */
  return ++c->calls < c->last;
}

static void planning_is_cancelled(void **state) {
  (void)state;
  fixture f;
  clv_plan *plan;
  open_with(&f, NULL);
  counted c = {0, UINT32_MAX};
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.go_on = go_on;
  options.go_on_user_data = &c;
  clv_plan_destroy(plan_with(&f, &options));
  uint32_t all = c.calls;
  assert_true(all > f.graph->node_count); /* called at least once per node, and once per cut that was tried */
  for (uint32_t last = 1; last <= all; last += 1 + last / 8) {
    clv_error error = {0};
    c = (counted){0, last};
    assert_int_equal(clv_plan_make(f.graph, f.devices, &options, &plan, &error), CLV_CANCELLED);
    assert_string_equal(error.message, "planning was cancelled");
    assert_null(plan);
    assert_int_equal(c.calls, last);
  }
  close_all(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(planning_is_cancelled),
      cmocka_unit_test(other_devices_are_named),
      cmocka_unit_test(pins_hold),
      cmocka_unit_test(pins_agree),
      cmocka_unit_test(refusals_say_why),
      cmocka_unit_test(memory_moves_partitions),
      cmocka_unit_test(one_addition_at_a_time),
      cmocka_unit_test(plan_files_read_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
