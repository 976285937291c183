/* The device's streams, and the two engines that work them off: one computes, one copies, each a thread that starts when it is
 * first needed. So a copy on one stream overlaps with a launch on another; within a stream commands run in order, whichever
 * engine they are for. Streams are rings of fixed length: a full one makes its caller wait, so that enqueueing allocates nothing.
 *
 * Waking a thread takes longer than a small copy. So small copies wake nobody when they are enqueued: they are begun with what
 * is enqueued after them, or when somebody waits or asks to be told; and they are done by the engine that computes while that
 * has nothing to compute, so that copies, a launch and copies again need one thread to wake. With a speed model they are not
 * small: each engine has its own time.
 *
 * What fails on a stream makes the rest of it skip until stream_synchronize() has reported it. Events carry the failure on to
 * streams and callers that wait for them. A wait is for the last record that was enqueued before it, records of one event are
 * reached in the order in which they were enqueued, and so whatever a command waits for was enqueued before it: there is no
 * deadlock to be had.
 *
 * Time: with a speed model a command begins as soon as it was enqueued, its stream had come to it and its engine was free, each
 * as the model has it: a thread of this machine that wakes late costs the modelled device no time. */
#ifndef CLEAVE_BACKENDS_VNPU_QUEUE_H
#define CLEAVE_BACKENDS_VNPU_QUEUE_H

#include <pthread.h>

#include "backends/vnpu/spec/spec.h"
#include "base/memory.h"
#include "cleave/plugin/backend.h"
#include "memory.h"

typedef enum clv__vnpu_engine_kind { CLV__VNPU_COMPUTE, CLV__VNPU_DMA, CLV__VNPU_ENGINES } clv__vnpu_engine_kind;

typedef struct clv__vnpu_engine {
  struct clv__vnpu_queue *queue;
  clv__vnpu_engine_kind kind;
  pthread_cond_t work; /* there may be something to do */
  pthread_t thread;
  bool started;
  bool asleep;      /* and nobody is about to signal it */
  bool away;        /* at a launch or telling somebody, which may take its time; not at a small copy */
  uint64_t free_ns; /* when it ended what it did last */
} clv__vnpu_engine;

typedef struct clv__vnpu_queue {
  const clv_allocator *allocator;
  clv__vnpu_space *space;
  const clv__vnpu_speed *speed;
  uint32_t thread_count;     /* for the kernels' loops; 0: as many as there are cores */
  uint64_t hang_at;          /* the launch, counted from 1, that never ends; 0: none */
  uint64_t fail_at;          /* the launch that fails; 0: none */
  uint64_t launches;         /* begun so far; the compute engine's own */
  uint64_t small_copy_bytes; /* copies of less are small */
  /* Guarded by the lock, as is what streams and events hold: */
  pthread_mutex_t lock;
  pthread_cond_t changed; /* something was done */
  clv__vnpu_engine engines[CLV__VNPU_ENGINES];
  bool roused[CLV__VNPU_ENGINES]; /* to be signalled by whoever gives up the lock */
  bool stirred;                   /* so are those that wait for `changed` */
  bool closing;
  bool abandoned;                   /* closing while a launch hangs: nothing more is done */
  struct clv__vnpu_waiter *waiters; /* callers inside clv__vnpu_queue_wait() */
  clv_stream *streams;
  clv_event *events;
  struct clv__vnpu_notice *due, **due_end; /* to be called by an engine, without the lock */
  struct clv__vnpu_notice *unused;
} clv__vnpu_queue;

/* Work for the compute engine. `run` is left out on a stream that has failed; it says what the launch takes by the speed model,
 * and does not wait for that itself. `done` (may be NULL) is called in any case, with the queue's lock held. */
typedef struct clv__vnpu_launch {
  clv_status (*run)(struct clv__vnpu_launch *launch, double *seconds, clv_error *error);
  void (*done)(struct clv__vnpu_launch *launch);
  uint32_t in_flight; /* enqueued and not done; guarded by the queue's lock */
} clv__vnpu_launch;

void clv__vnpu_queue_init(clv__vnpu_queue *queue, const clv_allocator *allocator, clv__vnpu_space *space,
                          const clv__vnpu_speed *speed, uint32_t thread_count);
/* Stops the engines: what is enqueued is finished first, or abandoned where a launch hangs. Callers that still wait then get
 * CLV_DEVICE_ERROR. */
void clv__vnpu_queue_stop(clv__vnpu_queue *queue);
/* Frees a queue that was stopped, with the streams and events that are left. */
void clv__vnpu_queue_finish(clv__vnpu_queue *queue);
/* With the lock held: sleeps until `count`, which only grows, is at least `target`; without a count, until something was done. Or
 * not at all: ask again what you wait for. False: the queue was abandoned, nothing will be done any more. */
bool clv__vnpu_queue_wait(clv__vnpu_queue *queue, const uint64_t *count, uint64_t target);

clv_status clv__vnpu_stream_create(clv__vnpu_queue *queue, clv_stream **stream, clv_error *error);
void clv__vnpu_stream_destroy(clv__vnpu_queue *queue, clv_stream *stream); /* finishes it first; accepts NULL */
clv_status clv__vnpu_stream_synchronize(clv__vnpu_queue *queue, clv_stream *stream, clv_error *error);
/* What the stream's executions are recorded in instead of being enqueued; NULL: they are enqueued. Nothing else may be enqueued
 * in between. Of the thread that uses the stream. */
clv_captured *clv__vnpu_stream_capture(const clv_stream *stream);
void clv__vnpu_stream_set_capture(clv__vnpu_queue *queue, clv_stream *stream, clv_captured *captured);

clv_status clv__vnpu_event_create(clv__vnpu_queue *queue, clv_event **event, clv_error *error);
void clv__vnpu_event_destroy(clv__vnpu_queue *queue, clv_event *event); /* once no command needs it; accepts NULL */
clv_status clv__vnpu_event_record(clv__vnpu_queue *queue, clv_event *event, clv_stream *stream, clv_error *error);
clv_status clv__vnpu_event_wait(clv__vnpu_queue *queue, clv_stream *stream, clv_event *event, clv_error *error);
clv_status clv__vnpu_event_synchronize(clv__vnpu_queue *queue, clv_event *event, clv_error *error);
/* Calls `notify` once the last record enqueued so far was reached: from an engine's thread, or at once; no lock is held then. A
 * queue that is abandoned calls nobody. */
clv_status clv__vnpu_event_notify(clv__vnpu_queue *queue, clv_event *event, clv_notify_fn notify, void *cookie, clv_error *error);

/* `to` or `from` is a device address; the range was checked. */
clv_status clv__vnpu_stream_copy_in(clv__vnpu_queue *queue, clv_stream *stream, uint64_t to, const void *from,
                                    uint64_t size_bytes, clv_error *error);
clv_status clv__vnpu_stream_copy_out(clv__vnpu_queue *queue, clv_stream *stream, void *to, uint64_t from, uint64_t size_bytes,
                                     clv_error *error);
clv_status clv__vnpu_stream_launch(clv__vnpu_queue *queue, clv_stream *stream, clv__vnpu_launch *launch, clv_error *error);

#endif
