/* Streams with threads: random copies on several streams, ordered by events, have the same results as in sequence. A failure
 * reaches only later commands. Notifications arrive once. A device can be closed while a run hangs. */
#include "fake.h"

#include "analysis/shapes.h"

enum { STREAMS = 4, EVENTS = 5, COMMANDS = 3000, NOTICES = 300 };

typedef struct rig {
  test_allocator counting;
  clv_context *context;
  clv_devices *devices;
  const clv_backend *backend;
  clv_device *device;
} rig;

static void rig_open(rig *r, const clv_allocator *allocator) {
  clv_error error = {0};
  fake_reset();
  test_allocator_init(&r->counting);
  r->context = fake_context(allocator != NULL ? allocator : &r->counting.allocator, "");
  assert_ok(fake_open_devices(r->context, "fake:ONE", "fake:ONE:async=yes", &r->devices, &error), error);
  r->backend = r->devices->items[0].backend;
  r->device = r->devices->items[0].handle;
}

static void rig_close(rig *r) {
  clv_devices_close(r->devices);
  clv_context_destroy(r->context);
  assert_int_equal(r->counting.live, 0);
  assert_int_equal(atomic_load(&fake.live), 0);
}

/* ---- Random commands. Each copies a cell that was written before it, according to streams and events, to its own cell ---- */

typedef struct notice {
  const volatile uint64_t *cell; /* a cell that must be written before the notification; NULL: none */
  atomic_int calls;
  atomic_bool early;
} notice;

static void told(void *cookie) {
  notice *n = cookie;
  if (n->cell != NULL && *n->cell == 0) atomic_store(&n->early, true);
  atomic_fetch_add(&n->calls, 1);
}

static void random_commands(void **state) {
  (void)state;
  rig r;
  rig_open(&r, NULL);
  clv_error error = {0};
  clv_stream *streams[STREAMS];
  clv_event *events[EVENTS];
  clv_buffer *buffer;
  static notice notices[NOTICES];
  static uint64_t from[COMMANDS];
  uint32_t before_stream[STREAMS], before_event[EVENTS], notice_count = 0, source[COMMANDS];
  assert_ok(r.backend->buffer_alloc(r.device, COMMANDS * 8, &buffer, &error), error);
  uint64_t *cells = r.backend->buffer_host_pointer(r.device, buffer);
  assert_int_equal((uintptr_t)cells % CLV__ALIGNMENT, 0);
  for (uint32_t i = 0; i < STREAMS; ++i) {
    assert_ok(r.backend->stream_create(r.device, &streams[i], &error), error);
    before_stream[i] = COMMANDS;
  }
  for (uint32_t i = 0; i < EVENTS; ++i) {
    assert_ok(r.backend->event_create(r.device, &events[i], &error), error);
    before_event[i] = COMMANDS;
  }
  memset(cells, 0, COMMANDS * 8);
  memset(notices, 0, sizeof notices);
  uint64_t random = 11;
  for (uint32_t k = 0; k < COMMANDS; ++k) {
    uint32_t s = (uint32_t)(test_random(&random) % STREAMS), e = (uint32_t)(test_random(&random) % EVENTS);
    source[k] = before_stream[s];
    from[k] = UINT64_C(1000000) + k;
    const void *data = source[k] == COMMANDS ? (const void *)&from[k] : (const void *)&cells[source[k]];
    assert_ok(r.backend->copy_in(r.device, streams[s], buffer, k * 8, data, 8, &error), error);
    before_stream[s] = k;
    switch (test_random(&random) % 4) {
      case 0:
        assert_ok(r.backend->event_record(r.device, events[e], streams[s], &error), error);
        before_event[e] = k;
        break;
      case 1:
        assert_ok(r.backend->event_wait(r.device, streams[s], events[e], &error), error);
        /* both cells are written before the next command, so it may copy either: choose one at random */
        if (before_event[e] != COMMANDS && test_random(&random) % 2 == 0) before_stream[s] = before_event[e];
        break;
      case 2:
        if (notice_count == NOTICES) break;
        notices[notice_count].cell = before_event[e] != COMMANDS ? &cells[before_event[e]] : NULL;
        assert_ok(r.backend->event_notify(r.device, events[e], told, &notices[notice_count++], &error), error);
        break;
      default:
        if (test_random(&random) % 50 == 0) assert_ok(r.backend->event_synchronize(r.device, events[e], &error), error);
    }
  }
  for (uint32_t i = 0; i < STREAMS; ++i) assert_ok(r.backend->stream_synchronize(r.device, streams[i], &error), error);
  for (uint32_t k = 0; k < COMMANDS; ++k) {
    assert_int_equal(cells[k], source[k] == COMMANDS ? from[k] : cells[source[k]]);
  }
  assert_true(notice_count > NOTICES / 2);
  for (uint32_t i = 0; i < notice_count; ++i) {
    assert_int_equal(atomic_load(&notices[i].calls), 1);
    assert_false(atomic_load(&notices[i].early));
  }
  for (uint32_t i = 0; i < EVENTS; ++i) r.backend->event_destroy(r.device, events[i]);
  for (uint32_t i = 0; i < STREAMS; ++i) r.backend->stream_destroy(r.device, streams[i]);
  assert_int_equal(r.backend->copy_in(r.device, NULL, buffer, COMMANDS * 8, from, 8, &error), CLV_INVALID_ARGUMENT);
  r.backend->buffer_free(r.device, buffer);
  rig_close(&r);
}

/* ---- Runs ---- */

/* y = neg(x) of 4 elements, compiled, with its input and output memory. */
typedef struct work {
  clv_graph *graph;
  clv_executable *executable;
  clv_instance *instance;
  float x[4], y[4];
  clv_binding input, output;
} work;

static void work_open(work *w, rig *r) {
  clv_error error = {0};
  test_graph g;
  clv__shapes *shapes;
  clv__arena arena;
  clv_graph_view *whole;
  memset(w, 0, sizeof *w);
  test_graph_begin(&g, clv__context_allocator(r->context), 7);
  test_graph_input(&g, "x", CLV_F32, 1, DIMS(4));
  test_graph_node(&g, "neg", "Neg", "x", "y");
  w->graph = test_graph_end(&g, "y");
  clv__arena_init(&arena, w->graph->allocator);
  assert_ok(clv__shapes_infer(w->graph, NULL, 0, 0, &shapes, &error), error);
  assert_ok(clv__view_create_whole(w->graph, shapes->types, &arena, &whole, &error), error);
  assert_ok(r->backend->compile(r->device, whole, NULL, &w->executable, &error), error);
  clv__arena_finish(&arena);
  clv__shapes_destroy(shapes);
  clv_tensor type = clv__tensor_make(CLV_F32, 1, DIMS(4), NULL);
  assert_ok(r->backend->instance_create(r->device, w->executable, &type, 1, NULL, 0, &w->instance, &error), error);
  w->input.type = w->output.type = type;
  w->input.type.data = w->x;
  w->output.type.data = w->y;
}

static clv_status work_run(work *w, rig *r, clv_stream *stream, clv_error *error) {
  clv_execute_args args = {
      .struct_size = sizeof args, .input_count = 1, .output_count = 1, .inputs = &w->input, .outputs = &w->output};
  return r->backend->execute(r->device, w->instance, stream, &args, error);
}

static void work_close(work *w, rig *r) {
  r->backend->instance_destroy(r->device, w->instance);
  r->backend->executable_destroy(r->device, w->executable);
  clv_graph_destroy(w->graph);
}

/* Enqueues one instance many times, each time with other bindings, before its earlier runs have finished. Every run must use
 * the bindings that it was enqueued with. */
static void many_runs(void **state) {
  (void)state;
  rig r;
  work w;
  clv_error error = {0};
  clv_stream *stream;
  static float x[200][4], y[200][4];
  rig_open(&r, NULL);
  work_open(&w, &r);
  assert_ok(r.backend->stream_create(r.device, &stream, &error), error);
  for (int i = 0; i < 200; ++i) {
    for (int k = 0; k < 4; ++k) x[i][k] = (float)(i * 4 + k);
    w.input.type.data = x[i];
    w.output.type.data = y[i];
    assert_ok(work_run(&w, &r, stream, &error), error);
  }
  assert_ok(r.backend->stream_synchronize(r.device, stream, &error), error);
  for (int i = 0; i < 800; ++i) assert_true((&y[0][0])[i] == -(float)i);
  r.backend->stream_destroy(r.device, stream);
  work_close(&w, &r);
  rig_close(&r);
}

static void failures_travel(void **state) {
  (void)state;
  rig r;
  work w;
  clv_error error = {0};
  clv_stream *first, *second, *third;
  clv_event *event;
  rig_open(&r, NULL);
  work_open(&w, &r);
  assert_ok(r.backend->stream_create(r.device, &first, &error), error);
  assert_ok(r.backend->stream_create(r.device, &second, &error), error);
  assert_ok(r.backend->stream_create(r.device, &third, &error), error);
  assert_ok(r.backend->event_create(r.device, &event, &error), error);
  atomic_store(&fake.fail_run, 2);
  w.x[0] = 5;
  assert_ok(work_run(&w, &r, first, &error), error);
  assert_ok(r.backend->stream_synchronize(r.device, first, &error), error);
  assert_true(w.y[0] == -5);
  w.x[0] = 6;
  assert_ok(work_run(&w, &r, first, &error), error); /* fails */
  w.x[0] = 7;
  assert_ok(work_run(&w, &r, first, &error), error); /* is skipped, because the stream has failed */
  assert_ok(r.backend->event_record(r.device, event, first, &error), error);
  assert_ok(r.backend->event_wait(r.device, second, event, &error), error);
  assert_ok(work_run(&w, &r, second, &error), error); /* is skipped, because the event carries the failure */
  assert_int_equal(r.backend->event_synchronize(r.device, event, &error), CLV_DEVICE_ERROR);
  assert_non_null(strstr(error.message, "the fake fails"));
  assert_int_equal(r.backend->stream_synchronize(r.device, second, &error), CLV_DEVICE_ERROR);
  assert_non_null(strstr(error.message, "the fake fails"));
  assert_int_equal(r.backend->stream_synchronize(r.device, first, &error), CLV_DEVICE_ERROR);
  assert_true(w.y[0] == -5);
  assert_int_equal(atomic_load(&fake.runs), 2);
  assert_ok(r.backend->stream_synchronize(r.device, first, &error), error); /* the failure was reported, and only once */
  assert_ok(work_run(&w, &r, third, &error), error);                        /* this stream never saw the failure */
  assert_ok(r.backend->stream_synchronize(r.device, third, &error), error);
  assert_ok(work_run(&w, &r, first, &error), error);
  assert_ok(r.backend->event_record(r.device, event, first, &error), error);
  assert_ok(r.backend->event_synchronize(r.device, event, &error), error);
  assert_true(w.y[0] == -7);
  r.backend->event_destroy(r.device, event);
  r.backend->stream_destroy(r.device, first);
  r.backend->stream_destroy(r.device, second);
  r.backend->stream_destroy(r.device, third);
  work_close(&w, &r);
  rig_close(&r);
}

/* A wait gets the failure of the record that it waits for, even if the event is recorded again, with another outcome, before the
 * wait is executed. The waiting stream is blocked until then. If `fails`, the awaited record is on the stream that failed, and
 * the next record on the good one; otherwise the reverse. */
static void check_earlier_record(bool fails) {
  rig r;
  work works[3];
  clv_error error = {0};
  clv_stream *streams[3]; /* a stream that fails, one that works, and one that waits for the event */
  clv_event *event;
  rig_open(&r, NULL);
  for (int i = 0; i < 3; ++i) {
    work_open(&works[i], &r);
    works[i].x[0] = 5;
    assert_ok(r.backend->stream_create(r.device, &streams[i], &error), error);
  }
  assert_ok(r.backend->event_create(r.device, &event, &error), error);
  atomic_store(&fake.fail_run, 1);
  assert_ok(work_run(&works[0], &r, streams[0], &error), error);
  while (atomic_load(&fake.runs) == 0) usleep(1000);
  atomic_store(&fake.hold, true);
  assert_ok(work_run(&works[2], &r, streams[2], &error), error); /* runs until `hold` is cleared */
  while (atomic_load(&fake.hung) == 0) usleep(1000);
  assert_ok(r.backend->event_record(r.device, event, streams[fails ? 0 : 1], &error), error);
  assert_ok(r.backend->event_wait(r.device, streams[2], event, &error), error);
  assert_ok(r.backend->event_record(r.device, event, streams[fails ? 1 : 0], &error), error);
  atomic_store(&fake.hold, false);
  assert_int_equal(r.backend->stream_synchronize(r.device, streams[2], &error), fails ? CLV_DEVICE_ERROR : CLV_OK);
  assert_int_equal(r.backend->event_synchronize(r.device, event, &error), fails ? CLV_OK : CLV_DEVICE_ERROR);
  assert_ok(r.backend->stream_synchronize(r.device, streams[1], &error), error);
  assert_int_equal(r.backend->stream_synchronize(r.device, streams[0], &error), CLV_DEVICE_ERROR);
  assert_true(works[2].y[0] == -5);
  r.backend->event_destroy(r.device, event);
  for (int i = 0; i < 3; ++i) {
    r.backend->stream_destroy(r.device, streams[i]);
    work_close(&works[i], &r);
  }
  rig_close(&r);
}

static void records_keep_their_failures(void **state) {
  (void)state;
  check_earlier_record(true);
  check_earlier_record(false);
}

/* ---- Stopping ---- */

/* stream_stop() ends the run in progress and skips the next one. The stream works again after stream_synchronize(). */
static void stopped_streams(void **state) {
  (void)state;
  rig r;
  work w;
  clv_error error = {0};
  clv_stream *stream;
  clv_event *event;
  rig_open(&r, NULL);
  work_open(&w, &r);
  assert_ok(r.backend->stream_create(r.device, &stream, &error), error);
  assert_ok(r.backend->event_create(r.device, &event, &error), error);
  for (int round = 0; round < 3; ++round) {
    atomic_store(&fake.hung, 0);
    atomic_store(&fake.hold, true);
    w.x[0] = w.y[0] = 5;
    assert_ok(work_run(&w, &r, stream, &error), error);
    assert_ok(work_run(&w, &r, stream, &error), error);
    assert_ok(r.backend->event_record(r.device, event, stream, &error), error);
    while (atomic_load(&fake.hung) == 0) usleep(1000);
    assert_ok(r.backend->stream_stop(r.device, stream, &error), error);
    assert_int_equal(r.backend->event_synchronize(r.device, event, &error), CLV_CANCELLED);
    assert_int_equal(r.backend->stream_synchronize(r.device, stream, &error), CLV_CANCELLED);
    assert_int_equal(atomic_load(&fake.hung), 1); /* the second run never began */
    assert_true(w.y[0] == 5);
    atomic_store(&fake.hold, false);
    assert_ok(work_run(&w, &r, stream, &error), error);
    assert_ok(r.backend->stream_synchronize(r.device, stream, &error), error);
    assert_true(w.y[0] == -5);
  }
  r.backend->event_destroy(r.device, event);
  r.backend->stream_destroy(r.device, stream);
  work_close(&w, &r);
  rig_close(&r);
}

/* ---- A run that does not end ---- */

/* An allocator that never frees, for what a hung device leaves behind. A list of all allocations keeps the leak checker from
 * reporting them. */
typedef struct kept {
  struct kept *next;
  char padding[CLV__ALIGNMENT - sizeof(void *)];
} kept;
static kept *all_kept;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static void *keep(void *user_data, size_t size_bytes, size_t alignment) {
  (void)user_data;
  assert_true(alignment <= CLV__ALIGNMENT);
  kept *made = aligned_alloc(CLV__ALIGNMENT, (sizeof *made + size_bytes + CLV__ALIGNMENT - 1) / CLV__ALIGNMENT * CLV__ALIGNMENT);
  pthread_mutex_lock(&kept_lock);
  made->next = all_kept;
  all_kept = made;
  pthread_mutex_unlock(&kept_lock);
  return made + 1;
}

static void keep_on(void *user_data, void *pointer) {
  (void)user_data;
  (void)pointer;
}

static void *wait_for_stream(void *argument) {
  void **all = argument;
  rig *r = all[0];
  clv_error error = {0};
  clv_status status = r->backend->stream_synchronize(r->device, all[1], &error);
  return status == CLV_DEVICE_ERROR ? r : NULL;
}

static void hung_runs(void **state) {
  (void)state;
  static const clv_allocator keeping = {NULL, keep, keep_on};
  static rig r;
  static work w;
  clv_error error = {0};
  clv_stream *stream;
  pthread_t waiter;
  void *result;
  rig_open(&r, &keeping);
  work_open(&w, &r);
  assert_ok(r.backend->stream_create(r.device, &stream, &error), error);
  atomic_store(&fake.hang, true);
  assert_ok(work_run(&w, &r, stream, &error), error);
  assert_ok(work_run(&w, &r, stream, &error), error);
  while (atomic_load(&fake.hung) == 0) usleep(1000);
  void *all[] = {&r, stream};
  assert_int_equal(pthread_create(&waiter, NULL, wait_for_stream, all), 0);
  usleep(20000);
  clv_devices_close(r.devices); /* as after a hang: the host has not destroyed the objects */
  assert_int_equal(pthread_join(waiter, &result), 0);
  assert_ptr_equal(result, &r); /* the waiting thread got an error */
  atomic_store(&fake.hang, false);
  usleep(50000); /* when the hung run returns, the stream's thread ends without running the second one */
  assert_int_equal(atomic_load(&fake.hung), 1);
  clv_graph_destroy(w.graph);
  clv_context_destroy(r.context);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_commands), cmocka_unit_test(many_runs),
                                     cmocka_unit_test(failures_travel), cmocka_unit_test(records_keep_their_failures),
                                     cmocka_unit_test(stopped_streams), cmocka_unit_test(hung_runs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
