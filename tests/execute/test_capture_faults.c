/* Captures and launches that fail, and memory that moves or runs out while captures are kept. Results stay right, nothing is
 * destroyed twice, and a failed capture is not tried again. */
#include "scene.h"

/* ---- Captures and launches that fail ---- */

typedef struct failure {
  interposer_slot slot;
  uint32_t at; /* which call of the slot fails in that run */
  bool is_replay;
  interposer_action action;
  const char *log;
  uint32_t destroyed;
} failure;

#define RECORDS "capture_begin execute capture_end"
static const failure failures[] = {
    {INTERPOSER_capture_begin, 1, false, INTERPOSER_FAIL, "capture_begin execute*2", 0},
    {INTERPOSER_execute, 1, false, INTERPOSER_FAIL, RECORDS " execute*2", 0},
    {INTERPOSER_capture_end, 1, false, INTERPOSER_FAIL, RECORDS " execute*2", 0},
    {INTERPOSER_captured_launch, 1, false, INTERPOSER_FAIL, CAPTURES " execute*2 captured_destroy", 1},
    {INTERPOSER_capture_begin, 2, false, INTERPOSER_FAIL, CAPTURES " capture_begin execute captured_destroy", 1},
    {INTERPOSER_execute, 2, false, INTERPOSER_FAIL, CAPTURES " " RECORDS " execute captured_destroy", 1},
    {INTERPOSER_capture_end, 2, false, INTERPOSER_FAIL, CAPTURES " " RECORDS " execute captured_destroy", 1},
    {INTERPOSER_captured_launch, 2, false, INTERPOSER_FAIL, CAPTURES " " CAPTURES " execute captured_destroy*2", 2},
    {INTERPOSER_captured_launch, 1, true, INTERPOSER_FAIL, "captured_launch execute*2 captured_destroy*2", 2},
    {INTERPOSER_captured_launch, 2, true, INTERPOSER_FAIL, "captured_launch*2 execute captured_destroy*2", 2},
};

static void captures_that_fail(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    for (size_t i = 0; i < sizeof failures / sizeof *failures; ++i) {
      const failure *f = &failures[i];
      scene s;
      part p, again;
      options.mode = CLV_CAPTURE_ON;
      open_scene(&s, options);
      open_part(&p, &s, make_split(&s, false), "middle=cpu");
      if (f->is_replay) run(&p, 4, CAPTURES " " CAPTURES);
      s.failing = f->slot;
      s.fails_at = f->at;
      s.action = f->action;
      run(&p, 4, f->log);
      assert_int_equal(s.fails_at, 0);
      assert_int_equal(interposer_count(s.logged, INTERPOSER_captured_destroy), f->destroyed);
      for (int k = 0; k < 3; ++k) run(&p, 4, "execute*2"); /* it is not captured again */
      expect_issue(&p, 0, CLV__ISSUE_EAGER, "its capture failed");
      assert_int_equal(counters(&p).failures, 1);
      assert_int_equal(counters(&p).entries, 0);
      open_part(&again, &s, make_split(&s, false), "middle=cpu"); /* another session does not capture it either */
      run(&again, 4, "execute*2");
      close_part(&again);
      close_part(&p);
      assert_int_equal(interposer_count(s.logged, INTERPOSER_captured_destroy), f->destroyed);
      close_scene(&s);
    }
  }
}

/* The log of a failed launch has the partition, its node, and the driver's words, whether the call itself fails or the work
 * that it enqueued. */
static void failed_launches_are_named(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    for (int is_late = 0; is_late < 2; ++is_late) {
      scene s;
      part p;
      options.mode = CLV_CAPTURE_ON;
      open_scene(&s, options);
      open_part(&p, &s, make_split(&s, false), "middle=cpu");
      run(&p, 4, CAPTURES " " CAPTURES);
      s.failing = INTERPOSER_captured_launch;
      s.fails_at = 2;
      s.action = is_late ? INTERPOSER_FAIL_LATER : INTERPOSER_FAIL;
      run_into(&p, 4, p.out);
      assert_int_equal(s.fails_at, 0);
      const char *at = strstr(s.failed, "captur");
      if (at == NULL || strstr(at, ": partition 2 on logged: node 'last' (Mul): capture->launch: ") == NULL) {
        fail_msg("%s, the %s fails: the log must name partition 2, node 'last' and capture->launch: %s",
                 options.is_npu ? "npu" : "cpu", is_late ? "work" : "call", s.failed);
      }
      close_part(&p);
      close_scene(&s);
    }
  }
}

/* A run that fails because of its data (here an index out of range) does not count as a failed capture, which would not be
 * tried again. */
static void data_that_is_wrong(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    test_graph g;
    options.mode = CLV_CAPTURE_ON;
    open_scene(&s, options);
    test_graph_begin(&g, &s.counting.allocator, 3);
    test_graph_input(&g, "x", CLV_F32, 2, DIMS(4, 2));
    test_graph_input(&g, "i", CLV_I64, 1, DIMS(2));
    test_graph_node(&g, "take", "Gather", "x,i", "t");
    test_graph_node(&g, "neg", "Neg", "t", "y");
    open_part(&p, &s, test_graph_end(&g, "y"), NULL);
    for (int64_t run = 0; run < 9; ++run) {
      int64_t places[2] = {run % 4, run % 3 == 2 ? 100 + run : (run + 1) % 4};
      clv_tensor inputs[2] = {f32(2, DIMS(4, 2), p.data[0]), clv__tensor_make(CLV_I64, 1, DIMS(2), places)};
      clv_tensor output = f32(2, DIMS(2, 2), p.out);
      clv_error error = {0};
      clv_status status = clv_session_run(p.session, inputs, 2, &output, 1, &error);
      if (run % 3 == 2) {
        assert_int_not_equal(status, CLV_OK);
        continue;
      }
      assert_ok(status, error);
      for (int64_t k = 0; k < 4; ++k) {
        assert_true(p.out[k] == -p.data[0][places[k / 2] * 2 + k % 2]);
      }
    }
    assert_int_equal(counters(&p).failures, 0);
    assert_true(counters(&p).hits > 0);
    expect_issue(&p, 0, CLV__ISSUE_EAGER, "its capture failed"); /* the last run failed and was repeated without captures */
    close_part(&p);
    close_scene(&s);
  }
}

/* Several partitions are in one capture. Each call that makes or launches the capture fails in turn. No partition has run when
 * the call fails, so all are then executed one by one. */
static void graphs_of_several_that_fail(void **state) {
  (void)state;
  static const failure several[] = {
      {INTERPOSER_capture_begin, 1, false, INTERPOSER_FAIL, "capture_begin execute*3", 0},
      {INTERPOSER_execute, 1, false, INTERPOSER_FAIL, "capture_begin execute capture_end execute*3", 0},
      {INTERPOSER_execute, 3, false, INTERPOSER_FAIL, "capture_begin execute*3 capture_end execute*3", 0},
      {INTERPOSER_capture_end, 1, false, INTERPOSER_FAIL, "capture_begin execute*3 capture_end execute*3", 0},
      {INTERPOSER_captured_launch, 1, false, INTERPOSER_FAIL,
       "capture_begin execute*3 capture_end captured_launch captured_destroy execute*3", 1},
      {INTERPOSER_captured_launch, 1, true, INTERPOSER_FAIL, "captured_launch captured_destroy execute*3", 1},
      {INTERPOSER_captured_launch, 1, true, INTERPOSER_FAIL_LATER, "captured_launch captured_destroy execute*3", 1},
  };
  for (size_t i = 0; i < sizeof several / sizeof *several; ++i) {
    scene s;
    part p;
    open_scene(&s, (scene_options){.is_npu = true, .is_asynchronous = true, .mode = CLV_CAPTURE_ON, .spec = one_node_each});
    open_part(&p, &s, make_split(&s, false), NULL);
    if (several[i].is_replay) run(&p, 4, "capture_begin execute*3 capture_end captured_launch");
    s.failing = several[i].slot;
    s.fails_at = several[i].at;
    s.action = several[i].action;
    run(&p, 4, several[i].log);
    assert_int_equal(s.fails_at, 0);
    for (int k = 0; k < 2; ++k) run(&p, 4, "execute*3");
    assert_int_equal(interposer_count(s.logged, INTERPOSER_captured_destroy), several[i].destroyed);
    close_part(&p);
    close_scene(&s);
  }
}

/* A launch that returns CLV_OK and then fails on the device: the run is repeated without captures, and the device is not
 * removed. */
static void a_launch_that_fails_later(void **state) {
  (void)state;
  for (int is_npu = 0; is_npu < 2; ++is_npu) {
    for (int is_replay = 0; is_replay < 2; ++is_replay) {
      scene s;
      part p;
      open_scene(&s, (scene_options){.is_npu = is_npu, .is_asynchronous = true, .mode = CLV_CAPTURE_ON});
      open_part(&p, &s, make_split(&s, false), "middle=cpu");
      if (is_replay) run(&p, 4, CAPTURES " " CAPTURES);
      s.failing = INTERPOSER_captured_launch;
      s.fails_at = 1;
      s.action = INTERPOSER_FAIL_LATER;
      uint64_t before = interposer_count(s.logged, INTERPOSER_captured_destroy);
      run_into(&p, 4, p.out);
      assert_int_equal(s.fails_at, 0);
      assert_true(interposer_count(s.logged, INTERPOSER_captured_destroy) > before);
      run(&p, 4, "execute*2");
      assert_int_equal(counters(&p).failures, 1);
      assert_int_equal(counters(&p).entries, 0);
      close_part(&p);
      close_scene(&s);
    }
  }
}

/* Each allocation of the first run fails in turn. The run succeeds without a capture, or it fails with CLV_OUT_OF_MEMORY and
 * later runs succeed. */
static void memory_runs_out(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    options.mode = CLV_CAPTURE_ON;
    bool done = false;
    for (size_t at = 1; !done; ++at) {
      scene s;
      part p;
      open_scene(&s, options);
      open_part(&p, &s, make_small(&s, "Add", false, 8), NULL);
      clv_tensor input = *clv_graph_input_type(p.graph, 0), output = input, expected = {0};
      input.data = p.data[0];
      output.data = p.out;
      clv_error error = {0};
      assert_ok(clv__graph_evaluate(p.graph, &input, NULL, &expected, NULL, NULL, p.graph->allocator, &error), error);
      for (int run = 0; run < 3; ++run) {
        s.counting.fail_at = run == 0 ? s.counting.calls + at : 0;
        clv_status status = clv_session_run(p.session, &input, 1, &output, 1, &error);
        /* Run 0 may fail, for example if it cannot create a stream. */
        if (run > 0 || status != CLV_OUT_OF_MEMORY) assert_ok(status, error);
        if (status == CLV_OK) assert_same_values(&output, &expected, "a run short of memory");
        if (run == 0) done = s.counting.calls < s.counting.fail_at;
      }
      clv__release(p.graph->allocator, expected.data);
      close_part(&p);
      close_scene(&s);
    }
  }
}

/* ---- Memory that moves ---- */

/* The caller's output moves. The capture's binding is changed to the new memory. If the device cannot do that, the partition is
 * captured again, but not in every run. */
static void outputs_that_move(void **state) {
  (void)state;
  static float other[MOST * 8];
  for (int can_bind = 0; can_bind < 2; ++can_bind) {
    scene s;
    part p;
    open_scene(&s, (scene_options){.mode = CLV_CAPTURE_ON, .without = can_bind ? 0 : INTERPOSER_BIT(captured_bind)});
    open_part(&p, &s, make_small(&s, "Add", false, 8), NULL);
    run(&p, 4, CAPTURES);
    if (can_bind) {
      for (int i = 0; i < 4; ++i) {
        run_into(&p, 4, i % 2 == 0 ? other : p.out);
        expect_log(&s, ~UINT64_C(0), "captured_bind captured_launch");
      }
      run(&p, 4, "captured_launch");
      assert_int_equal(counters(&p).patches, 4);
    } else {
      run_into(&p, 4, other);
      expect_log(&s, SCENE, "execute");
      expect_issue(&p, 0, CLV__ISSUE_EAGER, "its memory moved, and the device cannot change the bindings of a capture");
      for (int i = 0; i < 6; ++i) run(&p, 4, "captured_launch"); /* the capture is still bound to the first output's memory */
      run_into(&p, 4, other);
      expect_log(&s, SCENE, "captured_destroy " CAPTURES);
      expect_issue(&p, 0, CLV__ISSUE_CAPTURED, "");
      for (int i = 0; i < 20; ++i) run_into(&p, 4, i % 2 == 0 ? other : p.out); /* run_into() checks the results */
      assert_int_equal(counters(&p).recaptures, 3);
      assert_int_equal(counters(&p).failures, 0);
    }
    close_part(&p);
    close_scene(&s);
  }
}

/* Scratch and the memory of values grow with each shape. Captures keep their old scratch, and their bindings are changed to the
 * new memory. */
static void memory_that_grows(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    options.mode = CLV_CAPTURE_ON;
    options.prefill = CLV_SWITCH_ON;
    open_scene(&s, options);
    open_part(&p, &s, make_attention(&s), NULL);
    uint64_t patches = 0;
    for (int64_t n = 1; n <= 10; ++n) {
      run(&p, n * 5, CAPTURES);
      for (int64_t k = 1; k < n; ++k) {
        run_into(&p, k * 5, p.out);
        expect_issue(&p, 0, CLV__ISSUE_REPLAYED, "");
      }
      patches += (uint64_t)n - 1;
    }
    clv__capture_counters c = counters(&p);
    assert_int_equal(c.entries, 10);
    assert_int_equal(c.captures, 10);
    assert_true(c.patches <= patches);
    close_part(&p);
    close_scene(&s);
  }
}

/* Memory is so small that old blocks are freed before larger ones are allocated. New blocks often get the handles of freed
 * blocks, which must not be taken for the old memory. */
static void other_memory_at_the_same_address(void **state) {
  (void)state;
  static const char spec[] = "{\"static_shapes\": true, \"memory\": 3072, \"operators\": \"all\"}";
  scene s;
  part p;
  open_scene(&s, (scene_options){.is_npu = true, .is_asynchronous = true, .mode = CLV_CAPTURE_ON, .spec = spec});
  open_part(&p, &s, make_split(&s, true), "middle=cpu");
  run(&p, 20, CAPTURES " " CAPTURES);
  run(&p, 20, "captured_launch*2");
  run(&p, 36, CAPTURES " " CAPTURES);
  run(&p, 20, "captured_bind captured_launch captured_bind captured_launch");
  run(&p, 36, "captured_launch*2");
  run(&p, 20, "captured_launch*2");
  close_part(&p);
  close_scene(&s);
}

static uint64_t gone_instances(const scene *s) {
  return interposer_count(s->logged, INTERPOSER_instance_destroy) + interposer_count(s->logged, INTERPOSER_instance_resize);
}

/* What a session has prepared for a set of shapes is not evicted while captures use it, whatever other shapes run. */
static void sets_stay_while_their_graphs_do(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    options.mode = CLV_CAPTURE_ON;
    options.entries = 3;
    open_scene(&s, options);
    clv_session_options session = CLV_SESSION_OPTIONS_INIT;
    session.prepared_shapes = 1;
    open_part_with(&p, &s, make_split(&s, true), "middle=cpu", session);
    for (int64_t n = 9; n >= 7; --n) run(&p, n, CAPTURES " " CAPTURES);
    for (int64_t n = 6; n >= 1; --n) run(&p, n, "execute*2");
    for (int64_t n = 9; n >= 7; --n) run(&p, n, "captured_launch*2");
    run(&p, 3, "execute*2");
    run(&p, 3, CAPTURES " " CAPTURES " captured_destroy*2");
    /* Of the four sets of prepared shapes, the one for n = 9 no longer has captures, so the next new set evicts it. Its instances
     * are resized or destroyed. */
    uint64_t instances = gone_instances(&s);
    run(&p, 2, "execute*2");
    assert_int_equal(gone_instances(&s), instances + 2);
    run(&p, 3, "captured_launch*2");
    close_part(&p);
    close_scene(&s);
  }
}

/* Each request of a session has its own memory, and therefore its own captures. */
static void several_in_flight(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    options.mode = CLV_CAPTURE_ON;
    open_scene(&s, options);
    clv_session_options session = CLV_SESSION_OPTIONS_INIT;
    session.in_flight = 3;
    open_part_with(&p, &s, make_split(&s, true), "middle=cpu", session);
    static float outs[3][MOST * 8];
    for (int round = 0; round < 12; ++round) {
      clv_error error = {0};
      clv_run *runs[3];
      clv_tensor inputs[3], outputs[3], expected = {0};
      for (int i = 0; i < 3; ++i) {
        inputs[i] = f32(2, DIMS(3, 8), p.data[i]);
        outputs[i] = f32(2, DIMS(3, 8), memset(outs[i], 0xee, sizeof outs[i]));
        assert_ok(clv_session_start(p.session, &inputs[i], 1, &outputs[i], 1, NULL, &runs[i], &error), error);
      }
      for (int i = 0; i < 3; ++i) assert_ok(clv_run_wait(runs[i], &error), error);
      for (int i = 0; i < 3; ++i) {
        assert_ok(clv__graph_evaluate(p.graph, &inputs[i], NULL, &expected, NULL, NULL, p.graph->allocator, &error), error);
        assert_same_values(&outputs[i], &expected, "in flight");
        clv__release(p.graph->allocator, expected.data);
      }
    }
    clv__capture_counters c = counters(&p);
    assert_true(c.entries >= 1 && c.entries <= 3);
    assert_int_equal(c.captures, c.entries);
    assert_int_equal(c.hits + c.misses, 36);
    assert_int_equal(c.misses, c.captures);
    close_part(&p);
    close_scene(&s);
  }
}

/* Some sizes are known only after a partition has run. That partition and those that read such values are executed without
 * capture. */
static void sizes_that_follow_from_data(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    test_graph g;
    options.mode = CLV_CAPTURE_ON;
    open_scene(&s, options);
    test_graph_begin(&g, &s.counting.allocator, 3);
    test_graph_input(&g, "x", CLV_F32, 2, DIMS(4, 8));
    test_graph_node(&g, "before", "Abs", "x", "s");
    test_graph_node(&g, "where", "NonZero", "s", "t");
    test_graph_node(&g, "flip", "Neg", "t", "y");
    open_part(&p, &s, test_graph_end(&g, "y"), "where=cpu,flip=cpu");
    for (int i = 0; i < 8; ++i) {
      for (int k = 0; k < 32; ++k) p.data[0][k] = k < 12 + i / 2 % 3 * 8 ? 1 : 0;
      run(&p, 4, i == 0 ? CAPTURES : "captured_launch");
    }
    expect_issue(&p, 1, CLV__ISSUE_EAGER, "sizes depend on data");
    close_part(&p);
    close_scene(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(captures_that_fail),
      cmocka_unit_test(failed_launches_are_named),
      cmocka_unit_test(data_that_is_wrong),
      cmocka_unit_test(graphs_of_several_that_fail),
      cmocka_unit_test(a_launch_that_fails_later),
      cmocka_unit_test(memory_runs_out),
      cmocka_unit_test(outputs_that_move),
      cmocka_unit_test(memory_that_grows),
      cmocka_unit_test(other_memory_at_the_same_address),
      cmocka_unit_test(sets_stay_while_their_graphs_do),
      cmocka_unit_test(several_in_flight),
      cmocka_unit_test(sizes_that_follow_from_data),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
