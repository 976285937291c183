/* If a device finds a partition too large, the partition is divided into halves, as often as needed, and the device keeps its
 * nodes. */
#include "../cache/folder.h"
#include "backends/vnpu/vnpu.h"
#include "cleave/compiled.h"
#include "execute/session.h"
#include "machine.h"

/* The virtual NPU under another name, whose compiler rejects partitions of more nodes than `limit`. */
static struct {
  clv_backend table;
  const clv_backend *real;
  const clv_host *host;
  uint32_t limit, rejected;
} small;

static clv_status small_open(void *self, const clv_host *host, const clv_device_config *config, clv_device **device,
                             clv_error *error) {
  const clv_option spec = {"spec", "all"};
  clv_device_config with = *config;
  (void)self;
  with.options = &spec;
  with.option_count = 1;
  return small.real->open(small.real->self, host, &with, device, error);
}

static clv_status small_compile(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                                clv_executable **executable, clv_error *error) {
  const uint32_t count = small.host->graph_node_count(graph);
  if (count > small.limit) {
    ++small.rejected;
    return clv__error_set(error, CLV_TOO_LARGE, "%u nodes do not fit", count);
  }
  return small.real->compile(device, graph, options, executable, error);
}

static clv_status small_query(const clv_host *host, void *user_data, const clv_backend **table, clv_error *error) {
  (void)user_data;
  small.host = host;
  CLV__TRY(clv__vnpu_backend_query(host, NULL, &small.real, error));
  small.table = *small.real;
  small.table.name = "small";
  small.table.open = small_open;
  small.table.compile = small_compile;
  *table = &small.table;
  return CLV_OK;
}

static void open_small(machine *m, uint32_t limit) {
  clv_error error = {0};
  small.limit = limit, small.rejected = 0;
  test_allocator_init(&m->counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &m->counting.allocator;
  context.cache_directory = "";
  assert_ok(clv_context_create(&context, &m->context, &error), error);
  assert_ok(clv_context_add_backend(m->context, small_query, NULL, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = "small,cpu";
  assert_ok(clv_devices_open(m->context, &devices, &m->devices, &error), error);
}

/* Checks that every partition of the device has at most `limit` nodes, and that no node has moved. */
static void check_plan(const clv_plan *given, const clv_plan *divided, uint32_t limit) {
  for (uint32_t p = 0; p < divided->partition_count; ++p) {
    if (divided->partitions[p].device == 0) assert_true(divided->partitions[p].node_count <= limit);
  }
  for (clv_node_id n = 0; n < given->graph->node_count; ++n)
    assert_int_equal(divided->placement.devices[n], given->placement.devices[n]);
}

static void partitions_are_divided(void **state) {
  (void)state;
  uint32_t rejected = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const uint32_t limit = 1 + (uint32_t)(seed % 4);
    machine m;
    open_small(&m, limit);
    clv_graph *graph = test_random_graph(&m.counting.allocator, seed, 4 + (uint32_t)(seed % 21));
    clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
    options.strategy = seed % 3 == 0 ? "contiguous" : "optimal";
    clv_plan *plan = machine_plan(&m, graph, seed % 2 == 0 ? "*=small" : NULL, options);
    machine_check_random(plan, "with divided partitions");
    clv_session *session = machine_session(plan);
    assert_int_equal(clv__session_incident_count(session), 0); /* the device was not removed */
    check_plan(plan, clv__session_plan(session), limit);
    clv_session_destroy(session);
    rejected += small.rejected;
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    machine_close(&m);
  }
  assert_true(rejected > 100);
}

/* If a single node is too large for the device, the device is removed. */
static void a_node_cannot_be_divided(void **state) {
  (void)state;
  machine m;
  open_small(&m, 0);
  clv_graph *graph = test_random_graph(&m.counting.allocator, 3, 9);
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  clv_plan *plan = machine_plan(&m, graph, NULL, options);
  machine_check_random(plan, "without the device");
  clv_session *session = machine_session(plan);
  assert_int_equal(clv__session_incident_count(session), 1);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* A compiled directory has the divided partitions, and runs without compiling. */
static void compiled_directories(void **state) {
  (void)state;
  machine m;
  clv_error error = {0};
  folder f;
  char path[sizeof f.path + 8];
  folder_make(&f);
  snprintf(path, sizeof path, "%s/out", f.path);
  open_small(&m, 2);
  clv_graph *graph = test_random_graph(&m.counting.allocator, 6, 15);
  clv_plan *plan = machine_plan(&m, graph, "*=small", (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_ok(clv_compiled_write(plan, NULL, path, &error), error);
  assert_true(small.rejected > 0);
  clv_compiled *compiled;
  assert_ok(clv_compiled_open(m.context, path, &compiled, &error), error);
  clv_plan *read;
  clv_graph *again;
  assert_ok(clv_graph_load(m.context, clv_compiled_model_path(compiled), &again, &error), error);
  assert_ok(clv_plan_read(again, m.devices, clv_compiled_plan_path(compiled), NULL, &read, &error), error);
  assert_true(read->partition_count > plan->partition_count);
  small.rejected = 0;
  machine_check_random(read, "a plan from a compiled directory");
  assert_int_equal(small.rejected, 0);
  clv_plan_destroy(read);
  clv_graph_destroy(again);
  clv_compiled_close(compiled);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  machine_close(&m);
  folder_remove(f.path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(partitions_are_divided),
      cmocka_unit_test(a_node_cannot_be_divided),
      cmocka_unit_test(compiled_directories),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
