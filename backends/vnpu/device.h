/* An open device, and what its parts share. */
#ifndef CLEAVE_BACKENDS_VNPU_DEVICE_H
#define CLEAVE_BACKENDS_VNPU_DEVICE_H

#include "base/hash.h"
#include "memory.h"
#include "queue.h"
#include "spec.h"

/* Constants up to this size are part of a program; larger ones are weights that the host uploads. */
#define CLV__VNPU_INLINE_BYTES 4096u

struct clv_weight {
  clv_weight *next;
  uint64_t id_hash;
  char *id;
  clv_tensor type; /* without data */
  uint64_t address;
  uint64_t size_bytes;
  uint32_t users;
};

struct clv_buffer {
  uint64_t address;
  uint64_t size_bytes;
};

struct clv_device {
  const clv_host *host;
  const clv_allocator *allocator;
  clv__vnpu_spec spec;
  clv__vnpu_space *space;
  clv__vnpu_queue queue;
  clv_weight *weights;
  char *memory_space; /* its name */
  char description[200];
  char fingerprint[2 * CLV__HASH_BYTES + 16];
};

#endif
