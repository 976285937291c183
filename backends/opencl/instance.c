/* See instance.h: making instances, their scratch, and what an execution binds. */
#include "instance.h"

/* ---- Arguments ---- */

static cl_mem memory_at(const clv_instance *instance, const clv__opencl_location *at) {
  switch (at->where) {
    case CLV__OPENCL_AT_INPUT:
      return instance->inputs[at->index].memory;
    case CLV__OPENCL_AT_OUTPUT:
      return instance->outputs[at->index].memory;
    case CLV__OPENCL_AT_WEIGHT:
      return instance->weights[at->index]->memory;
    case CLV__OPENCL_AT_CONSTANT:
      return instance->plan->constant_parts[at->index];
    case CLV__OPENCL_AT_SCRATCH:
      return instance->scratch[at->index];
    case CLV__OPENCL_AT_KEPT:
      return instance->kept[at->index];
    case CLV__OPENCL_AT_NOWHERE:
      break;
  }
  return NULL;
}

/* A message that says whose kernel it was. */
static clv_status step_failed(const clv_instance *instance, const clv__opencl_step *step, const char *call, cl_int code,
                              clv_error *error) {
  clv_status status = clv__opencl_failed(error, call, code);
  if (step->node == CLV__OPENCL_NONE) return clv__error_prefix(error, status, "copy of an output");
  const clv_node_info *node = &instance->executable->nodes[step->node];
  return clv__error_prefix(error, status, "node '%s' (%s): kernel %s", node->name, node->op,
                           step->is_copy ? "copy" : step->kernel);
}

static clv_status set_argument(clv_device *device, const clv_instance *instance, const clv__opencl_step *step, cl_kernel kernel,
                               uint32_t index, clv_error *error) {
  const clv__opencl_operand *operand = &step->operands[index];
  cl_int code;
  if (operand->means == CLV__OPENCL_MEANS_BYTES) {
    code = device->cl->clSetKernelArg(kernel, index, operand->size_bytes, operand->bytes);
  } else if (operand->means == CLV__OPENCL_MEANS_LOCAL) {
    code = device->cl->clSetKernelArg(kernel, index, operand->size_bytes, NULL);
  } else {
    cl_mem memory = memory_at(instance, &operand->at);
    code = device->cl->clSetKernelArg(kernel, index, sizeof memory, &memory);
  }
  return code == CL_SUCCESS ? CLV_OK : step_failed(instance, step, "clSetKernelArg", code, error);
}

static bool is_bound_later(const clv__opencl_operand *operand) {
  if (operand->means == CLV__OPENCL_MEANS_BYTES || operand->means == CLV__OPENCL_MEANS_LOCAL) return false;
  return operand->at.where == CLV__OPENCL_AT_INPUT || operand->at.where == CLV__OPENCL_AT_OUTPUT ||
         operand->at.where == CLV__OPENCL_AT_SCRATCH;
}

/* With the arguments that stay, or, `bound`, with all of them. */
static clv_status make_kernel(clv_device *device, const clv_instance *instance, const clv__opencl_step *step, bool bound,
                              cl_kernel *kernel, clv_error *error) {
  cl_int code;
  *kernel = device->cl->clCreateKernel(step->program->program, step->kernel, &code);
  if (*kernel == NULL) return step_failed(instance, step, "clCreateKernel", code, error);
  for (uint32_t i = 0; i < step->operand_count; ++i) {
    if (bound || !is_bound_later(&step->operands[i])) CLV__TRY(set_argument(device, instance, step, *kernel, i, error));
  }
  return CLV_OK;
}

static clv_status enqueue_step(clv_device *device, const clv_instance *instance, const clv__opencl_step *step, cl_kernel kernel,
                               cl_command_queue queue, clv_error *error) {
  if (step->is_copy) {
    cl_int code = device->cl->clEnqueueCopyBuffer(queue, memory_at(instance, &step->operands[1].at),
                                                  memory_at(instance, &step->operands[0].at), step->from_offset, step->to_offset,
                                                  step->size_bytes, 0, NULL, NULL);
    return code == CL_SUCCESS ? CLV_OK : step_failed(instance, step, "clEnqueueCopyBuffer", code, error);
  }
  cl_int code = device->cl->clEnqueueNDRangeKernel(queue, kernel, step->dimensions, NULL, step->global,
                                                   step->has_local ? step->local : NULL, 0, NULL, NULL);
  return code == CL_SUCCESS ? CLV_OK : step_failed(instance, step, "clEnqueueNDRangeKernel", code, error);
}

/* ---- Scratch ---- */

static void scratch_release(clv_device *device, clv_instance *instance) {
  for (size_t i = 0; instance->scratch != NULL && i < instance->plan->scratch.count; ++i) {
    clv__opencl_memory_release(device, instance->scratch[i]);
    instance->scratch[i] = NULL;
  }
  clv__opencl_memory_release(device, instance->scratch_memory);
  instance->scratch_memory = NULL;
  instance->has_scratch = false;
}

/* Cuts the pieces out of `memory`, from `offset` on, and gives them to the kernels. */
static clv_status scratch_cut(clv_device *device, clv_instance *instance, cl_mem memory, uint64_t offset, clv_error *error) {
  const clv__opencl_plan *plan = instance->plan;
  for (size_t i = 0; i < plan->scratch.count; ++i) {
    const clv__opencl_piece *piece = &plan->scratch.items[i];
    CLV__TRY(clv__opencl_memory_part(device, memory, offset + piece->offset, piece->size_bytes, &instance->scratch[i], error));
  }
  for (size_t s = 0; s < plan->steps.count; ++s) {
    const clv__opencl_step *step = &plan->steps.items[s];
    for (uint32_t i = 0; i < step->operand_count && !step->is_copy; ++i) {
      const clv__opencl_operand *operand = &step->operands[i];
      if (is_bound_later(operand) && operand->at.where == CLV__OPENCL_AT_SCRATCH) {
        CLV__TRY(set_argument(device, instance, step, instance->kernels[s], i, error));
      }
    }
  }
  instance->has_scratch = true;
  return CLV_OK;
}

static clv_status scratch_own(clv_device *device, clv_instance *instance, clv_error *error) {
  if (instance->has_scratch) return CLV_OK;
  if (instance->plan->scratch.count > 0) {
    CLV__TRY(clv__opencl_memory_create(device, instance->plan->scratch_bytes, &instance->scratch_memory, error));
  }
  clv_status status = scratch_cut(device, instance, instance->scratch_memory, 0, error);
  if (status != CLV_OK) scratch_release(device, instance);
  return status;
}

uint64_t clv__opencl_instance_scratch_bytes(clv_device *device, clv_instance *instance) {
  if (instance->plan->scratch_bytes == 0) return 0;
  return instance->plan->scratch_bytes + device->alignment_bytes; /* wherever it begins */
}

clv_status clv__opencl_instance_bind_scratch(clv_device *device, clv_instance *instance, clv_buffer *buffer,
                                             uint64_t offset_bytes, clv_error *error) {
  const uint64_t needed = instance->plan->scratch_bytes;
  uint64_t offset = clv__align_up(offset_bytes, device->alignment_bytes);
  if (needed == 0) return CLV_OK;
  if (buffer == NULL || offset > buffer->size_bytes || needed > buffer->size_bytes - offset) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "scratch of %llu bytes at %llu: the instance needs %llu",
                          (unsigned long long)(buffer == NULL ? 0 : buffer->size_bytes), (unsigned long long)offset_bytes,
                          (unsigned long long)clv__opencl_instance_scratch_bytes(device, instance));
  }
  scratch_release(device, instance);
  clv_status status = scratch_cut(device, instance, buffer->memory, offset, error);
  if (status != CLV_OK) scratch_release(device, instance);
  return status;
}

/* ---- Life ---- */

static void bound_release(clv_device *device, clv__opencl_bound *bound) {
  if (bound->is_owned) clv__opencl_memory_release(device, bound->memory);
  bound->memory = bound->source = NULL;
  bound->is_owned = false;
  bound->buffer_id = 0;
  bound->host = NULL;
}

static void destroy(clv_device *device, void *self) {
  clv_instance *instance = self;
  const clv__opencl_plan *plan = instance->plan;
  for (size_t s = 0; instance->kernels != NULL && s < plan->steps.count; ++s) {
    if (instance->kernels[s] != NULL) device->cl->clReleaseKernel(instance->kernels[s]);
  }
  if (plan != NULL) scratch_release(device, instance);
  for (size_t i = 0; instance->kept != NULL && i < plan->kept.count; ++i) clv__opencl_memory_release(device, instance->kept[i]);
  for (uint32_t i = 0; instance->inputs != NULL && i < instance->executable->input_count; ++i) {
    bound_release(device, &instance->inputs[i]);
  }
  for (uint32_t i = 0; instance->outputs != NULL && i < instance->executable->output_count; ++i) {
    bound_release(device, &instance->outputs[i]);
  }
  clv__arena_finish(&instance->arena);
  if (instance->owns_plan) clv__opencl_plan_destroy(instance->plan);
  clv__opencl_object_free(device, instance);
}

void clv__opencl_instance_destroy(clv_device *device, clv_instance *instance) {
  if (instance != NULL) destroy(device, instance);
}

/* Which arguments refer to which binding: two walks, counting and filling. */
static clv_status index_users(clv_instance *instance, clv_error *error) {
  const clv__opencl_steps *steps = &instance->plan->steps;
  uint32_t total = 0;
  for (int filling = 0; filling < 2; ++filling) {
    for (size_t s = 0; s < steps->count; ++s) {
      for (uint32_t i = 0; i < steps->items[s].operand_count && !steps->items[s].is_copy; ++i) {
        const clv__opencl_operand *operand = &steps->items[s].operands[i];
        if (!is_bound_later(operand) || operand->at.where == CLV__OPENCL_AT_SCRATCH) continue;
        clv__opencl_bound *bound =
            operand->at.where == CLV__OPENCL_AT_INPUT ? &instance->inputs[operand->at.index] : &instance->outputs[operand->at.index];
        if (filling == 1) instance->users[bound->first + bound->count] = (clv__opencl_user){(uint32_t)s, i};
        ++bound->count;
      }
    }
    if (filling == 1) break;
    for (uint32_t i = 0; i < instance->executable->input_count + instance->executable->output_count; ++i) {
      clv__opencl_bound *bound = i < instance->executable->input_count ? &instance->inputs[i]
                                                                        : &instance->outputs[i - instance->executable->input_count];
      bound->first = total;
      total += bound->count;
      bound->count = 0;
    }
    instance->users = clv__arena_allocate_zero(&instance->arena, total, sizeof *instance->users);
    if (instance->users == NULL) return clv__error_memory(error, total * sizeof *instance->users);
  }
  return CLV_OK;
}

static clv_status make_kernels(clv_device *device, clv_instance *instance, clv_error *error) {
  const clv__opencl_steps *steps = &instance->plan->steps;
  for (size_t s = 0; s < steps->count; ++s) {
    if (!steps->items[s].is_copy) CLV__TRY(make_kernel(device, instance, &steps->items[s], false, &instance->kernels[s], error));
  }
  return CLV_OK;
}

/* Memory that is written once, now. */
static clv_status prepare(clv_device *device, clv_instance *instance, clv_error *error) {
  const clv__opencl_plan *plan = instance->plan;
  for (size_t i = 0; i < plan->kept.count; ++i) {
    CLV__TRY(clv__opencl_memory_create(device, plan->kept.items[i].size_bytes, &instance->kept[i], error));
  }
  if (plan->once.count == 0) return CLV_OK;
  clv_status status = CLV_OK;
  pthread_mutex_lock(&device->service_lock);
  for (size_t s = 0; s < plan->once.count && status == CLV_OK; ++s) {
    cl_kernel kernel = NULL;
    status = make_kernel(device, instance, &plan->once.items[s], true, &kernel, error);
    if (status == CLV_OK) status = enqueue_step(device, instance, &plan->once.items[s], kernel, device->service, error);
    if (kernel != NULL) device->cl->clReleaseKernel(kernel);
  }
  cl_int code = device->cl->clFinish(device->service);
  pthread_mutex_unlock(&device->service_lock);
  if (status == CLV_OK && code != CL_SUCCESS) status = clv__opencl_failed(error, "clFinish", code);
  return status;
}

static bool same_types(const clv_tensor *a, const clv_tensor *b, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (!clv__tensor_is_static(&a[i]) || !clv__tensor_same_type(&a[i], &b[i])) return false;
  }
  return true;
}

/* The executable's plan where the shapes are those of compile(), else one of the instance's own. */
static clv_status take_plan(clv_instance *instance, const clv_tensor *inputs, clv_error *error) {
  clv_executable *e = instance->executable;
  if (e->plan != NULL && same_types(e->plan->input_types, inputs, e->input_count)) {
    instance->plan = e->plan;
    return CLV_OK;
  }
  CLV__TRY(clv__opencl_plan_make(e, inputs, &instance->plan, error));
  instance->owns_plan = true;
  return clv__opencl_plan_finish(instance->plan, error);
}

static clv_status fill(clv_device *device, clv_instance *instance, const clv_tensor *inputs, clv_weight *const *weights,
                       clv_error *error) {
  const clv_executable *e = instance->executable;
  clv__arena *arena = &instance->arena;
  CLV__TRY(take_plan(instance, inputs, error));
  const clv__opencl_plan *plan = instance->plan;
  instance->kernels = clv__arena_allocate_zero(arena, plan->steps.count, sizeof *instance->kernels);
  instance->scratch = clv__arena_allocate_zero(arena, plan->scratch.count, sizeof *instance->scratch);
  instance->kept = clv__arena_allocate_zero(arena, plan->kept.count, sizeof *instance->kept);
  instance->inputs = clv__arena_allocate_zero(arena, e->input_count, sizeof *instance->inputs);
  instance->outputs = clv__arena_allocate_zero(arena, e->output_count, sizeof *instance->outputs);
  instance->weights = clv__arena_copy(arena, weights, e->weight_count * sizeof *weights);
  if (instance->kernels == NULL || instance->scratch == NULL || instance->kept == NULL || instance->inputs == NULL ||
      instance->outputs == NULL || instance->weights == NULL) {
    return clv__error_memory(error, plan->steps.count * sizeof *instance->kernels);
  }
  CLV__TRY(index_users(instance, error));
  CLV__TRY(prepare(device, instance, error));
  return make_kernels(device, instance, error);
}

static clv_status check_weights(const clv_executable *e, clv_weight *const *weights, uint32_t weight_count, clv_error *error) {
  if (weight_count != e->weight_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u weights where the executable has %u", weight_count, e->weight_count);
  }
  for (uint32_t i = 0; i < weight_count; ++i) {
    const clv_tensor *expected = &e->values[e->weights[i]].declared;
    if (weights[i] != NULL && clv__tensor_same_type(&weights[i]->type, expected)) continue;
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "weight '%s' is not of the type that the executable was compiled for",
                          e->weight_names[i]);
  }
  return CLV_OK;
}

clv_status clv__opencl_instance_create(clv_device *device, clv_executable *executable, const clv_tensor *inputs,
                                       uint32_t input_count, clv_weight *const *weights, uint32_t weight_count,
                                       clv_instance **out, clv_error *error) {
  *out = NULL;
  if (input_count != executable->input_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u inputs where the executable has %u", input_count,
                          executable->input_count);
  }
  CLV__TRY(check_weights(executable, weights, weight_count, error));
  clv_instance *instance = clv__opencl_object_new(device, sizeof *instance, destroy);
  if (instance == NULL) return clv__error_memory(error, sizeof *instance);
  instance->executable = executable;
  clv__arena_init(&instance->arena, device->allocator);
  clv_status status = fill(device, instance, inputs, weights, error);
  if (status != CLV_OK) {
    destroy(device, instance);
    return status;
  }
  *out = instance;
  return CLV_OK;
}

/* ---- Bindings ---- */

static clv_status check_binding(const clv_tensor *expected, const clv_binding *binding, const char *what, uint32_t index,
                                bool shares_host, clv_error *error) {
  uint64_t size_bytes = (uint64_t)clv__opencl_count(expected) * clv_dtype_size_bytes(expected->dtype);
  if (!clv__tensor_same_type(expected, &binding->type)) {
    char is[100], should[100];
    clv__tensor_text(&binding->type, is, sizeof is);
    clv__tensor_text(expected, should, sizeof should);
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s %u is %s, the instance is for %s", what, index, is, should);
  }
  if (size_bytes == 0) return CLV_OK;
  const clv_buffer *buffer = binding->buffer;
  if (buffer == NULL && (!shares_host || binding->type.data == NULL)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s %u has no memory on the device", what, index);
  }
  if (buffer == NULL || (binding->offset_bytes <= buffer->size_bytes && size_bytes <= buffer->size_bytes - binding->offset_bytes)) {
    return CLV_OK;
  }
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s %u: %llu bytes at %llu do not fit the buffer of %llu", what, index,
                        (unsigned long long)size_bytes, (unsigned long long)binding->offset_bytes,
                        (unsigned long long)buffer->size_bytes);
}

clv_status clv__opencl_instance_check(const clv_instance *instance, const clv_execute_args *args, clv_error *error) {
  const clv_executable *e = instance->executable;
  const clv__opencl_plan *plan = instance->plan;
  bool shares = plan->device->shares_host;
  if (args->input_count != e->input_count || args->output_count != e->output_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u inputs and %u outputs where the executable has %u and %u",
                          args->input_count, args->output_count, e->input_count, e->output_count);
  }
  for (uint32_t i = 0; i < e->input_count; ++i) {
    CLV__TRY(check_binding(&plan->input_types[i], &args->inputs[i], "input", i, shares, error));
  }
  for (uint32_t i = 0; i < e->output_count; ++i) {
    CLV__TRY(check_binding(&plan->values[e->outputs[i]].type, &args->outputs[i], "output", i, shares, error));
  }
  return CLV_OK;
}

/* The memory of one binding. */
static clv_status bind_memory(clv_device *device, clv__opencl_bound *bound, const clv_binding *binding, uint64_t size_bytes,
                              clv_error *error) {
  bound->is_owned = true;
  if (binding->buffer == NULL || size_bytes == 0) {
    if (device->shares_host) return clv__opencl_memory_wrap(device, binding->type.data, size_bytes, &bound->memory, error);
    return clv__opencl_memory_create(device, size_bytes, &bound->memory, error); /* without elements */
  }
  if (binding->offset_bytes % device->alignment_bytes == 0) {
    return clv__opencl_memory_part(device, binding->buffer->memory, binding->offset_bytes, size_bytes, &bound->memory, error);
  }
  if (binding->buffer->host != NULL) {
    return clv__opencl_memory_wrap(device, (uint8_t *)binding->buffer->host + binding->offset_bytes, size_bytes, &bound->memory, error);
  }
  bound->source = binding->buffer->memory;
  return clv__opencl_memory_create(device, size_bytes, &bound->memory, error);
}

static clv_status bind_one(clv_device *device, clv_instance *instance, clv__opencl_bound *bound, const clv_binding *binding,
                           const clv_tensor *type, clv_error *error) {
  uint64_t id = binding->buffer != NULL ? binding->buffer->id : 0;
  const void *host = binding->buffer == NULL ? binding->type.data : NULL;
  if (bound->memory != NULL && bound->buffer_id == id && bound->host == host && bound->offset_bytes == binding->offset_bytes) {
    return CLV_OK;
  }
  bound_release(device, bound);
  bound->size_bytes = (uint64_t)clv__opencl_count(type) * clv_dtype_size_bytes(type->dtype);
  bound->offset_bytes = binding->offset_bytes;
  clv_status status = bind_memory(device, bound, binding, bound->size_bytes, error);
  for (uint32_t i = 0; i < bound->count && status == CLV_OK; ++i) {
    const clv__opencl_user *user = &instance->users[bound->first + i];
    status = set_argument(device, instance, &instance->plan->steps.items[user->step], instance->kernels[user->step], user->argument,
                          error);
  }
  if (status != CLV_OK) {
    bound_release(device, bound);
    return status;
  }
  bound->buffer_id = id;
  bound->host = host;
  return CLV_OK;
}

clv_status clv__opencl_instance_bind(clv_device *device, clv_instance *instance, const clv_binding *inputs,
                                     const clv_binding *outputs, clv_error *error) {
  const clv_executable *e = instance->executable;
  const clv__opencl_plan *plan = instance->plan;
  CLV__TRY(scratch_own(device, instance, error));
  for (uint32_t i = 0; i < e->input_count; ++i) {
    CLV__TRY(bind_one(device, instance, &instance->inputs[i], &inputs[i], &plan->input_types[i], error));
  }
  for (uint32_t i = 0; i < e->output_count; ++i) {
    CLV__TRY(bind_one(device, instance, &instance->outputs[i], &outputs[i], &plan->values[e->outputs[i]].type, error));
  }
  return CLV_OK;
}

/* ---- Enqueuing ---- */

/* Bindings whose offset no kernel argument can begin at go through memory of the instance's own. */
static clv_status move_bound(clv_device *device, clv__opencl_bound *bound, uint32_t count, bool in, cl_command_queue queue,
                             clv_error *error) {
  for (uint32_t i = 0; i < count; ++i) {
    const clv__opencl_bound *b = &bound[i];
    if (b->source == NULL) continue;
    CLV__OPENCL_TRY(error, "clEnqueueCopyBuffer",
                    device->cl->clEnqueueCopyBuffer(queue, in ? b->source : b->memory, in ? b->memory : b->source,
                                                    in ? b->offset_bytes : 0, in ? 0 : b->offset_bytes, b->size_bytes, 0, NULL, NULL));
  }
  return CLV_OK;
}

clv_status clv__opencl_instance_enqueue(clv_device *device, clv_instance *instance, cl_command_queue queue, clv_error *error) {
  const clv__opencl_steps *steps = &instance->plan->steps;
  CLV__TRY(move_bound(device, instance->inputs, instance->executable->input_count, true, queue, error));
  for (size_t s = 0; s < steps->count; ++s) {
    CLV__TRY(enqueue_step(device, instance, &steps->items[s], instance->kernels[s], queue, error));
  }
  return move_bound(device, instance->outputs, instance->executable->output_count, false, queue, error);
}

static clv_status record_step(clv_device *device, const clv_instance *instance, const clv__opencl_step *step,
                              cl_command_buffer_khr commands, cl_kernel *kernel, clv_error *error) {
  cl_int code;
  if (step->is_copy) {
    code = device->commands.copy(commands, NULL, memory_at(instance, &step->operands[1].at),
                                 memory_at(instance, &step->operands[0].at), step->from_offset, step->to_offset, step->size_bytes,
                                 0, NULL, NULL, NULL);
    return code == CL_SUCCESS ? CLV_OK : step_failed(instance, step, "clCommandCopyBufferKHR", code, error);
  }
  CLV__TRY(make_kernel(device, instance, step, true, kernel, error));
  code = device->commands.kernel(commands, NULL, NULL, *kernel, step->dimensions, NULL, step->global,
                                 step->has_local ? step->local : NULL, 0, NULL, NULL, NULL);
  return code == CL_SUCCESS ? CLV_OK : step_failed(instance, step, "clCommandNDRangeKernelKHR", code, error);
}

clv_status clv__opencl_instance_record(clv_device *device, clv_instance *instance, cl_command_buffer_khr commands,
                                       cl_kernel *kernels, bool *fits, clv_error *error) {
  const clv__opencl_steps *steps = &instance->plan->steps;
  const clv_executable *e = instance->executable;
  *fits = true;
  for (uint32_t i = 0; i < e->input_count; ++i) *fits = *fits && instance->inputs[i].source == NULL;
  for (uint32_t i = 0; i < e->output_count; ++i) *fits = *fits && instance->outputs[i].source == NULL;
  for (size_t s = 0; s < steps->count && *fits; ++s) {
    CLV__TRY(record_step(device, instance, &steps->items[s], commands, &kernels[s], error));
  }
  return CLV_OK;
}
