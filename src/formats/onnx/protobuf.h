/* Protobuf's wire format: a reader that copies nothing, and a writer into a growing buffer.
 *
 * The reader knows no schema. Callers switch on `tag`, which combines a field's number and wire type, and skip fields whose tag
 * they do not expect, as protobuf requires. The reader never recurses: callers read nested messages themselves, and must limit
 * their depth. */
#ifndef CLEAVE_FORMATS_ONNX_PROTOBUF_H
#define CLEAVE_FORMATS_ONNX_PROTOBUF_H

#include "base/error.h"
#include "base/text.h"

typedef enum clv__proto_wire {
  CLV__PROTO_VARINT = 0,
  CLV__PROTO_FIXED64 = 1,
  CLV__PROTO_BYTES = 2,
  CLV__PROTO_FIXED32 = 5
} clv__proto_wire;

/* Combines a field's number and wire type. This is a constant expression, for `case` labels. */
#define CLV__PROTO_TAG(number, wire) (((uint32_t)(number) << 3) | (uint32_t)(wire))

/* Bytes inside the message being read. `data` may be NULL if the size is 0. */
typedef struct clv__proto_span {
  const uint8_t *data;
  size_t size_bytes;
} clv__proto_span;

typedef struct clv__proto_reader {
  const uint8_t *origin; /* start of the file: byte offsets in errors are relative to it */
  const uint8_t *at;
  const uint8_t *end;
} clv__proto_reader;

typedef struct clv__proto_field {
  uint32_t tag;          /* 0: end of the message */
  uint64_t number;       /* the bits of a varint, fixed32 or fixed64 field */
  clv__proto_span bytes; /* content of a length-delimited field */
} clv__proto_field;

static inline clv__proto_reader clv__proto_read(clv__proto_span span, const uint8_t *origin) {
  clv__proto_reader reader = {origin, span.data, span.data};
  if (span.size_bytes > 0) reader.end += span.size_bytes;
  return reader;
}

/* Reads the next field; `field->tag` is 0 at the end. If the bytes are not a valid message, the error is CLV_INVALID_MODEL and
 * states the byte offset. */
clv_status clv__proto_next(clv__proto_reader *reader, clv__proto_field *field, clv_error *error);
/* Reads one varint of a packed field. */
clv_status clv__proto_varint(clv__proto_reader *reader, uint64_t *number, clv_error *error);
/* Returns the number of varints that end within `span`, which is the number of elements of a packed field. */
size_t clv__proto_count_varints(clv__proto_span span);
/* Read a fixed32 or fixed64, which need not be aligned. */
uint32_t clv__proto_fixed32(const uint8_t *bytes);
uint64_t clv__proto_fixed64(const uint8_t *bytes);

/* ---- Writing ---- */

/* Append to a clv__text. If memory runs out, the text's `failed` is set, which the caller checks at the end. Unlike in proto3,
 * fields of value 0 are written too. */

void clv__proto_write_varint(clv__text *out, uint32_t field, uint64_t number);
void clv__proto_write_float(clv__text *out, uint32_t field, float number);
void clv__proto_write_bytes(clv__text *out, uint32_t field, const void *data, size_t size_bytes);
void clv__proto_write_string(clv__text *out, uint32_t field, const char *string);
/* Write packed repeated fields; nothing if `count` is 0. */
void clv__proto_write_ints(clv__text *out, uint32_t field, const int64_t *numbers, size_t count);
void clv__proto_write_floats(clv__text *out, uint32_t field, const float *numbers, size_t count);
void clv__proto_append_varint(clv__text *out, uint64_t number); /* without a tag */

/* Write a nested message: everything written between begin and end is its content. clv__proto_begin() returns the mark for
 * clv__proto_end(). The size of the content is stored in front of it as a varint. clv__proto_begin() reserves as many bytes as
 * the varint of `expected_bytes`, an estimate, takes. If the actual size takes more or fewer, clv__proto_end() moves the
 * content. The caller passes the same `expected_bytes` to both. */
size_t clv__proto_begin(clv__text *out, uint32_t field, size_t expected_bytes);
void clv__proto_end(clv__text *out, size_t mark, size_t expected_bytes);

#endif
