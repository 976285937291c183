/* See capture.h. */
#include "capture.h"

typedef struct entry {
  clv_instance *instance;
  clv_binding *bindings; /* the recorded bindings: inputs, then outputs */
  /* The memory that the command buffer refers to. It is retained, because an instance that is bound again releases its memory. */
  cl_mem *held;
  uint32_t held_count;
  cl_kernel *kernels; /* one kernel object per step; NULL without a command buffer */
  size_t kernel_count;
} entry;

struct clv_captured {
  clv__object object;
  entry *entries;
  size_t count, capacity;
  cl_command_buffer_khr commands; /* NULL: a launch enqueues the steps of each entry one by one */
};

/* ---- Creation and destruction ---- */

static void drop_commands(clv_device *device, clv_captured *captured) {
  if (captured->commands != NULL) device->commands.release(captured->commands);
  captured->commands = NULL;
  for (size_t i = 0; i < captured->count; ++i) {
    entry *e = &captured->entries[i];
    for (uint32_t k = 0; k < e->held_count; ++k) clv__opencl_memory_release(device, e->held[k]);
    for (size_t k = 0; e->kernels != NULL && k < e->kernel_count; ++k) {
      if (e->kernels[k] != NULL) device->cl->clReleaseKernel(e->kernels[k]);
    }
    clv__release(device->allocator, e->kernels);
    e->kernels = NULL;
    e->held_count = 0;
  }
}

static void destroy(clv_device *device, void *self) {
  clv_captured *captured = self;
  drop_commands(device, captured);
  for (size_t i = 0; i < captured->count; ++i) {
    clv__release(device->allocator, captured->entries[i].bindings);
    clv__release(device->allocator, captured->entries[i].held);
  }
  clv__release(device->allocator, captured->entries);
  clv__object_free(&device->objects, captured);
}

void clv__opencl_captured_destroy(clv_device *device, clv_captured *captured) {
  if (captured != NULL) destroy(device, captured);
}

uint64_t clv__opencl_captured_bytes(clv_device *device, const clv_captured *captured) {
  (void)device;
  enum { COMMAND_BYTES = 1024 }; /* an estimate: drivers do not report the size of a recorded command */
  uint64_t total = sizeof *captured + captured->capacity * sizeof *captured->entries;
  for (size_t i = 0; i < captured->count; ++i) {
    const clv_instance *instance = captured->entries[i].instance;
    const uint64_t ends = (uint64_t)instance->executable->input_count + instance->executable->output_count;
    total += ends * (sizeof(clv_binding) + sizeof(cl_mem));
    if (captured->commands != NULL) total += instance->variant->steps.count * COMMAND_BYTES;
  }
  return total;
}

/* ---- Recording ---- */

clv_status clv__opencl_capture_begin(clv_device *device, clv_stream *stream, clv_capture_mode mode, clv_error *error) {
  (void)mode; /* irrelevant: the stream records into a list of its own, which affects no other thread */
  if (!device->can_capture) return clv__error_set(error, CLV_NOT_SUPPORTED, "option capture=off disables captures");
  if (stream->recording != NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "the stream is already capturing");
  stream->recording = clv__object_new(&device->objects, sizeof *stream->recording, destroy);
  return stream->recording == NULL ? clv__error_memory(error, sizeof *stream->recording) : CLV_OK;
}

static void copy_bindings(entry *e, const clv_execute_args *args) {
  const uint32_t inputs = e->instance->executable->input_count, outputs = e->instance->executable->output_count;
  if (inputs > 0) memcpy(e->bindings, args->inputs, inputs * sizeof *args->inputs);
  if (outputs > 0) memcpy(e->bindings + inputs, args->outputs, outputs * sizeof *args->outputs);
}

clv_status clv__opencl_capture_add(clv_device *device, clv_captured *captured, clv_instance *instance,
                                   const clv_execute_args *args, clv_error *error) {
  const size_t ends = (size_t)instance->executable->input_count + instance->executable->output_count;
  if (!clv__array_reserve(device->allocator, (void **)&captured->entries, &captured->capacity, captured->count + 1,
                          sizeof *captured->entries, captured->count)) {
    return clv__error_memory(error, (captured->count + 1) * sizeof *captured->entries);
  }
  entry e = {.instance = instance,
             .bindings = clv__allocate(device->allocator, ends * sizeof *e.bindings),
             .held = clv__allocate(device->allocator, ends * sizeof *e.held)};
  if (e.bindings == NULL || e.held == NULL) {
    clv__release(device->allocator, e.held);
    clv__release(device->allocator, e.bindings);
    return clv__error_memory(error, ends * sizeof *e.bindings);
  }
  copy_bindings(&e, args);
  captured->entries[captured->count++] = e;
  return CLV_OK;
}

static clv_status bind_entry(clv_device *device, const entry *e, clv_error *error) {
  return clv__opencl_instance_bind(device, e->instance, e->bindings, e->bindings + e->instance->executable->input_count, error);
}

static void hold_entry(clv_device *device, entry *e) {
  const clv_executable *x = e->instance->executable;
  e->held_count = 0;
  for (uint32_t i = 0; i < x->input_count + x->output_count; ++i) {
    cl_mem memory = i < x->input_count ? e->instance->inputs[i].memory : e->instance->outputs[i - x->input_count].memory;
    if (memory != NULL && device->cl->clRetainMemObject(memory) == CL_SUCCESS) e->held[e->held_count++] = memory;
  }
}

/* Records all executions into a command buffer. Leaves `commands` NULL if some step cannot be recorded. */
static clv_status record(clv_device *device, clv_captured *captured, cl_command_queue queue, clv_error *error) {
  const cl_command_buffer_properties_khr properties[] = {CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
  cl_int code;
  captured->commands = device->commands.create(1, &queue, properties, &code);
  if (captured->commands == NULL) return clv__opencl_failed(error, "clCreateCommandBufferKHR", code);
  clv_status status = CLV_OK;
  bool fits = true;
  for (size_t i = 0; i < captured->count && status == CLV_OK && fits; ++i) {
    entry *e = &captured->entries[i];
    const size_t room = e->instance->variant->steps.count * sizeof *e->kernels;
    e->kernel_count = e->instance->variant->steps.count;
    e->kernels = clv__allocate_zero(device->allocator, room);
    status = e->kernels == NULL ? clv__error_memory(error, room) : bind_entry(device, e, error);
    if (status == CLV_OK) hold_entry(device, e);
    if (status == CLV_OK) {
      status = clv__opencl_instance_record(device, e->instance, captured->commands, e->kernels, &fits, error);
    }
  }
  if (status == CLV_OK && fits) {
    code = device->commands.finalize(captured->commands);
    if (code != CL_SUCCESS) status = clv__opencl_failed(error, "clFinalizeCommandBufferKHR", code);
  }
  if (status != CLV_OK || !fits) drop_commands(device, captured);
  return status;
}

clv_status clv__opencl_capture_end(clv_device *device, clv_stream *stream, clv_captured **out, clv_error *error) {
  clv_captured *captured = stream->recording;
  if (out != NULL) *out = NULL;
  if (captured == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "the stream is not capturing");
  stream->recording = NULL;
  clv_status status = CLV_OK;
  if (out != NULL && captured->count > 0 && clv__opencl_capture_choice(device) == CLV__OPENCL_CAPTURE_BUFFER) {
    cl_command_queue queue;
    status = clv__opencl_stream_queue(device, stream, &queue, error);
    if (status == CLV_OK) status = record(device, captured, queue, error);
  }
  if (status == CLV_OK && out != NULL)
    *out = captured;
  else
    destroy(device, captured);
  return status;
}

/* ---- Launching ---- */

clv_status clv__opencl_captured_launch(clv_device *device, clv_captured *captured, clv_stream *stream, clv_error *error) {
  cl_command_queue queue;
  if (stream->recording != NULL)
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "a captured graph cannot be launched on a stream that is capturing");
  CLV__TRY(clv__opencl_pace_check(&stream->pace, error));
  CLV__TRY(clv__opencl_stream_queue(device, stream, &queue, error));
  for (size_t i = 0; i < captured->count; ++i)
    CLV__TRY(clv__opencl_faults_watch(device, captured->entries[i].instance->faults, &stream->watch, error));
  if (captured->commands != NULL) {
    CLV__OPENCL_TRY(error, "clEnqueueCommandBufferKHR", device->commands.enqueue(1, &queue, captured->commands, 0, NULL, NULL));
  }
  for (size_t i = 0; i < captured->count; ++i) {
    clv_instance *instance = captured->entries[i].instance;
    if (captured->commands == NULL) {
      CLV__TRY(bind_entry(device, &captured->entries[i], error));
      CLV__TRY(clv__opencl_instance_enqueue(device, instance, stream, error));
    }
    CLV__TRY(clv__opencl_faults_read(device, instance->faults, queue, error));
  }
  return CLV_OK;
}

/* After rebinding, the executions are enqueued from the list, because a command buffer would have to be recorded again every
 * time. */
clv_status clv__opencl_captured_bind(clv_device *device, clv_captured *captured, uint32_t index, const clv_execute_args *args,
                                     clv_error *error) {
  if (index >= captured->count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "execution %u does not exist: the capture has %zu executions", index,
                          captured->count);
  }
  CLV__TRY(clv__opencl_instance_check(captured->entries[index].instance, args, error));
  drop_commands(device, captured);
  copy_bindings(&captured->entries[index], args);
  return CLV_OK;
}
