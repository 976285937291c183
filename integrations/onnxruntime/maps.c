/* Files of external data, mapped. A group reads such constants from the file, so that its memory holds no copy of them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "provider.h"

struct clv__ep_map {
  clv__ep_map *next;
  char *path;
  void *data; /* NULL: the file cannot be mapped */
  size_t size_bytes;
};

static void map_file(clv__ep_map *map) {
  struct stat info;
  int file = open(map->path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
    void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (data != MAP_FAILED) {
      map->data = data;
      map->size_bytes = (size_t)info.st_size;
    }
  }
  close(file);
}

/* Finds or makes the map of a file. NULL if there is no memory. */
static const clv__ep_map *find_map(clv__ep_map **maps, const char *path) {
  for (const clv__ep_map *map = *maps; map != NULL; map = map->next) {
    if (strcmp(map->path, path) == 0) return map;
  }
  clv__ep_map *made = calloc(1, sizeof *made);
  if (made == NULL) return NULL;
  made->path = strdup(path);
  if (made->path == NULL) {
    free(made);
    return NULL;
  }
  map_file(made);
  made->next = *maps;
  *maps = made;
  return made;
}

/* The path of a file that a model names, relative to the model's folder. */
static char *path_beside(const char *model, const char *file) {
  const char *slash = file[0] == '/' ? NULL : strrchr(model, '/');
  size_t folder_bytes = slash == NULL ? 0 : (size_t)(slash - model) + 1, room = folder_bytes + strlen(file) + 1;
  char *path = malloc(room);
  if (path != NULL) snprintf(path, room, "%.*s%s", (int)folder_bytes, model, file);
  return path;
}

clv_status clv__ep_find_mapped(const clv__ep *provider, const OrtGraph *graph, const OrtValueInfo *value, size_t size_bytes,
                               clv__ep_map **maps, const void **data, clv_error *error) {
  OrtExternalInfo *info = NULL;
  const char *model = NULL;
  *data = NULL;
  ORT(provider, Graph_GetModelPath, graph, &model);
  ORT(provider, ValueInfo_GetExternalInitializerInfo, value, &info);
  if (info == NULL) return CLV_OK;
  if (model == NULL || model[0] == '\0') { /* loaded from memory: an option of the session says where its files are */
    provider->api->ReleaseExternalInitializerInfo(info);
    return CLV_OK;
  }
  const int64_t offset = provider->api->ExternalInitializerInfo_GetFileOffset(info);
  const size_t stored_bytes = provider->api->ExternalInitializerInfo_GetByteSize(info);
  char *path = path_beside(model, provider->api->ExternalInitializerInfo_GetFilePath(info));
  const clv__ep_map *map = path == NULL ? NULL : find_map(maps, path);
  provider->api->ReleaseExternalInitializerInfo(info);
  free(path);
  if (map == NULL) return clv__ep_no_memory(error);
  bool is_inside = map->data != NULL && stored_bytes == size_bytes && offset >= 0 && (uint64_t)offset <= map->size_bytes &&
                   size_bytes <= map->size_bytes - (size_t)offset;
  if (is_inside) *data = (const char *)map->data + offset;
  return CLV_OK;
}

void clv__ep_unmap(clv__ep_map *maps) {
  while (maps != NULL) {
    clv__ep_map *next = maps->next;
    if (maps->data != NULL) munmap(maps->data, maps->size_bytes);
    free(maps->path);
    free(maps);
    maps = next;
  }
}
