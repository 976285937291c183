/* Writes .npz files piece by piece. All sizes use zip's 64-bit fields, and all entries have the same date. */
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

#include "base/files/file_writer.h"
#include "base/memory.h"
#include "base/tensor/tensor.h"
#include "base/text.h"
#include "formats/arrays/npy.h"
#include "formats/arrays/npz.h"
#include "formats/arrays/zip.h"

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

/* Writes the part that an entry's local and central records have in common. All sizes are in the 64-bit extra field, even small
 * ones, so that records have one format. */
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

/* Writes the records after the directory, which extends from byte `offset` to byte `end` of the file. */
static void put_ends(clv__text *out, uint64_t count, uint64_t offset, uint64_t end) {
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

struct clv__npz_writer {
  const clv_allocator *allocator;
  clv__arena arena; /* for names */
  clv__file_writer file;
  uint64_t size_bytes; /* written to the file so far */
  bool deflate;
  clv__zip_entry *entries;
  size_t count, capacity;
  /* The current array, which is the last of `entries`: */
  bool is_open, deflating;
  z_stream stream;
  uint64_t body_at;        /* offset in the file of the entry's bytes, after its local record */
  uint64_t expected_bytes; /* size of the entry before compression, including the npy header */
};

static clv_status explain(const clv__npz_writer *writer, const char *name, clv_status status, clv_error *error) {
  return status == CLV_OK ? CLV_OK : clv__error_prefix(error, status, "%s: array '%.200s'", writer->file.path, name);
}

static clv_status append_file(clv__npz_writer *writer, const void *data, size_t size_bytes, clv_error *error) {
  writer->size_bytes += size_bytes;
  return clv__file_writer_append(&writer->file, data, size_bytes, error);
}

clv_status clv__npz_writer_open(const clv_allocator *allocator, const char *path, bool deflate, clv__npz_writer **out,
                                clv_error *error) {
  *out = NULL;
  clv__npz_writer *writer = clv__allocate_zero(allocator, sizeof *writer);
  if (writer == NULL) return clv__error_memory(error, sizeof *writer);
  writer->allocator = allocator;
  writer->deflate = deflate;
  clv__arena_init(&writer->arena, allocator);
  clv_status status = clv__file_writer_open(path, &writer->file, error);
  if (status == CLV_OK)
    *out = writer;
  else
    clv__npz_writer_close(writer);
  return status;
}

static void end_deflate(clv__npz_writer *writer) {
  if (writer->deflating) deflateEnd(&writer->stream);
  writer->deflating = false;
}

void clv__npz_writer_close(clv__npz_writer *writer) {
  if (writer == NULL) return;
  end_deflate(writer);
  clv__file_writer_abandon(&writer->file);
  clv__arena_finish(&writer->arena);
  clv__release(writer->allocator, writer->entries);
  clv__release(writer->allocator, writer);
}

/* Writes data of the current array to the file, deflated if requested. `finish`: no more data follows. */
static clv_status pack(clv__npz_writer *writer, const uint8_t *data, size_t size_bytes, bool finish, clv_error *error) {
  enum { STEP_BYTES = 1 << 30, CHUNK_BYTES = 1 << 16 };
  clv__zip_entry *item = &writer->entries[writer->count - 1];
  if (item->method == STORED) return append_file(writer, data, size_bytes, error);
  uint8_t chunk[CHUNK_BYTES];
  for (size_t left = size_bytes;;) {
    size_t in = left < STEP_BYTES ? left : STEP_BYTES;
    writer->stream.next_in = data;
    writer->stream.avail_in = (uInt)in;
    writer->stream.next_out = chunk;
    writer->stream.avail_out = CHUNK_BYTES;
    int code = deflate(&writer->stream, finish && in == left ? Z_FINISH : Z_NO_FLUSH);
    if (code == Z_STREAM_ERROR) return clv__error_set(error, CLV_INTERNAL_ERROR, "deflate failed");
    if (in > 0) data += in - writer->stream.avail_in; /* data may be NULL when finishing */
    left -= in - writer->stream.avail_in;
    size_t made = CHUNK_BYTES - writer->stream.avail_out;
    CLV__TRY(append_file(writer, chunk, made, error));
    if (finish ? code == Z_STREAM_END : left == 0 && made < CHUNK_BYTES) return CLV_OK;
  }
}

static clv_status append_bytes(clv__npz_writer *writer, const uint8_t *data, size_t size_bytes, clv_error *error) {
  clv__zip_entry *item = &writer->entries[writer->count - 1];
  for (size_t at = 0; at < size_bytes; at += 1u << 30) {
    size_t left = size_bytes - at;
    item->crc = (uint32_t)crc32(item->crc, data + at, (uInt)(left < 1u << 30 ? left : 1u << 30));
  }
  item->size_bytes += size_bytes;
  return pack(writer, data, size_bytes, false, error);
}

/* Writes an entry's local record, which precedes its data. Sizes and checksum are known only after the data, so the record is
 * then written `again`. */
static clv_status write_local(clv__npz_writer *writer, const clv__zip_entry *item, bool again, clv_error *error) {
  clv__text text;
  clv__text_init(&text, writer->allocator);
  put_local(&text, item);
  clv_status status = CLV_OK;
  if (text.failed)
    status = clv__error_memory(error, LOCAL_BYTES + strlen(item->name));
  else if (again)
    status = clv__file_writer_patch(&writer->file, item->offset, text.data, text.size_bytes, error);
  else
    status = append_file(writer, text.data, text.size_bytes, error);
  clv__text_finish(&text);
  return status;
}

static clv_status begin_entry(clv__npz_writer *writer, const char *name, clv_error *error) {
  size_t length = strlen(name);
  if (length > 60000)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "npz: a name has %zu bytes; expected at most 60000", length);
  if (writer->is_open) return clv__error_set(error, CLV_INVALID_ARGUMENT, "npz: the previous array is incomplete");
  if (!clv__array_reserve(writer->allocator, (void **)&writer->entries, &writer->capacity, writer->count + 1,
                          sizeof *writer->entries, writer->count)) {
    return clv__error_memory(error, (writer->count + 1) * sizeof *writer->entries);
  }
  clv__zip_entry *item = &writer->entries[writer->count];
  *item = (clv__zip_entry){.name = clv__arena_string(&writer->arena, name, length),
                           .method = writer->deflate ? DEFLATED : STORED,
                           .crc = (uint32_t)crc32(0, NULL, 0),
                           .offset = writer->size_bytes};
  if (item->name == NULL) return clv__error_memory(error, length);
  if (writer->deflate) {
    writer->stream = (z_stream){.zalloc = clv__zlib_allocate, .zfree = clv__zlib_release, .opaque = (void *)writer->allocator};
    writer->deflating =
        deflateInit2(&writer->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    if (!writer->deflating) return clv__error_memory(error, 1 << 18);
  }
  ++writer->count;
  writer->is_open = true;
  CLV__TRY(write_local(writer, item, false, error));
  writer->body_at = writer->size_bytes;
  return CLV_OK;
}

static clv_status begin(clv__npz_writer *writer, const char *name, const clv_tensor *type, clv_error *error) {
  clv__text head;
  size_t data_bytes;
  clv__text_init(&head, writer->allocator);
  clv_status status = clv__npy_append_header(&head, type, error);
  if (status == CLV_OK) status = begin_entry(writer, name, error);
  if (status == CLV_OK && clv__tensor_size_bytes(type, &data_bytes)) {
    writer->expected_bytes = head.size_bytes + data_bytes;
    status = append_bytes(writer, (const uint8_t *)head.data, head.size_bytes, error);
  }
  clv__text_finish(&head);
  return status;
}

clv_status clv__npz_writer_begin(clv__npz_writer *writer, const char *name, const clv_tensor *type, clv_error *error) {
  return explain(writer, name, begin(writer, name, type, error), error);
}

clv_status clv__npz_writer_append(clv__npz_writer *writer, const void *data, size_t size_bytes, clv_error *error) {
  if (!writer->is_open) return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: no array was started", writer->file.path);
  const clv__zip_entry *item = &writer->entries[writer->count - 1];
  return explain(writer, item->name, append_bytes(writer, data, size_bytes, error), error);
}

static clv_status end(clv__npz_writer *writer, clv_error *error) {
  clv__zip_entry *item = &writer->entries[writer->count - 1];
  if (item->size_bytes != writer->expected_bytes) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%llu bytes were written, but its type needs %llu",
                          (unsigned long long)item->size_bytes, (unsigned long long)writer->expected_bytes);
  }
  if (item->method == DEFLATED) CLV__TRY(pack(writer, NULL, 0, true, error));
  end_deflate(writer);
  writer->is_open = false;
  item->packed_bytes = writer->size_bytes - writer->body_at;
  return write_local(writer, item, true, error);
}

clv_status clv__npz_writer_end(clv__npz_writer *writer, clv_error *error) {
  if (!writer->is_open) return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: no array was started", writer->file.path);
  return explain(writer, writer->entries[writer->count - 1].name, end(writer, error), error);
}

/* Builds an array of strings in memory, because all elements have the width of the longest string. */
static clv_status put_strings(clv__npz_writer *writer, const char *name, const clv_tensor *tensor, clv_error *error) {
  clv__text array;
  clv__text_init(&array, writer->allocator);
  clv_status status = clv__npy_append(&array, tensor, error);
  if (status == CLV_OK) status = begin_entry(writer, name, error);
  if (status == CLV_OK) {
    writer->expected_bytes = array.size_bytes;
    status = append_bytes(writer, (const uint8_t *)array.data, array.size_bytes, error);
  }
  if (status == CLV_OK) status = end(writer, error);
  clv__text_finish(&array);
  return status;
}

static clv_status put(clv__npz_writer *writer, const char *name, const clv_tensor *tensor, clv_error *error) {
  if (tensor->dtype == CLV_STRING) return put_strings(writer, name, tensor, error);
  size_t size_bytes;
  if (tensor->data == NULL || !clv__tensor_size_bytes(tensor, &size_bytes)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "npy: the tensor has no data or an unknown size");
  }
  CLV__TRY(begin(writer, name, tensor, error));
  CLV__TRY(append_bytes(writer, tensor->data, size_bytes, error));
  return end(writer, error);
}

clv_status clv__npz_writer_put(clv__npz_writer *writer, const char *name, const clv_tensor *tensor, clv_error *error) {
  return explain(writer, name, put(writer, name, tensor, error), error);
}

clv_status clv__npz_writer_commit(clv__npz_writer *writer, clv_error *error) {
  clv__text text;
  if (writer->is_open) return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: an array is incomplete", writer->file.path);
  clv__text_init(&text, writer->allocator);
  for (size_t i = 0; i < writer->count; ++i) put_central(&text, &writer->entries[i]);
  uint64_t offset = writer->size_bytes;
  put_ends(&text, writer->count, offset, offset + text.size_bytes);
  clv_status status =
      text.failed ? clv__error_memory(error, text.size_bytes) : append_file(writer, text.data, text.size_bytes, error);
  clv__text_finish(&text);
  return status == CLV_OK ? clv__file_writer_commit(&writer->file, error) : status;
}

clv_status clv__npz_write(const clv_allocator *allocator, const char *path, const char *const *names, const clv_tensor *tensors,
                          size_t count, bool deflate, clv_error *error) {
  clv__npz_writer *writer;
  CLV__TRY(clv__npz_writer_open(allocator, path, deflate, &writer, error));
  clv_status status = CLV_OK;
  for (size_t i = 0; i < count && status == CLV_OK; ++i) status = clv__npz_writer_put(writer, names[i], &tensors[i], error);
  if (status == CLV_OK) status = clv__npz_writer_commit(writer, error);
  clv__npz_writer_close(writer);
  return status;
}
