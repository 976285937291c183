/* Creates executables and instances. If all shapes are known, an instance runs a variant: the nodes prepared for these shapes
 * (passes/variant.h). Otherwise it runs the nodes one by one (run/dynamic.c). */
#include <stddef.h>

#include "backends/cpu/run/executable.h"
#include "backends/cpu/run/stream.h"
#include "backends/cpu/tune/tune.h"

static clv_status compile_into(clv_executable *made, const clv_graph_view *graph, const clv_compile_options *options,
                               clv_error *error) {
  clv__cpu_program *program = &made->program;
  CLV__TRY(clv__cpu_program_read(program, made->device, graph, error));
  program->deterministic = options != NULL && options->deterministic;
  program->tune = options != NULL && options->tune;
  const size_t with_precision = offsetof(clv_compile_options, precision) + sizeof options->precision;
  if (options != NULL && options->struct_size >= with_precision && options->precision == CLV_BF16) {
    program->precision = CLV_BF16;
  }
  clv__cpu_constants_init(&made->constants, program);
  made->constants.graph = graph;
  clv_tensor *inputs = clv__arena_allocate_zero(&program->arena, program->input_count, sizeof *inputs);
  if (inputs == NULL) return clv__error_memory(error, program->input_count * sizeof *inputs);
  for (uint32_t i = 0; i < program->input_count; ++i) inputs[i] = program->values[program->inputs[i]].type;
  CLV__TRY(clv__cpu_variant_make(program, &made->constants, graph, inputs, &made->variant, error));
  if (made->variant == NULL) CLV__TRY(clv__cpu_constants_keep_all(&made->constants, error));
  made->constants.graph = NULL;
  clv__cpu_program_detach(program);
  return CLV_OK;
}

clv_status clv__cpu_compile(clv_device *device, const clv_graph_view *graph, const clv_compile_options *options,
                            clv_executable **executable, clv_error *error) {
  *executable = NULL;
  clv_executable *made = clv__allocate_zero(device->allocator, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  made->device = device;
  const int threads = clv__cpu_threads_enter_compiling(device);
  clv_status status = compile_into(made, graph, options, error);
  clv__cpu_threads_leave(threads);
  clv__cpu_notes_save(device->notes);
  if (status != CLV_OK) {
    clv__cpu_executable_destroy(device, made);
    return status;
  }
  *executable = made;
  return CLV_OK;
}

void clv__cpu_executable_destroy(clv_device *device, clv_executable *executable) {
  if (executable == NULL) return;
  clv__cpu_variant_destroy(executable->variant);
  clv__cpu_constants_finish(&executable->constants);
  clv__cpu_program_finish(&executable->program);
  clv__release(device->allocator, executable);
}

void clv__cpu_executable_info(clv_device *device, clv_executable *executable, clv_executable_info *info) {
  (void)device;
  info->weight_count = 0;
  info->weights = NULL;
  info->resident_bytes = executable->constants.resident_bytes + executable->program.model_bytes;
  info->scratch_bytes = executable->variant != NULL ? executable->variant->memory_bytes : 0;
}

static bool fits(const clv__cpu_variant *variant, const clv_tensor *inputs) {
  for (uint32_t i = 0; i < variant->program->input_count; ++i) {
    if (!clv__tensor_same_type(&variant->input_types[i], &inputs[i])) return false;
  }
  return true;
}

static clv_status prepare(clv_instance *instance, const clv_tensor *inputs, uint32_t input_count, clv_error *error) {
  clv_executable *executable = instance->executable;
  clv__cpu_program *program = &executable->program;
  if (input_count != program->input_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u inputs given, but the partition has %u", input_count,
                          program->input_count);
  }
  const clv__cpu_variant *variant = executable->variant;
  if (variant == NULL || !fits(variant, inputs)) {
    CLV__TRY(clv__cpu_program_open(program, error));
    CLV__TRY(clv__cpu_variant_make(program, &executable->constants, program->view, inputs, &instance->own, error));
    variant = instance->own;
  }
  if (variant == NULL) return CLV_OK;
  return clv__cpu_run_create(variant, &instance->run, error);
}

static void clear(clv_instance *instance) {
  clv__cpu_run_destroy(instance->run);
  clv__cpu_variant_destroy(instance->own);
  clv__release(instance->executable->device->allocator, instance->node_ns);
  instance->node_ns = NULL;
  instance->run = NULL;
  instance->own = NULL;
}

clv_status clv__cpu_instance_create(clv_device *device, clv_executable *executable, const clv_tensor *inputs,
                                    uint32_t input_count, clv_weight *const *weights, uint32_t weight_count,
                                    clv_instance **instance, clv_error *error) {
  (void)weights;
  *instance = NULL;
  if (weight_count != 0) return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u weights given; expected none", weight_count);
  clv_instance *made = clv__allocate_zero(device->allocator, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  made->executable = executable;
  const int threads = clv__cpu_threads_enter_compiling(device);
  clv_status status = prepare(made, inputs, input_count, error);
  clv__cpu_threads_leave(threads);
  clv__cpu_notes_save(device->notes);
  if (status != CLV_OK) {
    clv__cpu_instance_destroy(device, made);
    return status;
  }
  *instance = made;
  return CLV_OK;
}

void clv__cpu_instance_destroy(clv_device *device, clv_instance *instance) {
  if (instance == NULL) return;
  clear(instance);
  clv__release(device->allocator, instance);
}

clv_status clv__cpu_instance_resize(clv_device *device, clv_instance *instance, const clv_tensor *inputs, uint32_t input_count,
                                    clv_error *error) {
  clv_instance other = {.executable = instance->executable};
  const int threads = clv__cpu_threads_enter_compiling(device);
  clv_status status = prepare(&other, inputs, input_count, error);
  clv__cpu_threads_leave(threads);
  if (status != CLV_OK) {
    clear(&other);
    return status;
  }
  clear(instance);
  other.prepared = instance->prepared + 1;
  atomic_fetch_add_explicit(&device->changes, 1, memory_order_release);
  *instance = other;
  return CLV_OK;
}

uint64_t clv__cpu_instance_scratch_bytes(clv_device *device, clv_instance *instance) {
  (void)device;
  return instance->run != NULL ? clv__cpu_run_bytes(instance->run) : 0;
}

clv_status clv__cpu_instance_bind_scratch(clv_device *device, clv_instance *instance, clv_buffer *buffer, uint64_t offset_bytes,
                                          clv_error *error) {
  const uint64_t size_bytes = clv__cpu_instance_scratch_bytes(device, instance);
  if (size_bytes == 0) return CLV_OK;
  void *memory = buffer != NULL ? clv__cpu_buffer_part(buffer, offset_bytes, size_bytes) : NULL;
  if (memory == NULL) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "scratch needs %llu bytes at offset %llu of a buffer, but no buffer of that size is given",
                          (unsigned long long)size_bytes, (unsigned long long)offset_bytes);
  }
  if ((uintptr_t)memory % CLV__ALIGNMENT != 0) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "scratch at offset %llu is not aligned to %u bytes",
                          (unsigned long long)offset_bytes, CLV__ALIGNMENT);
  }
  return clv__cpu_run_place(instance->run, memory, error);
}

clv_status clv__cpu_execute(clv_device *device, clv_instance *instance, clv_stream *stream, clv_execute_args *args,
                            clv_error *error) {
  if (stream != NULL && stream->recording != NULL) return clv__cpu_record(stream->recording, instance, args, error);
  int threads = 0;
  CLV__TRY(clv__cpu_threads_enter(device, &threads, error));
  const clv__stop *stop = stream != NULL ? &stream->stop : NULL;
  const clv_status status = instance->run != NULL ? clv__cpu_run_execute(instance->run, args, stop, error)
                                                  : clv__cpu_instance_walk(instance, args, stop, error);
  clv__cpu_threads_leave(threads);
  return clv__cpu_stream_note(stream, status);
}

clv_status clv__cpu_output_place(clv_execute_args *args, uint32_t index, const clv_tensor *type, clv_error *error) {
  clv_binding *binding = &args->outputs[index];
  clv_tensor wanted = *type;
  wanted.data = NULL;
  if (binding->type.rank == CLV_RANK_UNKNOWN) {
    if (args->allocate_output == NULL) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "output %u has no memory, and there is no allocate_output()", index);
    }
    CLV__TRY(args->allocate_output(args->cookie, index, &wanted, binding, error));
  }
  if (clv__tensor_same_type(&binding->type, &wanted)) return CLV_OK;
  char given[96], made[96];
  clv__tensor_text(&binding->type, given, sizeof given);
  clv__tensor_text(&wanted, made, sizeof made);
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "output %u is bound as %s, but its type is %s", index, given, made);
}
