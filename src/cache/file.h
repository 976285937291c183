/* One file of the cache: an executable as its backend saved it, and its description. All numbers are little-endian.
 *
 *   8  bytes  magic
 *   u32       version
 *   u32       bytes of the header: everything before the payload
 *   u64       bytes of the payload
 *   32 bytes  BLAKE2b-256 over the header without this field, and the payload's hash (clv__hash_bytes)
 *   5 x 32    the key (clv__key)
 *   u32       number of nodes of the partition
 *   u32       number of weights that the executable requires; then for each, its value in the view (u32)
 *   5 texts   backend, its version, device, its description, operators   (text: u32 bytes, then the bytes)
 *   payload
 *
 * A file may come from an untrusted source: the hash proves that it is complete, not that its content is honest. The backend
 * must validate the payload, and clv__executables_compile() the weights. */
#ifndef CLEAVE_CACHE_FILE_H
#define CLEAVE_CACHE_FILE_H

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "cache/key.h"

#define CLV__CACHE_MAGIC "CLVEXEC\n"
#define CLV__CACHE_VERSION 1u

enum { CLV__CACHE_HASH_AT = 24, CLV__CACHE_FIXED_BYTES = 224, CLV__CACHE_TEXT_BYTES = 256 };

/* The description in a file. Texts are truncated to CLV__CACHE_TEXT_BYTES, including the terminator. */
typedef struct clv__cache_info {
  clv__key key;
  uint32_t node_count;
  uint32_t weight_count;
  const uint32_t *weights; /* value ids of the view; an info that was read owns them */
  char backend[CLV__CACHE_TEXT_BYTES], version[CLV__CACHE_TEXT_BYTES];
  char device[CLV__CACHE_TEXT_BYTES], description[CLV__CACHE_TEXT_BYTES];
  char operators[CLV__CACHE_TEXT_BYTES]; /* "Conv ×53, Relu ×49" */
} clv__cache_info;

/* Appends the header; a failure sets text->failed. */
void clv__cache_header_write(const clv__cache_info *info, const void *payload, uint64_t payload_bytes, clv__text *text);

/* Reads the header from the first `size_bytes` of a file of `file_bytes`. `header_bytes` is the offset of the payload. The
 * weights are allocated. CLV_NOT_SUPPORTED: another version; CLV_INVALID_MODEL: damaged. Does not check the hash. */
clv_status clv__cache_header_read(const clv_allocator *allocator, const void *data, size_t size_bytes, uint64_t file_bytes,
                                  clv__cache_info *info, uint64_t *header_bytes, clv_error *error);
/* Reads a complete file, and also checks its hash. `payload` points into `data`. */
clv_status clv__cache_file_read(const clv_allocator *allocator, const void *data, size_t size_bytes, clv__cache_info *info,
                                const void **payload, size_t *payload_bytes, clv_error *error);
void clv__cache_info_finish(const clv_allocator *allocator, clv__cache_info *info); /* accepts a zeroed info */

#endif
