/* Copies between a slot and host memory, with padding on the way in and cutting on the way out where the device has the value at
 * its bucket's size. */
#include "execute/internal.h"

static bool is_longer(const clv__prepared *prepared, const clv__slot *slot) {
  return slot->is_padded && !clv__same_dims(&prepared->placed[slot->value], &prepared->types[slot->value]);
}

/* The slot's bytes at its bucket's size, in host memory. */
static clv_status get_staging(clv__prepared *prepared, clv__slot *slot, clv_tensor *padded, clv_error *error) {
  size_t size_bytes;
  *padded = prepared->placed[slot->value];
  if (!clv__tensor_size_bytes(padded, &size_bytes)) return clv__error_memory(error, SIZE_MAX);
  clv_devices *devices = prepared->request->session->devices;
  if (slot->staging.generation == 0 || slot->staging.size_bytes < size_bytes) {
    clv__pool_give(devices, &slot->staging);
    CLV__TRY(clv__pool_take(devices, CLV__NO_ID, size_bytes == 0 ? 1 : size_bytes, &slot->staging, error));
  }
  padded->data = slot->staging.host;
  return CLV_OK;
}

clv_status clv__slot_copy_in(clv__request *request, uint32_t device_index, clv_stream *stream, clv__slot *to,
                             const clv_tensor *from, clv_error *error) {
  const clv__device *device = clv__request_device(request, device_index);
  clv_tensor bytes = *from;
  size_t size_bytes;
  if (is_longer(request->prepared, to)) {
    CLV__TRY(get_staging(request->prepared, to, &bytes, error));
    clv__bucket_pad(from, &bytes);
  }
  if (!clv__tensor_size_bytes(&bytes, &size_bytes)) return clv__error_memory(error, SIZE_MAX);
  if (size_bytes == 0) return CLV_OK;
  clv_binding target = clv__prepared_binding(request->prepared, to);
  clv__error_clear(error);
  return device->backend->copy_in(device->handle, stream, target.buffer, target.offset_bytes, bytes.data, size_bytes, error);
}

clv_status clv__slot_copy_out(clv__request *request, uint32_t device_index, clv_stream *stream, const clv_tensor *to,
                              clv__slot *from, bool *is_uncut, clv_error *error) {
  const clv__device *device = clv__request_device(request, device_index);
  clv_tensor bytes = *to;
  size_t size_bytes;
  *is_uncut = is_longer(request->prepared, from) && !clv__bucket_is_prefix(to, &request->prepared->placed[from->value]);
  if (*is_uncut) CLV__TRY(get_staging(request->prepared, from, &bytes, error));
  if (!clv__tensor_size_bytes(&bytes, &size_bytes)) return clv__error_memory(error, SIZE_MAX);
  if (size_bytes == 0) return CLV_OK;
  clv_binding source = clv__prepared_binding(request->prepared, from);
  clv__error_clear(error);
  return device->backend->copy_out(device->handle, stream, bytes.data, source.buffer, source.offset_bytes, size_bytes, error);
}

void clv__slot_cut(const clv__prepared *prepared, const clv__slot *from, const clv_tensor *to) {
  clv_tensor padded = prepared->placed[from->value];
  padded.data = from->staging.host;
  clv__bucket_cut(&padded, to);
}
