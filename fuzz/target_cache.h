/* Reads a file of the cache. If its header is valid, writes the file again with the correct hash: it must be readable and have
 * the same bytes, except for the hash. */
#ifndef CLEAVE_FUZZ_TARGET_CACHE_H
#define CLEAVE_FUZZ_TARGET_CACHE_H

#include <stdlib.h>
#include <string.h>

#include "cache/file.h"

static inline void fuzz_cache(const uint8_t *data, size_t size_bytes) {
  const clv_allocator *allocator = clv__allocator_default();
  clv_error error = {0};
  clv__cache_info info, again;
  const void *payload;
  size_t payload_bytes;
  uint64_t header_bytes;
  bool whole = clv__cache_file_read(allocator, data, size_bytes, &info, &payload, &payload_bytes, &error) == CLV_OK;
  clv__cache_info_finish(allocator, &info);
  if (clv__cache_header_read(allocator, data, size_bytes, size_bytes, &info, &header_bytes, &error) != CLV_OK) {
    if (whole) abort();
    return;
  }
  clv__text text;
  clv__text_init(&text, allocator);
  clv__cache_header_write(&info, data + header_bytes, size_bytes - header_bytes, &text);
  clv__text_append_bytes(&text, data + header_bytes, size_bytes - (size_t)header_bytes);
  if (!text.failed) {
    size_t behind = CLV__CACHE_HASH_AT + CLV__HASH_BYTES;
    if (text.size_bytes != size_bytes || memcmp(text.data, data, CLV__CACHE_HASH_AT) != 0 ||
        memcmp(text.data + behind, data + behind, size_bytes - behind) != 0 ||
        whole != (memcmp(text.data, data, size_bytes) == 0) ||
        clv__cache_file_read(allocator, text.data, text.size_bytes, &again, &payload, &payload_bytes, &error) != CLV_OK) {
      abort();
    }
    clv__cache_info_finish(allocator, &again);
  }
  clv__text_finish(&text);
  clv__cache_info_finish(allocator, &info);
}

#endif
