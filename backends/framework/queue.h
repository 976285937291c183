/* Streams and events. Where a device works in the caller's thread what was called before is over, and there is nothing to keep.
 * Otherwise each stream is a ring of fixed length, so that enqueueing allocates nothing, and a thread that works it off, started
 * by the first work. Marks on a stream that is idle take no thread.
 *
 * What fails on a stream makes the rest of it skip until stream_synchronize() has reported it. Events carry the failure on to
 * streams and callers that wait for them. A wait is for the last record that was enqueued before it, records of one event are
 * reached in the order in which they were enqueued, so whatever a command waits for was enqueued before it: there is no deadlock
 * to be had. */
#ifndef CLEAVE_BACKENDS_FRAMEWORK_QUEUE_H
#define CLEAVE_BACKENDS_FRAMEWORK_QUEUE_H

#include "device.h"

/* Work for a stream's thread. `run` is left out on a stream that has failed; `done` comes in any case. */
typedef struct clv__framework_work {
  clv_status (*run)(struct clv__framework_work *work, clv_error *error);
  void (*done)(struct clv__framework_work *work);
} clv__framework_work;

void clv__framework_queue_init(clv__framework_queue *queue);
/* Ends the streams' threads. False where one did not end in time: it may still touch its stream and what its work refers to, so
 * all of that stays, for ever. */
bool clv__framework_queue_stop(clv_device *device);
void clv__framework_queue_finish(clv_device *device);

/* On an asynchronous device. CLV_DEVICE_ERROR where the device was closed meanwhile. */
clv_status clv__framework_enqueue(clv_device *device, clv_stream *stream, clv__framework_work *work, clv_error *error);
clv_status clv__framework_enqueue_copy(clv_device *device, clv_stream *stream, void *to, const void *from, size_t size_bytes,
                                       clv_error *error);

/* ---- The slots ---- */
clv_status clv__framework_stream_create(clv_device *device, clv_stream **stream, clv_error *error);
void clv__framework_stream_destroy(clv_device *device, clv_stream *stream);
clv_status clv__framework_stream_synchronize(clv_device *device, clv_stream *stream, clv_error *error);
clv_status clv__framework_event_create(clv_device *device, clv_event **event, clv_error *error);
void clv__framework_event_destroy(clv_device *device, clv_event *event);
clv_status clv__framework_event_record(clv_device *device, clv_event *event, clv_stream *stream, clv_error *error);
clv_status clv__framework_event_wait(clv_device *device, clv_stream *stream, clv_event *event, clv_error *error);
clv_status clv__framework_event_synchronize(clv_device *device, clv_event *event, clv_error *error);
clv_status clv__framework_event_notify(clv_device *device, clv_event *event, clv_notify_fn notify, void *cookie,
                                       clv_error *error);

#endif
