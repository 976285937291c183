/* See protobuf.h. */
#include "formats/onnx/protobuf.h"

#include <string.h>

enum { LARGEST_FIELD = (1 << 29) - 1, VARINT_BYTES = 10 };

clv_status clv__proto_varint(clv__proto_reader *reader, uint64_t *number, clv_error *error) {
  uint64_t value = 0;
  size_t available = (size_t)(reader->end - reader->at);
  size_t start = (size_t)(reader->at - reader->origin);
  for (size_t i = 0; i < VARINT_BYTES; ++i) {
    if (i >= available) {
      return clv__error_set(error, CLV_INVALID_MODEL, "byte %zu: a number is truncated: is the file complete?", start);
    }
    uint8_t byte = reader->at[i];
    value |= (uint64_t)(byte & 0x7f) << (7 * i);
    if ((byte & 0x80) == 0) {
      reader->at += i + 1;
      *number = value;
      return CLV_OK;
    }
  }
  return clv__error_set(error, CLV_INVALID_MODEL, "byte %zu: a number has more than %d bytes, so this is not protobuf", start,
                        VARINT_BYTES);
}

static clv_status read_span(clv__proto_reader *reader, uint64_t size_bytes, clv__proto_span *span, clv_error *error) {
  size_t available = (size_t)(reader->end - reader->at);
  if (size_bytes > available) {
    return clv__error_set(error, CLV_INVALID_MODEL,
                          "byte %zu: a field has %llu bytes, but only %zu are left: is the file complete?",
                          (size_t)(reader->at - reader->origin), (unsigned long long)size_bytes, available);
  }
  *span = (clv__proto_span){reader->at, (size_t)size_bytes};
  reader->at += size_bytes;
  return CLV_OK;
}

clv_status clv__proto_next(clv__proto_reader *reader, clv__proto_field *field, clv_error *error) {
  *field = (clv__proto_field){0};
  if (reader->at == reader->end) return CLV_OK;
  size_t start = (size_t)(reader->at - reader->origin);
  uint64_t tag;
  CLV__TRY(clv__proto_varint(reader, &tag, error));
  uint64_t number = tag >> 3;
  if (number == 0 || number > LARGEST_FIELD) {
    return clv__error_set(error, CLV_INVALID_MODEL, "byte %zu: field number %llu is invalid, so this is not protobuf", start,
                          (unsigned long long)number);
  }
  clv__proto_span fixed = {0};
  switch (tag & 7) {
    case CLV__PROTO_VARINT:
      CLV__TRY(clv__proto_varint(reader, &field->number, error));
      break;
    case CLV__PROTO_FIXED64:
      CLV__TRY(read_span(reader, 8, &fixed, error));
      field->number = clv__proto_fixed64(fixed.data);
      break;
    case CLV__PROTO_BYTES: {
      uint64_t size_bytes;
      CLV__TRY(clv__proto_varint(reader, &size_bytes, error));
      CLV__TRY(read_span(reader, size_bytes, &field->bytes, error));
      break;
    }
    case CLV__PROTO_FIXED32:
      CLV__TRY(read_span(reader, 4, &fixed, error));
      field->number = clv__proto_fixed32(fixed.data);
      break;
    default:
      return clv__error_set(error, CLV_INVALID_MODEL, "byte %zu: unsupported wire type %u (%s) in field %llu", start,
                            (unsigned)(tag & 7), (tag & 7) < 5 ? "a group, which ONNX does not use" : "which does not exist",
                            (unsigned long long)number);
  }
  field->tag = (uint32_t)tag;
  return CLV_OK;
}

size_t clv__proto_count_varints(clv__proto_span span) {
  size_t count = 0;
  for (size_t i = 0; i < span.size_bytes; ++i) count += (span.data[i] & 0x80) == 0;
  return count;
}

uint32_t clv__proto_fixed32(const uint8_t *bytes) {
  return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

uint64_t clv__proto_fixed64(const uint8_t *bytes) {
  return (uint64_t)clv__proto_fixed32(bytes) | (uint64_t)clv__proto_fixed32(bytes + 4) << 32;
}

/* ---- Writing ---- */

static size_t encode(uint64_t number, uint8_t bytes[VARINT_BYTES]) {
  size_t size_bytes = 0;
  while (number >= 0x80) {
    bytes[size_bytes++] = (uint8_t)(number | 0x80);
    number >>= 7;
  }
  bytes[size_bytes++] = (uint8_t)number;
  return size_bytes;
}

static size_t varint_bytes(uint64_t number) {
  uint8_t bytes[VARINT_BYTES];
  return encode(number, bytes);
}

void clv__proto_append_varint(clv__text *out, uint64_t number) {
  uint8_t bytes[VARINT_BYTES];
  clv__text_append_bytes(out, bytes, encode(number, bytes));
}

void clv__proto_write_varint(clv__text *out, uint32_t field, uint64_t number) {
  clv__proto_append_varint(out, CLV__PROTO_TAG(field, CLV__PROTO_VARINT));
  clv__proto_append_varint(out, number);
}

static void append_fixed32(clv__text *out, float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  uint8_t bytes[4] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16), (uint8_t)(bits >> 24)};
  clv__text_append_bytes(out, bytes, sizeof bytes);
}

void clv__proto_write_float(clv__text *out, uint32_t field, float number) {
  clv__proto_append_varint(out, CLV__PROTO_TAG(field, CLV__PROTO_FIXED32));
  append_fixed32(out, number);
}

void clv__proto_write_bytes(clv__text *out, uint32_t field, const void *data, size_t size_bytes) {
  clv__proto_append_varint(out, CLV__PROTO_TAG(field, CLV__PROTO_BYTES));
  clv__proto_append_varint(out, size_bytes);
  clv__text_append_bytes(out, data, size_bytes);
}

void clv__proto_write_string(clv__text *out, uint32_t field, const char *string) {
  clv__proto_write_bytes(out, field, string, strlen(string));
}

void clv__proto_write_ints(clv__text *out, uint32_t field, const int64_t *numbers, size_t count) {
  if (count == 0) return;
  size_t size_bytes = 0;
  for (size_t i = 0; i < count; ++i) size_bytes += varint_bytes((uint64_t)numbers[i]);
  clv__proto_append_varint(out, CLV__PROTO_TAG(field, CLV__PROTO_BYTES));
  clv__proto_append_varint(out, size_bytes);
  for (size_t i = 0; i < count; ++i) clv__proto_append_varint(out, (uint64_t)numbers[i]);
}

void clv__proto_write_floats(clv__text *out, uint32_t field, const float *numbers, size_t count) {
  if (count == 0) return;
  clv__proto_append_varint(out, CLV__PROTO_TAG(field, CLV__PROTO_BYTES));
  clv__proto_append_varint(out, (uint64_t)count * 4);
  for (size_t i = 0; i < count; ++i) append_fixed32(out, numbers[i]);
}

size_t clv__proto_begin(clv__text *out, uint32_t field, size_t expected_bytes) {
  static const uint8_t room[VARINT_BYTES];
  clv__proto_append_varint(out, CLV__PROTO_TAG(field, CLV__PROTO_BYTES));
  clv__text_append_bytes(out, room, varint_bytes(expected_bytes));
  return out->size_bytes;
}

void clv__proto_end(clv__text *out, size_t mark, size_t expected_bytes) {
  static const uint8_t room[VARINT_BYTES];
  if (out->failed) return;
  size_t size_bytes = out->size_bytes - mark;
  size_t reserved = varint_bytes(expected_bytes);
  uint8_t length[VARINT_BYTES];
  size_t needed = encode(size_bytes, length);
  if (needed > reserved) {
    clv__text_append_bytes(out, room, needed - reserved);
    if (out->failed) return;
  }
  size_t start = mark - reserved;
  if (needed != reserved) memmove(out->data + start + needed, out->data + mark, size_bytes);
  memcpy(out->data + start, length, needed);
  out->size_bytes = start + needed + size_bytes;
  out->data[out->size_bytes] = '\0';
}
