/* Files: read-only mappings and atomic writes. */
#ifndef CLEAVE_BASE_FILES_FILE_H
#define CLEAVE_BASE_FILES_FILE_H

#include "cleave/types.h"

/* A read-only mapping of a whole regular file. An empty file has data NULL and size 0. */
typedef struct clv__file_map {
  const uint8_t *data;
  size_t size_bytes;
} clv__file_map;

clv_status clv__file_map_open(const char *path, clv__file_map *map, clv_error *error);
void clv__file_map_close(clv__file_map *map);
/* Gives pages back to the system; they are read again when touched. For weights that a device has taken a copy of. */
void clv__file_map_drop(const clv__file_map *map, const void *data, size_t size_bytes);

/* A read-only mapping of `size_bytes` in which one element repeats: the same few pages again and again, so that a large constant
 * of one value costs address space and hardly any memory. CLV_NOT_SUPPORTED where the system cannot: fill memory instead. */
clv_status clv__file_map_fill(const void *element, size_t element_bytes, size_t size_bytes, clv__file_map *map, clv_error *error);

/* Mappings that die with whoever holds the list. */
typedef struct clv__file_map_list {
  struct clv__file_map_list *next;
  clv__file_map map;
  uint8_t element[8]; /* of a fill: what repeats, in `element_bytes` */
  size_t element_bytes;
} clv__file_map_list;

/* Writes `path` whole or not at all: to a temporary file beside it, flushed, then renamed over it. */
clv_status clv__file_write(const char *path, const void *data, size_t size_bytes, clv_error *error);

/* `folder` of the file at `path` ("." where it has none) joined with `name`; allocated. NULL when memory is out. */
char *clv__path_beside(const clv_allocator *allocator, const char *path, const char *name);
char *clv__path_join(const clv_allocator *allocator, const char *folder, const char *name);

#endif
