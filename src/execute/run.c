/* One run: bind the caller's tensors, walk the steps in order, hand the outputs over. Devices take turns: before a step on
 * another device begins, the one before it has finished. */
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
  clv_status status = device->backend->stream_synchronize(device->handle, session->streams[device_index], error);
  return status == CLV_OK ? status : clv__error_prefix(error, status, "%s", device->name);
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
  session->types[value] = *type;
  session->types[value].data = NULL;
  bool fits = (slot->size_known && size_bytes <= slot->size_bytes);
  if (!fits) CLV__TRY(clv__session_grow_slot(session, slot, size_bytes, error));
  *binding = clv__session_binding(session, slot);
  return CLV_OK;
}

static bool same_dims(const clv_tensor *a, const clv_tensor *b) {
  return a->dtype == b->dtype && a->rank == b->rank &&
         (a->rank <= 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

/* An instance for the shapes that the partition's inputs have now. */
static clv_status fit_instance(clv_session *session, uint32_t index, clv_error *error) {
  clv__partition_state *state = &session->partitions[index];
  const clv_graph_view *view = session->plan->partitions[index].view;
  bool fits = state->instance != NULL;
  for (uint32_t i = 0; i < view->input_count && fits; ++i) {
    fits = same_dims(&state->instance_inputs[i], &session->types[view->values[view->inputs[i]]]);
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
  clv_status status =
      device->backend->execute(device->handle, state->instance, session->streams[partition->device], &args, error);
  if (status == CLV_OK && sized_by_data) status = clv__session_wait(session, partition->device, error);
  return status == CLV_OK ? status : clv__error_prefix(error, status, "partition %u on %s", index, device->name);
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
  clv_binding source = clv__session_binding(session, from), target = clv__session_binding(session, to);
  clv_stream *stream = session->streams[transfer->device];
  clv_status status;
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

static clv_status check_input(const clv_session *session, uint32_t index, const clv_tensor *input, clv_error *error) {
  const clv_graph *graph = session->plan->graph;
  clv_value_id id = graph->inputs[index];
  const clv_tensor *planned = &session->plan->shapes->types[id];
  if (input->dtype == CLV_DTYPE_NONE) {
    if (graph->values[id].type.data != NULL) return CLV_OK;
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "input '%s' is missing and has no default", graph->values[id].name);
  }
  bool fits = input->rank >= 0 && input->rank <= CLV_MAX_RANK && (planned->rank < 0 || input->rank == planned->rank);
  fits = fits && (planned->dtype == CLV_DTYPE_NONE || planned->dtype == input->dtype);
  for (int32_t i = 0; fits && i < input->rank; ++i) {
    fits = input->dims[i] >= 0 && (planned->rank < 0 || planned->dims[i] < 0 || planned->dims[i] == input->dims[i]);
  }
  size_t count;
  if (fits && clv__tensor_count(input, &count) && (count == 0 || input->data != NULL)) return CLV_OK;
  char is[160], should[160];
  clv__tensor_text(input, is, sizeof is);
  clv__tensor_text(planned, should, sizeof should);
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "input '%s' is %s%s, the plan was made for %s", graph->values[id].name, is,
                        fits ? " without data" : "", should);
}

static clv_status bind_inputs(clv_session *session, const clv_tensor *inputs, uint32_t input_count, clv_error *error) {
  const clv_graph *graph = session->plan->graph;
  if (input_count != graph->input_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the model has %u inputs, %u were given", graph->input_count, input_count);
  }
  bool same = session->is_prepared;
  for (uint32_t i = 0; i < input_count; ++i) {
    CLV__TRY(check_input(session, i, &inputs[i], error));
    if (inputs[i].dtype != CLV_DTYPE_NONE) same = same && same_dims(&inputs[i], &session->types[graph->inputs[i]]);
  }
  if (!same) CLV__TRY(clv__session_prepare(session, inputs, error));
  for (uint32_t i = 0; i < input_count; ++i) {
    clv_value_id id = graph->inputs[i];
    const clv_tensor *given = inputs[i].dtype != CLV_DTYPE_NONE ? &inputs[i] : &graph->values[id].type;
    session->types[id] = *given;
    session->types[id].data = NULL;
    clv__slot *slot = clv__session_slot(session, id, CLV__SPACE_HOST);
    if (slot != NULL) slot->bound = given->data;
  }
  return CLV_OK;
}

static clv_value_id output_value(const clv_session *session, uint32_t index) {
  const clv_graph *graph = session->plan->graph;
  return index < graph->output_count ? graph->outputs[index] : session->plan->kept[index - graph->output_count];
}

/* A caller's memory is written in place where the value's size is known before the run. */
static clv_status bind_outputs(clv_session *session, const clv_tensor *outputs, uint32_t output_count, clv_error *error) {
  uint32_t all = session->plan->graph->output_count + session->plan->kept_count;
  if (output_count != all) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the plan has %u outputs, room for %u was given", all, output_count);
  }
  for (uint32_t i = 0; i < output_count; ++i) {
    clv__slot *slot = clv__session_slot(session, output_value(session, i), CLV__SPACE_HOST);
    if (slot != NULL && !slot->is_external) slot->bound = NULL;
  }
  for (uint32_t i = 0; i < output_count; ++i) {
    clv_value_id value = output_value(session, i);
    clv__slot *slot = clv__session_slot(session, value, CLV__SPACE_HOST);
    const clv_tensor *type = &session->types[value];
    if (outputs[i].data == NULL) continue;
    if (clv__tensor_is_static(type) && !same_dims(type, &outputs[i])) {
      char is[160], should[160];
      clv__tensor_text(&outputs[i], is, sizeof is);
      clv__tensor_text(type, should, sizeof should);
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "output '%s' is %s, room was given for %s",
                            session->plan->graph->values[value].name, should, is);
    }
    if (slot != NULL && !slot->is_external && slot->size_known && slot->bound == NULL) slot->bound = outputs[i].data;
  }
  return CLV_OK;
}

/* Where an output's bytes are after the run. */
static const void *output_data(clv_session *session, clv_value_id value) {
  const void *constant = session->plan->shapes->types[value].data;
  if (constant != NULL) return constant;
  const clv__slot *slot = clv__session_slot(session, value, CLV__SPACE_HOST);
  return slot == NULL ? NULL : clv__session_binding(session, slot).type.data;
}

static clv_status hand_over(clv_session *session, const clv_tensor *inputs, clv_tensor *outputs, uint32_t output_count,
                            clv_error *error) {
  const clv_graph *graph = session->plan->graph;
  for (uint32_t i = 0; i < output_count; ++i) {
    clv_value_id value = output_value(session, i);
    const void *data = output_data(session, value);
    for (uint32_t k = 0; k < graph->input_count && graph->values[value].is_input; ++k) {
      if (graph->inputs[k] != value) continue; /* an input that is an output: nothing may have made a slot for it */
      data = inputs[k].dtype != CLV_DTYPE_NONE ? inputs[k].data : graph->values[value].type.data;
    }
    clv_tensor type = session->types[value];
    type.data = (void *)data;
    size_t size_bytes;
    if (!clv__tensor_size_bytes(&type, &size_bytes)) {
      return clv__error_set(error, CLV_INTERNAL_ERROR, "output '%s' has no shape after the run", graph->values[value].name);
    }
    if (outputs[i].data == NULL) {
      outputs[i] = type;
      continue;
    }
    if (!same_dims(&outputs[i], &type)) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "output '%s' came out in another shape than room was given for",
                            graph->values[value].name);
    }
    if (size_bytes > 0 && outputs[i].data != data) memcpy(outputs[i].data, data, size_bytes);
  }
  return CLV_OK;
}

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
  CLV__TRY(bind_inputs(session, inputs, input_count, error));
  CLV__TRY(bind_outputs(session, outputs, output_count, error));
  uint32_t last_device = CLV__NO_ID;
  clv_status status = walk_steps(session, &last_device, error);
  if (last_device != CLV__NO_ID) { /* after a failure too: nothing may run on in the caller's memory */
    clv_status waited = clv__session_wait(session, last_device, status == CLV_OK ? error : NULL);
    if (status == CLV_OK) status = waited;
  }
  return status == CLV_OK ? hand_over(session, inputs, outputs, output_count, error) : status;
}
