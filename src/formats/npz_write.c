/* Writing .npz files: every size in 64 bits, every date the same. */
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

#include "base/file.h"
#include "base/text.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/zip.h"

static void put16(clv__text *out, uint32_t number) {
  uint8_t bytes[2] = {(uint8_t)number, (uint8_t)(number >> 8)};
  clv__text_append_bytes(out, bytes, sizeof bytes);
}
static void put32(clv__text *out, uint32_t number) {
  put16(out, number);
  put16(out, number >> 16);
}
static void put64(clv__text *out, uint64_t number) {
  put32(out, (uint32_t)number);
  put32(out, (uint32_t)(number >> 32));
}

/* What the local and the central record have in common. Sizes are always in the 64-bit extra field: one way for all. */
static void put_common(clv__text *out, const clv__zip_entry *item, size_t extra_bytes) {
  put16(out, VERSION_64);
  put16(out, 0x800); /* the name is UTF-8 */
  put16(out, item->method);
  put16(out, 0);
  put16(out, FIRST_DATE);
  put32(out, item->crc);
  put32(out, UINT32_MAX);
  put32(out, UINT32_MAX);
  put16(out, (uint32_t)strlen(item->name) + 4);
  put16(out, (uint32_t)extra_bytes);
}

static void put_name_and_sizes(clv__text *out, const clv__zip_entry *item, bool with_offset) {
  clv__text_append_bytes(out, item->name, strlen(item->name));
  clv__text_append_bytes(out, ".npy", 4);
  put16(out, EXTRA64);
  put16(out, with_offset ? 24 : 16);
  put64(out, item->size_bytes);
  put64(out, item->packed_bytes);
  if (with_offset) put64(out, item->offset);
}

static void put_local(clv__text *out, const clv__zip_entry *item) {
  put32(out, LOCAL_SIGNATURE);
  put_common(out, item, 20);
  put_name_and_sizes(out, item, false);
}

static void put_central(clv__text *out, const clv__zip_entry *item) {
  put32(out, CENTRAL_SIGNATURE);
  put16(out, VERSION_64);
  put_common(out, item, 28);
  put16(out, 0);
  put16(out, 0);
  put16(out, 0);
  put32(out, 0);
  put32(out, UINT32_MAX);
  put_name_and_sizes(out, item, true);
}

static void put_ends(clv__text *out, uint64_t count, uint64_t offset) {
  uint64_t end = out->size_bytes;
  put32(out, END64_SIGNATURE);
  put64(out, END64_BYTES - 12);
  put16(out, VERSION_64);
  put16(out, VERSION_64);
  put32(out, 0);
  put32(out, 0);
  put64(out, count);
  put64(out, count);
  put64(out, end - offset);
  put64(out, offset);
  put32(out, LOCATOR64_SIGNATURE);
  put32(out, 0);
  put64(out, end);
  put32(out, 1);
  put32(out, END_SIGNATURE);
  put16(out, 0);
  put16(out, 0);
  put16(out, UINT16_MAX);
  put16(out, UINT16_MAX);
  put32(out, UINT32_MAX);
  put32(out, UINT32_MAX);
  put16(out, 0);
}

static clv_status pack(clv__text *out, const clv__text *array, clv__zip_entry *item, clv_error *error) {
  z_stream stream = {.zalloc = clv__zlib_allocate, .zfree = clv__zlib_release, .opaque = (void *)out->allocator};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return clv__error_memory(error, 1 << 18);
  }
  const size_t step_limit = 1u << 30;
  uint8_t chunk[16384];
  size_t read = 0, start = out->size_bytes;
  int code = Z_OK;
  while (code != Z_STREAM_END && code != Z_STREAM_ERROR && !out->failed) {
    size_t left = array->size_bytes - read;
    size_t in = left < step_limit ? left : step_limit;
    stream.next_in = (const uint8_t *)array->data + read;
    stream.avail_in = (uInt)in;
    stream.next_out = chunk;
    stream.avail_out = sizeof chunk;
    code = deflate(&stream, in == left ? Z_FINISH : Z_NO_FLUSH);
    read += in - stream.avail_in;
    clv__text_append_bytes(out, chunk, sizeof chunk - stream.avail_out);
  }
  deflateEnd(&stream);
  item->packed_bytes = out->size_bytes - start;
  return code == Z_STREAM_ERROR ? clv__error_set(error, CLV_INTERNAL_ERROR, "deflate failed") : CLV_OK;
}

static clv_status write_array(clv__text *out, const clv_tensor *tensor, clv__zip_entry *item, clv_error *error) {
  clv__text array, packed;
  clv__text_init(&array, out->allocator);
  clv__text_init(&packed, out->allocator);
  clv_status status = clv__npy_append(&array, tensor, error);
  if (status == CLV_OK && item->method == DEFLATED) status = pack(&packed, &array, item, error);
  if (status == CLV_OK) {
    item->size_bytes = array.size_bytes;
    if (item->method == STORED) item->packed_bytes = array.size_bytes;
    uLong crc = crc32(0, NULL, 0);
    for (size_t at = 0; at < array.size_bytes; at += 1u << 30) {
      size_t left = array.size_bytes - at;
      crc = crc32(crc, (const uint8_t *)array.data + at, (uInt)(left < 1u << 30 ? left : 1u << 30));
    }
    item->crc = (uint32_t)crc;
    item->offset = out->size_bytes;
    put_local(out, item);
    const clv__text *body = item->method == STORED ? &array : &packed;
    clv__text_append_bytes(out, body->data, body->size_bytes);
    if (packed.failed || out->failed) status = clv__error_memory(error, body->size_bytes);
  }
  clv__text_finish(&packed);
  clv__text_finish(&array);
  return status;
}

clv_status clv__npz_write(const clv_allocator *allocator, const char *path, const char *const *names, const clv_tensor *tensors,
                          size_t count, bool deflate, clv_error *error) {
  size_t entries_bytes;
  if (!clv__multiply(count, sizeof(clv__zip_entry), &entries_bytes)) return clv__error_memory(error, SIZE_MAX);
  clv__zip_entry *entries = clv__allocate_zero(allocator, entries_bytes);
  if (entries == NULL) return clv__error_memory(error, entries_bytes);
  clv__text out;
  clv__text_init(&out, allocator);
  clv_status status = CLV_OK;
  for (size_t i = 0; i < count; ++i) {
    entries[i] = (clv__zip_entry){.name = names[i], .method = deflate ? DEFLATED : STORED};
    status = strlen(names[i]) > 60000
                 ? clv__error_set(error, CLV_INVALID_ARGUMENT, "npz: a name of %zu bytes is too long", strlen(names[i]))
                 : write_array(&out, &tensors[i], &entries[i], error);
    if (status != CLV_OK) {
      clv__error_prefix(error, status, "%s: array '%.200s'", path, names[i]);
      goto cleanup;
    }
  }
  uint64_t offset = out.size_bytes;
  for (size_t i = 0; i < count; ++i) put_central(&out, &entries[i]);
  put_ends(&out, count, offset);
  if (out.failed) {
    status = clv__error_memory(error, out.size_bytes);
    goto cleanup;
  }
  status = clv__file_write(path, out.data, out.size_bytes, error);
cleanup:
  clv__text_finish(&out);
  clv__release(allocator, entries);
  return status;
}
