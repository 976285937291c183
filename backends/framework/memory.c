/* Memory: buffers are aligned host memory. Models contain their weights, so weights need no memory of their own here. */
#include <string.h>

#include "base/tensor/tensor.h"
#include "queue.h"

struct clv_buffer {
  clv__object object;
  uint8_t *data;
  uint64_t size_bytes;
};

struct clv_weight {
  clv__object object;
};

static void destroy_buffer(clv_device *device, void *self) {
  clv_buffer *buffer = self;
  clv__release(device->allocator, buffer->data);
  clv__object_free(&device->objects, buffer);
}

clv_status clv__framework_buffer_alloc(clv_device *device, uint64_t size_bytes, clv_buffer **out, clv_error *error) {
  *out = NULL;
  if (size_bytes > SIZE_MAX / 2) return clv__error_memory(error, SIZE_MAX);
  clv_buffer *buffer = clv__object_new(&device->objects, sizeof *buffer, destroy_buffer);
  if (buffer == NULL) return clv__error_memory(error, sizeof *buffer);
  buffer->data = clv__allocate(device->allocator, (size_t)size_bytes);
  buffer->size_bytes = size_bytes;
  if (buffer->data == NULL) {
    clv__object_free(&device->objects, buffer);
    return clv__error_memory(error, (size_t)size_bytes);
  }
  *out = buffer;
  return CLV_OK;
}

void clv__framework_buffer_free(clv_device *device, clv_buffer *buffer) {
  if (buffer != NULL) destroy_buffer(device, buffer);
}

void *clv__framework_buffer_host_pointer(clv_device *device, clv_buffer *buffer) {
  (void)device;
  return buffer->data;
}

static uint8_t *part_of(const clv_buffer *buffer, uint64_t offset_bytes, uint64_t size_bytes) {
  bool inside = offset_bytes <= buffer->size_bytes && size_bytes <= buffer->size_bytes - offset_bytes;
  return inside ? buffer->data + offset_bytes : NULL;
}

static clv_status refuse_part(const clv_buffer *buffer, uint64_t offset_bytes, uint64_t size_bytes, clv_error *error) {
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "%llu bytes at offset %llu do not fit the buffer of %llu bytes",
                        (unsigned long long)size_bytes, (unsigned long long)offset_bytes, (unsigned long long)buffer->size_bytes);
}

clv_status clv__framework_binding_resolve(const clv_binding *binding, clv_binding *resolved, clv_error *error) {
  *resolved = *binding;
  size_t size_bytes;
  bool known = binding->type.rank != CLV_RANK_UNKNOWN && clv__tensor_size_bytes(&binding->type, &size_bytes);
  if (binding->buffer == NULL) {
    if (!known || size_bytes == 0 || binding->type.data != NULL) return CLV_OK;
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "a binding of %zu bytes has no memory", size_bytes);
  }
  resolved->buffer = NULL;
  resolved->offset_bytes = 0;
  resolved->type.data = part_of(binding->buffer, binding->offset_bytes, known ? size_bytes : 0);
  return resolved->type.data != NULL ? CLV_OK
                                     : refuse_part(binding->buffer, binding->offset_bytes, known ? size_bytes : 0, error);
}

static clv_status copy(clv_device *device, clv_stream *stream, void *to, const void *from, size_t size_bytes, clv_error *error) {
  if (device->is_async) return clv__framework_enqueue_copy(device, stream, to, from, size_bytes, error);
  if (size_bytes > 0) memcpy(to, from, size_bytes);
  return CLV_OK;
}

clv_status clv__framework_copy_in(clv_device *device, clv_stream *stream, clv_buffer *to, uint64_t to_offset, const void *from,
                                  uint64_t size_bytes, clv_error *error) {
  void *part = part_of(to, to_offset, size_bytes);
  if (part == NULL) return refuse_part(to, to_offset, size_bytes, error);
  return copy(device, stream, part, from, (size_t)size_bytes, error);
}

clv_status clv__framework_copy_out(clv_device *device, clv_stream *stream, void *to, clv_buffer *from, uint64_t from_offset,
                                   uint64_t size_bytes, clv_error *error) {
  const void *part = part_of(from, from_offset, size_bytes);
  if (part == NULL) return refuse_part(from, from_offset, size_bytes, error);
  return copy(device, stream, to, part, (size_t)size_bytes, error);
}

static void destroy_weight(clv_device *device, void *self) {
  clv__object_free(&device->objects, self);
}

clv_status clv__framework_weight_upload(clv_device *device, const char *id, const clv_tensor *data, clv_weight **weight,
                                        clv_error *error) {
  (void)id;
  (void)data;
  *weight = clv__object_new(&device->objects, sizeof **weight, destroy_weight);
  return *weight != NULL ? CLV_OK : clv__error_memory(error, sizeof **weight);
}

void clv__framework_weight_release(clv_device *device, clv_weight *weight) {
  if (weight != NULL) destroy_weight(device, weight);
}
