/* The device's thread and its streams: see queue.h. */
#include "queue.h"

#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "base/error.h"
#include "speed.h"

enum { RING = 256 }; /* commands a stream holds before its caller waits */

typedef enum command_kind { COPY_IN, COPY_OUT, LAUNCH, RECORD, WAIT } command_kind;

typedef struct command {
  command_kind kind;
  void *host; /* copies; its memory is only read by COPY_IN */
  uint64_t address;
  uint64_t size_bytes;
  clv__vnpu_launch *launch;
  clv_event *event;
  uint64_t ticket; /* which record of the event */
} command;

struct clv_stream {
  clv__vnpu_queue *queue;
  clv_stream *next;
  uint64_t enqueued, finished; /* commands so far; the ring holds those between */
  clv_error failure;           /* status CLV_OK: none */
  command ring[RING];
};

struct clv_event {
  clv__vnpu_queue *queue;
  uint64_t recorded, reached; /* tickets: the last enqueued, the last executed */
  uint32_t pending;           /* commands that name it */
  clv_error failure;          /* of the stream at the last record executed */
};

static clv_status execute(clv__vnpu_queue *queue, const command *c, clv_error *error) {
  if (c->kind == LAUNCH) return c->launch->run(c->launch, error);
  uint64_t start = clv__vnpu_now_ns();
  void *device = clv__vnpu_space_translate(queue->space, c->address, c->size_bytes);
  if (device == NULL && c->size_bytes > 0) {
    return clv__error_set(error, CLV_DEVICE_ERROR, "copy of %llu bytes %s device address 0x%llx: no memory there",
                          (unsigned long long)c->size_bytes, c->kind == COPY_IN ? "to" : "from", (unsigned long long)c->address);
  }
  if (c->size_bytes > 0) {
    if (c->kind == COPY_IN)
      memcpy(device, c->host, c->size_bytes);
    else
      memcpy(c->host, device, c->size_bytes);
  }
  clv__vnpu_wait_until(start, clv__vnpu_copy_seconds(queue->speed, c->size_bytes));
  return CLV_OK;
}

/* A stream whose head can run now. With the lock held. Starts after `last`, so that no stream starves. */
static clv_stream *pick(clv__vnpu_queue *queue, const clv_stream *last) {
  clv_stream *first = NULL, *later = NULL;
  bool passed = false;
  for (clv_stream *s = queue->streams; s != NULL; s = s->next) {
    const command *head = &s->ring[s->finished % RING];
    bool ready = s->enqueued != s->finished && (head->kind != WAIT || head->event->reached >= head->ticket);
    if (ready && first == NULL) first = s;
    if (ready && passed && later == NULL) later = s;
    if (s == last) passed = true;
  }
  return later != NULL ? later : first;
}

/* Takes one command off its stream. Called with the lock held, which it gives up while work is done. */
static void step(clv__vnpu_queue *queue, clv_stream *stream) {
  command *c = &stream->ring[stream->finished % RING];
  if (c->kind == RECORD) {
    if (c->ticket > c->event->reached) {
      c->event->reached = c->ticket;
      c->event->failure = stream->failure;
    }
    --c->event->pending;
  } else if (c->kind == WAIT) {
    if (stream->failure.status == CLV_OK) stream->failure = c->event->failure;
    --c->event->pending;
  } else if (stream->failure.status == CLV_OK) {
    pthread_mutex_unlock(&queue->lock);
    clv_error error = {0};
    clv_status status = execute(queue, c, &error);
    pthread_mutex_lock(&queue->lock);
    if (status != CLV_OK) {
      stream->failure = error;
      stream->failure.status = status;
    }
  }
  if (c->kind == LAUNCH) c->launch->done(c->launch);
  ++stream->finished;
  pthread_cond_broadcast(&queue->changed);
}

static void *device_thread(void *argument) {
  clv__vnpu_queue *queue = argument;
#ifdef _OPENMP
  if (queue->thread_count > 0) omp_set_num_threads((int)queue->thread_count);
#endif
  clv_stream *last = NULL;
  pthread_mutex_lock(&queue->lock);
  for (;;) {
    clv_stream *stream = pick(queue, last);
    if (stream != NULL) {
      step(queue, stream);
      last = stream; /* only compared, never followed: the stream may be gone by then */
    } else if (queue->closing) {
      break; /* a wait is for a record enqueued earlier, so nothing ready means nothing left */
    } else {
      pthread_cond_wait(&queue->work, &queue->lock);
    }
  }
  pthread_mutex_unlock(&queue->lock);
  return NULL;
}

clv_status clv__vnpu_queue_start(clv__vnpu_queue *queue, const clv_allocator *allocator, clv__vnpu_space *space,
                                 const clv__vnpu_speed *speed, uint32_t thread_count, clv_error *error) {
  *queue = (clv__vnpu_queue){.allocator = allocator, .space = space, .speed = speed, .thread_count = thread_count};
  pthread_mutex_init(&queue->lock, NULL);
  pthread_cond_init(&queue->work, NULL);
  pthread_cond_init(&queue->changed, NULL);
  int code = pthread_create(&queue->thread, NULL, device_thread, queue);
  if (code != 0) {
    clv__vnpu_queue_stop(queue);
    return clv__error_set(error, CLV_DEVICE_ERROR, "pthread_create for the device's thread: %s", strerror(code));
  }
  queue->started = true;
  return CLV_OK;
}

void clv__vnpu_queue_stop(clv__vnpu_queue *queue) {
  if (queue->started) {
    pthread_mutex_lock(&queue->lock);
    queue->closing = true;
    pthread_cond_broadcast(&queue->work);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    queue->started = false;
  }
  while (queue->streams != NULL) {
    clv_stream *stream = queue->streams;
    queue->streams = stream->next;
    clv__release(queue->allocator, stream);
  }
  pthread_cond_destroy(&queue->changed);
  pthread_cond_destroy(&queue->work);
  pthread_mutex_destroy(&queue->lock);
}

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

static void drain(clv__vnpu_queue *queue, const clv_stream *stream) {
  uint64_t target = stream->enqueued;
  while (stream->finished < target) pthread_cond_wait(&queue->changed, &queue->lock);
}

void clv__vnpu_stream_destroy(clv__vnpu_queue *queue, clv_stream *stream) {
  if (stream == NULL) return;
  pthread_mutex_lock(&queue->lock);
  drain(queue, stream);
  clv_stream **link = &queue->streams;
  while (*link != stream) link = &(*link)->next;
  *link = stream->next;
  pthread_mutex_unlock(&queue->lock);
  clv__release(queue->allocator, stream);
}

static clv_status report(const clv_error *failure, clv_error *error) {
  if (failure->status != CLV_OK && error != NULL) *error = *failure;
  return failure->status;
}

clv_status clv__vnpu_stream_synchronize(clv__vnpu_queue *queue, clv_stream *stream, clv_error *error) {
  pthread_mutex_lock(&queue->lock);
  drain(queue, stream);
  clv_status status = report(&stream->failure, error);
  stream->failure.status = CLV_OK;
  pthread_mutex_unlock(&queue->lock);
  return status;
}

clv_status clv__vnpu_event_create(clv__vnpu_queue *queue, clv_event **out, clv_error *error) {
  *out = clv__allocate_zero(queue->allocator, sizeof **out);
  if (*out == NULL) return clv__error_memory(error, sizeof **out);
  (*out)->queue = queue;
  return CLV_OK;
}

void clv__vnpu_event_destroy(clv__vnpu_queue *queue, clv_event *event) {
  if (event == NULL) return;
  pthread_mutex_lock(&queue->lock);
  while (event->pending > 0) pthread_cond_wait(&queue->changed, &queue->lock);
  pthread_mutex_unlock(&queue->lock);
  clv__release(queue->allocator, event);
}

/* With the lock held. */
static void wait_for_room(clv__vnpu_queue *queue, const clv_stream *stream) {
  while (stream->enqueued - stream->finished >= RING) pthread_cond_wait(&queue->changed, &queue->lock);
}

/* With the lock held, and room. */
static void enqueue(clv__vnpu_queue *queue, clv_stream *stream, const command *c) {
  stream->ring[stream->enqueued++ % RING] = *c;
  pthread_cond_signal(&queue->work);
}

static clv_status enqueue_event(clv__vnpu_queue *queue, clv_stream *stream, clv_event *event, command_kind kind,
                                clv_error *error) {
  if (stream->queue != queue || event->queue != queue) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "stream and event belong to another device");
  }
  pthread_mutex_lock(&queue->lock);
  wait_for_room(queue, stream); /* before the ticket: a ticket is only given to a record that is in its ring */
  uint64_t ticket = kind == RECORD ? ++event->recorded : event->recorded;
  ++event->pending;
  enqueue(queue, stream, &(command){.kind = kind, .event = event, .ticket = ticket});
  pthread_mutex_unlock(&queue->lock);
  return CLV_OK;
}

clv_status clv__vnpu_event_record(clv__vnpu_queue *queue, clv_event *event, clv_stream *stream, clv_error *error) {
  return enqueue_event(queue, stream, event, RECORD, error);
}

clv_status clv__vnpu_event_wait(clv__vnpu_queue *queue, clv_stream *stream, clv_event *event, clv_error *error) {
  return enqueue_event(queue, stream, event, WAIT, error);
}

clv_status clv__vnpu_event_synchronize(clv__vnpu_queue *queue, clv_event *event, clv_error *error) {
  pthread_mutex_lock(&queue->lock);
  uint64_t target = event->recorded;
  while (event->reached < target) pthread_cond_wait(&queue->changed, &queue->lock);
  clv_status status = report(&event->failure, error);
  pthread_mutex_unlock(&queue->lock);
  return status;
}

static clv_status enqueue_work(clv__vnpu_queue *queue, clv_stream *stream, const command *c, clv_error *error) {
  if (stream->queue != queue) return clv__error_set(error, CLV_INVALID_ARGUMENT, "the stream belongs to another device");
  pthread_mutex_lock(&queue->lock);
  wait_for_room(queue, stream);
  enqueue(queue, stream, c);
  pthread_mutex_unlock(&queue->lock);
  return CLV_OK;
}

clv_status clv__vnpu_stream_copy_in(clv__vnpu_queue *queue, clv_stream *stream, uint64_t to, const void *from,
                                    uint64_t size_bytes, clv_error *error) {
  command c = {.kind = COPY_IN, .host = (void *)from, .address = to, .size_bytes = size_bytes};
  return enqueue_work(queue, stream, &c, error);
}

clv_status clv__vnpu_stream_copy_out(clv__vnpu_queue *queue, clv_stream *stream, void *to, uint64_t from, uint64_t size_bytes,
                                     clv_error *error) {
  command c = {.kind = COPY_OUT, .host = to, .address = from, .size_bytes = size_bytes};
  return enqueue_work(queue, stream, &c, error);
}

clv_status clv__vnpu_stream_launch(clv__vnpu_queue *queue, clv_stream *stream, clv__vnpu_launch *launch, clv_error *error) {
  return enqueue_work(queue, stream, &(command){.kind = LAUNCH, .launch = launch}, error);
}
