/* The caller's tensors. Checks and binds inputs, and lets devices write outputs directly into the caller's memory if that is
 * safe. Copies the other outputs there after the run. Devices access host memory only if it is aligned to the size of its
 * elements. */
#include <string.h>

#include "execute/session_own.h"

static clv_value_id output_value(const clv_plan *plan, uint32_t index) {
  return index < plan->graph->output_count ? plan->graph->outputs[index] : plan->kept[index - plan->graph->output_count];
}

/* ---- Inputs ---- */

static clv_status check_input(const clv_plan *plan, uint32_t index, const clv_tensor *input, bool has_data, clv_error *error) {
  const clv_graph *graph = plan->graph;
  clv_value_id id = graph->inputs[index];
  const clv_tensor *planned = &plan->shapes->types[id];
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
  if (fits && clv__tensor_count(input, &count) && (!has_data || count == 0 || input->data != NULL)) return CLV_OK;
  char is[160], should[160];
  clv__tensor_text(input, is, sizeof is);
  clv__graph_type_text(graph, planned, should, sizeof should);
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "input '%s' is %s%s, but the plan was made for %s", graph->values[id].name,
                        is, fits ? " without data" : "", should);
}

static clv_status bind_input(clv__request *request, uint32_t index, const clv_tensor *given, clv_error *error) {
  clv__prepared *prepared = request->prepared;
  const clv_graph *graph = clv__request_plan(request)->graph;
  clv_value_id id = graph->inputs[index];
  bool is_default = given->dtype == CLV_DTYPE_NONE;
  prepared->types[id] = is_default ? graph->values[id].type : *given;
  prepared->types[id].data = NULL;
  clv__slot *slot = clv__prepared_slot(prepared, id, CLV__SPACE_HOST);
  if (slot == NULL) return CLV_OK;
  slot->bound = is_default ? (void *)request->engine->defaults[index] : given->data;
  size_t size_bytes;
  bool in_place = clv__is_aligned(slot->bound, prepared->types[id].dtype) && !clv__request_is_careful(request);
  if (in_place || !clv__tensor_size_bytes(&prepared->types[id], &size_bytes)) return CLV_OK;
  CLV__TRY(clv__prepared_grow_slot(prepared, slot, size_bytes, error));
  if (size_bytes > 0) memcpy(slot->own.host, slot->bound, size_bytes);
  slot->bound = NULL;
  return CLV_OK;
}

clv_status clv__inputs_check(const clv_plan *plan, const clv_tensor *inputs, uint32_t input_count, bool has_data,
                             clv_error *error) {
  if (input_count != plan->graph->input_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the model has %u input%s, not %u", plan->graph->input_count,
                          CLV__S(plan->graph->input_count), input_count);
  }
  for (uint32_t i = 0; i < input_count; ++i) CLV__TRY(check_input(plan, i, &inputs[i], has_data, error));
  return CLV_OK;
}

clv_status clv__request_bind_inputs(clv__request *request, const clv_tensor *inputs, uint32_t input_count, clv_error *error) {
  CLV__TRY(clv__inputs_check(clv__request_plan(request), inputs, input_count, true, error));
  CLV__TRY(clv__request_prepare(request, inputs, error));
  for (uint32_t i = 0; i < input_count; ++i) CLV__TRY(bind_input(request, i, &inputs[i], error));
  return CLV_OK;
}

/* ---- Outputs ---- */

/* Returns whether the memory overlaps an input. A run may read its inputs until it ends, so an output in this memory cannot be
 * written in place. */
static bool overlaps_input(const clv__order *order, const void *data, size_t size_bytes) {
  const char *from = data;
  for (uint32_t i = 0; i < order->input_count; ++i) {
    size_t input_bytes;
    const char *input = order->inputs[i].data;
    if (order->inputs[i].dtype == CLV_DTYPE_NONE || input == NULL) continue;
    if (!clv__tensor_size_bytes(&order->inputs[i], &input_bytes)) continue;
    if (from < input + input_bytes && input < from + size_bytes) return true;
  }
  return false;
}

/* Returns the host memory slot of output `index` if it can be bound to the caller's memory for this output. Returns NULL if
 * there is no slot, if the output is also a graph input, or if its size is known only after the run. */
static clv__slot *writable_slot(clv__request *request, uint32_t index) {
  clv_value_id value = output_value(clv__request_plan(request), index);
  clv__slot *slot = clv__prepared_slot(request->prepared, value, CLV__SPACE_HOST);
  return slot != NULL && !slot->is_external && slot->size_known ? slot : NULL;
}

static clv_status check_room(const clv_plan *plan, const clv_tensor *type, const clv_tensor *room, clv_value_id value,
                             const char *when, clv_error *error) {
  if (clv__same_dims(type, room)) return CLV_OK;
  char is[160], given[160];
  clv__tensor_text(type, is, sizeof is);
  clv__tensor_text(room, given, sizeof given);
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "output '%s' %s %s, but the memory given is for %s",
                        plan->graph->values[value].name, when, is, given);
}

/* Asks the caller for memory for an output whose type is known, if the output has none. */
static void ask_for_memory(const clv__order *order, uint32_t index, const clv_tensor *type) {
  clv_tensor *output = &order->outputs[index];
  if (output->data != NULL || order->options.allocate == NULL) return;
  void *data = order->options.allocate(order->options.user_data, index, type);
  if (data == NULL) return;
  *output = *type;
  output->data = data;
}

clv_status clv__request_bind_outputs(clv__request *request, const clv__order *order, clv_error *error) {
  const clv_plan *plan = clv__request_plan(request);
  uint32_t all = plan->graph->output_count + plan->kept_count;
  if (order->output_count != all) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the plan has %u output%s, not %u", all, CLV__S(all), order->output_count);
  }
  for (uint32_t i = 0; i < all; ++i) {
    clv__slot *slot = clv__prepared_slot(request->prepared, output_value(plan, i), CLV__SPACE_HOST);
    if (slot != NULL && !slot->is_external) slot->bound = NULL;
  }
  for (uint32_t i = 0; i < all; ++i) {
    const clv_tensor *output = &order->outputs[i];
    clv_value_id value = output_value(plan, i);
    const clv__slot *host = clv__prepared_slot(request->prepared, value, CLV__SPACE_HOST);
    clv__slot *slot = writable_slot(request, i);
    const clv_tensor *type = &request->prepared->types[value];
    size_t size_bytes;
    if (output->data == NULL && order->options.allocate == NULL && request->session->options.in_flight > 1) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT,
                            "output '%s' has no memory: with several requests in flight, give memory for every output, because "
                            "another run may overwrite the session's own memory",
                            plan->graph->values[value].name);
    }
    if (clv__tensor_is_static(type) && (host == NULL || host->size_known)) ask_for_memory(order, i, type);
    if (output->data == NULL || (host != NULL && !host->size_known)) continue; /* no memory to bind, or `type` is not valid yet */
    if (clv__tensor_is_static(type)) CLV__TRY(check_room(plan, type, output, value, "is", error));
    if (slot == NULL || slot->bound != NULL || !clv__is_aligned(output->data, type->dtype) || clv__request_is_careful(request)) {
      continue;
    }
    if (!clv__tensor_size_bytes(type, &size_bytes) || overlaps_input(order, output->data, size_bytes)) continue;
    slot->bound = output->data;
  }
  /* A value can be several outputs. If the caller gives no memory for one of them, the value stays in the session's memory. */
  for (uint32_t i = 0; i < all; ++i) {
    clv__slot *slot = writable_slot(request, i);
    if (slot != NULL && order->outputs[i].data == NULL) slot->bound = NULL;
  }
  return CLV_OK;
}

/* Returns the location of an output's bytes after the run. */
static const void *output_data(clv__request *request, const clv_tensor *inputs, uint32_t index) {
  const clv_plan *plan = clv__request_plan(request);
  const clv_graph *graph = plan->graph;
  /* If the output is a hosted view of an input, that input may have no slot: so look at the inputs first. */
  clv_value_id value = clv__plan_storage(plan, output_value(plan, index), CLV__SPACE_HOST);
  if (request->engine->constants[index] != NULL) return request->engine->constants[index];
  for (uint32_t k = 0; k < graph->input_count && graph->values[value].is_input; ++k) {
    if (graph->inputs[k] == value) return inputs[k].dtype != CLV_DTYPE_NONE ? inputs[k].data : request->engine->defaults[k];
  }
  const clv__slot *slot = clv__prepared_slot(request->prepared, value, CLV__SPACE_HOST);
  return slot == NULL ? NULL : clv__prepared_binding(request->prepared, slot).type.data;
}

clv_status clv__request_hand_over(clv__request *request, const clv__order *order, clv_error *error) {
  const clv_plan *plan = clv__request_plan(request);
  const clv_tensor *types = request->prepared->types;
  size_t size_bytes;
  for (uint32_t i = 0; i < order->output_count; ++i) { /* checks all outputs before it writes any */
    clv_value_id value = output_value(plan, i);
    if (!clv__tensor_size_bytes(&types[value], &size_bytes)) {
      return clv__error_set(error, CLV_INTERNAL_ERROR, "output '%s' has no shape after the run", plan->graph->values[value].name);
    }
    if (order->outputs[i].data == NULL) continue;
    CLV__TRY(check_room(plan, &types[value], &order->outputs[i], value, "was computed as", error));
  }
  for (uint32_t i = 0; i < order->output_count; ++i) {
    clv_tensor *output = &order->outputs[i];
    const clv_tensor *type = &types[output_value(plan, i)];
    const void *data = output_data(request, order->inputs, i);
    ask_for_memory(order, i, type);
    if (output->data == NULL) {
      *output = *type;
      output->data = (void *)data;
    } else if (clv__tensor_size_bytes(type, &size_bytes) && size_bytes > 0 && output->data != data) {
      memmove(output->data, data, size_bytes);
    }
  }
  return CLV_OK;
}
