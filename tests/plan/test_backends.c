/* Tests planning with faulty backends: they claim invalid groups of nodes, return invalid prices, or have function tables of
 * other versions. */
#include <math.h>

#include "backends/vnpu/vnpu.h"
#include "machine.h"
#include "plan/compare.h"

/* The virtual NPU under another name, with some functions replaced by the test. There is only one at a time. */
typedef struct odd_backend {
  clv_backend table;
  void (*claim)(const bool *is_free, uint32_t node_count, clv_claim_fn add, void *cookie);
  clv_status claim_status;
  double seconds; /* what all price functions return */
  const clv_backend *real;
} odd_backend;
static odd_backend odd;

static clv_status odd_open(void *self, const clv_host *host, const clv_device_config *config, clv_device **device,
                           clv_error *error) {
  const clv_option spec = {
      "spec", "{\"operators\": {\"Add\": {}, \"Mul\": {}, \"MatMul\": {}, \"Max\": {}, \"Sub\": {}, \"Identity\": {}}}"};
  clv_device_config with = *config;
  (void)self;
  with.options = &spec;
  with.option_count = 1;
  return odd.real->open(odd.real->self, host, &with, device, error);
}

static const clv_host *odd_host;

static clv_status odd_claim(clv_device *device, const clv_graph_view *graph, const bool *is_free, clv_claim_fn add, void *cookie,
                            clv_error *error) {
  (void)device;
  if (odd.claim_status != CLV_OK) {
    if (error != NULL) snprintf(error->message, sizeof error->message, "no groups today");
    return odd.claim_status;
  }
  odd.claim(is_free, odd_host->graph_node_count(graph), add, cookie);
  return CLV_OK;
}

static double odd_node_seconds(clv_device *device, const clv_graph_view *graph, uint32_t node) {
  (void)device, (void)graph;
  return node % 2 == 0 ? odd.seconds : 1e-6;
}
static double odd_copy_seconds(clv_device *device, uint64_t size_bytes) {
  (void)device, (void)size_bytes;
  return odd.seconds;
}
static double odd_launch_seconds(clv_device *device) {
  (void)device;
  return odd.seconds;
}

static clv_status odd_query(const clv_host *host, void *user_data, const clv_backend **table, clv_error *error) {
  (void)user_data;
  odd_host = host;
  clv_status status = clv__vnpu_backend_query(host, NULL, &odd.real, error);
  if (status != CLV_OK) return status;
  clv_backend own = odd.table;
  odd.table = *odd.real;
  odd.table.name = "odd";
  odd.table.open = odd_open;
  odd.table.claim = own.claim;
  odd.table.node_seconds = own.node_seconds;
  odd.table.copy_seconds = own.copy_seconds;
  odd.table.launch_seconds = own.launch_seconds;
  if (own.struct_size != 0) odd.table.struct_size = own.struct_size;
  *table = &odd.table;
  return CLV_OK;
}

static void open_odd(machine *m, const char *list) {
  clv_error error = {0};
  test_allocator_init(&m->counting);
  clv_context_options context = CLV_CONTEXT_OPTIONS_INIT;
  context.allocator = &m->counting.allocator;
  assert_ok(clv_context_create(&context, &m->context, &error), error);
  assert_ok(clv_context_add_backend(m->context, odd_query, NULL, &error), error);
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = list;
  assert_ok(clv_devices_open(m->context, &devices, &m->devices, &error), error);
}

/* ---- Claims ---- */

static uint32_t refused_groups, taken_groups;

static void offer(clv_claim_fn add, void *cookie, const uint32_t *nodes, uint32_t count, bool should_hold) {
  clv_status status = add(cookie, nodes, count);
  if ((status == CLV_OK) != should_hold) {
    fail_msg("claiming a group of %u nodes, of which the first is %u, returned %s, expected %s", count,
             count > 0 && nodes != NULL ? nodes[0] : 0, clv_status_name(status), should_hold ? "CLV_OK" : "an error");
  }
  refused_groups += status != CLV_OK;
  taken_groups += status == CLV_OK && count > 0;
}

static uint32_t next_free(const bool *is_free, uint32_t node_count, uint32_t from) {
  while (from < node_count && !is_free[from]) ++from;
  assert_true(from < node_count);
  return from;
}

/* Claims every other free node as one group, which is not convex in the graphs of the test. */
static void scattered(const bool *is_free, uint32_t node_count, clv_claim_fn add, void *cookie) {
  uint32_t nodes[64], count = 0;
  for (uint32_t n = 0, k = 0; n < node_count; ++n) {
    if (is_free[n] && k++ % 2 == 0) nodes[count++] = n;
  }
  offer(add, cookie, nodes, count, true);
}

/* Claims invalid groups. They are rejected and leave nothing behind: valid groups of the same nodes are accepted afterwards. */
static void wrong(const bool *is_free, uint32_t node_count, clv_claim_fn add, void *cookie) {
  uint32_t a = next_free(is_free, node_count, 0), b = next_free(is_free, node_count, a + 1), refused = 0;
  while (refused < node_count && is_free[refused]) ++refused;
  assert_true(refused < node_count);
  for (uint32_t i = 0; i < 3 * node_count; ++i) offer(add, cookie, NULL, 0, true);
  offer(add, cookie, NULL, 3, false);
  offer(add, cookie, (uint32_t[]){a, node_count}, 2, false);
  offer(add, cookie, (uint32_t[]){a, UINT32_MAX}, 2, false);
  offer(add, cookie, (uint32_t[]){b, a}, 2, false);
  offer(add, cookie, (uint32_t[]){a, a}, 2, false);
  offer(add, cookie, (uint32_t[]){refused}, 1, false);
  offer(add, cookie, (uint32_t[]){a}, 1, true);
  offer(add, cookie, (uint32_t[]){b}, 1, true);
  offer(add, cookie, (uint32_t[]){a}, 1, false);
}

static void nothing(const bool *is_free, uint32_t node_count, clv_claim_fn add, void *cookie) {
  (void)is_free, (void)node_count, (void)add, (void)cookie;
}

static void each_alone(const bool *is_free, uint32_t node_count, clv_claim_fn add, void *cookie) {
  for (uint32_t n = 0; n < node_count; ++n) {
    if (is_free[n]) offer(add, cookie, &n, 1, true);
  }
}

static void claims(void **state) {
  (void)state;
  static void (*const all[])(const bool *, uint32_t, clv_claim_fn, void *) = {scattered, wrong, nothing, each_alone};
  static const char *const splits[] = {NULL, "convex", "fewest"};
  for (uint32_t c = 0; c < 4; ++c) {
    machine m;
    odd = (odd_backend){.table = {.claim = odd_claim}, .claim = all[c]};
    open_odd(&m, c % 2 == 0 ? "odd,npu,cpu" : "odd,odd1,cpu");
    for (uint32_t seed = 0; seed < 9; ++seed) {
      clv_error error = {0};
      clv_plan *plan;
      clv_graph *graph = test_random_graph(&m.counting.allocator, seed, 30);
      clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
      options.strategy = "delegate";
      options.split = splits[seed % 3];
      refused_groups = taken_groups = 0;
      assert_ok(clv_plan_make(graph, m.devices, &options, &plan, &error), error);
      uint32_t claimed = 0;
      for (clv_node_id n = 0; n < graph->node_count; ++n) claimed += strcmp(plan->placement.causes[n], "claim") == 0;
      if (all[c] == wrong) {
        assert_int_equal(taken_groups, 4); /* two groups for each of two devices */
        assert_int_equal(refused_groups, 14);
        assert_true(claimed <= 4); /* may be fewer: a claimed view is still placed with its source */
      }
      if (all[c] == nothing) assert_int_equal(claimed, 0);
      if (all[c] == each_alone) {
        for (uint32_t p = 0; p < plan->partition_count; ++p)
          assert_true(plan->partitions[p].device > 1 || plan->partitions[p].node_count == 1);
      }
      machine_check_random(plan, "claimed");
      clv_plan_destroy(plan);
      clv_graph_destroy(graph);
    }
    machine_close(&m);
  }
}

static void a_claim_that_fails(void **state) {
  (void)state;
  machine m;
  clv_error error = {0};
  clv_plan *plan = NULL;
  odd = (odd_backend){.table = {.claim = odd_claim}, .claim_status = CLV_INTERNAL_ERROR};
  open_odd(&m, "odd,cpu");
  clv_graph *graph = test_random_graph(&m.counting.allocator, 1, 10);
  assert_ok(clv_plan_make(graph, m.devices, NULL, &plan, &error), error);
  assert_string_equal(plan->note, "odd: removed: it could not choose its node groups: claim: no groups today");
  for (clv_node_id n = 0; n < graph->node_count; ++n) assert_int_not_equal(plan->placement.devices[n], 0);
  machine_check_random(plan, "without the device that failed to claim");
  clv_plan_destroy(plan);
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  const clv_assignment force = {"Add", "odd"};
  options.forces = &force, options.force_count = 1;
  assert_int_equal(clv_plan_make(graph, m.devices, &options, &plan, &error), CLV_NOT_SUPPORTED);
  if (strstr(error.message, "no groups today") == NULL) fail_msg("'no groups today' is not in the error: %s", error.message);
  clv_graph_destroy(graph);
  machine_close(&m);
}

/* ---- Prices ---- */

static void never_worse(machine *m, const clv_plan *optimal) {
  clv_error error = {0};
  clv__arena arena;
  clv__comparison *rows;
  uint32_t count;
  clv__arena_init(&arena, &m->counting.allocator);
  assert_ok(clv__plan_compare(optimal, NULL, &arena, &rows, &count, &error), error);
  for (uint32_t r = 0; r < count; ++r) assert_true(rows[r].refusal != NULL || rows[r].predicted_ns >= optimal->predicted_ns);
  clv__arena_finish(&arena);
}

static void prices(void **state) {
  (void)state;
  static const char *const strategies[] = {"optimal", "contiguous", "propagate", "delegate", "ready"};
  static const char *const objectives[] = {"latency", "overlap", "throughput"};
  const double seconds[] = {NAN, INFINITY, -INFINITY, -1, -0.0, 1e300, 1e9, 1e-30, 5e-324};
  for (size_t i = 0; i < sizeof seconds / sizeof *seconds; ++i) {
    machine m;
    odd = (odd_backend){
        .table = {.node_seconds = odd_node_seconds, .copy_seconds = odd_copy_seconds, .launch_seconds = odd_launch_seconds},
        .seconds = seconds[i]};
    open_odd(&m, i % 2 == 0 ? "odd,npu,cpu" : "odd,cpu");
    clv_graph *graph = test_random_graph(&m.counting.allocator, i, 20);
    for (uint32_t s = 0; s < 15; ++s) {
      clv_error error = {0};
      clv_plan *plan, *again;
      clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
      options.strategy = strategies[s % 5];
      options.objective = objectives[s / 5];
      assert_ok(clv_plan_make(graph, m.devices, &options, &plan, &error), error);
      assert_true(plan->bounds.serial_ns <= plan->price.serial_ns);
      assert_true(plan->bounds.overlapped_ns <= plan->price.overlapped_ns);
      assert_true(plan->bounds.throughput_ns <= plan->price.throughput_ns);
      if (s % 5 == 0) never_worse(&m, plan);
      char *text;
      assert_ok(clv__plan_to_json(plan, false, &text, &error), error);
      assert_ok(clv__plan_parse(graph, m.devices, text, strlen(text), NULL, &again, &error), error);
      assert_int_equal(again->predicted_ns, plan->predicted_ns);
      clv__release(graph->allocator, text);
      clv_plan_destroy(again);
      clv_plan_destroy(plan);
    }
    clv_graph_destroy(graph);
    machine_close(&m);
  }
}

/* ---- Tables of other sizes ---- */

static void tables(void **state) {
  (void)state;
  const uint32_t least = (uint32_t)(offsetof(clv_backend, execute) + sizeof odd.table.execute);
  for (uint32_t size = least; size <= sizeof(clv_backend) + 64; ++size) {
    machine m;
    odd = (odd_backend){.table = {.struct_size = size,
                                  .claim = odd_claim,
                                  .node_seconds = odd_node_seconds,
                                  .copy_seconds = odd_copy_seconds,
                                  .launch_seconds = odd_launch_seconds},
                        .seconds = 1e-6,
                        .claim = nothing};
    open_odd(&m, "odd,cpu");
    const clv_backend *table = m.devices->items[0].backend;
#define IS_WHOLE(slot) (size >= offsetof(clv_backend, slot) + sizeof table->slot)
    assert_true((table->claim != NULL) ==
                IS_WHOLE(claim)); /* a function whose pointer is only partly within the table's size is not used */
    assert_true((table->node_seconds != NULL) == IS_WHOLE(node_seconds));
    assert_true((table->copy_seconds != NULL) == IS_WHOLE(copy_seconds));
    assert_true((table->launch_seconds != NULL) == IS_WHOLE(launch_seconds));
#undef IS_WHOLE
    clv_graph *graph = test_random_graph(&m.counting.allocator, size, 8);
    clv_error error = {0};
    clv_plan *plan;
    assert_ok(clv_plan_make(graph, m.devices, NULL, &plan, &error), error);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    machine_close(&m);
  }
  clv_context *context;
  clv_error error = {0};
  assert_ok(clv_context_create(NULL, &context, &error), error);
  odd = (odd_backend){.table = {.struct_size = least - 1}};
  assert_int_equal(clv_context_add_backend(context, odd_query, NULL, &error), CLV_NOT_SUPPORTED);
  assert_non_null(strstr(error.message, "bytes"));
  clv_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(claims),
      cmocka_unit_test(a_claim_that_fails),
      cmocka_unit_test(prices),
      cmocka_unit_test(tables),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
