/* See stream.h. */
#include "stream.h"
#include "backends/common/host.h"

/* ---- Streams ---- */

static void stream_destroy(clv_device *device, void *self) {
  clv_stream *stream = self;
  /* When an abandoned device is closed, pending copies may still use host memory, which is freed after the close. */
  if (stream->queue != NULL) device->cl->clFinish(stream->queue);
  (void)clv__opencl_pace_restart(device, &stream->pace);
  clv__opencl_staging_finish(device, &stream->staging);
  if (stream->queue != NULL) device->cl->clReleaseCommandQueue(stream->queue);
  clv__opencl_watch_release(device, stream->watch);
  clv__object_free(&device->objects, stream);
}

clv_status clv__opencl_stream_create(clv_device *device, clv_stream **out, clv_error *error) {
  *out = clv__object_new(&device->objects, sizeof **out, stream_destroy);
  if (*out == NULL) return clv__error_memory(error, sizeof **out);
  clv__opencl_staging_init(device, &(*out)->staging);
  return CLV_OK;
}

void clv__opencl_stream_destroy(clv_device *device, clv_stream *stream) {
  if (stream != NULL) stream_destroy(device, stream);
}

clv_status clv__opencl_stream_queue(clv_device *device, clv_stream *stream, cl_command_queue *queue, clv_error *error) {
  cl_int code = CL_SUCCESS;
  if (stream->queue == NULL) {
    stream->queue = device->cl->clCreateCommandQueue(device->context, device->id, 0, &code);
    if (stream->queue == NULL) return clv__opencl_failed(error, "clCreateCommandQueue", code);
  }
  *queue = stream->queue;
  return CLV_OK;
}

/* Waits for an event, and returns its command's status. */
static clv_status wait_for(clv_device *device, cl_event event, clv_error *error) {
  const clv__opencl_icd *cl = device->cl;
  cl_int status = CL_COMPLETE;
  cl_int code = cl->clWaitForEvents(1, &event);
  if (cl->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL) == CL_SUCCESS && status < 0) {
    return clv__opencl_failed(error, "a command in the queue", status); /* more specific than the wait's code */
  }
  return code == CL_SUCCESS ? CLV_OK : clv__opencl_failed(error, "clWaitForEvents", code);
}

static clv_status refuse_skipped(clv_error *error) {
  return clv__error_set(error, CLV_CANCELLED, "the stream was stopped");
}

clv_status clv__opencl_stream_stop(clv_device *device, clv_stream *stream, clv_error *error) {
  (void)device;
  (void)error;
  atomic_store(&stream->pace.is_stopped, true);
  return CLV_OK;
}

clv_status clv__opencl_stream_synchronize(clv_device *device, clv_stream *stream, clv_error *error) {
  if (stream->queue == NULL) return clv__opencl_pace_restart(device, &stream->pace) ? refuse_skipped(error) : CLV_OK;
  cl_event marker;
  CLV__OPENCL_TRY(error, "clEnqueueMarkerWithWaitList", device->cl->clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &marker));
  clv_status status = wait_for(device, marker, error);
  device->cl->clReleaseEvent(marker);
  clv__opencl_staging_settle(device, &stream->staging);
  if (clv__opencl_pace_restart(device, &stream->pace) && status == CLV_OK) status = refuse_skipped(error);
  clv_status found = clv__opencl_watch_check(device, stream->watch, stream->queue, status == CLV_OK ? error : NULL);
  return status == CLV_OK ? found : status;
}

static clv_status not_recording(const clv_stream *stream, const char *what, clv_error *error) {
  if (stream->recording == NULL) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s is not possible while the stream is capturing", what);
}

/* ---- Events ---- */

struct clv_event {
  clv__object object;
  pthread_mutex_t lock;     /* guards the members below, which are replaced while other threads wait for the old ones */
  cl_event marker;          /* NULL: never recorded, or recorded on a stream that was never used */
  bool is_skipped;          /* the stream had refused work when the event was recorded */
  clv__opencl_watch *watch; /* of the stream on which the event was recorded */
};

static void event_destroy(clv_device *device, void *self) {
  clv_event *event = self;
  if (event->marker != NULL) device->cl->clReleaseEvent(event->marker);
  clv__opencl_watch_release(device, event->watch);
  pthread_mutex_destroy(&event->lock);
  clv__object_free(&device->objects, event);
}

clv_status clv__opencl_event_create(clv_device *device, clv_event **out, clv_error *error) {
  *out = clv__object_new(&device->objects, sizeof **out, event_destroy);
  if (*out == NULL) return clv__error_memory(error, sizeof **out);
  pthread_mutex_init(&(*out)->lock, NULL);
  return CLV_OK;
}

void clv__opencl_event_destroy(clv_device *device, clv_event *event) {
  if (event != NULL) event_destroy(device, event);
}

/* Returns the event's marker, retained; NULL if there is nothing to wait for. `watch`, if not NULL, receives the event's watch
 * with one more user; NULL if it has none. */
static cl_event marker_of(clv_device *device, clv_event *event, clv__opencl_watch **watch) {
  pthread_mutex_lock(&event->lock);
  cl_event marker = event->marker;
  if (marker != NULL) device->cl->clRetainEvent(marker);
  if (watch != NULL) *watch = clv__opencl_watch_share(device, event->watch);
  pthread_mutex_unlock(&event->lock);
  return marker;
}

static bool was_skipped(clv_event *event) {
  pthread_mutex_lock(&event->lock);
  bool is_skipped = event->is_skipped;
  pthread_mutex_unlock(&event->lock);
  return is_skipped;
}

clv_status clv__opencl_event_record(clv_device *device, clv_event *event, clv_stream *stream, clv_error *error) {
  const clv__opencl_icd *cl = device->cl;
  CLV__TRY(not_recording(stream, "recording an event", error));
  cl_event marker = NULL, before;
  if (stream->queue != NULL) {
    CLV__OPENCL_TRY(error, "clEnqueueMarkerWithWaitList", cl->clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &marker));
    /* Flush, because a wait on another queue, or a callback, does not flush the queue of its marker. */
    cl_int code = cl->clFlush(stream->queue);
    if (code != CL_SUCCESS) {
      cl->clReleaseEvent(marker);
      return clv__opencl_failed(error, "clFlush", code);
    }
  }
  clv__opencl_watch *watch = clv__opencl_watch_share(device, stream->watch);
  pthread_mutex_lock(&event->lock);
  before = event->marker;
  clv__opencl_watch *watch_before = event->watch;
  event->is_skipped = stream->pace.is_skipped;
  event->marker = marker;
  event->watch = watch;
  pthread_mutex_unlock(&event->lock);
  clv__opencl_watch_release(device, watch_before);
  if (before != NULL) cl->clReleaseEvent(before);
  return CLV_OK;
}

clv_status clv__opencl_event_wait(clv_device *device, clv_stream *stream, clv_event *event, clv_error *error) {
  CLV__TRY(not_recording(stream, "waiting for an event", error));
  if (was_skipped(event)) stream->pace.is_skipped = true;
  clv__opencl_watch *watch = NULL;
  cl_event marker = marker_of(device, event, &watch);
  cl_command_queue queue;
  clv_status status = CLV_OK;
  if (marker != NULL) {
    status = clv__opencl_stream_queue(device, stream, &queue, error);
    cl_int code = CL_SUCCESS;
    if (status == CLV_OK) code = device->cl->clEnqueueBarrierWithWaitList(queue, 1, &marker, NULL);
    if (code != CL_SUCCESS) status = clv__opencl_failed(error, "clEnqueueBarrierWithWaitList", code);
    if (status == CLV_OK) status = clv__opencl_watch_join(device, &stream->watch, watch, error);
    device->cl->clReleaseEvent(marker);
  }
  clv__opencl_watch_release(device, watch);
  return status;
}

clv_status clv__opencl_event_synchronize(clv_device *device, clv_event *event, clv_error *error) {
  clv__opencl_watch *watch = NULL;
  cl_event marker = marker_of(device, event, &watch);
  clv_status status = CLV_OK;
  if (marker != NULL) {
    status = wait_for(device, marker, error);
    if (status == CLV_OK) status = clv__opencl_watch_check(device, watch, NULL, error);
    device->cl->clReleaseEvent(marker);
  }
  if (status == CLV_OK && was_skipped(event)) status = refuse_skipped(error);
  clv__opencl_watch_release(device, watch);
  return status;
}

/* The data of a driver's callback. It is a separate object, because the callback may come after the event was recorded again or
 * destroyed. It is reused after the callback, so repeated notifications allocate nothing. */
struct clv__opencl_notice {
  clv__opencl_notice *next;
  clv_device *device;
  clv_notify_fn notify;
  void *cookie;
};

static clv__opencl_notice *notice_take(clv_device *device) {
  pthread_mutex_lock(&device->lock);
  clv__opencl_notice *notice = device->notices;
  if (notice != NULL) device->notices = notice->next;
  pthread_mutex_unlock(&device->lock);
  return notice != NULL ? notice : clv__allocate(device->allocator, sizeof *notice);
}

static void notice_give(clv__opencl_notice *notice) {
  clv_device *device = notice->device;
  pthread_mutex_lock(&device->lock);
  notice->next = device->notices;
  device->notices = notice;
  pthread_mutex_unlock(&device->lock);
}

void clv__opencl_notices_finish(clv_device *device) {
  while (device->notices != NULL) {
    clv__opencl_notice *notice = device->notices;
    device->notices = notice->next;
    clv__release(device->allocator, notice);
  }
}

static void CL_CALLBACK reached(cl_event marker, cl_int status, void *user_data) {
  clv__opencl_notice *notice = user_data;
  (void)marker;
  (void)status; /* event_synchronize() reports it */
  clv_notify_fn notify = notice->notify;
  void *cookie = notice->cookie;
  notice_give(notice);
  notify(cookie); /* must be last: the device may be closed when it returns */
}

clv_status clv__opencl_event_notify(clv_device *device, clv_event *event, clv_notify_fn notify, void *cookie, clv_error *error) {
  cl_event marker = marker_of(device, event, NULL);
  if (marker == NULL) {
    notify(cookie);
    return CLV_OK;
  }
  clv__opencl_notice *notice = notice_take(device);
  clv_status status = notice == NULL ? clv__error_memory(error, sizeof *notice) : CLV_OK;
  if (status == CLV_OK) {
    *notice = (clv__opencl_notice){NULL, device, notify, cookie};
    cl_int code = device->cl->clSetEventCallback(marker, CL_COMPLETE, reached, notice);
    if (code != CL_SUCCESS) {
      status = clv__opencl_failed(error, "clSetEventCallback", code);
      notice_give(notice);
    }
  }
  device->cl->clReleaseEvent(marker);
  return status;
}

/* ---- Copies ---- */

clv_status clv__opencl_copy_in(clv_device *device, clv_stream *stream, clv_buffer *to, uint64_t to_offset, const void *from,
                               uint64_t size_bytes, clv_error *error) {
  cl_command_queue queue;
  CLV__TRY(not_recording(stream, "a copy", error));
  CLV__TRY(clv__opencl_pace_check(&stream->pace, error));
  CLV__TRY(clv__host_check_range(to->size_bytes, to_offset, size_bytes, error));
  if (size_bytes == 0) return CLV_OK;
  CLV__TRY(clv__opencl_stream_queue(device, stream, &queue, error));
  return clv__opencl_stage_in(device, &stream->staging, queue, to->memory, to_offset, from, size_bytes, error);
}

clv_status clv__opencl_copy_out(clv_device *device, clv_stream *stream, void *to, clv_buffer *from, uint64_t from_offset,
                                uint64_t size_bytes, clv_error *error) {
  cl_command_queue queue;
  CLV__TRY(not_recording(stream, "a copy", error));
  CLV__TRY(clv__opencl_pace_check(&stream->pace, error));
  CLV__TRY(clv__host_check_range(from->size_bytes, from_offset, size_bytes, error));
  if (size_bytes == 0) return CLV_OK;
  CLV__TRY(clv__opencl_stream_queue(device, stream, &queue, error));
  return clv__opencl_stage_out(device, &stream->staging, queue, to, from->memory, from_offset, size_bytes, error);
}
