/* A session's life: compile, prepare for shapes, finish. */
#include "execute/session.h"

#include <string.h>
#include <time.h>

#include "base/options.h"
#include "execute/internal.h"

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* ---- Preparing for shapes ---- */

static clv_status allocate_bindings(clv_session *session, clv_error *error) {
  const clv_plan *plan = session->plan;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    clv__partition_state *state = &session->partitions[p];
    const clv_graph_view *view = plan->partitions[p].view;
    *state = (clv__partition_state){.session = session, .index = p};
    clv__arena_init(&state->own_arena, session->allocator);
    state->inputs = clv__arena_allocate_zero(&session->arena, view->input_count, sizeof *state->inputs);
    state->outputs = clv__arena_allocate_zero(&session->arena, view->output_count, sizeof *state->outputs);
    state->instance_inputs = clv__arena_allocate_zero(&session->arena, view->input_count, sizeof *state->instance_inputs);
    if (state->inputs == NULL || state->outputs == NULL || state->instance_inputs == NULL) {
      return clv__error_memory(error, view->input_count * sizeof *state->inputs);
    }
  }
  return CLV_OK;
}

static void drop_instance(clv_session *session, clv__partition_state *state) {
  const clv__device *device = &session->plan->devices->items[session->plan->partitions[state->index].device];
  if (state->instance != NULL) device->backend->instance_destroy(device->handle, state->instance);
  if (state->own.executable != NULL) device->backend->executable_destroy(device->handle, state->own.executable);
  clv__arena_finish(&state->own_arena);
  state->instance = NULL;
  state->own = (clv__compiled){0};
}

/* Compiles the partition again for the sizes of this run. What the plan did not know as a constant stays computed. */
static clv_status recompile(clv_session *session, clv__partition_state *state, clv_error *error) {
  const clv__partition *partition = &session->plan->partitions[state->index];
  clv_graph_view *view;
  const clv_tensor *types = session->types;
  if (session->plan->streamed != NULL) { /* streamed weights stay inputs */
    clv_tensor *open = clv__arena_copy(&state->own_arena, types, session->plan->graph->value_count * sizeof *types);
    if (open == NULL) return clv__error_memory(error, session->plan->graph->value_count * sizeof *types);
    for (uint32_t i = 0; i < partition->view->input_count; ++i) {
      open[partition->view->values[partition->view->inputs[i]]].data = NULL;
    }
    types = open;
  }
  CLV__TRY(clv__view_create(session->plan->graph, types, partition->nodes, partition->node_count, session->plan->is_kept,
                            &state->own_arena, &view, error));
  return clv__program_compile(&session->program, state->index, view, &state->own_arena, &state->own, error);
}

static clv_status make_instance(clv_session *session, uint32_t index, clv_error *error) {
  clv__partition_state *state = &session->partitions[index];
  const clv__partition *partition = &session->plan->partitions[index];
  const clv__device *device = &session->plan->devices->items[partition->device];
  const clv_graph_view *view = partition->view;
  drop_instance(session, state);
  for (uint32_t i = 0; i < view->input_count; ++i) {
    state->instance_inputs[i] = session->types[view->values[view->inputs[i]]];
    state->instance_inputs[i].data = NULL; /* a streamed weight is an input like any other */
  }
  const clv__compiled *compiled = &session->program.partitions[index];
  clv_error first = {0};
  clv_status status =
      device->backend->instance_create(device->handle, compiled->executable, state->instance_inputs, view->input_count,
                                       compiled->weights, compiled->info.weight_count, &state->instance, &first);
  if (status == CLV_NOT_SUPPORTED) { /* an executable of fixed shapes, and these are others */
    clv__context_log(session->plan->devices->context, 2, "partition %u on %s: compiled again for other shapes: %s", index,
                     device->name, first.message);
    CLV__TRY(recompile(session, state, error));
    clv__error_clear(error);
    status = device->backend->instance_create(device->handle, state->own.executable, state->instance_inputs, view->input_count,
                                              state->own.weights, state->own.info.weight_count, &state->instance, error);
  } else if (status != CLV_OK && error != NULL) {
    *error = first;
  }
  return status == CLV_OK ? status : clv__error_prefix(error, status, "partition %u on %s", index, device->name);
}

clv_status clv__session_make_instance(clv_session *session, uint32_t index, clv_error *error) {
  clv__devices_lock(session->plan->devices);
  clv_status status = make_instance(session, index, error);
  clv__devices_unlock(session->plan->devices);
  return status;
}

static bool inputs_are_static(const clv_session *session, uint32_t partition) {
  const clv_graph_view *view = session->plan->partitions[partition].view;
  for (uint32_t i = 0; i < view->input_count; ++i) {
    if (!clv__tensor_is_static(&session->types[view->values[view->inputs[i]]])) return false;
  }
  return true;
}

/* Types for actual inputs, where the plan left sizes open. Constants stay those of the plan. */
static clv_status infer_actual(clv_session *session, const clv_tensor *inputs, clv_error *error) {
  const clv_graph *graph = session->plan->graph;
  size_t most = (size_t)session->plan->size_count + graph->input_count;
  clv__shape_given *given = clv__allocate_zero(session->allocator, most * sizeof *given);
  if (given == NULL) return clv__error_memory(error, most * sizeof *given);
  uint32_t count = 0; /* the plan's first: a symbol may be in no input */
  for (uint32_t i = 0; i < session->plan->size_count; ++i) given[count++] = session->plan->sizes[i];
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    if (inputs[i].dtype == CLV_DTYPE_NONE) continue;
    given[count] = (clv__shape_given){.name = graph->values[graph->inputs[i]].name, .rank = inputs[i].rank};
    memcpy(given[count++].dims, inputs[i].dims, sizeof given->dims);
  }
  clv__shapes_destroy(session->shapes);
  session->shapes = NULL;
  clv_status status = clv__shapes_infer(graph, given, count, 1u << 16, &session->shapes, error);
  clv__release(session->allocator, given);
  if (status != CLV_OK) return status;
  for (uint32_t v = 0; v < graph->value_count; ++v) {
    session->types[v] = session->shapes->types[v];
    session->types[v].data = session->plan->shapes->types[v].data;
  }
  return CLV_OK;
}

static clv_status prepare(clv_session *session, const clv_tensor *inputs, clv_error *error) {
  const clv_graph *graph = session->plan->graph;
  session->is_prepared = false;
  clv__session_release_memory(session);
  for (uint32_t p = 0; p < session->plan->partition_count; ++p) drop_instance(session, &session->partitions[p]);
  clv__arena_finish(&session->prepared);
  memcpy(session->types, session->plan->shapes->types, graph->value_count * sizeof *session->types);
  bool open = false;
  for (uint32_t i = 0; i < graph->input_count; ++i) open = open || !clv__tensor_is_static(&session->types[graph->inputs[i]]);
  if (open && inputs != NULL) CLV__TRY(infer_actual(session, inputs, error));
  CLV__TRY(clv__session_plan_memory(session, error));
  for (uint32_t p = 0; p < session->plan->partition_count; ++p) {
    if (inputs_are_static(session, p)) CLV__TRY(clv__session_make_instance(session, p, error));
  }
  session->is_prepared = !open || inputs != NULL;
  return CLV_OK;
}

clv_status clv__session_prepare(clv_session *session, const clv_tensor *inputs, clv_error *error) {
  clv__devices_lock(session->plan->devices);
  clv_status status = prepare(session, inputs, error);
  clv__devices_unlock(session->plan->devices);
  return status;
}

/* ---- Life ---- */

static clv_status create_streams(clv_session *session, clv_error *error) {
  for (uint32_t d = 0; d < session->plan->devices->count; ++d) {
    const clv__device *device = &session->plan->devices->items[d];
    clv__error_clear(error);
    clv_status status = device->backend->stream_create(device->handle, &session->streams[d], error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "%s: stream", device->name);
  }
  return CLV_OK;
}

clv_status clv_session_create(const clv_plan *plan, const clv_session_options *given, clv_session **out, clv_error *error) {
  if (plan == NULL || out == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "plan and session must not be NULL");
  *out = NULL;
  if (plan->is_supposed) {
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "the plan supposes that devices run operators that they do not: it cannot be run");
  }
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  CLV__TRY(clv__options_read(&options, sizeof options, given, "CLV_SESSION_OPTIONS_INIT", error));
  CLV__TRY(clv__graph_check_bound(plan->graph, error));
  const clv_allocator *allocator = plan->graph->allocator;
  clv_session *session = clv__allocate_zero(allocator, sizeof *session);
  if (session == NULL) return clv__error_memory(error, sizeof *session);
  session->plan = plan;
  session->allocator = allocator;
  session->pending_first = CLV__NO_ID;
  clv__arena_init(&session->arena, allocator);
  clv__arena_init(&session->prepared, allocator);
  double start = now_ms();
  clv_compile_options compile = {.struct_size = sizeof compile, .deterministic = options.deterministic, .tune = options.tune};
  clv_status status;
  clv__devices_lock(plan->devices);
  CLV__TRY_GOTO(clv__program_init(plan, &compile, &session->program, error));
  session->partitions = clv__arena_allocate_zero(&session->arena, plan->partition_count, sizeof *session->partitions);
  session->types = clv__arena_allocate_zero(&session->arena, plan->graph->value_count, sizeof *session->types);
  session->step_times_ns = clv__arena_allocate_zero(&session->arena, plan->step_count, sizeof *session->step_times_ns);
  if (session->partitions == NULL || session->types == NULL || session->step_times_ns == NULL) {
    session->partitions = NULL;
    status = clv__error_memory(error, plan->graph->value_count * sizeof *session->types);
    goto cleanup;
  }
  status = allocate_bindings(session, error);
  if (status != CLV_OK) {
    session->partitions = NULL;
    goto cleanup;
  }
  CLV__TRY_GOTO(clv__session_align_constants(session, error));
  CLV__TRY_GOTO(create_streams(session, error));
  CLV__TRY_GOTO(clv__session_prepare(session, NULL, error));
  session->compile_ms = now_ms() - start;
cleanup:
  clv__devices_unlock(plan->devices);
  if (status != CLV_OK)
    clv_session_destroy(session);
  else
    *out = session;
  return status;
}

void clv_session_destroy(clv_session *session) {
  if (session == NULL) return;
  clv_devices *devices = session->plan->devices;
  clv__devices_lock(devices);
  for (uint32_t d = 0; d < devices->count; ++d) {
    if (session->streams[d] == NULL) continue;
    (void)devices->items[d].backend->stream_synchronize(devices->items[d].handle, session->streams[d], NULL);
  }
  for (uint32_t p = 0; session->partitions != NULL && p < session->plan->partition_count; ++p) {
    drop_instance(session, &session->partitions[p]);
  }
  if (session->slots != NULL) clv__session_release_memory(session);
  for (uint32_t d = 0; d < devices->count; ++d) {
    if (session->streams[d] != NULL) devices->items[d].backend->stream_destroy(devices->items[d].handle, session->streams[d]);
  }
  clv__program_finish(&session->program);
  clv__devices_unlock(devices);
  clv__shapes_destroy(session->shapes);
  clv__arena_finish(&session->prepared);
  clv__arena_finish(&session->arena);
  clv__release(session->allocator, session);
}

void clv__session_time_steps(clv_session *session, bool on) {
  session->time_steps = on;
}
uint64_t clv__session_step_time_ns(const clv_session *session, uint32_t index) {
  return session->step_times_ns[index];
}

void clv__session_stats_get(const clv_session *session, clv__session_stats *stats) {
  *stats = (clv__session_stats){
      .compile_ms = session->compile_ms,
      .boundary_bytes = session->boundary_bytes,
      .boundary_bound_bytes = session->boundary_bound_bytes,
      .weight_bytes = session->program.uploaded_bytes,
  };
  for (uint32_t p = 0; p < session->plan->partition_count; ++p) {
    stats->resident_bytes += session->program.partitions[p].info.resident_bytes;
    stats->scratch_bytes += session->program.partitions[p].info.scratch_bytes;
  }
}
