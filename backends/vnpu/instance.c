/* Instances: memory for a session's launches, and what is checked before one is enqueued. */
#include "instance.h"

#include <string.h>

#include "base/error.h"

static clv_status check_inputs(const clv_executable *p, const clv_tensor *inputs, uint32_t input_count, clv_error *error) {
  if (input_count != p->input_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u inputs are given, the program has %u", input_count, p->input_count);
  }
  for (uint32_t i = 0; i < input_count; ++i) {
    const clv_tensor *type = &p->types[p->inputs[i]];
    bool fits = inputs[i].dtype == type->dtype && (type->rank < 0 || inputs[i].rank == type->rank);
    for (int32_t d = 0; fits && d < type->rank; ++d) fits = type->dims[d] < 0 || type->dims[d] == inputs[i].dims[d];
    if (fits) continue;
    char given[100], compiled[100];
    clv__tensor_text(&inputs[i], given, sizeof given);
    clv__tensor_text(type, compiled, sizeof compiled);
    return clv__error_set(error, CLV_NOT_SUPPORTED, "input '%s' is %s, the program was compiled for %s: compile it again",
                          clv__vnpu_value_name(p, p->inputs[i]), given, compiled);
  }
  return CLV_OK;
}

static clv_status take_weights(clv_instance *instance, clv_weight *const *weights, uint32_t weight_count, clv_error *error) {
  const clv_executable *p = instance->program;
  if (weight_count != p->weight_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u weights are given, the program has %u", weight_count, p->weight_count);
  }
  for (uint32_t i = 0; i < weight_count; ++i) {
    const clv_tensor *type = &p->types[p->weights[i]];
    if (weights[i] == NULL || !clv__tensor_same_type(&weights[i]->type, type)) {
      char given[100] = "nothing", wanted[100];
      if (weights[i] != NULL) clv__tensor_text(&weights[i]->type, given, sizeof given);
      clv__tensor_text(type, wanted, sizeof wanted);
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "weight '%s' is %s, the program wants %s", p->weight_names[i], given,
                            wanted);
    }
    instance->weights[i] = weights[i]->address;
  }
  return CLV_OK;
}

static clv_status make_runs(clv_instance *instance, clv_error *error) {
  const clv_executable *p = instance->program;
  size_t operands = (size_t)p->input_count + p->output_count;
  clv__vnpu_run *runs = clv__arena_allocate_zero(&instance->arena, CLV__VNPU_LAUNCHES, sizeof *runs);
  if (runs == NULL) return clv__error_memory(error, CLV__VNPU_LAUNCHES * sizeof *runs);
  for (int i = 0; i < CLV__VNPU_LAUNCHES; ++i) {
    runs[i].instance = instance;
    runs[i].operands = clv__arena_allocate_zero(&instance->arena, operands, sizeof *runs[i].operands);
    if (runs[i].operands == NULL) return clv__error_memory(error, operands * sizeof *runs[i].operands);
    runs[i].next = instance->idle;
    instance->idle = &runs[i];
    ++instance->idle_count;
    ++instance->run_count;
  }
  return CLV_OK;
}

static clv_status fill(clv_instance *instance, const clv_tensor *inputs, uint32_t input_count, clv_weight *const *weights,
                       uint32_t weight_count, clv_error *error) {
  const clv_executable *p = instance->program;
  clv__arena *arena = &instance->arena;
  CLV__TRY(check_inputs(p, inputs, input_count, error));
  size_t dynamic = p->is_static ? 0 : p->value_count;
  instance->weights = clv__arena_allocate_zero(arena, p->weight_count, sizeof *instance->weights);
  instance->inputs = clv__arena_allocate_zero(arena, (size_t)p->most_inputs + 1, sizeof *instance->inputs);
  instance->outputs = clv__arena_allocate_zero(arena, (size_t)p->most_outputs + 1, sizeof *instance->outputs);
  instance->values = clv__arena_allocate_zero(arena, dynamic, sizeof *instance->values);
  instance->blocks = clv__arena_allocate_zero(arena, dynamic, sizeof *instance->blocks);
  instance->block_bytes = clv__arena_allocate_zero(arena, dynamic, sizeof *instance->block_bytes);
  if (instance->weights == NULL || instance->inputs == NULL || instance->outputs == NULL || instance->values == NULL ||
      instance->blocks == NULL || instance->block_bytes == NULL) {
    return clv__error_memory(error, p->value_count * sizeof *instance->values);
  }
  CLV__TRY(take_weights(instance, weights, weight_count, error));
  CLV__TRY(make_runs(instance, error));
  if (!p->is_static || p->scratch_bytes == 0) return CLV_OK;
  clv_status status = clv__vnpu_space_allocate(instance->device->space, p->scratch_bytes, &instance->scratch, error);
  return status == CLV_OK ? CLV_OK : clv__error_prefix(error, status, "scratch of an instance");
}

clv_status clv__vnpu_instance_create(clv_device *device, clv_executable *program, const clv_tensor *inputs, uint32_t input_count,
                                     clv_weight *const *weights, uint32_t weight_count, clv_instance **out, clv_error *error) {
  *out = NULL;
  clv_instance *instance = clv__allocate_zero(device->allocator, sizeof *instance);
  if (instance == NULL) return clv__error_memory(error, sizeof *instance);
  instance->device = device;
  instance->program = program;
  clv__arena_init(&instance->arena, device->allocator);
  clv_status status = fill(instance, inputs, input_count, weights, weight_count, error);
  if (status == CLV_OK)
    *out = instance;
  else
    clv__vnpu_instance_destroy(instance);
  return status;
}

void clv__vnpu_instance_destroy(clv_instance *instance) {
  if (instance == NULL) return;
  clv__vnpu_queue *queue = &instance->device->queue;
  const clv_allocator *allocator = instance->device->allocator;
  pthread_mutex_lock(&queue->lock);
  while (instance->idle_count < instance->run_count) pthread_cond_wait(&queue->changed, &queue->lock);
  pthread_mutex_unlock(&queue->lock);
  if (instance->scratch != 0) clv__vnpu_space_free(instance->device->space, instance->scratch, instance->program->scratch_bytes);
  clv__arena_finish(&instance->arena);
  clv__release(allocator, instance);
}

static clv__vnpu_run *run_acquire(clv_instance *instance) {
  clv__vnpu_queue *queue = &instance->device->queue;
  pthread_mutex_lock(&queue->lock);
  while (instance->idle == NULL) pthread_cond_wait(&queue->changed, &queue->lock);
  clv__vnpu_run *run = instance->idle;
  instance->idle = run->next;
  --instance->idle_count;
  pthread_mutex_unlock(&queue->lock);
  return run;
}

/* With the queue's lock held: the queue calls it so. */
static void run_release(clv__vnpu_launch *launch) {
  clv__vnpu_run *run = (clv__vnpu_run *)launch;
  run->next = run->instance->idle;
  run->instance->idle = run;
  ++run->instance->idle_count;
}

clv_status clv__vnpu_binding_resolve(const clv_instance *instance, const clv_binding *binding, const char *name,
                                     clv__vnpu_operand_at *at, clv_error *error) {
  size_t size_bytes;
  *at = (clv__vnpu_operand_at){.type = binding->type};
  at->type.data = NULL;
  if (!clv__tensor_size_bytes(&binding->type, &size_bytes)) {
    char text[100];
    clv__tensor_text(&binding->type, text, sizeof text);
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s' is bound with the unknown size %s", name, text);
  }
  at->size_bytes = size_bytes;
  if (binding->buffer != NULL) {
    uint64_t there = binding->buffer->size_bytes;
    if (binding->offset_bytes > there || size_bytes > there - binding->offset_bytes) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s': %zu bytes at %llu do not fit its buffer of %llu", name,
                            size_bytes, (unsigned long long)binding->offset_bytes, (unsigned long long)there);
    }
    at->address = binding->buffer->address + binding->offset_bytes;
  } else if (size_bytes > 0) {
    if (!clv__vnpu_space_is_host(instance->device->space) || binding->type.data == NULL) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT,
                            "'%s' is bound to host memory, which the device cannot reach: copy it in", name);
    }
    at->address = (uint64_t)(uintptr_t)binding->type.data;
  }
  size_t element = clv_dtype_size_bytes(binding->type.dtype);
  if (element > 0 && at->address % element != 0) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s' is bound at offset %llu, which is not aligned to its element", name,
                          (unsigned long long)binding->offset_bytes);
  }
  return CLV_OK;
}

static clv_status bind(clv_instance *instance, clv__vnpu_run *run, const clv_execute_args *args, clv_error *error) {
  const clv_executable *p = instance->program;
  if (args->input_count != p->input_count || args->output_count != p->output_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u inputs and %u outputs are bound, the program has %u and %u",
                          args->input_count, args->output_count, p->input_count, p->output_count);
  }
  for (uint32_t i = 0; i < p->input_count + p->output_count; ++i) {
    bool output = i >= p->input_count;
    const clv_binding *binding = output ? &args->outputs[i - p->input_count] : &args->inputs[i];
    uint32_t value = output ? p->outputs[i - p->input_count] : p->inputs[i];
    const char *name = clv__vnpu_value_name(p, value);
    run->operands[i] = (clv__vnpu_operand_at){.type = binding->type, .waits = true};
    run->operands[i].type.data = NULL;
    if (output && !p->is_static && binding->type.rank < 0) {
      if (args->allocate_output != NULL) continue;
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "output '%s' has no memory, and there is no allocate_output()", name);
    }
    CLV__TRY(clv__vnpu_binding_resolve(instance, binding, name, &run->operands[i], error));
    if (!p->is_static || clv__tensor_same_type(&binding->type, &p->types[value])) continue;
    char given[100], compiled[100];
    clv__tensor_text(&binding->type, given, sizeof given);
    clv__tensor_text(&p->types[value], compiled, sizeof compiled);
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s' is bound as %s, the program was compiled for %s", name, given,
                          compiled);
  }
  if (!p->is_static) {
    for (uint32_t i = 0; i < p->input_count; ++i) {
      if (run->operands[i].type.dtype == p->types[p->inputs[i]].dtype) continue;
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s' is bound as %s, the program was compiled for %s",
                            clv__vnpu_value_name(p, p->inputs[i]), clv_dtype_name(run->operands[i].type.dtype),
                            clv_dtype_name(p->types[p->inputs[i]].dtype));
    }
  }
  run->outputs = args->outputs;
  run->cookie = args->cookie;
  run->allocate_output = args->allocate_output;
  run->launch = (clv__vnpu_launch){.run = clv__vnpu_run_launch, .done = run_release};
  return CLV_OK;
}

clv_status clv__vnpu_instance_execute(clv_instance *instance, clv_stream *stream, clv_execute_args *args, clv_error *error) {
  clv__vnpu_queue *queue = &instance->device->queue;
  clv__vnpu_run *run = run_acquire(instance);
  clv_status status = bind(instance, run, args, error);
  if (status == CLV_OK) status = clv__vnpu_stream_launch(queue, stream, &run->launch, error);
  if (status != CLV_OK) {
    pthread_mutex_lock(&queue->lock);
    run_release(&run->launch);
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
  }
  return status;
}
