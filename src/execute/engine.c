/* Creates and releases engines. Aligns the constants that runs return or read. */
#include <string.h>

#include "execute/session_own.h"

/* Sets `data` to the bytes of the constant, or to an aligned copy if they are unaligned in the model's file. */
static clv_status align_constant(clv__engine *engine, const clv_tensor *constant, const void **data, clv_error *error) {
  size_t size_bytes;
  *data = constant->data;
  if (constant->data == NULL || clv__is_aligned(constant->data, constant->dtype)) return CLV_OK;
  if (!clv__tensor_size_bytes(constant, &size_bytes)) return CLV_OK;
  void *copy = clv__arena_allocate_data(&engine->arena, size_bytes);
  if (copy == NULL) return clv__error_memory(error, size_bytes);
  memcpy(copy, constant->data, size_bytes);
  *data = copy;
  return CLV_OK;
}

static clv_status align_constants(clv__engine *engine, clv_error *error) {
  const clv_plan *plan = engine->plan;
  const clv_graph *graph = plan->graph;
  uint32_t outputs = graph->output_count + plan->kept_count;
  engine->step_times_ns = clv__arena_allocate_zero(&engine->arena, plan->step_count, sizeof *engine->step_times_ns);
  if (engine->step_times_ns == NULL) return clv__error_memory(error, plan->step_count * sizeof *engine->step_times_ns);
  engine->defaults = clv__arena_allocate_zero(&engine->arena, graph->input_count, sizeof *engine->defaults);
  engine->constants = clv__arena_allocate_zero(&engine->arena, outputs, sizeof *engine->constants);
  if (engine->defaults == NULL || engine->constants == NULL) return clv__error_memory(error, outputs * sizeof(void *));
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    CLV__TRY(align_constant(engine, &graph->values[graph->inputs[i]].type, &engine->defaults[i], error));
  }
  for (uint32_t i = 0; i < outputs; ++i) {
    clv_value_id value = i < graph->output_count ? graph->outputs[i] : plan->kept[i - graph->output_count];
    CLV__TRY(align_constant(engine, &plan->shapes->types[value], &engine->constants[i], error));
  }
  return clv__graph_check_files(graph, error);
}

/* Returns whether runs read constants in the model's files: streamed weights, defaults of inputs, or constants that runs
 * return. Devices have copied the other constants. */
static bool reads_files(const clv__engine *engine) {
  const clv_plan *plan = engine->plan;
  const clv_graph *graph = plan->graph;
  for (uint32_t i = 0; i < plan->transfer_count; ++i) {
    const clv_tensor *type = &plan->shapes->types[plan->transfers[i].value];
    if (plan->transfers[i].boundary == CLV__BOUNDARY_WEIGHT && clv__graph_is_in_file(graph, type->data)) return true;
  }
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    if (clv__graph_is_in_file(graph, engine->defaults[i])) return true;
  }
  for (uint32_t i = 0; i < graph->output_count + plan->kept_count; ++i) {
    if (clv__graph_is_in_file(graph, engine->constants[i])) return true;
  }
  return false;
}

static clv_status get_executables(clv_session *session, clv__engine *engine, clv__engine_failure *failure, clv_error *error) {
  clv_compile_options compile = {.struct_size = sizeof compile,
                                 .deterministic = session->options.deterministic,
                                 .tune = session->options.tune,
                                 .precision = session->options.precision};
  clv__devices_lock(session->devices);
  clv_status status = clv__executables_init(engine->plan, &compile, session->options.compiled, &engine->executables, error);
  *failure = (clv__engine_failure){engine->executables.failed_device, engine->executables.failed_partition};
  clv__devices_unlock(session->devices);
  return status;
}

void clv__engine_empty(clv_session *session, clv__engine *engine) {
  clv__devices_lock(session->devices);
  clv__executables_finish(&engine->executables);
  clv__devices_unlock(session->devices);
  atomic_store(&engine->is_empty, true);
}

clv_status clv__engine_refill(clv_session *session, clv__engine *engine, clv_error *error) {
  clv_status status = CLV_OK;
  clv__engine_failure failure;
  if (!atomic_load(&engine->is_empty)) return status;
  pthread_mutex_lock(&session->replacing);
  if (atomic_load(&engine->is_empty)) {
    status = get_executables(session, engine, &failure, error);
    atomic_store(&engine->is_empty, status != CLV_OK);
  }
  pthread_mutex_unlock(&session->replacing);
  return status;
}

clv_status clv__engine_create(clv_session *session, const clv_plan *plan, clv_plan *own_plan, clv__loaded *loaded,
                              clv__engine **out, clv__engine_failure *failure, clv_error *error) {
  *out = NULL;
  *failure = (clv__engine_failure){CLV__NO_ID, CLV__NO_ID};
  clv__engine *engine = clv__allocate_zero(session->allocator, sizeof *engine);
  if (engine == NULL) return clv__error_memory(error, sizeof *engine);
  *engine = (clv__engine){.users = 1, .plan = plan};
  clv__arena_init(&engine->arena, session->allocator);
  clv_status status = get_executables(session, engine, failure, error);
  if (status == CLV_OK) status = clv__bucket_rule_create(plan, session->options.bucket_multiple, &engine->buckets, error);
  if (status == CLV_OK) status = align_constants(engine, error);
  if (status != CLV_OK) {
    clv__engine_release(session, engine);
    return status;
  }
  engine->own_plan = own_plan;
  engine->loaded = loaded;
  if (loaded != NULL) {
    pthread_mutex_lock(&session->lock);
    ++loaded->users;
    pthread_mutex_unlock(&session->lock);
  }
  engine->reads_files = reads_files(engine);
  *out = engine;
  return CLV_OK;
}

void clv__engine_release(clv_session *session, clv__engine *engine) {
  if (engine == NULL) return;
  pthread_mutex_lock(&session->lock);
  bool is_used = --engine->users > 0;
  pthread_mutex_unlock(&session->lock);
  if (is_used) return;
  clv__devices_lock(session->devices);
  clv__executables_finish(&engine->executables);
  clv__devices_unlock(session->devices);
  clv__bucket_rule_destroy(engine->buckets);
  clv__arena_finish(&engine->arena);
  clv_plan_destroy(engine->own_plan);
  clv__loaded_release(session, engine->loaded);
  clv__release(session->allocator, engine);
}
