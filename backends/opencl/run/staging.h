/* Copies through pinned host memory. On a device with its own memory, a driver may block in a call that copies from memory it
 * has not pinned. The thread that dispatches work to all devices must not block. So each stream has two pieces of pinned
 * memory, which stay mapped. A copy uses the free pieces and passes the rest to the driver, so it never waits for a piece. */
#ifndef CLEAVE_BACKENDS_OPENCL_RUN_STAGING_H
#define CLEAVE_BACKENDS_OPENCL_RUN_STAGING_H

#include <stdatomic.h>

#include "backends/opencl/icd.h"
#include "cleave/plugin/backend.h"

enum {
  CLV__OPENCL_PINNED = 2,
  CLV__OPENCL_PINNED_BYTES = 4 << 20,
  CLV__OPENCL_STAGED_BYTES = 256 << 10 /* smaller copies go to the driver directly */
};

typedef struct clv__opencl_pinned {
  const clv__opencl_icd *cl;
  cl_mem memory; /* NULL: not created yet */
  uint8_t *host;
  cl_event busy; /* the command that is using the piece; NULL: none */
  /* For a copy out of the device: when its bytes are in the piece, a callback copies them to `to`, sets is_landing to false and
   * completes the event `gate`. */
  atomic_bool is_landing;
  cl_event gate;
  void *to;
  size_t size_bytes;
} clv__opencl_pinned;

/* Part of a stream; only one thread at a time may use it. */
typedef struct clv__opencl_staging {
  struct clv__opencl_staging *previous, *next; /* neighbours in device->stagings; guarded by staging_lock */
  bool is_listed;                              /* whether it is in device->stagings; false if the device does not stage copies */
  bool is_off;                                 /* allocating a piece failed; do not try again */
  clv__opencl_pinned pieces[CLV__OPENCL_PINNED];
  /* Host memory that pending copies out of the device will write (staging_lock): this address range, until this event. */
  cl_event last_out;
  uintptr_t out_from, out_to;
} clv__opencl_staging;

void clv__opencl_staging_init(clv_device *device, clv__opencl_staging *staging);
/* Call after the stream's queue has finished. */
void clv__opencl_staging_finish(clv_device *device, clv__opencl_staging *staging);

/* Waits for pending copies to host memory. After a failure, a queue may finish before they do. */
void clv__opencl_staging_settle(clv_device *device, clv__opencl_staging *staging);

/* Enqueue copies. The caller has checked the ranges. */
clv_status clv__opencl_stage_in(clv_device *device, clv__opencl_staging *staging, cl_command_queue queue, cl_mem to,
                                uint64_t to_offset, const void *from, uint64_t size_bytes, clv_error *error);
clv_status clv__opencl_stage_out(clv_device *device, clv__opencl_staging *staging, cl_command_queue queue, void *to, cl_mem from,
                                 uint64_t from_offset, uint64_t size_bytes, clv_error *error);

#endif
