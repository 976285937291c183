/* Tracks all objects that a device has handed out and not got back. An abandoned device receives no call but close(), which must
 * find them all. */
#ifndef CLEAVE_BACKENDS_COMMON_OBJECTS_H
#define CLEAVE_BACKENDS_COMMON_OBJECTS_H

#include <pthread.h>

#include "base/memory.h"

struct clv_device;

/* The first member of every handed-out object. */
typedef struct clv__object {
  struct clv__object *previous, *next;
  void (*destroy)(struct clv_device *device, void *self); /* releases the object's resources and calls clv__object_free() */
} clv__object;

typedef struct clv__objects {
  const clv_allocator *allocator;
  struct clv_device *device;
  pthread_mutex_t lock;
  clv__object ring;
} clv__objects;

void clv__objects_init(clv__objects *objects, const clv_allocator *allocator, struct clv_device *device);
/* Destroys the remaining objects, newest first, because a newer object may use an older one. */
void clv__objects_finish(clv__objects *objects);

/* An object, zeroed except for its leading clv__object. NULL when memory is out. Any thread. */
void *clv__object_new(clv__objects *objects, size_t size_bytes, void (*destroy)(struct clv_device *device, void *self));
/* Removes the object from the list and frees it. Its resources must be released before. */
void clv__object_free(clv__objects *objects, void *self);

#endif
