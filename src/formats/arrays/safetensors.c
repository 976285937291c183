/* Reads safetensors. A file contains the length of the header (8 bytes), the header (JSON: name -> dtype, shape, data_offsets)
 * and the data. The header is untrusted, so it is checked completely before a tensor is read. */
#include "formats/arrays/safetensors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/tensor/tensor.h"

enum { PREFIX_BYTES = 8, HEADER_LIMIT = 100 << 20 }; /* HEADER_LIMIT is part of the format */

typedef struct entry {
  const char *name;
  const char *dtype_name;
  clv_tensor type; /* dtype none if the file's dtype is not supported */
  int64_t rank;    /* as in the file; may exceed CLV_MAX_RANK */
  uint64_t begin, end;
} entry;

struct clv__safetensors {
  const clv_allocator *allocator;
  clv__file_map map; /* empty if opened from memory */
  clv__arena arena;
  clv__map index; /* name -> entry */
  const char *path;
  const uint8_t *data; /* after the header; `begin` and `end` of entries are relative to it */
  uint64_t data_bytes;
  entry *entries;
  size_t count;
};

/* ---- An entry of the header ---- */

static const struct {
  const char *name;
  clv_dtype dtype;
  uint32_t bits;
} known_dtypes[] = {
    {"F32", CLV_F32, 32},        {"BF16", CLV_BF16, 16},       {"F16", CLV_F16, 16},           {"F64", CLV_F64, 64},
    {"I64", CLV_I64, 64},        {"I32", CLV_I32, 32},         {"I16", CLV_I16, 16},           {"I8", CLV_I8, 8},
    {"U8", CLV_U8, 8},           {"U16", CLV_U16, 16},         {"U32", CLV_U32, 32},           {"U64", CLV_U64, 64},
    {"BOOL", CLV_BOOL, 8},       {"F8_E4M3", CLV_F8E4M3FN, 8}, {"F8_E5M2", CLV_F8E5M2, 8},     {"F8_E8M0", CLV_F8E8M0, 8},
    {"C64", CLV_DTYPE_NONE, 64}, {"F4", CLV_DTYPE_NONE, 4},    {"F6_E2M3", CLV_DTYPE_NONE, 6}, {"F6_E3M2", CLV_DTYPE_NONE, 6}};

static clv_status refuse(clv_error *error, const entry *item, const char *what) {
  return clv__error_set(error, CLV_INVALID_MODEL, "tensor '%.200s': %s", item->name, what);
}

static clv_status read_size(const json_t *json, const entry *item, const char *what, uint64_t *number, clv_error *error) {
  if (!json_is_integer(json) || json_integer_value(json) < 0) return refuse(error, item, what);
  *number = (uint64_t)json_integer_value(json);
  return CLV_OK;
}

/* Reads an entry's type. Sets `*size_bytes` to its size, or to UINT64_MAX if the dtype is unknown. */
static clv_status read_type(const json_t *json, entry *item, uint64_t *size_bytes, clv_error *error) {
  const char *dtype = json_string_value(json_object_get(json, "dtype"));
  const json_t *shape = json_object_get(json, "shape");
  if (dtype == NULL) return refuse(error, item, "its dtype is not a string");
  if (!json_is_array(shape)) return refuse(error, item, "its shape is not a list");
  uint64_t bits = 0;
  for (size_t i = 0; i < sizeof known_dtypes / sizeof *known_dtypes; ++i) {
    if (strcmp(known_dtypes[i].name, dtype) != 0) continue;
    bits = known_dtypes[i].bits;
    item->type.dtype = known_dtypes[i].dtype;
  }
  item->dtype_name = dtype;
  item->rank = (int64_t)json_array_size(shape);
  item->type.rank = item->rank <= CLV_MAX_RANK ? (int32_t)item->rank : 0;
  bool empty = false;
  uint64_t count = 1; /* product of the nonzero dims, so that a 0 cannot hide an overflow */
  for (size_t i = 0; i < json_array_size(shape); ++i) {
    uint64_t dim;
    CLV__TRY(read_size(json_array_get(shape, i), item, "an entry of its shape is not a whole number of 0 or more", &dim, error));
    if (i < (size_t)item->type.rank) item->type.dims[i] = (int64_t)dim;
    empty = empty || dim == 0;
    if (dim != 0 && (__builtin_mul_overflow(count, dim, &count) || count > UINT64_MAX / 128)) {
      return refuse(error, item, "its shape is too large for any memory");
    }
  }
  if (bits == 0)
    *size_bytes = UINT64_MAX;
  else if (empty)
    *size_bytes = 0;
  else
    *size_bytes = (count * bits + 7) / 8;
  return CLV_OK;
}

static clv_status read_entry(const clv__safetensors *file, const json_t *json, entry *item, clv_error *error) {
  if (!json_is_object(json)) return refuse(error, item, "it is not an object with dtype, shape and data_offsets");
  uint64_t size_bytes;
  CLV__TRY(read_type(json, item, &size_bytes, error));
  const json_t *offsets = json_object_get(json, "data_offsets");
  if (json_array_size(offsets) != 2) return refuse(error, item, "its data_offsets are not two numbers");
  CLV__TRY(read_size(json_array_get(offsets, 0), item, "its data_offsets are not two whole numbers of 0 or more", &item->begin,
                     error));
  CLV__TRY(
      read_size(json_array_get(offsets, 1), item, "its data_offsets are not two whole numbers of 0 or more", &item->end, error));
  if (item->begin > item->end || item->end > file->data_bytes) {
    return clv__error_set(error, CLV_INVALID_MODEL, "tensor '%.200s': bytes %llu to %llu are outside the data of %llu bytes",
                          item->name, (unsigned long long)item->begin, (unsigned long long)item->end,
                          (unsigned long long)file->data_bytes);
  }
  if (size_bytes != UINT64_MAX && item->end - item->begin != size_bytes) {
    return clv__error_set(error, CLV_INVALID_MODEL, "tensor '%.200s': it has %llu bytes, but its dtype and shape need %llu",
                          item->name, (unsigned long long)(item->end - item->begin), (unsigned long long)size_bytes);
  }
  return CLV_OK;
}

/* ---- The header ---- */

static int by_place(const void *a, const void *b) {
  const entry *left = *(const entry *const *)a, *right = *(const entry *const *)b;
  if (left->begin != right->begin) return left->begin < right->begin ? -1 : 1;
  return left->end < right->end ? -1 : left->end > right->end;
}

/* Checks that every byte of the data belongs to exactly one tensor. Tensors must not overlap, and a gap could hide data. */
static clv_status check_tiling(const clv__safetensors *file, clv_error *error) {
  const entry **sorted = clv__allocate(file->allocator, file->count * sizeof *sorted);
  if (sorted == NULL) return clv__error_memory(error, file->count * sizeof *sorted);
  for (size_t i = 0; i < file->count; ++i) sorted[i] = &file->entries[i];
  qsort(sorted, file->count, sizeof *sorted, by_place);
  clv_status status = CLV_OK;
  uint64_t at = 0;
  for (size_t i = 0; status == CLV_OK && i < file->count; ++i) {
    if (sorted[i]->begin != at) {
      status =
          clv__error_set(error, CLV_INVALID_MODEL,
                         "tensor '%.200s' starts at byte %llu of the data; expected %llu, so that there is no gap or overlap",
                         sorted[i]->name, (unsigned long long)sorted[i]->begin, (unsigned long long)at);
    }
    at = sorted[i]->end;
  }
  if (status == CLV_OK && at != file->data_bytes) {
    status = clv__error_set(error, CLV_INVALID_MODEL, "its tensors end at byte %llu, but there are %llu bytes of data",
                            (unsigned long long)at, (unsigned long long)file->data_bytes);
  }
  clv__release(file->allocator, sorted);
  return status;
}

static clv_status read_entries(clv__safetensors *file, json_t *root, clv_error *error) {
  file->entries = clv__arena_allocate_zero(&file->arena, json_object_size(root), sizeof *file->entries);
  if (file->entries == NULL) return clv__error_memory(error, json_object_size(root) * sizeof *file->entries);
  for (void *at = json_object_iter(root); at != NULL; at = json_object_iter_next(root, at)) {
    const char *name = json_object_iter_key(at);
    if (strcmp(name, "__metadata__") == 0) continue;
    entry *item = &file->entries[file->count];
    item->name = clv__arena_string(&file->arena, name, strlen(name));
    if (item->name == NULL) return clv__error_memory(error, strlen(name));
    CLV__TRY(read_entry(file, json_object_iter_value(at), item, error));
    item->dtype_name = clv__arena_string(&file->arena, item->dtype_name, strlen(item->dtype_name));
    if (item->dtype_name == NULL || !clv__map_set(&file->index, item->name, (uint32_t)file->count)) {
      return clv__error_memory(error, sizeof *item);
    }
    ++file->count;
  }
  return check_tiling(file, error);
}

static clv_status read_header(clv__safetensors *file, const uint8_t *bytes, size_t size_bytes, clv_error *error) {
  if (size_bytes < PREFIX_BYTES + 2) {
    return clv__error_set(error, CLV_INVALID_MODEL, "not safetensors, or truncated: it has only %zu bytes", size_bytes);
  }
  uint64_t header_bytes = 0;
  for (int i = PREFIX_BYTES - 1; i >= 0; --i) header_bytes = header_bytes << 8 | bytes[i];
  if (header_bytes > size_bytes - PREFIX_BYTES || header_bytes > HEADER_LIMIT) {
    return clv__error_set(
        error, CLV_INVALID_MODEL,
        "not safetensors, or truncated: its header would have %llu bytes, but the file has %zu, and the maximum is %d",
        (unsigned long long)header_bytes, size_bytes, (int)HEADER_LIMIT);
  }
  if (bytes[PREFIX_BYTES] != '{')
    return clv__error_set(error, CLV_INVALID_MODEL, "not safetensors: the header is not a JSON object");
  json_error_t where;
  json_t *root = json_loadb((const char *)bytes + PREFIX_BYTES, (size_t)header_bytes, JSON_REJECT_DUPLICATES, &where);
  if (root == NULL) return clv__error_set(error, CLV_INVALID_MODEL, "in the header, byte %d: %s", where.position, where.text);
  file->data = bytes + PREFIX_BYTES + header_bytes;
  file->data_bytes = size_bytes - PREFIX_BYTES - header_bytes;
  clv_status status = read_entries(file, root, error);
  json_decref(root);
  return status;
}

static clv_status open_bytes(const clv_allocator *allocator, const char *path, const void *data, size_t size_bytes,
                             clv__safetensors **out, clv_error *error) {
  *out = NULL;
  clv__safetensors *file = clv__allocate_zero(allocator, sizeof *file);
  if (file == NULL) return clv__error_memory(error, sizeof *file);
  file->allocator = allocator;
  clv__arena_init(&file->arena, allocator);
  clv__map_init(&file->index, allocator);
  file->path = clv__arena_string(&file->arena, path, strlen(path));
  clv_status status = file->path == NULL ? clv__error_memory(error, strlen(path)) : read_header(file, data, size_bytes, error);
  if (status == CLV_OK) {
    *out = file;
    return CLV_OK;
  }
  clv__safetensors_close(file);
  return clv__error_prefix(error, status, "%s", path);
}

clv_status clv__safetensors_open(const clv_allocator *allocator, const char *path, clv__safetensors **file, clv_error *error) {
  *file = NULL;
  clv__file_map map;
  CLV__TRY(clv__file_map_open(path, &map, error));
  clv_status status = open_bytes(allocator, path, map.data, map.size_bytes, file, error);
  if (status == CLV_OK)
    (*file)->map = map;
  else
    clv__file_map_close(&map);
  return status;
}

clv_status clv__safetensors_open_memory(const clv_allocator *allocator, const void *data, size_t size_bytes,
                                        clv__safetensors **file, clv_error *error) {
  return open_bytes(allocator, "safetensors in memory", data, size_bytes, file, error);
}

void clv__safetensors_close(clv__safetensors *file) {
  if (file == NULL) return;
  clv__file_map_close(&file->map);
  clv__map_finish(&file->index);
  clv__arena_finish(&file->arena);
  clv__release(file->allocator, file);
}

clv__file_map clv__safetensors_take_map(clv__safetensors *file) {
  clv__file_map map = file->map;
  file->map = (clv__file_map){0};
  return map;
}

/* ---- Tensors ---- */

size_t clv__safetensors_count(const clv__safetensors *file) {
  return file->count;
}
const char *clv__safetensors_name(const clv__safetensors *file, size_t index) {
  return file->entries[index].name;
}
bool clv__safetensors_has(const clv__safetensors *file, const char *name) {
  return clv__map_find(&file->index, name) != CLV__MAP_NONE;
}

static clv_status fail_not_found(const clv__safetensors *file, const char *name, clv_error *error) {
  clv__error_set(error, CLV_NOT_FOUND, "%s: no tensor '%.200s'; the %zu tensors are:", file->path, name, file->count);
  if (error == NULL) return CLV_NOT_FOUND;
  size_t used = strlen(error->message);
  for (size_t i = 0; i < file->count && used + strlen(file->entries[i].name) + 2 < sizeof error->message; ++i) {
    error->message[used++] = ' ';
    size_t length = strlen(file->entries[i].name);
    memcpy(error->message + used, file->entries[i].name, length + 1);
    used += length;
  }
  return CLV_NOT_FOUND;
}

clv_status clv__safetensors_read(const clv__safetensors *file, const char *name, clv_tensor *tensor, clv_error *error) {
  *tensor = (clv_tensor){0};
  uint32_t found = clv__map_find(&file->index, name);
  if (found == CLV__MAP_NONE) return fail_not_found(file, name, error);
  const entry *item = &file->entries[found];
  if (item->type.dtype == CLV_DTYPE_NONE || item->rank > CLV_MAX_RANK) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "%s: tensor '%.200s' is %.40s of rank %lld, which is not supported (maximum rank %d)", file->path, name,
                          item->dtype_name, (long long)item->rank, CLV_MAX_RANK);
  }
  const uint8_t *data = file->data + item->begin;
  for (uint64_t i = 0; item->type.dtype == CLV_BOOL && i < item->end - item->begin; ++i) {
    if (data[i] <= 1) continue;
    return clv__error_set(error, CLV_INVALID_MODEL, "%s: tensor '%.200s': element %llu is %u, which is not a bool (0 or 1)",
                          file->path, name, (unsigned long long)i, data[i]);
  }
  *tensor = item->type;
  tensor->data = (void *)data;
  return CLV_OK;
}
