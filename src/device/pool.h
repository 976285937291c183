/* Memory of one memory space, kept when it is given back and given out again: boundary arenas, scratch, values sized at run time.
 * One pool a space and set of devices, shared by sessions; it takes its own lock, briefly, and never the devices'.
 *
 * What a lost device (is_lost) has is forgotten: close() takes care of it. What it could still write to when it was lost is not
 * given out again: host memory stays until it is closed (CLV__ATTACHED_ABANDONED), other devices' buffers until the pool goes. */
#ifndef CLEAVE_DEVICE_POOL_H
#define CLEAVE_DEVICE_POOL_H

#include "device/device.h"

/* A piece of memory. Its generation is never given twice: the same address with another generation is other memory. */
typedef struct clv__block {
  clv_buffer *buffer; /* of a device's space; for the host's space NULL, but where a device is named, see clv__pool_allocate() */
  void *host;         /* its address where the host can see it */
  uint64_t size_bytes;
  uint64_t generation; /* 0: no block */
  uint32_t space;
  uint32_t device; /* whose buffer it is; CLV__NO_ID: memory of the allocator */
} clv__block;

typedef struct clv__pool_counters {
  uint64_t in_use_bytes, peak_bytes, kept_bytes; /* given out; most ever given out at once; given back and kept */
  uint64_t taken, reused;                        /* calls of clv__pool_allocate(); those served by what was kept */
  uint64_t limit_bytes;                          /* 0: none */
} clv__pool_counters;

/* Memory in `device`'s space (its buffer, also where that is the host's); CLV__NO_ID: host memory of the allocator. Kept blocks
 * up to twice as large serve; when the device has no more, kept ones are freed and it is asked again. Errors:
 * CLV_OUT_OF_MEMORY with what is in use and what was kept; CLV_DEVICE_ERROR for a lost device, and what the device says. */
clv_status clv__pool_allocate(clv_devices *devices, uint32_t device, uint64_t size_bytes, clv__block *block, clv_error *error);
/* Takes it back; accepts a block without generation, and clears it. Never is more kept than was once in use: what was taken
 * longest ago goes. */
void clv__pool_free(clv_devices *devices, clv__block *block);
/* Frees what is kept, in all spaces. */
void clv__pool_trim(clv_devices *devices);
void clv__pool_counters_get(clv_devices *devices, uint32_t space, clv__pool_counters *counters);

#endif
