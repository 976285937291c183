/* See remembered.h. */
#include "device/remembered.h"

#include <stdio.h>
#include <string.h>

void clv__remembered_init(clv__remembered *remembered) {
  *remembered = (clv__remembered){0};
  pthread_mutex_init(&remembered->lock, NULL);
}

void clv__remembered_finish(clv__remembered *remembered) {
  clv__cache_close(remembered->cache);
  pthread_mutex_destroy(&remembered->lock);
}

clv__cache *clv__remembered_cache(clv__remembered *remembered, const clv__settings *settings, const clv_allocator *allocator,
                                  const char **reason, bool *is_new) {
  pthread_mutex_lock(&remembered->lock);
  *is_new = false;
  if (!remembered->is_tried) {
    remembered->is_tried = true;
    clv_error error = {0};
    const char *path = settings->cache_directory;
    if (path == NULL || path[0] == '\0') {
      snprintf(remembered->problem, sizeof remembered->problem, "no cache directory is set");
    } else if (clv__cache_open(allocator, path, settings->cache_bytes, true, &remembered->cache, &error) != CLV_OK) {
      snprintf(remembered->problem, sizeof remembered->problem, "%.*s", (int)sizeof remembered->problem - 1, error.message);
      *is_new = true;
    }
  }
  if (remembered->cache == NULL) *reason = remembered->problem;
  pthread_mutex_unlock(&remembered->lock);
  return remembered->cache;
}

/* ---- Data that backends remember ---- */

static void hash_texts(const char *first, const char *second, clv__hash *hash) {
  clv__hasher hasher;
  clv__hasher_init(&hasher);
  clv__hasher_string(&hasher, first);
  clv__hasher_string(&hasher, second);
  clv__hasher_finish(&hasher, hash);
}

/* Makes the cache key for a backend's own data. No executable has this key, because its structure part is the hash of a fixed
 * text instead of a graph. */
static clv__key memory_key(const char *backend, const char *key) {
  clv__key all = {0};
  hash_texts("what a backend remembers", "", &all.parts[CLV__KEY_STRUCTURE]);
  hash_texts(backend, key, &all.parts[CLV__KEY_DEVICE]);
  return all;
}

clv_status clv__remembered_get(clv__cache *cache, const clv_allocator *allocator, const char *backend, const char *key,
                               void **data, size_t *size_bytes, clv_error *error) {
  clv__key all = memory_key(backend, key);
  clv__cached cached;
  CLV__TRY(clv__cache_get(cache, &all, &cached, error));
  clv_status status = CLV_OK;
  *data = clv__allocate(allocator, cached.payload_bytes > 0 ? cached.payload_bytes : 1);
  if (*data == NULL) {
    status = clv__error_memory(error, cached.payload_bytes);
  } else {
    if (cached.payload_bytes > 0) memcpy(*data, cached.payload, cached.payload_bytes);
    *size_bytes = cached.payload_bytes;
  }
  clv__cached_finish(cache, &cached);
  return status;
}

typedef struct bytes {
  const void *data;
  size_t size_bytes;
} bytes;

static clv_status write_bytes(void *self, clv_write_fn write, void *cookie, clv_error *error) {
  const bytes *b = self;
  (void)error;
  return write(cookie, b->data, b->size_bytes);
}

clv_status clv__remembered_put(clv__cache *cache, const char *backend, const char *key, const void *data, size_t size_bytes,
                               clv_error *error) {
  clv__cache_info info = {.key = memory_key(backend, key)};
  snprintf(info.backend, sizeof info.backend, "%s", backend);
  snprintf(info.description, sizeof info.description, "%s", key);
  snprintf(info.operators, sizeof info.operators, "data kept by the backend");
  return clv__cache_put(cache, &info, write_bytes, &(bytes){data, size_bytes}, error);
}
