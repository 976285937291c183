/* Memory of the device, in a mapping of its own between two guard pages: nothing else is near it, and an access before its
 * beginning or beyond its end is a fault. */
#ifndef CLEAVE_BACKENDS_VNPU_MAPPING_H
#define CLEAVE_BACKENDS_VNPU_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct clv__vnpu_mapping {
  uint8_t *memory;
  size_t size_bytes; /* whole pages */
  void *all;         /* with the guard pages */
  size_t all_bytes;
} clv__vnpu_mapping;

/* Maps at least `size_bytes`, which can be read and written, at a multiple of `alignment_bytes`. False if the system has no
 * memory. */
bool clv__vnpu_mapping_open(size_t size_bytes, size_t alignment_bytes, clv__vnpu_mapping *mapping);
void clv__vnpu_mapping_close(clv__vnpu_mapping *mapping); /* accepts one that is all zero */
/* Makes every access to the memory a fault, or allows it again. The contents stay. */
void clv__vnpu_mapping_shut(const clv__vnpu_mapping *mapping, bool shut);

#endif
