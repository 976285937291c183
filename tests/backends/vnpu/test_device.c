/* The virtual NPU's memory and queues: unwritten and freed memory is poisoned, limits are enforced, commands run in order, and
 * events pass order and failures between streams. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backends/vnpu/memory.h"
#include "backends/vnpu/queue_own.h"
#include "backends/vnpu/spec/speed.h"
#include "base/clock.h"
#include "fake_host.h"

/* ---- Memory ---- */

static clv__vnpu_space *open_space(fake_host *fake, const char *name, uint64_t limit_bytes) {
  clv__vnpu_space *space = NULL;
  clv_error error = {0};
  assert_ok(clv__vnpu_space_open(&fake->host, name, true, limit_bytes, 64, &space, &error), error);
  return space;
}

static void blocks_are_apart_poisoned_and_checked(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, clv__allocator_default());
  clv__vnpu_space *space = open_space(&fake, "a", 0);
  enum { BLOCKS = 60 };
  uint64_t addresses[BLOCKS] = {0}, sizes[BLOCKS] = {0}, seed = 7;
  for (int round = 0; round < 3000; ++round) {
    int i = (int)(test_random(&seed) % BLOCKS);
    if (addresses[i] != 0) {
      uint8_t *data = clv__vnpu_space_translate(space, addresses[i], sizes[i]);
      assert_non_null(data);
      for (uint64_t k = 0; k < sizes[i]; k += 97) assert_int_equal(data[k], i); /* no other block overlaps this one */
      clv__vnpu_space_free(space, addresses[i], sizes[i]);
      assert_null(clv__vnpu_space_translate(space, addresses[i], 1));
      addresses[i] = 0;
      continue;
    }
    sizes[i] = test_random(&seed) % (round % 50 == 0 ? 6000000 : 40000);
    clv_error error = {0};
    assert_ok(clv__vnpu_space_allocate(space, sizes[i], &addresses[i], &error), error);
    assert_int_equal(addresses[i] % 64, 0);
    uint8_t *data = clv__vnpu_space_translate(space, addresses[i], sizes[i]);
    assert_non_null(data);
    for (uint64_t k = 0; k < sizes[i]; ++k) assert_int_equal(data[k], CLV__VNPU_POISON);
    memset(data, i, sizes[i]);
    assert_null(clv__vnpu_space_translate(space, addresses[i], clv__vnpu_space_round(space, sizes[i]) + 1));
    assert_null(clv__vnpu_space_translate(space, addresses[i], UINT64_MAX));
  }
  assert_null(clv__vnpu_space_translate(space, 0, 1));
  assert_null(clv__vnpu_space_translate(space, UINT64_MAX, 1));
  for (int i = 0; i < BLOCKS; ++i) clv__vnpu_space_free(space, addresses[i], sizes[i]);
  assert_int_equal(clv__vnpu_space_used(space), 0);
  clv__vnpu_space_close(space);
}

/* Returns whether reading the byte at `at` is a fault, tried in a process of its own. */
static bool faults(const volatile uint8_t *at) {
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL); /* prevents a report of a sanitizer */
    signal(SIGBUS, SIG_DFL);
    _exit(*at == 0 ? 0 : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status);
}

/* Device addresses cannot be used as host addresses. The memory behind them lies between guard pages. In a guarded space, it
 * can be accessed only between clv__vnpu_space_enter() and clv__vnpu_space_leave(). */
static void memory_is_out_of_reach(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, clv__allocator_default());
  clv__vnpu_space *space = open_space(&fake, "a", 0);
  clv_error error = {0};
  enum { BYTES = 8 << 20 }; /* so large that the block gets a separate bank */
  uint64_t address, other;
  assert_ok(clv__vnpu_space_allocate(space, BYTES, &address, &error), error);
  uint8_t *memory = clv__vnpu_space_translate(space, address, BYTES);
  assert_true(faults((const uint8_t *)(uintptr_t)address));
  assert_true(faults(memory - 1));
  assert_true(faults(memory + BYTES));
  assert_false(faults(memory));
  clv__vnpu_space_guard(space);
  assert_true(faults(memory) && faults(memory + BYTES - 1));
  assert_ok(clv__vnpu_space_allocate(space, 100, &other, &error), error); /* in another bank, which must be inaccessible, too */
  assert_true(faults(clv__vnpu_space_translate(space, other, 100)));
  clv__vnpu_space_enter(space);
  clv__vnpu_space_enter(space);
  clv__vnpu_space_leave(space);
  assert_false(faults(memory));
  memory[0] = 7;
  clv__vnpu_space_leave(space);
  assert_true(faults(memory));
  clv__vnpu_space_enter(space);
  assert_int_equal(memory[0], 7);
  assert_int_equal(*(uint8_t *)clv__vnpu_space_translate(space, other, 100), CLV__VNPU_POISON);
  clv__vnpu_space_leave(space);
  clv__vnpu_space_free(space, other, 100);
  clv__vnpu_space_free(space, address, BYTES);
  clv__vnpu_space_close(space);
}

/* Freed memory is poisoned immediately, even if other blocks of its bank are in use, so that a stale address does not show old
 * data. */
static void freed_blocks_are_poisoned(void **state) {
  (void)state;
  enum { SIZE = 4096 };
  fake_host fake;
  fake_host_init(&fake, clv__allocator_default());
  clv__vnpu_space *space = open_space(&fake, "a", 0);
  clv_error error = {0};
  uint64_t freed, kept;
  assert_ok(clv__vnpu_space_allocate(space, SIZE, &freed, &error), error);
  assert_ok(clv__vnpu_space_allocate(space, SIZE, &kept, &error), error);
  uint8_t *data = clv__vnpu_space_translate(space, freed, SIZE), *beside = clv__vnpu_space_translate(space, kept, SIZE);
  assert_ptr_equal(data + SIZE, beside); /* adjacent blocks of one bank; the bank exists as long as `kept` is allocated */
  memset(data, 5, SIZE);
  memset(beside, 6, SIZE);
  clv__vnpu_space_free(space, freed, SIZE);
  for (int i = 0; i < SIZE; ++i) assert_int_equal(data[i], CLV__VNPU_POISON);
  for (int i = 0; i < SIZE; ++i) assert_int_equal(beside[i], 6);
  clv__vnpu_space_free(space, kept, SIZE);
  clv__vnpu_space_close(space);
}

static void limits_and_sharing(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, clv__allocator_default());
  clv__vnpu_space *space = open_space(&fake, "a", 1 << 20), *same = open_space(&fake, "a", 1 << 20), *other = NULL;
  assert_ptr_equal(space, same);
  clv_error error = {0};
  assert_int_equal(clv__vnpu_space_open(&fake.host, "a", true, 2 << 20, 64, &other, &error), CLV_INVALID_ARGUMENT);
  assert_non_null(strstr(error.message, "1 MiB"));
  fake_host second;
  fake_host_init(&second, clv__allocator_default());
  other = open_space(&second, "a", 2 << 20); /* hosts do not share spaces */
  assert_ptr_not_equal(other, space);
  clv__vnpu_space *own = NULL, *another = NULL;
  assert_int_equal(clv__vnpu_space_open(&fake.host, "a", false, 1 << 20, 64, &own, &error), CLV_INVALID_ARGUMENT);
  assert_ok(clv__vnpu_space_open(&fake.host, "b", false, 1 << 20, 64, &own, &error), error);
  assert_ok(clv__vnpu_space_open(&fake.host, "b", false, 2 << 20, 64, &another, &error), error);
  assert_ptr_not_equal(own, another);
  clv__vnpu_space_close(own);
  clv__vnpu_space_close(another);
  uint64_t first, next;
  assert_ok(clv__vnpu_space_allocate(space, 900000, &first, &error), error);
  assert_int_equal(clv__vnpu_space_allocate(same, 200000, &next, &error), CLV_OUT_OF_MEMORY);
  assert_non_null(strstr(error.message, "of 1 MiB are in use"));
  clv__vnpu_space_free(same, first, 900000);
  assert_ok(clv__vnpu_space_allocate(space, 1 << 20, &next, &error), error);
  clv__vnpu_space_close(same);
  assert_non_null(clv__vnpu_space_translate(space, next, 1 << 20));
  clv__vnpu_space_close(space);
  clv__vnpu_space_close(other);
  clv__vnpu_space_close(NULL);
}

static void host_space_is_host_memory(void **state) {
  (void)state;
  fake_host fake;
  fake_host_init(&fake, clv__allocator_default());
  static const char spec[] = "{\"memory_space\": \"host\", \"operators\": \"all\"}";
  clv_device *device = fake_device(&fake, spec), *apart = NULL;
  const clv_backend *b = fake_backend(&fake);
  clv_error error = {0};
  clv_buffer *buffer = NULL;
  assert_ok(b->buffer_alloc(device, 100, &buffer, &error), error);
  uint8_t *data = b->buffer_host_pointer(device, buffer);
  assert_non_null(data);
  assert_int_equal(data[99], CLV__VNPU_POISON);
  b->buffer_free(device, buffer);
  assert_ok(fake_device_open(&fake, "npu1", "default", &apart, &error), error);
  assert_ok(b->buffer_alloc(apart, 100, &buffer, &error), error);
  assert_null(b->buffer_host_pointer(apart, buffer));
  b->buffer_free(apart, buffer);
  clv_device_info info = {.struct_size = sizeof info};
  b->info(apart, &info);
  assert_string_equal(info.memory_space, "npu1");
  assert_string_equal(info.kind, "npu");
  assert_true(info.static_shapes_only);
  assert_int_equal(info.memory_limit_bytes, 1 << 30);
  b->close(apart);
  b->close(device);
  b->close(NULL);
}

/* ---- Queues ---- */

typedef struct step {
  clv__vnpu_launch launch;
  int *order;
  int *count;
  int id;
  bool fails;
  int sleep_ms;
  int done;
} step;

static clv_status run_step(clv__vnpu_launch *launch, double *seconds, clv_error *error) {
  step *s = (step *)launch;
  *seconds = 0;
  if (s->sleep_ms > 0) nanosleep(&(struct timespec){.tv_nsec = s->sleep_ms * 1000000L}, NULL);
  if (s->fails) return clv__error_set(error, CLV_DEVICE_ERROR, "step %d failed", s->id);
  s->order[(*s->count)++] = s->id;
  return CLV_OK;
}

static void step_done(clv__vnpu_launch *launch) {
  ++((step *)launch)->done;
}

typedef struct bench {
  fake_host fake;
  clv__vnpu_space *space;
  clv__vnpu_speed speed;
  clv__vnpu_queue queue;
  int order[4096], count;
} bench;

static void bench_open(bench *t) {
  memset(t, 0, sizeof *t);
  fake_host_init(&t->fake, clv__allocator_default());
  t->space = open_space(&t->fake, "q", 0);
  clv__vnpu_queue_init(&t->queue, clv__allocator_default(), t->space, &t->speed, 1);
}

static void bench_close(bench *t) {
  clv__vnpu_queue_stop(&t->queue);
  clv__vnpu_queue_finish(&t->queue);
  clv__vnpu_space_close(t->space);
}

static step make_step(bench *t, int id) {
  return (step){.launch = {.run = run_step, .done = step_done}, .order = t->order, .count = &t->count, .id = id};
}

static clv_stream *open_stream(bench *t) {
  clv_stream *stream = NULL;
  clv_error error = {0};
  assert_ok(clv__vnpu_stream_create(&t->queue, &stream, &error), error);
  return stream;
}

static clv_event *open_event(bench *t) {
  clv_event *event = NULL;
  clv_error error = {0};
  assert_ok(clv__vnpu_event_create(&t->queue, &event, &error), error);
  return event;
}

enum { STEPS = CLV__VNPU_RING + 300 };

/* The first of many launches waits for a gate, while a thread enqueues the others. */
typedef struct flood {
  bench t;
  clv_stream *stream;
  step steps[STEPS];
  atomic_int enqueued;
  atomic_bool is_open;
} flood;

static clv_status run_gate(clv__vnpu_launch *launch, double *seconds, clv_error *error) {
  step *s = (step *)launch;
  flood *f = (flood *)((char *)s - offsetof(flood, steps));
  while (!f->is_open) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
  return run_step(launch, seconds, error);
}

static void *enqueue_flood(void *argument) {
  flood *f = argument;
  for (int i = 0; i < STEPS; ++i) {
    clv_error error = {0};
    if (clv__vnpu_stream_launch(&f->t.queue, f->stream, &f->steps[i].launch, &error) != CLV_OK) break;
    f->enqueued = i + 1;
  }
  return NULL;
}

/* A stream takes as many commands as its ring holds. The caller of the next one waits until one has finished. */
static void streams_keep_order_and_wait(void **state) {
  (void)state;
  static flood f;
  bench_open(&f.t);
  clv_error error = {0};
  pthread_t thread;
  f.stream = open_stream(&f.t);
  for (int i = 0; i < STEPS; ++i) f.steps[i] = make_step(&f.t, i);
  f.steps[0].launch.run = run_gate;
  assert_int_equal(pthread_create(&thread, NULL, enqueue_flood, &f), 0);
  while (f.enqueued < CLV__VNPU_RING) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
  nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL); /* time in which a caller that does not wait enqueues more */
  assert_int_equal(f.enqueued, CLV__VNPU_RING);
  assert_int_equal(f.t.count, 0);
  f.is_open = true;
  pthread_join(thread, NULL);
  assert_int_equal(f.enqueued, STEPS);
  assert_ok(clv__vnpu_stream_synchronize(&f.t.queue, f.stream, &error), error);
  assert_int_equal(f.t.count, STEPS);
  for (int i = 0; i < STEPS; ++i) assert_int_equal(f.t.order[i], i);
  clv__vnpu_stream_destroy(&f.t.queue, f.stream);
  bench_close(&f.t);
}

static void events_order_streams(void **state) {
  (void)state;
  static bench t;
  bench_open(&t);
  clv_error error = {0};
  clv_stream *a = open_stream(&t), *b = open_stream(&t);
  clv_event *event = open_event(&t);
  for (int round = 0; round < 20; ++round) {
    t.count = 0;
    step slow = make_step(&t, 1), after = make_step(&t, 2), free_running = make_step(&t, 3);
    slow.sleep_ms = 2;
    assert_ok(clv__vnpu_stream_launch(&t.queue, a, &slow.launch, &error), error);
    assert_ok(clv__vnpu_event_record(&t.queue, event, a, &error), error);
    assert_ok(clv__vnpu_event_wait(&t.queue, b, event, &error), error);
    assert_ok(clv__vnpu_stream_launch(&t.queue, b, &after.launch, &error), error);
    assert_ok(clv__vnpu_event_synchronize(&t.queue, event, &error), error);
    assert_ok(clv__vnpu_stream_launch(&t.queue, a, &free_running.launch, &error), error);
    assert_ok(clv__vnpu_stream_synchronize(&t.queue, b, &error), error);
    assert_ok(clv__vnpu_stream_synchronize(&t.queue, a, &error), error);
    assert_int_equal(t.count, 3);
    assert_int_equal(t.order[0], 1);
  }
  clv_event *never = open_event(&t); /* a wait for an event that was never recorded returns immediately */
  assert_ok(clv__vnpu_event_wait(&t.queue, b, never, &error), error);
  assert_ok(clv__vnpu_event_synchronize(&t.queue, never, &error), error);
  clv__vnpu_event_destroy(&t.queue, never);
  clv__vnpu_event_destroy(&t.queue, event);
  clv__vnpu_stream_destroy(&t.queue, a);
  clv__vnpu_stream_destroy(&t.queue, b);
  bench_close(&t);
}

static void failures_surface_at_synchronize(void **state) {
  (void)state;
  static bench t;
  bench_open(&t);
  clv_error error = {0};
  clv_stream *a = open_stream(&t), *b = open_stream(&t);
  clv_event *event = open_event(&t);
  step bad = make_step(&t, 1), skipped = make_step(&t, 2), downstream = make_step(&t, 3), fresh = make_step(&t, 4);
  bad.fails = true;
  assert_ok(clv__vnpu_stream_launch(&t.queue, a, &bad.launch, &error), error);
  assert_ok(clv__vnpu_stream_launch(&t.queue, a, &skipped.launch, &error), error);
  assert_ok(clv__vnpu_event_record(&t.queue, event, a, &error), error);
  assert_ok(clv__vnpu_event_wait(&t.queue, b, event, &error), error);
  assert_ok(clv__vnpu_stream_launch(&t.queue, b, &downstream.launch, &error), error);
  assert_int_equal(clv__vnpu_event_synchronize(&t.queue, event, &error), CLV_DEVICE_ERROR);
  assert_string_equal(error.message, "step 1 failed");
  assert_int_equal(clv__vnpu_stream_synchronize(&t.queue, b, &error), CLV_DEVICE_ERROR);
  assert_string_equal(error.message, "step 1 failed");
  assert_int_equal(clv__vnpu_stream_synchronize(&t.queue, a, NULL), CLV_DEVICE_ERROR);
  assert_int_equal(t.count, 0);
  assert_true(bad.done == 1 && skipped.done == 1 && downstream.done == 1);
  /* The failure was reported, so the stream runs later launches again. */
  assert_ok(clv__vnpu_stream_launch(&t.queue, a, &fresh.launch, &error), error);
  assert_ok(clv__vnpu_stream_synchronize(&t.queue, a, &error), error);
  assert_int_equal(t.count, 1);
  assert_ok(clv__vnpu_stream_copy_in(&t.queue, a, 12345, "x", 1, &error), error);
  assert_int_equal(clv__vnpu_stream_synchronize(&t.queue, a, &error), CLV_DEVICE_ERROR);
  assert_non_null(strstr(error.message, "0x3039"));
  clv__vnpu_event_destroy(&t.queue, event);
  bench_close(&t); /* also frees the streams */
}

static void destroy_and_stop_drain(void **state) {
  (void)state;
  static bench t;
  bench_open(&t);
  clv_error error = {0};
  clv_stream *a = open_stream(&t), *b = open_stream(&t);
  step first = make_step(&t, 1), second = make_step(&t, 2);
  first.sleep_ms = second.sleep_ms = 3;
  assert_ok(clv__vnpu_stream_launch(&t.queue, a, &first.launch, &error), error);
  assert_ok(clv__vnpu_stream_launch(&t.queue, b, &second.launch, &error), error);
  clv__vnpu_stream_destroy(&t.queue, a);
  assert_int_equal(first.done, 1);
  bench_close(&t);
  assert_int_equal(second.done, 1);
}

typedef struct caller {
  bench *t;
  clv_stream *stream;
  step steps[300];
} caller;

static void *call(void *argument) {
  caller *c = argument;
  clv_error error = {0};
  for (int i = 0; i < 300; ++i) {
    if (clv__vnpu_stream_launch(&c->t->queue, c->stream, &c->steps[i].launch, &error) != CLV_OK) return "launch";
  }
  return clv__vnpu_stream_synchronize(&c->t->queue, c->stream, &error) == CLV_OK ? NULL : "synchronize";
}

static void threads_share_a_device(void **state) {
  (void)state;
  static bench t;
  static caller callers[3];
  bench_open(&t);
  pthread_t threads[3];
  for (int k = 0; k < 3; ++k) {
    callers[k].t = &t;
    callers[k].stream = open_stream(&t);
    for (int i = 0; i < 300; ++i) callers[k].steps[i] = make_step(&t, k * 1000 + i);
    assert_int_equal(pthread_create(&threads[k], NULL, call, &callers[k]), 0);
  }
  for (int k = 0; k < 3; ++k) {
    void *failed;
    pthread_join(threads[k], &failed);
    assert_null(failed);
  }
  assert_int_equal(t.count, 900);
  int next[3] = {0};
  for (int i = 0; i < 900; ++i) assert_int_equal(t.order[i] % 1000, next[t.order[i] / 1000]++);
  bench_close(&t);
}

static void the_model_takes_its_time(void **state) {
  (void)state;
  clv__vnpu_speed speed = {.given = true,
                           .copy_latency_us = 1000,
                           .copy_bytes_per_second = 1e9,
                           .time_scale = 2,
                           .frequency = 4,
                           .flops_per_second = 1e9,
                           .bytes_per_second = 1e12};
  assert_true(clv__vnpu_copy_seconds(&speed, 1000000) > 0.00399 && clv__vnpu_copy_seconds(&speed, 1000000) < 0.00401);
  int64_t a[] = {10, 20}, b[] = {20, 30}, c[] = {10, 30};
  clv_tensor in[] = {clv__tensor_make(CLV_F32, 2, a, NULL), clv__tensor_make(CLV_F32, 2, b, NULL)};
  clv_tensor out = clv__tensor_make(CLV_F32, 2, c, NULL);
  clv_node_info node = {.op = "MatMul", .domain = "", .input_count = 2, .output_count = 1};
  double expected = 2.0 * 10 * 20 * 30 / 1e9 / 4 * 2;
  double got = clv__vnpu_node_seconds(&speed, &node, in, &out);
  assert_true(got > expected * 0.999 && got < expected * 1.001);
  uint64_t start = clv__clock_ns();
  clv__vnpu_wait_until(start, 0.003, NULL);
  assert_true(clv__clock_ns() - start >= 3000000);
}

/* Operators with their own parameters in the speed model: their times depend on the rows of the first input and on the number of
 * edges, instead of on arithmetic and memory traffic. */
static void operators_have_figures(void **state) {
  (void)state;
  static const clv__vnpu_operator_speed figures[] = {
      {"ai.cleave:SparseAggregate", 5, 10, 3}, {"Gather", 1, 0, 2}, {"Relu", 0, 7, 9}};
  clv__vnpu_speed speed = {.given = true, .time_scale = 3, .frequency = 2, .flops_per_second = 1, .operators = figures};
  speed.operator_count = 3;
  int64_t rows[] = {1000, 8}, offsets[] = {501}, sources[] = {4000}, scalar[] = {1};
  const clv_tensor in[] = {clv__tensor_make(CLV_F32, 2, rows, NULL), clv__tensor_make(CLV_I64, 1, offsets, NULL),
                           clv__tensor_make(CLV_I32, 1, sources, NULL)};
  const clv_tensor two[] = {in[0], in[2]}, none = clv__tensor_make(CLV_F32, 0, scalar, NULL);
  const struct {
    const char *domain, *op;
    const clv_tensor *inputs;
    uint32_t count;
    double expected_us;
  } cases[] = {{"ai.cleave", "SparseAggregate", in, 3, 5 + 10 + 12},
               {"", "Gather", two, 2, 1 + 8},
               {"", "Relu", in, 1, 7},
               {"", "Relu", &none, 1, 0.007},
               {"", "Neg", in, 1, 8000e6},       /* the speed model has no parameters for Neg */
               {"other", "Relu", in, 1, 8000e6}, /* the parameters for Relu are for another domain */
               {"", "SparseAggregate", in, 3, 8000e6}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    clv_node_info node = {.op = cases[i].op, .domain = cases[i].domain, .input_count = cases[i].count, .output_count = 1};
    double got = clv__vnpu_node_seconds(&speed, &node, cases[i].inputs, &in[0]), expected = cases[i].expected_us * 1e-6 * 3 / 2;
    if (!(got > expected * 0.999 && got < expected * 1.001))
      fail_msg("case %zu: the stated time is %g s, expected %g s", i, got, expected);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_are_apart_poisoned_and_checked),
      cmocka_unit_test(memory_is_out_of_reach),
      cmocka_unit_test(freed_blocks_are_poisoned),
      cmocka_unit_test(limits_and_sharing),
      cmocka_unit_test(host_space_is_host_memory),
      cmocka_unit_test(streams_keep_order_and_wait),
      cmocka_unit_test(events_order_streams),
      cmocka_unit_test(failures_surface_at_synchronize),
      cmocka_unit_test(destroy_and_stop_drain),
      cmocka_unit_test(threads_share_a_device),
      cmocka_unit_test(the_model_takes_its_time),
      cmocka_unit_test(operators_have_figures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
