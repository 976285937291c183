/* Reading .npz files: as much of the zip format as arrays need. */
#include "formats/npz.h"

#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/tensor.h"
#include "formats/npy.h"
#include "formats/zip.h"

struct clv__npz {
  const clv_allocator *allocator;
  clv__file_map map; /* empty from memory */
  clv__arena arena;
  const char *path;
  const uint8_t *data;
  size_t size_bytes;
  clv__zip_entry *entries;
  size_t count;
};

static uint32_t get16(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}
static uint32_t get32(const uint8_t *at) {
  return get16(at) | get16(at + 2) << 16;
}
static uint64_t get64(const uint8_t *at) {
  return (uint64_t)get32(at) | (uint64_t)get32(at + 4) << 32;
}

/* ---- The directory ---- */

typedef struct directory {
  uint64_t count, size_bytes, offset;
} directory;

static clv_status find_directory(const clv__npz *npz, directory *found, clv_error *error) {
  const uint8_t *data = npz->data;
  size_t limit = npz->size_bytes < END_BYTES + 65535 ? npz->size_bytes : END_BYTES + 65535; /* a comment may follow */
  for (size_t back = END_BYTES; back <= limit; ++back) {
    size_t at = npz->size_bytes - back;
    if (get32(data + at) != END_SIGNATURE) continue;
    *found = (directory){get16(data + at + 10), get32(data + at + 12), get32(data + at + 16)};
    if (at < LOCATOR64_BYTES || get32(data + at - LOCATOR64_BYTES) != LOCATOR64_SIGNATURE) return CLV_OK;
    uint64_t end64 = get64(data + at - LOCATOR64_BYTES + 8);
    if (npz->size_bytes < END64_BYTES || end64 > npz->size_bytes - END64_BYTES || get32(data + end64) != END64_SIGNATURE) {
      return clv__error_set(error, CLV_INVALID_MODEL, "npz: its directory is damaged");
    }
    *found = (directory){get64(data + end64 + 32), get64(data + end64 + 40), get64(data + end64 + 48)};
    return CLV_OK;
  }
  return clv__error_set(error, CLV_INVALID_MODEL, "not an npz file, or cut off: it has no zip directory at its end");
}

/* The 64-bit numbers of an extra field stand in for those that read all ones, in this order. */
static void read_extra64(const uint8_t *extra, size_t size_bytes, clv__zip_entry *item) {
  while (size_bytes >= 4) {
    size_t id = get16(extra), length = get16(extra + 2);
    extra += 4;
    size_bytes -= 4;
    if (length > size_bytes) return;
    if (id == EXTRA64) {
      uint64_t *const numbers[] = {&item->size_bytes, &item->packed_bytes, &item->offset};
      size_t at = 0;
      for (size_t i = 0; i < 3; ++i) {
        if (*numbers[i] != UINT32_MAX || at + 8 > length) continue;
        *numbers[i] = get64(extra + at);
        at += 8;
      }
      return;
    }
    extra += length;
    size_bytes -= length;
  }
}

static clv_status read_entry(clv__npz *npz, const uint8_t **at, const uint8_t *end, clv__zip_entry *item, clv_error *error) {
  const uint8_t *record = *at;
  if (end - record < CENTRAL_BYTES || get32(record) != CENTRAL_SIGNATURE) {
    return clv__error_set(error, CLV_INVALID_MODEL, "npz: entry %zu of its directory is damaged", npz->count);
  }
  size_t name_bytes = get16(record + 28), extra_bytes = get16(record + 30), comment_bytes = get16(record + 32);
  if ((size_t)(end - record) - CENTRAL_BYTES < name_bytes + extra_bytes + comment_bytes) {
    return clv__error_set(error, CLV_INVALID_MODEL, "npz: entry %zu of its directory is cut off", npz->count);
  }
  const char *name = (const char *)record + CENTRAL_BYTES;
  *item =
      (clv__zip_entry){NULL, get16(record + 10), get32(record + 16), get32(record + 20), get32(record + 24), get32(record + 42)};
  read_extra64(record + CENTRAL_BYTES + name_bytes, extra_bytes, item);
  *at = record + CENTRAL_BYTES + name_bytes + extra_bytes + comment_bytes;
  if (memchr(name, '\0', name_bytes) != NULL) {
    return clv__error_set(error, CLV_INVALID_MODEL, "npz: the name of entry %zu holds a zero byte", npz->count);
  }
  if (name_bytes > 4 && memcmp(name + name_bytes - 4, ".npy", 4) == 0) name_bytes -= 4;
  item->name = clv__arena_string(&npz->arena, name, name_bytes);
  if (item->name == NULL) return clv__error_memory(error, name_bytes);
  if ((get16(record + 8) & FLAG_ENCRYPTED) != 0) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "npz: array '%s' is encrypted", item->name);
  }
  if (item->method != STORED && item->method != DEFLATED) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "npz: array '%s' is packed with method %u (stored and deflated are read)",
                          item->name, item->method);
  }
  return CLV_OK;
}

static clv_status read_directory(clv__npz *npz, clv_error *error) {
  directory found = {0};
  CLV__TRY(find_directory(npz, &found, error));
  if (found.offset > npz->size_bytes || found.size_bytes > npz->size_bytes - found.offset ||
      found.count > found.size_bytes / CENTRAL_BYTES) {
    return clv__error_set(
        error, CLV_INVALID_MODEL, "npz: a directory of %llu entries in %llu bytes at byte %llu, in a file of %zu",
        (unsigned long long)found.count, (unsigned long long)found.size_bytes, (unsigned long long)found.offset, npz->size_bytes);
  }
  npz->entries = clv__arena_allocate_zero(&npz->arena, (size_t)found.count, sizeof *npz->entries);
  if (npz->entries == NULL) return clv__error_memory(error, (size_t)found.count * sizeof *npz->entries);
  const uint8_t *at = npz->data + found.offset, *end = at + found.size_bytes;
  while (npz->count < found.count) {
    CLV__TRY(read_entry(npz, &at, end, &npz->entries[npz->count], error));
    ++npz->count;
  }
  return CLV_OK;
}

static clv_status open_bytes(const clv_allocator *allocator, const char *path, const clv__file_map *map, const void *data,
                             size_t size_bytes, clv__npz **out, clv_error *error) {
  *out = NULL;
  clv__npz *npz = clv__allocate_zero(allocator, sizeof *npz);
  if (npz == NULL) return clv__error_memory(error, sizeof *npz);
  npz->allocator = allocator;
  npz->data = data;
  npz->size_bytes = size_bytes;
  clv__arena_init(&npz->arena, allocator);
  npz->path = clv__arena_string(&npz->arena, path, strlen(path));
  clv_status status = npz->path == NULL ? clv__error_memory(error, strlen(path)) : read_directory(npz, error);
  if (status != CLV_OK) {
    clv__npz_close(npz);
    return status;
  }
  npz->map = *map;
  *out = npz;
  return CLV_OK;
}

clv_status clv__npz_open(const clv_allocator *allocator, const char *path, clv__npz **npz, clv_error *error) {
  *npz = NULL;
  clv__file_map map;
  CLV__TRY(clv__file_map_open(path, &map, error));
  clv_status status = open_bytes(allocator, path, &map, map.data, map.size_bytes, npz, error);
  if (status == CLV_OK) return CLV_OK;
  clv__file_map_close(&map);
  return clv__error_prefix(error, status, "%s", path);
}

clv_status clv__npz_open_memory(const clv_allocator *allocator, const void *data, size_t size_bytes, clv__npz **npz,
                                clv_error *error) {
  return open_bytes(allocator, "npz in memory", &(clv__file_map){0}, data, size_bytes, npz, error);
}

void clv__npz_close(clv__npz *npz) {
  if (npz == NULL) return;
  clv__file_map_close(&npz->map);
  clv__arena_finish(&npz->arena);
  clv__release(npz->allocator, npz);
}

size_t clv__npz_count(const clv__npz *npz) {
  return npz->count;
}
const char *clv__npz_name(const clv__npz *npz, size_t index) {
  return npz->entries[index].name;
}

/* ---- Reading an array ---- */

/* A source of unpacked bytes. */
typedef struct source {
  z_stream stream;
  const clv__zip_entry *item;
  const uint8_t *packed;
  uint64_t packed_left, done;
  uLong crc;
} source;

/* Fills `to` wholly. */
static clv_status pull(source *self, uint8_t *to, size_t size_bytes, clv_error *error) {
  const size_t step_limit = 1u << 30;
  uint8_t *start = to;
  size_t left = size_bytes;
  if (self->item->method == STORED) {
    memcpy(to, self->packed + self->done, size_bytes); /* lengths were compared when it was opened */
    left = 0;
  }
  while (left > 0) {
    size_t in = self->packed_left < step_limit ? (size_t)self->packed_left : step_limit;
    size_t out = left < step_limit ? left : step_limit;
    self->stream.next_in = self->packed;
    self->stream.avail_in = (uInt)in;
    self->stream.next_out = to;
    self->stream.avail_out = (uInt)out;
    int code = inflate(&self->stream, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR) return clv__error_memory(error, 1 << 15);
    self->packed += in - self->stream.avail_in;
    self->packed_left -= in - self->stream.avail_in;
    size_t made = out - self->stream.avail_out;
    to += made;
    left -= made;
    if (left > 0 && (code != Z_OK || (made == 0 && self->stream.avail_in == in))) {
      return clv__error_set(error, CLV_INVALID_MODEL, "npz: array '%s' unpacks to %llu bytes, not to %llu: damaged",
                            self->item->name, (unsigned long long)(self->done + (size_bytes - left)),
                            (unsigned long long)self->item->size_bytes);
    }
  }
  self->done += size_bytes;
  for (size_t at = 0; at < size_bytes; at += step_limit) {
    self->crc = crc32(self->crc, start + at, (uInt)(size_bytes - at < step_limit ? size_bytes - at : step_limit));
  }
  return CLV_OK;
}

static clv_status locate(const clv__npz *npz, const clv__zip_entry *item, const uint8_t **packed, clv_error *error) {
  const uint8_t *data = npz->data;
  bool fits = npz->size_bytes >= LOCAL_BYTES && item->offset <= npz->size_bytes - LOCAL_BYTES;
  if (fits && get32(data + item->offset) == LOCAL_SIGNATURE) {
    uint64_t start = item->offset + LOCAL_BYTES + get16(data + item->offset + 26) + get16(data + item->offset + 28);
    /* deflate packs at most about 1,032 bytes into one: what claims more would only cost memory */
    bool plausible =
        item->method == STORED ? item->size_bytes == item->packed_bytes : item->size_bytes / 1100 <= item->packed_bytes;
    if (start <= npz->size_bytes && item->packed_bytes <= npz->size_bytes - start && plausible) {
      *packed = data + start;
      return CLV_OK;
    }
  }
  return clv__error_set(error, CLV_INVALID_MODEL, "npz: array '%s': %llu bytes, packed into %llu at byte %llu of %zu: damaged",
                        item->name, (unsigned long long)item->size_bytes, (unsigned long long)item->packed_bytes,
                        (unsigned long long)item->offset, npz->size_bytes);
}

/* The header first, then the data straight into the tensor where it can be used as it is. */
static clv_status read_array(const clv__npz *npz, source *self, uint8_t *head, clv_tensor *tensor, clv_error *error) {
  const clv_allocator *allocator = npz->allocator;
  size_t total = (size_t)self->item->size_bytes;
  size_t head_bytes = total < CLV__NPY_HEADER_LIMIT ? total : CLV__NPY_HEADER_LIMIT;
  CLV__TRY(pull(self, head, head_bytes, error));
  clv__npy_header header;
  CLV__TRY(clv__npy_header_read(head, head_bytes, &header, error));
  if (total - header.header_bytes != header.data_bytes) {
    return clv__error_set(error, CLV_INVALID_MODEL, "its type takes %zu bytes, but it has %zu", header.data_bytes,
                          total - header.header_bytes);
  }
  uint8_t *data = clv__allocate(allocator, header.data_bytes);
  if (data == NULL) return clv__error_memory(error, header.data_bytes);
  size_t early = head_bytes - header.header_bytes;
  if (early > 0) memcpy(data, head + header.header_bytes, early);
  clv_status status = pull(self, data + early, header.data_bytes - early, error);
  if (status == CLV_OK && self->crc != self->item->crc) {
    status = clv__error_set(error, CLV_INVALID_MODEL, "its checksum is %08lx, not %08x: damaged", self->crc, self->item->crc);
  }
  if (status == CLV_OK && clv__npy_header_is_plain(&header)) {
    clv__npy_fix_plain(&header, data);
    *tensor = header.type;
    tensor->data = data;
    return CLV_OK;
  }
  if (status == CLV_OK) status = clv__npy_convert(allocator, &header, data, tensor, error);
  clv__release(allocator, data);
  return status;
}

static clv_status read_entry_data(const clv__npz *npz, const clv__zip_entry *item, clv_tensor *tensor, clv_error *error) {
  source self = {.item = item, .packed_left = item->packed_bytes, .crc = crc32(0, NULL, 0)};
  CLV__TRY(locate(npz, item, &self.packed, error));
  uint8_t *head = clv__allocate(npz->allocator, CLV__NPY_HEADER_LIMIT);
  if (head == NULL) return clv__error_memory(error, CLV__NPY_HEADER_LIMIT);
  clv_status status = CLV_OK;
  self.stream.zalloc = clv__zlib_allocate;
  self.stream.zfree = clv__zlib_release;
  self.stream.opaque = (void *)npz->allocator;
  if (item->method == DEFLATED && inflateInit2(&self.stream, -MAX_WBITS) != Z_OK) {
    status = clv__error_memory(error, 1 << 15);
  } else {
    status = read_array(npz, &self, head, tensor, error);
    if (item->method == DEFLATED) inflateEnd(&self.stream);
  }
  clv__release(npz->allocator, head);
  return status;
}

clv_status clv__npz_read(const clv__npz *npz, const char *name, clv_tensor *tensor, clv_error *error) {
  *tensor = (clv_tensor){0};
  for (size_t i = 0; i < npz->count; ++i) {
    if (strcmp(npz->entries[i].name, name) != 0) continue;
    clv_status status = read_entry_data(npz, &npz->entries[i], tensor, error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "%s: array '%s'", npz->path, name);
    return CLV_OK;
  }
  clv__error_set(error, CLV_NOT_FOUND, "%s: no array '%s'; it has", npz->path, name);
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
