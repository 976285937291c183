/* Streams and events of a device that does everything in the caller's thread: earlier calls are always complete, unless the
 * stream was stopped. */
#include "stream.h"

struct clv_event {
  bool is_skipped; /* the stream had been stopped when the event was recorded */
};

clv_status clv__cpu_stream_create(clv_device *device, clv_stream **stream, clv_error *error) {
  *stream = clv__allocate_zero(device->allocator, sizeof **stream);
  return *stream != NULL ? CLV_OK : clv__error_memory(error, sizeof **stream);
}

void clv__cpu_stream_destroy(clv_device *device, clv_stream *stream) {
  if (stream == NULL) return;
  clv__cpu_captured_destroy(device, stream->recording);
  clv__release(device->allocator, stream);
}

static clv_status refuse_skipped(clv_error *error) {
  return clv__error_set(error, CLV_CANCELLED, "the stream was stopped");
}

clv_status clv__cpu_stream_synchronize(clv_device *device, clv_stream *stream, clv_error *error) {
  (void)device;
  const bool is_skipped = stream->is_skipped;
  stream->is_skipped = false;
  atomic_store_explicit(&stream->stop, false, memory_order_relaxed);
  return is_skipped ? refuse_skipped(error) : CLV_OK;
}

clv_status clv__cpu_stream_stop(clv_device *device, clv_stream *stream, clv_error *error) {
  (void)device;
  (void)error;
  atomic_store_explicit(&stream->stop, true, memory_order_relaxed);
  return CLV_OK;
}

clv_status clv__cpu_stream_note(clv_stream *stream, clv_status status) {
  if (stream != NULL && status == CLV_CANCELLED) stream->is_skipped = true;
  return status;
}

clv_status clv__cpu_event_create(clv_device *device, clv_event **event, clv_error *error) {
  *event = clv__allocate_zero(device->allocator, sizeof **event);
  if (*event == NULL) return clv__error_memory(error, sizeof **event);
  return CLV_OK;
}

void clv__cpu_event_destroy(clv_device *device, clv_event *event) {
  clv__release(device->allocator, event);
}

clv_status clv__cpu_event_record(clv_device *device, clv_event *event, clv_stream *stream, clv_error *error) {
  (void)device;
  (void)error;
  event->is_skipped = stream->is_skipped;
  return CLV_OK;
}

clv_status clv__cpu_event_wait(clv_device *device, clv_stream *stream, clv_event *event, clv_error *error) {
  (void)device;
  (void)error;
  if (event->is_skipped) stream->is_skipped = true;
  return CLV_OK;
}

clv_status clv__cpu_event_synchronize(clv_device *device, clv_event *event, clv_error *error) {
  (void)device;
  return event->is_skipped ? refuse_skipped(error) : CLV_OK;
}

clv_status clv__cpu_event_notify(clv_device *device, clv_event *event, clv_notify_fn notify, void *cookie, clv_error *error) {
  (void)device;
  (void)event;
  (void)error;
  notify(cookie);
  return CLV_OK;
}
