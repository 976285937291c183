/* An open device: the state that the files of this folder share, and their functions. */
#ifndef CLEAVE_BACKENDS_VNPU_DEVICE_H
#define CLEAVE_BACKENDS_VNPU_DEVICE_H

#include "backends/vnpu/spec/spec.h"
#include "base/hash.h"
#include "memory.h"
#include "queue.h"

/* Constants up to this size are embedded in a program. Larger ones are weights, which the host uploads. */
#define CLV__VNPU_INLINE_BYTES 4096u

struct clv_weight {
  clv_weight *next;
  uint64_t id_hash;
  char *id;
  clv_tensor type; /* without data */
  uint64_t address;
  uint64_t size_bytes;
  uint32_t users;
};

/* The link of an object in the list of live objects: those that the host has not destroyed. Closing the device destroys them,
 * because the host does not destroy the objects of a device that hung. */
typedef struct clv__vnpu_live {
  struct clv__vnpu_live *next, **link;
} clv__vnpu_live;

struct clv_buffer {
  clv__vnpu_live live;
  uint64_t address;
  uint64_t size_bytes;
};

struct clv_device {
  const clv_host *host;
  const clv_allocator *allocator;
  clv__vnpu_spec spec;
  clv__vnpu_space *space;
  clv__vnpu_queue queue;
  clv_weight *weights;
  pthread_mutex_t live_lock;
  /* Lists of live objects. Each object begins with a clv__vnpu_live. */
  clv__vnpu_live *buffers, *executables, *instances, *captured;
  char *memory_space; /* name of the memory space */
  char description[200];
  char fingerprint[2 * CLV__HASH_BYTES + 16];
};

static inline void clv__vnpu_live_add(clv_device *device, clv__vnpu_live **list, clv__vnpu_live *live) {
  pthread_mutex_lock(&device->live_lock);
  live->next = *list;
  live->link = list;
  if (live->next != NULL) live->next->link = &live->next;
  *list = live;
  pthread_mutex_unlock(&device->live_lock);
}

static inline void clv__vnpu_live_remove(clv_device *device, clv__vnpu_live *live) {
  pthread_mutex_lock(&device->live_lock);
  *live->link = live->next;
  if (live->next != NULL) live->next->link = live->link;
  pthread_mutex_unlock(&device->live_lock);
}

/* open.c */
clv_status clv__vnpu_device_open(void *self, const clv_host *host, const clv_device_config *config, clv_device **device,
                                 clv_error *error);
void clv__vnpu_device_close(clv_device *device); /* accepts NULL */
void clv__vnpu_device_info(clv_device *device, clv_device_info *info);
clv_status clv__vnpu_buffer_alloc(clv_device *device, uint64_t size_bytes, clv_buffer **buffer, clv_error *error);
void clv__vnpu_buffer_free(clv_device *device, clv_buffer *buffer); /* accepts NULL */
void clv__vnpu_buffer_discard(clv_device *device, clv_buffer *buffer);
void *clv__vnpu_buffer_host_pointer(clv_device *device, clv_buffer *buffer);
/* Remove an object from its live list and destroy it. Both accept NULL. */
void clv__vnpu_executable_free(clv_device *device, clv_executable *executable);
void clv__vnpu_instance_free(clv_device *device, clv_instance *instance);

/* Hints for the planner (hints.c). A negative number of seconds means that the time is unknown. */
bool clv__vnpu_hint_prefers(clv_device *device, const clv_graph_view *graph, uint32_t node);
double clv__vnpu_hint_node_seconds(clv_device *device, const clv_graph_view *graph, uint32_t node);
double clv__vnpu_hint_copy_seconds(clv_device *device, uint64_t size_bytes);
double clv__vnpu_hint_launch_seconds(clv_device *device);

/* weight.c */
clv_status clv__vnpu_weight_upload(clv_device *device, const char *id, const clv_tensor *data, clv_weight **weight,
                                   clv_error *error);
void clv__vnpu_weight_release(clv_device *device, clv_weight *weight); /* accepts NULL */
void clv__vnpu_weights_finish(clv_device *device);                     /* releases all remaining weights */

#endif
