/* Memory of the device: cl_mem objects, buffers that the host allocates, and weights. */
#include "device.h"

/* ---- cl_mem ---- */

static uint64_t at_least_one(uint64_t size_bytes) {
  return size_bytes == 0 ? 1 : size_bytes;
}

clv_status clv__opencl_memory_create(clv_device *device, uint64_t size_bytes, cl_mem *memory, clv_error *error) {
  cl_int code = CL_SUCCESS;
  *memory = NULL;
  if (size_bytes > device->traits.max_buffer_bytes) {
    return clv__error_set(error, CLV_OUT_OF_MEMORY, "a buffer of %llu bytes exceeds the device's limit of %llu",
                          (unsigned long long)size_bytes, (unsigned long long)device->traits.max_buffer_bytes);
  }
  cl_mem_flags flags = CL_MEM_READ_WRITE | (device->is_unified ? CL_MEM_ALLOC_HOST_PTR : 0);
  *memory = device->cl->clCreateBuffer(device->context, flags, at_least_one(size_bytes), NULL, &code);
  if (*memory != NULL) return CLV_OK;
  clv_status status = clv__opencl_failed(error, "clCreateBuffer", code);
  return clv__error_prefix(error, status, "a buffer of %llu bytes", (unsigned long long)size_bytes);
}

clv_status clv__opencl_memory_part(clv_device *device, cl_mem whole, uint64_t offset, uint64_t size_bytes, cl_mem *memory,
                                   clv_error *error) {
  cl_int code = CL_SUCCESS;
  const cl_buffer_region region = {offset, at_least_one(size_bytes)};
  *memory = device->cl->clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  if (*memory != NULL) return CLV_OK;
  clv_status status = clv__opencl_failed(error, "clCreateSubBuffer", code);
  return clv__error_prefix(error, status, "%llu bytes at offset %llu", (unsigned long long)size_bytes,
                           (unsigned long long)offset);
}

clv_status clv__opencl_memory_wrap(clv_device *device, void *host, uint64_t size_bytes, cl_mem *memory, clv_error *error) {
  static uint64_t nothing[8]; /* a valid address for tensors without elements */
  cl_int code = CL_SUCCESS;
  if (size_bytes == 0) host = nothing;
  *memory =
      device->cl->clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, at_least_one(size_bytes), host, &code);
  return *memory != NULL ? CLV_OK : clv__opencl_failed(error, "clCreateBuffer(CL_MEM_USE_HOST_PTR)", code);
}

void clv__opencl_memory_release(clv_device *device, cl_mem memory) {
  if (memory != NULL) device->cl->clReleaseMemObject(memory);
}

clv_status clv__opencl_memory_write(clv_device *device, cl_mem memory, uint64_t offset, const void *data, uint64_t size_bytes,
                                    clv_error *error) {
  if (size_bytes == 0) return CLV_OK;
  pthread_mutex_lock(&device->service_lock);
  cl_int code = device->cl->clEnqueueWriteBuffer(device->service, memory, CL_TRUE, offset, size_bytes, data, 0, NULL, NULL);
  pthread_mutex_unlock(&device->service_lock);
  return code == CL_SUCCESS ? CLV_OK : clv__opencl_failed(error, "clEnqueueWriteBuffer", code);
}

/* ---- Buffers ---- */

static void buffer_destroy(clv_device *device, void *self) {
  clv_buffer *buffer = self;
  clv__opencl_memory_release(device, buffer->memory);
  if (buffer->host != NULL) device->allocator->release(device->allocator->user_data, buffer->host);
  clv__object_free(&device->objects, buffer);
}

clv_status clv__opencl_buffer_alloc(clv_device *device, uint64_t size_bytes, clv_buffer **out, clv_error *error) {
  *out = NULL;
  clv_buffer *buffer = clv__object_new(&device->objects, sizeof *buffer, buffer_destroy);
  if (buffer == NULL) return clv__error_memory(error, sizeof *buffer);
  buffer->size_bytes = size_bytes;
  pthread_mutex_lock(&device->lock);
  buffer->id = ++device->next_id;
  pthread_mutex_unlock(&device->lock);
  clv_status status = CLV_OK;
  if (device->shares_host && size_bytes <= device->traits.max_buffer_bytes) {
    const clv_allocator *allocator = device->allocator;
    buffer->host = allocator->allocate(allocator->user_data, (size_t)at_least_one(size_bytes), device->alignment_bytes);
    status = buffer->host == NULL ? clv__error_memory(error, (size_t)size_bytes)
                                  : clv__opencl_memory_wrap(device, buffer->host, size_bytes, &buffer->memory, error);
  } else {
    status = clv__opencl_memory_create(device, size_bytes, &buffer->memory, error);
  }
  if (status == CLV_OK)
    *out = buffer;
  else
    buffer_destroy(device, buffer);
  return status;
}

void clv__opencl_buffer_free(clv_device *device, clv_buffer *buffer) {
  if (buffer != NULL) buffer_destroy(device, buffer);
}

void *clv__opencl_buffer_host_pointer(clv_device *device, clv_buffer *buffer) {
  (void)device;
  return buffer->host;
}

/* ---- Weights ---- */

static void weight_destroy(clv_device *device, void *self) {
  clv_weight *weight = self;
  clv__opencl_memory_release(device, weight->memory);
  clv__release(device->allocator, weight->id);
  clv__object_free(&device->objects, weight);
}

enum { COMPARE_BYTES = 1 << 16 };

/* Whether the weight's bytes equal `data`. Reads them back from the device, one piece at a time. */
static bool same_bytes(clv_device *device, const clv_weight *weight, const uint8_t *data) {
  uint8_t *piece = clv__allocate(device->allocator, COMPARE_BYTES);
  bool same = piece != NULL;
  pthread_mutex_lock(&device->service_lock);
  for (uint64_t at = 0; at < weight->size_bytes && same; at += COMPARE_BYTES) {
    uint64_t count = weight->size_bytes - at < COMPARE_BYTES ? weight->size_bytes - at : COMPARE_BYTES;
    same = device->cl->clEnqueueReadBuffer(device->service, weight->memory, CL_TRUE, at, count, piece, 0, NULL, NULL) ==
               CL_SUCCESS &&
           memcmp(piece, data + at, count) == 0;
  }
  pthread_mutex_unlock(&device->service_lock);
  clv__release(device->allocator, piece);
  return same;
}

/* Finds an existing weight with this id, type and data. The host uploads weights from one thread at a time. */
static clv_weight *find_weight(clv_device *device, const char *id, const clv_tensor *data) {
  clv_weight *found = NULL;
  pthread_mutex_lock(&device->objects.lock);
  for (clv__object *o = device->objects.ring.next; o != &device->objects.ring && found == NULL; o = o->next) {
    clv_weight *weight = (clv_weight *)o;
    if (o->destroy != weight_destroy || weight->memory == NULL) continue;
    if (strcmp(weight->id, id) == 0 && clv__tensor_same_type(&weight->type, data)) found = weight;
  }
  pthread_mutex_unlock(&device->objects.lock);
  return found != NULL && same_bytes(device, found, data->data) ? found : NULL;
}

clv_status clv__opencl_weight_upload(clv_device *device, const char *id, const clv_tensor *data, clv_weight **out,
                                     clv_error *error) {
  *out = NULL;
  size_t size_bytes;
  if (data->data == NULL || data->dtype == CLV_STRING || !clv__tensor_size_bytes(data, &size_bytes)) {
    char text[100];
    clv__tensor_text(data, text, sizeof text);
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "weight '%s' of type %s has no data, contains strings, or has an unknown size", id, text);
  }
  clv_weight *weight = find_weight(device, id, data);
  if (weight != NULL) {
    ++weight->users;
    *out = weight;
    return CLV_OK;
  }
  weight = clv__object_new(&device->objects, sizeof *weight, weight_destroy);
  if (weight == NULL) return clv__error_memory(error, sizeof *weight);
  size_t id_bytes = strlen(id) + 1;
  weight->type = *data;
  weight->type.data = NULL;
  weight->size_bytes = size_bytes;
  weight->users = 1;
  weight->id = clv__allocate(device->allocator, id_bytes);
  clv_status status = weight->id == NULL ? clv__error_memory(error, id_bytes) : CLV_OK;
  if (status == CLV_OK) {
    memcpy(weight->id, id, id_bytes);
    status = clv__opencl_memory_create(device, size_bytes, &weight->memory, error);
  }
  if (status == CLV_OK) status = clv__opencl_memory_write(device, weight->memory, 0, data->data, size_bytes, error);
  if (status != CLV_OK) {
    weight_destroy(device, weight);
    return clv__error_prefix(error, status, "weight '%s'", id);
  }
  *out = weight;
  return CLV_OK;
}

void clv__opencl_weight_release(clv_device *device, clv_weight *weight) {
  if (weight != NULL && --weight->users == 0) weight_destroy(device, weight);
}
