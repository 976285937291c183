/* Puts bytes into a deleted temporary file that still has a path in /proc, for readers that open a path. */
#ifndef CLEAVE_FUZZ_IN_MEMORY_H
#define CLEAVE_FUZZ_IN_MEMORY_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct fuzz_in_memory {
  int file;
  char path[48];
} fuzz_in_memory;

static inline void fuzz_in_memory_open(const void *data, size_t size_bytes, fuzz_in_memory *made) {
  char name[] = "/tmp/cleave-fuzz-XXXXXX";
  made->file = mkstemp(name);
  if (made->file < 0) abort();
  unlink(name);
  for (size_t written = 0; written < size_bytes;) {
    ssize_t part = write(made->file, (const char *)data + written, size_bytes - written);
    if (part <= 0) abort();
    written += (size_t)part;
  }
  snprintf(made->path, sizeof made->path, "/proc/self/fd/%d", made->file);
}

static inline void fuzz_in_memory_close(fuzz_in_memory *made) {
  close(made->file);
}

#endif
