/* Lets a stream be stopped. Work in a queue cannot be withdrawn, so a stopped stream refuses what is not enqueued yet. On a
 * device that is the CPU, where models take long, launches are enqueued in batches of some milliseconds, and at most BATCHES of
 * them ahead of the device: the thread that enqueues waits. It would not find a free core for other work meanwhile. GPUs get all
 * launches at once, so that the thread can serve other devices. */
#ifndef CLEAVE_BACKENDS_OPENCL_RUN_PACE_H
#define CLEAVE_BACKENDS_OPENCL_RUN_PACE_H

#include <stdatomic.h>

#include "backends/opencl/device.h"

enum { CLV__OPENCL_BATCHES = 2 };

typedef struct clv__opencl_pace {
  atomic_bool is_stopped; /* from clv__opencl_stream_stop() to the next synchronisation */
  bool is_skipped;        /* since then, work was refused */
  uint32_t launches;      /* in the current batch */
  uint32_t batch;         /* launches in a batch, by the time that the last ones took; 0: the first batch has not begun */
  uint64_t end_ns;        /* of the last batch that was waited for */
  cl_event ends[CLV__OPENCL_BATCHES]; /* of the last batches, the oldest first; NULL: complete */
} clv__opencl_pace;

/* CLV_CANCELLED if the stream was stopped. Call it before work is enqueued. */
clv_status clv__opencl_pace_check(clv__opencl_pace *pace, clv_error *error);
/* The same before a launch. Waits if too much is enqueued. */
clv_status clv__opencl_pace_launch(clv_device *device, clv__opencl_pace *pace, cl_command_queue queue, clv_error *error);
/* Call when everything in the queue is complete: the stream can work again. Returns whether work was refused. */
bool clv__opencl_pace_restart(clv_device *device, clv__opencl_pace *pace);

#endif
