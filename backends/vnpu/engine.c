/* The engines: see queue.h. An engine executes the first command of a stream without the lock, and then all marks that have
 * become ready. A mark is a command that records an event or waits for one. */
#include "queue_own.h"

#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

#include "backends/vnpu/spec/speed.h"
#include "base/clock.h"
#include "base/error.h"

/* ---- Marks ---- */

bool clv__vnpu_mark_is_ready(const clv_stream *stream, const clv__vnpu_command *command) {
  const clv_event *event = command->mark.event;
  if (command->kind == CLV__VNPU_WAIT) return event->reached >= command->mark.ticket;
  if (event->reached + 1 != command->mark.ticket) return false;
  /* A record overwrites the event's failure. Waits for earlier records must still see the old failure, so the record waits until
   * they have finished. If neither the event nor the stream has failed, the order does not matter. */
  bool same = event->failure.status == CLV_OK && stream->failure.status == CLV_OK;
  return same || event->waited == command->mark.waits;
}

static void reach(clv_stream *stream, clv_event *event, uint64_t ticket) {
  clv__vnpu_queue *queue = event->queue;
  event->reached = ticket;
  event->reached_ns = stream->ready_ns;
  if (event->failure.status != CLV_OK || stream->failure.status != CLV_OK) event->failure = stream->failure;
  for (clv__vnpu_notice **link = &event->notices; *link != NULL;) {
    clv__vnpu_notice *notice = *link;
    if (notice->ticket > ticket) {
      link = &notice->next;
      continue;
    }
    *link = notice->next;
    notice->next = NULL;
    *queue->due_end = notice;
    queue->due_end = &notice->next;
  }
}

void clv__vnpu_mark_execute(clv_stream *stream, const clv__vnpu_command *command) {
  clv_event *event = command->mark.event;
  if (command->kind == CLV__VNPU_RECORD) {
    reach(stream, event, command->mark.ticket);
    return;
  }
  if (event->reached_ns > stream->ready_ns) stream->ready_ns = event->reached_ns;
  if (stream->failure.status == CLV_OK && event->failure.status != CLV_OK) stream->failure = event->failure;
}

/* ---- After completed work; with the lock held ---- */

static void finish_launch(clv__vnpu_launch *launch) {
  --launch->in_flight;
  if (launch->done != NULL) launch->done(launch);
}

bool clv__vnpu_stream_skips(clv_stream *stream) {
  if (stream->failure.status == CLV_OK && clv__is_stopped(&stream->stop)) {
    clv__error_clear(&stream->failure);
    clv__error_set(&stream->failure, CLV_CANCELLED, "the stream was stopped");
  }
  return stream->failure.status != CLV_OK;
}

/* Finishes the stream's next command if it needs no engine. It is then a mark that is ready, or a launch or copy that is skipped
 * because the stream has failed or was stopped. */
static bool advance(clv_stream *stream) {
  const clv__vnpu_command *c = stream->busy ? NULL : clv__vnpu_stream_head(stream);
  if (c == NULL) return false;
  clv__vnpu_engine *engine = clv__vnpu_engine_of(stream->queue, c);
  if (engine != NULL && !clv__vnpu_stream_skips(stream)) return false;
  if (engine == NULL) {
    if (!clv__vnpu_mark_is_ready(stream, c)) return false;
    clv__vnpu_mark_execute(stream, c);
    if (c->kind == CLV__VNPU_WAIT) ++c->mark.event->waited;
    --c->mark.event->pending;
  } else if (c->kind == CLV__VNPU_LAUNCH) {
    finish_launch(c->launch);
  }
  ++stream->finished;
  return true;
}

void clv__vnpu_advance(clv__vnpu_queue *queue) {
  for (bool moved = true; moved;) {
    moved = false;
    for (clv_stream *s = queue->streams; s != NULL; s = s->next) {
      while (advance(s)) moved = true;
    }
  }
  clv__vnpu_stir(queue);
  clv__vnpu_rouse(queue);
  if (!queue->closing) return;
  for (int e = 0; e < CLV__VNPU_ENGINES; ++e) pthread_cond_broadcast(&queue->engines[e].work);
}

void clv__vnpu_notify_due(clv__vnpu_queue *queue) {
  while (queue->due != NULL) {
    clv__vnpu_notice *notice = queue->due;
    clv_notify_fn notify = notice->notify;
    void *cookie = notice->cookie;
    queue->due = notice->next;
    if (queue->due == NULL) queue->due_end = &queue->due;
    notice->next = queue->unused;
    queue->unused = notice;
    clv__vnpu_rouse(queue);
    clv__vnpu_queue_unlock(queue);
    notify(cookie);
    pthread_mutex_lock(&queue->lock);
  }
}

/* ---- Work; without the lock ---- */

static clv_status copy(clv__vnpu_queue *queue, const clv__vnpu_command *c, clv_error *error) {
  uint64_t address = c->copy.address, size_bytes = c->copy.size_bytes;
  if (size_bytes == 0) return CLV_OK;
  void *device = clv__vnpu_space_translate(queue->space, address, size_bytes);
  if (device == NULL) {
    return clv__error_set(error, CLV_DEVICE_ERROR, "copy of %llu bytes %s device address 0x%llx: this memory is not allocated",
                          (unsigned long long)size_bytes, c->kind == CLV__VNPU_COPY_IN ? "to" : "from",
                          (unsigned long long)address);
  }
  if (c->kind == CLV__VNPU_COPY_IN)
    memcpy(device, c->copy.host, size_bytes);
  else
    memcpy(c->copy.host, device, size_bytes);
  return CLV_OK;
}

/* Simulates a launch that hangs: returns only when the queue is closed. */
static clv_status hang(clv__vnpu_engine *engine, clv_error *error) {
  clv__vnpu_queue *queue = engine->queue;
  pthread_mutex_lock(&queue->lock);
  while (!queue->closing) pthread_cond_wait(&engine->work, &queue->lock);
  queue->abandoned = true;
  pthread_mutex_unlock(&queue->lock);
  return clv__error_set(error, CLV_DEVICE_ERROR, "launch %llu hung and was abandoned", (unsigned long long)queue->hang_at);
}

static clv_status work_inside(clv__vnpu_engine *engine, const clv__vnpu_command *c, const clv__stop *stop, double *seconds,
                              clv_error *error) {
  clv__vnpu_queue *queue = engine->queue;
  if (c->kind != CLV__VNPU_LAUNCH) {
    *seconds = clv__vnpu_copy_seconds(queue->speed, c->copy.size_bytes);
    return copy(queue, c, error);
  }
  uint64_t number = ++queue->launches;
  if (number == queue->hang_at) return hang(engine, error);
  if (number == queue->fail_at) {
    return clv__error_set(error, CLV_DEVICE_ERROR, "launch %llu failed, as requested by the device option 'fail'",
                          (unsigned long long)number);
  }
  c->launch->stop = stop;
  return c->launch->run(c->launch, seconds, error);
}

/* Executes one launch or copy. Makes the device's memory accessible meanwhile (clv__vnpu_space_enter()). */
static clv_status work_at(clv__vnpu_engine *engine, const clv__vnpu_command *c, const clv__stop *stop, double *seconds,
                          clv_error *error) {
  clv__vnpu_space_enter(engine->queue->space);
  clv_status status = work_inside(engine, c, stop, seconds, error);
  clv__vnpu_space_leave(engine->queue->space);
  return status;
}

static uint64_t later(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

/* Waits until a command that started at `start_ns` ends according to the speed model, or until the stream is stopped. *end_ns
 * receives the end time. */
static clv_status wait_for_model(const clv_stream *stream, uint64_t start_ns, double seconds, uint64_t *end_ns,
                                 clv_error *error) {
  *end_ns = clv__vnpu_wait_until(start_ns, seconds, &stream->stop);
  if (*end_ns > 0) return CLV_OK;
  *end_ns = clv__clock_ns();
  return clv__error_set(error, CLV_CANCELLED, "the stream was stopped");
}

/* Executes one launch or copy of a stream. Called with the lock held; releases it during the work. */
static void step(clv__vnpu_engine *engine, clv_stream *stream) {
  clv__vnpu_queue *queue = engine->queue;
  const clv__vnpu_command *c = clv__vnpu_stream_head(stream); /* remains in the ring until it is finished */
  uint64_t start_ns = later(later(stream->ready_ns, engine->free_ns), c->enqueued_ns);
  stream->busy = true;
  engine->away = c->kind == CLV__VNPU_LAUNCH;
  clv__vnpu_rouse(queue); /* other engines may have work to start */
  clv__vnpu_queue_unlock(queue);
  clv_error error;
  clv__error_clear(&error);
  double seconds = 0;
  clv_status status = work_at(engine, c, &stream->stop, &seconds, &error);
  uint64_t end_ns = start_ns;
  if (queue->speed->given && status == CLV_OK) status = wait_for_model(stream, start_ns, seconds, &end_ns, &error);
  pthread_mutex_lock(&queue->lock);
  if (queue->abandoned) return;
  stream->busy = engine->away = false;
  stream->ready_ns = engine->free_ns = end_ns;
  if (status != CLV_OK) {
    stream->failure = error;
    stream->failure.status = status;
  }
  if (c->kind == CLV__VNPU_LAUNCH) finish_launch(c->launch);
  ++stream->finished;
  clv__vnpu_advance(queue);
  engine->away = queue->due != NULL;
  clv__vnpu_notify_due(queue);
  engine->away = false;
}

/* Picks a stream whose next command is for this engine, or, with `small`, a stream whose next command is a small copy. The search
 * starts after the stream `last`, so that no stream starves. */
static clv_stream *pick_kind(clv__vnpu_engine *engine, const clv_stream *last, bool small) {
  clv__vnpu_queue *queue = engine->queue;
  clv_stream *first = NULL;
  bool passed = false;
  for (clv_stream *s = queue->streams; s != NULL; s = s->next) {
    const clv__vnpu_command *c = clv__vnpu_stream_work(s);
    bool ready = c != NULL && (small ? clv__vnpu_copy_is_small(queue, c) : clv__vnpu_engine_of(queue, c) == engine);
    if (ready && passed) return s;
    if (ready && first == NULL) first = s;
    if (s == last) passed = true;
  }
  return first;
}

/* Picks a stream whose next command this engine can start. Called with the lock held. */
static clv_stream *pick(clv__vnpu_engine *engine, const clv_stream *last) {
  clv_stream *stream = pick_kind(engine, last, false);
  return stream == NULL && engine->kind == CLV__VNPU_COMPUTE ? pick_kind(engine, last, true) : stream;
}

/* Sleeps until there may be work. If threads are marked to be woken, wakes them and returns without sleeping: the lock was
 * released, so there may be work. Called with the lock held. */
static void doze(clv__vnpu_engine *engine) {
  clv__vnpu_queue *queue = engine->queue;
  if (clv__vnpu_queue_is_owing(queue)) {
    clv__vnpu_queue_unlock(queue);
    pthread_mutex_lock(&queue->lock);
    return;
  }
  engine->asleep = true;
  pthread_cond_wait(&engine->work, &queue->lock);
  engine->asleep = false;
}

static bool is_empty(const clv__vnpu_queue *queue) {
  for (const clv_stream *s = queue->streams; s != NULL; s = s->next) {
    if (s->enqueued != s->finished) return false;
  }
  return true;
}

static void *engine_thread(void *argument) {
  clv__vnpu_engine *engine = argument;
  clv__vnpu_queue *queue = engine->queue;
#ifdef __linux__
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* makes the speed model's waits end on time */
#endif
#ifdef _OPENMP
  if (queue->thread_count > 0) omp_set_num_threads((int)queue->thread_count);
#endif
  clv_stream *last = NULL;
  pthread_mutex_lock(&queue->lock);
  while (!queue->abandoned) {
    clv_stream *stream = pick(engine, last);
    if (stream != NULL) {
      step(engine, stream);
      last = stream; /* `last` is only compared, never dereferenced, because the stream may already be destroyed */
    } else if (queue->closing && is_empty(queue)) {
      break;
    } else {
      doze(engine);
    }
  }
  for (int e = 0; e < CLV__VNPU_ENGINES; ++e) pthread_cond_broadcast(&queue->engines[e].work);
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
  return NULL;
}

static clv_status start(clv__vnpu_engine *engine, clv_error *error) {
  if (engine->started) return CLV_OK;
  int code = pthread_create(&engine->thread, NULL, engine_thread, engine);
  if (code != 0) {
    return clv__error_set(error, CLV_DEVICE_ERROR, "cannot create a thread for the %s engine: %s",
                          engine->kind == CLV__VNPU_COMPUTE ? "compute" : "copy", strerror(code));
  }
  engine->started = true;
  return CLV_OK;
}

clv_status clv__vnpu_engines_start(clv__vnpu_queue *queue, const clv__vnpu_command *command, clv_error *error) {
  CLV__TRY(start(clv__vnpu_engine_of(queue, command), error));
  return start(&queue->engines[CLV__VNPU_COMPUTE], error); /* the compute engine may run small copies */
}
