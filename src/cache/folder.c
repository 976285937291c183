/* See cache_own.h. */
#define _GNU_SOURCE /* O_NOFOLLOW, O_DIRECTORY and similar flags */
#include "cache/cache_own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

clv_status clv__cache_failed(clv_error *error, const char *what, int code) {
  if (code == ELOOP) return clv__error_set(error, CLV_IO_ERROR, "%s: it is a symbolic link; links are not followed", what);
  return clv__error_set(error, code == ENOENT ? CLV_NOT_FOUND : CLV_IO_ERROR, "%s: %s", what, strerror(code));
}

void clv__cache_name(const clv__key *key, char name[CLV__CACHE_NAME_BYTES]) {
  char structure[2 * CLV__HASH_BYTES + 1], whole[2 * CLV__HASH_BYTES + 1];
  clv__hash hash;
  clv__hasher hasher;
  clv__hasher_init(&hasher);
  clv__hasher_string(&hasher, "cleave executable");
  clv__hasher_update(&hasher, key->parts, sizeof key->parts);
  clv__hasher_finish(&hasher, &hash);
  clv__hash_text(&key->parts[CLV__KEY_STRUCTURE], structure);
  clv__hash_text(&hash, whole);
  snprintf(name, CLV__CACHE_NAME_BYTES, "%.*s/%.*s-%.*s" CLV__CACHE_SUFFIX, CLV__CACHE_SHARD_DIGITS, structure,
           CLV__CACHE_STRUCTURE_DIGITS - CLV__CACHE_SHARD_DIGITS, structure + CLV__CACHE_SHARD_DIGITS, CLV__CACHE_KEY_DIGITS,
           whole);
}

static clv_status check_owner(const struct stat *info, const char *what, clv_error *error) {
  if (info->st_uid == geteuid()) return CLV_OK;
  return clv__error_set(error, CLV_IO_ERROR, "%s belongs to user %u, but this process runs as user %u", what,
                        (unsigned)info->st_uid, (unsigned)geteuid());
}

static clv_status open_folder(int parent, const char *path, int flags, int *folder, clv_error *error) {
  struct stat info;
  *folder = openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
  if (*folder < 0) { /* some systems report a link to a folder as "not a directory" */
    int code = errno;
    bool is_link = (flags & O_NOFOLLOW) != 0 && fstatat(parent, path, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode);
    return clv__cache_failed(error, "the cache folder", is_link ? ELOOP : code);
  }
  clv_status status = fstat(*folder, &info) == 0 ? check_owner(&info, "the cache folder", error)
                                                 : clv__cache_failed(error, "the cache folder", errno);
  if (status == CLV_OK) return CLV_OK;
  close(*folder);
  *folder = -1;
  return status;
}

/* mkdir -p with access for this user only. Modifies `path` temporarily and restores it. */
static void make_folders(char *path) {
  for (char *at = path + 1; *at != '\0'; ++at) {
    if (*at != '/') continue;
    *at = '\0';
    (void)mkdir(path, 0700);
    *at = '/';
  }
  (void)mkdir(path, 0700); /* opening the folder reports a failure */
}

clv_status clv__cache_open(const clv_allocator *allocator, const char *path, uint64_t limit_bytes, bool make, clv__cache **out,
                           clv_error *error) {
  *out = NULL;
  if (path[0] == '\0') return clv__error_set(error, CLV_NOT_FOUND, "the path of the cache directory is empty");
  size_t path_bytes = strlen(path) + 1;
  clv__cache *cache = clv__allocate_zero(allocator, sizeof *cache + path_bytes);
  if (cache == NULL) return clv__error_memory(error, sizeof *cache + path_bytes);
  *cache = (clv__cache){.allocator = allocator, .path = (char *)(cache + 1), .folder = -1, .limit_bytes = limit_bytes};
  memcpy(cache->path, path, path_bytes);
  pthread_mutex_init(&cache->lock, NULL);
  clv_status status = open_folder(AT_FDCWD, path, 0, &cache->folder, error);
  if (status == CLV_NOT_FOUND && make) {
    make_folders(cache->path);
    status = open_folder(AT_FDCWD, path, 0, &cache->folder, error);
  }
  if (status != CLV_OK) {
    clv__cache_close(cache);
    return clv__error_prefix(error, status, "cache %s", path);
  }
  *out = cache;
  return CLV_OK;
}

void clv__cache_close(clv__cache *cache) {
  if (cache == NULL) return;
  if (cache->folder >= 0) close(cache->folder);
  pthread_mutex_destroy(&cache->lock);
  clv__release(cache->allocator, cache);
}

clv_status clv__cache_shard_open(const clv__cache *cache, const char *name, bool make, int *shard, clv_error *error) {
  char folder[CLV__CACHE_SHARD_DIGITS + 1] = {name[0], name[1]};
  if (make && mkdirat(cache->folder, folder, 0700) != 0 && errno != EEXIST) {
    return clv__cache_failed(error, "cannot create the cache folder", errno);
  }
  return open_folder(cache->folder, folder, O_NOFOLLOW, shard, error);
}

clv_status clv__cache_file_open(int shard, const char *name, int *file, struct stat *info, clv_error *error) {
  *file = openat(shard, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (*file < 0) return clv__cache_failed(error, "cannot open the file", errno);
  clv_status status = CLV_OK;
  if (fstat(*file, info) != 0) {
    status = clv__cache_failed(error, "cannot read the file's size", errno);
  } else if (!S_ISREG(info->st_mode)) {
    status = clv__error_set(error, CLV_IO_ERROR, "not a regular file");
  } else if ((info->st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    status = clv__error_set(error, CLV_IO_ERROR, "other users can write to it (mode %o)", (unsigned)info->st_mode & 0777);
  } else {
    status = check_owner(info, "it", error);
  }
  if (status == CLV_OK) return CLV_OK;
  close(*file);
  *file = -1;
  return status;
}

/* Reads into private memory instead of a mapping: the checked bytes cannot change, and a file that shrinks does not cause a
 * memory fault. */
clv_status clv__cache_file_bytes(const clv__cache *cache, int file, size_t size_bytes, void **data, clv_error *error) {
  *data = clv__allocate(cache->allocator, size_bytes);
  if (*data == NULL) return clv__error_memory(error, size_bytes);
  clv_status status = CLV_OK;
  for (size_t at = 0; at < size_bytes && status == CLV_OK;) {
    size_t most = size_bytes - at < (1u << 30) ? size_bytes - at : 1u << 30;
    ssize_t got = pread(file, (uint8_t *)*data + at, most, (off_t)at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = clv__cache_failed(error, "cannot read the file", errno);
    if (got == 0) status = clv__error_set(error, CLV_INVALID_MODEL, "truncated while being read");
    if (got > 0) at += (size_t)got;
  }
  if (status == CLV_OK) return CLV_OK;
  clv__release(cache->allocator, *data);
  *data = NULL;
  return status;
}
