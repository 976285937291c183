/* Packed constants of a device, each stored once. Executables that pack the same weight into the same layout share the bytes, for
 * example those of two sessions that partition one model differently.
 *
 * Content decides equality: packs of equal size and layout whose sampled words match are compared in full. Names and addresses
 * are not reliable: another model may be loaded where one was unloaded, and folding changes what a name refers to.
 *
 * Executables may be destroyed on any thread, so the store has a lock. It does not hold the lock while it compares bytes. */
#ifndef CLEAVE_BACKENDS_CPU_CONSTANTS_PACKS_H
#define CLEAVE_BACKENDS_CPU_CONSTANTS_PACKS_H

#include "backends/cpu/onednn/onednn.h"
#include "base/error.h"

typedef struct clv__cpu_packs clv__cpu_packs;

/* A pack. Its bytes do not change once it is stored. */
typedef struct clv__cpu_shared {
  void *data;
  size_t size_bytes;
  clv__dnn_layout *layout; /* NULL: row-major */
  uint64_t sample;
  size_t users;
} clv__cpu_shared;

clv_status clv__cpu_packs_create(const clv_allocator *allocator, clv__cpu_packs **packs, clv_error *error);
void clv__cpu_packs_destroy(clv__cpu_packs *packs); /* accepts NULL; no pack may be in use any more */
/* Stores `data`, which must come from the allocator. The store takes ownership, even on failure. *shared receives the pack,
 * whose bytes are either in the same memory or in that of an equal pack; the caller ends its use with clv__cpu_packs_release().
 * *is_new receives true if there was no equal pack. `is_new` may be NULL. */
clv_status clv__cpu_packs_keep(clv__cpu_packs *packs, const clv__dnn_layout *layout, void *data, size_t size_bytes,
                               clv__cpu_shared **shared, bool *is_new, clv_error *error);
void clv__cpu_packs_release(clv__cpu_packs *packs, clv__cpu_shared *shared); /* accepts NULL */

#endif
