/* The virtual NPU's two engines: random commands on several streams, ordered by events, have the same results as if they ran
 * one after another. A failure reaches exactly the commands that wait for the failed one. Copies overlap with launches. Small
 * copies wake no thread, and the compute engine can run them. Notifications arrive once, and are sent without a lock. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "backends/vnpu/queue_own.h"
#include "backends/vnpu/spec/speed.h"
#include "base/clock.h"
#include "fake_host.h"

typedef struct rig {
  fake_host fake;
  clv__vnpu_space *space;
  clv__vnpu_speed speed;
  clv__vnpu_queue queue;
} rig;

static void rig_open(rig *r, const clv__vnpu_speed *speed) {
  memset(r, 0, sizeof *r);
  clv_error error = {0};
  fake_host_init(&r->fake, clv__allocator_default());
  if (speed != NULL) r->speed = *speed;
  assert_ok(clv__vnpu_space_open(&r->fake.host, "rig", true, 0, 64, &r->space, &error), error);
  clv__vnpu_queue_init(&r->queue, clv__allocator_default(), r->space, &r->speed, 1);
}

static void rig_close(rig *r) {
  clv__vnpu_queue_stop(&r->queue);
  clv__vnpu_queue_finish(&r->queue);
  clv__vnpu_space_close(r->space);
}

static clv_stream *stream_of(rig *r) {
  clv_stream *stream = NULL;
  clv_error error = {0};
  assert_ok(clv__vnpu_stream_create(&r->queue, &stream, &error), error);
  return stream;
}

static clv_event *event_of(rig *r) {
  clv_event *event = NULL;
  clv_error error = {0};
  assert_ok(clv__vnpu_event_create(&r->queue, &event, &error), error);
  return event;
}

static void sleep_ms(long ms) {
  nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* ---- Random commands ----
 *
 * Each launch and copy writes its own cell in the device's memory. It reads cells that were written before it, according to
 * streams and events. Unwritten cells are poison, so a command that runs too early writes a wrong value. */

enum { STREAMS = 4, EVENTS = 5, COMMANDS = 1500, NOTICES = 200 };

typedef struct world world;

typedef struct work {
  clv__vnpu_launch launch;
  world *world;
  uint32_t cell, from[2]; /* indices of the cells that it writes and reads; from[i] == COMMANDS: it uses a constant instead */
  bool fails;
} work;

typedef struct notice {
  world *world;
  uint32_t cell; /* a cell that must be written before the notification; COMMANDS: none */
  atomic_int calls;
  atomic_bool wrong;
} notice;

/* What must have happened before the next command of a stream, or before an event is complete, determined by executing all
 * commands in sequence. */
typedef struct order {
  uint32_t seen[STREAMS]; /* per stream, the last cell that is already written; COMMANDS: none */
  int failure;            /* number of the work that failed, from 1; 0: none */
} order;

struct world {
  rig rig;
  uint64_t cells;
  clv_stream *streams[STREAMS];
  clv_event *events[EVENTS];
  order at_stream[STREAMS], at_event[EVENTS];
  work works[COMMANDS];
  uint64_t in[COMMANDS], out[COMMANDS], expected[COMMANDS], expected_out[COMMANDS];
  uint32_t out_count;
  notice notices[NOTICES];
  uint32_t notice_count;
  atomic_int jitter;
};

static uint64_t mix(uint64_t a, uint64_t b, uint64_t k) {
  uint64_t state = a * 31 + b * 17 + k;
  return test_random(&state);
}

static uint64_t *cell(world *w, uint32_t index) {
  return clv__vnpu_space_translate(w->rig.space, w->cells + index * 8u, 8);
}

static clv_status do_work(clv__vnpu_launch *launch, double *seconds, clv_error *error) {
  work *k = (work *)launch;
  world *w = k->world;
  uint64_t in[2];
  *seconds = 0;
  if (atomic_fetch_add(&w->jitter, 1) % 16 == 0) nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
  if (k->fails) return clv__error_set(error, CLV_DEVICE_ERROR, "work %u", k->cell + 1);
  for (int i = 0; i < 2; ++i) in[i] = k->from[i] == COMMANDS ? 7 : *cell(w, k->from[i]);
  *cell(w, k->cell) = mix(in[0], in[1], k->cell);
  return CLV_OK;
}

static void be_noticed(void *cookie) {
  notice *n = cookie;
  if (n->cell != COMMANDS && *cell(n->world, n->cell) != n->world->expected[n->cell]) atomic_store(&n->wrong, true);
  atomic_fetch_add(&n->calls, 1);
}

static uint32_t a_cell_before(world *w, int s, uint64_t *seed) {
  return w->at_stream[s].seen[test_random(seed) % STREAMS];
}

static void enqueue_launch(world *w, int s, uint32_t k, bool may_fail, uint64_t *seed) {
  clv_error error = {0};
  work *made = &w->works[k];
  *made = (work){.launch = {.run = do_work},
                 .world = w,
                 .cell = k,
                 .from = {a_cell_before(w, s, seed), a_cell_before(w, s, seed)},
                 .fails = may_fail && test_random(seed) % 60 == 0};
  order *o = &w->at_stream[s];
  if (o->failure == 0 && made->fails) o->failure = (int)k + 1;
  if (o->failure == 0) {
    uint64_t in[2];
    for (int i = 0; i < 2; ++i) in[i] = made->from[i] == COMMANDS ? 7 : w->expected[made->from[i]];
    w->expected[k] = mix(in[0], in[1], k);
    o->seen[s] = k;
  }
  assert_ok(clv__vnpu_stream_launch(&w->rig.queue, w->streams[s], &made->launch, &error), error);
}

static void enqueue_copy(world *w, int s, uint32_t k, uint64_t *seed) {
  clv_error error = {0};
  order *o = &w->at_stream[s];
  uint32_t from = a_cell_before(w, s, seed);
  if (test_random(seed) % 2 == 0) {
    w->in[k] = test_random(seed);
    if (o->failure == 0) {
      w->expected[k] = w->in[k];
      o->seen[s] = k;
    }
    assert_ok(clv__vnpu_stream_copy_in(&w->rig.queue, w->streams[s], w->cells + k * 8u, &w->in[k], 8, &error), error);
  } else if (from != COMMANDS) {
    uint32_t at = w->out_count++;
    w->out[at] = 1;
    w->expected_out[at] = o->failure == 0 ? w->expected[from] : 1;
    assert_ok(clv__vnpu_stream_copy_out(&w->rig.queue, w->streams[s], &w->out[at], w->cells + from * 8u, 8, &error), error);
  }
}

static void enqueue_event(world *w, int s, uint64_t *seed) {
  clv_error error = {0};
  int e = (int)(test_random(seed) % EVENTS);
  order *o = &w->at_stream[s], *at = &w->at_event[e];
  if (test_random(seed) % 2 == 0) {
    assert_ok(clv__vnpu_event_record(&w->rig.queue, w->events[e], w->streams[s], &error), error);
    *at = *o;
    if (test_random(seed) % 2 == 0 && w->notice_count < NOTICES) {
      notice *n = &w->notices[w->notice_count++];
      n->world = w;
      n->cell = at->seen[s];
      assert_ok(clv__vnpu_event_notify(&w->rig.queue, w->events[e], be_noticed, n, &error), error);
    }
    return;
  }
  assert_ok(clv__vnpu_event_wait(&w->rig.queue, w->streams[s], w->events[e], &error), error);
  if (o->failure == 0) o->failure = at->failure;
  for (int t = 0; t < STREAMS; ++t) {
    uint32_t theirs = at->seen[t];
    if (theirs != COMMANDS && (o->seen[t] == COMMANDS || theirs > o->seen[t])) o->seen[t] = theirs;
  }
}

static void synchronize(world *w, int s) {
  clv_error error = {0};
  char expected[40];
  order *o = &w->at_stream[s];
  clv_status status = clv__vnpu_stream_synchronize(&w->rig.queue, w->streams[s], &error);
  assert_int_equal(status, o->failure == 0 ? CLV_OK : CLV_DEVICE_ERROR);
  snprintf(expected, sizeof expected, "work %d", o->failure);
  if (o->failure != 0) assert_string_equal(error.message, expected);
  o->failure = 0;
}

static void run_world(world *w, bool may_fail, uint64_t seed) {
  clv_error error = {0};
  memset(w, 0, sizeof *w);
  rig_open(&w->rig, NULL);
  if (seed % 2 == 0) w->rig.queue.small_copy_bytes = 0;
  assert_ok(clv__vnpu_space_allocate(w->rig.space, COMMANDS * 8, &w->cells, &error), error);
  for (int s = 0; s < STREAMS; ++s) w->streams[s] = stream_of(&w->rig);
  for (int e = 0; e < EVENTS; ++e) w->events[e] = event_of(&w->rig);
  for (int i = 0; i < STREAMS * STREAMS; ++i) w->at_stream[i / STREAMS].seen[i % STREAMS] = COMMANDS;
  for (int i = 0; i < EVENTS * STREAMS; ++i) w->at_event[i / STREAMS].seen[i % STREAMS] = COMMANDS;
  for (uint32_t k = 0; k < COMMANDS; ++k) {
    int s = (int)(test_random(&seed) % STREAMS);
    uint64_t kind = test_random(&seed) % 100;
    if (kind < 35)
      enqueue_launch(w, s, k, may_fail, &seed);
    else if (kind < 65)
      enqueue_copy(w, s, k, &seed);
    else if (kind < 99)
      enqueue_event(w, s, &seed);
    else
      synchronize(w, s);
  }
  for (int s = 0; s < STREAMS; ++s) synchronize(w, s);
  for (uint32_t k = 0; k < COMMANDS; ++k) {
    if (w->expected[k] != 0 && *cell(w, k) != w->expected[k])
      fail_msg("the result of command %u is wrong: it ran too early or not at all", k);
  }
  for (uint32_t i = 0; i < w->out_count; ++i) assert_int_equal(w->out[i], w->expected_out[i]);
  for (int e = 0; e < EVENTS; ++e) clv__vnpu_event_destroy(&w->rig.queue, w->events[e]);
  rig_close(&w->rig);
  for (uint32_t i = 0; i < w->notice_count; ++i) {
    assert_int_equal(w->notices[i].calls, 1);
    if (!may_fail) assert_false(w->notices[i].wrong);
  }
}

static void random_commands_keep_their_order(void **state) {
  (void)state;
  static world w;
  for (uint64_t seed = 1; seed <= 25; ++seed) run_world(&w, false, seed);
}

static void failures_reach_what_comes_after_them(void **state) {
  (void)state;
  static world w;
  for (uint64_t seed = 101; seed <= 140; ++seed) run_world(&w, true, seed);
}

/* ---- Overlap ---- */

typedef struct meeting {
  clv__vnpu_launch launch;
  atomic_bool here, copied;
} meeting;

/* A launch that waits until a copy on another stream has finished. */
static clv_status wait_for_copy(clv__vnpu_launch *launch, double *seconds, clv_error *error) {
  meeting *m = (meeting *)launch;
  *seconds = 0;
  atomic_store(&m->here, true);
  for (int i = 0; i < 10000 && !atomic_load(&m->copied); ++i) sleep_ms(1);
  return atomic_load(&m->copied) ? CLV_OK : clv__error_set(error, CLV_DEVICE_ERROR, "the copy did not finish during the launch");
}

static void say_copied(void *cookie) {
  atomic_store(&((meeting *)cookie)->copied, true);
}

static void a_copy_ends_while_a_launch_runs(void **state) {
  (void)state;
  static rig r;
  clv_error error = {0};
  rig_open(&r, NULL);
  clv_stream *computes = stream_of(&r), *copies = stream_of(&r);
  clv_event *event = event_of(&r);
  uint64_t memory;
  int number = 5, back = 0;
  meeting m = {.launch = {.run = wait_for_copy}};
  assert_ok(clv__vnpu_space_allocate(r.space, sizeof number, &memory, &error), error);
  assert_ok(clv__vnpu_stream_launch(&r.queue, computes, &m.launch, &error), error);
  while (!atomic_load(&m.here)) sleep_ms(1);
  assert_ok(clv__vnpu_stream_copy_in(&r.queue, copies, memory, &number, sizeof number, &error), error);
  assert_ok(clv__vnpu_stream_copy_out(&r.queue, copies, &back, memory, sizeof number, &error), error);
  assert_ok(clv__vnpu_event_record(&r.queue, event, copies, &error), error);
  assert_ok(clv__vnpu_event_notify(&r.queue, event, say_copied, &m, &error), error);
  assert_ok(clv__vnpu_stream_synchronize(&r.queue, computes, &error), error);
  assert_int_equal(back, 5);
  rig_close(&r);
}

static clv_status take_10_ms(clv__vnpu_launch *launch, double *seconds, clv_error *error) {
  (void)launch;
  (void)error;
  *seconds = 0.01;
  return CLV_OK;
}

/* With a speed model, work on two streams takes as long as the work of the busier engine. Work on one stream takes as long as the
 * work of both engines together. */
static void engines_take_their_time_together(void **state) {
  (void)state;
  static rig r;
  clv_error error = {0};
  clv__vnpu_speed speed = {.given = true, .copy_latency_us = 10000, .time_scale = 1, .frequency = 1};
  for (int together = 0; together < 2; ++together) {
    rig_open(&r, &speed);
    clv_stream *computes = stream_of(&r), *copies = together ? stream_of(&r) : computes;
    clv__vnpu_launch launch = {.run = take_10_ms};
    uint64_t start = clv__clock_ns();
    for (int i = 0; i < 10; ++i) {
      assert_ok(clv__vnpu_stream_launch(&r.queue, computes, &launch, &error), error);
      assert_ok(clv__vnpu_stream_copy_in(&r.queue, copies, 0, NULL, 0, &error), error);
    }
    assert_ok(clv__vnpu_stream_synchronize(&r.queue, computes, &error), error);
    assert_ok(clv__vnpu_stream_synchronize(&r.queue, copies, &error), error);
    uint64_t end = computes->ready_ns > copies->ready_ns ? computes->ready_ns : copies->ready_ns;
    double ms = (double)(end - start) * 1e-6;
    if (together)
      assert_true(ms >= 100 && ms < 170);
    else
      assert_true(ms >= 200);
    rig_close(&r);
  }
}

/* ---- Small copies ---- */

static bool is_asleep(rig *r, int engine) {
  pthread_mutex_lock(&r->queue.lock);
  bool asleep = !r->queue.engines[engine].started || r->queue.engines[engine].asleep;
  pthread_mutex_unlock(&r->queue.lock);
  return asleep;
}

static void let_all_sleep(rig *r) {
  for (int e = 0; e < CLV__VNPU_ENGINES; ++e) {
    while (!is_asleep(r, e)) sleep_ms(1);
  }
}

static void be_told(void *cookie) {
  atomic_store((atomic_bool *)cookie, true);
}

static clv_status do_nothing(clv__vnpu_launch *launch, double *seconds, clv_error *error) {
  (void)launch;
  (void)error;
  *seconds = 0;
  return CLV_OK;
}

/* The kinds of the next call after a small copy was enqueued. A call of each kind must make the copy start. */
typedef enum way { STREAM, EVENT, NOTICE, LAUNCH, LARGE, DESTROY, FULL, WAYS } way;

static void go_on(rig *r, way how, clv_stream *stream, clv_stream *other, clv_event *event, uint64_t memory) {
  static char large[1 << 17];
  static clv__vnpu_launch launch;
  static atomic_bool told;
  clv_error error = {0};
  launch.run = do_nothing;
  atomic_store(&told, false);
  if (how == STREAM) assert_ok(clv__vnpu_stream_synchronize(&r->queue, stream, &error), error);
  if (how == EVENT) assert_ok(clv__vnpu_event_synchronize(&r->queue, event, &error), error);
  if (how == NOTICE) {
    assert_ok(clv__vnpu_event_notify(&r->queue, event, be_told, &told, &error), error);
    while (!atomic_load(&told)) sleep_ms(1); /* endless if no thread was woken: the test's time limit then ends it */
  }
  if (how == LAUNCH) { /* a launch on a stream that waits for the copy */
    assert_ok(clv__vnpu_event_wait(&r->queue, other, event, &error), error);
    assert_ok(clv__vnpu_stream_launch(&r->queue, other, &launch, &error), error);
    while (!is_asleep(r, CLV__VNPU_COMPUTE)) sleep_ms(1);
  }
  if (how == LARGE) {
    assert_ok(clv__vnpu_stream_copy_in(&r->queue, stream, memory, large, sizeof large, &error), error);
    while (!is_asleep(r, CLV__VNPU_DMA) || !is_asleep(r, CLV__VNPU_COMPUTE)) sleep_ms(1);
  }
  for (int i = 0; how == FULL && i < CLV__VNPU_RING; ++i)
    assert_ok(clv__vnpu_stream_copy_in(&r->queue, stream, memory, large, 8, &error), error);
  pthread_mutex_lock(&r->queue.lock);
  assert_true(stream->finished == stream->enqueued || how == DESTROY || how == FULL);
  pthread_mutex_unlock(&r->queue.lock);
  clv__vnpu_stream_destroy(&r->queue, stream);
}

/* Enqueueing a small copy wakes no thread, but each of the calls in `way` starts the copy. */
static void small_copies_wait_for_company(void **state) {
  (void)state;
  clv_error error = {0};
  for (way how = STREAM; how < WAYS; ++how) {
    static rig r;
    rig_open(&r, NULL);
    clv_stream *stream = stream_of(&r), *other = stream_of(&r);
    clv_event *event = event_of(&r);
    uint64_t memory, number = 40 + how, zero = 0;
    assert_ok(clv__vnpu_space_allocate(r.space, 1 << 17, &memory, &error), error);
    assert_ok(clv__vnpu_stream_copy_in(&r.queue, stream, memory, &zero, sizeof zero, &error), error);
    assert_ok(clv__vnpu_stream_synchronize(&r.queue, stream, &error), error);
    let_all_sleep(&r);
    uint64_t *there = clv__vnpu_space_translate(r.space, memory + 65536, sizeof number);
    assert_ok(clv__vnpu_stream_copy_in(&r.queue, stream, memory + 65536, &number, sizeof number, &error), error);
    assert_ok(clv__vnpu_event_record(&r.queue, event, stream, &error), error);
    assert_true(is_asleep(&r, CLV__VNPU_COMPUTE) && is_asleep(&r, CLV__VNPU_DMA));
    go_on(&r, how, stream, other, event, memory);
    if (how != LARGE) assert_int_equal(*there, 40 + how); /* the large copy overwrites the bytes of the small one */
    rig_close(&r);
  }
}

/* The compute engine alone runs a sequence of small copies, a launch and small copies. */
static void small_copies_are_done_by_who_computes(void **state) {
  (void)state;
  static rig r;
  clv_error error = {0};
  rig_open(&r, NULL);
  clv_stream *copies = stream_of(&r), *computes = stream_of(&r);
  clv_event *in = event_of(&r), *done = event_of(&r);
  clv__vnpu_launch launch = {.run = do_nothing};
  uint64_t memory;
  assert_ok(clv__vnpu_space_allocate(r.space, 8, &memory, &error), error);
  assert_ok(clv__vnpu_stream_copy_in(&r.queue, copies, memory, &memory, 8, &error), error);
  assert_ok(clv__vnpu_stream_synchronize(&r.queue, copies, &error), error);
  let_all_sleep(&r);
  pthread_mutex_lock(&r.queue.lock);
  r.queue.engines[CLV__VNPU_DMA].asleep = false; /* pretends that the engine is awake: it gets no signal, so it runs no copies */
  pthread_mutex_unlock(&r.queue.lock);
  for (uint64_t i = 0; i < 200; ++i) {
    uint64_t back = ~i;
    assert_ok(clv__vnpu_stream_copy_in(&r.queue, copies, memory, &i, 8, &error), error);
    assert_ok(clv__vnpu_event_record(&r.queue, in, copies, &error), error);
    assert_ok(clv__vnpu_event_wait(&r.queue, computes, in, &error), error);
    assert_ok(clv__vnpu_stream_launch(&r.queue, computes, &launch, &error), error);
    assert_ok(clv__vnpu_event_record(&r.queue, done, computes, &error), error);
    assert_ok(clv__vnpu_event_wait(&r.queue, copies, done, &error), error);
    assert_ok(clv__vnpu_stream_copy_out(&r.queue, copies, &back, memory, 8, &error), error);
    assert_ok(clv__vnpu_stream_synchronize(&r.queue, copies, &error), error);
    assert_int_equal(back, i);
  }
  pthread_mutex_lock(&r.queue.lock);
  r.queue.engines[CLV__VNPU_DMA].asleep = true;
  pthread_mutex_unlock(&r.queue.lock);
  rig_close(&r);
}

/* ---- Notices ---- */

typedef struct locked {
  pthread_mutex_t lock;
  int calls;
} locked;

static void call_locked(void *cookie) {
  locked *l = cookie;
  pthread_mutex_lock(&l->lock);
  ++l->calls;
  pthread_mutex_unlock(&l->lock);
}

static clv_status fail_late(clv__vnpu_launch *launch, double *seconds, clv_error *error) {
  (void)launch;
  *seconds = 0;
  sleep_ms(5);
  return clv__error_set(error, CLV_DEVICE_ERROR, "late");
}

static clv_status end_late(clv__vnpu_launch *launch, double *seconds, clv_error *error) {
  (void)launch;
  (void)error;
  *seconds = 0;
  sleep_ms(5);
  return CLV_OK;
}

static int calls_of(locked *l) {
  pthread_mutex_lock(&l->lock);
  int calls = l->calls;
  pthread_mutex_unlock(&l->lock);
  return calls;
}

/* The caller holds a lock during all its calls, and the notification function takes the same lock. A call that sent the
 * notification itself would therefore deadlock. */
static void notices_come_once(void **state) {
  (void)state;
  static rig r;
  clv_error error = {0};
  rig_open(&r, NULL);
  clv_stream *stream = stream_of(&r), *other = stream_of(&r);
  clv_stream *third = stream_of(&r);
  clv_event *event = event_of(&r), *follows = event_of(&r), *free_running = event_of(&r);
  locked l = {PTHREAD_MUTEX_INITIALIZER, 0};
  /* An event that was never recorded counts as complete: its notification is sent at once. */
  assert_ok(clv__vnpu_event_notify(&r.queue, event, call_locked, &l, &error), error);
  assert_int_equal(l.calls, 1);
  for (int fails = 0; fails < 2; ++fails) {
    clv__vnpu_launch late = {.run = fails ? fail_late : end_late}, skipped = {.run = end_late};
    pthread_mutex_lock(&l.lock);
    l.calls = 0;
    assert_ok(clv__vnpu_stream_launch(&r.queue, stream, &late, &error), error);
    assert_ok(clv__vnpu_stream_launch(&r.queue, stream, &skipped, &error), error);
    assert_ok(clv__vnpu_event_record(&r.queue, event, stream, &error), error);
    assert_ok(clv__vnpu_event_notify(&r.queue, event, call_locked, &l, &error), error);
    assert_ok(clv__vnpu_event_notify(&r.queue, event, call_locked, &l, &error), error);
    assert_ok(clv__vnpu_event_wait(&r.queue, other, event, &error), error);
    assert_ok(clv__vnpu_event_record(&r.queue, follows, other, &error), error);
    assert_ok(clv__vnpu_event_notify(&r.queue, follows, call_locked, &l, &error), error);
    sleep_ms(30); /* now a notification waits for the lock; other streams must still accept commands */
    assert_int_equal(l.calls, 0);
    assert_ok(clv__vnpu_event_record(&r.queue, free_running, third, &error), error);
    assert_ok(clv__vnpu_stream_copy_in(&r.queue, third, 0, NULL, 0, &error), error);
    pthread_mutex_unlock(&l.lock);
    for (int i = 0; i < 10000 && calls_of(&l) < 3; ++i) sleep_ms(1);
    assert_int_equal(calls_of(&l), 3);
    clv_status expected = fails ? CLV_DEVICE_ERROR : CLV_OK;
    assert_int_equal(clv__vnpu_event_synchronize(&r.queue, event, &error), expected);
    assert_int_equal(clv__vnpu_event_synchronize(&r.queue, follows, &error), expected);
    assert_int_equal(clv__vnpu_stream_synchronize(&r.queue, other, &error), expected);
    assert_int_equal(clv__vnpu_stream_synchronize(&r.queue, stream, &error), expected);
    l.calls = 0;
    assert_ok(clv__vnpu_event_notify(&r.queue, event, call_locked, &l, &error), error);
    assert_int_equal(l.calls, 1);
  }
  clv__vnpu_event_destroy(&r.queue, event);
  rig_close(&r);
  assert_int_equal(l.calls, 1);
}

/* ---- Threads ---- */

static void threads_start_when_needed(void **state) {
  (void)state;
  static rig r;
  clv_error error = {0};
  rig_open(&r, NULL);
  clv_stream *stream = stream_of(&r);
  clv_event *event = event_of(&r);
  clv__vnpu_launch launch = {.run = end_late};
  assert_ok(clv__vnpu_event_record(&r.queue, event, stream, &error), error);
  assert_ok(clv__vnpu_event_wait(&r.queue, stream, event, &error), error);
  assert_ok(clv__vnpu_stream_synchronize(&r.queue, stream, &error), error);
  assert_false(r.queue.engines[CLV__VNPU_COMPUTE].started || r.queue.engines[CLV__VNPU_DMA].started);
  assert_ok(clv__vnpu_stream_launch(&r.queue, stream, &launch, &error), error);
  assert_true(r.queue.engines[CLV__VNPU_COMPUTE].started && !r.queue.engines[CLV__VNPU_DMA].started);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_commands_keep_their_order),
      cmocka_unit_test(failures_reach_what_comes_after_them),
      cmocka_unit_test(a_copy_ends_while_a_launch_runs),
      cmocka_unit_test(engines_take_their_time_together),
      cmocka_unit_test(small_copies_wait_for_company),
      cmocka_unit_test(small_copies_are_done_by_who_computes),
      cmocka_unit_test(notices_come_once),
      cmocka_unit_test(threads_start_when_needed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
