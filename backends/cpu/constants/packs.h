/* Packed constants of a device, each there once: executables that pack the same weight into the same layout share the bytes, as
 * two sessions with other partitions of one model do.
 *
 * What is the same is decided by content: packs of one size and layout whose sampled words agree are compared in full. A name or
 * an address would not do: models are unloaded and others loaded in their place, and folding changes what a name stands for.
 *
 * Executables are destroyed on any thread: the store takes its own lock, never while it compares. */
#ifndef CLEAVE_BACKENDS_CPU_CONSTANTS_PACKS_H
#define CLEAVE_BACKENDS_CPU_CONSTANTS_PACKS_H

#include "backends/cpu/onednn/onednn.h"
#include "base/error.h"

typedef struct clv__cpu_packs clv__cpu_packs;

/* Bytes that nobody writes any more. */
typedef struct clv__cpu_shared {
  void *data;
  size_t size_bytes;
  clv__dnn_layout *layout; /* NULL: row-major */
  uint64_t sample;
  size_t users;
} clv__cpu_shared;

clv_status clv__cpu_packs_create(const clv_allocator *allocator, clv__cpu_packs **packs, clv_error *error);
void clv__cpu_packs_destroy(clv__cpu_packs *packs); /* accepts NULL; nothing is in use any more */
/* Keeps `data`, which came from the allocator and is the store's from now on, also when this fails: `shared` has its bytes, in
 * the same memory or in that of an equal pack. `is_new` may be NULL. */
clv_status clv__cpu_packs_keep(clv__cpu_packs *packs, const clv__dnn_layout *layout, void *data, size_t size_bytes,
                               clv__cpu_shared **shared, bool *is_new, clv_error *error);
void clv__cpu_packs_release(clv__cpu_packs *packs, clv__cpu_shared *shared); /* accepts NULL */

#endif
