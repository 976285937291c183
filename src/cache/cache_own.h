/* An open cache, and functions that open and read its files (folder.c). Shared by cache.c and walk.c. */
#ifndef CLEAVE_CACHE_CACHE_OWN_H
#define CLEAVE_CACHE_CACHE_OWN_H

#include <pthread.h>
#include <sys/stat.h>

#include "cache/cache.h"

struct clv__cache {
  const clv_allocator *allocator;
  char *path;
  int folder; /* file descriptor of the cache directory */
  uint64_t limit_bytes;
  pthread_mutex_t lock; /* protects the fields below */
  uint64_t known_bytes; /* the size of the cache at the last count, plus the bytes added since */
  uint32_t puts;        /* files added since the last count; 0: never counted */
};

enum { CLV__CACHE_SHARD_DIGITS = 2, CLV__CACHE_STRUCTURE_DIGITS = 16, CLV__CACHE_KEY_DIGITS = 48 };
#define CLV__CACHE_UNFINISHED ".new-"

/* Sets `name` to the name of a key's file: "ab/cdef…-0123….clvx". */
void clv__cache_name(const clv__key *key, char name[CLV__CACHE_NAME_BYTES]);

/* Opens the shard folder given by the first two letters of `name`, without following a link. With `make`, creates it. */
clv_status clv__cache_shard_open(const clv__cache *cache, const char *name, bool make, int *shard, clv_error *error);
/* Opens a file in the shard for reading: it must be a regular file of this user that nobody else can write. */
clv_status clv__cache_file_open(int shard, const char *name, int *file, struct stat *info, clv_error *error);
/* Reads the first `size_bytes` of the file into allocated memory. */
clv_status clv__cache_file_bytes(const clv__cache *cache, int file, size_t size_bytes, void **data, clv_error *error);

/* Sets an error like "cannot open: No such file or directory". `code` is an errno. Returns CLV_NOT_FOUND for ENOENT, and
 * CLV_IO_ERROR for all others. */
clv_status clv__cache_failed(clv_error *error, const char *what, int code);

#endif
