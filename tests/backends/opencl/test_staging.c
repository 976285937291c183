/* Tests copies through pinned host memory: sizes around those of the pieces, host memory that an earlier copy has yet to write,
 * several streams at once, and failing calls. The copied bytes must always be right. The test replaces functions in the driver's
 * table, to count calls and to make them fail. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "backends/opencl/run/stream.h"
#include "opencl_host.h"

/* ---- The driver's table ---- */

enum fault { NO_BUFFER, NO_MAP, NO_GATE, NO_CALLBACK, NO_BARRIER, NO_READ, NO_WRITE, FAULTS };

static struct driver {
  clv__opencl_icd table;
  const clv__opencl_icd *own;
  atomic_int made, landed; /* attempts to create a piece (a buffer of pinned memory); calls of clSetEventCallback() */
  atomic_int fails_at;     /* from this call of the kind `fault` on (counted from 1), calls fail; 0: none fails */
  enum fault fault;
  atomic_uint delay_us; /* time by which callbacks are delayed */
} driver;

static bool is_to_fail(enum fault fault) {
  if (atomic_load(&driver.fails_at) == 0 || driver.fault != fault) return false;
  return atomic_load(&driver.fails_at) == 1 || atomic_fetch_sub(&driver.fails_at, 1) == 1;
}

static cl_mem CL_API_CALL make_buffer(cl_context context, cl_mem_flags flags, size_t size_bytes, void *host, cl_int *code) {
  if ((flags & CL_MEM_ALLOC_HOST_PTR) != 0 && size_bytes == CLV__OPENCL_PINNED_BYTES) {
    atomic_fetch_add(&driver.made, 1);
    if (is_to_fail(NO_BUFFER)) {
      *code = CL_OUT_OF_HOST_MEMORY;
      return NULL;
    }
  }
  return driver.own->clCreateBuffer(context, flags, size_bytes, host, code);
}

static void *CL_API_CALL map(cl_command_queue queue, cl_mem memory, cl_bool blocking, cl_map_flags flags, size_t offset,
                             size_t size_bytes, cl_uint count, const cl_event *events, cl_event *event, cl_int *code) {
  if (is_to_fail(NO_MAP)) {
    *code = CL_MAP_FAILURE;
    return NULL;
  }
  return driver.own->clEnqueueMapBuffer(queue, memory, blocking, flags, offset, size_bytes, count, events, event, code);
}

static cl_event CL_API_CALL make_gate(cl_context context, cl_int *code) {
  if (is_to_fail(NO_GATE)) {
    *code = CL_OUT_OF_RESOURCES;
    return NULL;
  }
  return driver.own->clCreateUserEvent(context, code);
}

typedef struct callback {
  void(CL_CALLBACK *notify)(cl_event, cl_int, void *);
  void *user_data;
} callback;

static void CL_CALLBACK notify_late(cl_event event, cl_int status, void *user_data) {
  callback c = *(callback *)user_data;
  free(user_data);
  const unsigned delay_us = atomic_load(&driver.delay_us);
  if (delay_us > 0) nanosleep(&(struct timespec){0, (long)delay_us * 1000}, NULL);
  c.notify(event, status, c.user_data);
}

static cl_int CL_API_CALL set_callback(cl_event event, cl_int type, void(CL_CALLBACK *notify)(cl_event, cl_int, void *),
                                       void *user_data) {
  if (is_to_fail(NO_CALLBACK)) return CL_OUT_OF_RESOURCES;
  atomic_fetch_add(&driver.landed, 1);
  callback *c = malloc(sizeof *c);
  assert_non_null(c);
  *c = (callback){notify, user_data};
  return driver.own->clSetEventCallback(event, type, notify_late, c);
}

static cl_int CL_API_CALL enqueue_barrier(cl_command_queue queue, cl_uint count, const cl_event *events, cl_event *event) {
  if (is_to_fail(NO_BARRIER)) return CL_OUT_OF_RESOURCES;
  return driver.own->clEnqueueBarrierWithWaitList(queue, count, events, event);
}

static cl_int CL_API_CALL enqueue_read(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t size_bytes,
                                       void *to, cl_uint count, const cl_event *events, cl_event *event) {
  if (is_to_fail(NO_READ)) return CL_OUT_OF_RESOURCES;
  return driver.own->clEnqueueReadBuffer(queue, memory, blocking, offset, size_bytes, to, count, events, event);
}

static cl_int CL_API_CALL enqueue_write(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t size_bytes,
                                        const void *from, cl_uint count, const cl_event *events, cl_event *event) {
  if (is_to_fail(NO_WRITE)) return CL_OUT_OF_RESOURCES;
  return driver.own->clEnqueueWriteBuffer(queue, memory, blocking, offset, size_bytes, from, count, events, event);
}

static void open_staged(ocl *o, const char *options) {
  ocl_open(o, options);
  driver.own = o->device->cl;
  driver.table = *driver.own;
  driver.table.clCreateBuffer = make_buffer;
  driver.table.clEnqueueMapBuffer = map;
  driver.table.clCreateUserEvent = make_gate;
  driver.table.clSetEventCallback = set_callback;
  driver.table.clEnqueueBarrierWithWaitList = enqueue_barrier;
  driver.table.clEnqueueReadBuffer = enqueue_read;
  driver.table.clEnqueueWriteBuffer = enqueue_write;
  atomic_store(&driver.made, 0);
  atomic_store(&driver.landed, 0);
  atomic_store(&driver.fails_at, 0);
  atomic_store(&driver.delay_us, 0);
  o->device->cl = &driver.table;
}

#define STAGED "memory=own,staging=on"

/* ---- Memory to copy ---- */

enum { MOST = 11 * (1 << 20) + 77 };

static const size_t sizes[] = {1,
                               4095,
                               CLV__OPENCL_STAGED_BYTES - 1,
                               CLV__OPENCL_STAGED_BYTES,
                               CLV__OPENCL_STAGED_BYTES + 1,
                               CLV__OPENCL_PINNED_BYTES - 1,
                               CLV__OPENCL_PINNED_BYTES,
                               CLV__OPENCL_PINNED_BYTES + 1,
                               2 * CLV__OPENCL_PINNED_BYTES - 3,
                               2 * CLV__OPENCL_PINNED_BYTES,
                               2 * CLV__OPENCL_PINNED_BYTES + 1,
                               MOST - 20};
enum { SIZES = sizeof sizes / sizeof *sizes };

static uint8_t *random_bytes(size_t size_bytes, uint64_t seed) {
  uint8_t *bytes = malloc(size_bytes + 8);
  assert_non_null(bytes);
  for (size_t i = 0; i < size_bytes; i += 8) {
    const uint64_t word = test_random(&seed);
    memcpy(bytes + i, &word, 8);
  }
  return bytes;
}

typedef struct pipe {
  clv_stream *stream;
  clv_buffer *buffer;
  uint8_t *in, *out;
} pipe_ends;

static void open_pipe(ocl *o, pipe_ends *p, uint64_t seed) {
  *p = (pipe_ends){.in = random_bytes(MOST, seed), .out = malloc(MOST)};
  assert_non_null(p->out);
  assert_ok(o->backend->stream_create(o->device, &p->stream, &o->error), o->error);
  assert_ok(o->backend->buffer_alloc(o->device, MOST, &p->buffer, &o->error), o->error);
}

static void close_pipe(ocl *o, pipe_ends *p) {
  o->backend->stream_destroy(o->device, p->stream);
  o->backend->buffer_free(o->device, p->buffer);
  free(p->in);
  free(p->out);
}

static clv_status there(ocl *o, pipe_ends *p, size_t at, size_t size_bytes, clv_error *error) {
  return o->backend->copy_in(o->device, p->stream, p->buffer, at, p->in + at, size_bytes, error);
}

static clv_status back(ocl *o, pipe_ends *p, size_t at, size_t size_bytes, clv_error *error) {
  return o->backend->copy_out(o->device, p->stream, p->out + at, p->buffer, at, size_bytes, error);
}

static clv_status synchronize(ocl *o, pipe_ends *p, clv_error *error) {
  return o->backend->stream_synchronize(o->device, p->stream, error);
}

/* ---- The option ---- */

/* By default, copies are staged only if the device's memory is not the host's. A device that works in host memory never
 * stages. */
static void where_it_is_used(void **state) {
  (void)state;
  static const struct {
    const char *options;
    int stages; /* 1, 0: whether copies are staged; -1: they are if the driver reports that the device's memory is not the host's
                 */
  } cases[] = {{"memory=own", -1}, {"memory=own,staging=auto", -1}, {STAGED, 1}, {"memory=own,staging=off", 0}};
  ocl o;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    ocl_open(&o, cases[i].options);
    assert_int_equal(o.device->stages, cases[i].stages < 0 ? !o.device->is_unified : cases[i].stages);
    ocl_close(&o);
  }
  ocl_open(&o, "staging=on");
  assert_int_equal(o.device->stages, !o.device->shares_host);
  ocl_close(&o);
  assert_int_equal(ocl_try_open(&o, "opencl", 0, "staging=perhaps"), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(o.error.message, "option staging=perhaps: expected auto, on or off"));
}

/* ---- Correct copies ---- */

static void sizes_around_the_pieces(void **state) {
  (void)state;
  for (int staged = 0; staged < 2; ++staged) {
    ocl o;
    pipe_ends p;
    open_staged(&o, staged ? STAGED : "memory=own,staging=off");
    open_pipe(&o, &p, 3);
    for (size_t i = 0; i < SIZES; ++i) {
      const size_t at = i % 3 * 5;
      memset(p.out, 0x77, MOST);
      assert_ok(there(&o, &p, at, sizes[i], &o.error), o.error);
      assert_ok(back(&o, &p, at, sizes[i], &o.error), o.error);
      assert_ok(synchronize(&o, &p, &o.error), o.error);
      assert_memory_equal(p.out + at, p.in + at, sizes[i]);
      for (size_t k = 0; k < at; ++k) assert_int_equal(p.out[k], 0x77);
      for (size_t k = at + sizes[i]; k < at + sizes[i] + 8; ++k) assert_int_equal(p.out[k], 0x77);
    }
    assert_int_equal(atomic_load(&driver.made), staged ? 2 : 0);
    assert_true(staged ? atomic_load(&driver.landed) > 0 : atomic_load(&driver.landed) == 0);
    close_pipe(&o, &p);
    ocl_close(&o);
  }
}

/* Enqueues more copies than there are pieces of pinned memory, of random sizes, without waiting in between. The bytes must be
 * right. */
static void many_in_flight(void **state) {
  (void)state;
  ocl o;
  pipe_ends p;
  uint64_t seed = 17;
  open_staged(&o, STAGED);
  open_pipe(&o, &p, 4);
  uint8_t *other = random_bytes(MOST, 5), *image = malloc(MOST);
  assert_non_null(image);
  memcpy(image, p.in, MOST);
  assert_ok(there(&o, &p, 0, MOST, &o.error), o.error);
  for (int i = 0; i < 40; ++i) {
    const size_t size_bytes = test_random(&seed) % (1 << 20), at = test_random(&seed) % (MOST - size_bytes);
    memcpy(image + at, other + at, size_bytes);
    assert_ok(o.backend->copy_in(o.device, p.stream, p.buffer, at, other + at, size_bytes, &o.error), o.error);
    if (i % 10 == 9) assert_ok(back(&o, &p, 0, MOST, &o.error), o.error);
  }
  assert_ok(synchronize(&o, &p, &o.error), o.error);
  assert_memory_equal(p.out, image, MOST);
  free(other);
  free(image);
  close_pipe(&o, &p);
  ocl_close(&o);
}

/* Copies bytes out of the device and in again through the same host memory, on one stream, or on a second stream that waits for
 * the first. The bytes must be right although the host does not wait in between. */
static void out_and_in_again(void **state) {
  (void)state;
  enum { ROUNDS = 24 };
  ocl o;
  pipe_ends p, q;
  clv_event *event;
  open_staged(&o, STAGED);
  open_pipe(&o, &p, 6);
  open_pipe(&o, &q, 7);
  atomic_store(&driver.delay_us, 1000);
  assert_ok(o.backend->event_create(o.device, &event, &o.error), o.error);
  for (int round = 0; round < ROUNDS; ++round) {
    const size_t size_bytes = sizes[(size_t)round % SIZES];
    pipe_ends *second = round % 2 == 0 ? &p : &q;
    p.in[0] = (uint8_t)round;
    memset(p.out, 0, MOST);
    assert_ok(there(&o, &p, 0, size_bytes, &o.error), o.error);
    assert_ok(back(&o, &p, 0, size_bytes, &o.error), o.error);
    assert_ok(o.backend->event_record(o.device, event, p.stream, &o.error), o.error);
    assert_ok(o.backend->event_wait(o.device, second->stream, event, &o.error), o.error);
    assert_ok(o.backend->copy_in(o.device, second->stream, q.buffer, 0, p.out, size_bytes, &o.error), o.error);
    assert_ok(o.backend->copy_out(o.device, second->stream, q.out, q.buffer, 0, size_bytes, &o.error), o.error);
    assert_ok(o.backend->event_record(o.device, event, second->stream, &o.error), o.error);
    assert_ok(o.backend->event_synchronize(o.device, event, &o.error), o.error); /* after this, the bytes are in q.out */
    assert_memory_equal(q.out, p.in, size_bytes);
  }
  o.backend->event_destroy(o.device, event);
  close_pipe(&o, &p);
  close_pipe(&o, &q);
  ocl_close(&o);
}

typedef struct work {
  ocl *o;
  uint64_t seed;
  pipe_ends p;
  char wrong[200];
} work;

static void *copy_often(void *user_data) {
  work *w = user_data;
  clv_error error = {0};
  clv_status status = CLV_OK;
  for (int i = 0; i < 25 && status == CLV_OK; ++i) {
    const size_t size_bytes = 1 + test_random(&w->seed) % (3 << 20), at = test_random(&w->seed) % (MOST - size_bytes);
    memset(w->p.out + at, 0, size_bytes);
    status = there(w->o, &w->p, at, size_bytes, &error);
    if (status == CLV_OK) status = back(w->o, &w->p, at, size_bytes, &error);
    if (status == CLV_OK) status = synchronize(w->o, &w->p, &error);
    if (status == CLV_OK && memcmp(w->p.out + at, w->p.in + at, size_bytes) != 0)
      snprintf(w->wrong, sizeof w->wrong, "round %d: the %zu bytes at %zu came back changed", i, size_bytes, at);
  }
  if (status != CLV_OK) snprintf(w->wrong, sizeof w->wrong, "%.190s", error.message);
  return NULL;
}

static void several_streams(void **state) {
  (void)state;
  enum { STREAMS = 4 };
  ocl o;
  work works[STREAMS];
  pthread_t threads[STREAMS];
  open_staged(&o, STAGED);
  for (uint32_t i = 0; i < STREAMS; ++i) {
    works[i] = (work){.o = &o, .seed = i + 1};
    open_pipe(&o, &works[i].p, 50 + i);
  }
  for (int i = 0; i < STREAMS; ++i) assert_int_equal(pthread_create(&threads[i], NULL, copy_often, &works[i]), 0);
  for (int i = 0; i < STREAMS; ++i) pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&driver.made), 2 * STREAMS); /* two pieces per stream */
  for (int i = 0; i < STREAMS; ++i) {
    if (works[i].wrong[0] != '\0') fail_msg("stream %d: %s", i, works[i].wrong);
    close_pipe(&o, &works[i].p);
  }
  ocl_close(&o);
}

/* ---- Failing calls ---- */

/* If pieces cannot be created or mapped, or gates (user events) or callbacks cannot be created, the driver copies directly, and
 * the bytes are right. */
static void copies_without(void **state) {
  (void)state;
  for (enum fault fault = NO_BUFFER; fault <= NO_CALLBACK; ++fault) {
    for (int at = 1; at <= 4; ++at) {
      ocl o;
      pipe_ends p;
      open_staged(&o, STAGED);
      open_pipe(&o, &p, 8);
      driver.fault = fault;
      atomic_store(&driver.fails_at, at);
      for (size_t i = 0; i < SIZES; ++i) {
        memset(p.out, 0, MOST);
        assert_ok(there(&o, &p, 0, sizes[i], &o.error), o.error);
        assert_ok(back(&o, &p, 0, sizes[i], &o.error), o.error);
        assert_ok(synchronize(&o, &p, &o.error), o.error);
        assert_memory_equal(p.out, p.in, sizes[i]);
      }
      if (fault == NO_BUFFER && at <= 2)
        assert_int_equal(atomic_load(&driver.made), at); /* after a failure, no more pieces are created */
      close_pipe(&o, &p);
      ocl_close(&o);
    }
  }
}

/* If an enqueue fails, the copy returns an error, and no bytes are written to host memory afterwards. */
static void enqueues_that_fail(void **state) {
  (void)state;
  for (enum fault fault = NO_BARRIER; fault < FAULTS; ++fault) {
    for (int at = 1; at <= (fault == NO_BARRIER ? 1 : 3); ++at) {
      ocl o;
      pipe_ends p;
      open_staged(&o, STAGED);
      open_pipe(&o, &p, 9);
      assert_ok(there(&o, &p, 0, MOST, &o.error), o.error);
      assert_ok(synchronize(&o, &p, &o.error), o.error);
      driver.fault = fault;
      atomic_store(&driver.fails_at, at);
      atomic_store(&driver.delay_us, 1000);
      o.error = (clv_error){0};
      clv_status status = fault == NO_WRITE ? there(&o, &p, 0, MOST, &o.error) : back(&o, &p, 0, MOST, &o.error);
      assert_int_equal(status, CLV_DEVICE_ERROR);
      assert_non_null(strstr(o.error.message, fault == NO_WRITE  ? "clEnqueueWriteBuffer"
                                              : fault == NO_READ ? "clEnqueueReadBuffer"
                                                                 : "clEnqueueBarrierWithWaitList"));
      atomic_store(&driver.fails_at, 0);
      if (fault == NO_READ) { /* all callbacks have run, so the caller may reuse its memory */
        memset(p.out, 0x33, MOST);
        nanosleep(&(struct timespec){0, 5000000}, NULL);
        for (size_t i = 0; i < MOST; i += 997) assert_int_equal(p.out[i], 0x33);
      }
      assert_ok(synchronize(&o, &p, &o.error), o.error);
      assert_ok(there(&o, &p, 0, MOST, &o.error), o.error); /* later copies work */
      assert_ok(back(&o, &p, 0, MOST, &o.error), o.error);
      assert_ok(synchronize(&o, &p, &o.error), o.error);
      assert_memory_equal(p.out, p.in, MOST);
      close_pipe(&o, &p);
      ocl_close(&o);
    }
  }
}

/* Closes a device while copies are in flight and its objects still exist. Closing must free the objects, and no copy may access
 * the host memory afterwards. */
static void closed_in_between(void **state) {
  (void)state;
  for (int i = 0; i < 10; ++i) {
    ocl o;
    pipe_ends p;
    open_staged(&o, STAGED);
    open_pipe(&o, &p, 10);
    assert_ok(there(&o, &p, 0, MOST, &o.error), o.error);
    assert_ok(back(&o, &p, 0, MOST, &o.error), o.error);
    if (i % 2 == 0) o.device->cl->clFlush(p.stream->queue);
    ocl_close(&o);
    free(p.in);
    free(p.out);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(where_it_is_used),   cmocka_unit_test(sizes_around_the_pieces), cmocka_unit_test(many_in_flight),
      cmocka_unit_test(out_and_in_again),   cmocka_unit_test(several_streams),         cmocka_unit_test(copies_without),
      cmocka_unit_test(enqueues_that_fail), cmocka_unit_test(closed_in_between),
  };
  return cmocka_run_group_tests_name("opencl staging", tests, NULL, NULL);
}
