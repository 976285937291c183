/* Streams and events from the caller's side: see queue.h. */
#include "queue_own.h"

#include "backends/vnpu/spec/speed.h"
#include "base/clock.h"
#include "base/error.h"

enum { SMALL_COPY_BYTES = 1 << 16 }; /* a copy of this size takes a few microseconds, about as long as waking a thread */

void clv__vnpu_queue_init(clv__vnpu_queue *queue, const clv_allocator *allocator, clv__vnpu_space *space,
                          const clv__vnpu_speed *speed, uint32_t thread_count) {
  *queue = (clv__vnpu_queue){.allocator = allocator, .space = space, .speed = speed, .thread_count = thread_count};
  queue->due_end = &queue->due;
  queue->small_copy_bytes = speed->given ? 0 : SMALL_COPY_BYTES;
  pthread_mutex_init(&queue->lock, NULL);
  pthread_cond_init(&queue->changed, NULL);
  for (int e = 0; e < CLV__VNPU_ENGINES; ++e) {
    queue->engines[e].queue = queue;
    queue->engines[e].kind = (clv__vnpu_engine_kind)e;
    pthread_cond_init(&queue->engines[e].work, NULL);
  }
}

static void free_notices(const clv_allocator *allocator, clv__vnpu_notice *notice) {
  while (notice != NULL) {
    clv__vnpu_notice *next = notice->next;
    clv__release(allocator, notice);
    notice = next;
  }
}

void clv__vnpu_queue_stop(clv__vnpu_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->closing = true;
  for (clv_stream *s = queue->streams; s != NULL; s = s->next) atomic_store(&s->stop, true);
  clv__vnpu_advance(queue);
  clv__vnpu_notify_due(queue);
  for (int e = 0; e < CLV__VNPU_ENGINES; ++e) pthread_cond_broadcast(&queue->engines[e].work);
  pthread_mutex_unlock(&queue->lock);
  for (int e = 0; e < CLV__VNPU_ENGINES; ++e) {
    if (queue->engines[e].started) pthread_join(queue->engines[e].thread, NULL);
  }
  pthread_mutex_lock(&queue->lock);
  while (queue->waiters != NULL) { /* the waiters return an error, because no further command will run */
    queue->abandoned = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_cond_wait(&queue->changed, &queue->lock);
  }
  pthread_mutex_unlock(&queue->lock);
}

void clv__vnpu_queue_finish(clv__vnpu_queue *queue) {
  while (queue->streams != NULL) {
    clv_stream *stream = queue->streams;
    queue->streams = stream->next;
    clv__release(queue->allocator, stream);
  }
  while (queue->events != NULL) {
    clv_event *event = queue->events;
    queue->events = event->next;
    free_notices(queue->allocator, event->notices);
    clv__release(queue->allocator, event);
  }
  free_notices(queue->allocator, queue->due);
  free_notices(queue->allocator, queue->unused);
  for (int e = 0; e < CLV__VNPU_ENGINES; ++e) pthread_cond_destroy(&queue->engines[e].work);
  pthread_cond_destroy(&queue->changed);
  pthread_mutex_destroy(&queue->lock);
}

bool clv__vnpu_queue_wait(clv__vnpu_queue *queue, const uint64_t *count, uint64_t target) {
  if (queue->abandoned) return false;
  clv__vnpu_waiter self = {queue->waiters, count, target};
  queue->waiters = &self;
  clv__vnpu_rouse(queue);
  if (clv__vnpu_queue_is_owing(queue)) {
    clv__vnpu_queue_unlock(queue);
    pthread_mutex_lock(&queue->lock);
  } else {
    pthread_cond_wait(&queue->changed, &queue->lock);
  }
  clv__vnpu_waiter **link = &queue->waiters;
  while (*link != &self) link = &(*link)->next;
  *link = self.next;
  if (queue->abandoned) pthread_cond_broadcast(&queue->changed); /* clv__vnpu_queue_stop() waits until all waiters have left */
  return !queue->abandoned;
}

static clv_status refuse_abandoned(clv_error *error) {
  return clv__error_set(error, CLV_DEVICE_ERROR, "the device was closed while a launch hung");
}

/* ---- Streams ---- */

clv_status clv__vnpu_stream_create(clv__vnpu_queue *queue, clv_stream **out, clv_error *error) {
  *out = NULL;
  clv_stream *stream = clv__allocate_zero(queue->allocator, sizeof *stream);
  if (stream == NULL) return clv__error_memory(error, sizeof *stream);
  stream->queue = queue;
  pthread_mutex_lock(&queue->lock);
  stream->next = queue->streams;
  queue->streams = stream;
  pthread_mutex_unlock(&queue->lock);
  *out = stream;
  return CLV_OK;
}

static bool drain(clv__vnpu_queue *queue, const clv_stream *stream) {
  uint64_t target = stream->enqueued;
  while (stream->finished < target) {
    if (!clv__vnpu_queue_wait(queue, &stream->finished, target)) return false;
  }
  return true;
}

void clv__vnpu_stream_destroy(clv__vnpu_queue *queue, clv_stream *stream) {
  if (stream == NULL) return;
  pthread_mutex_lock(&queue->lock);
  bool drained = drain(queue, stream);
  if (drained) {
    clv_stream **link = &queue->streams;
    while (*link != stream) link = &(*link)->next;
    *link = stream->next;
  }
  pthread_mutex_unlock(&queue->lock);
  if (drained) clv__release(queue->allocator, stream); /* otherwise clv__vnpu_queue_finish() frees it */
}

/* Copies the failure to `error`, and returns its status. Called with the lock held. */
static clv_status report(const clv_error *failure, clv_error *error) {
  if (failure->status != CLV_OK && error != NULL) *error = *failure;
  return failure->status;
}

clv_status clv__vnpu_stream_synchronize(clv__vnpu_queue *queue, clv_stream *stream, clv_error *error) {
  pthread_mutex_lock(&queue->lock);
  clv_status status;
  if (drain(queue, stream)) {
    status = report(&stream->failure, error);
    stream->failure.status = CLV_OK;
    atomic_store(&stream->stop, false);
  } else {
    status = refuse_abandoned(error);
  }
  pthread_mutex_unlock(&queue->lock);
  return status;
}

void clv__vnpu_stream_stop(clv__vnpu_queue *queue, clv_stream *stream) {
  pthread_mutex_lock(&queue->lock);
  atomic_store(&stream->stop, true);
  clv__vnpu_advance(queue);
  clv__vnpu_notify_due(queue);
  clv__vnpu_queue_unlock(queue);
}

clv_captured *clv__vnpu_stream_capture(const clv_stream *stream) {
  return stream->captured;
}

void clv__vnpu_stream_set_capture(clv__vnpu_queue *queue, clv_stream *stream, clv_captured *captured) {
  pthread_mutex_lock(&queue->lock);
  stream->captured = captured;
  pthread_mutex_unlock(&queue->lock);
}

/* ---- Enqueueing ---- */

static bool is_idle(const clv_stream *stream) {
  return stream->enqueued == stream->finished;
}

/* Checks that the stream accepts commands, and waits until its ring has room for one. Called with the lock held. */
static clv_status make_room(clv__vnpu_queue *queue, const clv_stream *stream, clv_error *error) {
  if (stream->captured != NULL) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the stream is capturing: only executions are allowed");
  }
  while (stream->enqueued - stream->finished >= CLV__VNPU_RING) {
    uint64_t room = stream->enqueued - CLV__VNPU_RING + 1;
    if (!clv__vnpu_queue_wait(queue, &stream->finished, room)) return refuse_abandoned(error);
  }
  return CLV_OK;
}

static void push(clv_stream *stream, const clv__vnpu_command *c) {
  stream->ring[stream->enqueued++ % CLV__VNPU_RING] = *c;
}

static clv_status enqueue_work(clv__vnpu_queue *queue, clv_stream *stream, clv__vnpu_command *c, clv_error *error) {
  if (stream->queue != queue) return clv__error_set(error, CLV_INVALID_ARGUMENT, "the stream belongs to another device");
  if (queue->speed->given) c->enqueued_ns = clv__clock_ns();
  pthread_mutex_lock(&queue->lock);
  clv_status status = make_room(queue, stream, error);
  if (status == CLV_OK) status = clv__vnpu_engines_start(queue, c, error);
  if (status == CLV_OK && is_idle(stream) && clv__vnpu_stream_skips(stream)) {
    if (c->kind == CLV__VNPU_LAUNCH && c->launch->done != NULL) c->launch->done(c->launch);
    clv__vnpu_stir(queue);
  } else if (status == CLV_OK) {
    if (c->kind == CLV__VNPU_LAUNCH) ++c->launch->in_flight;
    push(stream, c);
    if (!clv__vnpu_copy_is_small(queue, c)) clv__vnpu_rouse(queue);
  }
  clv__vnpu_queue_unlock(queue);
  return status;
}

clv_status clv__vnpu_stream_copy_in(clv__vnpu_queue *queue, clv_stream *stream, uint64_t to, const void *from,
                                    uint64_t size_bytes, clv_error *error) {
  clv__vnpu_command c = {.kind = CLV__VNPU_COPY_IN, .copy = {(void *)from, to, size_bytes}};
  return enqueue_work(queue, stream, &c, error);
}

clv_status clv__vnpu_stream_copy_out(clv__vnpu_queue *queue, clv_stream *stream, void *to, uint64_t from, uint64_t size_bytes,
                                     clv_error *error) {
  clv__vnpu_command c = {.kind = CLV__VNPU_COPY_OUT, .copy = {to, from, size_bytes}};
  return enqueue_work(queue, stream, &c, error);
}

clv_status clv__vnpu_stream_launch(clv__vnpu_queue *queue, clv_stream *stream, clv__vnpu_launch *launch, clv_error *error) {
  clv__vnpu_command c = {.kind = CLV__VNPU_LAUNCH, .launch = launch};
  return enqueue_work(queue, stream, &c, error);
}

/* ---- Events ---- */

/* Also allocates a notice (a pending notification), one for every event, so that memory use does not depend on how many
 * notifications are pending at once. */
clv_status clv__vnpu_event_create(clv__vnpu_queue *queue, clv_event **out, clv_error *error) {
  *out = NULL;
  clv_event *event = clv__allocate_zero(queue->allocator, sizeof *event);
  clv__vnpu_notice *notice = event != NULL ? clv__allocate_zero(queue->allocator, sizeof *notice) : NULL;
  if (notice == NULL) {
    clv__release(queue->allocator, event);
    return clv__error_memory(error, sizeof *event + sizeof *notice);
  }
  event->queue = queue;
  pthread_mutex_lock(&queue->lock);
  notice->next = queue->unused;
  queue->unused = notice;
  event->next = queue->events;
  event->link = &queue->events;
  if (event->next != NULL) event->next->link = &event->next;
  queue->events = event;
  pthread_mutex_unlock(&queue->lock);
  *out = event;
  return CLV_OK;
}

void clv__vnpu_event_destroy(clv__vnpu_queue *queue, clv_event *event) {
  if (event == NULL) return;
  pthread_mutex_lock(&queue->lock);
  bool passed = true;
  clv__vnpu_notice *notice = NULL;
  while (event->pending > 0 && passed) passed = clv__vnpu_queue_wait(queue, NULL, 0);
  if (passed) {
    *event->link = event->next;
    if (event->next != NULL) event->next->link = event->link;
    notice = queue->unused;
    if (notice != NULL) queue->unused = notice->next;
  }
  pthread_mutex_unlock(&queue->lock);
  clv__release(queue->allocator, notice);
  if (passed) clv__release(queue->allocator, event); /* otherwise clv__vnpu_queue_finish() frees it */
}

/* Enqueues a record or a wait. If the stream is idle and the command is ready, executes it immediately instead. No other stream
 * needs to be woken then: a command waits only for records that were enqueued before it. */
static clv_status enqueue_mark(clv__vnpu_queue *queue, clv_stream *stream, clv_event *event, clv__vnpu_command_kind kind,
                               clv_error *error) {
  if (stream->queue != queue || event->queue != queue) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the stream or the event belongs to another device");
  }
  pthread_mutex_lock(&queue->lock);
  /* Make room before the ticket is issued, because making room may fail: a ticket without a record would block all waits. */
  clv_status status = make_room(queue, stream, error);
  if (status == CLV_OK) {
    uint64_t ticket = kind == CLV__VNPU_RECORD ? ++event->recorded : event->recorded;
    clv__vnpu_command c = {.kind = kind, .mark = {event, ticket, event->waits}};
    if (is_idle(stream) && clv__vnpu_mark_is_ready(stream, &c)) {
      clv__vnpu_mark_execute(stream, &c);
    } else {
      ++event->pending;
      if (kind == CLV__VNPU_WAIT) ++event->waits;
      push(stream, &c);
    }
  }
  pthread_mutex_unlock(&queue->lock);
  return status;
}

clv_status clv__vnpu_event_record(clv__vnpu_queue *queue, clv_event *event, clv_stream *stream, clv_error *error) {
  return enqueue_mark(queue, stream, event, CLV__VNPU_RECORD, error);
}

clv_status clv__vnpu_event_wait(clv__vnpu_queue *queue, clv_stream *stream, clv_event *event, clv_error *error) {
  return enqueue_mark(queue, stream, event, CLV__VNPU_WAIT, error);
}

clv_status clv__vnpu_event_synchronize(clv__vnpu_queue *queue, clv_event *event, clv_error *error) {
  pthread_mutex_lock(&queue->lock);
  uint64_t target = event->recorded;
  bool reached = true;
  while (event->reached < target && reached) reached = clv__vnpu_queue_wait(queue, &event->reached, target);
  clv_status status = reached ? report(&event->failure, error) : refuse_abandoned(error);
  pthread_mutex_unlock(&queue->lock);
  return status;
}

/* Returns an unused notice, or a new one. Called with the lock held. */
static clv__vnpu_notice *take_notice(clv__vnpu_queue *queue) {
  clv__vnpu_notice *notice = queue->unused;
  if (notice == NULL) return clv__allocate_zero(queue->allocator, sizeof *notice);
  queue->unused = notice->next;
  return notice;
}

clv_status clv__vnpu_event_notify(clv__vnpu_queue *queue, clv_event *event, clv_notify_fn notify, void *cookie,
                                  clv_error *error) {
  clv_status status = CLV_OK;
  pthread_mutex_lock(&queue->lock);
  bool reached = event->reached == event->recorded;
  if (!reached) {
    clv__vnpu_notice *notice = take_notice(queue);
    if (notice != NULL) {
      *notice = (clv__vnpu_notice){event->notices, event->recorded, notify, cookie};
      event->notices = notice;
    } else {
      status = clv__error_memory(error, sizeof *notice);
    }
    clv__vnpu_rouse(queue);
  }
  clv__vnpu_queue_unlock(queue);
  if (reached) notify(cookie);
  return status;
}
