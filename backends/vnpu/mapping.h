/* Memory of the device, in a separate mapping between two guard pages: an access just before its beginning or beyond its end is
 * a fault. */
#ifndef CLEAVE_BACKENDS_VNPU_MAPPING_H
#define CLEAVE_BACKENDS_VNPU_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct clv__vnpu_mapping {
  uint8_t *memory;
  size_t size_bytes; /* size of the accessible memory; a multiple of the page size */
  void *all;         /* start of the whole mapping, including the guard pages */
  size_t all_bytes;
} clv__vnpu_mapping;

/* Maps at least `size_bytes` of accessible memory at a multiple of `alignment_bytes`. Returns false if the system has no
 * memory. */
bool clv__vnpu_mapping_open(size_t size_bytes, size_t alignment_bytes, clv__vnpu_mapping *mapping);
void clv__vnpu_mapping_close(clv__vnpu_mapping *mapping); /* accepts a mapping that is all zero */
/* If `shut` is true, every access to the memory is a fault from now on; otherwise accesses are allowed again. The contents
 * stay. */
void clv__vnpu_mapping_shut(const clv__vnpu_mapping *mapping, bool shut);

#endif
