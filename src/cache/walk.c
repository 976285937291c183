/* Visits all files of the cache: lists, checks and prunes them. See cache.h. */
#define _GNU_SOURCE /* O_NOFOLLOW, flock */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cache/cache_own.h"

enum {
  HEADER_BYTES = 1 << 20, /* larger headers count as damaged */
  ABANDONED_S = 60        /* younger files may belong to a writer that has not locked them yet */
};

static bool is_hex(const char *text, size_t digits) {
  for (size_t i = 0; i < digits; ++i) {
    if ((text[i] < '0' || text[i] > '9') && (text[i] < 'a' || text[i] > 'f')) return false;
  }
  return true;
}

/* Whether a name in a shard folder has the form of a complete cache file's name. */
static bool is_finished_name(const char *name) {
  size_t structure = CLV__CACHE_STRUCTURE_DIGITS - CLV__CACHE_SHARD_DIGITS;
  return strlen(name) == structure + 1 + CLV__CACHE_KEY_DIGITS + strlen(CLV__CACHE_SUFFIX) && is_hex(name, structure) &&
         name[structure] == '-' && is_hex(name + structure + 1, CLV__CACHE_KEY_DIGITS) &&
         strcmp(name + structure + 1 + CLV__CACHE_KEY_DIGITS, CLV__CACHE_SUFFIX) == 0;
}
static bool is_unfinished_name(const char *name) {
  return strncmp(name, CLV__CACHE_UNFINISHED, strlen(CLV__CACHE_UNFINISHED)) == 0;
}

static bool is_abandoned(int file, const struct stat *info) {
  if (time(NULL) - info->st_mtim.tv_sec < ABANDONED_S) return false;
  if (flock(file, LOCK_EX | LOCK_NB) != 0) return false;
  (void)flock(file, LOCK_UN);
  return true;
}

typedef struct walk {
  clv__cache *cache;
  clv__cache_depth depth;
  clv_status (*visit)(void *self, const clv__cache_item *item, clv_error *error);
  void *self;
} walk;

/* Reads the parts of a file that the walk requests; an error becomes the item's problem. */
static clv_status examine(const walk *w, int file, const struct stat *status, const char *name, clv__cache_info *info,
                          clv_error *error) {
  clv__cache *cache = w->cache;
  uint64_t file_bytes = (uint64_t)status->st_size, header_bytes;
  void *data;
  if (file_bytes > SIZE_MAX / 2) return clv__error_memory(error, SIZE_MAX);
  size_t size_bytes = w->depth == CLV__CACHE_WHOLE || file_bytes < HEADER_BYTES ? (size_t)file_bytes : HEADER_BYTES;
  CLV__TRY(clv__cache_file_bytes(cache, file, size_bytes, &data, error));
  clv_status result;
  if (w->depth == CLV__CACHE_WHOLE) {
    const void *payload;
    size_t payload_bytes;
    result = clv__cache_file_read(cache->allocator, data, size_bytes, info, &payload, &payload_bytes, error);
  } else {
    result = clv__cache_header_read(cache->allocator, data, size_bytes, file_bytes, info, &header_bytes, error);
  }
  clv__release(cache->allocator, data);
  if (result != CLV_OK) return result;
  char should[CLV__CACHE_NAME_BYTES];
  clv__cache_name(&info->key, should);
  if (strcmp(should, name) == 0) return CLV_OK;
  clv__cache_info_finish(cache->allocator, info);
  return clv__error_set(error, CLV_INVALID_MODEL, "damaged: the key in its header does not match its file name");
}

static clv_status visit_file(const walk *w, int shard, const char *base, const char *name, clv_error *error) {
  int file;
  struct stat status;
  clv_error problem = {0};
  clv__cache_info info = {0};
  clv__cache_item item = {.name = name, .is_unfinished = is_unfinished_name(base)};
  clv_status opened = clv__cache_file_open(shard, base, &file, &status, &problem);
  if (opened == CLV_NOT_FOUND) return CLV_OK; /* it disappeared meanwhile */
  item.is_damaged = opened == CLV_IO_ERROR;   /* cannot be opened, is not a regular file, or is not ours alone */
  if (opened == CLV_OK) {
    item.size_bytes = (uint64_t)status.st_size;
    item.used = status.st_mtim;
    if (item.is_unfinished) {
      item.is_abandoned = is_abandoned(file, &status);
      snprintf(problem.message, sizeof problem.message,
               item.is_abandoned ? "left behind by a process that was killed" : "being written");
    } else if (w->depth != CLV__CACHE_SIZES) {
      clv_status examined = examine(w, file, &status, name, &info, &problem);
      if (examined == CLV_OK) item.info = &info;
      item.is_damaged = examined == CLV_INVALID_MODEL;
    }
    close(file);
  }
  snprintf(item.problem, sizeof item.problem, "%.*s", (int)sizeof item.problem - 1, item.info != NULL ? "" : problem.message);
  clv_status result = w->visit(w->self, &item, error);
  clv__cache_info_finish(w->cache->allocator, &info);
  return result;
}

static clv_status visit_shard(const walk *w, const char *folder, clv_error *error) {
  int shard;
  clv_error problem = {0};
  clv_status status = clv__cache_shard_open(w->cache, folder, false, &shard, &problem);
  if (status == CLV_NOT_FOUND) return CLV_OK;
  if (status != CLV_OK) { /* a link, or a folder of another user: report it, but do not read it */
    clv__cache_item item = {.name = folder};
    snprintf(item.problem, sizeof item.problem, "%.*s", (int)sizeof item.problem - 1, problem.message);
    return w->visit(w->self, &item, error);
  }
  DIR *listing = fdopendir(shard);
  if (listing == NULL) {
    close(shard);
    return clv__error_memory(error, sizeof(struct dirent));
  }
  for (const struct dirent *item; status == CLV_OK && (item = readdir(listing)) != NULL;) {
    char name[CLV__CACHE_NAME_BYTES];
    if (!is_finished_name(item->d_name) && !is_unfinished_name(item->d_name)) continue;
    int length = snprintf(name, sizeof name, "%s/%s", folder, item->d_name);
    if (length > 0 && (size_t)length < sizeof name) status = visit_file(w, shard, item->d_name, name, error);
  }
  closedir(listing);
  return status;
}

clv_status clv__cache_walk(clv__cache *cache, clv__cache_depth depth,
                           clv_status (*visit)(void *self, const clv__cache_item *item, clv_error *error), void *self,
                           clv_error *error) {
  const walk w = {cache, depth, visit, self};
  int folder = openat(cache->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *listing = folder < 0 ? NULL : fdopendir(folder);
  if (listing == NULL) {
    clv_status status = clv__cache_failed(error, "cannot list the cache folder", errno);
    if (folder >= 0) close(folder);
    return clv__error_prefix(error, status, "cache %s", cache->path);
  }
  clv_status status = CLV_OK;
  for (const struct dirent *item; status == CLV_OK && (item = readdir(listing)) != NULL;) {
    if (strlen(item->d_name) != CLV__CACHE_SHARD_DIGITS || !is_hex(item->d_name, CLV__CACHE_SHARD_DIGITS)) continue;
    char name[CLV__CACHE_SHARD_DIGITS + 1];
    memcpy(name, item->d_name, sizeof name);
    status = visit_shard(&w, name, error);
  }
  closedir(listing);
  return status;
}

/* ---- Pruning ---- */

typedef struct candidate {
  char name[CLV__CACHE_NAME_BYTES];
  uint64_t size_bytes;
  struct timespec used;
  bool is_unfinished, is_abandoned;
} candidate;

typedef struct candidates {
  const clv_allocator *allocator;
  candidate *items;
  size_t count, capacity;
} candidates;

static clv_status add_candidate(void *self, const clv__cache_item *item, clv_error *error) {
  candidates *list = self;
  if (strchr(item->name, '/') == NULL) return CLV_OK; /* a folder that visit_shard() rejected */
  if (!clv__array_reserve(list->allocator, (void **)&list->items, &list->capacity, list->count + 1, sizeof *list->items,
                          list->count)) {
    return clv__error_memory(error, sizeof *list->items);
  }
  candidate *c = &list->items[list->count++];
  *c = (candidate){.size_bytes = item->size_bytes,
                   .used = item->used,
                   .is_unfinished = item->is_unfinished,
                   .is_abandoned = item->is_abandoned};
  snprintf(c->name, sizeof c->name, "%s", item->name);
  return CLV_OK;
}

static int compare_used(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
  if (x->used.tv_nsec != y->used.tv_nsec) return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
  return strcmp(x->name, y->name);
}

clv_status clv__cache_prune(clv__cache *cache, uint64_t limit_bytes, uint64_t age_s, clv__cache_pruned *pruned,
                            clv_error *error) {
  candidates list = {.allocator = cache->allocator};
  *pruned = (clv__cache_pruned){0};
  clv_status status = clv__cache_walk(cache, CLV__CACHE_SIZES, add_candidate, &list, error);
  if (status == CLV_OK && list.count > 0) {
    qsort(list.items, list.count, sizeof *list.items, compare_used);
    time_t now = time(NULL);
    uint64_t total = 0;
    for (size_t i = 0; i < list.count; ++i) total += list.items[i].size_bytes;
    for (size_t i = 0; i < list.count; ++i) { /* starting with the least recently used */
      const candidate *c = &list.items[i];
      bool old = age_s > 0 && now > c->used.tv_sec && (uint64_t)(now - c->used.tv_sec) >= age_s;
      bool goes = c->is_unfinished ? c->is_abandoned : old || total > limit_bytes;
      if (goes && clv__cache_remove_name(cache, c->name)) {
        ++pruned->removed;
        pruned->removed_bytes += c->size_bytes;
        total -= c->size_bytes;
      } else {
        ++pruned->kept;
        pruned->kept_bytes += c->size_bytes;
      }
    }
  }
  clv__release(cache->allocator, list.items);
  return status;
}
