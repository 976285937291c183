/* Weights in the device's memory. Uploads of the same bytes with the same id share one copy. */
#include <string.h>

#include "base/error.h"
#include "base/tensor/tensor.h"
#include "device.h"

static void weight_free(clv_device *device, clv_weight *weight) {
  clv__vnpu_space_free(device->space, weight->address, weight->size_bytes);
  clv__release(device->allocator, weight);
}

static uint64_t hash_id(const char *id) {
  uint64_t hash = UINT64_C(14695981039346656037);
  for (; *id != '\0'; ++id) hash = (hash ^ (uint8_t)*id) * UINT64_C(1099511628211);
  return hash;
}

/* Finds an uploaded weight with this id, type and bytes: several sessions of one model share their weights. */
static clv_weight *find_weight(clv_device *device, const char *id, uint64_t hash, const clv_tensor *data) {
  for (clv_weight *w = device->weights; w != NULL; w = w->next) {
    if (w->id_hash != hash || strcmp(w->id, id) != 0 || !clv__tensor_same_type(&w->type, data)) continue;
    const void *there = clv__vnpu_space_translate(device->space, w->address, w->size_bytes);
    if (w->size_bytes == 0 || (there != NULL && memcmp(there, data->data, w->size_bytes) == 0)) return w;
  }
  return NULL;
}

clv_status clv__vnpu_weight_upload(clv_device *device, const char *id, const clv_tensor *data, clv_weight **out,
                                   clv_error *error) {
  *out = NULL;
  size_t size_bytes;
  if (data->data == NULL || data->dtype == CLV_STRING || !clv__tensor_size_bytes(data, &size_bytes)) {
    char text[100];
    clv__tensor_text(data, text, sizeof text);
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "weight '%s' of type %s has no data, contains strings, or has an unknown size", id, text);
  }
  uint64_t hash = hash_id(id);
  clv__vnpu_space_enter(device->space);
  clv_weight *weight = find_weight(device, id, hash, data);
  clv__vnpu_space_leave(device->space);
  if (weight != NULL) {
    ++weight->users;
    *out = weight;
    return CLV_OK;
  }
  size_t id_bytes = strlen(id) + 1;
  weight = clv__allocate_zero(device->allocator, sizeof *weight + id_bytes);
  if (weight == NULL) return clv__error_memory(error, sizeof *weight + id_bytes);
  weight->id_hash = hash;
  weight->id = (char *)(weight + 1);
  memcpy(weight->id, id, id_bytes);
  weight->type = *data;
  weight->type.data = NULL;
  weight->size_bytes = size_bytes;
  weight->users = 1;
  clv_status status = clv__vnpu_space_allocate(device->space, size_bytes, &weight->address, error);
  if (status != CLV_OK) {
    clv__release(device->allocator, weight);
    return clv__error_prefix(error, status, "weight '%s'", id);
  }
  clv__vnpu_space_enter(device->space);
  if (size_bytes > 0) memcpy(clv__vnpu_space_translate(device->space, weight->address, size_bytes), data->data, size_bytes);
  clv__vnpu_space_leave(device->space);
  weight->next = device->weights;
  device->weights = weight;
  *out = weight;
  return CLV_OK;
}

void clv__vnpu_weight_release(clv_device *device, clv_weight *weight) {
  if (weight == NULL || --weight->users > 0) return;
  clv_weight **link = &device->weights;
  while (*link != weight) link = &(*link)->next;
  *link = weight->next;
  weight_free(device, weight);
}

void clv__vnpu_weights_finish(clv_device *device) {
  while (device->weights != NULL) {
    clv_weight *weight = device->weights;
    device->weights = weight->next;
    weight_free(device, weight);
  }
}
