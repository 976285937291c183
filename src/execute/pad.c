/* Copies values between their slots on devices and host memory. If a slot has its bucket's size, values are padded on the way in
 * and cut on the way out. If a device with fixed shapes shares memory with other devices, its partitions work on padded copies of
 * the values there. */
#include <string.h>

#include "execute/session_own.h"

static bool is_longer(const clv__prepared *prepared, const clv__slot *slot) {
  return slot->is_padded && !clv__same_dims(&prepared->placed[slot->value], &prepared->types[slot->value]);
}

/* Allocates host memory for the slot's value at its bucket's size. */
static clv_status get_staging(clv__prepared *prepared, clv__slot *slot, clv_tensor *padded, clv_error *error) {
  size_t size_bytes;
  *padded = prepared->placed[slot->value];
  if (!clv__tensor_size_bytes(padded, &size_bytes)) return clv__error_memory(error, SIZE_MAX);
  clv_devices *devices = prepared->request->session->devices;
  if (slot->staging.generation == 0 || slot->staging.size_bytes < size_bytes) {
    clv__memory_pool_free(devices, &slot->staging);
    CLV__TRY(clv__memory_pool_allocate(devices, CLV__NO_ID, size_bytes == 0 ? 1 : size_bytes, &slot->staging, error));
  }
  padded->data = slot->staging.host;
  return CLV_OK;
}

/* Copies the model's bytes once, because a device that is removed may read them even after the model is gone. */
static clv_status keep_constant(clv__prepared *prepared, clv__slot *to, clv_tensor *bytes, clv_error *error) {
  size_t size_bytes;
  const void *data = bytes->data;
  bool is_kept = to->staging.generation != 0;
  CLV__TRY(get_staging(prepared, to, bytes, error));
  if (!is_kept && clv__tensor_size_bytes(bytes, &size_bytes) && size_bytes > 0) memcpy(bytes->data, data, size_bytes);
  return CLV_OK;
}

clv_status clv__slot_copy_in(clv__request *request, uint32_t device_index, clv_stream *stream, clv__slot *to,
                             const clv_tensor *from, bool is_constant, clv_error *error) {
  const clv__device *device = clv__request_device(request, device_index);
  clv_tensor bytes = *from;
  size_t size_bytes;
  if (is_longer(request->prepared, to)) {
    CLV__TRY(get_staging(request->prepared, to, &bytes, error));
    clv__bucket_pad(from, &bytes);
  } else if (is_constant && clv__request_is_careful(request)) {
    CLV__TRY(keep_constant(request->prepared, to, &bytes, error));
  }
  if (!clv__tensor_size_bytes(&bytes, &size_bytes)) return clv__error_memory(error, SIZE_MAX);
  if (size_bytes == 0) return CLV_OK;
  clv_binding target = clv__prepared_binding(request->prepared, to);
  return CLV__CALL(device, error, copy_in, stream, target.buffer, target.offset_bytes, bytes.data, size_bytes);
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
  return CLV__CALL(device, error, copy_out, stream, bytes.data, source.buffer, source.offset_bytes, size_bytes);
}

void clv__slot_cut(const clv__prepared *prepared, const clv__slot *from, const clv_tensor *to) {
  clv_tensor padded = prepared->placed[from->value];
  padded.data = from->staging.host;
  clv__bucket_cut(&padded, to);
}

/* ---- A partition's own copies ---- */

typedef struct staging {
  clv__request *request;
  uint32_t device_index;
  const clv__device *device;
  clv_stream *stream;
} staging;

static clv_status begin(const clv__partition_state *state, staging *s, clv_error *error) {
  s->request = state->prepared->request;
  s->device_index = clv__request_plan(s->request)->partitions[state->index].device;
  s->device = clv__request_device(s->request, s->device_index);
  return clv__request_stream(s->request, 2 * s->device_index, &s->stream, error);
}

/* Allocates room for the value at its bucket's size. If the device does not work in host memory, the host's block also has room
 * for the value at its exact size, behind the padded one. */
static clv_status make_room(const staging *s, clv__staged *staged, const clv_tensor *padded, const clv_tensor *exact,
                            size_t *exact_offset, clv_error *error) {
  clv_devices *devices = s->request->session->devices;
  bool is_host = s->device->space == CLV__SPACE_HOST;
  size_t size_bytes, exact_bytes, total;
  if (!clv__tensor_size_bytes(padded, &size_bytes) || !clv__tensor_size_bytes(exact, &exact_bytes)) {
    return clv__error_memory(error, SIZE_MAX);
  }
  size_bytes = *exact_offset = clv__align_up(size_bytes == 0 ? 1 : size_bytes, CLV__ALIGNMENT);
  if (__builtin_add_overflow(size_bytes, is_host ? 0 : exact_bytes, &total)) return clv__error_memory(error, SIZE_MAX);
  if (staged->host.size_bytes < total) {
    clv__memory_pool_free(devices, &staged->host);
    CLV__TRY(clv__memory_pool_allocate(devices, CLV__NO_ID, total, &staged->host, error));
  }
  if (is_host || staged->device.size_bytes >= size_bytes) return CLV_OK;
  clv__memory_pool_free(devices, &staged->device);
  return clv__request_blame(s->request, s->device_index,
                            clv__memory_pool_allocate(devices, s->device_index, size_bytes, &staged->device, error));
}

/* Binds the partition's padded copy instead of the exact value in `binding`. For an input, also fills the copy. */
static clv_status stage(const staging *s, clv__staged *staged, const clv_tensor *padded, bool is_input, clv_binding *binding,
                        clv_error *error) {
  clv_binding from = *binding;
  clv_tensor exact = from.type;
  size_t exact_offset, exact_bytes, size_bytes;
  CLV__TRY(make_room(s, staged, padded, &exact, &exact_offset, error));
  staged->is_used = true;
  *binding = (clv_binding){.type = *padded};
  binding->type.data = NULL;
  if (s->device->space == CLV__SPACE_HOST)
    binding->type.data = staged->host.host;
  else
    binding->buffer = staged->device.buffer;
  if (!is_input) return CLV_OK;
  clv_tensor longer = *padded;
  longer.data = staged->host.host;
  if (s->device->space == CLV__SPACE_HOST) {
    clv__bucket_pad(&exact, &longer);
    return CLV_OK;
  }
  exact.data = (char *)staged->host.host + exact_offset;
  if (!clv__tensor_size_bytes(&exact, &exact_bytes) || !clv__tensor_size_bytes(padded, &size_bytes)) {
    return clv__error_memory(error, SIZE_MAX);
  }
  if (exact_bytes > 0) {
    CLV__TRY(CLV__CALL(s->device, error, copy_out, s->stream, exact.data, from.buffer, from.offset_bytes, exact_bytes));
    CLV__TRY(clv__request_synchronize(s->request, 2 * s->device_index, error));
  }
  clv__bucket_pad(&exact, &longer);
  return CLV__CALL(s->device, error, copy_in, s->stream, binding->buffer, 0, longer.data, size_bytes);
}

clv_status clv__stage_bindings(clv__partition_state *state, clv_error *error) {
  const clv__prepared *prepared = state->prepared;
  const clv__partition *partition = &clv__request_plan(prepared->request)->partitions[state->index];
  const clv_graph_view *view = partition->view;
  staging s;
  CLV__TRY(begin(state, &s, error));
  for (uint32_t i = 0; i < view->input_count + view->output_count; ++i) {
    bool is_input = i < view->input_count;
    uint32_t k = is_input ? i : i - view->input_count;
    clv_value_id value = view->values[is_input ? view->inputs[k] : view->outputs[k]];
    clv_binding *binding = is_input ? &state->inputs[k] : &state->outputs[k];
    state->staged[i].is_used = false;
    if (clv__same_dims(&binding->type, &prepared->placed[value])) continue;
    clv_status status = stage(&s, &state->staged[i], &prepared->placed[value], is_input, binding, error);
    if (status == CLV_OK) continue;
    clv__request_blame(s.request, s.device_index, status);
    return clv__error_prefix(error, status, "'%s' for %s", clv__request_plan(s.request)->graph->values[value].name,
                             s.device->name);
  }
  return CLV_OK;
}

bool clv__stage_is_uncut(const clv__partition_state *state) {
  const clv_graph_view *view = clv__request_plan(state->prepared->request)->partitions[state->index].view;
  for (uint32_t i = 0; state->staged != NULL && i < view->output_count; ++i) {
    if (state->staged[view->input_count + i].is_used) return true;
  }
  return false;
}

static clv_status cut_staged(const staging *s, const clv__staged *staged, const clv_tensor *padded, const clv_binding *to,
                             clv_error *error) {
  clv_tensor longer = *padded, exact = to->type;
  size_t size_bytes, exact_bytes;
  longer.data = staged->host.host;
  if (s->device->space == CLV__SPACE_HOST) {
    clv__bucket_cut(&longer, &exact);
    return CLV_OK;
  }
  if (!clv__tensor_size_bytes(&longer, &size_bytes) || !clv__tensor_size_bytes(&exact, &exact_bytes)) {
    return clv__error_memory(error, SIZE_MAX);
  }
  if (exact_bytes == 0) return CLV_OK;
  exact.data = (char *)staged->host.host + clv__align_up(size_bytes, CLV__ALIGNMENT);
  CLV__TRY(CLV__CALL(s->device, error, copy_out, s->stream, longer.data, staged->device.buffer, 0, size_bytes));
  CLV__TRY(clv__request_synchronize(s->request, 2 * s->device_index, error));
  clv__bucket_cut(&longer, &exact);
  CLV__TRY(CLV__CALL(s->device, error, copy_in, s->stream, to->buffer, to->offset_bytes, exact.data, exact_bytes));
  return clv__request_synchronize(s->request, 2 * s->device_index, error); /* steps on other streams may read the output */
}

clv_status clv__stage_finish(clv__partition_state *state, clv_error *error) {
  const clv__prepared *prepared = state->prepared;
  const clv__partition *partition = &clv__request_plan(prepared->request)->partitions[state->index];
  const clv_graph_view *view = partition->view;
  if (!clv__stage_is_uncut(state)) return CLV_OK;
  staging s;
  CLV__TRY(begin(state, &s, error));
  for (uint32_t i = 0; i < view->output_count; ++i) {
    clv_value_id value = view->values[view->outputs[i]];
    const clv__staged *staged = &state->staged[view->input_count + i];
    if (!staged->is_used) continue;
    clv_binding to = clv__prepared_binding(prepared, clv__prepared_slot(prepared, value, s.device->space));
    clv_status status = cut_staged(&s, staged, &prepared->placed[value], &to, error);
    if (status == CLV_OK) continue;
    clv__request_blame(s.request, s.device_index, status);
    return clv__error_prefix(error, status, "'%s' of %s", clv__request_plan(s.request)->graph->values[value].name,
                             s.device->name);
  }
  return CLV_OK;
}

void clv__stage_release(clv__partition_state *state) {
  const clv__request *request = state->prepared->request;
  const clv_graph_view *view = clv__request_plan(request)->partitions[state->index].view;
  for (uint32_t i = 0; state->staged != NULL && i < view->input_count + view->output_count; ++i) {
    clv__memory_pool_free(request->session->devices, &state->staged[i].host);
    clv__memory_pool_free(request->session->devices, &state->staged[i].device);
  }
}
