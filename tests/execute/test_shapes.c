/* Instances while shapes change: an instance whose set of shapes is evicted is resized for the new shapes, unless a capture
 * uses it. clv_session_resize() resizes the instance at once, without a run. */
#include "execute/session.h"
#include "scene.h"

static uint64_t count(const scene *s, interposer_slot slot) {
  return interposer_count(s->logged, slot);
}

static void expect_instances(const scene *s, uint64_t created, uint64_t resized) {
  assert_int_equal(count(s, INTERPOSER_instance_create), created);
  assert_int_equal(count(s, INTERPOSER_instance_resize), resized);
}

static void open_sized(scene *s, part *p, scene_options options, uint32_t prepared_shapes) {
  clv_session_options session = CLV_SESSION_OPTIONS_INIT;
  session.prepared_shapes = prepared_shapes;
  open_scene(s, options);
  open_part_with(p, s, make_small(s, "Add", true, 8), NULL, session);
}

static void the_evicted_instance_is_resized(void **state) {
  (void)state;
  for (int is_asynchronous = 0; is_asynchronous < 2; ++is_asynchronous) {
    scene s;
    part p;
    open_sized(&s, &p, (scene_options){.mode = CLV_CAPTURE_OFF, .is_asynchronous = is_asynchronous != 0}, 0);
    for (int64_t n = 1; n <= 24; ++n) run(&p, n, "execute");
    expect_instances(&s, 16, 8);
    for (int64_t n = 24; n > 8; --n) run(&p, n, "execute"); /* the last 16 shapes, whose instances the session still has */
    expect_instances(&s, 16, 8);
    run(&p, 1, "execute");
    expect_instances(&s, 16, 9);
    close_part(&p);
    close_scene(&s);
  }
}

/* A run of one of two alternating shapes does not take the instance of the other: the session has room for both instances, or
 * captures use them. */
static void shapes_that_alternate(void **state) {
  (void)state;
  for (int is_captured = 0; is_captured < 2; ++is_captured) {
    scene s;
    part p;
    open_sized(&s, &p, (scene_options){.mode = is_captured ? CLV_CAPTURE_ON : CLV_CAPTURE_OFF}, is_captured ? 1 : 2);
    for (int i = 0; i < 8; ++i) run(&p, 3 + i % 2, !is_captured ? "execute" : i < 2 ? CAPTURES : "captured_launch");
    expect_instances(&s, 2, 0);
    close_part(&p);
    close_scene(&s);
  }
}

static void a_resize_that_fails(void **state) {
  (void)state;
  scene s;
  part p;
  open_sized(&s, &p, (scene_options){.mode = CLV_CAPTURE_OFF}, 1);
  run(&p, 3, "execute");
  s.failing = INTERPOSER_instance_resize;
  s.fails_at = 1;
  s.action = INTERPOSER_FAIL;
  run(&p, 4, "execute");
  expect_instances(&s, 2, 1);
  run(&p, 5, "execute");
  expect_instances(&s, 2, 2);
  close_part(&p);
  close_scene(&s);
}

/* ---- clv_session_resize() ---- */

static clv_status resize(part *p, int64_t n, clv_error *error) {
  clv_tensor types[3];
  for (uint32_t i = 0; i < p->graph->input_count; ++i) {
    types[i] = *clv_graph_input_type(p->graph, i);
    for (int32_t k = 0; k < types[i].rank; ++k) {
      if (types[i].dims[k] < 0) types[i].dims[k] = n;
    }
  }
  return clv_session_resize(p->session, types, p->graph->input_count, error);
}

static void to_each_shape(void **state) {
  (void)state;
  FOR_EACH_DEVICE(options) {
    scene s;
    part p;
    clv_error error = {0};
    options.mode = CLV_CAPTURE_OFF;
    open_sized(&s, &p, options, 0);
    for (int64_t n = 1; n <= 5; ++n) {
      assert_ok(resize(&p, n, &error), error);
      uint64_t created = count(&s, INTERPOSER_instance_create), destroyed = count(&s, INTERPOSER_instance_destroy);
      assert_int_equal(created - destroyed, 1); /* the session has one set of shapes */
      run(&p, n, "execute");
      assert_int_equal(count(&s, INTERPOSER_instance_create), created);
    }
    if (!options.is_npu) expect_instances(&s, 1, 4);
    close_part(&p);
    close_scene(&s);
  }
}

/* clv_session_resize() replaces the shapes used last: their captures are released. What the session has for other shapes
 * stays. */
static void resize_with_captures(void **state) {
  (void)state;
  scene s;
  part p;
  clv_error error = {0};
  open_sized(&s, &p, (scene_options){.mode = CLV_CAPTURE_ON}, 0);
  run(&p, 2, CAPTURES);
  run(&p, 3, CAPTURES);
  assert_ok(resize(&p, 4, &error), error);
  expect_instances(&s, 2, 1);
  assert_int_equal(count(&s, INTERPOSER_captured_destroy), 1);
  run(&p, 4, CAPTURES);
  run(&p, 2, "captured_launch");
  assert_ok(resize(&p, 4, &error), error); /* the session already has a set for these shapes */
  run(&p, 4, "captured_launch");
  expect_instances(&s, 2, 1);
  close_part(&p);
  close_scene(&s);
}

static void resize_every_request(void **state) {
  (void)state;
  scene s;
  part p;
  clv_error error = {0};
  clv_session_options session = CLV_SESSION_OPTIONS_INIT;
  session.in_flight = 3;
  open_scene(&s, (scene_options){.mode = CLV_CAPTURE_OFF});
  open_part_with(&p, &s, make_small(&s, "Add", true, 8), NULL, session);
  static float outs[3][MOST * 8];
  for (int64_t n = 5; n < 9; ++n) {
    assert_ok(resize(&p, n, &error), error);
    clv_run *runs[3];
    clv_tensor inputs[3], outputs[3], expected = {0};
    for (int i = 0; i < 3; ++i) {
      inputs[i] = f32(2, DIMS(n, 8), p.data[i]);
      outputs[i] = f32(2, DIMS(n, 8), outs[i]);
      assert_ok(clv_session_start(p.session, &inputs[i], 1, &outputs[i], 1, NULL, &runs[i], &error), error);
    }
    for (int i = 0; i < 3; ++i) assert_ok(clv_run_wait(runs[i], &error), error);
    for (int i = 0; i < 3; ++i) {
      assert_ok(clv__graph_evaluate(p.graph, &inputs[i], NULL, &expected, NULL, NULL, p.graph->allocator, &error), error);
      assert_same_values(&outputs[i], &expected, "in flight");
      clv__release(p.graph->allocator, expected.data);
    }
    uint64_t live = count(&s, INTERPOSER_instance_create) - count(&s, INTERPOSER_instance_destroy);
    assert_in_range(live, 1, 3); /* one for each request that was used */
  }
  close_part(&p);
  close_scene(&s);
}

static void resize_that_is_refused(void **state) {
  (void)state;
  scene s;
  part p;
  clv_error error = {0};
  open_sized(&s, &p, (scene_options){.mode = CLV_CAPTURE_OFF}, 0);
  run(&p, 3, "execute");
  clv_tensor wrong = f32(2, DIMS(4, 9), NULL);
  assert_int_equal(clv_session_resize(p.session, &wrong, 1, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "input 'x' is f32[4,9], but the plan was made for f32[N,8]"));
  assert_int_equal(clv_session_resize(p.session, &wrong, 2, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_session_resize(p.session, NULL, 1, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(clv_session_resize(NULL, &wrong, 1, &error), CLV_INVALID_ARGUMENT);
  run(&p, 3, "execute");
  expect_instances(&s, 1, 0);
  close_part(&p);
  close_scene(&s);
}

/* A device that can neither resize nor create the instance: its partition moves, and the session has the new shapes. */
static void resize_on_a_device_that_fails(void **state) {
  (void)state;
  scene s;
  part p;
  clv_error error = {0};
  open_sized(&s, &p, (scene_options){.mode = CLV_CAPTURE_OFF, .without = INTERPOSER_BIT(instance_resize)}, 0);
  run(&p, 3, "execute");
  s.failing = INTERPOSER_instance_create;
  s.fails_at = 1;
  s.action = INTERPOSER_FAIL;
  assert_ok(resize(&p, 4, &error), error);
  assert_int_equal(clv__session_incident_count(p.session), 1);
  run(&p, 4, "");
  run(&p, 3, "");
  close_part(&p);
  close_scene(&s);
}

/* Every allocation of a resize fails once. */
static void without_memory(void **state) {
  (void)state;
  for (size_t k = 1;; ++k) {
    scene s;
    part p;
    clv_error error = {0};
    open_sized(&s, &p, (scene_options){.mode = CLV_CAPTURE_OFF}, 0);
    run(&p, 3, "execute");
    size_t calls = s.counting.calls;
    s.counting.fail_at = calls + k;
    clv_status status = resize(&p, 4, &error);
    bool was_reached = s.counting.calls >= calls + k;
    s.counting.fail_at = 0;
    if (status != CLV_OK) assert_int_equal(status, CLV_OUT_OF_MEMORY);
    for (int64_t n = 3; n < 6; ++n) run_into(&p, n, p.out);
    close_part(&p);
    close_scene(&s);
    if (!was_reached) break;
    assert_true(k < 5000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_evicted_instance_is_resized),
      cmocka_unit_test(shapes_that_alternate),
      cmocka_unit_test(a_resize_that_fails),
      cmocka_unit_test(to_each_shape),
      cmocka_unit_test(resize_with_captures),
      cmocka_unit_test(resize_every_request),
      cmocka_unit_test(resize_that_is_refused),
      cmocka_unit_test(resize_on_a_device_that_fails),
      cmocka_unit_test(without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
