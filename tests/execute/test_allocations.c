/* A run in the steady state (the session ran the same shapes before) allocates nothing from Cleave's allocator. Allocations of
 * other libraries through malloc() are counted and printed. */
#include "support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleave/cleave.h"
#include "models.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS_MALLOC 0
static size_t malloc_calls;
#else
#define COUNTS_MALLOC 1
/* Replaces all allocation functions of the C library by ones that count. They are exported so that other libraries call them
 * too. */
static size_t malloc_calls;
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
#pragma GCC visibility push(default)
static void count(void) {
  __atomic_add_fetch(&malloc_calls, 1, __ATOMIC_RELAXED);
}
void *malloc(size_t size_bytes) {
  count();
  return __libc_malloc(size_bytes);
}
void *calloc(size_t number, size_t size_bytes) {
  count();
  return __libc_calloc(number, size_bytes);
}
void *realloc(void *pointer, size_t size_bytes) {
  count();
  return __libc_realloc(pointer, size_bytes);
}
void *memalign(size_t alignment, size_t size_bytes) {
  count();
  return __libc_memalign(alignment, size_bytes);
}
void *aligned_alloc(size_t alignment, size_t size_bytes) {
  count();
  return __libc_memalign(alignment, size_bytes);
}
int posix_memalign(void **pointer, size_t alignment, size_t size_bytes) {
  count();
  *pointer = __libc_memalign(alignment, size_bytes);
  return *pointer == NULL ? ENOMEM : 0;
}
#pragma GCC visibility pop
#endif

static void runs(const char *devices, const char *pinned_to_cpu) {
  enum { RUNS = 10 };
  test_allocator counting;
  test_allocator_init(&counting);
  clv_error error = {0};
  clv_context_options context_options = CLV_CONTEXT_OPTIONS_INIT;
  context_options.allocator = &counting.allocator;
  clv_devices_options devices_options = CLV_DEVICES_OPTIONS_INIT;
  devices_options.list = devices;
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  options.strategy = "contiguous";
  clv_assignment pin = {pinned_to_cpu, "cpu"};
  options.pins = &pin;
  options.pin_count = 1;
  clv_context *context;
  clv_devices *opened;
  clv_plan *plan;
  clv_session *session;
  assert_ok(clv_context_create(&context_options, &context, &error), error);
  assert_ok(clv_devices_open(context, &devices_options, &opened, &error), error);
  clv_graph *graph = test_seven_nodes(&counting.allocator);
  assert_ok(clv_plan_make(graph, opened, &options, &plan, &error), error);
  assert_ok(clv_session_create(plan, NULL, &session, &error), error);
  clv_tensor input = *clv_graph_input_type(graph, 0), output = {0};
  float data[3 * 8 * 8];
  for (size_t i = 0; i < sizeof data / sizeof *data; ++i) data[i] = (float)i / 64;
  input.data = data;
  for (int run = 0; run < 3; ++run) { /* the first run is eager, the second is captured, the third replayed */
    output.data = NULL;
    assert_ok(clv_session_run(session, &input, 1, &output, 1, &error), error);
  }
  size_t own = counting.calls, all = malloc_calls;
  for (int run = 0; run < RUNS; ++run) {
    output.data = NULL;
    assert_ok(clv_session_run(session, &input, 1, &output, 1, &error), error);
  }
  own = counting.calls - own;
  all = malloc_calls - all;
  if (COUNTS_MALLOC) {
    print_message("%s: Cleave's allocator made %zu allocations in all runs, other libraries %.1f per run\n", devices, own,
                  (double)(all - own) / RUNS);
  }
  assert_int_equal(own, 0);
  clv_session_destroy(session);
  clv_plan_destroy(plan);
  clv_graph_destroy(graph);
  clv_devices_close(opened);
  clv_context_destroy(context);
  assert_int_equal(counting.live, 0);
}

static void on_the_cpu(void **state) {
  (void)state;
  runs("cpu", "*");
}

static void on_two_devices(void **state) {
  (void)state;
  runs("npu,cpu", "concat");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(on_the_cpu), cmocka_unit_test(on_two_devices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
