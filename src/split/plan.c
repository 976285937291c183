/* A plan's life, and what is counted for a partition. */
#include "split/plan.h"

#include <stdlib.h>
#include <string.h>

static clv_status resolve_kept(clv_plan *plan, const char *const *keeps, uint32_t keep_count, clv_error *error) {
  if (keep_count == 0) return CLV_OK;
  const clv_graph *graph = plan->graph;
  clv_value_id *kept = clv__arena_allocate_zero(&plan->arena, keep_count, sizeof *kept);
  bool *is_kept = clv__arena_allocate_zero(&plan->arena, graph->value_count, sizeof *is_kept);
  if (kept == NULL || is_kept == NULL) return clv__error_memory(error, graph->value_count);
  clv__map names;
  clv__map_init(&names, graph->allocator);
  clv_status status = CLV_OK;
  for (clv_value_id v = 0; v < graph->value_count; ++v) {
    if (!clv__map_set(&names, graph->values[v].name, v)) {
      status = clv__error_memory(error, sizeof(clv__map_slot));
      goto cleanup;
    }
  }
  for (uint32_t i = 0; i < keep_count; ++i) {
    kept[i] = clv__map_find(&names, keeps[i]);
    const clv__value *value = kept[i] == CLV__MAP_NONE ? NULL : &graph->values[kept[i]];
    if (value == NULL || (value->producer == CLV__NO_ID && !value->is_input && value->type.data == NULL)) {
      status = clv__error_set(error, CLV_NOT_FOUND, "the model has no value called '%s'", keeps[i]);
      goto cleanup;
    }
    is_kept[kept[i]] = true;
  }
  plan->kept_count = keep_count;
  plan->kept = kept;
  plan->is_kept = is_kept;
cleanup:
  clv__map_finish(&names);
  return status;
}

/* A node whose outputs that are read are known is not run; one that nobody read until now is then not made. */
static clv_status check_kept(const clv_plan *plan, clv_error *error) {
  for (uint32_t i = 0; i < plan->kept_count; ++i) {
    const clv__value *value = &plan->graph->values[plan->kept[i]];
    if (value->producer == CLV__NO_ID || !plan->shapes->node_folded[value->producer]) continue;
    if (plan->shapes->types[plan->kept[i]].data != NULL) continue;
    return clv__error_set(error, CLV_NOT_SUPPORTED, "'%s' cannot be kept: nothing reads it, and its node is not run",
                          value->name);
  }
  return CLV_OK;
}

static clv_status take_sizes(clv_plan *plan, const clv_size *sizes, uint32_t size_count, clv_error *error) {
  clv__shape_given *given = clv__arena_allocate_zero(&plan->arena, size_count, sizeof *given);
  if (given == NULL) return clv__error_memory(error, size_count * sizeof *given);
  for (uint32_t i = 0; i < size_count; ++i) {
    given[i] = (clv__shape_given){.name = clv__arena_string(&plan->arena, sizes[i].name, strlen(sizes[i].name)),
                                  .is_symbol = sizes[i].is_symbol,
                                  .rank = sizes[i].rank};
    if (given[i].name == NULL) return clv__error_memory(error, 1);
    memcpy(given[i].dims, sizes[i].dims, sizeof given[i].dims);
  }
  plan->size_count = size_count;
  plan->sizes = given;
  return CLV_OK;
}

clv_status clv__plan_create(const clv_graph *graph, clv_devices *devices, const clv_size *sizes, uint32_t size_count,
                            const char *const *keeps, uint32_t keep_count, clv_plan **out, clv_error *error) {
  *out = NULL;
  if (graph->allocator != clv__context_allocator(devices->context)) { /* what one allocates here the other releases there */
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "graph and devices are of contexts with different allocators");
  }
  clv_plan *plan = clv__allocate_zero(graph->allocator, sizeof *plan);
  if (plan == NULL) return clv__error_memory(error, sizeof *plan);
  clv__arena_init(&plan->arena, graph->allocator);
  clv__arena_init(&plan->capability.arena, graph->allocator);
  plan->graph = graph;
  plan->devices = devices;
  clv_status status = take_sizes(plan, sizes, size_count, error);
  if (status == CLV_OK) status = resolve_kept(plan, keeps, keep_count, error);
  if (status == CLV_OK) status = clv__shapes_infer(graph, plan->sizes, size_count, SIZE_MAX, &plan->shapes, error);
  if (status == CLV_OK) status = check_kept(plan, error);
  if (status == CLV_OK) {
    plan->placement.devices = clv__arena_allocate_zero(&plan->arena, graph->node_count, sizeof *plan->placement.devices);
    plan->placement.causes = clv__arena_allocate_zero(&plan->arena, graph->node_count, sizeof *plan->placement.causes);
    plan->placement.notes = clv__arena_allocate_zero(&plan->arena, graph->node_count, sizeof *plan->placement.notes);
    if (plan->placement.devices == NULL || plan->placement.causes == NULL || plan->placement.notes == NULL) {
      status = clv__error_memory(error, graph->node_count * sizeof(char *));
    }
  }
  if (status != CLV_OK) {
    clv_plan_destroy(plan);
    return status;
  }
  *out = plan;
  return CLV_OK;
}

void clv_plan_destroy(clv_plan *plan) {
  if (plan == NULL) return;
  const clv_allocator *allocator = plan->arena.allocator;
  clv__capability_finish(&plan->capability);
  clv__shapes_destroy(plan->shapes);
  clv__arena_finish(&plan->arena);
  clv__release(allocator, plan);
}

static uint64_t padded_bytes(const clv_tensor *type) {
  size_t size_bytes;
  return clv__tensor_size_bytes(type, &size_bytes) ? clv__align_up(size_bytes, CLV__ALIGNMENT) : 0;
}

clv_status clv__partition_init(clv_plan *plan, clv__partition *partition, uint32_t device, const clv_node_id *nodes,
                               uint32_t node_count, clv_error *error) {
  clv_graph_view *view;
  CLV__TRY(clv__view_create(plan->graph, plan->shapes->types, nodes, node_count, plan->is_kept, &plan->arena, &view, error));
  view->fills = plan->shapes->fills;
  *partition = (clv__partition){.device = device, .node_count = node_count, .nodes = view->nodes, .view = view};
  for (uint32_t v = 0; v < view->value_count; ++v) {
    const clv_tensor *type = clv__view_type(view, v);
    if (type->data != NULL) partition->weight_bytes += padded_bytes(type);
  }
  return CLV_OK;
}

/* Values are made in node order and die after their last reader inside; what enters or leaves lives throughout. */
uint64_t clv__partition_peak_bytes(const clv_plan *plan, const clv__partition *partition) {
  const clv_graph_view *view = partition->view;
  uint32_t *last = clv__allocate_zero(plan->graph->allocator, (size_t)view->value_count * sizeof *last);
  if (last == NULL) return 0;
  uint64_t alive = 0, peak;
  for (uint32_t i = 0; i < view->node_count; ++i) {
    for (uint32_t k = view->operand_offsets[i]; k < view->operand_offsets[i + 1]; ++k) {
      if (view->operands[k] != CLV_NO_VALUE) last[view->operands[k]] = i;
    }
  }
  for (uint32_t i = 0; i < view->input_count; ++i) {
    last[view->inputs[i]] = UINT32_MAX;
    alive += padded_bytes(clv__view_type(view, view->inputs[i]));
  }
  for (uint32_t i = 0; i < view->output_count; ++i) last[view->outputs[i]] = UINT32_MAX;
  peak = alive;
  for (uint32_t i = 0; i < view->node_count; ++i) {
    const clv__node *node = clv__view_node(view, i);
    const uint32_t *operands = view->operands + view->operand_offsets[i];
    for (uint32_t k = node->input_count; k < node->input_count + node->output_count; ++k) {
      if (operands[k] != CLV_NO_VALUE) alive += padded_bytes(clv__view_type(view, operands[k]));
    }
    if (alive > peak) peak = alive;
    for (uint32_t k = 0; k < node->input_count + node->output_count; ++k) {
      uint32_t value = operands[k];
      if (value == CLV_NO_VALUE || last[value] != i || clv__view_type(view, value)->data != NULL) continue;
      alive -= padded_bytes(clv__view_type(view, value));
      last[value] = UINT32_MAX; /* once, even where a node reads it twice */
    }
  }
  clv__release(plan->graph->allocator, last);
  return peak;
}
