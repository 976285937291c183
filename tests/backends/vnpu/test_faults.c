/* The fault options of the virtual NPU: a launch that fails, and a launch that never ends, after which the device can only be
 * closed. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "fake_rig.h"

static void count_call(void *cookie) {
  atomic_fetch_add((atomic_int *)cookie, 1);
}

static void a_launch_fails_when_asked(void **state) {
  (void)state;
  static fake_rig r;
  clv_error error = {0};
  atomic_int calls = 0;
  fake_rig_open(&r, "fail", "3");
  clv_stream *stream = r.session.stream;
  clv_event *event = NULL;
  clv_captured *captured = NULL;
  assert_ok(r.b->event_create(r.device, &event, &error), error);
  assert_ok(r.b->capture->begin(r.device, stream, CLV_CAPTURE_THREAD, &error), error);
  assert_ok(r.b->execute(r.device, r.session.instance, stream, &r.args, &error), error);
  assert_ok(r.b->execute(r.device, r.session.instance, stream, &r.args, &error), error);
  assert_ok(r.b->capture->end(r.device, stream, &captured, &error), error);
  assert_ok(r.b->execute(r.device, r.session.instance, stream, &r.args, &error), error); /* launch 1 */
  assert_ok(r.b->capture->launch(r.device, captured, stream, &error), error); /* launch 2: a capture counts as one launch */
  assert_ok(r.b->stream_synchronize(r.device, stream, &error), error);
  assert_ok(r.b->capture->launch(r.device, captured, stream, &error), error); /* launch 3 */
  assert_ok(r.b->execute(r.device, r.session.instance, stream, &r.args, &error), error);
  assert_ok(r.b->event_record(r.device, event, stream, &error), error);
  assert_ok(r.b->event_notify(r.device, event, count_call, &calls, &error), error);
  assert_int_equal(r.b->event_synchronize(r.device, event, &error), CLV_DEVICE_ERROR);
  assert_int_equal(r.b->stream_synchronize(r.device, stream, &error), CLV_DEVICE_ERROR);
  assert_non_null(strstr(error.message, "launch 3 failed"));
  assert_ok(r.b->execute(r.device, r.session.instance, stream, &r.args, &error), error);
  assert_ok(r.b->stream_synchronize(r.device, stream, &error), error);
  r.b->capture->destroy(r.device, captured);
  r.b->event_destroy(r.device, event);
  r.b->buffer_free(r.device, r.in.buffer);
  r.b->buffer_free(r.device, r.out.buffer);
  fake_session_close(&r.session);
  r.b->close(r.device);
  assert_int_equal(calls, 1);
  fake_rig_close(&r);
}

typedef struct waiter {
  fake_rig *fake_rig;
  clv_event *event; /* the event to wait for; NULL: wait for the stream instead */
  atomic_bool began;
  clv_status status;
} waiter;

static void *wait_for_ever(void *argument) {
  waiter *w = argument;
  const fake_rig *r = w->fake_rig;
  clv_error error = {0};
  atomic_store(&w->began, true);
  w->status = w->event != NULL ? r->b->event_synchronize(r->device, w->event, &error)
                               : r->b->stream_synchronize(r->device, r->session.stream, &error);
  return NULL;
}

/* Closes a device on which a launch hangs. The test destroys no object before that, so close() must free all of them. */
static void a_device_that_hangs_can_be_closed(void **state) {
  (void)state;
  for (int graph = 0; graph < 2; ++graph) {
    static fake_rig r;
    clv_error error = {0};
    static atomic_int calls;
    atomic_store(&calls, 0);
    fake_rig_open(&r, "hang", graph ? "3" : "2");
    clv_stream *stream = r.session.stream, *other = NULL;
    clv_event *event = NULL, *later = NULL;
    clv_captured *captured = NULL;
    assert_ok(r.b->event_create(r.device, &event, &error), error);
    assert_ok(r.b->event_create(r.device, &later, &error), error);
    assert_ok(r.b->stream_create(r.device, &other, &error), error);
    assert_ok(r.b->execute(r.device, r.session.instance, stream, &r.args, &error), error);
    assert_ok(r.b->stream_synchronize(r.device, stream, &error), error);
    if (graph) {
      assert_ok(r.b->capture->begin(r.device, stream, CLV_CAPTURE_THREAD, &error), error);
      assert_ok(r.b->execute(r.device, r.session.instance, stream, &r.args, &error), error);
      assert_ok(r.b->capture->end(r.device, stream, &captured, &error), error);
      for (int i = 0; i < 3; ++i) assert_ok(r.b->capture->launch(r.device, captured, stream, &error), error);
    } else {
      for (int i = 0; i < 3; ++i) assert_ok(r.b->execute(r.device, r.session.instance, stream, &r.args, &error), error);
    }
    assert_ok(r.b->event_record(r.device, event, stream, &error), error);
    assert_ok(r.b->event_notify(r.device, event, count_call, &calls, &error), error);
    assert_ok(r.b->event_wait(r.device, other, event, &error), error);
    assert_ok(r.b->event_record(r.device, later, other, &error), error);
    /* The copy engine still works. The copies use another buffer, because launches before the hung one may still
     * read the bound buffers. */
    clv_stream *third = NULL;
    clv_buffer *own = NULL;
    float data[4] = {1, 2, 3, 4}, back[4] = {0};
    assert_ok(r.b->stream_create(r.device, &third, &error), error);
    assert_ok(r.b->buffer_alloc(r.device, sizeof data, &own, &error), error);
    assert_ok(r.b->copy_in(r.device, third, own, 0, data, sizeof data, &error), error);
    assert_ok(r.b->copy_out(r.device, third, back, own, 0, sizeof data, &error), error);
    assert_ok(r.b->stream_synchronize(r.device, third, &error), error);
    assert_memory_equal(data, back, sizeof data);
    waiter waiters[2] = {{.fake_rig = &r}, {.fake_rig = &r, .event = later}};
    pthread_t threads[2];
    for (int t = 0; t < 2; ++t) assert_int_equal(pthread_create(&threads[t], NULL, wait_for_ever, &waiters[t]), 0);
    for (int t = 0; t < 2; ++t) {
      while (!atomic_load(&waiters[t].began)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* by now both threads wait */
    assert_int_equal(atomic_load(&calls), 0);
    r.b->close(r.device);
    for (int t = 0; t < 2; ++t) {
      pthread_join(threads[t], NULL);
      assert_int_equal(waiters[t].status, CLV_DEVICE_ERROR);
    }
    assert_int_equal(atomic_load(&calls), 0);
    fake_rig_close(&r);
  }
}

/* Closing the device while work is enqueued: every execution and copy is done or skipped, in order, and the requested
 * notification is sent. */
static void closing_ends_what_is_enqueued(void **state) {
  (void)state;
  static fake_rig r;
  clv_error error = {0};
  atomic_int calls = 0;
  fake_rig_open(&r, NULL, NULL);
  clv_event *event = NULL;
  float y[ROWS * COLUMNS];
  assert_ok(r.b->event_create(r.device, &event, &error), error);
  memset(y, 0, sizeof y);
  for (int i = 0; i < 20; ++i) assert_ok(r.b->execute(r.device, r.session.instance, r.session.stream, &r.args, &error), error);
  assert_ok(r.b->copy_out(r.device, r.session.stream, y, r.out.buffer, 0, sizeof y, &error), error);
  assert_ok(r.b->event_record(r.device, event, r.session.stream, &error), error);
  assert_ok(r.b->event_notify(r.device, event, count_call, &calls, &error), error);
  r.b->close(r.device);
  assert_int_equal(calls, 1);
  bool is_copied = y[0] != y[0]; /* NaN, which the program computed from poison */
  for (int i = 0; i < ROWS * COLUMNS; ++i) assert_true(is_copied ? y[i] != y[i] : y[i] == 0);
  fake_rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_launch_fails_when_asked),
      cmocka_unit_test(a_device_that_hangs_can_be_closed),
      cmocka_unit_test(closing_ends_what_is_enqueued),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
