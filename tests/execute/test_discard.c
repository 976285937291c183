/* At the beginning of each run, the virtual NPU poisons the memory of the values between partitions. If a run leaves out a
 * copy or a launch, it therefore reads NaN, and not the values of the run before, which could hide the mistake. */
#include "backends/vnpu/vnpu.h"
#include "machine.h"

enum { COUNT = 32 };

static const char any[] = "{\"operators\": \"all\"}", fixed[] = "{\"operators\": \"all\", \"static_shapes\": true}",
                  fixed_in_common[] = "{\"operators\": \"all\", \"static_shapes\": true, \"memory_space\": \"common\"}",
                  any_in_common[] = "{\"operators\": \"all\", \"memory_space\": \"common\"}";

/* Leaves out one call of a slot. */
typedef struct gap {
  interposer_slot slot;
  int at; /* which call from now on is left out, counted from 1; 0 or less: none */
} gap;

static interposer_fate leave_out(void *user_data, const interposer_call *call) {
  gap *g = user_data;
  return (interposer_fate){.action = call->slot == g->slot && g->at-- == 1 ? INTERPOSER_SKIP : INTERPOSER_PASS};
}

/* A model on the device "logged", in which calls are left out, and another device. */
typedef struct rig {
  gap gap;
  interposer *logged;
  machine m;
  clv_graph *graph;
  clv_plan *plan;
  clv_session *session;
  clv_tensor input;
  float data[COUNT];
} rig;

/* `captures` is "on" or "off". `other_spec` describes a second virtual NPU, "npu"; NULL: there is none. */
static void open_devices(rig *r, const char *captures, const char *spec, const char *other_spec) {
  memset(r, 0, sizeof *r);
  setenv("CLEAVE_GRAPH", captures, 1);
  r->logged = interposer_create(&(interposer_options){
      .name = "logged", .query = clv__vnpu_backend_query, .spec = spec, .hook = leave_out, .user_data = &r->gap});
  machine_open_with(&r->m, r->logged, other_spec != NULL ? "logged,npu,cpu" : "logged,cpu", other_spec != NULL, &other_spec);
}

static void open_session(rig *r, clv_graph *graph, const char *pins, clv_tensor input) {
  uint64_t seed = 4;
  clv_error error = {0};
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  options.bucket_multiple = 8;
  r->graph = graph;
  r->plan = machine_plan(&r->m, graph, pins, (clv_plan_options)CLV_PLAN_OPTIONS_INIT);
  assert_ok(clv_session_create(r->plan, &options, &r->session, &error), error);
  for (int i = 0; i < COUNT; ++i) r->data[i] = 1 + test_random_float(&seed) / 2;
  r->input = input;
  r->input.data = r->data;
}

static void close_rig(rig *r) {
  clv_session_destroy(r->session);
  clv_plan_destroy(r->plan);
  clv_graph_destroy(r->graph);
  machine_close(&r->m);
  interposer_destroy(r->logged);
}

/* Makes a run without call number `at` of the slot. Returns false if the run has fewer calls. Otherwise all of the output must
 * be NaN, and the result is true. */
static bool run_without(rig *r, interposer_slot slot, int at) {
  clv_tensor output = {0};
  clv_error error = {0};
  size_t count;
  r->gap = (gap){slot, at};
  assert_ok(clv_session_run(r->session, &r->input, 1, &output, 1, &error), error);
  if (r->gap.at > 0) return false;
  assert_true(clv__tensor_count(&output, &count) && count > 0);
  for (size_t i = 0; i < count; ++i) {
    if (!isnan(clv__tensor_get(&output, i))) {
      fail_msg("without call %d of %s, element %zu is %g, expected NaN", at, interposer_slot_name(slot), i,
               clv__tensor_get(&output, i));
    }
  }
  return true;
}

/* Leaves out every call of the slot once, each time in a run that follows a complete run. Returns the number of calls. */
static int leave_out_each(rig *r, interposer_slot slot) {
  int at = 1;
  do {
    r->gap.at = 0;
    machine_check_run(r->session, r->plan, &r->input, interposer_slot_name(slot));
  } while (run_without(r, slot, at++));
  return at - 2;
}

/* All nodes but `middle` are on "logged". `last` reads all values, so that none of them shares its memory with another. */
static clv_graph *chain(const clv_allocator *allocator, bool is_open) {
  test_graph g;
  test_graph_begin(&g, allocator, 3);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(is_open ? test_graph_symbol(&g, "N") : 4, 8));
  test_graph_weight(&g, "b", 1, DIMS(8));
  test_graph_node(&g, "first", "Add", "x,b", "t");
  test_graph_node(&g, "middle", "Neg", "t", "u");
  test_graph_node(&g, "last", "Sum", "u,t,x", "y");
  return test_graph_end(&g, "y");
}

static void copies_and_launches(void **state) {
  (void)state;
  for (int is_open = 0; is_open < 2; ++is_open) { /* on an NPU with fixed shapes, values of open size are padded */
    rig r;
    open_devices(&r, "off", fixed, NULL);
    open_session(&r, chain(&r.m.counting.allocator, is_open), "middle=cpu", f32(2, DIMS(is_open ? 3 : 4, 8), NULL));
    assert_int_equal(leave_out_each(&r, INTERPOSER_copy_in), 2);
    assert_int_equal(leave_out_each(&r, INTERPOSER_execute), 2);
    close_rig(&r);
  }
}

static void launches_of_captures(void **state) {
  (void)state;
  rig r;
  open_devices(&r, "on", fixed, NULL);
  open_session(&r, chain(&r.m.counting.allocator, false), "middle=cpu", f32(2, DIMS(4, 8), NULL));
  for (int i = 0; i < 3; ++i) machine_check_run(r.session, r.plan, &r.input, "runs that capture");
  assert_int_equal(leave_out_each(&r, INTERPOSER_copy_in), 2);
  assert_int_equal(leave_out_each(&r, INTERPOSER_captured_launch), 2);
  close_rig(&r);
}

/* A value whose size depends on data has memory of its own, which must be poisoned too. */
static void sizes_from_data(void **state) {
  (void)state;
  rig r;
  test_graph g;
  open_devices(&r, "off", any, NULL);
  test_graph_begin(&g, &r.m.counting.allocator, 3);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(COUNT));
  test_graph_node(&g, "find", "NonZero", "x", "t");
  test_graph_node_ints(&g, "middle", "Cast", "t", "u", "to", false, 1, DIMS(1));
  test_graph_node(&g, "last", "Neg", "u", "y");
  open_session(&r, test_graph_end(&g, "y"), "find=cpu,middle=cpu", f32(1, DIMS(COUNT), NULL));
  assert_int_equal(leave_out_each(&r, INTERPOSER_copy_in), 1);
  close_rig(&r);
}

/* An NPU with fixed shapes has padded copies of its own, because another device has the exact sizes in the same memory. */
static void padded_copies(void **state) {
  (void)state;
  rig r;
  open_devices(&r, "off", fixed_in_common, any_in_common);
  open_session(&r, chain(&r.m.counting.allocator, true), "middle=npu", f32(2, DIMS(3, 8), NULL));
  assert_true(leave_out_each(&r, INTERPOSER_copy_in) >= 3);
  assert_int_equal(leave_out_each(&r, INTERPOSER_execute), 2);
  close_rig(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(copies_and_launches),
      cmocka_unit_test(launches_of_captures),
      cmocka_unit_test(sizes_from_data),
      cmocka_unit_test(padded_copies),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
