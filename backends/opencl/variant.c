/* See variant.h. */
#include "variant.h"

/* ---- Shared by the passes ---- */

uint32_t clv__opencl_variant_most(const clv__opencl_variant *variant) {
  uint32_t most = 0;
  for (uint32_t n = 0; n < variant->executable->node_count; ++n) {
    const clv_node_info *node = &variant->executable->nodes[n];
    if (node->input_count + node->output_count > most) most = node->input_count + node->output_count;
  }
  return most;
}

clv__opencl_node clv__opencl_variant_node_view(const clv__opencl_variant *variant, uint32_t index, clv_tensor *types,
                                               bool *constant) {
  const clv__opencl_variant_node *node = &variant->nodes[index];
  const clv_executable *e = variant->executable;
  for (uint32_t i = 0; i < node->input_count + node->output_count; ++i) {
    bool input = i < node->input_count;
    uint32_t v = input ? node->inputs[i] : node->outputs[i - node->input_count];
    types[i] = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
    if (input) constant[i] = false;
    if (v == CLV_NO_VALUE) continue;
    types[i] = variant->values[v].type;
    if (input) constant[i] = types[i].data != NULL || e->values[v].weight != CLV__OPENCL_NONE;
  }
  return clv__opencl_node_of(&e->nodes[index], types, constant);
}

clv_status clv__opencl_region_add(clv__opencl_variant *variant, clv__opencl_regions *regions, uint64_t size_bytes,
                                  const void *data, uint32_t *index, clv_error *error) {
  if (regions->count >= CLV__OPENCL_NONE - 1 ||
      !clv__array_reserve(variant->device->allocator, (void **)&regions->items, &regions->capacity, regions->count + 1,
                          sizeof *regions->items, regions->count)) {
    return clv__error_memory(error, (regions->count + 1) * sizeof *regions->items);
  }
  *index = (uint32_t)regions->count;
  regions->items[regions->count++] = (clv__opencl_region){.size_bytes = size_bytes, .data = data};
  return CLV_OK;
}

clv_status clv__opencl_step_add(clv__opencl_variant *variant, clv__opencl_steps *steps, const clv__opencl_step *step,
                                clv_error *error) {
  if (!clv__array_reserve(variant->device->allocator, (void **)&steps->items, &steps->capacity, steps->count + 1,
                          sizeof *steps->items, steps->count)) {
    return clv__error_memory(error, (steps->count + 1) * sizeof *steps->items);
  }
  steps->items[steps->count++] = *step;
  return CLV_OK;
}

/* ---- Making a variant ---- */

/* Copies the operand lists of nodes, so that passes can change them. */
static clv_status start_nodes(clv__opencl_variant *variant, clv_error *error) {
  const clv_executable *e = variant->executable;
  for (uint32_t n = 0; n < e->node_count; ++n) {
    const clv_node_info *info = &e->nodes[n];
    clv__opencl_variant_node *node = &variant->nodes[n];
    node->input_count = info->input_count;
    node->output_count = info->output_count;
    node->inputs = clv__arena_copy(&variant->arena, info->inputs, info->input_count * sizeof *info->inputs);
    node->outputs = clv__arena_copy(&variant->arena, info->outputs, info->output_count * sizeof *info->outputs);
    if (node->inputs == NULL || node->outputs == NULL) return clv__error_memory(error, info->input_count * sizeof *info->inputs);
    if (!clv__opencl_is_view(info->domain, info->op, info->opset)) node->op = clv__opencl_operator_find(info->domain, info->op);
  }
  return CLV_OK;
}

static clv_status run_passes(clv__opencl_variant *variant, const clv_tensor *inputs, clv_error *error) {
  const clv_executable *e = variant->executable;
  variant->input_types = clv__arena_allocate_zero(&variant->arena, e->input_count, sizeof *variant->input_types);
  variant->nodes = clv__arena_allocate_zero(&variant->arena, e->node_count, sizeof *variant->nodes);
  variant->values = clv__arena_allocate_zero(&variant->arena, e->value_count, sizeof *variant->values);
  if (variant->input_types == NULL || variant->nodes == NULL || variant->values == NULL) {
    return clv__error_memory(error, e->value_count * sizeof *variant->values);
  }
  for (uint32_t i = 0; i < e->input_count; ++i) {
    variant->input_types[i] = inputs[i];
    variant->input_types[i].data = NULL;
  }
  CLV__TRY(start_nodes(variant, error));
  CLV__TRY(clv__opencl_pass_infer(variant, error));
  if (variant->device->fuse) clv__opencl_pass_fuse(variant);
  CLV__TRY(clv__opencl_pass_lower(variant, error));
  return clv__opencl_pass_layout(variant, error);
}

clv_status clv__opencl_variant_make(clv_executable *executable, const clv_tensor *inputs, clv__opencl_variant **out,
                                    clv_error *error) {
  clv_device *device = executable->device;
  *out = NULL;
  clv__opencl_variant *variant = clv__allocate_zero(device->allocator, sizeof *variant);
  if (variant == NULL) return clv__error_memory(error, sizeof *variant);
  variant->device = device;
  variant->executable = executable;
  clv__arena_init(&variant->arena, device->allocator);
  clv_status status = run_passes(variant, inputs, error);
  if (status != CLV_OK) {
    clv__opencl_variant_destroy(variant);
    return status;
  }
  *out = variant;
  return CLV_OK;
}

static clv_status build(clv__opencl_variant *variant, const clv__opencl_steps *steps, clv_error *error) {
  for (size_t i = 0; i < steps->count; ++i) {
    const clv__opencl_step *step = &steps->items[i];
    if (step->is_copy) continue;
    clv_status status = clv__opencl_program_build(variant->device, step->program, error);
    if (status == CLV_OK) continue;
    const clv_node_info *node = &variant->executable->nodes[step->node];
    return clv__error_prefix(error, status, "node '%s' (%s)", node->name, node->op);
  }
  return CLV_OK;
}

/* Uploads all constants in one write. */
static clv_status upload(clv__opencl_variant *variant, clv_error *error) {
  clv_device *device = variant->device;
  if (variant->constants.count == 0) return CLV_OK;
  variant->constant_parts = clv__arena_allocate_zero(&variant->arena, variant->constants.count, sizeof *variant->constant_parts);
  uint8_t *bytes = clv__allocate_zero(device->allocator, variant->constant_bytes);
  clv_status status = CLV_OK;
  if (variant->constant_parts == NULL || bytes == NULL) status = clv__error_memory(error, variant->constant_bytes);
  for (size_t i = 0; i < variant->constants.count && status == CLV_OK; ++i) {
    const clv__opencl_region *region = &variant->constants.items[i];
    if (region->size_bytes > 0) memcpy(bytes + region->offset, region->data, region->size_bytes);
  }
  if (status == CLV_OK) status = clv__opencl_memory_create(device, variant->constant_bytes, &variant->constant_memory, error);
  if (status == CLV_OK)
    status = clv__opencl_memory_write(device, variant->constant_memory, 0, bytes, variant->constant_bytes, error);
  for (size_t i = 0; i < variant->constants.count && status == CLV_OK; ++i) {
    const clv__opencl_region *region = &variant->constants.items[i];
    status = clv__opencl_memory_part(device, variant->constant_memory, region->offset, region->size_bytes,
                                     &variant->constant_parts[i], error);
  }
  clv__release(device->allocator, bytes);
  return status;
}

clv_status clv__opencl_variant_finish(clv__opencl_variant *variant, clv_error *error) {
  CLV__TRY(build(variant, &variant->steps, error));
  return upload(variant, error);
}

void clv__opencl_variant_destroy(clv__opencl_variant *variant) {
  if (variant == NULL) return;
  clv_device *device = variant->device;
  for (size_t i = 0; variant->constant_parts != NULL && i < variant->constants.count; ++i) {
    clv__opencl_memory_release(device, variant->constant_parts[i]);
  }
  clv__opencl_memory_release(device, variant->constant_memory);
  clv__release(device->allocator, variant->steps.items);
  clv__release(device->allocator, variant->scratch.items);
  clv__release(device->allocator, variant->constants.items);
  clv__release(device->allocator, variant->kept.items);
  clv__release(device->allocator, variant->fault_places.items);
  clv__arena_finish(&variant->arena);
  clv__release(device->allocator, variant);
}
