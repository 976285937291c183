/* Compiled programs as files: a header with magic, version, length and checksum, then a payload of little-endian numbers.
 *
 *   8 bytes   magic
 *   u32       version of the payload
 *   u32       0
 *   u64       bytes of the payload
 *   32 bytes  BLAKE2b-256 of the payload
 *
 * A file may come from an untrusted source. The checksum proves that it is complete, not that its content is harmless. */
#ifndef CLEAVE_BASE_FILES_SEALED_H
#define CLEAVE_BASE_FILES_SEALED_H

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "cleave/plugin/backend.h"

#define CLV__SEALED_HASH_AT 24u
#define CLV__SEALED_HEADER_BYTES 56u

/* A kind of file. */
typedef struct clv__sealed_kind {
  const char *what;  /* prefix of every error: "npubin" */
  const char *magic; /* 8 bytes */
  uint32_t version;
} clv__sealed_kind;

/* ---- Writing: numbers are appended to a text. If memory runs out, the text's `failed` is set, and clv__sealed_write() fails.
 * ---- */
void clv__sealed_put(clv__text *payload, uint64_t number, size_t size_bytes); /* size_bytes is at most 8 */
void clv__sealed_put_text(clv__text *payload, const char *text);              /* the length as u32, then the bytes */
/* Appends a type: u32 dtype, i32 rank (-1: unknown), i64 dims[rank] (-1: unknown). Before a list of types, the caller
 * appends the count (u32). */
void clv__sealed_put_type(clv__text *payload, const clv_tensor *type);
/* Appends the length as u64, then the bytes. */
void clv__sealed_put_bytes(clv__text *payload, const void *data, size_t size_bytes);
/* Passes the header and the payload to `write`. Returns CLV_OUT_OF_MEMORY if the payload has failed; otherwise the status of
 * `write`. */
clv_status clv__sealed_write(const clv__sealed_kind *kind, const clv__text *payload, clv_write_fn write, void *cookie,
                             clv_error *error);

/* ---- Reading: past the end the reader returns zeros and sets `failed`. Check `failed` before using a number as a size, and at
 * the end. ---- */
typedef struct clv__sealed_reader {
  const clv__sealed_kind *kind;
  const uint8_t *data; /* the payload; borrowed */
  size_t size_bytes, at;
  bool failed;
  clv_error *error;
} clv__sealed_reader;

/* Checks the header and the checksum, and positions the reader at the start of the payload. Returns CLV_INVALID_MODEL if the
 * file is damaged, and CLV_NOT_SUPPORTED if it has another version. */
clv_status clv__sealed_open(const clv__sealed_kind *kind, const void *data, size_t size_bytes, clv__sealed_reader *reader,
                            clv_error *error);
uint64_t clv__sealed_take(clv__sealed_reader *reader, size_t size_bytes);               /* size_bytes is at most 8 */
const uint8_t *clv__sealed_take_bytes(clv__sealed_reader *reader, uint64_t size_bytes); /* borrowed; NULL past the end */
const char *clv__sealed_take_text(clv__sealed_reader *reader, clv__arena *arena);       /* terminated; NULL past the end */
/* Reads a text. Returns CLV_NOT_SUPPORTED if it is not `fingerprint`. */
clv_status clv__sealed_check_fingerprint(clv__sealed_reader *reader, const char *fingerprint);
/* Reads a count (u32) and that many tensor types. Rejects CLV_STRING, the 8-bit floats and smaller dtypes. */
clv_status clv__sealed_take_types(clv__sealed_reader *reader, clv__arena *arena, clv_tensor **types, uint32_t *count);
/* Reads the bytes of a graph, as appended by clv__sealed_put_bytes(). `*data` is a copy from `allocator`, which the caller
 * releases. */
clv_status clv__sealed_copy_bytes(clv__sealed_reader *reader, const clv_allocator *allocator, void **data, size_t *size_bytes);
/* Returns CLV_INVALID_MODEL. The message has `what` and the position in the file. */
clv_status clv__sealed_damaged(const clv__sealed_reader *reader, const char *what);

#endif
