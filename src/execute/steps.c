/* One step of a run: executes a partition or copies a value, enqueued on its lane's stream. */
#include <string.h>

#include "execute/session_own.h"

/* ---- Failures ---- */

static clv_status partitions_failed(const clv__request *request, uint32_t first, uint32_t last, clv_status status,
                                    clv_error *error) {
  const clv_plan *plan = clv__request_plan(request);
  const clv__partition *from = &plan->partitions[first], *to = &plan->partitions[last];
  const clv__node *begin = &plan->graph->nodes[from->nodes[0]], *end = &plan->graph->nodes[to->nodes[to->node_count - 1]];
  const char *device = clv__request_device(request, to->device)->name;
  bool is_named = error != NULL && strstr(error->message, "node '") != NULL; /* the backend has named the node already */
  if (!is_named && begin == end) clv__error_prefix(error, status, "node '%.40s' (%s)", begin->name, begin->op);
  if (!is_named && begin != end) {
    clv__error_prefix(error, status, "nodes '%.40s' (%s) to '%.40s' (%s)", begin->name, begin->op, end->name, end->op);
  }
  if (first == last) return clv__error_prefix(error, status, "partition %u on %s", first, device);
  return clv__error_prefix(error, status, "partitions %u to %u on %s", first, last, device);
}

clv_status clv__partition_failed(const clv__request *request, uint32_t index, clv_status status, clv_error *error) {
  return partitions_failed(request, index, index, status, error);
}

static clv_status transfer_failed(const clv__request *request, const clv__transfer *transfer, clv_status status,
                                  clv_error *error) {
  return clv__error_prefix(
      error, status, "transfer of '%s' %s %s", clv__request_plan(request)->graph->values[transfer->value].name,
      transfer->from == CLV__SPACE_HOST ? "to" : "from", clv__request_device(request, transfer->device)->name);
}

clv_status clv__request_steps_failed(const clv__request *request, const uint32_t *steps, uint32_t count, clv_status status,
                                     clv_error *error) {
  const clv_plan *plan = clv__request_plan(request);
  const clv__step *last = &plan->steps[steps[count - 1]], *first = last;
  for (uint32_t i = count; i-- > 0;) {
    if (!plan->steps[steps[i]].is_transfer) first = &plan->steps[steps[i]];
  }
  if (!last->is_transfer) return partitions_failed(request, first->index, last->index, status, error);
  const clv__transfer *transfer = &plan->transfers[last->index];
  if (count == 1) return transfer_failed(request, transfer, status, error);
  return clv__error_prefix(error, status, "copies to and from %s", clv__request_device(request, transfer->device)->name);
}

clv_status clv__request_step_failed(const clv__request *request, uint32_t step, clv_status status, clv_error *error) {
  return clv__request_steps_failed(request, &step, 1, status, error);
}

/* Returns the name of the backend call that gives a step's work to its device, for messages. */
static const char *call_of(const clv__request *request, uint32_t index) {
  const clv_plan *plan = clv__request_plan(request);
  const clv__step *step = &plan->steps[index];
  if (step->is_transfer) return plan->transfers[step->index].from == CLV__SPACE_HOST ? "copy_in" : "copy_out";
  clv__issue issue = request->prepared->partitions[step->index].issue;
  return issue == CLV__ISSUE_CAPTURED || issue == CLV__ISSUE_REPLAYED ? "capture->launch" : "execute";
}

clv_status clv__request_steps_failed_later(const clv__request *request, const uint32_t *steps, uint32_t count, clv_status status,
                                           clv_error *error) {
  clv__error_prefix(error, status, "%s", call_of(request, steps[count - 1]));
  return clv__request_steps_failed(request, steps, count, status, error);
}

clv_status clv__request_synchronize(clv__request *request, uint32_t lane, clv_error *error) {
  uint32_t d = clv__lane_device(lane), first = request->pending_first, last = request->pending_last;
  const clv__device *device = clv__request_device(request, d);
  if (request->streams[lane] == NULL) return CLV_OK;
  clv_status status = clv__device_check(device, error);
  if (status == CLV_OK) status = clv__request_await(request, lane, error);
  if (status == CLV_OK) status = CLV__CALL(device, error, stream_synchronize, request->streams[lane]);
  if (status == CLV_OK) return status;
  clv__request_blame(request, d, status);
  if (lane % 2 == 1) return clv__error_prefix(error, status, "copies to and from %s", device->name);
  if (first == CLV__NO_ID) return clv__error_prefix(error, status, "%s", device->name);
  return partitions_failed(request, first, last, status, error);
}

/* ---- Partitions ---- */

static clv_status get_room(clv__partition_state *state, uint32_t index, const clv_tensor *type, clv_binding *binding,
                           clv_error *error) {
  clv__prepared *prepared = state->prepared;
  const clv_plan *plan = clv__request_plan(prepared->request);
  const clv__partition *partition = &plan->partitions[state->index];
  clv_value_id value = partition->view->values[partition->view->outputs[index]];
  clv__slot *slot = clv__prepared_slot(prepared, value, plan->devices->items[partition->device].space);
  size_t size_bytes;
  /* Memory for the bucket's size is bound already. */
  if (partition->is_bucketed && clv__same_dims(type, &prepared->placed[value])) {
    *binding = state->outputs[index];
    return CLV_OK;
  }
  if (slot == NULL || !clv__tensor_size_bytes(type, &size_bytes)) {
    return clv__error_set(error, CLV_INTERNAL_ERROR,
                          "the device requested memory for an output without giving the output's shape");
  }
  /* The shape differs from that in the plan, so the caller's memory does not have the right size. */
  if (slot->size_known && !clv__same_dims(&prepared->types[value], type)) slot->bound = NULL;
  prepared->types[value] = *type;
  prepared->types[value].data = NULL;
  bool fits = slot->size_known && size_bytes <= slot->size_bytes;
  if (!fits) CLV__TRY(clv__prepared_grow_slot(prepared, slot, size_bytes, error));
  *binding = clv__prepared_binding(prepared, slot);
  return CLV_OK;
}

/* May be called from any thread, and by a device that was removed even long after the run. */
static clv_status allocate_output(void *cookie, uint32_t index, const clv_tensor *type, clv_binding *binding, clv_error *error) {
  clv__partition_state *state = cookie;
  clv__request *request = state->prepared->request;
  atomic_fetch_add(&request->callers, 1);
  clv_status status = CLV_OK;
  if (atomic_load(&request->refuses_callbacks)) {
    status = clv__error_set(error, CLV_DEVICE_ERROR, "the run has ended");
  } else {
    const clv__device *device = clv__request_device(request, clv__request_plan(request)->partitions[state->index].device);
    status = clv__device_check(device, error);
    if (status == CLV_OK) status = get_room(state, index, type, binding, error);
    if (status == CLV_OK) status = clv__device_check(device, error); /* a device removed in the meantime gets no new memory */
  }
  atomic_fetch_sub(&request->callers, 1);
  return status;
}

clv_status clv__request_bind(clv__request *request, uint32_t index, clv_error *error) {
  clv__prepared *prepared = request->prepared;
  const clv__partition *partition = &clv__request_plan(request)->partitions[index];
  const clv_graph_view *view = partition->view;
  uint32_t space = clv__request_device(request, partition->device)->space;
  clv__partition_state *state = &prepared->partitions[index];
  CLV__TRY(clv__instance_fit(state, error));
  for (uint32_t i = 0; i < view->input_count; ++i) {
    state->inputs[i] = clv__prepared_operand(prepared, view->values[view->inputs[i]], space);
  }
  for (uint32_t i = 0; i < view->output_count; ++i) {
    clv_value_id value = view->values[view->outputs[i]];
    const clv__slot *slot = clv__prepared_slot(prepared, value, space);
    state->outputs[i] = clv__prepared_binding(prepared, slot);
    if (slot->size_known) continue;
    prepared->types[value].rank = CLV_RANK_UNKNOWN; /* the type of the last run does not apply to this run */
    state->outputs[i] = (clv_binding){.type = {.dtype = prepared->types[value].dtype, .rank = CLV_RANK_UNKNOWN}};
  }
  return state->staged != NULL ? clv__stage_bindings(state, error) : CLV_OK;
}

clv_execute_args clv__request_args(clv__request *request, uint32_t index) {
  const clv_graph_view *view = clv__request_plan(request)->partitions[index].view;
  clv__partition_state *state = &request->prepared->partitions[index];
  return (clv_execute_args){
      .struct_size = sizeof(clv_execute_args),
      .input_count = view->input_count,
      .output_count = view->output_count,
      .inputs = state->inputs,
      .outputs = state->outputs,
      .cookie = state,
      .allocate_output = allocate_output,
  };
}

static clv_status issue_partition(clv__request *request, uint32_t index, clv_error *error) {
  const clv__partition *partition = &clv__request_plan(request)->partitions[index];
  clv_stream *stream;
  CLV__TRY(clv__request_stream(request, 2 * partition->device, &stream, error));
  CLV__TRY(clv__request_bind(request, index, error));
  if (request->pending_first == CLV__NO_ID) request->pending_first = index;
  request->pending_last = index;
  clv__error_clear(error);
  return clv__request_blame(request, partition->device, clv__capture_execute(request, index, stream, error));
}

clv_status clv__request_partition(clv__request *request, uint32_t index, clv_error *error) {
  clv_status status = issue_partition(request, index, error);
  return status == CLV_OK ? status : clv__partition_failed(request, index, status, error);
}

/* ---- Transfers ---- */

static clv_status copy(clv__request *request, const clv__transfer *transfer, uint32_t lane, clv__slot *from, clv__slot *to,
                       bool *is_uncut, clv_error *error) {
  clv__prepared *prepared = request->prepared;
  clv_stream *stream;
  CLV__TRY(clv__request_stream(request, lane, &stream, error));
  clv_tensor host = prepared->types[transfer->value];
  if (transfer->from != CLV__SPACE_HOST) {
    host.data = clv__prepared_binding(prepared, to).type.data;
    return clv__slot_copy_out(request, transfer->device, stream, &host, from, is_uncut, error);
  }
  bool is_weight = transfer->boundary == CLV__BOUNDARY_WEIGHT;
  host.data = is_weight ? clv__request_plan(request)->shapes->types[transfer->value].data
                        : clv__prepared_binding(prepared, from).type.data;
  return clv__slot_copy_in(request, transfer->device, stream, to, &host, is_weight, error);
}

static clv_status transfer_value(clv__request *request, const clv__transfer *transfer, uint32_t lane, bool *is_uncut,
                                 clv_error *error) {
  clv__prepared *prepared = request->prepared;
  clv__slot *from = clv__prepared_slot(prepared, transfer->value, transfer->from);
  clv__slot *to = clv__prepared_slot(prepared, transfer->value, transfer->to);
  size_t size_bytes;
  if (!clv__tensor_size_bytes(&prepared->types[transfer->value], &size_bytes)) {
    return clv__error_set(error, CLV_INTERNAL_ERROR, "the shape of the value is not known yet");
  }
  if (!to->size_known && to->bound == NULL) CLV__TRY(clv__prepared_grow_slot(prepared, to, size_bytes, error));
  return clv__request_blame(request, transfer->device, copy(request, transfer, lane, from, to, is_uncut, error));
}

static void cut_transfer(clv__request *request, const clv__transfer *transfer) {
  const clv__prepared *prepared = request->prepared;
  clv_tensor host = prepared->types[transfer->value];
  host.data = clv__prepared_binding(prepared, clv__prepared_slot(prepared, transfer->value, transfer->to)).type.data;
  clv__slot_cut(prepared, clv__prepared_slot(prepared, transfer->value, transfer->from), &host);
}

/* ---- Steps ---- */

clv_status clv__request_step(clv__request *request, uint32_t index, uint32_t lane, bool *is_uncut, clv_error *error) {
  const clv__step *step = &clv__request_plan(request)->steps[index];
  *is_uncut = false;
  if (step->is_transfer) {
    const clv__transfer *transfer = &clv__request_plan(request)->transfers[step->index];
    clv_status status = transfer_value(request, transfer, lane, is_uncut, error);
    return status == CLV_OK ? status : transfer_failed(request, transfer, status, error);
  }
  CLV__TRY(clv__request_partition(request, step->index, error));
  *is_uncut = clv__stage_is_uncut(&request->prepared->partitions[step->index]);
  return CLV_OK;
}

clv_status clv__request_finish_step(clv__request *request, uint32_t index, clv_error *error) {
  const clv__step *step = &clv__request_plan(request)->steps[index];
  if (step->is_transfer) {
    cut_transfer(request, &clv__request_plan(request)->transfers[step->index]);
    return CLV_OK;
  }
  clv_status status = clv__stage_finish(&request->prepared->partitions[step->index], error);
  return status == CLV_OK ? status : clv__partition_failed(request, step->index, status, error);
}
