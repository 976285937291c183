/* Capture and replay as seen by a device: which functions of the backend each run calls, for the CPU and the virtual NPU, and the
 * reasons that are logged. */
#include "scene.h"

static void first_run_and_second(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    options.mode = CLV_CAPTURE_ON;
    open_scene(&s, options);
    open_part(&p, &s, make_small(&s, "Add", false, 8), NULL);
    assert_int_equal(p.plan->partition_count, 1);
    run(&p, 4, CAPTURES);
    assert_string_equal(s.said, "no earlier capture is kept");
    expect_issue(&p, 0, CLV__ISSUE_CAPTURED, "");
    for (int i = 0; i < 3; ++i) {
      run(&p, 4, "captured_launch");
      if (!options.is_asynchronous) expect_log(&s, ~UINT64_C(0), "captured_launch");
      expect_issue(&p, 0, CLV__ISSUE_REPLAYED, "");
    }
    clv__capture_counters c = counters(&p);
    assert_int_equal(c.misses, 1);
    assert_int_equal(c.captures, 1);
    assert_int_equal(c.hits, 3);
    assert_int_equal(c.entries, 1);
    assert_true(c.bytes > 0);
    interposer_log_clear(s.logged);
    close_part(&p);
    expect_log(&s, SCENE | INTERPOSER_BIT(instance_destroy), "captured_destroy instance_destroy");
    close_scene(&s);
  }
}

/* All partitions of a device are one entry of the cache, even if a partition on another device runs between them. */
static void partitions_on_both_sides_of_the_cpu(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    options.mode = CLV_CAPTURE_ON;
    options.entries = 1;
    open_scene(&s, options);
    open_part(&p, &s, make_split(&s, false), "middle=cpu");
    assert_int_equal(p.plan->partition_count, 3);
    run(&p, 4, CAPTURES " " CAPTURES);
    run(&p, 4, "captured_launch*2");
    run(&p, 4, "captured_launch*2");
    for (uint32_t i = 0; i < 3; ++i) expect_issue(&p, i, CLV__ISSUE_REPLAYED, ""); /* the partition on the CPU is replayed, too */
    assert_int_equal(counters(&p).entries, 1);
    assert_int_equal(counters(&p).hits, 2);
    close_part(&p);
    assert_int_equal(interposer_count(s.logged, INTERPOSER_captured_destroy), 2);
    close_scene(&s);
  }
}

/* Consecutive partitions on a device, with no wait between them, are captured together. */
static void partitions_one_after_the_other(void **state) {
  (void)state;
  scene s;
  part p, split;
  open_scene(&s, (scene_options){.is_npu = true, .is_asynchronous = true, .mode = CLV_CAPTURE_ON, .spec = one_node_each});
  open_part(&p, &s, make_split(&s, true), NULL);
  assert_int_equal(p.plan->partition_count, 3);
  run(&p, 4, "capture_begin execute*3 capture_end captured_launch");
  for (uint32_t i = 0; i < 3; ++i) expect_issue(&p, i, CLV__ISSUE_CAPTURED, "");
  run(&p, 4, "captured_launch");
  for (uint32_t i = 0; i < 3; ++i) expect_issue(&p, i, CLV__ISSUE_REPLAYED, "");
  run(&p, 9, "capture_begin execute*3 capture_end captured_launch"); /* the memory grows and moves */
  run(&p, 4, "captured_bind*3 captured_launch");
  run(&p, 4, "captured_launch");
  for (int i = 0; i < 3; ++i) { /* each shape has its own capture */
    run(&p, 9, "captured_launch");
    run(&p, 4, "captured_launch");
  }
  close_part(&p);
  open_part(&split, &s, make_split(&s, false), "middle=cpu"); /* two captures: the CPU waits for the first */
  run(&split, 4, CAPTURES " " CAPTURES);
  run(&split, 4, "captured_launch*2");
  close_part(&split);
  close_scene(&s);
}

/* y = Neg(Reshape(x + b, Shape(x)[:, columns])): all sizes follow from those of the input. */
static clv_graph *make_reshaped(const scene *s) {
  test_graph g;
  test_graph_begin(&g, &s->counting.allocator, 3);
  test_graph_input(&g, "x", CLV_F32, 2, DIMS(test_graph_symbol(&g, "N"), 8));
  test_graph_weight(&g, "b", 1, DIMS(8));
  test_graph_node(&g, "add", "Add", "x,b", "t");
  test_graph_node(&g, "shape", "Shape", "x", "sizes");
  test_graph_node(&g, "again", "Reshape", "t,sizes", "u");
  test_graph_node(&g, "neg", "Neg", "u", "y");
  return test_graph_end(&g, "y");
}

/* A device that compiles once for open sizes makes one capture for each set of shapes. */
static void open_sizes_on_one_executable(void **state) {
  (void)state;
  for (int is_reshaped = 0; is_reshaped < 2; ++is_reshaped) {
    scene s;
    part p;
    open_scene(&s, (scene_options){.is_npu = true, .is_asynchronous = true, .mode = CLV_CAPTURE_ON, .spec = "all"});
    open_part(&p, &s, is_reshaped ? make_reshaped(&s) : make_small(&s, "Add", true, 8), "*=logged");
    for (int64_t n = 1; n <= 6; ++n) run(&p, n, CAPTURES);
    for (int64_t n = 1; n <= 6; ++n) {
      run_into(&p, n, p.out); /* if later shapes made the memory move, the capture's bindings change first */
      expect_issue(&p, 0, CLV__ISSUE_REPLAYED, "");
    }
    for (int i = 0; i < 8; ++i) run(&p, 3 + i % 2, "captured_launch");
    assert_int_equal(interposer_count(s.logged, INTERPOSER_compile), 1);
    assert_int_equal(counters(&p).failures, 0);
    close_part(&p);
    close_scene(&s);
  }
}

static void a_changed_graph(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part add, same, mul, wide, open, soft[2];
    options.mode = CLV_CAPTURE_ON;
    open_scene(&s, options);
    open_part(&add, &s, make_small(&s, "Add", false, 8), NULL);
    run(&add, 4, CAPTURES);
    open_part(&same, &s, make_small(&s, "Add", false, 8), NULL); /* the same graph, but other memory */
    run(&same, 4, CAPTURES);
    assert_string_equal(s.said, "the same shapes were captured for another request");
    open_part(&mul, &s, make_small(&s, "Mul", false, 8), NULL);
    run(&mul, 4, CAPTURES);
    assert_string_equal(s.said, "node 0 'act': Mul, was Add");
    run(&mul, 4, "captured_launch");
    open_part(&wide, &s, make_small(&s, "Mul", false, 6), NULL);
    run(&wide, 4, CAPTURES);
    assert_string_equal(s.said, "value 'x': f32[4,6], was f32[4,8]");
    open_part(&open, &s, make_small(&s, "Mul", true, 6), NULL);
    run(&open, 5, CAPTURES);
    assert_string_equal(s.said, "value 'x': f32[5,6], was f32[4,6]");
    run(&open, 3, CAPTURES);
    assert_string_equal(s.said, "value 'x': f32[3,6], was f32[5,6]");
    run(&open, 5, "captured_launch");
    open_part(&soft[0], &s, make_softmax(&s, 0), NULL);
    run(&soft[0], 4, CAPTURES);
    open_part(&soft[1], &s, make_softmax(&s, 1), NULL);
    run(&soft[1], 4, CAPTURES);
    if (strstr(s.said, "node 0 'soft'") == NULL || strstr(s.said, "axis") == NULL)
      fail_msg("the reason in the log must contain \"node 0 'soft'\" and 'axis': %s", s.said);
    run(&add, 4, "captured_launch");
    run(&soft[0], 4, "captured_launch");
    close_part(&soft[0]);
    close_part(&soft[1]);
    close_part(&open);
    close_part(&wide);
    close_part(&mul);
    close_part(&same);
    close_part(&add);
    close_scene(&s);
  }
}

static void the_thirteenth_shape(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    const void *graphs[14];
    options.mode = CLV_CAPTURE_ON;
    open_scene(&s, options);
    open_part(&p, &s, make_small(&s, "Add", true, 8), NULL);
    for (int64_t n = 13; n >= 2; --n) {
      run(&p, n, CAPTURES);
      graphs[n] = s.launched;
    }
    run(&p, 13, "captured_launch");
    run(&p, 1, "execute"); /* not captured: it was not seen more often than any shape in the cache */
    expect_issue(&p, 0, CLV__ISSUE_EAGER, "the cache is full");
    run(&p, 1, CAPTURES " captured_destroy");
    assert_ptr_equal(s.destroyed, graphs[12]); /* the capture of the shape used least recently */
    assert_int_equal(interposer_count(s.logged, INTERPOSER_captured_destroy), 1);
    assert_int_equal(counters(&p).evictions, 1);
    assert_int_equal(counters(&p).entries, 12);
    run(&p, 1, "captured_launch");
    for (int64_t n = 11; n >= 2; --n) run(&p, n, "captured_launch");
    run(&p, 13, "captured_launch");
    run(&p, 12, "execute"); /* the evicted capture is gone */
    close_part(&p);
    assert_int_equal(interposer_count(s.logged, INTERPOSER_captured_destroy), 13);
    close_scene(&s);
  }
}

/* ---- Modes ---- */

/* A CPU device. If `is_global_only`, it can capture only in global mode, which records the calls of all threads; some drivers
 * have no other. */
static struct {
  clv_backend table;
  clv_capture_slots capture;
  const clv_backend *inner;
  bool is_global_only;
  uint32_t begun;
  clv_capture_mode mode; /* the mode that the last begin() was asked for */
} driver;

static clv_status begin_in_mode(clv_device *device, clv_stream *stream, clv_capture_mode mode, clv_error *error) {
  ++driver.begun;
  driver.mode = mode;
  if (driver.is_global_only && mode != CLV_CAPTURE_GLOBAL) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "begin(): code 4: global captures only");
  }
  return driver.inner->capture->begin(device, stream, mode, error);
}

static clv_status query_driver(const clv_host *host, void *self, const clv_backend **backend, clv_error *error) {
  CLV__TRY(clv__cpu_backend_query(host, self, &driver.inner, error));
  driver.table = *driver.inner;
  driver.capture = *driver.inner->capture;
  driver.capture.begin = begin_in_mode;
  driver.table.capture = &driver.capture;
  *backend = &driver.table;
  return CLV_OK;
}

/* Sessions capture in the mode that records one thread's calls, because other sessions may use the device meanwhile. If a
 * device cannot capture in this mode, its partitions are issued launch by launch, and it is not asked again. */
static void captures_are_of_one_thread(void **state) {
  (void)state;
  for (int is_global_only = 0; is_global_only < 2; ++is_global_only) {
    scene s;
    part p;
    driver.is_global_only = is_global_only != 0;
    driver.begun = 0;
    open_scene(&s, (scene_options){.mode = CLV_CAPTURE_ON, .query = query_driver});
    open_part(&p, &s, make_small(&s, "Add", false, 8), NULL);
    run(&p, 4, is_global_only ? "capture_begin execute" : CAPTURES);
    for (int i = 0; i < 3; ++i) run(&p, 4, is_global_only ? "execute" : "captured_launch");
    assert_int_equal(driver.begun, 1);
    assert_int_equal(driver.mode, CLV_CAPTURE_THREAD);
    if (is_global_only)
      assert_non_null(
          strstr(s.failed, "nodes 'act' (Add) to 'neg' (Neg): capture->begin: begin(): code 4: global captures only"));
    close_part(&p);
    close_scene(&s);
  }
}

/* ---- Phases ---- */

static void prefill_and_decode(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    for (int prefill_too = 0; prefill_too < 2; ++prefill_too) {
      scene s;
      part p;
      options.mode = CLV_CAPTURE_ON;
      options.prefill = prefill_too ? CLV_SWITCH_ON : CLV_SWITCH_UNSET;
      open_scene(&s, options);
      open_part(&p, &s, make_attention(&s), NULL);
      run(&p, 16, prefill_too ? CAPTURES : "execute");
      if (!prefill_too) expect_issue(&p, 0, CLV__ISSUE_EAGER, "prefill");
      run(&p, 1, CAPTURES);
      run(&p, 1, "captured_launch");
      run(&p, 16, prefill_too ? "captured_launch" : "execute");
      run(&p, 1, "captured_launch");
      close_part(&p);
      close_scene(&s);
    }
  }
}

/* An encoder has several queries, but no phase: its keys are computed from the same input as the queries. */
static void encoders_are_replayed(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    test_graph g;
    options.mode = CLV_CAPTURE_AUTO;
    open_scene(&s, options);
    test_graph_begin(&g, &s.counting.allocator, 3);
    test_graph_input(&g, "x", CLV_F32, 2, DIMS(test_graph_symbol(&g, "Q"), 8));
    test_graph_weight(&g, "w", 2, DIMS(8, 8));
    test_graph_node(&g, "keys", "MatMul", "x,w", "k");
    test_graph_node(&g, "turn", "Transpose", "k", "k_t");
    test_graph_node(&g, "scores", "MatMul", "x,k_t", "s");
    test_graph_node(&g, "weights", "Softmax", "s", "p");
    test_graph_node(&g, "mix", "MatMul", "p,x", "y");
    open_part(&p, &s, test_graph_end(&g, "y"), NULL);
    run_into(&p, 7, p.out);
    run_into(&p, 7, p.out);
    run_into(&p, 7, p.out);
    for (uint32_t i = 0; i < p.plan->partition_count; ++i) expect_issue(&p, i, CLV__ISSUE_REPLAYED, "");
    close_part(&p);
    close_scene(&s);
  }
}

/* What a session prepares for a bucket serves runs of the prompt (prefill) and of one token (decode), so each run must find
 * out again which of the two it is. */
static void prefill_and_decode_in_a_bucket(void **state) {
  (void)state;
  scene s;
  part p;
  open_scene(&s, (scene_options){.is_npu = true, .mode = CLV_CAPTURE_ON, .multiple = 32});
  open_part(&p, &s, make_attention(&s), NULL);
  assert_true(p.plan->partitions[0].is_bucketed);
  run(&p, 40, "execute");
  run(&p, 16, "execute");
  run(&p, 1, CAPTURES);
  run(&p, 1, "captured_launch");
  run(&p, 16, "execute");
  run(&p, 40, "execute");
  run(&p, 1, "captured_launch");
  close_part(&p);
  close_scene(&s);
}

/* One capture serves all shapes of a bucket. */
static void shapes_of_a_bucket(void **state) {
  (void)state;
  scene s;
  part p;
  open_scene(&s, (scene_options){.is_npu = true, .mode = CLV_CAPTURE_ON, .multiple = 16});
  open_part(&p, &s, make_split(&s, true), "middle=cpu");
  run(&p, 17, CAPTURES " " CAPTURES);
  run(&p, 3, CAPTURES " " CAPTURES);
  for (int64_t n = 1; n <= 32; ++n) run(&p, n, "captured_launch*2");
  /* The CPU does not pad. It captures a shape in the second of two consecutive runs with it. */
  expect_issue(&p, 1, CLV__ISSUE_EAGER, "sizes differ from those of the previous run");
  run(&p, 32, "captured_launch*2");
  expect_issue(&p, 1, CLV__ISSUE_CAPTURED, "");
  for (int i = 0; i < 3; ++i) {
    run(&p, 32, "captured_launch*2");
    expect_issue(&p, 1, CLV__ISSUE_REPLAYED, "");
  }
  run(&p, 2, "captured_launch*2"); /* another bucket */
  run(&p, 32, "captured_launch*2");
  expect_issue(&p, 1, CLV__ISSUE_REPLAYED, "");
  run(&p, 31, "captured_launch*2");
  expect_issue(&p, 1, CLV__ISSUE_EAGER, "sizes differ from those of the previous run");
  run(&p, 32, "captured_launch*2");
  expect_issue(&p, 1, CLV__ISSUE_EAGER, "sizes differ from those of the previous run");
  assert_int_equal(counters(&p).captures, 2);
  close_part(&p);
  close_scene(&s);
}

static void off_and_auto(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    options.mode = CLV_CAPTURE_OFF;
    open_scene(&s, options);
    open_part(&p, &s, make_small(&s, "Add", false, 8), NULL);
    for (int i = 0; i < 4; ++i) run(&p, 4, "execute");
    expect_issue(&p, 0, CLV__ISSUE_EAGER, "capture is off");
    close_part(&p);
    close_scene(&s);
    options.mode = CLV_CAPTURE_AUTO;
    open_scene(&s, options);
    open_part(&p, &s, make_small(&s, "Add", false, 8), NULL);
    run(&p, 4, "execute");
    expect_issue(&p, 0, CLV__ISSUE_EAGER, "these shapes were not run often enough");
    run(&p, 4, CAPTURES);
    run(&p, 4, "captured_launch");
    close_part(&p);
    close_scene(&s);
    options.without = INTERPOSER_CAPTURE;
    options.mode = CLV_CAPTURE_ON;
    open_scene(&s, options);
    open_part(&p, &s, make_small(&s, "Add", false, 8), NULL);
    for (int i = 0; i < 2; ++i) run(&p, 4, "execute");
    expect_issue(&p, 0, CLV__ISSUE_EAGER, "the device cannot capture");
    close_part(&p);
    close_scene(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(first_run_and_second),
      cmocka_unit_test(partitions_on_both_sides_of_the_cpu),
      cmocka_unit_test(partitions_one_after_the_other),
      cmocka_unit_test(open_sizes_on_one_executable),
      cmocka_unit_test(a_changed_graph),
      cmocka_unit_test(the_thirteenth_shape),
      cmocka_unit_test(prefill_and_decode),
      cmocka_unit_test(encoders_are_replayed),
      cmocka_unit_test(captures_are_of_one_thread),
      cmocka_unit_test(prefill_and_decode_in_a_bucket),
      cmocka_unit_test(shapes_of_a_bucket),
      cmocka_unit_test(off_and_auto),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
