/* Tests report/efficiency.h with plans for one device and for two. The times add up, a device that reports no steps has one row
 * per partition, wrong reports of devices are errors, and the table has all results. */
#include "backends/cpu/cpu.h"
#include "cost/signature.h"
#include "machine.h"
#include "report/efficiency.h"

enum { RUNS = 3 };

typedef struct account {
  machine m;
  interposer *between;
  clv_graph *graph;
  clv_plan *plan;
  clv_session *session;
  clv_tensor inputs[8];
  float data[8][256];
  clv__efficiency efficiency;
} account;

static void open_session(account *a, clv_graph *(*make)(const clv_allocator *), bool alternate, const char *devices) {
  static const char *const all[] = {"all"};
  *a = (account){0};
  machine_open(&a->m, devices, 1, all);
  a->graph = make(&a->m.counting.allocator);
  char pins[512] = "";
  for (uint32_t n = 0; alternate && n < a->graph->node_count; ++n) {
    const size_t length = strlen(pins);
    snprintf(pins + length, sizeof pins - length, "%s%s=%s", n > 0 ? "," : "", a->graph->nodes[n].name,
             n % 2 == 0 ? "cpu" : "npu");
  }
  a->plan = machine_plan(&a->m, a->graph, pins, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  a->session = machine_session(a->plan);
  uint64_t random = 3;
  for (uint32_t i = 0; i < a->graph->input_count; ++i) {
    for (size_t k = 0; k < 256; ++k) a->data[i][k] = test_random_float(&random);
    a->inputs[i] = *clv_graph_input_type(a->graph, i);
    a->inputs[i].data = a->data[i];
  }
}

static clv_status run_timed(account *a, uint32_t runs, clv_error *error) {
  CLV__TRY(clv__efficiency_begin(&a->efficiency, a->session, 1, runs, error));
  clv__session_time_steps(a->session, true);
  for (uint32_t run = 0; run < runs; ++run) {
    machine_check_run(a->session, a->plan, a->inputs, "timed");
    CLV__TRY(clv__efficiency_sample(&a->efficiency, error));
  }
  clv__session_time_steps(a->session, false);
  return clv__efficiency_make_rows(&a->efficiency, error);
}

static void close_session(account *a) {
  clv__efficiency_finish(&a->efficiency);
  clv_session_destroy(a->session);
  clv_plan_destroy(a->plan);
  clv_graph_destroy(a->graph);
  machine_close(&a->m);
}

static bool near(double a, double b) {
  return fabs(a - b) <= 1e-9 * fmax(1, fabs(b));
}

/* Checks that rows are the sums of their steps and sorted by time, and that every node is in exactly one step or idle. */
static void expect_sums(const account *a) {
  const clv__efficiency *e = &a->efficiency;
  double rows_ms = 0, steps_ms = 0, roof_ms = 0;
  uint32_t counted = 0, in_steps = 0;
  uint8_t seen[64] = {0};
  for (uint32_t r = 0; r < e->row_count; ++r) {
    double ms = 0, flops = 0, roof = 0, lost = 0;
    for (uint32_t s = 0; s < e->step_count; ++s) {
      if (strcmp(e->steps[s].label, e->rows[r].label) != 0 || e->steps[s].device != e->rows[r].device) continue;
      ms += e->steps[s].ms;
      flops += e->steps[s].work.flops;
      if (e->steps[s].ms > e->steps[s].roof_ms) lost += e->steps[s].ms - e->steps[s].roof_ms;
      if (e->steps[s].roof_ms > 0) roof += e->steps[s].roof_ms;
    }
    assert_true(near(ms, e->rows[r].ms) && near(flops, e->rows[r].flops) && near(roof, e->rows[r].roof_ms) &&
                near(lost, e->rows[r].lost_ms));
    assert_true(r == 0 || e->rows[r].ms <= e->rows[r - 1].ms);
    rows_ms += e->rows[r].ms;
    counted += e->rows[r].count;
  }
  assert_int_equal(counted, e->step_count);
  for (uint32_t s = 0; s < e->step_count; ++s) {
    const clv__op_step *step = &e->steps[s];
    steps_ms += step->ms;
    assert_true(step->ms >= 0);
    if (step->node_count > 0) assert_true(step->work.is_known && step->roof_ms >= 0 && e->has_peaks[step->device]);
    if (step->node_count == 0) assert_true(step->roof_ms == 0);
    roof_ms += step->roof_ms;
    for (uint32_t i = 0; i < step->node_count; ++i) assert_int_equal(seen[step->nodes[i]]++, 0);
    in_steps += step->node_count;
  }
  for (uint32_t i = 0; i < e->idle_count; ++i) {
    assert_int_equal(seen[e->idle[i]]++, 0);
    assert_true(clv__node_is_view(&a->graph->nodes[e->idle[i]]));
  }
  assert_int_equal(in_steps + e->idle_count, a->graph->node_count);
  assert_true(near(rows_ms, e->ms) && near(steps_ms, e->ms) && near(roof_ms, e->roof_ms));
}

static const clv__op_row *row_of(const account *a, const char *label) {
  for (uint32_t r = 0; r < a->efficiency.row_count; ++r) {
    if (strncmp(a->efficiency.rows[r].label, label, strlen(label)) == 0) return &a->efficiency.rows[r];
  }
  return NULL;
}

/* With a single run, the medians are the times of that run, so the times of the steps add up to that of the partition. */
static void of_one_device(void **state) {
  (void)state;
  account a;
  clv_error error = {0};
  open_session(&a, test_seven_nodes, false, "cpu");
  assert_ok(run_timed(&a, 1, &error), error);
  expect_sums(&a);
  assert_int_equal(a.efficiency.silent, 0);
  double ms = 0;
  for (uint32_t s = 0; s < a.plan->step_count; ++s) ms += (double)clv__session_step_time_ns(a.session, s) / 1e6;
  assert_true(near(ms, a.efficiency.ms));
  assert_non_null(row_of(&a, "Conv+Relu"));
  assert_non_null(row_of(&a, "between steps"));
  assert_null(row_of(&a, "partition"));
  clv__text text;
  clv__text_init(&text, clv__allocator_default());
  clv__efficiency_write(&a.efficiency, 1.0, true, false, &text);
  static const char *const parts[] = {"Conv+Relu",
                                      "conv and 1 more",
                                      "between steps",
                                      "total",
                                      "Peaks of cpu, measured with 1 thread: f64 ",
                                      "The least possible time of the model ",
                                      "of 1 separate runs"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
    if (strstr(text.data, parts[i]) == NULL) fail_msg("the report does not contain '%s':\n%s", parts[i], text.data);
  }
  assert_null(strstr(text.data, "does not report"));
  assert_false(text.failed);
  clv__text_finish(&text);
  close_session(&a);
}

static void of_two_devices(void **state) {
  (void)state;
  account a;
  clv_error error = {0};
  open_session(&a, test_seven_nodes, true, "npu,cpu");
  assert_ok(run_timed(&a, RUNS, &error), error);
  expect_sums(&a);
  assert_int_equal(a.efficiency.silent, 1); /* bit 0: the first device, npu */
  assert_non_null(row_of(&a, "partition "));
  assert_non_null(row_of(&a, "transfer"));
  for (uint32_t s = 0; s < a.efficiency.step_count; ++s) {
    const clv__op_step *step = &a.efficiency.steps[s];
    if (step->kind == CLV__STEP_OF_NODES) assert_int_equal(step->device, 1);
    if (step->kind == CLV__STEP_PARTITION && step->device == 0)
      assert_true(step->node_count == a.plan->partitions[step->index].node_count);
  }
  clv__text text;
  clv__text_init(&text, clv__allocator_default());
  clv__efficiency_write(&a.efficiency, 0, false, false, &text);
  assert_non_null(strstr(text.data, "npu does not report times of its steps, so each of its partitions is one row.\n"));
  assert_null(strstr(text.data, "The least possible time"));
  clv__text_finish(&text);
  close_session(&a);
}

/* ---- A device that reports impossible steps ---- */

static enum { RIGHT, NODE_TWICE, NO_SUCH_NODE, FEWER_LATER, MORE_LATER } lie;
static const clv_backend *inner;
static clv_backend liar;
static clv_timing_slots liar_timing;
static uint32_t listings;

typedef struct passing {
  clv_step_fn found;
  void *cookie;
} passing;

static clv_status pass(void *cookie, const clv_step_info *info) {
  const passing *p = cookie;
  clv_step_info told = *info;
  static const uint32_t first[] = {0}, beyond[] = {1000};
  if (lie == NODE_TWICE || lie == NO_SUCH_NODE) {
    told.node_count = 1;
    told.nodes = lie == NODE_TWICE ? first : beyond;
  }
  return p->found(p->cookie, &told);
}

static clv_status lying_steps(clv_device *device, clv_instance *instance, clv_step_fn found, void *cookie, clv_error *error) {
  passing p = {found, cookie};
  const clv_step_info more = {.struct_size = sizeof more, .what = "more", .implementation = "", .beside = CLV_NO_VALUE};
  ++listings;
  if (lie == FEWER_LATER && listings > 2) return CLV_OK;
  CLV__TRY(inner->timing->steps(device, instance, pass, &p, error));
  return lie == MORE_LATER && listings > 2 ? found(cookie, &more) : CLV_OK;
}

static clv_status query_liar(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  (void)user_data;
  CLV__TRY(clv__cpu_backend_query(host, NULL, &inner, error));
  liar = *inner;
  liar.name = "liar";
  liar_timing = *inner->timing;
  liar_timing.steps = lying_steps;
  liar.timing = &liar_timing;
  *backend = &liar;
  return CLV_OK;
}

static void lies_are_refused(void **state) {
  (void)state;
  static const char *const texts[] = {NULL, "which belongs to another step", "which is not in the partition",
                                      "the device reports fewer steps than before", "the device reports more steps than before"};
  for (lie = RIGHT; lie <= MORE_LATER; ++lie) {
    account a = {0};
    clv_error error = {0};
    listings = 0;
    interposer *between = interposer_create(&(interposer_options){.name = "liar", .query = query_liar});
    machine_open_with(&a.m, between, "liar", 0, NULL);
    a.graph = test_seven_nodes(&a.m.counting.allocator);
    a.plan = machine_plan(&a.m, a.graph, NULL, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
    a.session = machine_session(a.plan);
    a.inputs[0] = *clv_graph_input_type(a.graph, 0);
    a.inputs[0].data = a.data[0];
    const clv_status status = run_timed(&a, RUNS, &error);
    clv__session_time_steps(a.session, false);
    assert_int_equal(status, lie == RIGHT ? CLV_OK : CLV_DEVICE_ERROR);
    if (lie != RIGHT && strstr(error.message, texts[lie]) == NULL)
      fail_msg("the error message must contain '%s': %s", texts[lie], error.message);
    close_session(&a);
    interposer_destroy(between);
  }
}

/* Makes every allocation of clv__efficiency_begin() and clv__efficiency_sample() fail once. */
static void no_memory(void **state) {
  (void)state;
  for (size_t k = 1; k < 40; ++k) {
    account a;
    clv_error error = {0};
    open_session(&a, test_seven_nodes, false, "cpu");
    a.m.counting.calls = 0;
    a.m.counting.fail_at = k;
    clv_status status = clv__efficiency_begin(&a.efficiency, a.session, 1, RUNS, &error);
    if (status == CLV_OK) status = clv__efficiency_sample(&a.efficiency, &error);
    const bool was_reached = a.m.counting.calls >= k;
    a.m.counting.fail_at = 0;
    assert_true(status == CLV_OK || status == CLV_OUT_OF_MEMORY);
    if (was_reached) assert_int_equal(status, CLV_OUT_OF_MEMORY);
    close_session(&a);
    if (!was_reached) return;
  }
}

/* Makes each of the first four allocations of clv__efficiency_make_rows() fail. These allocations precede the measurement of
 * the peaks. */
static void no_memory_for_rows(void **state) {
  (void)state;
  for (size_t k = 1; k <= 4; ++k) {
    account a;
    clv_error error = {0};
    open_session(&a, test_seven_nodes, false, "cpu");
    assert_ok(clv__efficiency_begin(&a.efficiency, a.session, 1, RUNS, &error), error);
    assert_ok(clv__efficiency_sample(&a.efficiency, &error), error);
    a.m.counting.calls = 0;
    a.m.counting.fail_at = k;
    assert_int_equal(clv__efficiency_make_rows(&a.efficiency, &error), CLV_OUT_OF_MEMORY);
    a.m.counting.fail_at = 0;
    close_session(&a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(of_one_device), cmocka_unit_test(of_two_devices),     cmocka_unit_test(lies_are_refused),
      cmocka_unit_test(no_memory),     cmocka_unit_test(no_memory_for_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
