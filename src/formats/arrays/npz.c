/* Opens .npz files: reads the directory of the zip file. npz_read.c reads the entries. */
#include <string.h>

#include "formats/arrays/npz_own.h"

/* ---- The directory ---- */

typedef struct directory {
  uint64_t count, size_bytes, offset;
} directory;

static clv_status find_directory(const clv__npz *npz, directory *found, clv_error *error) {
  const uint8_t *data = npz->data;
  size_t limit =
      npz->size_bytes < END_BYTES + 65535 ? npz->size_bytes : END_BYTES + 65535; /* a comment may follow the end record */
  for (size_t back = END_BYTES; back <= limit; ++back) {
    size_t at = npz->size_bytes - back;
    if (clv__zip_get32(data + at) != END_SIGNATURE) continue;
    *found = (directory){clv__zip_get16(data + at + 10), clv__zip_get32(data + at + 12), clv__zip_get32(data + at + 16)};
    if (at < LOCATOR64_BYTES || clv__zip_get32(data + at - LOCATOR64_BYTES) != LOCATOR64_SIGNATURE) return CLV_OK;
    uint64_t end64 = clv__zip_get64(data + at - LOCATOR64_BYTES + 8);
    if (npz->size_bytes < END64_BYTES || end64 > npz->size_bytes - END64_BYTES ||
        clv__zip_get32(data + end64) != END64_SIGNATURE) {
      return clv__error_set(error, CLV_INVALID_MODEL, "npz: the zip directory is damaged: its 64-bit end record is missing");
    }
    *found = (directory){clv__zip_get64(data + end64 + 32), clv__zip_get64(data + end64 + 40), clv__zip_get64(data + end64 + 48)};
    return CLV_OK;
  }
  return clv__error_set(error, CLV_INVALID_MODEL, "not an npz file, or truncated: there is no zip directory at its end");
}

/* A size or offset of UINT32_MAX means that the actual 64-bit number is in the extra field. Reads these numbers, in order. */
static void read_extra64(const uint8_t *extra, size_t size_bytes, clv__zip_entry *item) {
  while (size_bytes >= 4) {
    size_t id = clv__zip_get16(extra), length = clv__zip_get16(extra + 2);
    extra += 4;
    size_bytes -= 4;
    if (length > size_bytes) return;
    if (id == EXTRA64) {
      uint64_t *const numbers[] = {&item->size_bytes, &item->packed_bytes, &item->offset};
      size_t at = 0;
      for (size_t i = 0; i < 3; ++i) {
        if (*numbers[i] != UINT32_MAX || at + 8 > length) continue;
        *numbers[i] = clv__zip_get64(extra + at);
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
  if (end - record < CENTRAL_BYTES || clv__zip_get32(record) != CENTRAL_SIGNATURE) {
    return clv__error_set(error, CLV_INVALID_MODEL, "npz: entry %zu of the zip directory is damaged", npz->count);
  }
  size_t name_bytes = clv__zip_get16(record + 28), extra_bytes = clv__zip_get16(record + 30),
         comment_bytes = clv__zip_get16(record + 32);
  if ((size_t)(end - record) - CENTRAL_BYTES < name_bytes + extra_bytes + comment_bytes) {
    return clv__error_set(error, CLV_INVALID_MODEL, "npz: entry %zu of the zip directory is truncated", npz->count);
  }
  const char *name = (const char *)record + CENTRAL_BYTES;
  *item = (clv__zip_entry){NULL,
                           clv__zip_get16(record + 10),
                           clv__zip_get32(record + 16),
                           clv__zip_get32(record + 20),
                           clv__zip_get32(record + 24),
                           clv__zip_get32(record + 42)};
  read_extra64(record + CENTRAL_BYTES + name_bytes, extra_bytes, item);
  *at = record + CENTRAL_BYTES + name_bytes + extra_bytes + comment_bytes;
  if (memchr(name, '\0', name_bytes) != NULL) {
    return clv__error_set(error, CLV_INVALID_MODEL, "npz: the name of entry %zu contains a zero byte", npz->count);
  }
  if (name_bytes > 4 && memcmp(name + name_bytes - 4, ".npy", 4) == 0) name_bytes -= 4;
  item->name = clv__arena_string(&npz->arena, name, name_bytes);
  if (item->name == NULL) return clv__error_memory(error, name_bytes);
  if ((clv__zip_get16(record + 8) & FLAG_ENCRYPTED) != 0) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "npz: array '%s' is encrypted", item->name);
  }
  if (item->method != STORED && item->method != DEFLATED) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "npz: array '%s' is compressed with method %u; supported are stored and deflated", item->name,
                          item->method);
  }
  return CLV_OK;
}

static clv_status read_directory(clv__npz *npz, clv_error *error) {
  directory found = {0};
  CLV__TRY(find_directory(npz, &found, error));
  if (found.offset > npz->size_bytes || found.size_bytes > npz->size_bytes - found.offset ||
      found.count > found.size_bytes / CENTRAL_BYTES) {
    return clv__error_set(
        error, CLV_INVALID_MODEL,
        "npz: the zip directory is damaged: %llu entries in %llu bytes from byte %llu do not fit in a file of %zu bytes",
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
