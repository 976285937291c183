/* Whatever a device of a backend has handed out and not got back: one that is given up gets no call but close(), and that has to
 * find all of it. */
#ifndef CLEAVE_BACKENDS_COMMON_OBJECTS_H
#define CLEAVE_BACKENDS_COMMON_OBJECTS_H

#include <pthread.h>

#include "base/memory.h"

struct clv_device;

/* The first member of what is handed out. */
typedef struct clv__object {
  struct clv__object *previous, *next;
  void (*destroy)(struct clv_device *device, void *self); /* releases what it holds, and calls clv__object_free() */
} clv__object;

typedef struct clv__objects {
  const clv_allocator *allocator;
  struct clv_device *device;
  pthread_mutex_t lock;
  clv__object ring;
} clv__objects;

void clv__objects_init(clv__objects *objects, const clv_allocator *allocator, struct clv_device *device);
/* Destroys what is left; the last made goes first, as it may use what was made before. */
void clv__objects_finish(clv__objects *objects);

/* Zeroed but for the clv__object at its beginning; NULL: memory is out. Any thread. */
void *clv__object_new(clv__objects *objects, size_t size_bytes, void (*destroy)(struct clv_device *device, void *self));
/* Takes it off the list and frees it; what it holds was released before. */
void clv__object_free(clv__objects *objects, void *self);

#endif
