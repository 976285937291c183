/* A request made ready for a set of input shapes: types, memory, schedule, instances. Those used last are kept. */
#include <string.h>

#include "execute/internal.h"

bool clv__same_dims(const clv_tensor *a, const clv_tensor *b) {
  return a->dtype == b->dtype && a->rank == b->rank &&
         (a->rank <= 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

/* ---- Instances ---- */

static void drop_instance(clv__partition_state *state) {
  clv__request *request = state->prepared->request;
  const clv__device *device = clv__request_device(request, clv__request_plan(request)->partitions[state->index].device);
  if (!device->is_lost && state->instance != NULL) device->backend->instance_destroy(device->handle, state->instance);
  clv__program_drop(&request->engine->program, state->index, &state->own);
  clv__arena_finish(&state->own_arena);
  state->instance = NULL;
  state->scratch_generation = 0;
}

/* Compiles the partition again for the sizes of this run. What the plan did not know as a constant stays computed. */
static clv_status recompile(clv__partition_state *state, clv_error *error) {
  clv__request *request = state->prepared->request;
  const clv_plan *plan = clv__request_plan(request);
  const clv__partition *partition = &plan->partitions[state->index];
  clv_graph_view *view;
  const clv_tensor *types = state->prepared->types;
  if (plan->streamed != NULL) { /* streamed weights stay inputs */
    clv_tensor *open = clv__arena_copy(&state->own_arena, types, plan->graph->value_count * sizeof *types);
    if (open == NULL) return clv__error_memory(error, plan->graph->value_count * sizeof *types);
    for (uint32_t i = 0; i < partition->view->input_count; ++i) {
      open[partition->view->values[partition->view->inputs[i]]].data = NULL;
    }
    types = open;
  }
  CLV__TRY(clv__view_create(plan->graph, types, partition->nodes, partition->node_count, plan->is_kept, &state->own_arena, &view,
                            error));
  clv_status status = clv__program_compile(&request->engine->program, state->index, view, &state->own_arena, &state->own, error);
  return clv__request_blame(request, partition->device, status);
}

static clv_status create_instance(clv__partition_state *state, const clv__compiled *compiled, clv_error *error) {
  clv__request *request = state->prepared->request;
  const clv__partition *partition = &clv__request_plan(request)->partitions[state->index];
  const clv__device *device = clv__request_device(request, partition->device);
  return device->backend->instance_create(device->handle, compiled->executable, state->instance_inputs,
                                          partition->view->input_count, compiled->weights, compiled->info.weight_count,
                                          &state->instance, error);
}

/* Takes the request's scratch, which may have moved. */
static clv_status bind_scratch(clv__partition_state *state, clv_error *error) {
  clv__request *request = state->prepared->request;
  uint32_t d = clv__request_plan(request)->partitions[state->index].device;
  const clv__device *device = clv__request_device(request, d);
  if (device->backend->instance_scratch_bytes == NULL || device->backend->instance_bind_scratch == NULL) return CLV_OK;
  uint64_t size_bytes = device->backend->instance_scratch_bytes(device->handle, state->instance);
  if (size_bytes == 0) return CLV_OK;
  CLV__TRY(clv__request_reserve_scratch(request, d, size_bytes, error));
  const clv__block *block = &request->scratch[d];
  if (state->scratch_generation == block->generation) return CLV_OK;
  clv__error_clear(error);
  clv_status status = device->backend->instance_bind_scratch(device->handle, state->instance, block->buffer, 0, error);
  if (status != CLV_OK) return clv__request_blame(request, d, status);
  state->scratch_generation = block->generation;
  return status;
}

static clv_status make_instance(clv__prepared *prepared, uint32_t index, clv_error *error) {
  clv__partition_state *state = &prepared->partitions[index];
  clv__request *request = prepared->request;
  const clv__partition *partition = &clv__request_plan(request)->partitions[index];
  const clv__device *device = clv__request_device(request, partition->device);
  const clv_graph_view *view = partition->view;
  drop_instance(state);
  for (uint32_t i = 0; i < view->input_count; ++i) {
    state->instance_inputs[i] = prepared->types[view->values[view->inputs[i]]];
    state->instance_inputs[i].data = NULL; /* a streamed weight is an input like any other */
  }
  clv_error first = {0};
  clv_status status = create_instance(state, &request->engine->program.partitions[index], &first);
  if (status == CLV_NOT_SUPPORTED) { /* an executable of fixed shapes, and these are others */
    uint64_t start = clv__now_ns();
    CLV__TRY(recompile(state, error));
    clv__context_log(request->session->devices->context, 2, "partition %u on %s: compiled again for other shapes, %.1f ms: %s",
                     index, device->name, (double)(clv__now_ns() - start) / 1e6, first.message);
    clv__error_clear(error);
    status = create_instance(state, &state->own, error);
  } else if (status != CLV_OK && error != NULL) {
    *error = first;
  }
  clv__request_blame(request, partition->device, status);
  if (status == CLV_OK) status = bind_scratch(state, error);
  return status == CLV_OK ? status : clv__error_prefix(error, status, "partition %u on %s", index, device->name);
}

clv_status clv__prepared_make_instance(clv__prepared *prepared, uint32_t index, clv_error *error) {
  clv__devices_lock(prepared->request->session->devices);
  clv_status status = make_instance(prepared, index, error);
  clv__devices_unlock(prepared->request->session->devices);
  return status;
}

/* ---- One set of shapes ---- */

static bool inputs_are_static(const clv__prepared *prepared, uint32_t partition) {
  const clv_graph_view *view = clv__request_plan(prepared->request)->partitions[partition].view;
  for (uint32_t i = 0; i < view->input_count; ++i) {
    if (!clv__tensor_is_static(&prepared->types[view->values[view->inputs[i]]])) return false;
  }
  return true;
}

static clv_status allocate_bindings(clv__prepared *prepared, clv_error *error) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  prepared->partitions = clv__arena_allocate_zero(&prepared->arena, plan->partition_count, sizeof *prepared->partitions);
  if (prepared->partitions == NULL) return clv__error_memory(error, plan->partition_count * sizeof *prepared->partitions);
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    prepared->partitions[p] = (clv__partition_state){.prepared = prepared, .index = p};
    clv__arena_init(&prepared->partitions[p].own_arena, prepared->arena.allocator);
  }
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    clv__partition_state *state = &prepared->partitions[p];
    const clv_graph_view *view = plan->partitions[p].view;
    state->inputs = clv__arena_allocate_zero(&prepared->arena, view->input_count, sizeof *state->inputs);
    state->outputs = clv__arena_allocate_zero(&prepared->arena, view->output_count, sizeof *state->outputs);
    state->instance_inputs = clv__arena_allocate_zero(&prepared->arena, view->input_count, sizeof *state->instance_inputs);
    if (state->inputs == NULL || state->outputs == NULL || state->instance_inputs == NULL) {
      return clv__error_memory(error, view->input_count * sizeof *state->inputs);
    }
  }
  return CLV_OK;
}

/* Types for actual inputs, where the plan left sizes open. Constants stay those of the plan. */
static clv_status infer_actual(clv__prepared *prepared, const clv_tensor *inputs, clv_error *error) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  const clv_graph *graph = plan->graph;
  const clv_allocator *allocator = prepared->arena.allocator;
  size_t most = (size_t)plan->size_count + graph->input_count;
  clv__shape_given *given = clv__allocate_zero(allocator, most * sizeof *given);
  if (given == NULL) return clv__error_memory(error, most * sizeof *given);
  uint32_t count = 0; /* the plan's first: a symbol may be in no input */
  for (uint32_t i = 0; i < plan->size_count; ++i) given[count++] = plan->sizes[i];
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    if (inputs[i].dtype == CLV_DTYPE_NONE) continue;
    given[count] = (clv__shape_given){.name = graph->values[graph->inputs[i]].name, .rank = inputs[i].rank};
    memcpy(given[count++].dims, inputs[i].dims, sizeof given->dims);
  }
  clv_status status = clv__shapes_infer(graph, given, count, 1u << 16, &prepared->shapes, error);
  clv__release(allocator, given);
  if (status != CLV_OK) return status;
  for (uint32_t v = 0; v < graph->value_count; ++v) {
    prepared->types[v] = prepared->shapes->types[v];
    prepared->types[v].data = plan->shapes->types[v].data;
  }
  return CLV_OK;
}

static clv_status fill_types(clv__prepared *prepared, const clv_tensor *inputs, clv_error *error) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  const clv_graph *graph = plan->graph;
  prepared->types = clv__arena_copy(&prepared->arena, plan->shapes->types, graph->value_count * sizeof *prepared->types);
  prepared->inputs = clv__arena_allocate_zero(&prepared->arena, graph->input_count, sizeof *prepared->inputs);
  if (prepared->types == NULL || prepared->inputs == NULL) {
    return clv__error_memory(error, graph->value_count * sizeof *prepared->types);
  }
  bool is_open = false;
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    is_open = is_open || !clv__tensor_is_static(&prepared->types[graph->inputs[i]]);
  }
  if (is_open && inputs != NULL) CLV__TRY(infer_actual(prepared, inputs, error));
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    bool is_given = inputs != NULL && inputs[i].dtype != CLV_DTYPE_NONE;
    prepared->inputs[i] = is_given ? inputs[i] : prepared->types[graph->inputs[i]];
  }
  prepared->is_whole = !is_open || inputs != NULL;
  return CLV_OK;
}

static clv_status make(clv__prepared *prepared, const clv_tensor *inputs, clv_error *error) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  CLV__TRY(allocate_bindings(prepared, error));
  CLV__TRY(fill_types(prepared, inputs, error));
  CLV__TRY(clv__prepared_plan_memory(prepared, error));
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    if (inputs_are_static(prepared, p)) CLV__TRY(make_instance(prepared, p, error));
  }
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    if (!plan->steps[s].is_transfer) prepared->partitions[plan->steps[s].index].step = s;
  }
  return clv__capture_prepare(prepared, error);
}

void clv__prepared_destroy(clv__prepared *prepared) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  const clv_allocator *allocator = prepared->arena.allocator;
  for (uint32_t d = 0; d < CLV__MAX_DEVICES; ++d) clv__capture_drop(prepared, d);
  for (uint32_t p = 0; prepared->partitions != NULL && p < plan->partition_count; ++p) {
    drop_instance(&prepared->partitions[p]);
  }
  if (prepared->slots != NULL) clv__prepared_release_memory(prepared);
  clv__shapes_destroy(prepared->shapes);
  clv__arena_finish(&prepared->arena);
  clv__release(allocator, prepared);
}

/* ---- Which set ---- */

static bool is_for(const clv__prepared *prepared, const clv_tensor *inputs) {
  const clv_graph *graph = clv__request_plan(prepared->request)->graph;
  if (!prepared->is_whole) return false;
  for (uint32_t i = 0; inputs != NULL && i < graph->input_count; ++i) {
    const clv_tensor *given = inputs[i].dtype != CLV_DTYPE_NONE ? &inputs[i] : &graph->values[graph->inputs[i]].type;
    if (!clv__same_dims(given, &prepared->inputs[i])) return false;
  }
  return true;
}

/* Scratch that has moved since this set was used last: made larger by another set. */
static clv_status follow_scratch(clv__prepared *prepared, clv_error *error) {
  const clv_plan *plan = clv__request_plan(prepared->request);
  bool is_locked = false;
  clv_status status = CLV_OK;
  for (uint32_t p = 0; status == CLV_OK && p < plan->partition_count; ++p) {
    clv__partition_state *state = &prepared->partitions[p];
    const clv__block *block = &prepared->request->scratch[plan->partitions[p].device];
    if (state->scratch_generation == 0 || state->scratch_generation == block->generation) continue;
    if (!is_locked) clv__devices_lock(prepared->request->session->devices);
    is_locked = true;
    clv__capture_drop(prepared, plan->partitions[p].device);
    status = bind_scratch(state, error);
  }
  if (is_locked) clv__devices_unlock(prepared->request->session->devices);
  return status;
}

/* Sets beyond the limit go, the least recently used first; one that was only good for memory's size goes at once. */
static void trim(clv__request *request) {
  uint32_t limit = request->session->options.prepared_shapes, kept = 0;
  for (clv__prepared **link = &request->prepared; *link != NULL;) {
    clv__prepared *prepared = *link;
    if (prepared == request->prepared || (prepared->is_whole && kept < limit)) {
      ++kept;
      link = &prepared->next;
      continue;
    }
    *link = prepared->next;
    --request->prepared_count;
    clv__prepared_destroy(prepared);
  }
}

static clv_status make_new(clv__request *request, const clv_tensor *inputs, bool is_tight, clv_error *error) {
  clv__prepared *prepared = clv__allocate_zero(request->session->allocator, sizeof *prepared);
  if (prepared == NULL) return clv__error_memory(error, sizeof *prepared);
  prepared->request = request;
  prepared->is_tight = is_tight;
  clv__arena_init(&prepared->arena, request->session->allocator);
  clv_status status = make(prepared, inputs, error);
  if (status != CLV_OK) {
    clv__prepared_destroy(prepared);
    return status;
  }
  prepared->next = request->prepared;
  request->prepared = prepared;
  ++request->prepared_count;
  trim(request);
  return follow_scratch(prepared, error); /* a later instance may have needed more than an earlier one was given */
}

static clv_status prepare(clv__request *request, const clv_tensor *inputs, clv_error *error) {
  uint64_t begin_ns = clv__now_ns();
  clv__devices_lock(request->session->devices);
  clv_status status = make_new(request, inputs, false, error);
  if (status == CLV_OUT_OF_MEMORY && request->failed_device != CLV__NO_ID) { /* plans count on no more than steps in order need */
    clv__request_free_memory(request);
    clv__pool_trim(request->session->devices); /* a kept block may be larger than what is asked for next */
    request->failed_device = CLV__NO_ID;
    status = make_new(request, inputs, true, error);
  }
  clv__devices_unlock(request->session->devices);
  clv__trace_add(
      request, (clv__trace_event){.kind = CLV__TRACE_PREPARE, .step = CLV__NO_ID, .begin_ns = begin_ns, .end_ns = clv__now_ns()});
  return status;
}

clv_status clv__request_prepare(clv__request *request, const clv_tensor *inputs, clv_error *error) {
  for (clv__prepared **link = &request->prepared; *link != NULL; link = &(*link)->next) {
    clv__prepared *prepared = *link;
    if (!is_for(prepared, inputs)) continue;
    if (link == &request->prepared) return CLV_OK;
    *link = prepared->next; /* to the front */
    prepared->next = request->prepared;
    request->prepared = prepared;
    return follow_scratch(prepared, error);
  }
  return prepare(request, inputs, error);
}
