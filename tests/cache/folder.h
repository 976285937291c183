/* A temporary folder for the cache of a test, and helpers for the files in it. */
#ifndef CLEAVE_TESTS_CACHE_FOLDER_H
#define CLEAVE_TESTS_CACHE_FOLDER_H

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/* Prepares a test of missing permissions, which root can bypass. Call it in a child process: if the process runs as root, it
 * switches to the user `nobody`, who also becomes the owner of the folder. Returns false if that fails, or if `nobody` cannot
 * access the folder. */
static inline bool folder_without_rights(const folder *f) {
  enum { NOBODY = 65534 };
  if (geteuid() != 0) return true;
  return chown(f->path, NOBODY, NOBODY) == 0 && setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0 &&
         geteuid() == NOBODY && access(f->path, R_OK | W_OK | X_OK) == 0;
}

/* Sets the mode of the folder and of the folders in it: 0500 forbids writing, 0700 allows it. */
static inline void folder_rights(const folder *f, mode_t mode) {
  assert_int_equal(chmod(f->path, 0700), 0);
  DIR *listing = opendir(f->path);
  assert_non_null(listing);
  for (const struct dirent *item; (item = readdir(listing)) != NULL;) {
    if (item->d_name[0] != '.') assert_int_equal(fchmodat(dirfd(listing), item->d_name, mode, 0), 0);
  }
  closedir(listing);
  assert_int_equal(chmod(f->path, mode), 0);
}

enum { FOLDER_SKIPPED = 77 }; /* exit status of a child process if folder_without_rights() returns false */

/* Waits for a child process, which must exit with 0 or FOLDER_SKIPPED. */
static inline void folder_wait(pid_t child) {
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == FOLDER_SKIPPED)
    print_message("skipped: this process runs as root and cannot change its user\n");
  else
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The numbers of files in a cache, as clv__cache_walk() reports them. */
typedef struct folder_count {
  uint32_t whole, damaged, unfinished;
  char name[256]; /* the last complete or damaged file */
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
