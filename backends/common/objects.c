/* See objects.h. The objects form a ring, protected by a lock. */
#include "backends/common/objects.h"

void clv__objects_init(clv__objects *objects, const clv_allocator *allocator, struct clv_device *device) {
  *objects = (clv__objects){.allocator = allocator, .device = device};
  objects->ring.previous = objects->ring.next = &objects->ring;
  pthread_mutex_init(&objects->lock, NULL);
}

void clv__objects_finish(clv__objects *objects) {
  while (objects->ring.previous != &objects->ring) {
    clv__object *last = objects->ring.previous;
    last->destroy(objects->device, last);
  }
  pthread_mutex_destroy(&objects->lock);
}

void *clv__object_new(clv__objects *objects, size_t size_bytes, void (*destroy)(struct clv_device *device, void *self)) {
  clv__object *object = clv__allocate_zero(objects->allocator, size_bytes);
  if (object == NULL) return NULL;
  object->destroy = destroy;
  pthread_mutex_lock(&objects->lock);
  object->previous = objects->ring.previous;
  object->next = &objects->ring;
  object->previous->next = object->next->previous = object;
  pthread_mutex_unlock(&objects->lock);
  return object;
}

void clv__object_free(clv__objects *objects, void *self) {
  clv__object *object = self;
  pthread_mutex_lock(&objects->lock);
  object->previous->next = object->next;
  object->next->previous = object->previous;
  pthread_mutex_unlock(&objects->lock);
  clv__release(objects->allocator, object);
}
