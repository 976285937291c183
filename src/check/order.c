/* The section `order` of the conformance kit (check.h). Work enqueued on one stream runs in order. Another stream's results
 * are visible after waiting for an event. Notifications come exactly once and not too early. A failure is reported to every
 * waiter. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "check/scene.h"
#include "check/sections.h"

/* ---- Copies ---- */

enum { COPY_BYTES = 20000 };

static void fill(uint8_t *bytes, size_t count, uint64_t seed) {
  for (size_t i = 0; i < count; ++i) bytes[i] = (uint8_t)clv__check_random(&seed);
}

/* Checks copies of odd sizes and offsets into one buffer and back. The adjacent bytes must not change. */
static void check_copies(clv__check *check) {
  static const uint32_t sizes[] = {0, 1, 2, 3, 7, 16, 63, 64, 65, 127, 1000, 4095, 4096, 4097, 15000};
  static uint8_t image[COPY_BYTES], part[COPY_BYTES], back[COPY_BYTES];
  const clv_backend *b = check->backend;
  clv_error error = {0};
  clv_buffer *buffer = NULL;
  clv_stream *stream = NULL;
  uint64_t dice = check->seed + 77;
  fill(image, sizeof image, check->seed);
  clv_status status = b->stream_create(check->handle, &stream, &error);
  if (status == CLV_OK) status = b->buffer_alloc(check->handle, COPY_BYTES, &buffer, &error);
  if (status == CLV_OK) status = b->copy_in(check->handle, stream, buffer, 0, image, COPY_BYTES, &error);
  if (status == CLV_OK) status = b->stream_synchronize(check->handle, stream, &error);
  for (size_t i = 0; status == CLV_OK && i < 3 * sizeof sizes / sizeof *sizes; ++i) {
    char what[96];
    uint32_t size = sizes[i % (sizeof sizes / sizeof *sizes)], at = clv__check_below(&dice, COPY_BYTES - size);
    snprintf(what, sizeof what, "a copy of %u bytes to offset %u", size, at);
    clv__check_at(check, "%s", what);
    fill(part, size, check->seed + i);
    status = b->copy_in(check->handle, stream, buffer, at, part, size, &error);
    if (status == CLV_OK) memcpy(image + at, part, size);
    /* `part` is overwritten in the next round, so wait until it is copied. A copy of 0 bytes reads nothing. */
    if (status == CLV_OK && size > 0) status = b->stream_synchronize(check->handle, stream, &error);
    uint32_t from = clv__check_below(&dice, 64), count = COPY_BYTES - from - clv__check_below(&dice, 64);
    memset(back, 0x11, sizeof back);
    if (status == CLV_OK) status = b->copy_out(check->handle, stream, back, buffer, from, count, &error);
    if (status == CLV_OK) status = b->stream_synchronize(check->handle, stream, &error);
    if (status != CLV_OK) break;
    clv__check_that(check, memcmp(back, image + from, count) == 0, what, "the bytes read back differ from those written");
    clv__check_that(check, back[count] == 0x11, what, "copy_out wrote more than its %u bytes", count);
  }
  if (status != CLV_OK) clv__check_failed_call(check, "copies of odd sizes", "allocating or copying", status, &error);
  if (stream != NULL) b->stream_destroy(check->handle, stream);
  b->buffer_free(check->handle, buffer);
}

/* Checks several copies to the same bytes that are enqueued without waiting. The last copy must win. */
static void check_copy_order(clv__check *check) {
  static uint8_t parts[16][512], back[512];
  const clv_backend *b = check->backend;
  clv_error error = {0};
  clv_buffer *buffer = NULL;
  clv_stream *stream = NULL;
  clv_status status = b->stream_create(check->handle, &stream, &error);
  if (status == CLV_OK) status = b->buffer_alloc(check->handle, sizeof back, &buffer, &error);
  for (uint32_t i = 0; status == CLV_OK && i < 16; ++i) {
    fill(parts[i], sizeof parts[i], check->seed + i);
    status = b->copy_in(check->handle, stream, buffer, 0, parts[i], sizeof parts[i], &error);
  }
  if (status == CLV_OK) status = b->copy_out(check->handle, stream, back, buffer, 0, sizeof back, &error);
  if (status == CLV_OK) status = b->stream_synchronize(check->handle, stream, &error);
  if (status == CLV_OK)
    clv__check_that(check, memcmp(back, parts[15], sizeof back) == 0, "16 copies to one place",
                    "the buffer does not contain the last copy");
  else
    clv__check_failed_call(check, "16 copies to one place", "allocating or copying", status, &error);
  if (stream != NULL) b->stream_destroy(check->handle, stream);
  b->buffer_free(check->handle, buffer);
}

/* ---- A stream that waits for another one ---- */

/* Two graphs, each on its own stream. The reader's input is the maker's output, so the reader must wait for the maker. */
typedef struct pair {
  clv__check *check;
  clv__check_scene maker, reader;
  clv__check_job made, read;
  clv__check_operand aside; /* receives the maker's outputs that the reader does not read */
  clv_event *event;
} pair;

static bool open_chain(clv__check *check, const clv__menu *menu, uint32_t length, const int64_t *dims, uint64_t seed,
                       clv__check_scene *scene) {
  clv_error error = {0};
  clv_graph *graph;
  clv_status status = clv__menu_chain(check, menu, length, dims, seed, &graph, &error);
  if (status == CLV_OK) return clv__scene_open(check, graph, NULL, true, seed, scene);
  clv__check_failed_call(check, "a graph of the kit", "building the graph", status, &error);
  return false;
}

static void close_pair(pair *p) {
  if (p->event != NULL) p->check->backend->event_destroy(p->check->handle, p->event);
  clv__check_job_finish(&p->read);
  clv__check_job_finish(&p->made);
  clv__check_operand_free(p->check, &p->aside);
  clv__scene_finish(&p->reader);
  clv__scene_finish(&p->maker);
}

static bool open_pair(clv__check *check, pair *p) {
  static const int64_t rows[] = {64, 64}, image[] = {1, 8, 20, 20};
  clv__menu menu;
  clv_error error = {0};
  *p = (pair){.check = check};
  bool is_image = !clv__menu_find(check, false, false, &menu);
  if (is_image && !clv__menu_find(check, true, false, &menu)) {
    clv__check_skip(check, "streams that wait", "the device supports none of the operators of the kit's random graphs");
    return false;
  }
  const int64_t *dims = is_image ? image : rows;
  bool is_open = open_chain(check, &menu, 16, dims, check->seed, &p->maker) &&
                 open_chain(check, &menu, 1, dims, check->seed + 1, &p->reader);
  if (!is_open) {
    clv__check_skip(check, "streams that wait", "the device supports an operator as a single node, but not in a chain of nodes");
    close_pair(p);
    return false;
  }
  clv_status status = check->backend->event_create(check->handle, &p->event, &error);
  if (status != CLV_OK) clv__check_failed_call(check, "streams that wait", "event_create", status, &error);
  bool is_started = status == CLV_OK && clv__scene_start(&p->maker, &p->made) && clv__scene_start(&p->reader, &p->read);
  if (is_started) status = clv__check_operand_alloc(check, &p->made.operands[p->made.input_count].type, &p->aside, &error);
  if (is_started && status == CLV_OK) return true;
  if (is_started) clv__check_failed_call(check, "streams that wait", "allocating memory", status, &error);
  close_pair(p);
  return false;
}

/* Gives the maker new data. Computes the results of the maker and, with them as input, those of the reader. */
static clv_status feed_pair(pair *p, uint64_t seed, clv_error *error) {
  CLV__TRY(clv__scene_feed(&p->maker, NULL, seed, error));
  const clv_graph *graph = p->maker.graph;
  clv__check_truth_finish(&p->reader.truth);
  p->reader.inputs[0] = p->maker.truth.values[graph->outputs[0]];
  return clv__check_truth_make(p->check, p->reader.graph, p->reader.inputs, &p->reader.truth, error);
}

static clv_status load_pair(pair *p, clv_error *error) {
  CLV__TRY(clv__check_job_load(&p->made, p->maker.truth.values, CLV__CHECK_POISON, error));
  CLV__TRY(clv__check_job_load(&p->read, p->reader.truth.values, CLV__CHECK_POISON, error));
  /* Replaces the reader's own input, which clv__check_job_load() has bound, by the maker's output. */
  clv__check_bind(p->check, &p->made.operands[p->made.input_count], &p->read.bindings[0]);
  return CLV_OK;
}

/* Enqueues executions of the maker that keep its stream busy and write to `aside`, then one that writes the reader's input. */
static clv_status make_late(pair *p, clv_error *error) {
  clv__check *check = p->check;
  const uint32_t times = check->device->info.is_synchronous ? 0 : 8; /* a synchronous device completes the work before the call
                                                                      * returns */
  clv_binding aside;
  clv_execute_args busy = p->made.args;
  clv__check_bind(check, &p->aside, &aside);
  busy.outputs = &aside;
  for (uint32_t i = 0; i < times; ++i) {
    clv__error_clear(error);
    CLV__TRY(check->backend->execute(check->handle, p->made.instance, p->made.stream, &busy, error));
  }
  return clv__check_job_execute(&p->made, error);
}

static void check_event_wait(pair *p, uint32_t round) {
  clv__check *check = p->check;
  const clv_backend *b = check->backend;
  const clv__check_operand *made = &p->made.operands[p->made.input_count];
  clv_error error = {0};
  char text[1024];
  /* Also copies the maker's output on the other stream, because a device may copy and compute at the same time. */
  clv_tensor copied = made->type;
  copied.data = made->buffer != NULL ? clv__allocate(check->allocator, made->size_bytes) : NULL;
  clv__check_at(check, "event_wait on another stream, round %u", round);
  clv_status status = feed_pair(p, check->seed + round, &error);
  if (status == CLV_OK) status = load_pair(p, &error);
  if (status == CLV_OK) status = make_late(p, &error);
  if (status == CLV_OK) status = b->event_record(check->handle, p->event, p->made.stream, &error);
  if (status == CLV_OK) status = b->event_wait(check->handle, p->read.stream, p->event, &error);
  if (status == CLV_OK && copied.data != NULL) {
    status = b->copy_out(check->handle, p->read.stream, copied.data, made->buffer, 0, made->size_bytes, &error);
  }
  if (status == CLV_OK) status = clv__check_job_execute(&p->read, &error);
  if (status == CLV_OK) status = clv__check_job_wait(&p->read, &error);
  if (status == CLV_OK && copied.data != NULL) {
    clv__check_that(check, clv__check_same(&p->reader.inputs[0], &copied, "made", text, sizeof text),
                    "event_wait on another stream", "a copy enqueued after it did not wait for the event: %s", text);
  }
  clv__release(check->allocator, copied.data);
  if (status != CLV_OK) {
    clv__check_failed_call(check, "event_wait on another stream", "one of the calls", status, &error);
    return;
  }
  clv__check_that(check, clv__check_job_agrees(&p->read, p->reader.truth.values, text, sizeof text),
                  "event_wait on another stream", "an execution enqueued after it did not wait for the event: %s", text);
}

static void check_event_synchronize(pair *p, uint32_t round) {
  clv__check *check = p->check;
  const clv_backend *b = check->backend;
  clv_error error = {0};
  char text[1024];
  clv__check_at(check, "event_synchronize, round %u", round);
  clv_status status = feed_pair(p, check->seed + 500 + round, &error);
  if (status == CLV_OK) status = load_pair(p, &error);
  if (status == CLV_OK) status = make_late(p, &error);
  if (status == CLV_OK) status = b->event_record(check->handle, p->event, p->made.stream, &error);
  if (status == CLV_OK) status = b->event_synchronize(check->handle, p->event, &error);
  if (status == CLV_OK) status = clv__check_job_execute(&p->read, &error); /* on another stream, without event_wait() */
  if (status == CLV_OK) status = clv__check_job_wait(&p->read, &error);
  if (status != CLV_OK) {
    clv__check_failed_call(check, "event_synchronize", "one of the calls", status, &error);
    return;
  }
  clv__check_that(check, clv__check_job_agrees(&p->read, p->reader.truth.values, text, sizeof text), "event_synchronize",
                  "it returned before the event was reached: %s", text);
}

/* ---- Notifications ---- */

typedef struct notice {
  pthread_mutex_t lock;
  uint32_t count;
  bool was_done;
  const void *bytes, *expected; /* `bytes` must be equal to `expected` when the notification comes */
  size_t size_bytes;
} notice;

static void note(void *cookie) {
  notice *n = cookie;
  pthread_mutex_lock(&n->lock);
  ++n->count;
  if (n->count == 1) n->was_done = memcmp(n->bytes, n->expected, n->size_bytes) == 0;
  pthread_mutex_unlock(&n->lock);
}

static uint32_t notices(notice *n) {
  pthread_mutex_lock(&n->lock);
  uint32_t count = n->count;
  pthread_mutex_unlock(&n->lock);
  return count;
}

static void pause_ms(long ms) {
  const struct timespec pause = {0, ms * 1000000};
  nanosleep(&pause, NULL);
}

/* Requests a notification for an event after a copy. If `is_over`, first waits for the event; otherwise it may be pending. */
static void check_notice(pair *p, bool is_over, uint32_t round) {
  enum { BYTES = 4096 };
  static uint8_t from[BYTES], to[BYTES];
  clv__check *check = p->check;
  const clv_backend *b = check->backend;
  const char *what = is_over ? "event_notify of a completed event" : "event_notify";
  clv_error error = {0};
  clv_buffer *buffer = NULL;
  notice n = {.lock = PTHREAD_MUTEX_INITIALIZER, .bytes = to, .expected = from, .size_bytes = BYTES};
  clv_stream *stream = p->made.stream;
  fill(from, BYTES, check->seed + round);
  memset(to, 0, sizeof to);
  clv__check_at(check, "%s, round %u", what, round);
  clv_status status = b->buffer_alloc(check->handle, BYTES, &buffer, &error);
  if (status == CLV_OK) status = load_pair(p, &error);
  if (status == CLV_OK) status = make_late(p, &error);
  if (status == CLV_OK) status = b->copy_in(check->handle, stream, buffer, 0, from, BYTES, &error);
  if (status == CLV_OK) status = b->copy_out(check->handle, stream, to, buffer, 0, BYTES, &error);
  if (status == CLV_OK) status = b->event_record(check->handle, p->event, stream, &error);
  if (status == CLV_OK && is_over) status = b->event_synchronize(check->handle, p->event, &error);
  if (status == CLV_OK) status = b->event_notify(check->handle, p->event, note, &n, &error);
  if (status == CLV_OK) status = b->event_synchronize(check->handle, p->event, &error);
  if (status != CLV_OK) clv__check_failed_call(check, what, "one of the calls", status, &error);
  for (uint32_t i = 0; status == CLV_OK && i < 5000 && notices(&n) == 0; ++i) pause_ms(2);
  (void)b->stream_synchronize(check->handle, stream, NULL);
  if (status == CLV_OK) {
    pause_ms(2);
    uint32_t count = notices(&n);
    clv__check_that(check, count == 1, what, "%u notifications; expected one", count);
    clv__check_that(check, count == 0 || n.was_done, what,
                    "the notification came before the copy that precedes the event was complete");
  }
  b->buffer_free(check->handle, buffer);
}

/* ---- Failures ---- */

static clv_status draw_counted(clv__check *check, clv_dtype dtype, clv_graph **graph, clv_error *error) {
  static const int64_t dims[] = {4, 8};
  clv__sketch sketch;
  clv__sketch_begin(&sketch, check, dtype, 1, error);
  clv__sketch_input(&sketch, "a", 2, dims);
  clv__sketch_node(&sketch, "NonZero", "a", "y");
  return clv__sketch_end(&sketch, "y", graph);
}

/* Checks that the device reports a failure of allocate_output(), which fails here for an output whose size depends on data. */
static void check_failure(clv__check *check) {
  const char *what = "a failure while executing";
  clv_error error = {0};
  clv_graph *graph;
  clv__check_scene scene;
  clv__check_job job = {0};
  char text[1024];
  if (draw_counted(check, CLV_F32, &graph, &error) != CLV_OK || !clv__scene_open(check, graph, NULL, true, 1, &scene)) {
    clv__check_skip(check, what,
                    "the device supports no operator whose output size depends on data, so the kit cannot cause a failure");
    return;
  }
  if (clv__scene_start(&scene, &job)) {
    clv_status status = clv__check_job_load(&job, scene.truth.values, CLV__CHECK_POISON, &error);
    job.refuse_rooms = true;
    if (status == CLV_OK) status = clv__check_job_execute(&job, &error);
    if (status == CLV_OK) status = clv__check_job_wait(&job, &error);
    clv__check_that(check, status != CLV_OK, what,
                    "allocate_output() failed, but execute() and stream_synchronize() returned 'ok'");
    clv__check_that(check, status == CLV_OK || error.message[0] != '\0', what,
                    "execute() or stream_synchronize() returned '%s' without an error text", clv_status_name(status));
    clv__check_job_finish(&job);
    if (clv__scene_start(&scene, &job)) {
      clv__check_that(check, clv__check_job_run(&job, scene.truth.values, text, sizeof text), "an execution after a failure",
                      "%s", text);
      clv__check_job_finish(&job);
    }
  }
  clv__scene_finish(&scene);
}

void clv__check_order(clv__check *check) {
  pair p;
  check_copies(check);
  check_copy_order(check);
  check_failure(check);
  if (!open_pair(check, &p)) return;
  const uint32_t times = 3 + clv__check_thin(check, 9);
  for (uint32_t round = 0; round < times; ++round) {
    check_event_wait(&p, round);
    check_event_synchronize(&p, round);
    clv__check_progress(check, round + 1, times);
  }
  if (check->backend->event_notify != NULL) {
    const uint32_t rounds = clv__check_thin(check, 4);
    for (uint32_t round = 0; round < 2 * rounds; ++round) check_notice(&p, round % 2 != 0, round);
  } else {
    clv__check_skip(check, "event_notify", "the backend lacks this optional slot: the host waits in a separate thread");
  }
  close_pair(&p);
}
