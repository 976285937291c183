/* The smallest backend that can be written with the plugin headers: it supports Add, one node per partition, and takes all other
 * functions from host_device.h. It must pass the conformance kit, whether it states its limit of one node or returns
 * CLV_TOO_LARGE. It must fail if it does not check the number of operands. A virtual NPU with small partitions must pass too. */
#include <stdio.h>
#include <string.h>

#include "cleave/check.h"
#include "cleave/plugin/host_device.h"
#include "support.h"

typedef enum manner { STATES_LIMIT, ANSWERS_TOO_LARGE, COUNTS_NOTHING } manner;

struct clv_device {
  clv_host_device base;
  manner manner;
};

struct clv_executable {
  uint32_t inputs[2]; /* per operand: the index of the input; CLV_NO_VALUE: a constant */
  float *constants[2];
  uint32_t input_count;
};

static clv_status adder_open(void *self, const clv_host *host, const clv_device_config *config, clv_device **device,
                             clv_error *error) {
  *device = NULL;
  if (config->option_count > 0) {
    return clv_host_fail(error, CLV_INVALID_ARGUMENT, "option '%s' is unknown", config->options[0].key);
  }
  *device = clv_host_allocate(host, sizeof **device);
  if (*device == NULL) return clv_host_fail(error, CLV_OUT_OF_MEMORY, "no memory for the device");
  clv_host_device_init(&(*device)->base, host, "adder", "adds", "adder 1");
  (*device)->manner = *(const manner *)self;
  if ((*device)->manner != ANSWERS_TOO_LARGE) (*device)->base.info.max_partition_nodes = 1;
  return CLV_OK;
}

static void adder_close(clv_device *device) {
  if (device != NULL) clv_host_release(device->base.host, device);
}

static void adder_supports(clv_device *device, const clv_graph_view *graph, uint32_t node, clv_verdict *verdict) {
  const clv_host *host = device->base.host;
  clv_node_info info = {.struct_size = sizeof info};
  clv_value_info operands[2] = {{.struct_size = sizeof operands[0]}, {.struct_size = sizeof operands[1]}};
  host->graph_node(graph, node, &info);
  verdict->supported = false;
  snprintf(verdict->reason, sizeof verdict->reason, "operator %s of opset %d not supported", info.op, info.opset);
  if (strcmp(info.op, "Add") != 0 || info.domain[0] != '\0' || info.opset < 7) return;
  for (int i = 0; i < 2; ++i) host->graph_value(graph, info.inputs[i], &operands[i]);
  const clv_tensor *a = &operands[0].type, *b = &operands[1].type;
  snprintf(verdict->reason, sizeof verdict->reason, "operands are not f32 of the same shape");
  if (a->dtype != CLV_F32 || b->dtype != CLV_F32 || a->rank < 0 || a->rank != b->rank) return;
  for (int32_t d = 0; d < a->rank; ++d) {
    if (a->dims[d] != b->dims[d] || a->dims[d] == CLV_DIM_UNKNOWN) return;
  }
  verdict->supported = true;
}

static void adder_destroy(clv_device *device, clv_executable *executable) {
  if (executable == NULL) return;
  for (int i = 0; i < 2; ++i) clv_host_release(device->base.host, executable->constants[i]);
  clv_host_release(device->base.host, executable);
}

static clv_status adder_compile(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                                clv_executable **executable, clv_error *error) {
  const clv_host *host = device->base.host;
  clv_node_info info = {.struct_size = sizeof info};
  clv_verdict verdict = {0};
  (void)options;
  *executable = NULL;
  if (host->graph_node_count(graph) != 1) {
    return clv_host_fail(error, CLV_TOO_LARGE, "%u nodes; the limit is one", host->graph_node_count(graph));
  }
  adder_supports(device, graph, 0, &verdict);
  if (!verdict.supported) return clv_host_fail(error, CLV_NOT_SUPPORTED, "%s", verdict.reason);
  clv_executable *made = clv_host_allocate(host, sizeof *made);
  if (made == NULL) return clv_host_fail(error, CLV_OUT_OF_MEMORY, "no memory for the executable");
  host->graph_node(graph, 0, &info);
  made->input_count = host->graph_input_count(graph);
  for (int i = 0; i < 2; ++i) {
    clv_value_info operand = {.struct_size = sizeof operand};
    host->graph_value(graph, info.inputs[i], &operand);
    made->inputs[i] = CLV_NO_VALUE;
    for (uint32_t k = 0; k < made->input_count; ++k) {
      if (host->graph_input(graph, k) == info.inputs[i]) made->inputs[i] = k;
    }
    if (made->inputs[i] != CLV_NO_VALUE) continue;
    size_t size_bytes = (size_t)clv_host_count(&operand.type) * sizeof(float);
    made->constants[i] = clv_host_allocate(host, size_bytes);
    if (made->constants[i] == NULL) {
      adder_destroy(device, made);
      return clv_host_fail(error, CLV_OUT_OF_MEMORY, "no memory for '%s'", operand.name);
    }
    memcpy(made->constants[i], operand.type.data, size_bytes);
  }
  *executable = made;
  return CLV_OK;
}

static clv_status adder_execute(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                                clv_error *error) {
  const clv_executable *executable = (const clv_executable *)(const void *)instance;
  const float *from[2];
  (void)stream;
  if (args->input_count != executable->input_count || args->output_count != 1) {
    if (device->manner == COUNTS_NOTHING) return CLV_OK;
    return clv_host_fail(error, CLV_INVALID_ARGUMENT, "%u inputs and %u outputs, expected %u and 1", args->input_count,
                         args->output_count, executable->input_count);
  }
  for (int i = 0; i < 2; ++i) {
    bool is_constant = executable->inputs[i] == CLV_NO_VALUE;
    from[i] = is_constant ? executable->constants[i] : clv_host_address(&args->inputs[executable->inputs[i]]);
  }
  float *to = clv_host_address(&args->outputs[0]);
  for (int64_t i = 0; i < clv_host_count(&args->outputs[0].type); ++i) to[i] = from[0][i] + from[1][i];
  return CLV_OK;
}

static clv_backend table = {.abi_version = CLV_ABI_VERSION,
                            .struct_size = sizeof table,
                            .name = "adder",
                            .version = "1",
                            .open = adder_open,
                            .close = adder_close,
                            .supports = adder_supports,
                            .compile = adder_compile,
                            .executable_destroy = adder_destroy,
                            .execute = adder_execute,
                            CLV_HOST_DEVICE_SLOTS,
                            CLV_HOST_WEIGHT_SLOTS,
                            CLV_HOST_INSTANCE_SLOTS};

static clv_status adder_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  (void)host;
  (void)error;
  table.self = user_data;
  *backend = &table;
  return CLV_OK;
}

static clv_check_report *check_adder(manner how) {
  clv_check_options options = CLV_CHECK_OPTIONS_INIT;
  clv_check_report *report = NULL;
  clv_context *context = NULL;
  clv_error error = {0};
  options.every = 5;
  assert_ok(clv_context_create(NULL, &context, &error), error);
  assert_ok(clv_context_add_backend(context, adder_query, &how, &error), error);
  assert_ok(clv_check_backend(context, "adder", NULL, &options, &report, &error), error);
  clv_context_destroy(context);
  return report;
}

static const clv_check_section *section_of(const clv_check_report *report, const char *name) {
  for (uint32_t i = 0; i < report->section_count; ++i) {
    if (strcmp(report->sections[i].name, name) == 0) return &report->sections[i];
  }
  fail_msg("the report has no section '%s'", name);
  return NULL;
}

static void expect_no_failure(const clv_check_report *report) {
  for (uint32_t i = 0; i < report->section_count; ++i) {
    const clv_check_section *section = &report->sections[i];
    if (section->failed == 0) continue;
    fail_msg("%s: %s: %s", section->name, section->failures[0].what, section->failures[0].text);
  }
}

/* The kit creates random graphs as small as the device requires, so every section has items to check. */
static void test_stated(void **state) {
  static const char *const names[] = {"operators", "boundaries", "aliasing", "shapes", "concurrency", "memory", "errors"};
  (void)state;
  clv_check_report *report = check_adder(STATES_LIMIT);
  expect_no_failure(report);
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) assert_true(section_of(report, names[i])->passed > 0);
  clv_check_report_destroy(report);
}

static void test_answered(void **state) {
  (void)state;
  clv_check_report *report = check_adder(ANSWERS_TOO_LARGE);
  expect_no_failure(report);
  assert_true(section_of(report, "operators")->passed > 0);
  assert_true(section_of(report, "boundaries")->skipped > 0);
  clv_check_report_destroy(report);
}

static void test_uncounted(void **state) {
  (void)state;
  clv_check_report *report = check_adder(COUNTS_NOTHING);
  for (uint32_t i = 0; i < report->section_count; ++i) {
    bool expected = strcmp(report->sections[i].name, "errors") == 0;
    if ((report->sections[i].failed > 0) != expected)
      fail_msg("section '%s' must %s, but does not", report->sections[i].name, expected ? "fail" : "pass");
  }
  clv_check_report_destroy(report);
}

/* The plugin in docs/backend-guide.md (plugins/smallest.c), with every ready-made slot of host_device.h. */
static void test_guide(void **state) {
  (void)state;
  clv_check_options options = CLV_CHECK_OPTIONS_INIT;
  clv_check_report *report = NULL;
  clv_context *context = NULL;
  clv_error error = {0};
  options.every = 5;
  assert_ok(clv_context_create(NULL, &context, &error), error);
  assert_ok(clv_context_load_plugin(context, PLUGINS "/smallest/cleave_smallest.so", &error), error);
  assert_ok(clv_check_backend(context, "smallest", NULL, &options, &report, &error), error);
  expect_no_failure(report);
  assert_true(section_of(report, "operators")->passed > 0);
  assert_true(section_of(report, "life")->passed > 0);
  clv_check_report_destroy(report);
  clv_context_destroy(context);
}

static void test_small_partitions(void **state) {
  (void)state;
  static const char *const specs[] = {"{\"operators\": \"all\", \"max_partition_inputs\": 1}",
                                      "{\"operators\": \"all\", \"max_partition_nodes\": 1}"};
  for (size_t i = 0; i < sizeof specs / sizeof *specs; ++i) {
    clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
    clv_check_options options = CLV_CHECK_OPTIONS_INIT;
    clv_check_report *report = NULL;
    clv_context *context = NULL;
    clv_error error = {0};
    devices.npu_specs = &specs[i];
    devices.npu_spec_count = 1;
    options.every = 3;
    assert_ok(clv_context_create(NULL, &context, &error), error);
    assert_ok(clv_check_backend(context, "npu", &devices, &options, &report, &error), error);
    expect_no_failure(report);
    assert_true(section_of(report, "operators")->passed > 500);
    clv_check_report_destroy(report);
    clv_context_destroy(context);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_stated), cmocka_unit_test(test_answered),
                                     cmocka_unit_test(test_uncounted), cmocka_unit_test(test_guide),
                                     cmocka_unit_test(test_small_partitions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
