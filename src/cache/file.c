/* See file.h. */
#include "cache/file.h"

#include <string.h>

/* ---- Writing ---- */

static void put(clv__text *out, uint64_t number, size_t size_bytes) {
  uint8_t bytes[8];
  for (size_t i = 0; i < size_bytes; ++i) bytes[i] = (uint8_t)(number >> (8 * i));
  clv__text_append_bytes(out, bytes, size_bytes);
}

static void put_text(clv__text *out, const char *text) {
  size_t size_bytes = strlen(text);
  put(out, size_bytes, 4);
  clv__text_append_bytes(out, text, size_bytes);
}

static void hash_file(const uint8_t *header, size_t header_bytes, const void *payload, size_t payload_bytes, clv__hash *hash) {
  clv__hash content;
  clv__hasher hasher;
  size_t behind = CLV__CACHE_HASH_AT + CLV__HASH_BYTES;
  clv__hash_bytes(payload, payload_bytes, &content);
  clv__hasher_init(&hasher);
  clv__hasher_update(&hasher, header, CLV__CACHE_HASH_AT);
  clv__hasher_update(&hasher, header + behind, header_bytes - behind);
  clv__hasher_update(&hasher, content.bytes, sizeof content.bytes);
  clv__hasher_finish(&hasher, hash);
}

void clv__cache_header_write(const clv__cache_info *info, const void *payload, uint64_t payload_bytes, clv__text *text) {
  const char *const texts[] = {info->backend, info->version, info->device, info->description, info->operators};
  clv__hash hash = {{0}};
  size_t header_bytes = CLV__CACHE_FIXED_BYTES + 4 * (size_t)info->weight_count;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) header_bytes += 4 + strlen(texts[i]);
  size_t start = text->size_bytes;
  clv__text_append_bytes(text, CLV__CACHE_MAGIC, 8);
  put(text, CLV__CACHE_VERSION, 4);
  put(text, header_bytes, 4);
  put(text, payload_bytes, 8);
  clv__text_append_bytes(text, hash.bytes, sizeof hash.bytes);
  clv__text_append_bytes(text, info->key.parts, sizeof info->key.parts);
  put(text, info->node_count, 4);
  put(text, info->weight_count, 4);
  for (uint32_t i = 0; i < info->weight_count; ++i) put(text, info->weights[i], 4);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) put_text(text, texts[i]);
  if (text->failed) return;
  uint8_t *header = (uint8_t *)text->data + start;
  hash_file(header, header_bytes, payload, payload_bytes, &hash);
  memcpy(header + CLV__CACHE_HASH_AT, hash.bytes, sizeof hash.bytes);
}

/* ---- Reading ---- */

typedef struct reader {
  const uint8_t *data;
  size_t size_bytes, at;
  bool failed; /* a read went past the end and returned zero or NULL */
} reader;

static const uint8_t *take_bytes(reader *r, uint64_t size_bytes) {
  if (r->size_bytes - r->at < size_bytes) {
    r->failed = true;
    return NULL;
  }
  const uint8_t *bytes = r->data + r->at;
  r->at += (size_t)size_bytes;
  return bytes;
}

static uint64_t read_number(reader *r, size_t size_bytes) {
  const uint8_t *bytes = take_bytes(r, size_bytes);
  uint64_t number = 0;
  for (size_t i = 0; bytes != NULL && i < size_bytes; ++i) number |= (uint64_t)bytes[i] << (8 * i);
  return number;
}

static void take_text(reader *r, char text[CLV__CACHE_TEXT_BYTES]) {
  uint64_t size_bytes = read_number(r, 4);
  const uint8_t *bytes = take_bytes(r, size_bytes);
  if (bytes == NULL || size_bytes >= CLV__CACHE_TEXT_BYTES || memchr(bytes, '\0', size_bytes) != NULL) {
    r->failed = true;
    return;
  }
  memcpy(text, bytes, size_bytes);
  text[size_bytes] = '\0';
}

static clv_status read_rest(const clv_allocator *allocator, reader *r, clv__cache_info *info, clv_error *error) {
  const uint8_t *parts = take_bytes(r, sizeof info->key.parts);
  if (parts != NULL) memcpy(info->key.parts, parts, sizeof info->key.parts);
  info->node_count = (uint32_t)read_number(r, 4);
  info->weight_count = (uint32_t)read_number(r, 4);
  const uint8_t *weights = take_bytes(r, 4 * (uint64_t)info->weight_count);
  if (weights != NULL && info->weight_count > 0) {
    uint32_t *values = clv__allocate(allocator, info->weight_count * sizeof *values);
    if (values == NULL) return clv__error_memory(error, info->weight_count * sizeof *values);
    reader list = {.data = weights, .size_bytes = 4 * (size_t)info->weight_count};
    for (uint32_t i = 0; i < info->weight_count; ++i) values[i] = (uint32_t)read_number(&list, 4);
    info->weights = values;
  }
  take_text(r, info->backend);
  take_text(r, info->version);
  take_text(r, info->device);
  take_text(r, info->description);
  take_text(r, info->operators);
  if (!r->failed && r->at == r->size_bytes) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_MODEL, "damaged: the lengths in its header contradict each other");
}

clv_status clv__cache_header_read(const clv_allocator *allocator, const void *data, size_t size_bytes, uint64_t file_bytes,
                                  clv__cache_info *info, uint64_t *header_bytes, clv_error *error) {
  *info = (clv__cache_info){0};
  reader r = {.data = data, .size_bytes = size_bytes};
  const uint8_t *magic = take_bytes(&r, 8);
  if (magic == NULL) return clv__error_set(error, CLV_INVALID_MODEL, "truncated: %zu bytes", size_bytes);
  if (memcmp(magic, CLV__CACHE_MAGIC, 8) != 0) {
    return clv__error_set(error, CLV_INVALID_MODEL, "damaged: the magic number is missing");
  }
  uint64_t version = read_number(&r, 4), header = read_number(&r, 4), payload = read_number(&r, 8);
  if (!r.failed && version != CLV__CACHE_VERSION) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "format version %llu, but this library uses version %u",
                          (unsigned long long)version, CLV__CACHE_VERSION);
  }
  if (r.failed) return clv__error_set(error, CLV_INVALID_MODEL, "truncated: %zu bytes", size_bytes);
  if (header < CLV__CACHE_FIXED_BYTES || payload > UINT64_MAX - header || header + payload != file_bytes) {
    return clv__error_set(
        error, CLV_INVALID_MODEL,
        "truncated or damaged: %llu bytes, but its header states %llu bytes for itself and %llu for the payload",
        (unsigned long long)file_bytes, (unsigned long long)header, (unsigned long long)payload);
  }
  *header_bytes = header;
  if (header > size_bytes)
    return clv__error_set(error, CLV_INVALID_MODEL, "damaged: its header states a header size of %llu bytes, which is too large",
                          (unsigned long long)header);
  r.size_bytes = (size_t)header;
  (void)take_bytes(&r, CLV__HASH_BYTES);
  clv_status status = read_rest(allocator, &r, info, error);
  if (status != CLV_OK) clv__cache_info_finish(allocator, info);
  return status;
}

clv_status clv__cache_file_read(const clv_allocator *allocator, const void *data, size_t size_bytes, clv__cache_info *info,
                                const void **payload, size_t *payload_bytes, clv_error *error) {
  uint64_t header_bytes;
  CLV__TRY(clv__cache_header_read(allocator, data, size_bytes, size_bytes, info, &header_bytes, error));
  clv__hash hash;
  *payload = (const uint8_t *)data + header_bytes;
  *payload_bytes = size_bytes - (size_t)header_bytes;
  hash_file(data, (size_t)header_bytes, *payload, *payload_bytes, &hash);
  if (memcmp(hash.bytes, (const uint8_t *)data + CLV__CACHE_HASH_AT, sizeof hash.bytes) == 0) return CLV_OK;
  clv__cache_info_finish(allocator, info);
  return clv__error_set(error, CLV_INVALID_MODEL, "damaged: the checksum does not match");
}

void clv__cache_info_finish(const clv_allocator *allocator, clv__cache_info *info) {
  clv__release(allocator, (void *)info->weights);
  *info = (clv__cache_info){0};
}
