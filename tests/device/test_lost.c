/* Tests lost devices. Their functions are called no more: a table of functions (slots) that fail or do nothing replaces that
 * of the backend. Tests each slot, and the loss of a device while several threads call it. */
#include <pthread.h>

#include "backends/vnpu/vnpu.h"
#include "device/backends.h"
#include "machine.h"

#define TEXT "the device was removed earlier, because it did not answer in time"

/* ---- Which slots there are ---- */

static void never(void) {
  fail_msg("the lost device was called");
}

static uintptr_t word_at(const void *table, size_t offset) {
  uintptr_t word;
  memcpy(&word, (const char *)table + offset, sizeof word);
  return word;
}

/* A table whose slots and groups from offset `from` on are all never(). */
static clv_backend table_of_never(size_t from) {
  clv_backend table = {.abi_version = CLV_ABI_VERSION, .struct_size = sizeof table, .name = "never", .version = "3.4"};
  void (*const slot)(void) = never;
  for (size_t at = from; at < sizeof table; at += sizeof slot) memcpy((char *)&table + at, &slot, sizeof slot);
  table.options = NULL;
  table.option_count = 0;
  return table;
}

/* The table of a lost device replaces every slot. The test also fails if a slot is added to the interface, but not to that
 * table. */
static void has_every_slot(void **state) {
  (void)state;
  const clv_backend backend = table_of_never(offsetof(clv_backend, open)), lost = clv__lost_backend(&backend);
  assert_string_equal(lost.name, "never"); /* name and version are parts of cache keys, so they must stay */
  assert_string_equal(lost.version, "3.4");
  assert_int_equal(lost.struct_size, sizeof lost);
  for (size_t at = offsetof(clv_backend, open); at < sizeof lost; at += sizeof(uintptr_t)) {
    if (at == offsetof(clv_backend, options) || at == offsetof(clv_backend, option_count)) continue;
    if (word_at(&lost, at) == 0) fail_msg("the slot at offset %zu is missing", at);
    if (word_at(&lost, at) == word_at(&backend, at)) fail_msg("the slot at offset %zu is the device's", at);
  }
}

static void check_group(const void *group, const void *of_least, size_t size_bytes) {
  uint32_t stated;
  memcpy(&stated, group, sizeof stated);
  assert_int_equal(stated, size_bytes);
  for (size_t at = sizeof(uintptr_t); at < size_bytes; at += sizeof(uintptr_t)) assert_true(word_at(group, at) != 0);
  assert_null(of_least);
}

/* A backend without optional slots does not get any: code that found none before the loss must not find them after it. */
static void has_no_other_slot(void **state) {
  (void)state;
  const clv_backend every = table_of_never(offsetof(clv_backend, open)), all = clv__lost_backend(&every);
  clv_backend least = {.abi_version = CLV_ABI_VERSION, .struct_size = sizeof least, .name = "least", .version = "1"};
  least = clv__lost_backend(&least);
  assert_true(least.prefers == NULL && least.instance_resize == NULL && least.node_seconds == NULL);
  assert_true(least.copy_seconds == NULL && least.launch_seconds == NULL && least.claim == NULL);
  assert_true(least.event_notify == NULL && least.list == NULL && least.finish == NULL);
  assert_true(least.stream_stop == NULL && least.buffer_discard == NULL);
  check_group(all.save, least.save, sizeof *all.save);
  check_group(all.scratch, least.scratch, sizeof *all.scratch);
  check_group(all.capture, least.capture, sizeof *all.capture);
  check_group(all.timing, least.timing, sizeof *all.timing);
}

/* ---- What the slots do ---- */

/* Not the address of anything: whatever reads it crashes. */
#define NO_DEVICE ((clv_device *)8)

#define ASSERT_FAILS(slot, expected, ...)                                                          \
  do {                                                                                             \
    clv_error failed = {0};                                                                        \
    assert_int_equal(lost.slot(NO_DEVICE, __VA_ARGS__, &failed), expected);                        \
    assert_string_equal(failed.message, TEXT);                                                     \
    assert_int_equal(lost.slot(NO_DEVICE, __VA_ARGS__, NULL), expected); /* without a clv_error */ \
  } while (0)

static void slots_with_a_status_fail(void **state) {
  (void)state;
  const clv_backend every = table_of_never(offsetof(clv_backend, open)), lost = clv__lost_backend(&every);
  clv_buffer *buffer = NULL;
  clv_stream *stream = NULL;
  clv_event *event = NULL;
  clv_weight *weight = NULL;
  clv_executable *executable = NULL;
  clv_instance *instance = NULL;
  clv_captured *captured = NULL;
  char bytes[4];
  ASSERT_FAILS(buffer_alloc, CLV_DEVICE_ERROR, 64, &buffer);
  ASSERT_FAILS(stream_create, CLV_DEVICE_ERROR, &stream);
  ASSERT_FAILS(stream_synchronize, CLV_DEVICE_ERROR, stream);
  ASSERT_FAILS(stream_stop, CLV_DEVICE_ERROR, stream);
  ASSERT_FAILS(event_create, CLV_DEVICE_ERROR, &event);
  ASSERT_FAILS(event_record, CLV_DEVICE_ERROR, event, stream);
  ASSERT_FAILS(event_wait, CLV_DEVICE_ERROR, stream, event);
  ASSERT_FAILS(event_synchronize, CLV_DEVICE_ERROR, event);
  ASSERT_FAILS(event_notify, CLV_DEVICE_ERROR, event, NULL, NULL); /* calls no notify function */
  ASSERT_FAILS(copy_in, CLV_DEVICE_ERROR, stream, buffer, 0, bytes, sizeof bytes);
  ASSERT_FAILS(copy_out, CLV_DEVICE_ERROR, stream, bytes, buffer, 0, sizeof bytes);
  ASSERT_FAILS(weight_upload, CLV_DEVICE_ERROR, "w", NULL, &weight);
  ASSERT_FAILS(compile, CLV_DEVICE_ERROR, NULL, NULL, &executable);
  ASSERT_FAILS(finish, CLV_DEVICE_ERROR, &executable, 1);
  ASSERT_FAILS(instance_create, CLV_DEVICE_ERROR, executable, NULL, 0, NULL, 0, &instance);
  ASSERT_FAILS(instance_resize, CLV_DEVICE_ERROR, instance, NULL, 0);
  ASSERT_FAILS(execute, CLV_DEVICE_ERROR, instance, stream, NULL);
  ASSERT_FAILS(claim, CLV_DEVICE_ERROR, NULL, NULL, NULL, NULL);
  ASSERT_FAILS(save->save, CLV_DEVICE_ERROR, executable, NULL, NULL);
  ASSERT_FAILS(save->load, CLV_DEVICE_ERROR, bytes, sizeof bytes, &executable);
  ASSERT_FAILS(scratch->bind, CLV_DEVICE_ERROR, instance, buffer, 0);
  ASSERT_FAILS(capture->begin, CLV_DEVICE_ERROR, stream, CLV_CAPTURE_THREAD);
  ASSERT_FAILS(capture->end, CLV_DEVICE_ERROR, stream, &captured);
  ASSERT_FAILS(capture->launch, CLV_DEVICE_ERROR, captured, stream);
  ASSERT_FAILS(capture->bind, CLV_DEVICE_ERROR, captured, 0, NULL);
  ASSERT_FAILS(timing->enable, CLV_NOT_SUPPORTED, instance, true);
  ASSERT_FAILS(timing->steps, CLV_NOT_SUPPORTED, instance, NULL, NULL);
  assert_true(buffer == NULL && stream == NULL && event == NULL && weight == NULL);
  assert_true(executable == NULL && instance == NULL && captured == NULL);
  clv_device *opened = NULL;
  assert_int_equal(lost.open(NULL, NULL, NULL, &opened, NULL), CLV_DEVICE_ERROR);
  assert_int_equal(lost.list(NULL, NULL, NULL, 0, NULL, NULL, NULL), CLV_DEVICE_ERROR);
  assert_null(opened);
}

/* The slots that release or describe something do nothing. The arguments are invalid pointers, so a slot that used them would
 * crash. */
static void other_slots_do_nothing(void **state) {
  (void)state;
  const clv_backend every = table_of_never(offsetof(clv_backend, open)), lost = clv__lost_backend(&every);
  lost.close(NO_DEVICE);
  lost.buffer_free(NO_DEVICE, (clv_buffer *)16);
  lost.buffer_discard(NO_DEVICE, (clv_buffer *)16);
  lost.stream_destroy(NO_DEVICE, (clv_stream *)16);
  lost.event_destroy(NO_DEVICE, (clv_event *)16);
  lost.weight_release(NO_DEVICE, (clv_weight *)16);
  lost.executable_destroy(NO_DEVICE, (clv_executable *)16);
  lost.instance_destroy(NO_DEVICE, (clv_instance *)16);
  lost.capture->destroy(NO_DEVICE, (clv_captured *)16);
  clv_device_info device = {.struct_size = sizeof device, .kind = "npu"};
  lost.info(NO_DEVICE, &device);
  assert_string_equal(device.kind, "npu");
  clv_executable_info executable = {.struct_size = sizeof executable};
  lost.executable_info(NO_DEVICE, (clv_executable *)16, &executable);
  assert_true(executable.weight_count == 0 && executable.weights == NULL);

  clv_verdict verdict = {.supported = true};
  lost.supports(NO_DEVICE, NULL, 0, &verdict);
  assert_false(verdict.supported);
  assert_string_equal(verdict.reason, "removed: it did not answer in time");
  assert_false(lost.prefers(NO_DEVICE, NULL, 0));
  assert_null(lost.buffer_host_pointer(NO_DEVICE, (clv_buffer *)16));
  assert_true(lost.node_seconds(NO_DEVICE, NULL, 0) < 0);
  assert_true(lost.copy_seconds(NO_DEVICE, 1) < 0);
  assert_true(lost.launch_seconds(NO_DEVICE) < 0);
  size_t limit = 7;
  assert_null(lost.save->graph(NO_DEVICE, (clv_executable *)16, &limit));
  assert_int_equal(lost.scratch->size_bytes(NO_DEVICE, (clv_instance *)16), 0);
  assert_int_equal(lost.capture->size_bytes(NO_DEVICE, (clv_captured *)16), 0);
}

/* ---- A device that is lost ---- */

static interposer *open_faulty(machine *m) {
  interposer *faulty =
      interposer_create(&(interposer_options){.name = "faulty", .query = clv__vnpu_backend_query, .spec = "all"});
  machine_open_with(m, faulty, "faulty,cpu", 0, NULL);
  return faulty;
}

static void only_close_reaches_the_device(void **state) {
  (void)state;
  machine m;
  interposer *faulty = open_faulty(&m);
  clv__device *device = &m.devices->items[0];
  clv_error error = {0};
  clv_stream *stream;
  clv_event *event;
  clv_buffer *buffer;
  assert_ok(CLV__CALL(device, &error, stream_create, &stream), error);
  assert_ok(CLV__CALL(device, &error, event_create, &event), error);
  assert_ok(CLV__CALL(device, &error, buffer_alloc, 64, &buffer), error);
  assert_ok(clv__device_check(device, &error), error);
  assert_false(clv__device_is_lost(device));
  const uint64_t calls = interposer_calls(faulty);
  assert_true(clv__device_lose(device));
  assert_false(clv__device_lose(device)); /* only the first of two callers reports the loss */
  assert_true(clv__device_is_lost(device));
  assert_false(clv__device_is_lost(&m.devices->items[1]));
  assert_int_equal(clv__device_check(device, &error), CLV_DEVICE_ERROR);
  assert_string_equal(error.message, "faulty: " TEXT);
  assert_int_equal(CLV__CALL(device, &error, stream_synchronize, stream), CLV_DEVICE_ERROR);
  assert_string_equal(error.message, "stream_synchronize: " TEXT);
  device->backend->buffer_free(device->handle, buffer);
  device->backend->event_destroy(device->handle, event);
  device->backend->stream_destroy(device->handle, stream);
  assert_string_equal(device->backend->name, "faulty");
  assert_int_equal(interposer_calls(faulty), calls);
  machine_close(&m);
  assert_int_equal(interposer_calls(faulty), calls + 1);
  assert_int_equal(interposer_count(faulty, INTERPOSER_close), 1);
  assert_int_equal(interposer_left(faulty), 3);
  interposer_destroy(faulty);
}

enum { CALLERS = 3, ROUNDS = 20 };

typedef struct caller {
  clv__device *device;
  uint32_t lost; /* times that this thread was the one that removed the device */
  uint32_t rounds;
  clv_error error; /* of the last call */
} caller;

/* Calls the device, with optional slots among the calls, until it is lost. The first thread that completes ROUNDS rounds
 * removes the device. */
static void *call(void *cookie) {
  caller *c = cookie;
  const clv__device *device = c->device;
  for (clv_buffer *buffer; CLV__CALL(device, &c->error, buffer_alloc, 64, &buffer) == CLV_OK; ++c->rounds) {
    if (device->backend->buffer_discard != NULL) device->backend->buffer_discard(device->handle, buffer);
    device->backend->buffer_free(device->handle, buffer);
    if (c->rounds >= ROUNDS) c->lost += clv__device_lose(c->device);
  }
  return NULL;
}

static void is_lost_while_others_call_it(void **state) {
  (void)state;
  for (uint32_t i = 0; i < 20; ++i) {
    machine m;
    interposer *faulty = open_faulty(&m);
    caller callers[CALLERS] = {{0}};
    pthread_t threads[CALLERS];
    for (uint32_t k = 0; k < CALLERS; ++k) {
      callers[k].device = &m.devices->items[0];
      assert_int_equal(pthread_create(&threads[k], NULL, call, &callers[k]), 0);
    }
    uint32_t lost = 0;
    for (uint32_t k = 0; k < CALLERS; ++k) {
      pthread_join(threads[k], NULL);
      assert_string_equal(callers[k].error.message, "buffer_alloc: " TEXT);
      lost += callers[k].lost;
    }
    assert_int_equal(lost, 1);
    machine_close(&m);
    /* Each thread may have left one buffer, except the one that removed the device: it had freed its buffer before. */
    assert_true(interposer_left(faulty) < CALLERS);
    interposer_destroy(faulty);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(has_every_slot),
      cmocka_unit_test(has_no_other_slot),
      cmocka_unit_test(slots_with_a_status_fail),
      cmocka_unit_test(other_slots_do_nothing),
      cmocka_unit_test(only_close_reaches_the_device),
      cmocka_unit_test(is_lost_while_others_call_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
