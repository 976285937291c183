/* Streams and events of a device that does everything in the caller's thread: earlier calls are always complete. */
#include "stream.h"

struct clv_event {
  clv_device *device;
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

clv_status clv__cpu_stream_synchronize(clv_device *device, clv_stream *stream, clv_error *error) {
  (void)device;
  (void)stream;
  (void)error;
  return CLV_OK;
}

clv_status clv__cpu_event_create(clv_device *device, clv_event **event, clv_error *error) {
  *event = clv__allocate_zero(device->allocator, sizeof **event);
  if (*event == NULL) return clv__error_memory(error, sizeof **event);
  (*event)->device = device;
  return CLV_OK;
}

void clv__cpu_event_destroy(clv_device *device, clv_event *event) {
  clv__release(device->allocator, event);
}

clv_status clv__cpu_event_record(clv_device *device, clv_event *event, clv_stream *stream, clv_error *error) {
  (void)event;
  return clv__cpu_stream_synchronize(device, stream, error);
}

clv_status clv__cpu_event_wait(clv_device *device, clv_stream *stream, clv_event *event, clv_error *error) {
  (void)event;
  return clv__cpu_stream_synchronize(device, stream, error);
}

clv_status clv__cpu_event_synchronize(clv_device *device, clv_event *event, clv_error *error) {
  (void)event;
  return clv__cpu_stream_synchronize(device, NULL, error);
}

clv_status clv__cpu_event_notify(clv_device *device, clv_event *event, clv_notify_fn notify, void *cookie, clv_error *error) {
  (void)device;
  (void)event;
  (void)error;
  notify(cookie);
  return CLV_OK;
}
