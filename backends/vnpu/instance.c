/* Instances: create them with their weights, provide their scratch memory, and enqueue their launches. */
#include "instance.h"

#include <string.h>

#include "base/error.h"

static clv_status check_inputs(const clv_executable *p, const clv_tensor *inputs, uint32_t input_count, clv_error *error) {
  if (input_count != p->input_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u inputs given, but the program has %u", input_count, p->input_count);
  }
  for (uint32_t i = 0; i < input_count; ++i) {
    const clv_tensor *type = &p->types[p->inputs[i]];
    bool fits = inputs[i].dtype == type->dtype && (type->rank < 0 || inputs[i].rank == type->rank);
    for (int32_t d = 0; fits && d < type->rank; ++d) fits = type->dims[d] < 0 || type->dims[d] == inputs[i].dims[d];
    if (fits) continue;
    char given[100], compiled[100];
    clv__tensor_text(&inputs[i], given, sizeof given);
    clv__tensor_text(type, compiled, sizeof compiled);
    return clv__error_set(error, CLV_NOT_SUPPORTED, "input '%s' is %s, but the program was compiled for %s: compile it again",
                          clv__vnpu_value_name(p, p->inputs[i]), given, compiled);
  }
  return CLV_OK;
}

static clv_status take_weights(clv_instance *instance, clv_weight *const *weights, uint32_t weight_count, clv_error *error) {
  const clv_executable *p = instance->program;
  if (weight_count != p->weight_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u weights given, but the program has %u", weight_count, p->weight_count);
  }
  for (uint32_t i = 0; i < weight_count; ++i) {
    const clv_tensor *type = &p->types[p->weights[i]];
    if (weights[i] == NULL || !clv__tensor_same_type(&weights[i]->type, type)) {
      char given[100] = "nothing", wanted[100];
      if (weights[i] != NULL) clv__tensor_text(&weights[i]->type, given, sizeof given);
      clv__tensor_text(type, wanted, sizeof wanted);
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "weight '%s' is %s, but the program needs %s", p->weight_names[i], given,
                            wanted);
    }
    instance->weights[i] = weights[i]->address;
  }
  return CLV_OK;
}

clv_status clv__vnpu_instance_list_init(clv_instance *instance, clv__arena *arena, clv__vnpu_list *list, clv_error *error) {
  *list = (clv__vnpu_list){
      .instance = instance, .program = instance->program, .space = instance->device->space, .weights = instance->weights};
  return clv__vnpu_list_init(list, arena, error);
}

static clv_status make_runs(clv_instance *instance, clv_error *error) {
  clv__vnpu_run *runs = clv__arena_allocate_zero(&instance->arena, CLV__VNPU_LAUNCHES, sizeof *runs);
  if (runs == NULL) return clv__error_memory(error, CLV__VNPU_LAUNCHES * sizeof *runs);
  for (int i = 0; i < CLV__VNPU_LAUNCHES; ++i) {
    CLV__TRY(clv__vnpu_instance_list_init(instance, &instance->arena, &runs[i].list, error));
    runs[i].next = instance->idle;
    instance->idle = &runs[i];
    ++instance->idle_count;
    ++instance->run_count;
  }
  return CLV_OK;
}

static clv_status init_instance(clv_instance *instance, const clv_tensor *inputs, uint32_t input_count,
                                clv_weight *const *weights, uint32_t weight_count, clv_error *error) {
  clv__arena *arena = &instance->arena;
  CLV__TRY(check_inputs(instance->program, inputs, input_count, error));
  if (!instance->program->is_static) clv__vnpu_compile_for(instance->program, inputs, &instance->own);
  if (instance->own != NULL) instance->program = instance->own;
  const clv_executable *p = instance->program;
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
  return make_runs(instance, error);
}

clv_status clv__vnpu_instance_create(clv_device *device, clv_executable *program, const clv_tensor *inputs, uint32_t input_count,
                                     clv_weight *const *weights, uint32_t weight_count, clv_instance **out, clv_error *error) {
  *out = NULL;
  clv_instance *instance = clv__allocate_zero(device->allocator, sizeof *instance);
  if (instance == NULL) return clv__error_memory(error, sizeof *instance);
  instance->device = device;
  instance->program = program;
  clv__arena_init(&instance->arena, device->allocator);
  clv_status status = init_instance(instance, inputs, input_count, weights, weight_count, error);
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
  while (instance->idle_count < instance->run_count && clv__vnpu_queue_wait(queue, NULL, 0)) continue;
  pthread_mutex_unlock(&queue->lock);
  clv__vnpu_space_free(instance->device->space, instance->own_scratch, instance->program->scratch_bytes);
  clv__vnpu_program_destroy(instance->own);
  clv__arena_finish(&instance->arena);
  clv__release(allocator, instance);
}

/* ---- Scratch ---- */

uint64_t clv__vnpu_instance_scratch_bytes(const clv_instance *instance) {
  return instance->program->is_static ? instance->program->scratch_bytes : 0;
}

clv_status clv__vnpu_instance_bind_scratch(clv_instance *instance, const clv_buffer *buffer, uint64_t offset_bytes,
                                           clv_error *error) {
  uint64_t needed = clv__vnpu_instance_scratch_bytes(instance), there = buffer != NULL ? buffer->size_bytes : 0;
  if (needed == 0) return CLV_OK;
  if (offset_bytes > there || needed > there - offset_bytes) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "scratch of %llu bytes at offset %llu does not fit its buffer of %llu bytes",
                          (unsigned long long)needed, (unsigned long long)offset_bytes, (unsigned long long)there);
  }
  void *data; /* ignored: the call only checks the address */
  clv_status status = clv__vnpu_space_reach(instance->device->space, buffer->address + offset_bytes, needed, &data, error);
  if (status != CLV_OK) return clv__error_prefix(error, status, "scratch");
  clv__vnpu_space_free(instance->device->space, instance->own_scratch, needed);
  instance->own_scratch = 0;
  instance->scratch = buffer->address + offset_bytes;
  return CLV_OK;
}

clv_status clv__vnpu_instance_need_scratch(clv_instance *instance, clv_error *error) {
  uint64_t needed = clv__vnpu_instance_scratch_bytes(instance);
  if (needed == 0 || instance->scratch != 0) return CLV_OK;
  clv_status status = clv__vnpu_space_allocate(instance->device->space, needed, &instance->own_scratch, error);
  if (status != CLV_OK) return clv__error_prefix(error, status, "scratch for an instance");
  instance->scratch = instance->own_scratch;
  return CLV_OK;
}

/* ---- Launches ---- */

/* Returns an unused run of the instance; waits if all are in use. Returns NULL if the device is closed in the meantime. */
static clv__vnpu_run *run_acquire(clv_instance *instance) {
  clv__vnpu_queue *queue = &instance->device->queue;
  bool open = true;
  pthread_mutex_lock(&queue->lock);
  while (instance->idle == NULL && open) open = clv__vnpu_queue_wait(queue, NULL, 0);
  clv__vnpu_run *run = instance->idle;
  if (run != NULL) {
    instance->idle = run->next;
    --instance->idle_count;
  }
  pthread_mutex_unlock(&queue->lock);
  return run;
}

/* Makes the run available again. The queue calls this function with its lock held. */
static void run_release(clv__vnpu_launch *launch) {
  clv__vnpu_run *run = (clv__vnpu_run *)launch;
  clv_instance *instance = run->list.instance;
  run->next = instance->idle;
  instance->idle = run;
  ++instance->idle_count;
}

static clv_status enqueue(clv__vnpu_run *run, clv_stream *stream, const clv_execute_args *args, clv_error *error) {
  clv_instance *instance = run->list.instance;
  CLV__TRY(clv__vnpu_instance_need_scratch(instance, error));
  CLV__TRY(clv__vnpu_list_bind(&run->list, args, error));
  if (instance->program->is_static) CLV__TRY(clv__vnpu_list_write(&run->list, instance->scratch, error));
  run->args = *args;
  run->launch = (clv__vnpu_launch){.run = clv__vnpu_run_launch, .done = run_release};
  return clv__vnpu_stream_launch(&instance->device->queue, stream, &run->launch, error);
}

clv_status clv__vnpu_instance_execute(clv_instance *instance, clv_stream *stream, clv_execute_args *args, clv_error *error) {
  clv__vnpu_queue *queue = &instance->device->queue;
  clv__vnpu_run *run = run_acquire(instance);
  if (run == NULL) return clv__error_set(error, CLV_DEVICE_ERROR, "the device was closed while a launch hung");
  clv_status status = enqueue(run, stream, args, error);
  if (status == CLV_OK) return status;
  pthread_mutex_lock(&queue->lock);
  run_release(&run->launch);
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
  return status;
}
