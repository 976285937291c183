/* clv_session_open(): sessions that own their context, devices, graph and plan. */
#include <pthread.h>

#include "../cache/folder.h"
#include "formats/onnx/onnx.h"
#include "machine.h"

/* Sets up the options of a session on npu and cpu, with an allocator that counts. */
typedef struct opening {
  test_allocator counting;
  clv_context_options context;
  clv_devices_options devices;
  clv_plan_options plan;
  clv_session_options session;
  clv_assignment pin;
  clv_open_options options;
} opening;

static void opening_init(opening *o) {
  test_allocator_init(&o->counting);
  o->context = (clv_context_options)CLV_CONTEXT_OPTIONS_INIT;
  o->context.allocator = &o->counting.allocator;
  o->context.cache_directory = "";
  o->devices = (clv_devices_options)CLV_DEVICES_OPTIONS_INIT;
  o->devices.list = "npu,cpu";
  o->devices.thread_count = 1;
  o->plan = (clv_plan_options)CLV_PLAN_OPTIONS_INIT;
  o->plan.strategy = "contiguous";
  o->pin = (clv_assignment){"matmul", "cpu"};
  o->plan.pins = &o->pin;
  o->plan.pin_count = 1;
  o->session = (clv_session_options)CLV_SESSION_OPTIONS_INIT;
  o->options = (clv_open_options)CLV_OPEN_OPTIONS_INIT;
  o->options.context = &o->context;
  o->options.devices = &o->devices;
  o->options.plan = &o->plan;
  o->options.session = &o->session;
}

static void *model_bytes(size_t *size_bytes) {
  clv_error error = {0};
  void *bytes;
  clv_graph *graph = test_seven_nodes(clv__allocator_default());
  assert_ok(clv__onnx_write(graph->whole, SIZE_MAX, clv__allocator_default(), &bytes, size_bytes, &error), error);
  clv_graph_destroy(graph);
  return bytes;
}

/* Runs the session on random numbers. Its first output must be that of the reference. */
static void check_run(clv_session *session) {
  float numbers[256];
  uint64_t seed = 3;
  clv_tensor input = *clv_graph_input_type(clv_session_graph(session), 0);
  size_t count;
  assert_true(clv__tensor_count(&input, &count) && count <= 256);
  for (size_t i = 0; i < count; ++i) numbers[i] = test_random_float(&seed);
  input.data = numbers;
  machine_check_run(session, clv__session_plan(session), &input, "a session from clv_session_open()");
}

static void from_file_and_memory(void **state) {
  (void)state;
  for (int way = 0; way < 3; ++way) {
    opening o;
    folder f;
    char path[256];
    clv_error error = {0};
    clv_session *session;
    size_t size_bytes;
    void *bytes = model_bytes(&size_bytes);
    opening_init(&o);
    folder_make(&f);
    snprintf(path, sizeof path, "%s/model.onnx", f.path);
    assert_ok(clv__file_write(path, bytes, size_bytes, &error), error);
    o.options.model = way == 0 ? NULL : bytes;
    o.options.model_bytes = size_bytes;
    o.options.ownership = way == 1 ? CLV_COPY : CLV_BORROW;
    assert_ok(clv_session_open(way == 0 ? path : NULL, &o.options, &session, &error), error);
    if (way == 1) memset(bytes, 0xff, size_bytes); /* a model that was copied no longer needs `bytes` */
    assert_int_equal(clv__session_plan(session)->partition_count, 3);
    check_run(session);
    clv_session_destroy(session);
    assert_int_equal(o.counting.live, 0);
    clv__release(clv__allocator_default(), bytes);
    folder_remove(f.path);
  }
}

static void check_refused(const char *path, const clv_open_options *options, clv_status status, const char *text) {
  clv_error error = {0};
  clv_session *session = (clv_session *)&error;
  assert_int_equal(clv_session_open(path, options, &session, &error), status);
  assert_null(session);
  if (strstr(error.message, text) == NULL) fail_msg("'%s' does not contain '%s'", error.message, text);
}

/* Each step of opening can fail. A failure leaves nothing allocated. */
static void failures(void **state) {
  (void)state;
  opening o;
  size_t size_bytes;
  void *bytes = model_bytes(&size_bytes);
  const char *params = "w.npz";
  opening_init(&o);
  check_refused(NULL, NULL, CLV_INVALID_ARGUMENT, "neither");
  check_refused("/nowhere/model.onnx", &o.options, CLV_NOT_FOUND, "/nowhere/model.onnx");
  o.options.model = bytes, o.options.model_bytes = size_bytes;
  check_refused("model.onnx", &o.options, CLV_INVALID_ARGUMENT, "both");
  o.options.params = &params, o.options.param_count = 1;
  check_refused(NULL, &o.options, CLV_INVALID_ARGUMENT, "params");
  o.options.param_count = 0;
  o.options.model_bytes = size_bytes / 2;
  check_refused(NULL, &o.options, CLV_INVALID_MODEL, "");
  o.options.model_bytes = size_bytes;
  o.devices.list = "nothing";
  check_refused(NULL, &o.options, CLV_NOT_FOUND, "nothing");
  o.devices.list = "cpu";
  o.pin.device = "npu";
  check_refused(NULL, &o.options, CLV_INVALID_ARGUMENT, "npu");
  o.pin.device = "cpu";
  o.session.in_flight = 1000;
  check_refused(NULL, &o.options, CLV_INVALID_ARGUMENT, "1000");
  o.options.struct_size = 1;
  check_refused(NULL, &o.options, CLV_INVALID_ARGUMENT, "CLV_OPEN_OPTIONS_INIT");
  assert_int_equal(o.counting.live, 0);
  clv__release(clv__allocator_default(), bytes);
}

/* Allocations fail, one in each attempt to open. No attempt may leak. */
static void lack_of_memory(void **state) {
  (void)state;
  size_t size_bytes, failed = 0;
  void *bytes = model_bytes(&size_bytes);
  for (size_t at = 1;; at += 1 + at / 50) {
    opening o;
    clv_error error = {0};
    clv_session *session;
    opening_init(&o);
    o.options.model = bytes, o.options.model_bytes = size_bytes;
    o.counting.fail_at = at;
    clv_status status = clv_session_open(NULL, &o.options, &session, &error);
    bool was_reached = o.counting.calls >= at;
    if (status == CLV_OK) clv_session_destroy(session);
    failed += status != CLV_OK;
    assert_int_equal(o.counting.live, 0);
    if (!was_reached) break;
  }
  assert_true(failed > 50);
  clv__release(clv__allocator_default(), bytes);
}

enum { LOOP_THREADS = 8, SESSIONS = 10000 };

typedef struct loop {
  const void *bytes;
  size_t size_bytes;
  uint32_t count;
  bool is_right;
} loop;

/* Opens, runs and closes sessions, one after the other. No assertions: they must not end a thread. */
static void *open_and_close(void *cookie) {
  loop *l = cookie;
  l->is_right = true;
  for (uint32_t i = 0; i < l->count && l->is_right; ++i) {
    opening o;
    float numbers[256] = {0};
    clv_tensor outputs[4] = {{0}};
    clv_session *session = NULL;
    opening_init(&o);
    o.options.model = l->bytes;
    o.options.model_bytes = l->size_bytes;
    l->is_right = clv_session_open(NULL, &o.options, &session, NULL) == CLV_OK;
    if (l->is_right) {
      const clv_graph *graph = clv_session_graph(session);
      clv_tensor input = *clv_graph_input_type(graph, 0);
      input.data = numbers;
      l->is_right = clv_session_run(session, &input, 1, outputs, clv_graph_output_count(graph), NULL) == CLV_OK;
    }
    clv_session_destroy(session);
    l->is_right = l->is_right && o.counting.live == 0;
  }
  return NULL;
}

static uint64_t resident_pages(void) {
  unsigned long all = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%lu %lu", &all, &resident), 2);
  fclose(file);
  return resident;
}

static void in_threads(loop *l, uint32_t count) {
  pthread_t threads[LOOP_THREADS];
  loop loops[LOOP_THREADS];
  for (int i = 0; i < LOOP_THREADS; ++i) {
    loops[i] = *l;
    loops[i].count = count / LOOP_THREADS;
    assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, &loops[i]), 0);
  }
  for (int i = 0; i < LOOP_THREADS; ++i) {
    pthread_join(threads[i], NULL);
    assert_true(loops[i].is_right);
  }
}

/* Sessions that several threads open and close leave nothing behind: neither in the allocator, nor in the process. */
static void many_in_threads(void **state) {
  (void)state;
  loop l = {0};
  void *bytes = model_bytes(&l.size_bytes);
  l.bytes = bytes;
  const uint32_t count = test_some(SESSIONS / 10) * 10;
  in_threads(&l, count / 5);
  const uint64_t before = resident_pages();
  in_threads(&l, count - count / 5);
  const uint64_t after = resident_pages();
  print_message("%u sessions in %d threads: %llu resident pages after a fifth of them, %llu after all\n", count, LOOP_THREADS,
                (unsigned long long)before, (unsigned long long)after);
#ifndef __SANITIZE_ADDRESS__ /* its quarantine keeps freed memory */
  assert_true(after < before + before / 20 + 1024);
#endif
  clv__release(clv__allocator_default(), bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(from_file_and_memory), cmocka_unit_test(failures),
                                     cmocka_unit_test(lack_of_memory), cmocka_unit_test(many_in_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
