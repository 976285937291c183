/* See pace.h. */
#include "pace.h"

#include "base/clock.h"

enum { FIRST_BATCH = 4, LONGEST_BATCH = 256, SHORT_NS = 1000000, LONG_NS = 4000000 };

static void drop(const clv_device *device, cl_event *event) {
  if (*event != NULL) device->cl->clReleaseEvent(*event);
  *event = NULL;
}

clv_status clv__opencl_pace_check(clv__opencl_pace *pace, clv_error *error) {
  if (!atomic_load_explicit(&pace->is_stopped, memory_order_relaxed)) return CLV_OK;
  pace->is_skipped = true;
  return clv__error_set(error, CLV_CANCELLED, "the stream was stopped");
}

/* Halves batches that take long, and doubles short ones. */
static void adapt(clv__opencl_pace *pace) {
  const uint64_t now_ns = clv__clock_ns(), took_ns = now_ns - pace->end_ns;
  if (pace->end_ns != 0 && took_ns > LONG_NS && pace->batch > 1) pace->batch /= 2;
  if (pace->end_ns != 0 && took_ns < SHORT_NS && pace->batch < LONGEST_BATCH) pace->batch *= 2;
  pace->end_ns = now_ns;
}

/* Ends the current batch, and waits for the batch that ended CLV__OPENCL_BATCHES batches before it, if any. */
static clv_status end_batch(clv_device *device, clv__opencl_pace *pace, cl_command_queue queue, clv_error *error) {
  cl_event end;
  CLV__OPENCL_TRY(error, "clEnqueueMarkerWithWaitList", device->cl->clEnqueueMarkerWithWaitList(queue, 0, NULL, &end));
  cl_int code = device->cl->clFlush(queue);
  if (code == CL_SUCCESS && pace->ends[0] != NULL) {
    code = device->cl->clWaitForEvents(1, &pace->ends[0]);
    adapt(pace);
  }
  drop(device, &pace->ends[0]);
  for (int i = 1; i < CLV__OPENCL_BATCHES; ++i) pace->ends[i - 1] = pace->ends[i];
  pace->ends[CLV__OPENCL_BATCHES - 1] = end;
  pace->launches = 0;
  return code == CL_SUCCESS ? CLV_OK : clv__opencl_failed(error, "waiting for a batch of launches", code);
}

clv_status clv__opencl_pace_launch(clv_device *device, clv__opencl_pace *pace, cl_command_queue queue, clv_error *error) {
  if (pace->batch == 0) pace->batch = FIRST_BATCH;
  if ((device->type & CL_DEVICE_TYPE_CPU) != 0 && pace->launches++ >= pace->batch) {
    CLV__TRY(end_batch(device, pace, queue, error));
    pace->launches = 1;
  }
  return clv__opencl_pace_check(pace, error);
}

bool clv__opencl_pace_restart(clv_device *device, clv__opencl_pace *pace) {
  const bool is_skipped = pace->is_skipped;
  for (int i = 0; i < CLV__OPENCL_BATCHES; ++i) drop(device, &pace->ends[i]);
  pace->launches = 0;
  pace->end_ns = 0;
  pace->is_skipped = false;
  atomic_store(&pace->is_stopped, false);
  return is_skipped;
}
