/* The cache on disk: a directory of executables by content (file.h), shared by all processes of a user.
 *
 *   FOLDER/ab/cdef…-0123….clvx     the begin of the structure's hash, then of the whole key's
 *   FOLDER/ab/.new-…               one that is being written
 *
 * Files appear whole, by a rename; they are never changed. Nothing is locked but files that are being written, by whoever writes
 * them: what a killed process left behind is told by its lock. There is no fsync: a file that a power failure tore does not have
 * its hash. Only regular files of this user, writable by nobody else, are read; symbolic links below FOLDER are not followed.
 *
 * Nothing here is needed for a right result: every failure is a reason to compile. */
#ifndef CLEAVE_CACHE_CACHE_H
#define CLEAVE_CACHE_CACHE_H

#include <time.h>

#include "cache/file.h"
#include "cleave/plugin/backend.h"

#define CLV__CACHE_SUFFIX ".clvx"
enum { CLV__CACHE_NAME_BYTES = 80 }; /* "ab/cdef…-0123….clvx" */

typedef struct clv__cache clv__cache;

/* Opens the directory; with `make` it is made where it is not there, its parents too. `limit_bytes`: what clv__cache_put() keeps
 * it within. Errors: CLV_NOT_FOUND, CLV_IO_ERROR with the path. */
clv_status clv__cache_open(const clv_allocator *allocator, const char *path, uint64_t limit_bytes, bool make, clv__cache **cache,
                           clv_error *error);
void clv__cache_close(clv__cache *cache); /* accepts NULL */
/* All that follows may be called from any thread. */

/* A file that was read; its bytes are its own. */
typedef struct clv__cached {
  clv__cache_info info;
  const void *payload;
  size_t payload_bytes;
  void *data;
} clv__cached;

/* The file of a key, checked, and marked as used now. The error's text says why there is none: CLV_NOT_FOUND, with what the
 * nearest file differs in; anything else is wrong with a file that is there, and one that is damaged is removed. */
clv_status clv__cache_get(clv__cache *cache, const clv__key *key, clv__cached *cached, clv_error *error);
void clv__cached_finish(clv__cache *cache, clv__cached *cached);
/* Removes the file of a key: its device did not take it. */
void clv__cache_remove(clv__cache *cache, const clv__key *key);

/* What a key's file would differ in from those that are there: "nothing of this structure is kept", "the weights differ". */
void clv__cache_explain(clv__cache *cache, const clv__key *key, char *text, size_t size_bytes);

/* Writes the file of info->key with what `save` gives (a backend's executable_save), then prunes down to the limit. */
typedef clv_status (*clv__cache_save_fn)(void *self, clv_write_fn write, void *cookie, clv_error *error);
clv_status clv__cache_put(clv__cache *cache, const clv__cache_info *info, clv__cache_save_fn save, void *self, clv_error *error);

/* ---- All files (walk.c): for `cleave cache` and for pruning. ---- */

typedef struct clv__cache_item {
  const char *name; /* below the directory */
  uint64_t size_bytes;
  struct timespec used;
  bool is_unfinished;          /* being written, or left behind by a process that was killed */
  bool is_abandoned;           /* the latter */
  bool is_damaged;             /* of no use to anybody */
  const clv__cache_info *info; /* NULL: `problem` says why */
  char problem[256];
} clv__cache_item;

typedef enum clv__cache_depth {
  CLV__CACHE_SIZES,   /* names, sizes and times; `info` is NULL */
  CLV__CACHE_HEADERS, /* and headers */
  CLV__CACHE_WHOLE    /* and hashes */
} clv__cache_depth;

/* Visits every file, in no order; stops where `visit` fails. Files that go meanwhile are left out. */
clv_status clv__cache_walk(clv__cache *cache, clv__cache_depth depth,
                           clv_status (*visit)(void *self, const clv__cache_item *item, clv_error *error), void *self,
                           clv_error *error);

typedef struct clv__cache_pruned {
  uint64_t kept, kept_bytes, removed, removed_bytes;
} clv__cache_pruned;
/* Removes files not used for `age_s` seconds (0: whatever their age), damaged names and what killed processes left, then the
 * least recently used until the rest takes at most `limit_bytes`. */
clv_status clv__cache_prune(clv__cache *cache, uint64_t limit_bytes, uint64_t age_s, clv__cache_pruned *pruned, clv_error *error);
/* Removes one file by its name below the directory. False where it is not there (any more), or cannot be removed. */
bool clv__cache_remove_name(clv__cache *cache, const char *name);

#endif
