/* Ready-made slots for devices that compute in host memory, in the caller's thread: buffers, streams, events, copies, weights and
 * instances. Such a backend then writes only its own slots: open(), close(), supports(), compile(), executable_destroy() and
 * execute().
 *
 * How to use it (C):
 *
 *   struct clv_device {
 *     clv_host_device base; // first
 *     ...
 *   };
 *   static const clv_backend table = {
 *       .abi_version = CLV_ABI_VERSION, .struct_size = sizeof table, .name = "mine", ...,
 *       CLV_HOST_DEVICE_SLOTS, CLV_HOST_WEIGHT_SLOTS, CLV_HOST_INSTANCE_SLOTS};
 *
 * open() allocates the device and calls clv_host_device_init(). It may then change any field of `base.info` except the alignment
 * and the memory space.
 *
 *   CLV_HOST_DEVICE_SLOTS     info, buffers, streams, events, copies
 *   CLV_HOST_OPEN_SLOTS       open() and close() for a device that is a clv_host_device and nothing more, and has no options;
 *                             `self` describes it, as a clv_device_info
 *   CLV_HOST_WEIGHT_SLOTS     for executables that contain their weights: the host uploads none
 *   CLV_HOST_INSTANCE_SLOTS   for instances without state: the instance is the executable. execute() must keep nothing between
 *                             calls, and must take every shape from its bindings. A backend that has scratch memory, or that
 *                             prepares for given shapes, writes its own slots
 *
 * This header is self-contained. It calls no library function, so a plugin does not link with Cleave. */
#ifndef CLEAVE_PLUGIN_HOST_DEVICE_H
#define CLEAVE_PLUGIN_HOST_DEVICE_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CLV_HOST_ALIGNMENT 64u /* of buffers, in bytes */

/* The first field of a clv_device. The strings in `info` must be valid as long as the device. */
typedef struct clv_host_device {
  const clv_host *host;
  clv_device_info info; /* the answer of info() */
} clv_host_device;

/* What a clv_buffer of a clv_host_device points to. The bytes of the buffer start CLV_HOST_ALIGNMENT bytes after the start of
 * this struct. */
typedef struct clv_host_buffer {
  uint64_t size_bytes;
} clv_host_buffer;

/* ---- Helpers for the backend's own slots ---- */

/* Fills in a device: host memory, synchronous, any shapes, no limits. The strings are not copied. */
static inline void clv_host_device_init(clv_host_device *base, const clv_host *host, const char *kind, const char *description,
                                        const char *fingerprint) {
  memset(base, 0, sizeof *base);
  base->host = host;
  base->info.struct_size = sizeof base->info;
  base->info.kind = kind;
  base->info.description = description;
  base->info.fingerprint = fingerprint;
  base->info.memory_space = "host";
  base->info.silicon = "cpu";
  base->info.alignment_bytes = CLV_HOST_ALIGNMENT;
  base->info.is_synchronous = true;
}

/* Stores the message in `error`, which may be NULL. Returns `status`. */
static inline CLV_PRINTF(3, 4) clv_status clv_host_fail(clv_error *error, clv_status status, const char *format, ...) {
  if (error != NULL) {
    va_list arguments;
    va_start(arguments, format);
    error->status = status;
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
  }
  return status;
}

/* Zeroed memory from the host's allocator, or NULL if there is none left. */
static inline void *clv_host_allocate(const clv_host *host, size_t size_bytes) {
  void *memory = host->allocator->allocate(host->allocator->user_data, size_bytes > 0 ? size_bytes : 1, CLV_HOST_ALIGNMENT);
  if (memory != NULL) memset(memory, 0, size_bytes);
  return memory;
}

static inline void clv_host_release(const clv_host *host, void *memory) {
  host->allocator->release(host->allocator->user_data, memory);
}

/* The host address of a binding's bytes. */
static inline void *clv_host_address(const clv_binding *binding) {
  if (binding->buffer == NULL) return binding->type.data;
  return (char *)binding->buffer + CLV_HOST_ALIGNMENT + binding->offset_bytes;
}

/* The number of elements of a tensor; -1 if a dimension is unknown or the product overflows. */
static inline int64_t clv_host_count(const clv_tensor *tensor) {
  int64_t count = 1;
  int32_t i;
  if (tensor->rank < 0) return -1;
  for (i = 0; i < tensor->rank; ++i) {
    if (tensor->dims[i] < 0 || (tensor->dims[i] > 0 && count > INT64_MAX / tensor->dims[i])) return -1;
    count *= tensor->dims[i];
  }
  return count;
}

/* ---- The slots ---- */

static inline const clv_host_device *clv_host_base(clv_device *device) {
  return (const clv_host_device *)(const void *)device;
}

static inline void clv_host_info(clv_device *device, clv_device_info *info) {
  clv_device_info filled = clv_host_base(device)->info;
  const uint32_t size = info->struct_size < sizeof filled ? info->struct_size : (uint32_t)sizeof filled;
  filled.struct_size = info->struct_size; /* an older host asks for fewer bytes */
  memcpy(info, &filled, size);
}

/* Opens a device that is only a clv_host_device. The table's `self` is a `const clv_device_info *` with the device's kind,
 * strings and limits. */
static inline clv_status clv_host_open(void *self, const clv_host *host, const clv_device_config *config, clv_device **device,
                                       clv_error *error) {
  const clv_device_info *info = (const clv_device_info *)self;
  *device = NULL;
  if (config->option_count > 0)
    return clv_host_fail(error, CLV_INVALID_ARGUMENT, "%s: option '%s' is unknown: the device has no options", config->name,
                         config->options[0].key);
  clv_host_device *made = (clv_host_device *)clv_host_allocate(host, sizeof *made);
  if (made == NULL) return clv_host_fail(error, CLV_OUT_OF_MEMORY, "%s: no memory for the device", config->name);
  *device = (clv_device *)(void *)made;
  clv_host_device_init(made, host, info->kind, info->description, info->fingerprint);
  made->info.static_shapes_only = info->static_shapes_only;
  made->info.max_partition_inputs = info->max_partition_inputs;
  made->info.max_partition_nodes = info->max_partition_nodes;
  made->info.computes_views = info->computes_views;
  return CLV_OK;
}
static inline void clv_host_close(clv_device *device) {
  if (device != NULL) clv_host_release(clv_host_base(device)->host, device);
}

static inline clv_status clv_host_buffer_alloc(clv_device *device, uint64_t size_bytes, clv_buffer **buffer, clv_error *error) {
  const clv_allocator *allocator = clv_host_base(device)->host->allocator;
  clv_host_buffer *made = NULL;
  *buffer = NULL;
  if (size_bytes < SIZE_MAX / 2) { /* not cleared: it is written before it is read */
    made =
        (clv_host_buffer *)allocator->allocate(allocator->user_data, (size_t)size_bytes + CLV_HOST_ALIGNMENT, CLV_HOST_ALIGNMENT);
  }
  if (made == NULL) {
    return clv_host_fail(error, CLV_OUT_OF_MEMORY, "no memory for a buffer of %llu bytes", (unsigned long long)size_bytes);
  }
  made->size_bytes = size_bytes;
  *buffer = (clv_buffer *)(void *)made;
  return CLV_OK;
}

static inline void clv_host_buffer_free(clv_device *device, clv_buffer *buffer) {
  clv_host_release(clv_host_base(device)->host, buffer);
}

static inline void *clv_host_buffer_pointer(clv_device *device, clv_buffer *buffer) {
  (void)device;
  return (char *)buffer + CLV_HOST_ALIGNMENT;
}

/* All calls are synchronous, so there is nothing to wait for. All streams and all events are the device itself. */
static inline clv_status clv_host_stream_create(clv_device *device, clv_stream **stream, clv_error *error) {
  (void)error;
  *stream = (clv_stream *)(void *)device;
  return CLV_OK;
}
static inline void clv_host_stream_destroy(clv_device *device, clv_stream *stream) {
  (void)device;
  (void)stream;
}
static inline clv_status clv_host_stream_synchronize(clv_device *device, clv_stream *stream, clv_error *error) {
  (void)device;
  (void)stream;
  (void)error;
  return CLV_OK;
}
static inline clv_status clv_host_event_create(clv_device *device, clv_event **event, clv_error *error) {
  (void)error;
  *event = (clv_event *)(void *)device;
  return CLV_OK;
}
static inline void clv_host_event_destroy(clv_device *device, clv_event *event) {
  (void)device;
  (void)event;
}
static inline clv_status clv_host_event_record(clv_device *device, clv_event *event, clv_stream *stream, clv_error *error) {
  (void)device;
  (void)event;
  (void)stream;
  (void)error;
  return CLV_OK;
}
static inline clv_status clv_host_event_wait(clv_device *device, clv_stream *stream, clv_event *event, clv_error *error) {
  (void)device;
  (void)stream;
  (void)event;
  (void)error;
  return CLV_OK;
}
static inline clv_status clv_host_event_synchronize(clv_device *device, clv_event *event, clv_error *error) {
  (void)device;
  (void)event;
  (void)error;
  return CLV_OK;
}

/* Returns CLV_INVALID_ARGUMENT if a copy exceeds its buffer. */
static inline clv_status clv_host_check_range(const clv_buffer *buffer, uint64_t offset, uint64_t size_bytes, clv_error *error) {
  const uint64_t there = ((const clv_host_buffer *)(const void *)buffer)->size_bytes;
  if (offset <= there && size_bytes <= there - offset) return CLV_OK;
  return clv_host_fail(error, CLV_INVALID_ARGUMENT, "a copy of %llu bytes at offset %llu exceeds the buffer of %llu bytes",
                       (unsigned long long)size_bytes, (unsigned long long)offset, (unsigned long long)there);
}
static inline clv_status clv_host_copy_in(clv_device *device, clv_stream *stream, clv_buffer *to, uint64_t to_offset,
                                          const void *from, uint64_t size_bytes, clv_error *error) {
  const clv_status status = clv_host_check_range(to, to_offset, size_bytes, error);
  (void)stream;
  if (status == CLV_OK && size_bytes > 0) {
    memcpy((char *)clv_host_buffer_pointer(device, to) + to_offset, from, (size_t)size_bytes);
  }
  return status;
}
static inline clv_status clv_host_copy_out(clv_device *device, clv_stream *stream, void *to, clv_buffer *from,
                                           uint64_t from_offset, uint64_t size_bytes, clv_error *error) {
  const clv_status status = clv_host_check_range(from, from_offset, size_bytes, error);
  (void)stream;
  if (status == CLV_OK && size_bytes > 0) {
    memcpy(to, (const char *)clv_host_buffer_pointer(device, from) + from_offset, (size_t)size_bytes);
  }
  return status;
}

/* Executables contain their weights, so these slots do nothing. */
static inline clv_status clv_host_weight_upload(clv_device *device, const char *id, const clv_tensor *data, clv_weight **weight,
                                                clv_error *error) {
  (void)id;
  (void)data;
  (void)error;
  *weight = (clv_weight *)(void *)device;
  return CLV_OK;
}
static inline void clv_host_weight_release(clv_device *device, clv_weight *weight) {
  (void)device;
  (void)weight;
}
static inline void clv_host_executable_info(clv_device *device, clv_executable *executable, clv_executable_info *info) {
  const uint32_t size = info->struct_size;
  (void)device;
  (void)executable;
  memset(info, 0, size < sizeof *info ? size : sizeof *info);
  info->struct_size = size;
}

static inline clv_status clv_host_instance_create(clv_device *device, clv_executable *executable, const clv_tensor *inputs,
                                                  uint32_t input_count, clv_weight *const *weights, uint32_t weight_count,
                                                  clv_instance **instance, clv_error *error) {
  (void)device;
  (void)inputs;
  (void)input_count;
  (void)weights;
  (void)weight_count;
  (void)error;
  *instance = (clv_instance *)(void *)executable;
  return CLV_OK;
}
static inline clv_status clv_host_instance_resize(clv_device *device, clv_instance *instance, const clv_tensor *inputs,
                                                  uint32_t input_count, clv_error *error) {
  (void)device;
  (void)instance;
  (void)inputs;
  (void)input_count;
  (void)error;
  return CLV_OK;
}
static inline void clv_host_instance_destroy(clv_device *device, clv_instance *instance) {
  (void)device;
  (void)instance;
}

/* clang-format off */
#define CLV_HOST_DEVICE_SLOTS                                                                               \
  .info = clv_host_info, .buffer_alloc = clv_host_buffer_alloc, .buffer_free = clv_host_buffer_free,        \
  .buffer_host_pointer = clv_host_buffer_pointer, .stream_create = clv_host_stream_create,                  \
  .stream_destroy = clv_host_stream_destroy, .stream_synchronize = clv_host_stream_synchronize,             \
  .event_create = clv_host_event_create, .event_destroy = clv_host_event_destroy,                           \
  .event_record = clv_host_event_record, .event_wait = clv_host_event_wait,                                 \
  .event_synchronize = clv_host_event_synchronize, .copy_in = clv_host_copy_in, .copy_out = clv_host_copy_out
#define CLV_HOST_OPEN_SLOTS .open = clv_host_open, .close = clv_host_close
#define CLV_HOST_WEIGHT_SLOTS                                                                     \
  .weight_upload = clv_host_weight_upload, .weight_release = clv_host_weight_release,             \
  .executable_info = clv_host_executable_info
#define CLV_HOST_INSTANCE_SLOTS                                                                         \
  .instance_create = clv_host_instance_create, .instance_resize = clv_host_instance_resize,             \
  .instance_destroy = clv_host_instance_destroy
/* clang-format on */

#ifdef __cplusplus
}
#endif
#endif
