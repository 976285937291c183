/* See instance.h: creates instances and their scratch. */
#include "instance.h"

/* ---- Scratch ---- */

static void scratch_release(clv_device *device, clv_instance *instance) {
  for (size_t i = 0; instance->scratch != NULL && i < instance->variant->scratch.count; ++i) {
    clv__opencl_memory_release(device, instance->scratch[i]);
    instance->scratch[i] = NULL;
  }
  clv__opencl_memory_release(device, instance->scratch_memory);
  instance->scratch_memory = NULL;
  instance->has_scratch = false;
}

/* Creates the scratch regions in `memory`, from `offset` on, and passes them to the kernels. */
static clv_status scratch_cut(clv_device *device, clv_instance *instance, cl_mem memory, uint64_t offset, clv_error *error) {
  const clv__opencl_variant *variant = instance->variant;
  for (size_t i = 0; i < variant->scratch.count; ++i) {
    const clv__opencl_region *region = &variant->scratch.items[i];
    CLV__TRY(clv__opencl_memory_part(device, memory, offset + region->offset, region->size_bytes, &instance->scratch[i], error));
  }
  for (size_t s = 0; s < variant->steps.count; ++s) {
    const clv__opencl_step *step = &variant->steps.items[s];
    for (uint32_t i = 0; i < step->operand_count && !step->is_copy; ++i) {
      const clv__opencl_operand *operand = &step->operands[i];
      if (clv__opencl_is_bound_later(operand) && operand->at.where == CLV__OPENCL_AT_SCRATCH) {
        CLV__TRY(clv__opencl_step_argument(device, instance, step, instance->kernels[s], i, error));
      }
    }
  }
  instance->has_scratch = true;
  return CLV_OK;
}

clv_status clv__opencl_scratch_own(clv_device *device, clv_instance *instance, clv_error *error) {
  if (instance->has_scratch) return CLV_OK;
  if (instance->variant->scratch.count > 0) {
    CLV__TRY(clv__opencl_memory_create(device, instance->variant->scratch_bytes, &instance->scratch_memory, error));
  }
  clv_status status = scratch_cut(device, instance, instance->scratch_memory, 0, error);
  if (status != CLV_OK) scratch_release(device, instance);
  return status;
}

uint64_t clv__opencl_instance_scratch_bytes(clv_device *device, clv_instance *instance) {
  if (instance->variant->scratch_bytes == 0) return 0;
  return instance->variant->scratch_bytes + device->alignment_bytes; /* extra bytes, to align any start offset */
}

clv_status clv__opencl_instance_bind_scratch(clv_device *device, clv_instance *instance, clv_buffer *buffer,
                                             uint64_t offset_bytes, clv_error *error) {
  const uint64_t needed = instance->variant->scratch_bytes;
  uint64_t offset = clv__align_up(offset_bytes, device->alignment_bytes);
  if (needed == 0) return CLV_OK;
  if (buffer == NULL || offset > buffer->size_bytes || needed > buffer->size_bytes - offset) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "the scratch buffer has %llu bytes, but from offset %llu on the instance needs %llu bytes",
                          (unsigned long long)(buffer == NULL ? 0 : buffer->size_bytes), (unsigned long long)offset_bytes,
                          (unsigned long long)clv__opencl_instance_scratch_bytes(device, instance));
  }
  scratch_release(device, instance);
  clv_status status = scratch_cut(device, instance, buffer->memory, offset, error);
  if (status != CLV_OK) scratch_release(device, instance);
  return status;
}

/* ---- Creation and destruction ---- */

static void destroy(clv_device *device, void *self) {
  clv_instance *instance = self;
  const clv__opencl_variant *variant = instance->variant;
  for (size_t s = 0; instance->kernels != NULL && s < variant->steps.count; ++s) {
    if (instance->kernels[s] != NULL) device->cl->clReleaseKernel(instance->kernels[s]);
  }
  if (variant != NULL) scratch_release(device, instance);
  for (size_t i = 0; instance->kept != NULL && i < variant->kept.count; ++i)
    clv__opencl_memory_release(device, instance->kept[i]);
  for (uint32_t i = 0; instance->inputs != NULL && i < instance->executable->input_count; ++i) {
    clv__opencl_bound_release(device, &instance->inputs[i]);
  }
  for (uint32_t i = 0; instance->outputs != NULL && i < instance->executable->output_count; ++i) {
    clv__opencl_bound_release(device, &instance->outputs[i]);
  }
  clv__opencl_faults_leave(device, instance->faults);
  clv__arena_finish(&instance->arena);
  if (instance->owns_variant) clv__opencl_variant_destroy(instance->variant);
  clv__object_free(&device->objects, instance);
}

void clv__opencl_instance_destroy(clv_device *device, clv_instance *instance) {
  if (instance != NULL) destroy(device, instance);
}

/* Finds the arguments that refer to each binding, in two passes: one counts, one fills. */
static clv_status index_users(clv_instance *instance, clv_error *error) {
  const clv__opencl_steps *steps = &instance->variant->steps;
  uint32_t total = 0;
  for (int filling = 0; filling < 2; ++filling) {
    for (size_t s = 0; s < steps->count; ++s) {
      for (uint32_t i = 0; i < steps->items[s].operand_count && !steps->items[s].is_copy; ++i) {
        const clv__opencl_operand *operand = &steps->items[s].operands[i];
        if (!clv__opencl_is_bound_later(operand) || operand->at.where == CLV__OPENCL_AT_SCRATCH) continue;
        clv__opencl_bound *bound = operand->at.where == CLV__OPENCL_AT_INPUT ? &instance->inputs[operand->at.index]
                                                                             : &instance->outputs[operand->at.index];
        if (filling == 1) instance->users[bound->first + bound->count] = (clv__opencl_user){(uint32_t)s, i};
        ++bound->count;
      }
    }
    if (filling == 1) break;
    for (uint32_t i = 0; i < instance->executable->input_count + instance->executable->output_count; ++i) {
      clv__opencl_bound *bound = i < instance->executable->input_count
                                     ? &instance->inputs[i]
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
  const clv__opencl_steps *steps = &instance->variant->steps;
  for (size_t s = 0; s < steps->count; ++s) {
    if (!steps->items[s].is_copy)
      CLV__TRY(clv__opencl_step_kernel(device, instance, &steps->items[s], false, &instance->kernels[s], error));
  }
  return CLV_OK;
}

/* Allocates the instance's persistent memory. */
static clv_status keep(clv_device *device, clv_instance *instance, clv_error *error) {
  const clv__opencl_variant *variant = instance->variant;
  for (size_t i = 0; i < variant->kept.count; ++i) {
    CLV__TRY(clv__opencl_memory_create(device, variant->kept.items[i].size_bytes, &instance->kept[i], error));
  }
  if (variant->fault_places.count > 0)
    CLV__TRY(clv__opencl_faults_create(variant, instance->kept[variant->kept_faults], &instance->faults, error));
  return CLV_OK;
}

static bool same_types(const clv_tensor *a, const clv_tensor *b, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (!clv__tensor_is_static(&a[i]) || !clv__tensor_same_type(&a[i], &b[i])) return false;
  }
  return true;
}

/* Uses the executable's variant if the shapes are those of compile(). Otherwise makes a variant for this instance. */
static clv_status find_variant(clv_instance *instance, const clv_tensor *inputs, clv_error *error) {
  clv_executable *e = instance->executable;
  if (e->variant != NULL && same_types(e->variant->input_types, inputs, e->input_count)) {
    instance->variant = e->variant;
    return CLV_OK;
  }
  CLV__TRY(clv__opencl_variant_make(e, inputs, &instance->variant, error));
  instance->owns_variant = true;
  return clv__opencl_variant_finish(instance->variant, error);
}

static clv_status fill(clv_device *device, clv_instance *instance, const clv_tensor *inputs, clv_weight *const *weights,
                       clv_error *error) {
  const clv_executable *e = instance->executable;
  clv__arena *arena = &instance->arena;
  CLV__TRY(find_variant(instance, inputs, error));
  const clv__opencl_variant *variant = instance->variant;
  instance->kernels = clv__arena_allocate_zero(arena, variant->steps.count, sizeof *instance->kernels);
  instance->scratch = clv__arena_allocate_zero(arena, variant->scratch.count, sizeof *instance->scratch);
  instance->kept = clv__arena_allocate_zero(arena, variant->kept.count, sizeof *instance->kept);
  instance->inputs = clv__arena_allocate_zero(arena, e->input_count, sizeof *instance->inputs);
  instance->outputs = clv__arena_allocate_zero(arena, e->output_count, sizeof *instance->outputs);
  instance->weights = clv__arena_copy(arena, weights, e->weight_count * sizeof *weights);
  if (instance->kernels == NULL || instance->scratch == NULL || instance->kept == NULL || instance->inputs == NULL ||
      instance->outputs == NULL || instance->weights == NULL) {
    return clv__error_memory(error, variant->steps.count * sizeof *instance->kernels);
  }
  CLV__TRY(index_users(instance, error));
  CLV__TRY(keep(device, instance, error));
  return make_kernels(device, instance, error);
}

static clv_status check_weights(const clv_executable *e, clv_weight *const *weights, uint32_t weight_count, clv_error *error) {
  if (weight_count != e->weight_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u weights given, but the executable has %u", weight_count,
                          e->weight_count);
  }
  for (uint32_t i = 0; i < weight_count; ++i) {
    const clv_tensor *expected = &e->values[e->weights[i]].declared;
    if (weights[i] != NULL && clv__tensor_same_type(&weights[i]->type, expected)) continue;
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "weight '%s' is missing, or has another type than at compile time",
                          e->weight_names[i]);
  }
  return CLV_OK;
}

clv_status clv__opencl_instance_create(clv_device *device, clv_executable *executable, const clv_tensor *inputs,
                                       uint32_t input_count, clv_weight *const *weights, uint32_t weight_count,
                                       clv_instance **out, clv_error *error) {
  *out = NULL;
  if (input_count != executable->input_count) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "%u inputs given, but the executable has %u", input_count,
                          executable->input_count);
  }
  CLV__TRY(check_weights(executable, weights, weight_count, error));
  clv_instance *instance = clv__object_new(&device->objects, sizeof *instance, destroy);
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
