/* Streams and events. If a device works in the caller's thread, every call is complete when it returns, and no queue is needed.
 * Otherwise each stream has a thread, which executes the commands in the stream's ring. The ring has a fixed length, so that
 * enqueueing never allocates. The first work starts the thread. On an idle stream, records of events and waits for them need no
 * thread.
 *
 * After a failure on a stream, its later work and copies are skipped until stream_synchronize() has reported the failure.
 * Events carry the failure to the streams and callers that wait for them. A wait is for the last record that was enqueued
 * before it. The records of one event are reached in the order in which they were enqueued. So a command waits only for
 * commands that were enqueued before it, and a deadlock is impossible.
 *
 * A stream that is stopped skips the work that has not begun, and asks the framework to end the request that runs. From then on
 * it is like a stream that failed with CLV_CANCELLED. That also holds for devices that work in the caller's thread. */
#ifndef CLEAVE_BACKENDS_FRAMEWORK_QUEUE_H
#define CLEAVE_BACKENDS_FRAMEWORK_QUEUE_H

#include "device.h"

/* Work on a stream. A stream's thread skips `run` if the stream has failed, and then calls `done` in any case, with the lock
 * held. clv__framework_run_here() does not call `done`. */
typedef struct clv__framework_work {
  clv_status (*run)(struct clv__framework_work *work, clv_error *error);
  void (*done)(struct clv__framework_work *work);
  /* Both are called with the lock held. stop() makes a run() in progress end early. resume() is called before each run(), and
   * cancels the effect of an earlier stop(). */
  void (*stop)(struct clv__framework_work *work);
  void (*resume)(struct clv__framework_work *work);
} clv__framework_work;

void clv__framework_queue_init(clv__framework_queue *queue);
/* Ends the streams' threads. Returns false if a thread did not end within two seconds. That thread may still access its stream
 * and the data of its work, so the caller must then free nothing of the device. */
bool clv__framework_queue_stop(clv_device *device);
void clv__framework_queue_finish(clv_device *device);

/* Enqueues work on an asynchronous device. Waits while the ring is full. Returns CLV_DEVICE_ERROR if the device was closed
 * meanwhile, or if the stream's thread cannot be created. */
clv_status clv__framework_enqueue(clv_device *device, clv_stream *stream, clv__framework_work *work, clv_error *error);
/* For a device that works in the caller's thread: runs the work, unless the stream was stopped. */
clv_status clv__framework_run_here(clv_device *device, clv_stream *stream, clv__framework_work *work, clv_error *error);
/* Enqueues a copy, like clv__framework_enqueue(). */
clv_status clv__framework_enqueue_copy(clv_device *device, clv_stream *stream, void *to, const void *from, size_t size_bytes,
                                       clv_error *error);

/* ---- The slots ---- */
clv_status clv__framework_stream_create(clv_device *device, clv_stream **stream, clv_error *error);
void clv__framework_stream_destroy(clv_device *device, clv_stream *stream);
clv_status clv__framework_stream_synchronize(clv_device *device, clv_stream *stream, clv_error *error);
clv_status clv__framework_stream_stop(clv_device *device, clv_stream *stream, clv_error *error);
clv_status clv__framework_event_create(clv_device *device, clv_event **event, clv_error *error);
void clv__framework_event_destroy(clv_device *device, clv_event *event);
clv_status clv__framework_event_record(clv_device *device, clv_event *event, clv_stream *stream, clv_error *error);
clv_status clv__framework_event_wait(clv_device *device, clv_stream *stream, clv_event *event, clv_error *error);
clv_status clv__framework_event_synchronize(clv_device *device, clv_event *event, clv_error *error);
clv_status clv__framework_event_notify(clv_device *device, clv_event *event, clv_notify_fn notify, void *cookie,
                                       clv_error *error);

#endif
