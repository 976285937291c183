/* Streams and events, and the recording of a stream. Streams and events only remember that work was stopped, because execute()
 * runs in the caller's thread and returns when it is complete. */
#ifndef CLEAVE_BACKENDS_CPU_RUN_STREAM_H
#define CLEAVE_BACKENDS_CPU_RUN_STREAM_H

#include "executable.h"

struct clv_stream {
  clv_captured *recording; /* set from clv__cpu_capture_begin() to _end(); otherwise NULL */
  clv__stop stop;          /* set from clv__cpu_stream_stop() to the next clv__cpu_stream_synchronize() */
  bool is_skipped;         /* some work was skipped since `stop` was set */
};

/* stream.c */
clv_status clv__cpu_stream_create(clv_device *device, clv_stream **stream, clv_error *error);
void clv__cpu_stream_destroy(clv_device *device, clv_stream *stream);
clv_status clv__cpu_stream_synchronize(clv_device *device, clv_stream *stream, clv_error *error);
clv_status clv__cpu_stream_stop(clv_device *device, clv_stream *stream, clv_error *error);
/* Notes the status of work on the stream, which may be NULL, and returns it. */
clv_status clv__cpu_stream_note(clv_stream *stream, clv_status status);
clv_status clv__cpu_event_create(clv_device *device, clv_event **event, clv_error *error);
void clv__cpu_event_destroy(clv_device *device, clv_event *event);
clv_status clv__cpu_event_record(clv_device *device, clv_event *event, clv_stream *stream, clv_error *error);
clv_status clv__cpu_event_wait(clv_device *device, clv_stream *stream, clv_event *event, clv_error *error);
clv_status clv__cpu_event_synchronize(clv_device *device, clv_event *event, clv_error *error);
clv_status clv__cpu_event_notify(clv_device *device, clv_event *event, clv_notify_fn notify, void *cookie, clv_error *error);

/* capture.c */
clv_status clv__cpu_capture_begin(clv_device *device, clv_stream *stream, clv_capture_mode mode, clv_error *error);
clv_status clv__cpu_capture_end(clv_device *device, clv_stream *stream, clv_captured **captured, clv_error *error);
clv_status clv__cpu_captured_launch(clv_device *device, clv_captured *captured, clv_stream *stream, clv_error *error);
clv_status clv__cpu_captured_bind(clv_device *device, clv_captured *captured, uint32_t index, const clv_execute_args *args,
                                  clv_error *error);
void clv__cpu_captured_destroy(clv_device *device, clv_captured *captured);
uint64_t clv__cpu_captured_bytes(clv_device *device, const clv_captured *captured);
/* Checks an execution on a capturing stream and adds it to the capture instead of running it. */
clv_status clv__cpu_record(clv_captured *captured, clv_instance *instance, const clv_execute_args *args, clv_error *error);

#endif
