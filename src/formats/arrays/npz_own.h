/* An open .npz file. npz.c finds the entries, and npz_read.c reads them. */
#ifndef CLEAVE_FORMATS_ARRAYS_NPZ_OWN_H
#define CLEAVE_FORMATS_ARRAYS_NPZ_OWN_H

#include "base/files/file.h"
#include "formats/arrays/npz.h"
#include "formats/arrays/zip.h"

struct clv__npz {
  const clv_allocator *allocator;
  clv__file_map map; /* empty if opened from memory */
  clv__arena arena;
  const char *path;
  const uint8_t *data;
  size_t size_bytes;
  clv__zip_entry *entries;
  size_t count;
};

#endif
