/* See plan.h. */
#include "plan.h"

/* ---- Shared by the passes ---- */

uint32_t clv__opencl_plan_most(const clv__opencl_plan *plan) {
  uint32_t most = 0;
  for (uint32_t n = 0; n < plan->executable->node_count; ++n) {
    const clv_node_info *node = &plan->executable->nodes[n];
    if (node->input_count + node->output_count > most) most = node->input_count + node->output_count;
  }
  return most;
}

clv__opencl_node clv__opencl_plan_node_view(const clv__opencl_plan *plan, uint32_t index, clv_tensor *types, bool *constant) {
  const clv__opencl_plan_node *node = &plan->nodes[index];
  const clv_executable *e = plan->executable;
  for (uint32_t i = 0; i < node->input_count + node->output_count; ++i) {
    bool input = i < node->input_count;
    uint32_t v = input ? node->inputs[i] : node->outputs[i - node->input_count];
    types[i] = (clv_tensor){.rank = CLV_RANK_UNKNOWN};
    if (input) constant[i] = false;
    if (v == CLV_NO_VALUE) continue;
    types[i] = plan->values[v].type;
    if (input) constant[i] = types[i].data != NULL || e->values[v].weight != CLV__OPENCL_NONE;
  }
  return clv__opencl_node_of(&e->nodes[index], types, constant);
}

clv_status clv__opencl_region_add(clv__opencl_plan *plan, clv__opencl_regions *regions, uint64_t size_bytes, const void *data,
                                  uint32_t *index, clv_error *error) {
  if (regions->count >= CLV__OPENCL_NONE - 1 ||
      !clv__array_reserve(plan->device->allocator, (void **)&regions->items, &regions->capacity, regions->count + 1,
                          sizeof *regions->items, regions->count)) {
    return clv__error_memory(error, (regions->count + 1) * sizeof *regions->items);
  }
  *index = (uint32_t)regions->count;
  regions->items[regions->count++] = (clv__opencl_region){.size_bytes = size_bytes, .data = data};
  return CLV_OK;
}

clv_status clv__opencl_step_add(clv__opencl_plan *plan, clv__opencl_steps *steps, const clv__opencl_step *step,
                                clv_error *error) {
  if (!clv__array_reserve(plan->device->allocator, (void **)&steps->items, &steps->capacity, steps->count + 1,
                          sizeof *steps->items, steps->count)) {
    return clv__error_memory(error, (steps->count + 1) * sizeof *steps->items);
  }
  steps->items[steps->count++] = *step;
  return CLV_OK;
}

/* ---- Making a plan ---- */

/* Copies the operand lists of nodes, so that passes can change them. */
static clv_status start_nodes(clv__opencl_plan *plan, clv_error *error) {
  const clv_executable *e = plan->executable;
  for (uint32_t n = 0; n < e->node_count; ++n) {
    const clv_node_info *info = &e->nodes[n];
    clv__opencl_plan_node *node = &plan->nodes[n];
    node->input_count = info->input_count;
    node->output_count = info->output_count;
    node->inputs = clv__arena_copy(&plan->arena, info->inputs, info->input_count * sizeof *info->inputs);
    node->outputs = clv__arena_copy(&plan->arena, info->outputs, info->output_count * sizeof *info->outputs);
    if (node->inputs == NULL || node->outputs == NULL) return clv__error_memory(error, info->input_count * sizeof *info->inputs);
    if (!clv__opencl_is_view(info->domain, info->op, info->opset)) node->op = clv__opencl_operator_find(info->domain, info->op);
  }
  return CLV_OK;
}

static clv_status run_passes(clv__opencl_plan *plan, const clv_tensor *inputs, clv_error *error) {
  const clv_executable *e = plan->executable;
  plan->input_types = clv__arena_allocate_zero(&plan->arena, e->input_count, sizeof *plan->input_types);
  plan->nodes = clv__arena_allocate_zero(&plan->arena, e->node_count, sizeof *plan->nodes);
  plan->values = clv__arena_allocate_zero(&plan->arena, e->value_count, sizeof *plan->values);
  if (plan->input_types == NULL || plan->nodes == NULL || plan->values == NULL) {
    return clv__error_memory(error, e->value_count * sizeof *plan->values);
  }
  for (uint32_t i = 0; i < e->input_count; ++i) {
    plan->input_types[i] = inputs[i];
    plan->input_types[i].data = NULL;
  }
  CLV__TRY(start_nodes(plan, error));
  CLV__TRY(clv__opencl_pass_infer(plan, error));
  if (plan->device->fuse) clv__opencl_pass_fuse(plan);
  CLV__TRY(clv__opencl_pass_lower(plan, error));
  return clv__opencl_pass_layout(plan, error);
}

clv_status clv__opencl_plan_make(clv_executable *executable, const clv_tensor *inputs, clv__opencl_plan **out, clv_error *error) {
  clv_device *device = executable->device;
  *out = NULL;
  clv__opencl_plan *plan = clv__allocate_zero(device->allocator, sizeof *plan);
  if (plan == NULL) return clv__error_memory(error, sizeof *plan);
  plan->device = device;
  plan->executable = executable;
  clv__arena_init(&plan->arena, device->allocator);
  clv_status status = run_passes(plan, inputs, error);
  if (status != CLV_OK) {
    clv__opencl_plan_destroy(plan);
    return status;
  }
  *out = plan;
  return CLV_OK;
}

static clv_status build(clv__opencl_plan *plan, const clv__opencl_steps *steps, clv_error *error) {
  for (size_t i = 0; i < steps->count; ++i) {
    const clv__opencl_step *step = &steps->items[i];
    if (step->is_copy) continue;
    clv_status status = clv__opencl_program_build(plan->device, step->program, error);
    if (status == CLV_OK) continue;
    const clv_node_info *node = &plan->executable->nodes[step->node];
    return clv__error_prefix(error, status, "node '%s' (%s)", node->name, node->op);
  }
  return CLV_OK;
}

/* Uploads all constants in one write. */
static clv_status upload(clv__opencl_plan *plan, clv_error *error) {
  clv_device *device = plan->device;
  if (plan->constants.count == 0) return CLV_OK;
  plan->constant_parts = clv__arena_allocate_zero(&plan->arena, plan->constants.count, sizeof *plan->constant_parts);
  uint8_t *bytes = clv__allocate_zero(device->allocator, plan->constant_bytes);
  clv_status status = CLV_OK;
  if (plan->constant_parts == NULL || bytes == NULL) status = clv__error_memory(error, plan->constant_bytes);
  for (size_t i = 0; i < plan->constants.count && status == CLV_OK; ++i) {
    const clv__opencl_region *region = &plan->constants.items[i];
    if (region->size_bytes > 0) memcpy(bytes + region->offset, region->data, region->size_bytes);
  }
  if (status == CLV_OK) status = clv__opencl_memory_create(device, plan->constant_bytes, &plan->constant_memory, error);
  if (status == CLV_OK) status = clv__opencl_memory_write(device, plan->constant_memory, 0, bytes, plan->constant_bytes, error);
  for (size_t i = 0; i < plan->constants.count && status == CLV_OK; ++i) {
    const clv__opencl_region *region = &plan->constants.items[i];
    status = clv__opencl_memory_part(device, plan->constant_memory, region->offset, region->size_bytes, &plan->constant_parts[i],
                                     error);
  }
  clv__release(device->allocator, bytes);
  return status;
}

clv_status clv__opencl_plan_finish(clv__opencl_plan *plan, clv_error *error) {
  CLV__TRY(build(plan, &plan->steps, error));
  return upload(plan, error);
}

void clv__opencl_plan_destroy(clv__opencl_plan *plan) {
  if (plan == NULL) return;
  clv_device *device = plan->device;
  for (size_t i = 0; plan->constant_parts != NULL && i < plan->constants.count; ++i) {
    clv__opencl_memory_release(device, plan->constant_parts[i]);
  }
  clv__opencl_memory_release(device, plan->constant_memory);
  clv__release(device->allocator, plan->steps.items);
  clv__release(device->allocator, plan->scratch.items);
  clv__release(device->allocator, plan->constants.items);
  clv__release(device->allocator, plan->kept.items);
  clv__release(device->allocator, plan->fault_places.items);
  clv__arena_finish(&plan->arena);
  clv__release(device->allocator, plan);
}
