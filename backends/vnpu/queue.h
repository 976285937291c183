/* The device's thread and its streams. One thread executes the commands of all streams; within a stream they run in order.
 * Streams are rings of fixed length: a full one makes its caller wait, so that enqueueing allocates nothing.
 *
 * What fails on a stream makes the rest of it skip until stream_synchronize() has reported it. Events carry the failure on to
 * streams and callers that wait for them. A wait is for the last record that was enqueued before it: there is no deadlock to be
 * had. */
#ifndef CLEAVE_BACKENDS_VNPU_QUEUE_H
#define CLEAVE_BACKENDS_VNPU_QUEUE_H

#include <pthread.h>

#include "base/memory.h"
#include "cleave/plugin/backend.h"
#include "memory.h"
#include "spec.h"

typedef struct clv__vnpu_queue {
  const clv_allocator *allocator;
  clv__vnpu_space *space;
  const clv__vnpu_speed *speed;
  uint32_t thread_count; /* for the kernels' loops; 0: as many as there are cores */
  pthread_mutex_t lock;
  pthread_cond_t work;    /* there may be something to do */
  pthread_cond_t changed; /* something was done */
  pthread_t thread;
  bool started;
  bool closing;
  clv_stream *streams;
} clv__vnpu_queue;

/* Work for the device thread. `run` is left out on a stream that has failed; `done` is called in any case, and then the launch
 * may be used again. */
typedef struct clv__vnpu_launch {
  clv_status (*run)(struct clv__vnpu_launch *launch, clv_error *error);
  void (*done)(struct clv__vnpu_launch *launch); /* with the queue's lock held */
} clv__vnpu_launch;

clv_status clv__vnpu_queue_start(clv__vnpu_queue *queue, const clv_allocator *allocator, clv__vnpu_space *space,
                                 const clv__vnpu_speed *speed, uint32_t thread_count, clv_error *error);
/* Finishes what is enqueued, then stops the thread and frees streams that are left. */
void clv__vnpu_queue_stop(clv__vnpu_queue *queue);

clv_status clv__vnpu_stream_create(clv__vnpu_queue *queue, clv_stream **stream, clv_error *error);
void clv__vnpu_stream_destroy(clv__vnpu_queue *queue, clv_stream *stream); /* finishes it first; accepts NULL */
clv_status clv__vnpu_stream_synchronize(clv__vnpu_queue *queue, clv_stream *stream, clv_error *error);

clv_status clv__vnpu_event_create(clv__vnpu_queue *queue, clv_event **event, clv_error *error);
void clv__vnpu_event_destroy(clv__vnpu_queue *queue, clv_event *event); /* once no command needs it; accepts NULL */
clv_status clv__vnpu_event_record(clv__vnpu_queue *queue, clv_event *event, clv_stream *stream, clv_error *error);
clv_status clv__vnpu_event_wait(clv__vnpu_queue *queue, clv_stream *stream, clv_event *event, clv_error *error);
clv_status clv__vnpu_event_synchronize(clv__vnpu_queue *queue, clv_event *event, clv_error *error);

/* `to` or `from` is a device address; the range was checked. */
clv_status clv__vnpu_stream_copy_in(clv__vnpu_queue *queue, clv_stream *stream, uint64_t to, const void *from,
                                    uint64_t size_bytes, clv_error *error);
clv_status clv__vnpu_stream_copy_out(clv__vnpu_queue *queue, clv_stream *stream, void *to, uint64_t from, uint64_t size_bytes,
                                     clv_error *error);
clv_status clv__vnpu_stream_launch(clv__vnpu_queue *queue, clv_stream *stream, clv__vnpu_launch *launch, clv_error *error);

#endif
