/* See sealed.h. */
#include "base/files/sealed.h"

#include <string.h>

#include "base/hash.h"

/* ---- Writing ---- */

void clv__sealed_put(clv__text *payload, uint64_t number, size_t size_bytes) {
  uint8_t bytes[8];
  for (size_t i = 0; i < size_bytes; ++i) bytes[i] = (uint8_t)(number >> (8 * i));
  clv__text_append_bytes(payload, bytes, size_bytes);
}

void clv__sealed_put_text(clv__text *payload, const char *text) {
  clv__sealed_put(payload, strlen(text), 4);
  clv__text_append_bytes(payload, text, strlen(text));
}

void clv__sealed_put_type(clv__text *payload, const clv_tensor *type) {
  clv__sealed_put(payload, type->dtype, 4);
  clv__sealed_put(payload, (uint32_t)type->rank, 4);
  for (int32_t d = 0; d < type->rank; ++d) clv__sealed_put(payload, (uint64_t)type->dims[d], 8);
}

void clv__sealed_put_bytes(clv__text *payload, const void *data, size_t size_bytes) {
  clv__sealed_put(payload, size_bytes, 8);
  clv__text_append_bytes(payload, data, size_bytes);
}

static void hash_payload(const void *data, size_t size_bytes, clv__hash *hash) {
  clv__hasher hasher;
  clv__hasher_init(&hasher);
  clv__hasher_update(&hasher, data, size_bytes);
  clv__hasher_finish(&hasher, hash);
}

clv_status clv__sealed_write(const clv__sealed_kind *kind, const clv__text *payload, clv_write_fn write, void *cookie,
                             clv_error *error) {
  if (payload->failed) return clv__error_memory(error, payload->size_bytes);
  uint8_t header[CLV__SEALED_HEADER_BYTES] = {0};
  clv__hash hash;
  hash_payload(payload->data, payload->size_bytes, &hash);
  memcpy(header, kind->magic, 8);
  for (size_t i = 0; i < 4; ++i) header[8 + i] = (uint8_t)(kind->version >> (8 * i));
  for (size_t i = 0; i < 8; ++i) header[16 + i] = (uint8_t)((uint64_t)payload->size_bytes >> (8 * i));
  memcpy(header + CLV__SEALED_HASH_AT, hash.bytes, sizeof hash.bytes);
  clv_status status = write(cookie, header, sizeof header);
  if (status == CLV_OK) status = write(cookie, payload->data, payload->size_bytes);
  if (status == CLV_OK) return status;
  return clv__error_set(error, status, "%s: cannot write %zu bytes", kind->what, sizeof header + payload->size_bytes);
}

/* ---- Reading ---- */

uint64_t clv__sealed_take(clv__sealed_reader *reader, size_t size_bytes) {
  if (reader->size_bytes - reader->at < size_bytes) {
    reader->failed = true;
    reader->at = reader->size_bytes;
    return 0;
  }
  uint64_t number = 0;
  for (size_t i = 0; i < size_bytes; ++i) number |= (uint64_t)reader->data[reader->at + i] << (8 * i);
  reader->at += size_bytes;
  return number;
}

const uint8_t *clv__sealed_take_bytes(clv__sealed_reader *reader, uint64_t size_bytes) {
  if (reader->size_bytes - reader->at < size_bytes) {
    reader->failed = true;
    return NULL;
  }
  const uint8_t *bytes = reader->data + reader->at;
  reader->at += (size_t)size_bytes;
  return bytes;
}

const char *clv__sealed_take_text(clv__sealed_reader *reader, clv__arena *arena) {
  uint64_t size_bytes = clv__sealed_take(reader, 4);
  const uint8_t *bytes = clv__sealed_take_bytes(reader, size_bytes);
  return bytes == NULL ? NULL : clv__arena_string(arena, (const char *)bytes, (size_t)size_bytes);
}

clv_status clv__sealed_damaged(const clv__sealed_reader *reader, const char *what) {
  return clv__error_set(reader->error, CLV_INVALID_MODEL, "%s: %s (byte %zu of %zu)", reader->kind->what, what,
                        CLV__SEALED_HEADER_BYTES + reader->at, CLV__SEALED_HEADER_BYTES + reader->size_bytes);
}

clv_status clv__sealed_open(const clv__sealed_kind *kind, const void *data, size_t size_bytes, clv__sealed_reader *reader,
                            clv_error *error) {
  clv__sealed_reader file = {.kind = kind, .data = data, .size_bytes = size_bytes, .error = error};
  const uint8_t *magic = clv__sealed_take_bytes(&file, 8);
  if (magic == NULL || memcmp(magic, kind->magic, 8) != 0) {
    return clv__error_set(error, CLV_INVALID_MODEL, "not a file of the kind '%s': the magic number is missing", kind->what);
  }
  uint64_t version = clv__sealed_take(&file, 4), reserved = clv__sealed_take(&file, 4), payload = clv__sealed_take(&file, 8);
  const uint8_t *hash = clv__sealed_take_bytes(&file, CLV__HASH_BYTES);
  if (version != kind->version && !file.failed) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "%s: the file has format version %llu, but this library reads version %u: compile it again", kind->what,
                          (unsigned long long)version, kind->version);
  }
  if (file.failed || reserved != 0) {
    return clv__error_set(error, CLV_INVALID_MODEL, "%s: the header is %s in this file of %zu bytes", kind->what,
                          file.failed ? "incomplete" : "damaged", size_bytes);
  }
  if (payload != size_bytes - file.at) {
    return clv__error_set(error, CLV_INVALID_MODEL,
                          "%s: the file of %zu bytes does not match its header, which states a payload of %llu bytes", kind->what,
                          size_bytes, (unsigned long long)payload);
  }
  clv__hash computed;
  hash_payload(file.data + file.at, payload, &computed);
  if (memcmp(computed.bytes, hash, CLV__HASH_BYTES) != 0) {
    return clv__error_set(error, CLV_INVALID_MODEL, "%s: damaged: the checksum does not match", kind->what);
  }
  *reader = (clv__sealed_reader){.kind = kind, .data = file.data + file.at, .size_bytes = payload, .error = error};
  return CLV_OK;
}

clv_status clv__sealed_check_fingerprint(clv__sealed_reader *reader, const char *fingerprint) {
  uint64_t size_bytes = clv__sealed_take(reader, 4);
  const uint8_t *bytes = clv__sealed_take_bytes(reader, size_bytes);
  if (bytes == NULL) return clv__sealed_damaged(reader, "truncated in the fingerprint");
  if (size_bytes == strlen(fingerprint) && memcmp(bytes, fingerprint, size_bytes) == 0) return CLV_OK;
  return clv__error_set(reader->error, CLV_NOT_SUPPORTED, "%s: compiled for another device, driver or options: compile it again",
                        reader->kind->what);
}

clv_status clv__sealed_take_types(clv__sealed_reader *reader, clv__arena *arena, clv_tensor **types, uint32_t *count) {
  uint64_t inputs = clv__sealed_take(reader, 4);
  if (inputs > (reader->size_bytes - reader->at) / 8) {
    return clv__sealed_damaged(reader, "more inputs than fit in the file");
  }
  *types = clv__arena_allocate_zero(arena, inputs, sizeof **types);
  if (*types == NULL) return clv__error_memory(reader->error, inputs * sizeof **types);
  *count = (uint32_t)inputs;
  for (uint32_t i = 0; i < *count; ++i) {
    clv_tensor *type = &(*types)[i];
    uint64_t dtype = clv__sealed_take(reader, 4);
    int32_t rank = (int32_t)(uint32_t)clv__sealed_take(reader, 4);
    if (dtype > CLV_BF16 || clv_dtype_size_bytes((clv_dtype)dtype) == 0 || dtype == CLV_STRING) {
      return clv__sealed_damaged(reader, "an input has an invalid dtype");
    }
    if (rank < CLV_RANK_UNKNOWN || rank > CLV_MAX_RANK) {
      return clv__sealed_damaged(reader, "an input's rank is out of range");
    }
    type->dtype = (clv_dtype)dtype;
    type->rank = rank;
    for (int32_t d = 0; d < rank; ++d) {
      type->dims[d] = (int64_t)clv__sealed_take(reader, 8);
      if (type->dims[d] < CLV_DIM_UNKNOWN) return clv__sealed_damaged(reader, "an input's dimension is negative");
    }
  }
  return reader->failed ? clv__sealed_damaged(reader, "truncated in the inputs") : CLV_OK;
}

clv_status clv__sealed_copy_bytes(clv__sealed_reader *reader, const clv_allocator *allocator, void **data, size_t *size_bytes) {
  uint64_t count = clv__sealed_take(reader, 8);
  const uint8_t *bytes = clv__sealed_take_bytes(reader, count);
  if (reader->failed) return clv__sealed_damaged(reader, "truncated in the graph");
  *data = clv__allocate(allocator, count);
  if (*data == NULL) return clv__error_memory(reader->error, count);
  if (count > 0) memcpy(*data, bytes, count);
  *size_bytes = count;
  return CLV_OK;
}
