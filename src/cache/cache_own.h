/* An open cache, and how its files are opened and read (folder.c): what cache.c and walk.c share. */
#ifndef CLEAVE_CACHE_CACHE_OWN_H
#define CLEAVE_CACHE_CACHE_OWN_H

#include <pthread.h>
#include <sys/stat.h>

#include "cache/cache.h"

struct clv__cache {
  const clv_allocator *allocator;
  char *path;
  int folder; /* its descriptor */
  uint64_t limit_bytes;
  pthread_mutex_t lock; /* of what follows */
  uint64_t known_bytes; /* what it held when last counted, and what was put there since */
  uint32_t puts;        /* since it was last counted; 0: never */
};

enum { CLV__CACHE_SHARD_DIGITS = 2, CLV__CACHE_STRUCTURE_DIGITS = 16, CLV__CACHE_KEY_DIGITS = 48 };
#define CLV__CACHE_UNFINISHED ".new-"

/* The file of a key: "ab/cdef…-0123….clvx". */
void clv__cache_name(const clv__key *key, char name[CLV__CACHE_NAME_BYTES]);

/* Opens the folder that the first two letters of `name` name, without following a link; with `make` it is made. */
clv_status clv__cache_shard_open(const clv__cache *cache, const char *name, bool make, int *shard, clv_error *error);
/* Opens a file of it for reading: a regular file of this user, which nobody else may write. */
clv_status clv__cache_file_open(int shard, const char *name, int *file, struct stat *info, clv_error *error);
/* Reads its first `size_bytes`, allocated. */
clv_status clv__cache_file_bytes(const clv__cache *cache, int file, size_t size_bytes, void **data, clv_error *error);

/* "cannot open: No such file or directory", with CLV_NOT_FOUND for that and CLV_IO_ERROR for all else. */
clv_status clv__cache_failed(clv_error *error, const char *what, int code);

#endif
