/* The device's streams, and the two engines that execute them: a compute engine and a copy engine. Each engine is a thread, so
 * a copy on one stream can overlap with a launch on another. The thread starts when it is first needed. The commands of one
 * stream run in order, even if different engines run them. Streams are rings of fixed length. A full ring blocks its caller, so
 * enqueueing never allocates.
 *
 * Waking a thread takes longer than a small copy. So enqueueing a small copy wakes no thread. The copy starts when a launch or a
 * larger copy is enqueued after it, or when a caller waits or requests a notification. The compute engine runs small copies while
 * it has no launches, so a sequence of copies, a launch and copies wakes only one thread. With a speed model no copy counts as
 * small, because the model keeps a separate time for each engine.
 *
 * After a failure on a stream, its later launches and copies are skipped until stream_synchronize() has reported the failure. A
 * stopped stream fails with CLV_CANCELLED as soon as one of its commands is skipped or ends early. Events carry the failure to
 * the streams and callers that wait for them. A wait is for the last record that was enqueued before it. The records of one
 * event are reached in the order in which they were enqueued. So a command waits only for commands that were enqueued before
 * it, and a deadlock is impossible.
 *
 * Time: with a speed model, a command starts at the latest of three times: when it was enqueued, when its stream's previous
 * command ended, and when its engine became free. The last two are times of the model, so a host thread that wakes late does not
 * delay the modelled device. */
#ifndef CLEAVE_BACKENDS_VNPU_QUEUE_H
#define CLEAVE_BACKENDS_VNPU_QUEUE_H

#include <pthread.h>

#include "backends/vnpu/spec/spec.h"
#include "base/memory.h"
#include "base/stop.h"
#include "cleave/plugin/backend.h"
#include "memory.h"

typedef enum clv__vnpu_engine_kind { CLV__VNPU_COMPUTE, CLV__VNPU_DMA, CLV__VNPU_ENGINES } clv__vnpu_engine_kind;

typedef struct clv__vnpu_engine {
  struct clv__vnpu_queue *queue;
  clv__vnpu_engine_kind kind;
  pthread_cond_t work; /* signalled when there may be work */
  pthread_t thread;
  bool started;
  bool asleep;      /* the thread sleeps, and nobody has signalled it */
  bool away;        /* the thread runs a launch or a notification, which may take long; false during a small copy */
  uint64_t free_ns; /* when its last command ended, according to the model */
} clv__vnpu_engine;

typedef struct clv__vnpu_queue {
  const clv_allocator *allocator;
  clv__vnpu_space *space;
  const clv__vnpu_speed *speed;
  uint32_t thread_count;     /* threads for the kernels' loops; 0: one per core */
  uint64_t hang_at;          /* number, counted from 1, of the launch that never ends; 0: none */
  uint64_t fail_at;          /* number, counted from 1, of the launch that fails; 0: none */
  uint64_t launches;         /* number of launches started so far; used only by the compute engine */
  uint64_t small_copy_bytes; /* copies of fewer bytes count as small */
  /* Guarded by the lock, as are the contents of streams and events: */
  pthread_mutex_t lock;
  pthread_cond_t changed; /* signalled when a wait may be over */
  clv__vnpu_engine engines[CLV__VNPU_ENGINES];
  bool roused[CLV__VNPU_ENGINES]; /* indexed by engine: whether to signal it when the lock is released */
  bool stirred;                   /* whether to wake the waiters on `changed` when the lock is released */
  bool closing;
  bool abandoned;                   /* the queue was closed while a launch hung or a caller waited: no further command runs */
  struct clv__vnpu_waiter *waiters; /* callers inside clv__vnpu_queue_wait() */
  clv_stream *streams;
  clv_event *events;
  struct clv__vnpu_notice *due, **due_end; /* notifications to send, which an engine does without the lock */
  struct clv__vnpu_notice *unused;
} clv__vnpu_queue;

/* Work for the compute engine. `run` is skipped on a stream that has failed. It sets `*seconds` to the launch's duration
 * according to the speed model, but does not wait: the engine does. `done` (may be NULL) is always called, with the queue's lock
 * held. */
typedef struct clv__vnpu_launch {
  clv_status (*run)(struct clv__vnpu_launch *launch, double *seconds, clv_error *error);
  void (*done)(struct clv__vnpu_launch *launch);
  const clv__stop *stop; /* set for the time of `run`, which ends with CLV_CANCELLED once the flag is set */
  uint32_t in_flight;    /* number of times it is enqueued and not finished; guarded by the queue's lock */
} clv__vnpu_launch;

void clv__vnpu_queue_init(clv__vnpu_queue *queue, const clv_allocator *allocator, clv__vnpu_space *space,
                          const clv__vnpu_speed *speed, uint32_t thread_count);
/* Stops all streams, then the engines. If a launch hangs, the remaining commands are abandoned, and callers that still wait get
 * CLV_DEVICE_ERROR. */
void clv__vnpu_queue_stop(clv__vnpu_queue *queue);
/* Frees a stopped queue, with its remaining streams and events. */
void clv__vnpu_queue_finish(clv__vnpu_queue *queue);
/* Sleeps until `*count`, which only grows, reaches `target`; if `count` is NULL, until any command has finished. May return
 * early, so check the condition again. Returns false if the queue was abandoned, so that no further command will run. Call with
 * the lock held. */
bool clv__vnpu_queue_wait(clv__vnpu_queue *queue, const uint64_t *count, uint64_t target);

clv_status clv__vnpu_stream_create(clv__vnpu_queue *queue, clv_stream **stream, clv_error *error);
void clv__vnpu_stream_destroy(clv__vnpu_queue *queue, clv_stream *stream); /* waits for its commands first; accepts NULL */
clv_status clv__vnpu_stream_synchronize(clv__vnpu_queue *queue, clv_stream *stream, clv_error *error);
/* See clv_backend.stream_stop. Any thread may call it. */
void clv__vnpu_stream_stop(clv__vnpu_queue *queue, clv_stream *stream);
/* Returns the stream's capture, or NULL if it is not being captured. During a capture, executions are recorded instead of
 * enqueued, and no other command may be enqueued. Call only from the thread that uses the stream. */
clv_captured *clv__vnpu_stream_capture(const clv_stream *stream);
void clv__vnpu_stream_set_capture(clv__vnpu_queue *queue, clv_stream *stream, clv_captured *captured);

clv_status clv__vnpu_event_create(clv__vnpu_queue *queue, clv_event **event, clv_error *error);
void clv__vnpu_event_destroy(clv__vnpu_queue *queue, clv_event *event); /* waits until no command refers to it; accepts NULL */
clv_status clv__vnpu_event_record(clv__vnpu_queue *queue, clv_event *event, clv_stream *stream, clv_error *error);
clv_status clv__vnpu_event_wait(clv__vnpu_queue *queue, clv_stream *stream, clv_event *event, clv_error *error);
clv_status clv__vnpu_event_synchronize(clv__vnpu_queue *queue, clv_event *event, clv_error *error);
/* Calls `notify` once the last record enqueued so far is reached. `notify` is called without any lock held: by an engine's
 * thread, or by this function if the record is already reached. An abandoned queue never calls it. */
clv_status clv__vnpu_event_notify(clv__vnpu_queue *queue, clv_event *event, clv_notify_fn notify, void *cookie, clv_error *error);

/* Enqueue a copy. The device address (`to` or `from`) and its range must have been checked. */
clv_status clv__vnpu_stream_copy_in(clv__vnpu_queue *queue, clv_stream *stream, uint64_t to, const void *from,
                                    uint64_t size_bytes, clv_error *error);
clv_status clv__vnpu_stream_copy_out(clv__vnpu_queue *queue, clv_stream *stream, void *to, uint64_t from, uint64_t size_bytes,
                                     clv_error *error);
clv_status clv__vnpu_stream_launch(clv__vnpu_queue *queue, clv_stream *stream, clv__vnpu_launch *launch, clv_error *error);

#endif
