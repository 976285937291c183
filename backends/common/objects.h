/* Lists the objects that a device has created and the host has not destroyed yet. If the host abandons a device, it only calls
 * close(), which must then destroy these objects. */
#ifndef CLEAVE_BACKENDS_COMMON_OBJECTS_H
#define CLEAVE_BACKENDS_COMMON_OBJECTS_H

#include <pthread.h>

#include "base/memory.h"

struct clv_device;

/* The first member of every listed object. */
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

/* Creates an object of `size_bytes` and adds it to the list. All bytes after its leading clv__object are 0. Returns NULL if
 * memory runs out. Any thread may call it. */
void *clv__object_new(clv__objects *objects, size_t size_bytes, void (*destroy)(struct clv_device *device, void *self));
/* Removes the object from the list and frees its memory. The caller must have released everything else that the object owns. */
void clv__object_free(clv__objects *objects, void *self);

#endif
