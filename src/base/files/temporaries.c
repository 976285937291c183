/* See temporaries.h. */
#include "base/files/temporaries.h"

#include <pthread.h>
#include <stddef.h>

enum { MOST = 256 };

typedef struct temporary {
  const char *path; /* NULL: the entry is free */
  clv__temporary_fn remove;
} temporary;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static temporary list[MOST];

void clv__temporary_begin(void) {
  pthread_mutex_lock(&lock);
}

void clv__temporary_end(const char *path, clv__temporary_fn remove) {
  for (size_t i = 0; path != NULL && i < MOST; ++i) {
    if (list[i].path != NULL) continue;
    list[i] = (temporary){path, remove};
    break;
  }
  pthread_mutex_unlock(&lock);
}

void clv__temporary_forget(const char *path) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < MOST; ++i) {
    if (list[i].path == path) list[i].path = NULL;
  }
  pthread_mutex_unlock(&lock);
}

void clv__temporaries_remove(void) {
  pthread_mutex_lock(&lock); /* never unlocked, so that no thread creates or forgets a temporary any more */
  for (size_t i = 0; i < MOST; ++i) {
    if (list[i].path != NULL) list[i].remove(list[i].path);
  }
}
