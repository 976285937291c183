/* Reads the arrays of .npz files, piece by piece or completely. */
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

#include "base/memory.h"
#include "base/tensor/tensor.h"
#include "formats/arrays/npz_own.h"

enum { STEP_BYTES = 8 << 20 }; /* bytes to inflate at a time, and after which to release the pages of the file already read */

struct clv__npz_stream {
  const clv__npz *npz;
  const clv__zip_entry *item;
  z_stream inflate;
  bool inflating;
  const uint8_t *packed;  /* the next byte of the file */
  const uint8_t *dropped; /* pages of the file before this byte have been released */
  uint64_t packed_left, unpacked;
  uLong crc;
  bool has_jumped; /* some bytes were skipped unread, so the checksum cannot be compared */
  clv__npy_header header;
  uint8_t *head; /* data inflated together with the header; bytes head_at to head_bytes are still to be returned */
  size_t head_at, head_bytes;
  uint64_t given_bytes; /* bytes of the array's data returned so far */
};

static clv_status locate(const clv__npz *npz, const clv__zip_entry *item, const uint8_t **packed, clv_error *error) {
  const uint8_t *data = npz->data;
  bool fits = npz->size_bytes >= LOCAL_BYTES && item->offset <= npz->size_bytes - LOCAL_BYTES;
  if (fits && clv__zip_get32(data + item->offset) == LOCAL_SIGNATURE) {
    uint64_t start =
        item->offset + LOCAL_BYTES + clv__zip_get16(data + item->offset + 26) + clv__zip_get16(data + item->offset + 28);
    /* rejects sizes that deflate cannot reach: it compresses at most about 1,032 bytes into one */
    bool plausible =
        item->method == STORED ? item->size_bytes == item->packed_bytes : item->size_bytes / 1100 <= item->packed_bytes;
    if (start <= npz->size_bytes && item->packed_bytes <= npz->size_bytes - start && plausible) {
      *packed = data + start;
      return CLV_OK;
    }
  }
  return clv__error_set(
      error, CLV_INVALID_MODEL,
      "npz: array '%s' is damaged: it cannot have %llu bytes, stored as %llu bytes at byte %llu of a file of %zu", item->name,
      (unsigned long long)item->size_bytes, (unsigned long long)item->packed_bytes, (unsigned long long)item->offset,
      npz->size_bytes);
}

/* Releases pages already read, so that a large mapped file does not count as memory in use. */
static void drop_read(clv__npz_stream *stream) {
  if (stream->packed - stream->dropped < STEP_BYTES) return;
  clv__file_map_drop(&stream->npz->map, stream->dropped, (size_t)(stream->packed - stream->dropped));
  stream->dropped = stream->packed;
}

/* Inflates until `to` is full. */
static clv_status unpack(clv__npz_stream *stream, uint8_t *to, size_t size_bytes, clv_error *error) {
  for (size_t left = size_bytes; left > 0;) {
    size_t in = stream->packed_left < STEP_BYTES ? (size_t)stream->packed_left : STEP_BYTES;
    stream->inflate.next_in = stream->packed;
    stream->inflate.avail_in = (uInt)in;
    stream->inflate.next_out = to + (size_bytes - left);
    stream->inflate.avail_out = (uInt)left;
    int code = inflate(&stream->inflate, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR) return clv__error_memory(error, 1 << 15);
    size_t made = left - stream->inflate.avail_out, used = in - stream->inflate.avail_in;
    stream->packed += used;
    stream->packed_left -= used;
    left -= made;
    if (left > 0 && (code != Z_OK || (made == 0 && used == 0))) {
      return clv__error_set(error, CLV_INVALID_MODEL, "npz: array '%s' is damaged: it decompresses to %llu bytes, not %llu",
                            stream->item->name, (unsigned long long)(stream->unpacked + (size_bytes - left)),
                            (unsigned long long)stream->item->size_bytes);
    }
  }
  return CLV_OK;
}

/* Fills `to` completely. The caller must not request more bytes than the entry has left. */
static clv_status pull(clv__npz_stream *stream, uint8_t *to, size_t size_bytes, clv_error *error) {
  while (size_bytes > 0) {
    size_t step = size_bytes < STEP_BYTES ? size_bytes : STEP_BYTES;
    if (stream->item->method == STORED) {
      memcpy(to, stream->packed, step); /* within the file: locate() checked the entry */
      stream->packed += step;
    } else {
      CLV__TRY(unpack(stream, to, step, error));
    }
    stream->unpacked += step;
    stream->crc = crc32(stream->crc, to, (uInt)step);
    drop_read(stream);
    to += step;
    size_bytes -= step;
  }
  return CLV_OK;
}

static clv_status begin(clv__npz_stream *stream, clv_error *error) {
  const clv_allocator *allocator = stream->npz->allocator;
  CLV__TRY(locate(stream->npz, stream->item, &stream->packed, error));
  stream->dropped = stream->packed;
  stream->packed_left = stream->item->packed_bytes;
  stream->crc = crc32(0, NULL, 0);
  stream->inflate.zalloc = clv__zlib_allocate;
  stream->inflate.zfree = clv__zlib_release;
  stream->inflate.opaque = (void *)allocator;
  if (stream->item->method == DEFLATED) {
    stream->inflating = inflateInit2(&stream->inflate, -MAX_WBITS) == Z_OK;
    if (!stream->inflating) return clv__error_memory(error, 1 << 15);
  }
  size_t total = (size_t)stream->item->size_bytes;
  size_t head_bytes = total < CLV__NPY_HEADER_LIMIT ? total : CLV__NPY_HEADER_LIMIT;
  stream->head = clv__allocate(allocator, CLV__NPY_HEADER_LIMIT);
  if (stream->head == NULL) return clv__error_memory(error, CLV__NPY_HEADER_LIMIT);
  CLV__TRY(pull(stream, stream->head, head_bytes, error));
  CLV__TRY(clv__npy_header_read(stream->head, head_bytes, &stream->header, error));
  if (total - stream->header.header_bytes != stream->header.data_bytes) {
    return clv__error_set(error, CLV_INVALID_MODEL, "its shape and type need %zu bytes of data, but it has %zu",
                          stream->header.data_bytes, total - stream->header.header_bytes);
  }
  stream->head_at = stream->header.header_bytes;
  stream->head_bytes = head_bytes;
  return CLV_OK;
}

/* Finds the entry of an array. Fails with CLV_NOT_FOUND and the available names if it is absent. */
static clv_status find(const clv__npz *npz, const char *name, const clv__zip_entry **item, clv_error *error) {
  for (size_t i = 0; i < npz->count; ++i) {
    *item = &npz->entries[i];
    if (strcmp(npz->entries[i].name, name) == 0) return CLV_OK;
  }
  clv__error_set(error, CLV_NOT_FOUND, "%s: no array '%s'; the arrays are:", npz->path, name);
  if (error == NULL) return CLV_NOT_FOUND;
  size_t used = strlen(error->message);
  for (size_t i = 0; i < npz->count && used + strlen(npz->entries[i].name) + 4 < sizeof error->message; ++i) {
    error->message[used++] = ' ';
    size_t length = strlen(npz->entries[i].name);
    memcpy(error->message + used, npz->entries[i].name, length + 1);
    used += length;
  }
  return CLV_NOT_FOUND;
}

clv_status clv__npz_stream_open(const clv__npz *npz, const char *name, clv__npz_stream **out, clv_error *error) {
  const clv__zip_entry *item;
  *out = NULL;
  CLV__TRY(find(npz, name, &item, error));
  clv__npz_stream *stream = clv__allocate_zero(npz->allocator, sizeof *stream);
  if (stream == NULL) return clv__error_memory(error, sizeof *stream);
  stream->npz = npz;
  stream->item = item;
  clv_status status = begin(stream, error);
  if (status != CLV_OK) {
    clv__npz_stream_close(stream);
    return clv__error_prefix(error, status, "%s: array '%s'", npz->path, name);
  }
  *out = stream;
  return CLV_OK;
}

void clv__npz_stream_close(clv__npz_stream *stream) {
  if (stream == NULL) return;
  if (stream->inflating) inflateEnd(&stream->inflate);
  clv__release(stream->npz->allocator, stream->head);
  clv__release(stream->npz->allocator, stream);
}

const clv__npy_header *clv__npz_stream_header(const clv__npz_stream *stream) {
  return &stream->header;
}

/* Returns the next bytes of the array unchanged. Compares the checksum after the last byte. */
static clv_status take_bytes(clv__npz_stream *stream, uint8_t *to, size_t size_bytes, clv_error *error) {
  size_t left = size_bytes, early = stream->head_bytes - stream->head_at;
  if (early > left) early = left;
  if (early > 0) memcpy(to, stream->head + stream->head_at, early);
  stream->head_at += early;
  clv_status status = pull(stream, to + early, left - early, error);
  stream->given_bytes += size_bytes;
  if (status == CLV_OK && stream->given_bytes == stream->header.data_bytes && !stream->has_jumped &&
      stream->crc != stream->item->crc) {
    status = clv__error_set(error, CLV_INVALID_MODEL, "its data is damaged: its checksum is %08lx; expected %08x", stream->crc,
                            stream->item->crc);
  }
  return status;
}

static clv_status explain(const clv__npz_stream *stream, clv_status status, clv_error *error) {
  if (status == CLV_OK) return CLV_OK;
  return clv__error_prefix(error, status, "%s: array '%s'", stream->npz->path, stream->item->name);
}

clv_status clv__npz_stream_read(clv__npz_stream *stream, void *to, size_t count, clv_error *error) {
  clv__npy_header piece = stream->header;
  uint64_t left = (stream->header.data_bytes - stream->given_bytes) / piece.element_bytes;
  if (count > left) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: array '%s': %zu element%s requested, but only %llu are left",
                          stream->npz->path, stream->item->name, count, CLV__S(count), (unsigned long long)left);
  }
  clv_status status = take_bytes(stream, to, count * piece.element_bytes, error);
  piece.count = count;
  if (status == CLV_OK) clv__npy_fix_plain(&piece, to);
  return explain(stream, status, error);
}

clv_status clv__npz_stream_skip(clv__npz_stream *stream, size_t count, bool jump, clv_error *error) {
  uint64_t left_bytes = stream->header.data_bytes - stream->given_bytes, skipped;
  if (__builtin_mul_overflow(count, (uint64_t)stream->header.element_bytes, &skipped) || skipped > left_bytes) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s: array '%s': %zu element%s to skip, but only %llu bytes are left",
                          stream->npz->path, stream->item->name, count, CLV__S(count), (unsigned long long)left_bytes);
  }
  uint64_t early = stream->head_bytes - stream->head_at;
  if (jump && stream->item->method == STORED && skipped > early) {
    stream->head_at = stream->head_bytes;
    stream->packed += skipped - early;
    stream->dropped = stream->packed;
    stream->unpacked += skipped - early;
    stream->given_bytes += skipped;
    stream->has_jumped = true;
    return CLV_OK;
  }
  enum { SCRATCH_BYTES = 1 << 16 };
  uint8_t *scratch = clv__allocate(stream->npz->allocator, SCRATCH_BYTES);
  if (scratch == NULL) return clv__error_memory(error, SCRATCH_BYTES);
  clv_status status = CLV_OK;
  while (skipped > 0 && status == CLV_OK) {
    size_t step = skipped < SCRATCH_BYTES ? (size_t)skipped : SCRATCH_BYTES;
    status = take_bytes(stream, scratch, step, error);
    skipped -= step;
  }
  clv__release(stream->npz->allocator, scratch);
  return explain(stream, status, error);
}

/* Reads the whole array into a block, which becomes the tensor's data if the bytes can be converted in place. Otherwise converts
 * them into a second block. */
static clv_status read_all(clv__npz_stream *stream, clv_tensor *tensor, clv_error *error) {
  const clv_allocator *allocator = stream->npz->allocator;
  const clv__npy_header *header = &stream->header;
  uint8_t *data = clv__allocate(allocator, header->data_bytes);
  if (data == NULL) return clv__error_memory(error, header->data_bytes);
  clv_status status = take_bytes(stream, data, header->data_bytes, error);
  if (status == CLV_OK && clv__npy_header_is_plain(header)) {
    clv__npy_fix_plain(header, data);
    *tensor = header->type;
    tensor->data = data;
    return CLV_OK;
  }
  if (status == CLV_OK) status = clv__npy_convert(allocator, header, data, tensor, error);
  clv__release(allocator, data);
  return status;
}

clv_status clv__npz_read(const clv__npz *npz, const char *name, clv_tensor *tensor, clv_error *error) {
  clv__npz_stream *stream;
  *tensor = (clv_tensor){0};
  CLV__TRY(clv__npz_stream_open(npz, name, &stream, error));
  clv_status status = explain(stream, read_all(stream, tensor, error), error);
  clv__npz_stream_close(stream);
  return status;
}
