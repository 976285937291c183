/* Reads external data: initializers stored in other files of the model's folder. A model may come from an untrusted source, so
 * its paths must not lead out of the folder, neither by name nor by symbolic link. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "formats/onnx/loader.h"

static bool climbs(const char *location) {
  for (const char *part = location; part != NULL; part = strchr(part, '/')) {
    if (*part == '/') ++part;
    if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0')) return true;
  }
  return false;
}

/* Returns whether `path` is in the folder of `file`, or below it. Both are resolved paths. */
static bool is_beside(const char *path, const char *file) {
  const char *slash = strrchr(file, '/');
  size_t folder_bytes = slash == NULL ? 0 : (size_t)(slash - file) + 1;
  return folder_bytes > 0 && strncmp(path, file, folder_bytes) == 0;
}

/* Resolves the path of a data file. Its real path must be in the folder of the model's path or of the model's real path. The
 * latter allows download caches, where both the model and its data are links into one store. */
static clv_status resolve(const clv__onnx_loader *loader, const char *location, char resolved[PATH_MAX], clv_error *error) {
  if (loader->path == NULL) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "its data is in the file '%s', so the model cannot be loaded from memory",
                          location);
  }
  if (location[0] == '\0' || location[0] == '/' || climbs(location)) {
    return clv__error_set(error, CLV_INVALID_MODEL, "external data '%s' is not in the model's folder", location);
  }
  char *joined = clv__path_beside(loader->allocator, loader->path, location);
  char *folder = clv__path_beside(loader->allocator, loader->path, "");
  clv_status status = CLV_OK;
  char place[PATH_MAX];
  if (joined == NULL || folder == NULL) {
    status = clv__error_memory(error, strlen(loader->path) + strlen(location));
  } else if (realpath(joined, resolved) == NULL) {
    status = clv__error_set(error, errno == ENOENT ? CLV_NOT_FOUND : CLV_IO_ERROR, "external data '%s': %s", location,
                            strerror(errno));
  } else {
    bool inside = false;
    if (realpath(folder, place) != NULL && strlen(place) + 2 < sizeof place) {
      if (strcmp(place, "/") != 0) strcat(place, "/");
      inside = is_beside(resolved, place);
    }
    if (!inside && realpath(loader->path, place) != NULL) inside = is_beside(resolved, place);
    if (!inside) {
      status = clv__error_set(error, CLV_INVALID_MODEL, "external data '%s' is outside the model's folder, at '%s'", location,
                              resolved);
    }
  }
  clv__release(loader->allocator, folder);
  clv__release(loader->allocator, joined);
  return status;
}

static clv_status open_file(clv__onnx_loader *loader, const char *location, const clv__file_map **map, clv_error *error) {
  for (size_t i = 0; i < loader->file_count; ++i) {
    if (strcmp(loader->files[i].location, location) == 0) {
      *map = &loader->files[i].map;
      return CLV_OK;
    }
  }
  char path[PATH_MAX];
  CLV__TRY(resolve(loader, location, path, error));
  if (!clv__array_reserve(loader->allocator, (void **)&loader->files, &loader->file_capacity, loader->file_count + 1,
                          sizeof *loader->files, loader->file_count)) {
    return clv__error_memory(error, sizeof *loader->files);
  }
  clv__file_map opened;
  CLV__TRY(clv__file_map_open(path, &opened, error));
  clv_status status = clv__builder_own_map(loader->root, &opened, path, error);
  if (status != CLV_OK) {
    clv__file_map_close(&opened);
    return status;
  }
  loader->files[loader->file_count] = (clv__onnx_file){location, opened};
  *map = &loader->files[loader->file_count++].map;
  return CLV_OK;
}

static clv_status read_number(clv__proto_span text, const char *what, uint64_t *number, clv_error *error) {
  uint64_t value = 0;
  for (size_t i = 0; i < text.size_bytes; ++i) {
    if (text.data[i] < '0' || text.data[i] > '9' || __builtin_mul_overflow(value, 10u, &value) ||
        __builtin_add_overflow(value, (uint64_t)(text.data[i] - '0'), &value)) {
      return clv__error_set(error, CLV_INVALID_MODEL, "external data: %s '%.*s' is not a size in bytes", what,
                            (int)(text.size_bytes < 40 ? text.size_bytes : 40), (const char *)text.data);
    }
  }
  *number = value;
  return CLV_OK;
}

clv_status clv__onnx_external_data(clv__onnx_loader *loader, const clv__onnx_tensor_message *message, clv_tensor *tensor,
                                   clv_error *error) {
  if (tensor->dtype == CLV_STRING) return clv__error_set(error, CLV_INVALID_MODEL, "strings cannot be stored as external data");
  size_t size_bytes;
  if (!clv__tensor_size_bytes(tensor, &size_bytes)) return clv__error_set(error, CLV_INVALID_MODEL, "has an unknown size");
  const char *location;
  CLV__TRY(clv__onnx_string(&loader->scratch, message->location, loader->origin, &location, error));
  uint64_t offset = 0, length = size_bytes;
  CLV__TRY(read_number(message->offset, "offset", &offset, error));
  if (message->length.size_bytes > 0) CLV__TRY(read_number(message->length, "length", &length, error));
  if (length != size_bytes) {
    return clv__error_set(error, CLV_INVALID_MODEL, "has %llu bytes of external data, but its type needs %zu",
                          (unsigned long long)length, size_bytes);
  }
  const clv__file_map *map;
  CLV__TRY(open_file(loader, location, &map, error));
  if (offset > map->size_bytes || length > map->size_bytes - offset) {
    return clv__error_set(error, CLV_INVALID_MODEL, "external data '%s' has %zu bytes, but %zu are needed from byte %llu",
                          location, map->size_bytes, size_bytes, (unsigned long long)offset);
  }
  tensor->data = size_bytes > 0 ? (void *)(map->data + offset) : NULL;
  return CLV_OK;
}
