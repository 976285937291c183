/* See compile.h. */
#include "compile/compile.h"

#include <string.h>

/* The view's constants by name. */
static clv_status map_constants(const clv_graph_view *view, clv__map *constants, clv_error *error) {
  for (uint32_t v = 0; v < view->value_count; ++v) {
    if (clv__view_type(view, v)->data == NULL) continue;
    if (!clv__map_set(constants, view->graph->values[view->values[v]].name, v)) {
      return clv__error_memory(error, sizeof(clv__map_slot));
    }
  }
  return CLV_OK;
}

/* The weight called `name` on the device: found, or uploaded now. */
static clv_status get_weight(clv__program *program, uint32_t device_index, const clv_graph_view *view, const clv__map *constants,
                             const char *name, clv_weight **weight, clv_error *error) {
  clv__device_weights *weights = &program->weights[device_index];
  const clv__device *device = &program->plan->devices->items[device_index];
  uint32_t found = clv__map_find(&weights->by_name, name);
  if (found != CLV__MAP_NONE) {
    *weight = weights->items[found];
    return CLV_OK;
  }
  uint32_t value = clv__map_find(constants, name);
  if (value == CLV__MAP_NONE) {
    return clv__error_set(error, CLV_INTERNAL_ERROR, "the executable asks for weight '%s', which the partition does not read",
                          name);
  }
  const clv_tensor *data = clv__view_type(view, value);
  char *key = clv__arena_string(&program->arena, name, strlen(name)); /* the executable may go before the program */
  if (key == NULL || !clv__array_reserve(program->arena.allocator, (void **)&weights->items, &weights->capacity,
                                         weights->count + 1, sizeof(clv_weight *), weights->count)) {
    return clv__error_memory(error, sizeof(clv_weight *));
  }
  clv__error_clear(error);
  clv_status status = device->backend->weight_upload(device->handle, name, data, weight, error);
  if (status != CLV_OK) return clv__error_prefix(error, status, "weight '%s'", name);
  weights->items[weights->count] = *weight;
  if (!clv__map_set(&weights->by_name, key, (uint32_t)weights->count)) {
    device->backend->weight_release(device->handle, *weight);
    return clv__error_memory(error, sizeof(clv__map_slot));
  }
  ++weights->count;
  size_t size_bytes;
  if (clv__tensor_size_bytes(data, &size_bytes)) program->uploaded_bytes += size_bytes;
  clv__context_host(program->plan->devices->context)->constant_copied(view, value);
  return CLV_OK;
}

static clv_status get_weights(clv__program *program, uint32_t device_index, const clv_graph_view *view, clv__compiled *compiled,
                              clv_error *error) {
  if (compiled->info.weight_count == 0) return CLV_OK;
  clv__map constants;
  clv__map_init(&constants, program->arena.allocator);
  clv_status status = map_constants(view, &constants, error);
  for (uint32_t i = 0; status == CLV_OK && i < compiled->info.weight_count; ++i) {
    status = get_weight(program, device_index, view, &constants, compiled->info.weights[i], &compiled->weights[i], error);
  }
  clv__map_finish(&constants);
  return status;
}

clv_status clv__program_compile(clv__program *program, uint32_t partition, const clv_graph_view *view, clv__arena *arena,
                                clv__compiled *compiled, clv_error *error) {
  uint32_t device_index = program->plan->partitions[partition].device;
  const clv__device *device = &program->plan->devices->items[device_index];
  *compiled = (clv__compiled){0};
  clv__error_clear(error);
  clv_status status = device->backend->compile(device->handle, view, &program->options, &compiled->executable, error);
  if (status == CLV_OK) {
    compiled->info.struct_size = sizeof compiled->info;
    device->backend->executable_info(device->handle, compiled->executable, &compiled->info);
    compiled->weights = clv__arena_allocate_zero(arena, compiled->info.weight_count, sizeof *compiled->weights);
    if (compiled->weights == NULL) status = clv__error_memory(error, compiled->info.weight_count * sizeof *compiled->weights);
  }
  if (status == CLV_OK) status = get_weights(program, device_index, view, compiled, error);
  if (status != CLV_OK) {
    if (compiled->executable != NULL) device->backend->executable_destroy(device->handle, compiled->executable);
    *compiled = (clv__compiled){0};
    return clv__error_prefix(error, status, "partition %u on %s: compile", partition, device->name);
  }
  return CLV_OK;
}

clv_status clv__program_init(const clv_plan *plan, const clv_compile_options *options, clv__program *program, clv_error *error) {
  *program = (clv__program){.plan = plan, .options = *options};
  clv__arena_init(&program->arena, plan->graph->allocator);
  for (uint32_t d = 0; d < CLV__MAX_DEVICES; ++d) clv__map_init(&program->weights[d].by_name, plan->graph->allocator);
  program->partitions = clv__arena_allocate_zero(&program->arena, plan->partition_count, sizeof *program->partitions);
  clv_status status = CLV_OK;
  if (program->partitions == NULL) status = clv__error_memory(error, plan->partition_count * sizeof *program->partitions);
  for (uint32_t p = 0; status == CLV_OK && p < plan->partition_count; ++p) {
    status = clv__program_compile(program, p, plan->partitions[p].view, &program->arena, &program->partitions[p], error);
  }
  if (status != CLV_OK) clv__program_finish(program);
  return status;
}

void clv__program_finish(clv__program *program) {
  if (program->plan == NULL) return;
  const clv_devices *devices = program->plan->devices;
  for (uint32_t p = program->plan->partition_count; program->partitions != NULL && p-- > 0;) {
    const clv__device *device = &devices->items[program->plan->partitions[p].device];
    if (program->partitions[p].executable == NULL) continue;
    device->backend->executable_destroy(device->handle, program->partitions[p].executable);
  }
  for (uint32_t d = 0; d < devices->count; ++d) {
    clv__device_weights *weights = &program->weights[d];
    for (size_t i = weights->count; i-- > 0;)
      devices->items[d].backend->weight_release(devices->items[d].handle, weights->items[i]);
    clv__release(program->arena.allocator, (void *)weights->items);
    clv__map_finish(&weights->by_name);
  }
  clv__arena_finish(&program->arena);
  *program = (clv__program){0};
}
