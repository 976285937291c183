/* Tests OpenCL devices through the plugin ABI: opening, options, buffers, copies, streams, events, notifications, and rejected
 * arguments. */
#include <pthread.h>
#include <stdatomic.h>

#include "backends/opencl/icd.h"
#include "opencl_host.h"

static const char *const memories[] = {"memory=auto", "memory=own"};

static void opens_and_tells(void **state) {
  (void)state;
  ocl o;
  ocl_open(&o, "");
  clv_device_info info = {.struct_size = sizeof info};
  o.backend->info(o.device, &info);
  assert_true(strcmp(info.kind, "gpu") == 0 || strcmp(info.kind, "cpu") == 0 || strcmp(info.kind, "npu") == 0);
  assert_true(info.description[0] != '\0' && info.fingerprint[0] != '\0');
  assert_true(info.alignment_bytes >= 64 && (info.alignment_bytes & (info.alignment_bytes - 1)) == 0);
  assert_false(info.is_synchronous);
  assert_true(o.backend->launch_seconds(o.device) > 0);
  assert_true(o.backend->copy_seconds(o.device, 1 << 20) >= 0);
  char fingerprint[1024];
  snprintf(fingerprint, sizeof fingerprint, "%s", info.fingerprint);
  ocl_close(&o);
  ocl_open(&o, "memory=own,f16=off"); /* options on which executables depend change the fingerprint */
  o.backend->info(o.device, &info);
  assert_string_not_equal(fingerprint, info.fingerprint);
  assert_string_equal(info.memory_space, "opencl");
  assert_true(info.memory_limit_bytes > 0);
  ocl_close(&o);
}

/* A driver that describes itself with long texts. The text of the query `odd_text` ends with `odd_ending`, the others with
 * 'x'. */
static __typeof__(clGetDeviceInfo) *true_device_info;
static __typeof__(clGetPlatformInfo) *true_platform_info;
static cl_uint odd_text;
static char odd_ending;

static cl_int long_text(char ending, size_t size_bytes, void *text, size_t *length) {
  enum { LENGTH = 400 };
  if (length != NULL) *length = LENGTH + 1;
  if (text == NULL) return CL_SUCCESS;
  if (size_bytes < LENGTH + 1) return CL_INVALID_VALUE;
  memset(text, 'x', LENGTH);
  ((char *)text)[LENGTH - 1] = ending;
  ((char *)text)[LENGTH] = '\0';
  return CL_SUCCESS;
}

static cl_int CL_API_CALL wordy_device_info(cl_device_id id, cl_device_info what, size_t size_bytes, void *text, size_t *length) {
  if (what != CL_DEVICE_NAME && what != CL_DEVICE_VENDOR && what != CL_DEVICE_VERSION && what != CL_DRIVER_VERSION)
    return true_device_info(id, what, size_bytes, text, length);
  return long_text(what == odd_text ? odd_ending : 'x', size_bytes, text, length);
}

static cl_int CL_API_CALL wordy_platform_info(cl_platform_id id, cl_platform_info what, size_t size_bytes, void *text,
                                              size_t *length) {
  if (what != CL_PLATFORM_VERSION) return true_platform_info(id, what, size_bytes, text, length);
  return long_text(what == odd_text ? odd_ending : 'x', size_bytes, text, length);
}

/* Drivers have different fingerprints even if only the last character of one of their texts differs. So they never share
 * executables. */
static void fingerprints_tell_drivers_apart(void **state) {
  (void)state;
  static const cl_uint texts[] = {0, CL_DEVICE_NAME, CL_DEVICE_VENDOR, CL_DEVICE_VERSION, CL_DRIVER_VERSION, CL_PLATFORM_VERSION};
  enum { COUNT = sizeof texts / sizeof *texts };
  char seen[2 * COUNT][1024];
  ocl o;
  ocl_open(&o, ""); /* skips the test if there is no device */
  ocl_close(&o);
  const clv__opencl_icd *table;
  assert_ok(clv__opencl_icd_open(&table, &o.error), o.error);
  clv__opencl_icd *icd = (clv__opencl_icd *)(uintptr_t)table; /* the table itself is not const: functions can be replaced */
  true_device_info = icd->clGetDeviceInfo;
  true_platform_info = icd->clGetPlatformInfo;
  icd->clGetDeviceInfo = wordy_device_info;
  icd->clGetPlatformInfo = wordy_platform_info;
  for (size_t i = 0; i < 2 * COUNT; ++i) {
    clv_device_info info = {.struct_size = sizeof info};
    odd_text = texts[i % COUNT];
    odd_ending = 'y';
    ocl_open(&o, "");
    o.backend->info(o.device, &info);
    snprintf(seen[i], sizeof seen[i], "%s", info.fingerprint);
    ocl_close(&o);
    for (size_t k = 0; k < i; ++k) {
      if (k % COUNT == i % COUNT)
        assert_string_equal(seen[k], seen[i]);
      else
        assert_string_not_equal(seen[k], seen[i]);
    }
  }
  icd->clGetDeviceInfo = true_device_info;
  icd->clGetPlatformInfo = true_platform_info;
}

static void refuses_what_it_cannot_open(void **state) {
  (void)state;
  ocl o;
  ocl_open(&o, "");
  ocl_close(&o);
  static const struct {
    const char *name;
    uint32_t ordinal;
    const char *options;
    clv_status status;
    const char *says;
  } cases[] = {
      {"opencl", 63, "", CLV_NOT_SUPPORTED, "device 63 does not exist: OpenCL has "},
      {"opencl", 0, "f16=maybe", CLV_INVALID_ARGUMENT, "option f16=maybe: expected on or off"},
      {"opencl", 0, "capture=sometimes", CLV_INVALID_ARGUMENT, "expected auto, buffer, list or off"},
      {"opencl", 0, "memory=mine", CLV_INVALID_ARGUMENT, "expected auto or own"},
      {"gpu:63", 63, "", CLV_NOT_SUPPORTED, "GPU 63 does not exist: OpenCL has "},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    clv_status status = ocl_try_open(&o, cases[i].name, cases[i].ordinal, cases[i].options);
    assert_int_equal(status, cases[i].status);
    if (strstr(o.error.message, cases[i].says) == NULL)
      fail_msg("the error message '%s' does not contain '%s'", o.error.message, cases[i].says);
    assert_null(o.device);
    assert_int_equal(o.counting.live, 0);
  }
}

/* ---- Copies ---- */

enum { REGION = 40000 };

static void copies_keep_to_their_ranges(void **state) {
  (void)state;
  for (size_t mode = 0; mode < 2; ++mode) {
    ocl o;
    ocl_open(&o, memories[mode]);
    const clv_backend *b = o.backend;
    clv_buffer *buffer = NULL;
    clv_stream *stream = NULL;
    static uint8_t image[REGION], back[REGION], pieces[64][REGION / 8];
    uint64_t seed = 5;
    assert_ok(b->buffer_alloc(o.device, REGION, &buffer, &o.error), o.error);
    assert_ok(b->stream_create(o.device, &stream, &o.error), o.error);
    memset(image, 0x5a, sizeof image);
    assert_ok(b->copy_in(o.device, stream, buffer, 0, image, REGION, &o.error), o.error);
    for (int round = 0; round < 64; ++round) { /* the host waits for none of these copies */
      const size_t at = test_random(&seed) % REGION, room = REGION - at < REGION / 8 ? REGION - at : REGION / 8;
      const size_t count = test_random(&seed) % (room + 1);
      for (size_t i = 0; i < count; ++i) pieces[round][i] = (uint8_t)test_random(&seed);
      memcpy(image + at, pieces[round], count);
      assert_ok(b->copy_in(o.device, stream, buffer, at, pieces[round], count, &o.error), o.error);
    }
    assert_ok(b->copy_out(o.device, stream, back, buffer, 0, REGION, &o.error), o.error);
    assert_ok(b->stream_synchronize(o.device, stream, &o.error), o.error);
    assert_memory_equal(back, image, REGION);
    for (int round = 0; round < 20; ++round) {
      const size_t at = test_random(&seed) % REGION, count = test_random(&seed) % (REGION - at + 1);
      assert_ok(b->copy_out(o.device, stream, back, buffer, at, count, &o.error), o.error);
      assert_ok(b->stream_synchronize(o.device, stream, &o.error), o.error);
      assert_memory_equal(back, image + at, count);
    }
    const uint8_t *host = b->buffer_host_pointer(o.device, buffer);
    if (host != NULL) assert_memory_equal(host, image, REGION);
    assert_int_equal(b->copy_in(o.device, stream, buffer, 1, image, REGION, &o.error), CLV_INVALID_ARGUMENT);
    assert_int_equal(b->copy_out(o.device, stream, back, buffer, REGION + 1, 0, &o.error), CLV_INVALID_ARGUMENT);
    assert_int_equal(b->copy_out(o.device, stream, back, buffer, UINT64_MAX, 2, &o.error), CLV_INVALID_ARGUMENT);
    b->buffer_free(o.device, buffer);
    assert_ok(b->buffer_alloc(o.device, 0, &buffer, &o.error), o.error); /* a buffer of 0 bytes is valid */
    assert_ok(b->copy_in(o.device, stream, buffer, 0, image, 0, &o.error), o.error);
    assert_ok(b->stream_synchronize(o.device, stream, &o.error), o.error);
    b->buffer_free(o.device, buffer);
    buffer = NULL;
    clv_status status = b->buffer_alloc(o.device, UINT64_C(1) << 60, &buffer, &o.error);
    assert_int_equal(status, CLV_OUT_OF_MEMORY);
    assert_null(buffer);
    b->buffer_free(o.device, NULL);
    b->stream_destroy(o.device, stream);
    ocl_close(&o);
  }
}

/* ---- Order ---- */

enum { CHAIN = 40, BLOCK = 1 << 16 };

/* Several streams take turns writing and reading one buffer. Only events order them: the host does not wait in between. */
static void events_order_streams(void **state) {
  (void)state;
  ocl o;
  ocl_open(&o, "memory=own");
  const clv_backend *b = o.backend;
  clv_stream *streams[3];
  clv_event *written, *read;
  clv_buffer *buffer = NULL;
  uint8_t *values[2] = {malloc(BLOCK), malloc(BLOCK)}, *seen = malloc((size_t)CHAIN * BLOCK);
  assert_true(values[0] != NULL && values[1] != NULL && seen != NULL);
  for (int k = 0; k < 2; ++k) memset(values[k], 17 + k, BLOCK);
  assert_ok(b->buffer_alloc(o.device, BLOCK, &buffer, &o.error), o.error);
  for (int s = 0; s < 3; ++s) assert_ok(b->stream_create(o.device, &streams[s], &o.error), o.error);
  assert_ok(b->event_create(o.device, &written, &o.error), o.error);
  assert_ok(b->event_create(o.device, &read, &o.error), o.error);
  assert_ok(b->event_synchronize(o.device, read, &o.error), o.error); /* never recorded: nothing to wait for */
  for (int i = 0; i < CHAIN; ++i) {
    clv_stream *writer = streams[i % 3], *reader = streams[(i + 1) % 3];
    assert_ok(b->event_wait(o.device, writer, read, &o.error), o.error);
    assert_ok(b->copy_in(o.device, writer, buffer, 0, values[i % 2], BLOCK, &o.error), o.error);
    assert_ok(b->event_record(o.device, written, writer, &o.error), o.error);
    assert_ok(b->event_wait(o.device, reader, written, &o.error), o.error);
    assert_ok(b->copy_out(o.device, reader, seen + (size_t)i * BLOCK, buffer, 0, BLOCK, &o.error), o.error);
    assert_ok(b->event_record(o.device, read, reader, &o.error), o.error);
  }
  assert_ok(b->event_synchronize(o.device, read, &o.error), o.error);
  for (int i = 0; i < CHAIN; ++i) assert_memory_equal(seen + (size_t)i * BLOCK, values[i % 2], BLOCK);
  for (int s = 0; s < 3; ++s) {
    assert_ok(b->stream_synchronize(o.device, streams[s], &o.error), o.error);
    b->stream_destroy(o.device, streams[s]);
  }
  b->event_destroy(o.device, written);
  b->event_destroy(o.device, read);
  b->event_destroy(o.device, NULL);
  b->stream_destroy(o.device, NULL);
  b->buffer_free(o.device, buffer);
  free(values[0]);
  free(values[1]);
  free(seen);
  ocl_close(&o);
}

static void count_up(void *cookie) {
  atomic_fetch_add((atomic_int *)cookie, 1);
}

static void wait_for(atomic_int *count, int wanted) {
  for (int i = 0; i < 20000 && atomic_load(count) < wanted; ++i) nanosleep(&(struct timespec){0, 1000000}, NULL);
  assert_int_equal(atomic_load(count), wanted);
}

typedef struct notified {
  ocl *o;
  clv_status status;
} notified;

enum { NOTICES = 200 };

static void *notify_thread(void *cookie) {
  notified *n = cookie;
  const clv_backend *b = n->o->backend;
  clv_error error = {0};
  clv_stream *stream = NULL;
  clv_event *event = NULL;
  clv_buffer *buffer = NULL;
  uint8_t bytes[64] = {0};
  atomic_int count = 0;
  n->status = b->stream_create(n->o->device, &stream, &error);
  if (n->status == CLV_OK) n->status = b->event_create(n->o->device, &event, &error);
  if (n->status == CLV_OK) n->status = b->buffer_alloc(n->o->device, sizeof bytes, &buffer, &error);
  for (int i = 0; i < NOTICES && n->status == CLV_OK; ++i) {
    n->status = b->copy_in(n->o->device, stream, buffer, 0, bytes, sizeof bytes, &error);
    if (n->status == CLV_OK) n->status = b->event_record(n->o->device, event, stream, &error);
    if (n->status == CLV_OK) n->status = b->event_notify(n->o->device, event, count_up, &count, &error);
  }
  if (n->status == CLV_OK) n->status = b->event_synchronize(n->o->device, event, &error);
  wait_for(&count, NOTICES);
  b->buffer_free(n->o->device, buffer);
  b->event_destroy(n->o->device, event);
  b->stream_destroy(n->o->device, stream);
  return NULL;
}

static void notifies_once_from_any_thread(void **state) {
  (void)state;
  ocl o;
  ocl_open(&o, "");
  clv_event *event = NULL;
  atomic_int count = 0;
  assert_ok(o.backend->event_create(o.device, &event, &o.error), o.error);
  assert_ok(o.backend->event_notify(o.device, event, count_up, &count, &o.error), o.error); /* never recorded: notifies at once */
  assert_int_equal(atomic_load(&count), 1);
  o.backend->event_destroy(o.device, event);
  pthread_t threads[3];
  notified each[3];
  for (int i = 0; i < 3; ++i) {
    each[i] = (notified){&o, CLV_OK};
    assert_int_equal(pthread_create(&threads[i], NULL, notify_thread, &each[i]), 0);
  }
  for (int i = 0; i < 3; ++i) {
    pthread_join(threads[i], NULL);
    assert_int_equal(each[i].status, CLV_OK);
  }
  ocl_close(&o);
}

/* Closing an abandoned device frees all objects that are left. */
static void closing_takes_what_is_left(void **state) {
  (void)state;
  ocl o;
  ocl_open(&o, "");
  const clv_backend *b = o.backend;
  clv_stream *stream = NULL;
  clv_event *event = NULL;
  clv_buffer *buffer = NULL;
  uint64_t seed = 9;
  ocl_run r;
  ocl_run_open(&o, &r, CLV_F32, 12, &seed);
  assert_ok(b->stream_create(o.device, &stream, &o.error), o.error);
  assert_ok(b->event_create(o.device, &event, &o.error), o.error);
  assert_ok(b->buffer_alloc(o.device, 100, &buffer, &o.error), o.error);
  assert_ok(b->copy_in(o.device, stream, buffer, 0, "abc", 4, &o.error), o.error);
  assert_ok(b->event_record(o.device, event, stream, &o.error), o.error);
  assert_ok(b->event_synchronize(o.device, event, &o.error), o.error);
  release_tensors(heap(), r.inputs, r.graph->input_count);
  release_tensors(heap(), r.expected, r.graph->output_count);
  clv__shapes_destroy(r.shapes);
  clv__graph_destroy(r.graph);
  ocl_close(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(opens_and_tells),
      cmocka_unit_test(fingerprints_tell_drivers_apart),
      cmocka_unit_test(refuses_what_it_cannot_open),
      cmocka_unit_test(copies_keep_to_their_ranges),
      cmocka_unit_test(events_order_streams),
      cmocka_unit_test(notifies_once_from_any_thread),
      cmocka_unit_test(closing_takes_what_is_left),
  };
  return cmocka_run_group_tests_name("opencl devices", tests, NULL, NULL);
}
