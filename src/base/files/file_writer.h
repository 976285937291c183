/* Writing a file piece by piece: it replaces its target whole or not at all. Pieces go to a temporary file beside it,
 * which has no name until all of it is there, where the file system can do that. */
#ifndef CLEAVE_BASE_FILES_FILE_WRITER_H
#define CLEAVE_BASE_FILES_FILE_WRITER_H

#include "cleave/types.h"

typedef struct clv__file_writer {
  const char *path; /* the caller's, which outlives this */
  int file;         /* -1: committed, abandoned, or never open */
  int special;      /* a pipe or a device has nothing to replace: the target itself, written into at the end; else -1 */
  bool is_unnamed;  /* the temporary file has no name yet, and goes by itself where the process is killed */
  char temporary[4096];
} clv__file_writer;

/* CLV_INVALID_ARGUMENT (the path is too long), CLV_IO_ERROR. Whatever it came to, `writer` may be abandoned. */
clv_status clv__file_writer_open(const char *path, clv__file_writer *writer, clv_error *error);
clv_status clv__file_writer_append(clv__file_writer *writer, const void *data, size_t size_bytes, clv_error *error);
/* Overwrites bytes that were appended before. */
clv_status clv__file_writer_patch(clv__file_writer *writer, uint64_t offset, const void *data, size_t size_bytes,
                                  clv_error *error);
/* Flushes it and puts it in its place. */
clv_status clv__file_writer_commit(clv__file_writer *writer, clv_error *error);
/* Forgets what was written, unless it was committed. */
void clv__file_writer_abandon(clv__file_writer *writer);

/* Removes temporary files that writers of `path` left beside it when they were killed. Nobody may be writing it meanwhile. */
void clv__file_writer_sweep(const char *path);

#endif
