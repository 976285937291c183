/* Copies through pinned host memory: on devices with memory of their own a driver may take its time in the call for memory that
 * it has not pinned, and the thread that hands out work to all devices must not wait. Each stream has two pieces that are mapped
 * for good; a copy takes those that are free and leaves the rest to the driver, so that nothing here ever waits. */
#ifndef CLEAVE_BACKENDS_OPENCL_RUN_STAGING_H
#define CLEAVE_BACKENDS_OPENCL_RUN_STAGING_H

#include <stdatomic.h>

#include "backends/opencl/icd.h"
#include "cleave/plugin/backend.h"

enum {
  CLV__OPENCL_PINNED = 2,
  CLV__OPENCL_PINNED_BYTES = 4 << 20,
  CLV__OPENCL_STAGED_BYTES = 256 << 10 /* smaller copies are the driver's */
};

typedef struct clv__opencl_pinned {
  const clv__opencl_icd *cl;
  cl_mem memory; /* NULL: not made yet */
  uint8_t *host;
  cl_event busy; /* the command that reads or writes it; NULL: none */
  /* On its way out of the device: what `landed` needs, and the event that says that it has. */
  atomic_bool is_landing;
  cl_event gate;
  void *to;
  size_t size_bytes;
} clv__opencl_pinned;

/* Part of a stream; one thread at a time uses it. */
typedef struct clv__opencl_staging {
  struct clv__opencl_staging *previous, *next; /* of the device's streams (staging_lock) */
  bool is_listed;                              /* among them; false where the device stages nothing */
  bool is_off;                                 /* there was no memory for pieces: it is not asked for again */
  clv__opencl_pinned pieces[CLV__OPENCL_PINNED];
  /* Host memory that copies out of the device have yet to write (staging_lock): within these addresses, until this event. */
  cl_event last_out;
  uintptr_t out_from, out_to;
} clv__opencl_staging;

void clv__opencl_staging_init(clv_device *device, clv__opencl_staging *staging);
/* When the stream's queue is through. */
void clv__opencl_staging_finish(clv_device *device, clv__opencl_staging *staging);

/* Waits for what lands on the host: where a queue fails it may be through before that. */
void clv__opencl_staging_settle(clv_device *device, clv__opencl_staging *staging);

/* Enqueue copies, in ranges that were checked. */
clv_status clv__opencl_stage_in(clv_device *device, clv__opencl_staging *staging, cl_command_queue queue, cl_mem to,
                                uint64_t to_offset, const void *from, uint64_t size_bytes, clv_error *error);
clv_status clv__opencl_stage_out(clv_device *device, clv__opencl_staging *staging, cl_command_queue queue, void *to, cl_mem from,
                                 uint64_t from_offset, uint64_t size_bytes, clv_error *error);

#endif
