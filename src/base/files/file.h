/* Files: read-only mappings and atomic writes. */
#ifndef CLEAVE_BASE_FILES_FILE_H
#define CLEAVE_BASE_FILES_FILE_H

#include "cleave/types.h"

/* A read-only mapping of a whole regular file, or of what was read from a pipe. An empty file has data NULL and size 0. The
 * mapping shows later changes of the file, and reading beyond a new end of the file raises SIGBUS. So users of a long-lived
 * mapping call clv__file_map_check(). */
typedef struct clv__file_map {
  const uint8_t *data;
  size_t size_bytes;
  int file;            /* the open file, for checks and reads; -1 if it is not kept open */
  int64_t modified_ns; /* the modification time of the file when it was mapped */
} clv__file_map;

clv_status clv__file_map_open(const char *path, clv__file_map *map, clv_error *error);
void clv__file_map_close(clv__file_map *map);
/* Whether the file still has the size and the modification time that it had when it was mapped. Also true if its path was
 * deleted or now names another file, because the mapping keeps the old file. Also true if the mapping does not keep the file
 * open, because changes cannot be seen then: at most CLV__FILES_KEPT_OPEN mappings of a process keep their files open. */
enum { CLV__FILES_KEPT_OPEN = 256 };
bool clv__file_map_check(const clv__file_map *map);
/* Copies a part of the mapping to `to`. If the file is kept open, reads the file, so a file that has become shorter causes
 * CLV_IO_ERROR and no signal. Otherwise reads the mapping. */
clv_status clv__file_map_read(const clv__file_map *map, const void *data, size_t size_bytes, void *to, clv_error *error);
/* Returns the pages of this part of the mapping to the system; the next access reads them again. Used for weights that a device
 * has copied. */
void clv__file_map_drop(const clv__file_map *map, const void *data, size_t size_bytes);

/* clv__file_map_fill() makes a read-only mapping of `size_bytes` that repeats one element. It maps the same few pages
 * repeatedly, so a large constant with a single value costs address space but hardly any memory. CLV_NOT_SUPPORTED if the
 * system cannot do this; the caller then fills memory instead. */
size_t clv__file_map_fill_memory(size_t size_bytes); /* the bytes of memory that such a mapping takes */
clv_status clv__file_map_fill(const void *element, size_t element_bytes, size_t size_bytes, clv__file_map *map, clv_error *error);

/* A list of mappings; the owner of the list closes them. */
typedef struct clv__file_map_list {
  struct clv__file_map_list *next;
  clv__file_map map;
  uint8_t element[8]; /* of a mapping made by clv__file_map_fill(): the repeated element */
  size_t element_bytes;
} clv__file_map_list;

/* Writes `path` completely or not at all: writes a temporary file next to it, flushes it and renames it to `path`. */
clv_status clv__file_write(const char *path, const void *data, size_t size_bytes, clv_error *error);

/* Join a folder and `name`. The folder is `folder`, or the one that the file at `path` is in ("." if `path` has no folder).
 * Return a text that the caller releases; NULL if out of memory. */
char *clv__path_beside(const clv_allocator *allocator, const char *path, const char *name);
char *clv__path_join(const clv_allocator *allocator, const char *folder, const char *name);

#endif
