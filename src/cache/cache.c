/* Reads and writes single files of the cache: see cache.h. */
#define _GNU_SOURCE /* O_NOFOLLOW, flock */
#include "cache/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cache/cache_own.h"

/* ---- Reading ---- */

static clv_status read_file(clv__cache *cache, int file, const struct stat *info, const clv__key *key, clv__cached *cached,
                            clv_error *error) {
  if (info->st_size < 0 || (uint64_t)info->st_size > SIZE_MAX / 2) return clv__error_memory(error, SIZE_MAX);
  size_t size_bytes = (size_t)info->st_size;
  CLV__TRY(clv__cache_file_bytes(cache, file, size_bytes, &cached->data, error));
  CLV__TRY(clv__cache_file_read(cache->allocator, cached->data, size_bytes, &cached->info, &cached->payload,
                                &cached->payload_bytes, error));
  if (memcmp(&cached->info.key, key, sizeof *key) == 0) return CLV_OK;
  return clv__error_set(error, CLV_INVALID_MODEL, "damaged: the key in its header does not match its file name");
}

clv_status clv__cache_get(clv__cache *cache, const clv__key *key, clv__cached *cached, clv_error *error) {
  char name[CLV__CACHE_NAME_BYTES], text[256];
  int shard, file = -1;
  struct stat info;
  *cached = (clv__cached){0};
  clv__cache_name(key, name);
  const char *base = name + CLV__CACHE_SHARD_DIGITS + 1;
  clv_status status = clv__cache_shard_open(cache, name, false, &shard, error);
  if (status == CLV_OK) {
    status = clv__cache_file_open(shard, base, &file, &info, error);
    if (status == CLV_OK) status = read_file(cache, file, &info, key, cached, error);
    if (status == CLV_OK) {
      const struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
      (void)futimens(file, now); /* marks it as used; may fail in a read-only directory, which is never pruned either */
    } else if (status == CLV_INVALID_MODEL) {
      bool removed = unlinkat(shard, base, 0) == 0;
      clv__error_prefix(error, status, "%s %s", name, removed ? "(removed)" : "(it cannot be removed)");
    } else if (status != CLV_NOT_FOUND) {
      clv__error_prefix(error, status, "%s", name);
    }
    if (file >= 0) close(file);
    close(shard);
  } else if (status != CLV_NOT_FOUND) {
    clv__error_prefix(error, status, "%s", name);
  }
  if (status == CLV_OK) return CLV_OK;
  clv__cached_finish(cache, cached);
  if (status != CLV_NOT_FOUND) return status;
  clv__cache_explain(cache, key, text, sizeof text);
  return clv__error_set(error, CLV_NOT_FOUND, "%s", text);
}

void clv__cached_finish(clv__cache *cache, clv__cached *cached) {
  clv__cache_info_finish(cache->allocator, &cached->info);
  clv__release(cache->allocator, cached->data);
  *cached = (clv__cached){0};
}

bool clv__cache_remove_name(clv__cache *cache, const char *name) {
  int shard;
  if (strlen(name) < CLV__CACHE_SHARD_DIGITS + 2 || name[CLV__CACHE_SHARD_DIGITS] != '/') return false;
  if (clv__cache_shard_open(cache, name, false, &shard, NULL) != CLV_OK) return false;
  const char *base = name + CLV__CACHE_SHARD_DIGITS + 1;
  /* Also removes an empty folder of this name. */
  bool removed = unlinkat(shard, base, 0) == 0 || unlinkat(shard, base, AT_REMOVEDIR) == 0;
  close(shard);
  return removed;
}

void clv__cache_remove(clv__cache *cache, const clv__key *key) {
  char name[CLV__CACHE_NAME_BYTES];
  clv__cache_name(key, name);
  (void)clv__cache_remove_name(cache, name);
}

/* ---- Why a key is not found ---- */

uint32_t clv__key_differences(const clv__key *a, const clv__key *b) {
  uint32_t parts = 0;
  for (uint32_t i = 0; i < CLV__KEY_PARTS; ++i) {
    if (memcmp(&a->parts[i], &b->parts[i], sizeof a->parts[i]) != 0) parts |= 1u << i;
  }
  return parts;
}

void clv__key_explain(uint32_t parts, char *text, size_t size_bytes) {
  static const char *const words[CLV__KEY_PARTS] = {"structure", "shapes or dtypes", "weights", "device or driver", "options"};
  if ((parts & 1u << CLV__KEY_STRUCTURE) != 0) {
    snprintf(text, size_bytes, "no executable with this graph structure is cached");
    return;
  }
  size_t used = 0;
  for (uint32_t i = 0; i < CLV__KEY_PARTS && used < size_bytes; ++i) {
    if ((parts & 1u << i) == 0) continue;
    int written = snprintf(text + used, size_bytes - used, "%s%s", used > 0 ? ", " : "other ", words[i]);
    used += written < 0 ? 0 : (size_t)written;
  }
  if (used < size_bytes) snprintf(text + used, size_bytes - used, " than the most similar cached executable");
}

/* Reads the header of one file; false on any failure. */
static bool read_info(clv__cache *cache, int shard, const char *name, clv__cache_info *info) {
  enum { MOST_BYTES = 1 << 20 };
  int file;
  struct stat status;
  void *data;
  uint64_t header_bytes;
  if (clv__cache_file_open(shard, name, &file, &status, NULL) != CLV_OK) return false;
  size_t size_bytes = status.st_size < MOST_BYTES ? (size_t)status.st_size : MOST_BYTES;
  bool read = clv__cache_file_bytes(cache, file, size_bytes, &data, NULL) == CLV_OK;
  close(file);
  if (!read) return false;
  read =
      clv__cache_header_read(cache->allocator, data, size_bytes, (uint64_t)status.st_size, info, &header_bytes, NULL) == CLV_OK;
  clv__release(cache->allocator, data);
  return read;
}

void clv__cache_explain(clv__cache *cache, const clv__key *key, char *text, size_t size_bytes) {
  enum { MOST_FILES = 256 };
  char name[CLV__CACHE_NAME_BYTES];
  int shard;
  uint32_t best = CLV__KEY_ALL, looked = 0;
  clv__cache_name(key, name);
  const char *base = name + CLV__CACHE_SHARD_DIGITS + 1;
  DIR *listing = NULL;
  if (clv__cache_shard_open(cache, name, false, &shard, NULL) == CLV_OK) {
    listing = fdopendir(shard);
    if (listing == NULL) close(shard);
  }
  for (const struct dirent *item; listing != NULL && looked < MOST_FILES && (item = readdir(listing)) != NULL;) {
    clv__cache_info info;
    if (strncmp(item->d_name, base, CLV__CACHE_STRUCTURE_DIGITS - CLV__CACHE_SHARD_DIGITS) != 0) continue;
    if (!read_info(cache, dirfd(listing), item->d_name, &info)) continue;
    uint32_t parts = clv__key_differences(key, &info.key);
    if (__builtin_popcount(parts) < __builtin_popcount(best)) best = parts;
    clv__cache_info_finish(cache->allocator, &info);
    ++looked;
  }
  if (listing != NULL) closedir(listing);
  clv__key_explain(best, text, size_bytes);
}

/* ---- Writing ---- */

/* The file being written. The backend's output is written as it arrives, so that the executable is not in memory twice. */
typedef struct writing {
  int file;
  uint64_t at, limit_bytes;
  clv_error *error;
} writing;

static clv_status write_bytes(writing *w, const uint8_t *data, size_t size_bytes) {
  while (size_bytes > 0) {
    ssize_t written = pwrite(w->file, data, size_bytes < (1u << 30) ? size_bytes : 1u << 30, (off_t)w->at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return clv__cache_failed(w->error, "cannot write the file", written < 0 ? errno : ENOSPC);
    data += written;
    size_bytes -= (size_t)written;
    w->at += (uint64_t)written;
  }
  return CLV_OK;
}

static clv_status write_payload(void *cookie, const void *data, size_t size_bytes) {
  writing *w = cookie;
  if (size_bytes > w->limit_bytes || w->at > w->limit_bytes - size_bytes) {
    return clv__error_set(w->error, CLV_TOO_LARGE, "larger than the cache's limit of %llu bytes",
                          (unsigned long long)w->limit_bytes);
  }
  return write_bytes(w, data, size_bytes);
}

/* Creates a file with a unique name across processes, threads and attempts. Its lock marks it as being written. */
static int create_unfinished(int shard, char *name, size_t size_bytes) {
  static atomic_uint counter;
  for (int attempt = 0; attempt < 100; ++attempt) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, size_bytes, CLV__CACHE_UNFINISHED "%ld-%u-%lx", (long)getpid(), atomic_fetch_add(&counter, 1),
             (unsigned long)now.tv_nsec);
    int file = openat(shard, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file >= 0) {
      (void)flock(file, LOCK_EX | LOCK_NB);
      return file;
    }
    if (errno != EEXIST) return -1;
  }
  return -1;
}

static clv_status write_file(writing *w, const clv_allocator *allocator, const clv__cache_info *info, clv__cache_save_fn save,
                             void *self) {
  clv__text header;
  clv__text_init(&header, allocator);
  /* This header only shows how long a header is. The final one is written at the end. */
  clv__cache_header_write(info, NULL, 0, &header);
  uint64_t header_bytes = w->at = header.size_bytes;
  clv_error own = {0};
  clv_status status = header.failed ? clv__error_memory(w->error, sizeof *info) : save(self, write_payload, w, &own);
  if (status != CLV_OK && !header.failed && (w->error == NULL || w->error->message[0] == '\0')) {
    clv__error_set(w->error, status, "the device's backend cannot save the executable: %s", own.message);
  }
  uint64_t total = w->at;
  void *map = MAP_FAILED;
  if (status == CLV_OK) {
    if (total == header_bytes && ftruncate(w->file, (off_t)total) != 0)
      status = clv__cache_failed(w->error, "cannot write the file", errno);
    if (status == CLV_OK) map = mmap(NULL, (size_t)total, PROT_READ, MAP_SHARED, w->file, 0);
    if (status == CLV_OK && map == MAP_FAILED) status = clv__cache_failed(w->error, "cannot map the file", errno);
  }
  if (status == CLV_OK) {
    clv__text_finish(&header);
    clv__text_init(&header, allocator);
    clv__cache_header_write(info, (const uint8_t *)map + header_bytes, total - header_bytes, &header);
    w->at = 0;
    status = header.failed ? clv__error_memory(w->error, sizeof *info)
                           : write_bytes(w, (const uint8_t *)header.data, header.size_bytes);
    w->at = total;
  }
  if (map != MAP_FAILED) munmap(map, (size_t)total);
  clv__text_finish(&header);
  return status;
}

/* Prunes the cache if it exceeds its limit. Counts its size from time to time, because other processes write to it too. The
 * caller holds cache->lock. */
static void keep_limit(clv__cache *cache, uint64_t added_bytes) {
  enum { COUNT_EVERY = 64 };
  cache->known_bytes += added_bytes;
  bool counted = cache->puts > 0 && cache->puts < COUNT_EVERY;
  ++cache->puts;
  if (counted && cache->known_bytes <= cache->limit_bytes) return;
  clv__cache_pruned pruned;
  if (clv__cache_prune(cache, cache->limit_bytes, 0, &pruned, NULL) != CLV_OK) return;
  cache->known_bytes = pruned.kept_bytes;
  cache->puts = 1;
}

clv_status clv__cache_put(clv__cache *cache, const clv__cache_info *info, clv__cache_save_fn save, void *self, clv_error *error) {
  char name[CLV__CACHE_NAME_BYTES], unfinished[64];
  int shard;
  clv_error own = {0};
  writing w = {.file = -1, .limit_bytes = cache->limit_bytes, .error = &own};
  clv__cache_name(&info->key, name);
  CLV__TRY(clv__cache_shard_open(cache, name, true, &shard, error));
  clv_status status = CLV_OK;
  w.file = create_unfinished(shard, unfinished, sizeof unfinished);
  if (w.file < 0) {
    status = clv__cache_failed(&own, "cannot write the file", errno);
  } else {
    status = write_file(&w, cache->allocator, info, save, self);
    if (status == CLV_OK && renameat(shard, unfinished, shard, name + CLV__CACHE_SHARD_DIGITS + 1) != 0) {
      status = clv__cache_failed(&own, "cannot rename the file", errno);
    }
    if (status != CLV_OK) (void)unlinkat(shard, unfinished, 0);
    close(w.file);
  }
  close(shard);
  if (status == CLV_OK) {
    pthread_mutex_lock(&cache->lock);
    keep_limit(cache, w.at);
    pthread_mutex_unlock(&cache->lock);
  } else if (error != NULL) {
    *error = own;
  }
  return status;
}
