/* Writes a file piece by piece and replaces the target completely or not at all. The pieces go to a temporary file next to the
 * target. If the file system supports it, the temporary file has no name until it is complete. */
#ifndef CLEAVE_BASE_FILES_FILE_WRITER_H
#define CLEAVE_BASE_FILES_FILE_WRITER_H

#include "cleave/types.h"

typedef struct clv__file_writer {
  const char *path; /* the target; the caller's string must outlive the writer */
  int file;         /* the open temporary file; -1: committed, abandoned, or never opened */
  int special;      /* if the target is a pipe or a device, its descriptor, written at commit; -1 for a regular file */
  bool is_unnamed;  /* the temporary file has no name yet and disappears if the process is killed */
  char temporary[4096];
} clv__file_writer;

/* Errors: CLV_INVALID_ARGUMENT if the path is too long; CLV_IO_ERROR. clv__file_writer_abandon() may be called even after an
 * error. */
clv_status clv__file_writer_open(const char *path, clv__file_writer *writer, clv_error *error);
clv_status clv__file_writer_append(clv__file_writer *writer, const void *data, size_t size_bytes, clv_error *error);
/* Overwrites bytes appended earlier. */
clv_status clv__file_writer_patch(clv__file_writer *writer, uint64_t offset, const void *data, size_t size_bytes,
                                  clv_error *error);
/* Flushes the file and moves it into place. */
clv_status clv__file_writer_commit(clv__file_writer *writer, clv_error *error);
/* Discards the file unless it was committed. */
void clv__file_writer_abandon(clv__file_writer *writer);

/* Removes the temporary files next to `path` that writers left there when they were killed. No other writer of `path` may be
 * active. */
void clv__file_writer_sweep(const char *path);

#endif
