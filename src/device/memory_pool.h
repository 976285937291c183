/* Recycles the memory of one memory space, which sessions use for values between partitions, for scratch, and for values whose
 * size is known only at run time. There is one pool per space and set of devices, shared by its sessions. A pool takes its own
 * lock briefly, and never the devices' lock.
 *
 * The pool does not free the memory of a lost device: the device's close() does. Memory that the device may still write to is
 * not reused: host memory is kept until the device is closed (CLV__ATTACHED_ABANDONED), buffers of other devices until the
 * pool is destroyed. */
#ifndef CLEAVE_DEVICE_MEMORY_POOL_H
#define CLEAVE_DEVICE_MEMORY_POOL_H

#include "device/device.h"

/* A block of memory. Each allocation gets a new generation, so a block at the same address with another generation is another
 * block. */
typedef struct clv__memory_block {
  clv_buffer *buffer; /* allocated by `device`; NULL if `device` is CLV__NO_ID */
  void *host;         /* the block's address in host memory; NULL if the host cannot access the block */
  uint64_t size_bytes;
  uint64_t generation; /* 0: no block */
  uint32_t space;
  uint32_t device; /* the device that owns the buffer; CLV__NO_ID: memory of the allocator */
} clv__memory_block;

typedef struct clv__memory_pool_counters {
  uint64_t in_use_bytes, peak_bytes, kept_bytes; /* in use; the largest in_use_bytes so far; freed and kept */
  uint64_t taken, reused;                        /* calls of clv__memory_pool_allocate(); calls served from kept blocks */
  uint64_t limit_bytes;                          /* 0: no limit */
} clv__memory_pool_counters;

/* Allocates a buffer of `device`, even if its memory space is the host's. If `device` is CLV__NO_ID, allocates host memory from
 * the allocator. Reuses kept blocks of up to twice the size. If the device is out of memory, frees the kept blocks and tries
 * again. Errors: CLV_OUT_OF_MEMORY, with the bytes in use and the bytes that were kept; CLV_DEVICE_ERROR for a lost device; other
 * errors of the device. */
clv_status clv__memory_pool_allocate(clv_devices *devices, uint32_t device, uint64_t size_bytes, clv__memory_block *block,
                                     clv_error *error);
/* Returns a block to the pool and clears it; accepts a block whose generation is 0. The pool never keeps more bytes than were
 * once in use: beyond that, it frees the blocks that were allocated longest ago. */
void clv__memory_pool_free(clv_devices *devices, clv__memory_block *block);
/* Frees all kept blocks, in all spaces. */
void clv__memory_pool_trim(clv_devices *devices);
void clv__memory_pool_counters_get(clv_devices *devices, uint32_t space, clv__memory_pool_counters *counters);

#endif
