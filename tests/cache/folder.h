/* A folder of a test's own for the cache, and what the tests do to the files in it. */
#ifndef CLEAVE_TESTS_CACHE_FOLDER_H
#define CLEAVE_TESTS_CACHE_FOLDER_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/cache.h"
#include "support.h"

typedef struct folder {
  char path[128];
} folder;

static inline void folder_make(folder *f) {
  const char *top = getenv("TMPDIR");
  snprintf(f->path, sizeof f->path, "%s/cleave-test-XXXXXX", top != NULL && strlen(top) < 80 ? top : "/tmp");
  assert_non_null(mkdtemp(f->path));
}

static inline void folder_remove(const char *path) {
  DIR *listing = opendir(path);
  for (const struct dirent *item; listing != NULL && (item = readdir(listing)) != NULL;) {
    char inner[512];
    struct stat info;
    if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0) continue;
    if (snprintf(inner, sizeof inner, "%s/%s", path, item->d_name) >= (int)sizeof inner) continue;
    if (lstat(inner, &info) == 0 && S_ISDIR(info.st_mode))
      folder_remove(inner);
    else
      unlink(inner);
  }
  if (listing != NULL) closedir(listing);
  rmdir(path);
}

/* The files of a cache, by the walk. */
typedef struct folder_count {
  uint32_t whole, damaged, unfinished;
  char name[256]; /* of one of them */
  char problem[256];
} folder_count;

static inline clv_status folder_visit(void *self, const clv__cache_item *item, clv_error *error) {
  (void)error;
  folder_count *count = self;
  if (item->is_unfinished)
    ++count->unfinished;
  else if (item->info != NULL)
    ++count->whole;
  else
    ++count->damaged;
  if (!item->is_unfinished) snprintf(count->name, sizeof count->name, "%s", item->name);
  if (item->info == NULL && !item->is_unfinished) snprintf(count->problem, sizeof count->problem, "%s", item->problem);
  return CLV_OK;
}

static inline folder_count folder_look(const char *path) {
  folder_count count = {0};
  clv__cache *cache;
  clv_error error = {0};
  if (clv__cache_open(clv__allocator_default(), path, UINT64_MAX, false, &cache, &error) != CLV_OK) return count;
  assert_ok(clv__cache_walk(cache, CLV__CACHE_WHOLE, folder_visit, &count, &error), error);
  clv__cache_close(cache);
  return count;
}

#endif
