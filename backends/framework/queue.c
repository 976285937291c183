/* Streams, events, and the threads that execute streams: see queue.h. */
#include "queue.h"

#include <string.h>
#include <time.h>

enum { RING = 64, CLOSE_SECONDS = 2 };

typedef enum command_kind { COMMAND_WORK, COMMAND_COPY, COMMAND_RECORD, COMMAND_WAIT } command_kind;

typedef struct command {
  command_kind kind;
  union {
    clv__framework_work *work;
    struct {
      void *to;
      const void *from;
      size_t size_bytes;
    } copy;
    struct {
      clv_event *event;
      /* `ticket`: number of the record that the command makes or waits for; `waits`: number of waits for the event that were
       * enqueued before the command */
      uint64_t ticket, waits;
    } mark;
  };
} command;

struct clv_stream {
  clv__object object;
  clv_device *device;
  pthread_t thread;
  bool started, ending;
  bool is_stopped;              /* set by stream_stop() and when the device is closed, reset by stream_synchronize() */
  clv__framework_work *running; /* the work in progress; NULL: none */
  pthread_cond_t filled;        /* signals that the ring has work, or that the thread has to end */
  uint64_t enqueued, finished;
  clv_error failure;
  command ring[RING];
};

/* A notification to send when the record with number `ticket` is reached. */
typedef struct clv__framework_notice {
  struct clv__framework_notice *next;
  uint64_t ticket;
  clv_notify_fn notify;
  void *cookie;
} notice;

struct clv_event {
  clv__object object;
  clv_device *device;
  uint64_t recorded, reached;
  uint64_t waits, waited; /* number of waits for this event that were enqueued, and that finished */
  uint64_t pending;       /* number of enqueued commands that refer to this event */
  clv_error failure;      /* the stream's failure when the last record was reached */
  notice *notices;
};

/* ---- The queue ---- */

void clv__framework_queue_init(clv__framework_queue *queue) {
  *queue = (clv__framework_queue){0};
  pthread_mutex_init(&queue->lock, NULL);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&queue->changed, &attributes);
  pthread_condattr_destroy(&attributes);
}

static void free_notices(clv_device *device, notice *list) {
  while (list != NULL) {
    notice *next = list->next;
    clv__release(device->allocator, list);
    list = next;
  }
}

void clv__framework_queue_finish(clv_device *device) {
  clv__framework_queue *queue = &device->queue;
  free_notices(device, queue->unused);
  pthread_cond_destroy(&queue->changed);
  pthread_mutex_destroy(&queue->lock);
}

/* Called with the lock held. Returns false if the device is being closed: no further command will run. */
static bool wait_for_change(clv__framework_queue *queue) {
  if (queue->abandoned) return false;
  ++queue->waiting;
  pthread_cond_wait(&queue->changed, &queue->lock);
  --queue->waiting;
  if (queue->abandoned) pthread_cond_broadcast(&queue->changed); /* queue_stop() waits until all callers have left */
  return !queue->abandoned;
}

static clv_status refuse_abandoned(clv_error *error) {
  return clv__error_set(error, CLV_DEVICE_ERROR, "the device was closed before a run ended");
}

/* ---- Threads ---- */

static bool is_idle(const clv_stream *stream) {
  return stream->enqueued == stream->finished;
}

static bool mark_is_ready(const clv_stream *stream, const command *c) {
  const clv_event *event = c->mark.event;
  if (c->kind == COMMAND_WAIT) return event->reached >= c->mark.ticket;
  if (event->reached + 1 != c->mark.ticket) return false;
  /* A record overwrites the event's failure. Waits for earlier records must still see the old failure, so the record waits until
   * they have finished. If neither the event nor the stream has failed, the order does not matter. */
  bool same = event->failure.status == CLV_OK && stream->failure.status == CLV_OK;
  return same || event->waited == c->mark.waits;
}

/* Sends the notifications whose record is reached. Called with the lock held; releases it during each notification. */
static void notify_reached(clv_event *event) {
  clv__framework_queue *queue = &event->device->queue;
  for (bool again = true; again;) {
    again = false;
    for (notice **link = &event->notices; *link != NULL; link = &(*link)->next) {
      notice *due = *link;
      if (due->ticket > event->reached) continue;
      *link = due->next;
      clv_notify_fn notify = due->notify;
      void *cookie = due->cookie;
      due->next = queue->unused;
      queue->unused = due;
      pthread_mutex_unlock(&queue->lock);
      notify(cookie);
      pthread_mutex_lock(&queue->lock);
      again = true;
      break;
    }
  }
}

/* Executes a mark (a record or a wait) that is ready. Called with the lock held. The event is not destroyed meanwhile, because
 * `event->pending` is above 0. */
static void execute_mark(clv_stream *stream, const command *c) {
  clv_event *event = c->mark.event;
  if (c->kind == COMMAND_WAIT) {
    if (stream->failure.status == CLV_OK && event->failure.status != CLV_OK) stream->failure = event->failure;
    return;
  }
  event->reached = c->mark.ticket;
  if (event->failure.status != CLV_OK || stream->failure.status != CLV_OK) event->failure = stream->failure;
  notify_reached(event);
}

static clv_status refuse_stopped(clv_error *error) {
  return clv__error_set(error, CLV_CANCELLED, "the stream was stopped");
}

/* Runs work without the lock, which is held before and after. If the work fails after the stream was stopped, returns
 * CLV_CANCELLED. */
static clv_status run_work(clv_stream *stream, clv__framework_work *work, clv_error *error) {
  pthread_mutex_t *lock = &stream->device->queue.lock;
  work->resume(work);
  stream->running = work;
  pthread_mutex_unlock(lock);
  clv_status status = work->run(work, error);
  pthread_mutex_lock(lock);
  stream->running = NULL;
  return status != CLV_OK && stream->is_stopped ? refuse_stopped(error) : status;
}

/* Executes work or a copy. Called with the lock held; releases it meanwhile. */
static clv_status execute_work(clv_stream *stream, const command *c, clv_error *error) {
  pthread_mutex_t *lock = &stream->device->queue.lock;
  if (stream->is_stopped) return refuse_stopped(error);
  if (c->kind == COMMAND_WORK) return run_work(stream, c->work, error);
  pthread_mutex_unlock(lock);
  if (c->copy.size_bytes > 0) memcpy(c->copy.to, c->copy.from, c->copy.size_bytes);
  pthread_mutex_lock(lock);
  return CLV_OK;
}

/* Waits until the stream's first command can be executed, and executes it. Called with the lock held. Returns false if the
 * device is closed meanwhile. */
static bool step(clv_stream *stream) {
  clv__framework_queue *queue = &stream->device->queue;
  const command c = stream->ring[stream->finished % RING];
  if (c.kind == COMMAND_RECORD || c.kind == COMMAND_WAIT) {
    while (!mark_is_ready(stream, &c)) {
      if (queue->closing) return false;
      pthread_cond_wait(&queue->changed, &queue->lock);
    }
    execute_mark(stream, &c);
    if (c.kind == COMMAND_WAIT) ++c.mark.event->waited;
    --c.mark.event->pending;
  } else if (stream->failure.status == CLV_OK && !queue->closing) {
    clv_error failure = {0};
    clv_status status = execute_work(stream, &c, &failure);
    if (queue->abandoned) return false; /* closed: do not touch the work, which may refer to memory that the host has freed */
    failure.status = status;
    if (status != CLV_OK) stream->failure = failure;
  }
  if (c.kind == COMMAND_WORK) c.work->done(c.work);
  ++stream->finished;
  pthread_cond_broadcast(&queue->changed);
  return true;
}

static void *work_off(void *argument) {
  clv_stream *stream = argument;
  clv__framework_queue *queue = &stream->device->queue;
  pthread_mutex_lock(&queue->lock);
  for (bool on = true; on;) {
    while (is_idle(stream) && !stream->ending && !queue->closing) pthread_cond_wait(&stream->filled, &queue->lock);
    on = !is_idle(stream) && step(stream);
  }
  --queue->working;
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
  return NULL;
}

/* ---- Closing ---- */

static void destroy_stream(clv_device *device, void *self) {
  clv_stream *stream = self;
  if (device->is_async) {
    pthread_mutex_lock(&device->queue.lock);
    stream->ending = true;
    pthread_cond_signal(&stream->filled);
    pthread_mutex_unlock(&device->queue.lock);
    if (stream->started) pthread_join(stream->thread, NULL);
    pthread_cond_destroy(&stream->filled);
  }
  clv__object_free(&device->objects, stream);
}

/* Calls `what` for every stream that has a thread. Called with the queue's lock held. */
static void for_streams(clv_device *device, void (*what)(clv_stream *stream)) {
  pthread_mutex_lock(&device->objects.lock);
  for (clv__object *o = device->objects.ring.next; o != &device->objects.ring; o = o->next) {
    if (o->destroy == destroy_stream && ((clv_stream *)o)->started) what((clv_stream *)o);
  }
  pthread_mutex_unlock(&device->objects.lock);
}

static void wake(clv_stream *stream) {
  stream->is_stopped = true;
  if (stream->running != NULL) stream->running->stop(stream->running);
  pthread_cond_signal(&stream->filled);
}

static void let_go(clv_stream *stream) {
  pthread_detach(stream->thread);
}

bool clv__framework_queue_stop(clv_device *device) {
  clv__framework_queue *queue = &device->queue;
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += CLOSE_SECONDS;
  pthread_mutex_lock(&queue->lock);
  queue->closing = true;
  for_streams(device, wake);
  pthread_cond_broadcast(&queue->changed);
  int code = 0;
  while (queue->working > 0 && code == 0) code = pthread_cond_timedwait(&queue->changed, &queue->lock, &until);
  bool stopped = queue->working == 0;
  queue->abandoned = true; /* callers that still wait return an error, because no further command will run */
  while (queue->waiting > 0) {
    pthread_cond_broadcast(&queue->changed);
    pthread_cond_wait(&queue->changed, &queue->lock);
  }
  if (!stopped) for_streams(device, let_go);
  pthread_mutex_unlock(&queue->lock);
  return stopped;
}

/* ---- Streams ---- */

clv_status clv__framework_stream_create(clv_device *device, clv_stream **out, clv_error *error) {
  *out = NULL;
  clv_stream *stream = clv__object_new(&device->objects, sizeof *stream, destroy_stream);
  if (stream == NULL) return clv__error_memory(error, sizeof *stream);
  stream->device = device;
  if (device->is_async) pthread_cond_init(&stream->filled, NULL);
  *out = stream;
  return CLV_OK;
}

void clv__framework_stream_destroy(clv_device *device, clv_stream *stream) {
  if (stream != NULL) destroy_stream(device, stream);
}

clv_status clv__framework_stream_synchronize(clv_device *device, clv_stream *stream, clv_error *error) {
  pthread_mutex_lock(&device->queue.lock);
  uint64_t target = stream->enqueued;
  bool drained = true;
  while (stream->finished < target && drained) drained = wait_for_change(&device->queue);
  clv_status status = drained ? stream->failure.status : refuse_abandoned(error);
  if (drained && status != CLV_OK && error != NULL) *error = stream->failure;
  if (drained) {
    stream->failure.status = CLV_OK;
    stream->is_stopped = false;
  }
  pthread_mutex_unlock(&device->queue.lock);
  return status;
}

clv_status clv__framework_stream_stop(clv_device *device, clv_stream *stream, clv_error *error) {
  (void)error;
  pthread_mutex_lock(&device->queue.lock);
  stream->is_stopped = true;
  if (stream->running != NULL) stream->running->stop(stream->running);
  pthread_mutex_unlock(&device->queue.lock);
  return CLV_OK;
}

clv_status clv__framework_run_here(clv_device *device, clv_stream *stream, clv__framework_work *work, clv_error *error) {
  pthread_mutex_lock(&device->queue.lock);
  clv_status status = stream->is_stopped ? refuse_stopped(error) : run_work(stream, work, error);
  if (status == CLV_CANCELLED) clv__error_set(&stream->failure, status, "the stream was stopped");
  pthread_mutex_unlock(&device->queue.lock);
  return status;
}

/* ---- Enqueueing ---- */

/* Waits until the stream's ring has room, and starts the stream's thread if necessary. Called with the lock held. */
static clv_status make_room(clv_stream *stream, clv_error *error) {
  clv__framework_queue *queue = &stream->device->queue;
  while (stream->enqueued - stream->finished >= RING) {
    if (!wait_for_change(queue)) return refuse_abandoned(error);
  }
  if (stream->started) return CLV_OK;
  int code = pthread_create(&stream->thread, NULL, work_off, stream);
  if (code != 0) return clv__error_set(error, CLV_DEVICE_ERROR, "cannot create a thread for a stream: %s", strerror(code));
  stream->started = true;
  ++queue->working;
  return CLV_OK;
}

static void push(clv_stream *stream, const command *c) {
  bool first = is_idle(stream);
  stream->ring[stream->enqueued++ % RING] = *c;
  if (first) pthread_cond_signal(&stream->filled);
}

static clv_status enqueue(clv_device *device, clv_stream *stream, const command *c, clv_error *error) {
  pthread_mutex_lock(&device->queue.lock);
  clv_status status = make_room(stream, error);
  if (status == CLV_OK) push(stream, c);
  pthread_mutex_unlock(&device->queue.lock);
  return status;
}

clv_status clv__framework_enqueue(clv_device *device, clv_stream *stream, clv__framework_work *work, clv_error *error) {
  command c = {.kind = COMMAND_WORK, .work = work};
  return enqueue(device, stream, &c, error);
}

clv_status clv__framework_enqueue_copy(clv_device *device, clv_stream *stream, void *to, const void *from, size_t size_bytes,
                                       clv_error *error) {
  command c = {.kind = COMMAND_COPY, .copy = {to, from, size_bytes}};
  return enqueue(device, stream, &c, error);
}

/* ---- Events ---- */

static void destroy_event(clv_device *device, void *self) {
  clv_event *event = self;
  pthread_mutex_lock(&device->queue.lock);
  bool passed = true;
  while (event->pending > 0 && passed) passed = wait_for_change(&device->queue);
  pthread_mutex_unlock(&device->queue.lock);
  free_notices(device, event->notices);
  clv__object_free(&device->objects, event);
}

clv_status clv__framework_event_create(clv_device *device, clv_event **out, clv_error *error) {
  *out = NULL;
  clv_event *event = clv__object_new(&device->objects, sizeof *event, destroy_event);
  if (event == NULL) return clv__error_memory(error, sizeof *event);
  event->device = device;
  *out = event;
  return CLV_OK;
}

void clv__framework_event_destroy(clv_device *device, clv_event *event) {
  if (event != NULL) destroy_event(device, event);
}

/* Enqueues a record or a wait. If the stream is idle and the command is ready, executes it immediately instead. No other stream
 * needs to be woken then: a command waits only for records that were enqueued before it. */
static clv_status enqueue_mark(clv_device *device, clv_stream *stream, clv_event *event, command_kind kind, clv_error *error) {
  pthread_mutex_lock(&device->queue.lock);
  clv_status status = CLV_OK;
  command c = {.kind = kind, .mark = {event, kind == COMMAND_RECORD ? event->recorded + 1 : event->recorded, event->waits}};
  if (is_idle(stream) && mark_is_ready(stream, &c)) {
    if (kind == COMMAND_RECORD) ++event->recorded;
    execute_mark(stream, &c);
  } else {
    /* Make room before the ticket is issued, because making room may fail: a ticket without a record would block all waits. */
    status = make_room(stream, error);
    if (status == CLV_OK) {
      if (kind == COMMAND_RECORD) {
        c.mark.ticket = ++event->recorded;
        c.mark.waits = event->waits;
      } else {
        c.mark.ticket = event->recorded;
        ++event->waits;
      }
      ++event->pending;
      push(stream, &c);
    }
  }
  pthread_mutex_unlock(&device->queue.lock);
  return status;
}

clv_status clv__framework_event_record(clv_device *device, clv_event *event, clv_stream *stream, clv_error *error) {
  return enqueue_mark(device, stream, event, COMMAND_RECORD, error);
}

clv_status clv__framework_event_wait(clv_device *device, clv_stream *stream, clv_event *event, clv_error *error) {
  return enqueue_mark(device, stream, event, COMMAND_WAIT, error);
}

clv_status clv__framework_event_synchronize(clv_device *device, clv_event *event, clv_error *error) {
  pthread_mutex_lock(&device->queue.lock);
  uint64_t target = event->recorded;
  bool reached = true;
  while (event->reached < target && reached) reached = wait_for_change(&device->queue);
  clv_status status = reached ? event->failure.status : refuse_abandoned(error);
  if (reached && status != CLV_OK && error != NULL) *error = event->failure;
  pthread_mutex_unlock(&device->queue.lock);
  return status;
}

/* Returns an unused notice, or a new one; NULL if memory runs out. Called with the lock held. */
static notice *take_notice(clv_device *device) {
  notice *taken = device->queue.unused;
  if (taken == NULL) return clv__allocate_zero(device->allocator, sizeof *taken);
  device->queue.unused = taken->next;
  return taken;
}

clv_status clv__framework_event_notify(clv_device *device, clv_event *event, clv_notify_fn notify, void *cookie,
                                       clv_error *error) {
  clv_status status = CLV_OK;
  pthread_mutex_lock(&device->queue.lock);
  bool reached = event->reached == event->recorded;
  if (!reached) {
    notice *made = take_notice(device);
    if (made != NULL) {
      *made = (notice){event->notices, event->recorded, notify, cookie};
      event->notices = made;
    } else {
      status = clv__error_memory(error, sizeof *made);
    }
  }
  pthread_mutex_unlock(&device->queue.lock);
  if (reached) notify(cookie);
  return status;
}
