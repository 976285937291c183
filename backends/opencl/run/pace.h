/* Lets a stream be stopped. Work in a queue cannot be withdrawn, so a stopped stream refuses what is not enqueued yet. On a
 * device that is the CPU, launches are enqueued in batches of some milliseconds, and the thread that enqueues waits while
 * CLV__OPENCL_BATCHES batches are not complete. So a stop takes effect soon. The thread loses nothing by waiting, because the
 * device uses all cores. On a GPU, all launches are enqueued at once, so that the thread can serve other devices. */
#ifndef CLEAVE_BACKENDS_OPENCL_RUN_PACE_H
#define CLEAVE_BACKENDS_OPENCL_RUN_PACE_H

#include <stdatomic.h>

#include "backends/opencl/device.h"

enum { CLV__OPENCL_BATCHES = 2 };

typedef struct clv__opencl_pace {
  atomic_bool is_stopped; /* true from clv__opencl_stream_stop() to the next synchronisation */
  bool is_skipped;        /* since the last synchronisation, work was refused here or on a stream that this one waited for */
  uint32_t launches;      /* number of launches in the current batch */
  uint32_t batch;         /* number of launches per batch, adapted to the time that batches take; 0: none has begun */
  uint64_t end_ns;        /* when the last batch that was waited for ended; 0: none was */
  cl_event ends[CLV__OPENCL_BATCHES]; /* the ends of the latest batches, the oldest first; NULL: none, or complete */
} clv__opencl_pace;

/* Returns CLV_CANCELLED if the stream was stopped. Call it before work is enqueued. */
clv_status clv__opencl_pace_check(clv__opencl_pace *pace, clv_error *error);
/* Like clv__opencl_pace_check(), for a launch: waits first if too many batches are not complete. */
clv_status clv__opencl_pace_launch(clv_device *device, clv__opencl_pace *pace, cl_command_queue queue, clv_error *error);
/* Call when everything in the queue is complete: the stream can work again. Returns whether work was refused. */
bool clv__opencl_pace_restart(clv_device *device, clv__opencl_pace *pace);

#endif
