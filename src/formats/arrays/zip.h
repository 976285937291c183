/* The parts of the zip format that both reading and writing .npz need. The format is that of APPNOTE 6.3 with its 64-bit
 * extension. */
#ifndef CLEAVE_FORMATS_ARRAYS_ZIP_H
#define CLEAVE_FORMATS_ARRAYS_ZIP_H

#include "base/memory.h"

enum {
  LOCAL_SIGNATURE = 0x04034b50,
  CENTRAL_SIGNATURE = 0x02014b50,
  END_SIGNATURE = 0x06054b50,
  END64_SIGNATURE = 0x06064b50,
  LOCATOR64_SIGNATURE = 0x07064b50,
  LOCAL_BYTES = 30,
  CENTRAL_BYTES = 46,
  END_BYTES = 22,
  END64_BYTES = 56,
  LOCATOR64_BYTES = 20,
  EXTRA64 = 1,
  STORED = 0,
  DEFLATED = 8,
  FLAG_ENCRYPTED = 1,
  VERSION_64 = 45,
  FIRST_DATE = 0x21 /* 1 January 1980 for every entry, so that equal arrays give equal files */
};

/* One file in the archive. `offset` is that of its local record. */
typedef struct clv__zip_entry {
  const char *name;
  uint32_t method, crc;
  uint64_t packed_bytes, size_bytes, offset;
} clv__zip_entry;

static inline uint32_t clv__zip_get16(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}
static inline uint32_t clv__zip_get32(const uint8_t *at) {
  return clv__zip_get16(at) | clv__zip_get16(at + 2) << 16;
}
static inline uint64_t clv__zip_get64(const uint8_t *at) {
  return (uint64_t)clv__zip_get32(at) | (uint64_t)clv__zip_get32(at + 4) << 32;
}

/* Memory functions for zlib. The stream's `opaque` pointer is the clv_allocator. */
static inline void *clv__zlib_allocate(void *user_data, unsigned count, unsigned size_bytes) {
  size_t total;
  return clv__multiply(count, size_bytes, &total) ? clv__allocate(user_data, total) : NULL;
}

static inline void clv__zlib_release(void *user_data, void *pointer) {
  clv__release(user_data, pointer);
}

#endif
