/* See faults.h. The device's lock guards all reference counts (`users`), and the lists of faults in the watches. No OpenCL
 * function is called while this lock is held. */
#include "faults.h"

#include <stdio.h>

typedef struct place {
  char name[128], op[32]; /* copied from the node, which may be destroyed before the error is reported */
  clv__opencl_explain_fn explain;
} place;

struct clv__opencl_faults {
  uint32_t users;
  bool is_over; /* the instance is destroyed */
  size_t count;
  cl_mem memory;
  clv__opencl_fault *found; /* the values that were last read back */
  place places[];
};

struct clv__opencl_watch {
  uint32_t users;
  clv__opencl_faults **items;
  size_t count, capacity;
};

/* ---- The faults of an instance ---- */

clv_status clv__opencl_faults_create(const clv__opencl_variant *variant, cl_mem memory, clv__opencl_faults **out,
                                     clv_error *error) {
  clv_device *device = variant->device;
  const size_t count = variant->fault_places.count, found_bytes = count * sizeof(clv__opencl_fault);
  const size_t size_bytes = sizeof(clv__opencl_faults) + count * sizeof(place);
  clv__opencl_faults *faults = clv__allocate_zero(device->allocator, size_bytes);
  if (faults == NULL) return clv__error_memory(error, size_bytes);
  faults->found = clv__allocate_zero(device->allocator, found_bytes);
  clv_status status = faults->found == NULL ? clv__error_memory(error, found_bytes) : CLV_OK;
  if (status == CLV_OK) status = clv__opencl_memory_write(device, memory, 0, faults->found, found_bytes, error);
  if (status == CLV_OK) {
    cl_int code = device->cl->clRetainMemObject(memory);
    if (code != CL_SUCCESS) status = clv__opencl_failed(error, "clRetainMemObject", code);
  }
  if (status != CLV_OK) {
    clv__release(device->allocator, faults->found);
    clv__release(device->allocator, faults);
    return status;
  }
  faults->users = 1;
  faults->count = count;
  faults->memory = memory;
  for (size_t i = 0; i < count; ++i) {
    const clv__opencl_fault_place *from = &variant->fault_places.items[i];
    const clv_node_info *node = &variant->executable->nodes[from->node];
    snprintf(faults->places[i].name, sizeof faults->places[i].name, "%s", node->name);
    snprintf(faults->places[i].op, sizeof faults->places[i].op, "%s", node->op);
    faults->places[i].explain = from->explain;
  }
  *out = faults;
  return CLV_OK;
}

static void release(clv_device *device, clv__opencl_faults *faults) {
  pthread_mutex_lock(&device->lock);
  const bool is_last = --faults->users == 0;
  pthread_mutex_unlock(&device->lock);
  if (!is_last) return;
  clv__opencl_memory_release(device, faults->memory);
  clv__release(device->allocator, faults->found);
  clv__release(device->allocator, faults);
}

void clv__opencl_faults_leave(clv_device *device, clv__opencl_faults *faults) {
  if (faults == NULL) return;
  pthread_mutex_lock(&device->lock);
  faults->is_over = true;
  pthread_mutex_unlock(&device->lock);
  release(device, faults);
}

/* ---- Watches ---- */

/* Returns item number `index` of the watch, with one more user, or NULL if there is no such item. */
static clv__opencl_faults *item_at(clv_device *device, const clv__opencl_watch *watch, size_t index) {
  pthread_mutex_lock(&device->lock);
  clv__opencl_faults *faults = index < watch->count ? watch->items[index] : NULL;
  if (faults != NULL) ++faults->users;
  pthread_mutex_unlock(&device->lock);
  return faults;
}

/* Removes one item whose instance is destroyed from the watch, and returns it; NULL if there is none. Without this, the watch
 * of a stream would grow with every instance that ran on the stream. */
static clv__opencl_faults *take_over(clv_device *device, clv__opencl_watch *watch) {
  clv__opencl_faults *taken = NULL;
  pthread_mutex_lock(&device->lock);
  for (size_t i = 0; i < watch->count && taken == NULL; ++i) {
    if (!watch->items[i]->is_over) continue;
    taken = watch->items[i];
    watch->items[i] = watch->items[--watch->count];
  }
  pthread_mutex_unlock(&device->lock);
  return taken;
}

static clv_status make_watch(clv_device *device, clv__opencl_watch **watch, clv_error *error) {
  if (*watch != NULL) return CLV_OK;
  *watch = clv__allocate_zero(device->allocator, sizeof **watch);
  if (*watch == NULL) return clv__error_memory(error, sizeof **watch);
  (*watch)->users = 1;
  return CLV_OK;
}

static clv_status watch_over(clv_device *device, clv__opencl_watch *watch, clv__opencl_faults *faults, clv_error *error) {
  clv_status status = CLV_OK;
  bool is_there = false;
  pthread_mutex_lock(&device->lock);
  for (size_t i = 0; i < watch->count; ++i) is_there = is_there || watch->items[i] == faults;
  if (!is_there) {
    if (!clv__array_reserve(device->allocator, (void **)&watch->items, &watch->capacity, watch->count + 1, sizeof *watch->items,
                            watch->count)) {
      status = clv__error_memory(error, (watch->count + 1) * sizeof *watch->items);
    } else {
      watch->items[watch->count++] = faults;
      ++faults->users;
    }
  }
  pthread_mutex_unlock(&device->lock);
  return status;
}

clv_status clv__opencl_faults_watch(clv_device *device, clv__opencl_faults *faults, clv__opencl_watch **watch, clv_error *error) {
  if (faults == NULL) return CLV_OK;
  CLV__TRY(make_watch(device, watch, error));
  for (clv__opencl_faults *over; (over = take_over(device, *watch)) != NULL;) release(device, over);
  return watch_over(device, *watch, faults, error); /* keeps `faults` alive, because commands in the queue read into it */
}

clv_status clv__opencl_faults_read(clv_device *device, clv__opencl_faults *faults, cl_command_queue queue, clv_error *error) {
  if (faults == NULL) return CLV_OK;
  CLV__OPENCL_TRY(error, "clEnqueueReadBuffer",
                  device->cl->clEnqueueReadBuffer(queue, faults->memory, CL_FALSE, 0, faults->count * sizeof *faults->found,
                                                  faults->found, 0, NULL, NULL));
  return CLV_OK;
}

clv__opencl_watch *clv__opencl_watch_share(clv_device *device, clv__opencl_watch *watch) {
  if (watch == NULL) return NULL;
  pthread_mutex_lock(&device->lock);
  ++watch->users;
  pthread_mutex_unlock(&device->lock);
  return watch;
}

void clv__opencl_watch_release(clv_device *device, clv__opencl_watch *watch) {
  if (watch == NULL) return;
  pthread_mutex_lock(&device->lock);
  const bool is_last = --watch->users == 0;
  pthread_mutex_unlock(&device->lock);
  if (!is_last) return;
  for (size_t i = 0; i < watch->count; ++i) release(device, watch->items[i]);
  clv__release(device->allocator, watch->items);
  clv__release(device->allocator, watch);
}

clv_status clv__opencl_watch_join(clv_device *device, clv__opencl_watch **watch, clv__opencl_watch *other, clv_error *error) {
  if (other == NULL || other == *watch) return CLV_OK;
  CLV__TRY(make_watch(device, watch, error));
  clv_status status = CLV_OK;
  clv__opencl_faults *faults;
  for (size_t i = 0; status == CLV_OK && (faults = item_at(device, other, i)) != NULL; ++i) {
    status = watch_over(device, *watch, faults, error);
    release(device, faults);
  }
  return status;
}

/* ---- Reporting ---- */

static clv_status report_fault(const place *at, const clv__opencl_fault *fault, clv_error *error) {
  char text[160];
  at->explain(fault, text);
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "node '%s' (%s): %s", at->name, at->op, text);
}

/* Clears the faults on the device and on the host. The queue is empty, so no kernel writes the memory at the same time. */
static void forget(clv_device *device, clv__opencl_faults *faults, cl_command_queue queue) {
  const size_t size_bytes = faults->count * sizeof *faults->found;
  memset(faults->found, 0, size_bytes);
  (void)device->cl->clEnqueueWriteBuffer(queue, faults->memory, CL_TRUE, 0, size_bytes, faults->found, 0, NULL, NULL);
}

clv_status clv__opencl_watch_check(clv_device *device, clv__opencl_watch *watch, cl_command_queue queue, clv_error *error) {
  clv_status status = CLV_OK;
  clv__opencl_faults *faults;
  for (size_t i = 0; watch != NULL && (faults = item_at(device, watch, i)) != NULL; ++i) {
    bool is_found = false;
    for (size_t k = 0; k < faults->count; ++k) {
      if (faults->found[k].said == 0) continue;
      if (status == CLV_OK) status = report_fault(&faults->places[k], &faults->found[k], error);
      is_found = true;
    }
    if (is_found && queue != NULL) forget(device, faults, queue);
    release(device, faults);
  }
  return status;
}
