/* The on-disk storage of a context: the cache, opened on first use, and the data that backends remember in it. */
#ifndef CLEAVE_DEVICE_REMEMBERED_H
#define CLEAVE_DEVICE_REMEMBERED_H

#include <pthread.h>

#include "cache/cache.h"
#include "device/settings.h"

typedef struct clv__remembered {
  pthread_mutex_t lock; /* held while the cache is opened */
  bool is_tried;
  clv__cache *cache;
  char problem[256];
} clv__remembered;

void clv__remembered_init(clv__remembered *remembered);
void clv__remembered_finish(clv__remembered *remembered);

/* The cache named by the settings. NULL, with the reason (text that lives as long as `remembered`), if there is none. `is_new`:
 * the reason is reported for the first time. Callable from any thread. */
clv__cache *clv__remembered_cache(clv__remembered *remembered, const clv__settings *settings, const clv_allocator *allocator,
                                  const char **reason, bool *is_new);

/* The host services recall() and remember() (clv_host). After a failure there is nothing to release: `data` is as before, or
 * NULL. */
clv_status clv__remembered_get(clv__cache *cache, const clv_allocator *allocator, const char *backend, const char *key,
                               void **data, size_t *size_bytes, clv_error *error);
clv_status clv__remembered_put(clv__cache *cache, const char *backend, const char *key, const void *data, size_t size_bytes,
                               clv_error *error);

#endif
