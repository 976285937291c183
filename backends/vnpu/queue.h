/* The device's streams, and the two engines that execute them: a compute engine and a copy engine. Each engine is a thread that
 * starts when it is first needed. So a copy on one stream overlaps with a launch on another. Within a stream, commands run in
 * order, whichever engine runs them. Streams are rings of fixed length. A full ring blocks its caller, so enqueueing never
 * allocates.
 *
 * Waking a thread takes longer than a small copy. So enqueueing a small copy wakes no thread. The copy starts when a larger
 * command is enqueued after it, or when a caller waits or asks for a notification. The compute engine runs small copies while it
 * has no launches, so a sequence of copies, a launch and copies wakes only one thread. With a speed model no copy is small,
 * because each engine then has its own time.
 *
 * After a failure on a stream, the rest of the stream is skipped until stream_synchronize() has reported the failure. Events
 * carry the failure to the streams and callers that wait for them. A wait is for the last record that was enqueued before it. The
 * records of one event are reached in the order in which they were enqueued. So a command waits only for commands that were
 * enqueued before it, and a deadlock is impossible.
 *
 * Time: with a speed model a command begins as soon as it is enqueued, its stream has reached it, and its engine is free. All
 * three times are the model's. A host thread that wakes late costs the modelled device no time. */
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
  pthread_cond_t work; /* signals that there may be work */
  pthread_t thread;
  bool started;
  bool asleep;      /* and no signal to it is pending */
  bool away;        /* runs a launch or a notification, which may take long; false during a small copy */
  uint64_t free_ns; /* when its last command ended */
} clv__vnpu_engine;

typedef struct clv__vnpu_queue {
  const clv_allocator *allocator;
  clv__vnpu_space *space;
  const clv__vnpu_speed *speed;
  uint32_t thread_count;     /* threads for the kernels' loops; 0: one per core */
  uint64_t hang_at;          /* number, counted from 1, of the launch that never ends; 0: none */
  uint64_t fail_at;          /* number of the launch that fails; 0: none */
  uint64_t launches;         /* started so far; used only by the compute engine */
  uint64_t small_copy_bytes; /* smaller copies count as small */
  /* Guarded by the lock, as are the contents of streams and events: */
  pthread_mutex_t lock;
  pthread_cond_t changed; /* signals progress */
  clv__vnpu_engine engines[CLV__VNPU_ENGINES];
  bool roused[CLV__VNPU_ENGINES]; /* the thread that releases the lock signals these engines */
  bool stirred;                   /* the thread that releases the lock wakes the waiters on `changed` */
  bool closing;
  bool abandoned;                   /* closed while a launch hangs: no further command runs */
  struct clv__vnpu_waiter *waiters; /* callers inside clv__vnpu_queue_wait() */
  clv_stream *streams;
  clv_event *events;
  struct clv__vnpu_notice *due, **due_end; /* notifications that an engine sends, without the lock */
  struct clv__vnpu_notice *unused;
} clv__vnpu_queue;

/* Work for the compute engine. `run` is skipped on a stream that has failed. It returns the launch's duration according to the
 * speed model, and does not wait for that time itself. `done` (may be NULL) is always called, with the queue's lock held. */
typedef struct clv__vnpu_launch {
  clv_status (*run)(struct clv__vnpu_launch *launch, double *seconds, clv_error *error);
  void (*done)(struct clv__vnpu_launch *launch);
  uint32_t in_flight; /* enqueued and not finished; guarded by the queue's lock */
} clv__vnpu_launch;

void clv__vnpu_queue_init(clv__vnpu_queue *queue, const clv_allocator *allocator, clv__vnpu_space *space,
                          const clv__vnpu_speed *speed, uint32_t thread_count);
/* Stops the engines. Enqueued commands finish first, or are abandoned if a launch hangs. Callers that are still waiting then get
 * CLV_DEVICE_ERROR. */
void clv__vnpu_queue_stop(clv__vnpu_queue *queue);
/* Frees a stopped queue, with its remaining streams and events. */
void clv__vnpu_queue_finish(clv__vnpu_queue *queue);
/* Call with the lock held. Sleeps until `count`, which only grows, reaches `target`; without a count, until any progress. It may
 * return early, so check the condition again. Returns false if the queue was abandoned: no further command will run. */
bool clv__vnpu_queue_wait(clv__vnpu_queue *queue, const uint64_t *count, uint64_t target);

clv_status clv__vnpu_stream_create(clv__vnpu_queue *queue, clv_stream **stream, clv_error *error);
void clv__vnpu_stream_destroy(clv__vnpu_queue *queue, clv_stream *stream); /* waits for its commands first; accepts NULL */
clv_status clv__vnpu_stream_synchronize(clv__vnpu_queue *queue, clv_stream *stream, clv_error *error);
/* The capture that records the stream's executions, which are then not enqueued. NULL: the stream is not being captured. During a
 * capture no other command may be enqueued. Call only from the thread that uses the stream. */
clv_captured *clv__vnpu_stream_capture(const clv_stream *stream);
void clv__vnpu_stream_set_capture(clv__vnpu_queue *queue, clv_stream *stream, clv_captured *captured);

clv_status clv__vnpu_event_create(clv__vnpu_queue *queue, clv_event **event, clv_error *error);
void clv__vnpu_event_destroy(clv__vnpu_queue *queue, clv_event *event); /* waits until no command refers to it; accepts NULL */
clv_status clv__vnpu_event_record(clv__vnpu_queue *queue, clv_event *event, clv_stream *stream, clv_error *error);
clv_status clv__vnpu_event_wait(clv__vnpu_queue *queue, clv_stream *stream, clv_event *event, clv_error *error);
clv_status clv__vnpu_event_synchronize(clv__vnpu_queue *queue, clv_event *event, clv_error *error);
/* Calls `notify` once the last record enqueued so far is reached. The call comes from an engine's thread, or immediately from
 * this one, and without any lock held. An abandoned queue makes no calls. */
clv_status clv__vnpu_event_notify(clv__vnpu_queue *queue, clv_event *event, clv_notify_fn notify, void *cookie, clv_error *error);

/* One of `to` and `from` is a device address. The caller has checked the range. */
clv_status clv__vnpu_stream_copy_in(clv__vnpu_queue *queue, clv_stream *stream, uint64_t to, const void *from,
                                    uint64_t size_bytes, clv_error *error);
clv_status clv__vnpu_stream_copy_out(clv__vnpu_queue *queue, clv_stream *stream, void *to, uint64_t from, uint64_t size_bytes,
                                     clv_error *error);
clv_status clv__vnpu_stream_launch(clv__vnpu_queue *queue, clv_stream *stream, clv__vnpu_launch *launch, clv_error *error);

#endif
