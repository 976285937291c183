/* Instances: a partition's executable, prepared for the shapes of a prepared set, with the request's scratch. */
#include <string.h>

#include "execute/session_own.h"

void clv__instance_drop(clv__partition_state *state) {
  clv__request *request = state->prepared->request;
  const clv__device *device = clv__request_device(request, clv__request_plan(request)->partitions[state->index].device);
  if (state->instance != NULL) device->backend->instance_destroy(device->handle, state->instance);
  clv__executables_drop(&request->engine->executables, state->index, &state->own);
  clv__arena_finish(&state->own_arena);
  state->instance = NULL;
  state->scratch_generation = 0;
}

/* Makes a view of the partition with the sizes of this run. Its constants are those of the plan. */
static clv_status view_exactly(clv__partition_state *state, const clv_graph_view **view, clv_error *error) {
  const clv_plan *plan = clv__request_plan(state->prepared->request);
  const clv__partition *partition = &plan->partitions[state->index];
  const clv_tensor *types = state->prepared->types;
  clv_graph_view *made;
  if (plan->streamed != NULL) { /* streamed weights stay inputs */
    clv_tensor *open = clv__arena_copy(&state->own_arena, types, plan->graph->value_count * sizeof *types);
    if (open == NULL) return clv__error_memory(error, plan->graph->value_count * sizeof *types);
    for (uint32_t i = 0; i < partition->view->input_count; ++i) {
      open[partition->view->values[partition->view->inputs[i]]].data = NULL;
    }
    types = open;
  }
  CLV__TRY(clv__view_create(plan->graph, types, partition->nodes, partition->node_count, plan->is_kept, &state->own_arena, &made,
                            error));
  made->unstreamed = partition->view->unstreamed;
  *view = made;
  return CLV_OK;
}

/* Gets an executable for the current sizes, and logs why. */
static clv_status recompile(clv__partition_state *state, const char *why, clv_error *error) {
  clv__request *request = state->prepared->request;
  const clv__partition *partition = &clv__request_plan(request)->partitions[state->index];
  const clv_graph_view *view;
  if (partition->is_bucketed) {
    clv__bucket bucket;
    CLV__TRY(
        clv__bucket_describe(request->engine->buckets, state->index, state->prepared->types, &state->own_arena, &bucket, error));
    view = bucket.view;
  } else {
    CLV__TRY(view_exactly(state, &view, error));
  }
  request->engine->executables.failed_device = CLV__NO_ID; /* protected by the devices' lock */
  clv_status status =
      clv__executables_compile(&request->engine->executables, state->index, view, &state->own_arena, &state->own, error);
  if (status != CLV_OK) {
    bool by_device = request->engine->executables.failed_device != CLV__NO_ID;
    return by_device ? clv__request_blame(request, partition->device, status) : status;
  }
  clv__source source = state->own.origin.source;
  bool is_compiled = source == CLV__SOURCE_COMPILED || source == CLV__SOURCE_NOT_KEPT;
  clv__context_log(request->session->devices->context, is_compiled ? 2 : 3,
                   "partition %u on %s: %s for other shapes in %.1f ms: %s", state->index,
                   clv__request_device(request, partition->device)->name, is_compiled ? "compiled" : "found",
                   state->own.origin.ms, why);
  return status;
}

static clv_status create(clv__partition_state *state, const clv__compiled *compiled, clv_error *error) {
  clv__request *request = state->prepared->request;
  const clv__partition *partition = &clv__request_plan(request)->partitions[state->index];
  const clv__device *device = clv__request_device(request, partition->device);
  return CLV__CALL(device, error, instance_create, compiled->executable, state->instance_inputs, partition->view->input_count,
                   compiled->weights, compiled->info.weight_count, &state->instance);
}

/* ---- Scratch ---- */

clv_status clv__instance_bind_scratch(clv__partition_state *state, clv_error *error) {
  clv__request *request = state->prepared->request;
  uint32_t d = clv__request_plan(request)->partitions[state->index].device;
  const clv__device *device = clv__request_device(request, d);
  if (device->backend->scratch == NULL) return CLV_OK;
  uint64_t size_bytes = device->backend->scratch->size_bytes(device->handle, state->instance);
  if (size_bytes == 0) return CLV_OK;
  const clv__memory_block *block = &request->scratch[d];
  if (size_bytes > block->size_bytes) {
    CLV__TRY(clv__request_synchronize(request, 2 * d, error)); /* enqueued work still uses the old block */
    CLV__TRY(clv__request_reserve_scratch(request, d, size_bytes, error));
  }
  if (state->scratch_generation == block->generation) return CLV_OK;
  CLV__TRY(clv__request_blame(request, d, CLV__CALL(device, error, scratch->bind, state->instance, block->buffer, 0)));
  state->scratch_generation = block->generation;
  return CLV_OK;
}

clv_status clv__scratch_follow(clv__prepared *prepared, clv_error *error) {
  clv_devices *devices = prepared->request->session->devices;
  const clv_plan *plan = clv__request_plan(prepared->request);
  bool is_locked = false;
  clv_status status = CLV_OK;
  for (uint32_t p = 0; status == CLV_OK && p < plan->partition_count; ++p) {
    clv__partition_state *state = &prepared->partitions[p];
    const clv__memory_block *block = &prepared->request->scratch[plan->partitions[p].device];
    if (state->scratch_generation == 0 || state->scratch_generation == block->generation) continue;
    if (clv__capture_holds(prepared, plan->partitions[p].device)) continue;
    if (!is_locked) clv__devices_lock(devices);
    is_locked = true;
    clv__capture_forget(prepared, p);
    status = clv__instance_bind_scratch(state, error);
    if (status != CLV_OK) clv__partition_failed(prepared->request, p, status, error);
  }
  if (is_locked) clv__devices_unlock(devices);
  return status;
}

bool clv__scratch_is_held(const clv__request *request, const clv__memory_block *block) {
  const clv_plan *plan = clv__request_plan(request);
  for (const clv__prepared *prepared = request->prepared; prepared != NULL; prepared = prepared->next) {
    for (uint32_t p = 0; p < plan->partition_count; ++p) {
      if (prepared->partitions[p].scratch_generation != block->generation) continue;
      if (clv__capture_holds(prepared, plan->partitions[p].device)) return true;
    }
  }
  return false;
}

void clv__scratch_sweep(clv__request *request) {
  for (uint32_t i = 0; i < CLV__HELD_SCRATCH; ++i) {
    clv__memory_block *block = &request->held_scratch[i];
    if (block->generation != 0 && !clv__scratch_is_held(request, block)) clv__memory_pool_free(request->session->devices, block);
  }
}

/* ---- Creating and resizing ---- */

static void fill_inputs(clv__partition_state *state) {
  const clv__prepared *prepared = state->prepared;
  const clv__partition *partition = &clv__request_plan(prepared->request)->partitions[state->index];
  for (uint32_t i = 0; i < partition->view->input_count; ++i) {
    clv_value_id value = partition->view->values[partition->view->inputs[i]];
    state->instance_inputs[i] = *clv__prepared_type(prepared, partition, value);
    state->instance_inputs[i].data = NULL; /* a streamed weight is an input like others, not a constant */
  }
}

/* Creates the instance for the current shapes. Reuses the plan's executable if it accepts them. Otherwise compiles the
 * partition again for these shapes. */
static clv_status create_for_shapes(clv__partition_state *state, clv_error *error) {
  clv__request *request = state->prepared->request;
  uint32_t device = clv__request_plan(request)->partitions[state->index].device;
  clv_error first = {0};
  if (clv__request_plan(request)->partitions[state->index].is_bucketed) {
    CLV__TRY(recompile(state, "a bucket that was not used before", error));
    return clv__request_blame(request, device, create(state, &state->own, error));
  }
  clv_status status = create(state, &request->engine->executables.partitions[state->index], &first);
  if (status == CLV_NOT_SUPPORTED) {
    CLV__TRY(recompile(state, first.message, error));
    return clv__request_blame(request, device, create(state, &state->own, error));
  }
  if (status != CLV_OK && error != NULL) *error = first;
  return clv__request_blame(request, device, status);
}

/* Makes an instance for the current shapes, unless there already is one (`is_there`). Binds the instance's scratch. */
static clv_status make(clv__partition_state *state, bool is_there, clv_error *error) {
  if (!is_there) {
    clv__instance_drop(state);
    fill_inputs(state);
    CLV__TRY(create_for_shapes(state, error));
  }
  return clv__instance_bind_scratch(state, error);
}

/* Resizes the same instance for other shapes, if the device can. Returns false if a new one is needed. */
static bool resize(clv__partition_state *state) {
  clv__request *request = state->prepared->request;
  const clv__partition *partition = &clv__request_plan(request)->partitions[state->index];
  const clv__device *device = clv__request_device(request, partition->device);
  if (state->instance == NULL || device->backend->instance_resize == NULL || state->own.executable != NULL) return false;
  fill_inputs(state);
  clv_error why = {0};
  clv_status status =
      CLV__CALL(device, &why, instance_resize, state->instance, state->instance_inputs, partition->view->input_count);
  if (status != CLV_OK) {
    int level = status == CLV_NOT_SUPPORTED ? 3 : 2;
    clv__partition_failed(request, state->index, status, &why);
    clv__context_log(request->session->devices->context, level, "%s; another instance is created", why.message);
    return false;
  }
  state->scratch_generation = 0;
  return true;
}

/* Returns whether the instance is for the current shapes. */
static bool fits(const clv__partition_state *state) {
  const clv__prepared *prepared = state->prepared;
  const clv__partition *partition = &clv__request_plan(prepared->request)->partitions[state->index];
  const clv_graph_view *view = partition->view;
  for (uint32_t i = 0; i < view->input_count; ++i) {
    clv_value_id value = view->values[view->inputs[i]];
    if (!clv__same_dims(&state->instance_inputs[i], clv__prepared_type(prepared, partition, value))) return false;
  }
  return state->instance != NULL;
}

/* Moves the instance of the same partition from `from`, which belongs to a set that will be evicted, to `state`. Returns
 * whether the instance fits the current shapes or was resized for them. An executable made only for the shapes of that set
 * stays there, with its instance. */
static bool take_over(clv__partition_state *state, clv__partition_state *from) {
  const clv__partition *partition = &clv__request_plan(state->prepared->request)->partitions[state->index];
  if (from->instance == NULL || from->own.executable != NULL) return false;
  state->instance = from->instance;
  state->scratch_generation = from->scratch_generation;
  if (partition->view->input_count > 0) {
    memcpy(state->instance_inputs, from->instance_inputs, partition->view->input_count * sizeof *state->instance_inputs);
  }
  from->instance = NULL;
  from->scratch_generation = 0;
  return fits(state) || resize(state);
}

clv_status clv__instance_make(clv__partition_state *state, clv__prepared *from, clv_error *error) {
  clv_devices *devices = state->prepared->request->session->devices;
  clv__devices_lock(devices);
  bool is_taken = from != NULL && take_over(state, &from->partitions[state->index]);
  clv_status status = make(state, is_taken, error);
  clv__devices_unlock(devices);
  return status == CLV_OK ? status : clv__partition_failed(state->prepared->request, state->index, status, error);
}

clv_status clv__instance_fit(clv__partition_state *state, clv_error *error) {
  const clv__prepared *prepared = state->prepared;
  if (fits(state)) return CLV_OK;
  clv_devices *devices = prepared->request->session->devices;
  clv__devices_lock(devices);
  clv__capture_forget(state->prepared, state->index);
  state->is_fixed = false; /* its sizes change from run to run */
  clv_status status = make(state, resize(state), error);
  if (status == CLV_OK) status = clv__scratch_follow(state->prepared, error);
  clv__devices_unlock(devices);
  return status;
}
