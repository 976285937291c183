/* The caller's tensors: inputs checked and bound, outputs written in place where that is safe, everything else copied once the
 * run is over. What devices read and write in host memory is aligned to its element. */
#include <string.h>

#include "execute/internal.h"

bool clv__session_same_dims(const clv_tensor *a, const clv_tensor *b) {
  return a->dtype == b->dtype && a->rank == b->rank &&
         (a->rank <= 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

static bool is_aligned(const void *data, clv_dtype dtype) {
  size_t element = clv_dtype_size_bytes(dtype);
  if (element > sizeof(void *)) element = sizeof(void *);
  return element == 0 || (uintptr_t)data % element == 0;
}

static clv_value_id output_value(const clv_session *session, uint32_t index) {
  const clv_graph *graph = session->plan->graph;
  return index < graph->output_count ? graph->outputs[index] : session->plan->kept[index - graph->output_count];
}

/* ---- Constants ---- */

/* The bytes of a constant, or a copy where they lie unaligned in the model's file. */
static clv_status align_constant(clv_session *session, const clv_tensor *constant, const void **data, clv_error *error) {
  size_t size_bytes;
  *data = constant->data;
  if (constant->data == NULL || is_aligned(constant->data, constant->dtype)) return CLV_OK;
  if (!clv__tensor_size_bytes(constant, &size_bytes)) return CLV_OK;
  void *copy = clv__arena_allocate_data(&session->arena, size_bytes);
  if (copy == NULL) return clv__error_memory(error, size_bytes);
  memcpy(copy, constant->data, size_bytes);
  *data = copy;
  return CLV_OK;
}

clv_status clv__session_align_constants(clv_session *session, clv_error *error) {
  const clv_graph *graph = session->plan->graph;
  uint32_t outputs = graph->output_count + session->plan->kept_count;
  session->defaults = clv__arena_allocate_zero(&session->arena, graph->input_count, sizeof *session->defaults);
  session->constants = clv__arena_allocate_zero(&session->arena, outputs, sizeof *session->constants);
  if (session->defaults == NULL || session->constants == NULL) return clv__error_memory(error, outputs * sizeof(void *));
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    CLV__TRY(align_constant(session, &graph->values[graph->inputs[i]].type, &session->defaults[i], error));
  }
  for (uint32_t i = 0; i < outputs; ++i) {
    const clv_tensor *type = &session->plan->shapes->types[output_value(session, i)];
    CLV__TRY(align_constant(session, type, &session->constants[i], error));
  }
  return CLV_OK;
}

/* ---- Inputs ---- */

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

static clv_status bind_input(clv_session *session, uint32_t index, const clv_tensor *given, clv_error *error) {
  const clv_graph *graph = session->plan->graph;
  clv_value_id id = graph->inputs[index];
  bool is_default = given->dtype == CLV_DTYPE_NONE;
  session->types[id] = is_default ? graph->values[id].type : *given;
  session->types[id].data = NULL;
  clv__slot *slot = clv__session_slot(session, id, CLV__SPACE_HOST);
  if (slot == NULL) return CLV_OK;
  slot->bound = is_default ? (void *)session->defaults[index] : given->data;
  size_t size_bytes;
  if (is_aligned(slot->bound, session->types[id].dtype) || !clv__tensor_size_bytes(&session->types[id], &size_bytes))
    return CLV_OK;
  CLV__TRY(clv__session_grow_slot(session, slot, size_bytes, error));
  memcpy(slot->own_host, slot->bound, size_bytes);
  slot->bound = NULL;
  return CLV_OK;
}

clv_status clv__session_bind_inputs(clv_session *session, const clv_tensor *inputs, uint32_t input_count, clv_error *error) {
  const clv_graph *graph = session->plan->graph;
  if (input_count != graph->input_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "the model has %u inputs, %u were given", graph->input_count, input_count);
  }
  bool same = session->is_prepared;
  for (uint32_t i = 0; i < input_count; ++i) {
    CLV__TRY(check_input(session, i, &inputs[i], error));
    if (inputs[i].dtype == CLV_DTYPE_NONE) continue;
    same = same && clv__session_same_dims(&inputs[i], &session->types[graph->inputs[i]]);
  }
  if (!same) CLV__TRY(clv__session_prepare(session, inputs, error));
  for (uint32_t i = 0; i < input_count; ++i) CLV__TRY(bind_input(session, i, &inputs[i], error));
  return CLV_OK;
}

/* ---- Outputs ---- */

/* A run reads inputs until its end: what overlaps one is not written before. */
static bool overlaps_input(const clv_session *session, const clv_tensor *inputs, const void *data, size_t size_bytes) {
  const char *from = data;
  for (uint32_t i = 0; i < session->plan->graph->input_count; ++i) {
    size_t input_bytes;
    const char *input = inputs[i].data;
    if (inputs[i].dtype == CLV_DTYPE_NONE || input == NULL || !clv__tensor_size_bytes(&inputs[i], &input_bytes)) continue;
    if (from < input + input_bytes && input < from + size_bytes) return true;
  }
  return false;
}

/* The slot whose bytes output `index` can be: NULL where there is none, and where its size is only known after the run. */
static clv__slot *writable_slot(clv_session *session, uint32_t index) {
  clv__slot *slot = clv__session_slot(session, output_value(session, index), CLV__SPACE_HOST);
  return slot != NULL && !slot->is_external && slot->size_known ? slot : NULL;
}

clv_status clv__session_bind_outputs(clv_session *session, const clv_tensor *inputs, const clv_tensor *outputs,
                                     uint32_t output_count, clv_error *error) {
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
    const clv__slot *host = clv__session_slot(session, value, CLV__SPACE_HOST);
    clv__slot *slot = writable_slot(session, i);
    const clv_tensor *type = &session->types[value];
    size_t size_bytes;
    if (outputs[i].data == NULL || (host != NULL && !host->size_known)) continue; /* `type` is then the last run's, or unknown */
    if (clv__tensor_is_static(type) && !clv__session_same_dims(type, &outputs[i])) {
      char is[160], should[160];
      clv__tensor_text(&outputs[i], is, sizeof is);
      clv__tensor_text(type, should, sizeof should);
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "output '%s' is %s, room was given for %s",
                            session->plan->graph->values[value].name, should, is);
    }
    if (slot == NULL || slot->bound != NULL || !is_aligned(outputs[i].data, type->dtype)) continue;
    if (!clv__tensor_size_bytes(type, &size_bytes) || overlaps_input(session, inputs, outputs[i].data, size_bytes)) continue;
    slot->bound = outputs[i].data;
  }
  for (uint32_t i = 0; i < output_count; ++i) { /* listed again without room: that one is the session's memory */
    clv__slot *slot = writable_slot(session, i);
    if (slot != NULL && outputs[i].data == NULL) slot->bound = NULL;
  }
  return CLV_OK;
}

/* Where an output's bytes are after the run. */
static const void *output_data(clv_session *session, const clv_tensor *inputs, uint32_t index) {
  const clv_graph *graph = session->plan->graph;
  clv_value_id value = output_value(session, index);
  if (session->constants[index] != NULL) return session->constants[index];
  for (uint32_t k = 0; k < graph->input_count && graph->values[value].is_input; ++k) {
    if (graph->inputs[k] == value) return inputs[k].dtype != CLV_DTYPE_NONE ? inputs[k].data : session->defaults[k];
  }
  const clv__slot *slot = clv__session_slot(session, value, CLV__SPACE_HOST);
  return slot == NULL ? NULL : clv__session_binding(session, slot).type.data;
}

clv_status clv__session_hand_over(clv_session *session, const clv_tensor *inputs, clv_tensor *outputs, uint32_t output_count,
                                  clv_error *error) {
  size_t size_bytes;
  for (uint32_t i = 0; i < output_count; ++i) { /* all of them, or none */
    const clv_tensor *type = &session->types[output_value(session, i)];
    const char *name = session->plan->graph->values[output_value(session, i)].name;
    if (!clv__tensor_size_bytes(type, &size_bytes)) {
      return clv__error_set(error, CLV_INTERNAL_ERROR, "output '%s' has no shape after the run", name);
    }
    if (outputs[i].data == NULL || clv__session_same_dims(&outputs[i], type)) continue;
    char is[160], should[160];
    clv__tensor_text(&outputs[i], is, sizeof is);
    clv__tensor_text(type, should, sizeof should);
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "output '%s' came out as %s, room was given for %s", name, should, is);
  }
  for (uint32_t i = 0; i < output_count; ++i) {
    const clv_tensor *type = &session->types[output_value(session, i)];
    const void *data = output_data(session, inputs, i);
    if (outputs[i].data == NULL) {
      outputs[i] = *type;
      outputs[i].data = (void *)data;
    } else if (clv__tensor_size_bytes(type, &size_bytes) && size_bytes > 0 && outputs[i].data != data) {
      memmove(outputs[i].data, data, size_bytes);
    }
  }
  return CLV_OK;
}
