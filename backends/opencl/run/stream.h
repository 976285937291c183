/* Streams are in-order queues, and events are markers in them. A failure in a queue is reported to the caller that waits for
 * the stream or for an event. */
#ifndef CLEAVE_BACKENDS_OPENCL_RUN_STREAM_H
#define CLEAVE_BACKENDS_OPENCL_RUN_STREAM_H

#include "backends/opencl/device.h"
#include "faults.h"
#include "pace.h"
#include "staging.h"

struct clv_stream {
  clv__object object;
  cl_command_queue queue;  /* created on first use */
  clv_captured *recording; /* the capture that is being recorded; NULL if none is */
  clv__opencl_staging staging;
  clv__opencl_pace pace;
  clv__opencl_watch *watch; /* input errors of its executions; NULL if no kernel checks its input */
};

/* Returns the stream's queue, and creates it on first use. */
clv_status clv__opencl_stream_queue(clv_device *device, clv_stream *stream, cl_command_queue *queue, clv_error *error);

/* Frees the reusable notices when the device is closed. */
void clv__opencl_notices_finish(clv_device *device);

clv_status clv__opencl_stream_create(clv_device *device, clv_stream **stream, clv_error *error);
void clv__opencl_stream_destroy(clv_device *device, clv_stream *stream);
clv_status clv__opencl_stream_synchronize(clv_device *device, clv_stream *stream, clv_error *error);
clv_status clv__opencl_stream_stop(clv_device *device, clv_stream *stream, clv_error *error);
clv_status clv__opencl_event_create(clv_device *device, clv_event **event, clv_error *error);
void clv__opencl_event_destroy(clv_device *device, clv_event *event);
clv_status clv__opencl_event_record(clv_device *device, clv_event *event, clv_stream *stream, clv_error *error);
clv_status clv__opencl_event_wait(clv_device *device, clv_stream *stream, clv_event *event, clv_error *error);
clv_status clv__opencl_event_synchronize(clv_device *device, clv_event *event, clv_error *error);
clv_status clv__opencl_event_notify(clv_device *device, clv_event *event, clv_notify_fn notify, void *cookie, clv_error *error);
clv_status clv__opencl_copy_in(clv_device *device, clv_stream *stream, clv_buffer *to, uint64_t to_offset, const void *from,
                               uint64_t size_bytes, clv_error *error);
clv_status clv__opencl_copy_out(clv_device *device, clv_stream *stream, void *to, clv_buffer *from, uint64_t from_offset,
                                uint64_t size_bytes, clv_error *error);

#endif
