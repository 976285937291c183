/* One run: bind the caller's tensors (bind.c), walk the steps in order, hand the outputs over. Devices take turns: before a step
 * on another device begins, the one before it has finished. */
#include <string.h>
#include <time.h>

#include "execute/internal.h"

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

clv_status clv__session_wait(clv_session *session, uint32_t device_index, clv_error *error) {
  const clv__device *device = &session->plan->devices->items[device_index];
  uint32_t first = session->pending_first, last = session->pending_last;
  session->pending_first = CLV__NO_ID;
  clv__error_clear(error);
  clv_status status = device->backend->stream_synchronize(device->handle, session->streams[device_index], error);
  if (status == CLV_OK) return status;
  if (first == CLV__NO_ID) return clv__error_prefix(error, status, "%s", device->name);
  if (first == last) return clv__error_prefix(error, status, "partition %u on %s", first, device->name);
  return clv__error_prefix(error, status, "partitions %u to %u on %s", first, last, device->name);
}

/* ---- Partitions ---- */

static clv_status allocate_output(void *cookie, uint32_t index, const clv_tensor *type, clv_binding *binding, clv_error *error) {
  clv__partition_state *state = cookie;
  clv_session *session = state->session;
  const clv__partition *partition = &session->plan->partitions[state->index];
  clv_value_id value = partition->view->values[partition->view->outputs[index]];
  clv__slot *slot = clv__session_slot(session, value, session->plan->devices->items[partition->device].space);
  size_t size_bytes;
  if (slot == NULL || !clv__tensor_size_bytes(type, &size_bytes)) {
    return clv__error_set(error, CLV_INTERNAL_ERROR, "an output's size is asked for without a shape");
  }
  /* Another shape than was planned: what the caller gave room for is too small or too large. */
  if (slot->size_known && !clv__session_same_dims(&session->types[value], type)) slot->bound = NULL;
  session->types[value] = *type;
  session->types[value].data = NULL;
  bool fits = slot->size_known && size_bytes <= slot->size_bytes;
  if (!fits) CLV__TRY(clv__session_grow_slot(session, slot, size_bytes, error));
  *binding = clv__session_binding(session, slot);
  return CLV_OK;
}

/* An instance for the shapes that the partition's inputs have now. */
static clv_status fit_instance(clv_session *session, uint32_t index, clv_error *error) {
  clv__partition_state *state = &session->partitions[index];
  const clv_graph_view *view = session->plan->partitions[index].view;
  bool fits = state->instance != NULL;
  for (uint32_t i = 0; i < view->input_count && fits; ++i) {
    fits = clv__session_same_dims(&state->instance_inputs[i], &session->types[view->values[view->inputs[i]]]);
  }
  return fits ? CLV_OK : clv__session_make_instance(session, index, error);
}

clv_status clv__session_execute_partition(clv_session *session, uint32_t index, clv_error *error) {
  const clv__partition *partition = &session->plan->partitions[index];
  const clv__device *device = &session->plan->devices->items[partition->device];
  const clv_graph_view *view = partition->view;
  clv__partition_state *state = &session->partitions[index];
  CLV__TRY(fit_instance(session, index, error));
  bool sized_by_data = false;
  for (uint32_t i = 0; i < view->input_count; ++i) {
    state->inputs[i] = clv__session_binding(session, clv__session_slot(session, view->values[view->inputs[i]], device->space));
  }
  for (uint32_t i = 0; i < view->output_count; ++i) {
    clv_value_id value = view->values[view->outputs[i]];
    const clv__slot *slot = clv__session_slot(session, value, device->space);
    state->outputs[i] = clv__session_binding(session, slot);
    if (slot->size_known) continue;
    sized_by_data = true;
    session->types[value].rank = CLV_RANK_UNKNOWN; /* what the last run made is not this run's */
    state->outputs[i] = (clv_binding){.type = {.dtype = session->types[value].dtype, .rank = CLV_RANK_UNKNOWN}};
  }
  clv_execute_args args = {
      .struct_size = sizeof args,
      .input_count = view->input_count,
      .output_count = view->output_count,
      .inputs = state->inputs,
      .outputs = state->outputs,
      .cookie = state,
      .allocate_output = allocate_output,
  };
  if (session->pending_first == CLV__NO_ID) session->pending_first = index;
  session->pending_last = index;
  clv__error_clear(error);
  clv_status status =
      device->backend->execute(device->handle, state->instance, session->streams[partition->device], &args, error);
  if (status != CLV_OK) return clv__error_prefix(error, status, "partition %u on %s", index, device->name);
  return sized_by_data ? clv__session_wait(session, partition->device, error) : CLV_OK;
}

/* ---- Transfers ---- */

static clv_status execute_transfer(clv_session *session, const clv__transfer *transfer, clv_error *error) {
  const clv__device *device = &session->plan->devices->items[transfer->device];
  clv__slot *from = clv__session_slot(session, transfer->value, transfer->from);
  clv__slot *to = clv__session_slot(session, transfer->value, transfer->to);
  size_t size_bytes;
  if (!clv__tensor_size_bytes(&session->types[transfer->value], &size_bytes)) {
    return clv__error_set(error, CLV_INTERNAL_ERROR, "transfer of '%s' before its shape is known",
                          session->plan->graph->values[transfer->value].name);
  }
  if (!to->size_known && to->bound == NULL) CLV__TRY(clv__session_grow_slot(session, to, size_bytes, error));
  if (size_bytes == 0) return CLV_OK;
  clv_binding target = clv__session_binding(session, to);
  clv_binding source = from != NULL ? clv__session_binding(session, from) : (clv_binding){0};
  if (transfer->boundary == CLV__BOUNDARY_WEIGHT) source.type = session->plan->shapes->types[transfer->value];
  clv_stream *stream = session->streams[transfer->device];
  clv_status status;
  clv__error_clear(error);
  if (transfer->to == CLV__SPACE_HOST) {
    status = device->backend->copy_out(device->handle, stream, target.type.data, source.buffer, source.offset_bytes, size_bytes,
                                       error);
  } else {
    status =
        device->backend->copy_in(device->handle, stream, target.buffer, target.offset_bytes, source.type.data, size_bytes, error);
  }
  if (status == CLV_OK) return status;
  return clv__error_prefix(error, status, "transfer of '%s' %s %s", session->plan->graph->values[transfer->value].name,
                           transfer->to == CLV__SPACE_HOST ? "from" : "to", device->name);
}

/* ---- A run ---- */

static clv_status walk_steps(clv_session *session, uint32_t *last_device, clv_error *error) {
  const clv_plan *plan = session->plan;
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const clv__step *step = &plan->steps[s];
    uint32_t device = step->is_transfer ? plan->transfers[step->index].device : plan->partitions[step->index].device;
    if (*last_device != CLV__NO_ID && *last_device != device) CLV__TRY(clv__session_wait(session, *last_device, error));
    *last_device = device;
    uint64_t start = session->time_steps ? now_ns() : 0;
    CLV__TRY(step->is_transfer ? execute_transfer(session, &plan->transfers[step->index], error)
                               : clv__session_execute_partition(session, step->index, error));
    if (!session->time_steps) continue;
    CLV__TRY(clv__session_wait(session, device, error));
    session->step_times_ns[s] = now_ns() - start;
  }
  return CLV_OK;
}

clv_status clv_session_run(clv_session *session, const clv_tensor *inputs, uint32_t input_count, clv_tensor *outputs,
                           uint32_t output_count, clv_error *error) {
  if (session == NULL || (inputs == NULL && input_count > 0) || (outputs == NULL && output_count > 0)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "session, inputs and outputs must not be NULL");
  }
  CLV__TRY(clv__session_bind_inputs(session, inputs, input_count, error));
  CLV__TRY(clv__session_bind_outputs(session, inputs, outputs, output_count, error));
  uint32_t last_device = CLV__NO_ID;
  clv_status status = walk_steps(session, &last_device, error);
  if (last_device != CLV__NO_ID) { /* after a failure too: nothing may run on in the caller's memory */
    clv_status waited = clv__session_wait(session, last_device, status == CLV_OK ? error : NULL);
    if (status == CLV_OK) status = waited;
  }
  return status == CLV_OK ? clv__session_hand_over(session, inputs, outputs, output_count, error) : status;
}
