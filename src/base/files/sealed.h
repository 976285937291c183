/* Compiled programs as files: a header with magic, version, length and checksum, and a payload of little-endian numbers.
 *
 *   8 bytes   magic
 *   u32       version of the payload
 *   u32       0
 *   u64       bytes of the payload
 *   32 bytes  BLAKE2b-256 of the payload
 *
 * A file may come from a stranger: whoever reads one learns that it is whole, not that it is well-meant. */
#ifndef CLEAVE_BASE_FILES_SEALED_H
#define CLEAVE_BASE_FILES_SEALED_H

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "cleave/plugin/backend.h"

#define CLV__SEALED_HASH_AT 24u
#define CLV__SEALED_HEADER_BYTES 56u

/* What a kind of file is. */
typedef struct clv__sealed_kind {
  const char *what;  /* begins every error: "npubin" */
  const char *magic; /* 8 bytes */
  uint32_t version;
} clv__sealed_kind;

/* ---- Writing: a payload is a text that grows; see its `failed`. ---- */
void clv__sealed_put(clv__text *payload, uint64_t number, size_t size_bytes); /* at most 8 */
void clv__sealed_put_text(clv__text *payload, const char *text);              /* u32 bytes, then the bytes */
/* u32 dtype, i32 rank (-1: unknown), i64 dims[rank] (-1: unknown). A list of them has its count (u32) before it. */
void clv__sealed_put_type(clv__text *payload, const clv_tensor *type);
/* u64 bytes, then the bytes. */
void clv__sealed_put_bytes(clv__text *payload, const void *data, size_t size_bytes);
/* The header and the payload to `write`. CLV_OUT_OF_MEMORY where the payload has failed; what `write` says. */
clv_status clv__sealed_write(const clv__sealed_kind *kind, const clv__text *payload, clv_write_fn write, void *cookie,
                             clv_error *error);

/* ---- Reading: beyond the end are zeros, and `failed` is set: checked wherever a number sizes something, and at the end. ---- */
typedef struct clv__sealed_reader {
  const clv__sealed_kind *kind;
  const uint8_t *data; /* the payload; borrowed */
  size_t size_bytes, at;
  bool failed;
  clv_error *error;
} clv__sealed_reader;

/* Checks the header and the checksum, and stands at the payload's beginning. CLV_INVALID_MODEL; CLV_NOT_SUPPORTED for another
 * version. */
clv_status clv__sealed_open(const clv__sealed_kind *kind, const void *data, size_t size_bytes, clv__sealed_reader *reader,
                            clv_error *error);
uint64_t clv__sealed_take(clv__sealed_reader *reader, size_t size_bytes);               /* at most 8 */
const uint8_t *clv__sealed_take_bytes(clv__sealed_reader *reader, uint64_t size_bytes); /* in the file; NULL beyond the end */
const char *clv__sealed_take_text(clv__sealed_reader *reader, clv__arena *arena);       /* terminated; NULL beyond the end */
/* CLV_NOT_SUPPORTED where the text that comes next is not `fingerprint`. */
clv_status clv__sealed_check_fingerprint(clv__sealed_reader *reader, const char *fingerprint);
/* A list of types of tensors that are no strings. */
clv_status clv__sealed_take_types(clv__sealed_reader *reader, clv__arena *arena, clv_tensor **types, uint32_t *count);
/* Bytes with their length before them, in memory of the allocator, which the caller releases. */
clv_status clv__sealed_copy_bytes(clv__sealed_reader *reader, const clv_allocator *allocator, void **data, size_t *size_bytes);
/* CLV_INVALID_MODEL: `what` is wrong, and where. */
clv_status clv__sealed_damaged(const clv__sealed_reader *reader, const char *what);

#endif
