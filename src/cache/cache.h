/* The on-disk cache: a directory of executables (file.h), each named by the hash of its key. All processes of a user share it.
 *
 *   FOLDER/ab/cdef…-0123….clvx     first digits of the structure's hash, then of the whole key's hash
 *   FOLDER/ab/.new-…               a file being written
 *
 * Files appear complete, by a rename, and never change. Only files being written are locked, by their writers; the lock shows
 * whether the writer is still alive. There is no fsync: a file torn by a power failure does not match its hash. The cache reads
 * only regular files of this user that nobody else can write. It follows no symbolic links below FOLDER. Correct results never
 * depend on the cache: after any failure the caller compiles. */
#ifndef CLEAVE_CACHE_CACHE_H
#define CLEAVE_CACHE_CACHE_H

#include <time.h>

#include "cache/file.h"
#include "cleave/plugin/backend.h"

#define CLV__CACHE_SUFFIX ".clvx"
enum { CLV__CACHE_NAME_BYTES = 80 }; /* "ab/cdef…-0123….clvx" */

typedef struct clv__cache clv__cache;

/* Opens the directory. With `make`, creates it and its parents if they are missing. clv__cache_put() keeps the directory
 * within `limit_bytes`. Errors: CLV_NOT_FOUND, CLV_IO_ERROR with the path. */
clv_status clv__cache_open(const clv_allocator *allocator, const char *path, uint64_t limit_bytes, bool make, clv__cache **cache,
                           clv_error *error);
void clv__cache_close(clv__cache *cache); /* accepts NULL */
/* All functions below may be called from any thread. */

/* A file that was read. It owns its bytes. */
typedef struct clv__cached {
  clv__cache_info info;
  const void *payload;
  size_t payload_bytes;
  void *data;
} clv__cached;

/* Reads and checks the file of a key, and marks it as used now. On failure the text of the error gives the reason.
 * CLV_NOT_FOUND: there is no such file; the text says how the nearest file differs. Any other error: the file may exist but
 * could not be used. A damaged file is removed. */
clv_status clv__cache_get(clv__cache *cache, const clv__key *key, clv__cached *cached, clv_error *error);
void clv__cached_finish(clv__cache *cache, clv__cached *cached);
/* Removes the file of a key, if there is one. Callers use it for a file that the device rejected. */
void clv__cache_remove(clv__cache *cache, const clv__key *key);

/* Describes how a key differs from the most similar file: "no executable with this graph structure is cached", "other weights
 * than the most similar cached executable". */
void clv__cache_explain(clv__cache *cache, const clv__key *key, char *text, size_t size_bytes);

/* Writes the file of info->key with the output of `save` (a backend's save->save), then prunes the cache to its limit. */
typedef clv_status (*clv__cache_save_fn)(void *self, clv_write_fn write, void *cookie, clv_error *error);
clv_status clv__cache_put(clv__cache *cache, const clv__cache_info *info, clv__cache_save_fn save, void *self, clv_error *error);

/* ---- All files (walk.c): for `cleave cache` and for pruning. ---- */

typedef struct clv__cache_item {
  const char *name; /* relative to the directory */
  uint64_t size_bytes;
  struct timespec used;
  bool is_unfinished;          /* being written, or left behind by a killed process */
  bool is_abandoned;           /* left behind by a killed process */
  bool is_damaged;             /* its content contradicts its header, its hash or its name, or it cannot be a file of ours */
  const clv__cache_info *info; /* NULL: the walk reads only sizes, or the file is invalid and `problem` states why */
  char problem[256];
} clv__cache_item;

typedef enum clv__cache_depth {
  CLV__CACHE_SIZES,   /* names, sizes and times; `info` is NULL */
  CLV__CACHE_HEADERS, /* also headers */
  CLV__CACHE_WHOLE    /* also payloads, to check the hashes */
} clv__cache_depth;

/* Visits every file in no particular order; stops if `visit` fails. Skips files that disappear meanwhile. */
clv_status clv__cache_walk(clv__cache *cache, clv__cache_depth depth,
                           clv_status (*visit)(void *self, const clv__cache_item *item, clv_error *error), void *self,
                           clv_error *error);

typedef struct clv__cache_pruned {
  uint64_t kept, kept_bytes, removed, removed_bytes;
} clv__cache_pruned;
/* Removes files not used for `age_s` seconds (0: no age limit) and leftovers of killed processes. Then removes the least
 * recently used files until the rest takes at most `limit_bytes`. */
clv_status clv__cache_prune(clv__cache *cache, uint64_t limit_bytes, uint64_t age_s, clv__cache_pruned *pruned, clv_error *error);
/* Removes one file by its name relative to the directory. False if it does not exist or cannot be removed. */
bool clv__cache_remove_name(clv__cache *cache, const char *name);

#endif
