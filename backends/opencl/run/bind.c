/* Binds the arguments of an execution, and enqueues all steps of an instance (instance.h). */
#include "instance.h"

void clv__opencl_bound_release(clv_device *device, clv__opencl_bound *bound) {
  if (bound->is_owned) clv__opencl_memory_release(device, bound->memory);
  bound->memory = bound->source = NULL;
  bound->is_owned = false;
  bound->buffer_id = 0;
  bound->host = NULL;
}

/* ---- Bindings ---- */

static clv_status check_binding(const clv_tensor *expected, const clv_binding *binding, const char *what, uint32_t index,
                                bool shares_host, clv_error *error) {
  uint64_t size_bytes = (uint64_t)clv__opencl_count(expected) * clv_dtype_size_bytes(expected->dtype);
  if (!clv__tensor_same_type(expected, &binding->type)) {
    char is[100], should[100];
    clv__tensor_text(&binding->type, is, sizeof is);
    clv__tensor_text(expected, should, sizeof should);
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s %u is %s, but the instance was created for %s", what, index, is,
                          should);
  }
  if (size_bytes == 0) return CLV_OK;
  const clv_buffer *buffer = binding->buffer;
  if (buffer == NULL && (!shares_host || binding->type.data == NULL)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s %u has no memory on the device", what, index);
  }
  if (buffer == NULL ||
      (binding->offset_bytes <= buffer->size_bytes && size_bytes <= buffer->size_bytes - binding->offset_bytes)) {
    return CLV_OK;
  }
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "%s %u: %llu bytes at offset %llu do not fit the buffer of %llu bytes", what,
                        index, (unsigned long long)size_bytes, (unsigned long long)binding->offset_bytes,
                        (unsigned long long)buffer->size_bytes);
}

/* If the host did not know the size of an output in advance, asks the host to allocate memory for the type `expected`. */
static clv_status give_memory(const clv_execute_args *args, uint32_t index, const clv_tensor *expected, clv_error *error) {
  clv_binding *binding = &args->outputs[index];
  if (binding->type.rank != CLV_RANK_UNKNOWN) return CLV_OK;
  if (args->allocate_output == NULL) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "output %u has no memory, and there is no allocate_output()", index);
  }
  clv_tensor type = *expected;
  type.data = NULL;
  return args->allocate_output(args->cookie, index, &type, binding, error);
}

clv_status clv__opencl_instance_check(const clv_instance *instance, const clv_execute_args *args, clv_error *error) {
  const clv_executable *e = instance->executable;
  const clv__opencl_variant *variant = instance->variant;
  bool shares = variant->device->shares_host;
  if (args->input_count != e->input_count || args->output_count != e->output_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u inputs and %u outputs are bound, but the executable has %u and %u",
                          args->input_count, args->output_count, e->input_count, e->output_count);
  }
  for (uint32_t i = 0; i < e->input_count; ++i) {
    CLV__TRY(check_binding(&variant->input_types[i], &args->inputs[i], "input", i, shares, error));
  }
  for (uint32_t i = 0; i < e->output_count; ++i) {
    CLV__TRY(give_memory(args, i, &variant->values[e->outputs[i]].type, error));
    CLV__TRY(check_binding(&variant->values[e->outputs[i]].type, &args->outputs[i], "output", i, shares, error));
  }
  return CLV_OK;
}

/* Creates the memory object of one binding. */
static clv_status bind_memory(clv_device *device, clv__opencl_bound *bound, const clv_binding *binding, uint64_t size_bytes,
                              clv_error *error) {
  bound->is_owned = true;
  if (binding->buffer == NULL || size_bytes == 0) {
    if (device->shares_host) return clv__opencl_memory_wrap(device, binding->type.data, size_bytes, &bound->memory, error);
    return clv__opencl_memory_create(device, size_bytes, &bound->memory, error); /* the binding has no elements */
  }
  if (binding->offset_bytes % device->alignment_bytes == 0) {
    return clv__opencl_memory_part(device, binding->buffer->memory, binding->offset_bytes, size_bytes, &bound->memory, error);
  }
  if (binding->buffer->host != NULL) {
    return clv__opencl_memory_wrap(device, (uint8_t *)binding->buffer->host + binding->offset_bytes, size_bytes, &bound->memory,
                                   error);
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
  clv__opencl_bound_release(device, bound);
  bound->size_bytes = (uint64_t)clv__opencl_count(type) * clv_dtype_size_bytes(type->dtype);
  bound->offset_bytes = binding->offset_bytes;
  clv_status status = bind_memory(device, bound, binding, bound->size_bytes, error);
  for (uint32_t i = 0; i < bound->count && status == CLV_OK; ++i) {
    const clv__opencl_user *user = &instance->users[bound->first + i];
    status = clv__opencl_step_argument(device, instance, &instance->variant->steps.items[user->step],
                                       instance->kernels[user->step], user->argument, error);
  }
  if (status != CLV_OK) {
    clv__opencl_bound_release(device, bound);
    return status;
  }
  bound->buffer_id = id;
  bound->host = host;
  return CLV_OK;
}

clv_status clv__opencl_instance_bind(clv_device *device, clv_instance *instance, const clv_binding *inputs,
                                     const clv_binding *outputs, clv_error *error) {
  const clv_executable *e = instance->executable;
  const clv__opencl_variant *variant = instance->variant;
  CLV__TRY(clv__opencl_scratch_own(device, instance, error));
  for (uint32_t i = 0; i < e->input_count; ++i) {
    CLV__TRY(bind_one(device, instance, &instance->inputs[i], &inputs[i], &variant->input_types[i], error));
  }
  for (uint32_t i = 0; i < e->output_count; ++i) {
    CLV__TRY(bind_one(device, instance, &instance->outputs[i], &outputs[i], &variant->values[e->outputs[i]].type, error));
  }
  return CLV_OK;
}

/* ---- Enqueuing ---- */

/* For the bindings whose kernels use a copy (see clv__opencl_bound): copies the inputs to that copy if `in`, otherwise copies the
 * outputs from it. */
static clv_status move_bound(clv_device *device, clv__opencl_bound *bound, uint32_t count, bool in, cl_command_queue queue,
                             clv_error *error) {
  for (uint32_t i = 0; i < count; ++i) {
    const clv__opencl_bound *b = &bound[i];
    if (b->source == NULL) continue;
    CLV__OPENCL_TRY(
        error, "clEnqueueCopyBuffer",
        device->cl->clEnqueueCopyBuffer(queue, in ? b->source : b->memory, in ? b->memory : b->source, in ? b->offset_bytes : 0,
                                        in ? 0 : b->offset_bytes, b->size_bytes, 0, NULL, NULL));
  }
  return CLV_OK;
}

clv_status clv__opencl_instance_enqueue(clv_device *device, clv_instance *instance, clv_stream *stream, clv_error *error) {
  cl_command_queue queue;
  CLV__TRY(clv__opencl_stream_queue(device, stream, &queue, error));
  const clv__opencl_steps *steps = &instance->variant->steps;
  CLV__TRY(move_bound(device, instance->inputs, instance->executable->input_count, true, queue, error));
  for (size_t s = 0; s < steps->count; ++s) {
    CLV__TRY(clv__opencl_pace_launch(device, &stream->pace, queue, error));
    CLV__TRY(clv__opencl_step_enqueue(device, instance, &steps->items[s], instance->kernels[s], queue, error));
  }
  return move_bound(device, instance->outputs, instance->executable->output_count, false, queue, error);
}

clv_status clv__opencl_instance_record(clv_device *device, clv_instance *instance, cl_command_buffer_khr commands,
                                       cl_kernel *kernels, bool *fits, clv_error *error) {
  const clv__opencl_steps *steps = &instance->variant->steps;
  const clv_executable *e = instance->executable;
  *fits = true;
  for (uint32_t i = 0; i < e->input_count; ++i) *fits = *fits && instance->inputs[i].source == NULL;
  for (uint32_t i = 0; i < e->output_count; ++i) *fits = *fits && instance->outputs[i].source == NULL;
  for (size_t s = 0; s < steps->count && *fits; ++s) {
    CLV__TRY(clv__opencl_step_record(device, instance, &steps->items[s], commands, &kernels[s], error));
  }
  return CLV_OK;
}
