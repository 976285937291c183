/* Creates and destroys plans. Computes the memory that a partition needs. */
#include "plan/plan.h"

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
      status = clv__error_set(error, CLV_NOT_FOUND, "the model has no value named '%s'", keeps[i]);
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

/* Checks that all kept values are computed. A node is not run if all of its outputs that something reads are known. Then its
 * other outputs are not computed, so they cannot be kept. */
static clv_status check_kept(const clv_plan *plan, clv_error *error) {
  for (uint32_t i = 0; i < plan->kept_count; ++i) {
    const clv__value *value = &plan->graph->values[plan->kept[i]];
    if (value->producer == CLV__NO_ID || !plan->shapes->node_folded[value->producer]) continue;
    if (plan->shapes->types[plan->kept[i]].data != NULL) continue;
    return clv__error_set(error, CLV_NOT_SUPPORTED,
                          "'%s' cannot be kept: nothing reads it, and the node that computes it does not run: the node's other "
                          "outputs are known when planning",
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

/* Quantised weights are not folded, so that they stay integers, if every device keeps them as integers. */
size_t clv__plan_fold_limit(const clv_devices *devices) {
  for (uint32_t d = 0; d < devices->count; ++d) {
    if (!devices->items[d].info.keeps_quantised) return CLV__FOLD_ALL;
  }
  return CLV__FOLD_BUT_QUANTISED;
}

clv_status clv__plan_create(const clv_graph *graph, clv_devices *devices, const clv_size *sizes, uint32_t size_count,
                            const char *const *keeps, uint32_t keep_count, clv_plan **out, clv_error *error) {
  *out = NULL;
  if (graph->allocator != clv__context_allocator(devices->context)) { /* memory of one context is released by the other */
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "graph and devices belong to contexts with different allocators");
  }
  clv_plan *plan = clv__allocate_zero(graph->allocator, sizeof *plan);
  if (plan == NULL) return clv__error_memory(error, sizeof *plan);
  clv__arena_init(&plan->arena, graph->allocator);
  clv__arena_init(&plan->capability.arena, graph->allocator);
  plan->graph = graph;
  plan->devices = devices;
  clv_status status = clv__graph_check_files(graph, error);
  if (status == CLV_OK) status = take_sizes(plan, sizes, size_count, error);
  if (status == CLV_OK) status = resolve_kept(plan, keeps, keep_count, error);
  if (status == CLV_OK)
    status = clv__shapes_infer(graph, plan->sizes, size_count, clv__plan_fold_limit(devices), &plan->shapes, error);
  if (status == CLV_OK) status = check_kept(plan, error);
  if (status == CLV_OK) status = clv__open_find(graph, plan->shapes, plan->sizes, size_count, &plan->arena, &plan->open, error);
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
  if (plan->origin == NULL) {
    if (!plan->has_other_weights) clv__cost_model_destroy(plan->costs);
    clv__shapes_destroy(plan->shapes);
  }
  clv__arena_finish(&plan->arena);
  clv__release(allocator, plan);
}

static uint64_t padded_bytes(const clv_tensor *type) {
  size_t size_bytes;
  return clv__tensor_size_bytes(type, &size_bytes) ? clv__align_up(size_bytes, CLV__ALIGNMENT) : 0;
}

/* Returns the types, by value, for partitions on the device. A weight that is streamed to the device is an input of its
 * partitions, so its type has no data. Returns NULL if memory runs out. */
static const clv_tensor *types_of(clv_plan *plan, uint32_t device, const uint16_t *streamed, const clv_tensor **by_device) {
  const clv__problem *problem = plan->problem;
  if (streamed == NULL || problem->spaces[device] == 0) return plan->shapes->types;
  if (by_device[device] != NULL) return by_device[device];
  size_t count = plan->graph->value_count;
  clv_tensor *types = clv__arena_copy(&plan->arena, plan->shapes->types, count * sizeof *types);
  for (uint32_t w = 0; types != NULL && w < problem->weight_count; ++w) {
    if ((streamed[w] >> device & 1u) != 0) types[problem->weight_ids[w]].data = NULL;
  }
  return by_device[device] = types;
}

/* Returns types with typical sizes, and with the same constants as `types`. Returns NULL if memory runs out. */
static const clv_tensor *typical_of(clv_plan *plan, uint32_t device, const clv_tensor *types, const clv_tensor **by_device) {
  if (types == plan->shapes->types) return plan->open->typical;
  if (by_device[device] != NULL) return by_device[device];
  clv_tensor *typical = clv__arena_copy(&plan->arena, plan->open->typical, plan->graph->value_count * sizeof *typical);
  for (uint32_t v = 0; typical != NULL && v < plan->graph->value_count; ++v) typical[v].data = types[v].data;
  return by_device[device] = typical;
}

/* Returns whether the device needs fixed sizes and some of the nodes have sizes that are known only at run time. */
static bool is_bucketed(const clv_plan *plan, uint32_t device, const clv_node_id *nodes, uint32_t count) {
  if (plan->open == NULL || plan->open->typical == NULL || !plan->devices->items[device].info.static_shapes_only) return false;
  for (uint32_t i = 0; i < count; ++i) {
    if (plan->open->is_open[nodes[i]]) return true;
  }
  return false;
}

static clv_status set_partition(clv_plan *plan, uint32_t index, const clv_tensor *types, const clv_tensor **typical_types,
                                clv_error *error) {
  const clv__problem *problem = plan->problem;
  uint32_t first = plan->cut.offsets[index], count = plan->cut.offsets[index + 1] - first, device = plan->cut.devices[index];
  clv_node_id *ids = clv__arena_allocate(&plan->arena, (size_t)count * sizeof *ids);
  clv_graph_view *view;
  if (ids == NULL || types == NULL) return clv__error_memory(error, (size_t)count * sizeof *ids);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t node = plan->cut.nodes[first + i];
    ids[i] = problem->node_ids[node];
    plan->problem_devices[node] = device;
    plan->placement.devices[ids[i]] = device;
  }
  CLV__TRY(clv__view_create(plan->graph, types, ids, count, plan->is_kept, &plan->arena, &view, error));
  view->fills = plan->shapes->fills;
  view->unstreamed = plan->shapes->types;
  clv__partition *partition = &plan->partitions[index];
  *partition = (clv__partition){.device = device, .node_count = count, .nodes = view->nodes, .view = view};
  partition->is_hosted = clv__cut_is_hosted(problem, &plan->cut, index);
  if (partition->is_hosted) return CLV_OK;
  partition->is_bucketed = is_bucketed(plan, device, ids, count);
  if (partition->is_bucketed) {
    clv_graph_view *typical;
    types = typical_of(plan, device, types, typical_types);
    if (types == NULL) return clv__error_memory(error, plan->graph->value_count * sizeof *types);
    CLV__TRY(clv__view_create(plan->graph, types, ids, count, plan->is_kept, &plan->arena, &typical, error));
    typical->fills = plan->shapes->fills;
    typical->unstreamed = plan->shapes->types;
    partition->typical = typical;
  }
  for (uint32_t v = 0; v < view->value_count; ++v) {
    const clv_tensor *type = clv__view_type(view, v);
    if (clv__value_is_constant(plan->graph, types, view->values[v])) partition->weight_bytes += padded_bytes(type);
  }
  return CLV_OK;
}

clv_status clv__plan_set_cut(clv_plan *plan, const clv__cut *cut, const uint16_t *streamed, clv_error *error) {
  const clv_tensor *by_device[CLV__MAX_DEVICES] = {NULL}, *typical[CLV__MAX_DEVICES] = {NULL};
  plan->cut = *cut;
  plan->streamed = streamed;
  plan->partition_count = cut->count;
  plan->partitions = clv__arena_allocate_zero(&plan->arena, cut->count, sizeof *plan->partitions);
  plan->problem_devices = clv__arena_allocate(&plan->arena, (size_t)plan->problem->node_count * sizeof *plan->problem_devices);
  if (plan->partitions == NULL || plan->problem_devices == NULL) {
    return clv__error_memory(error, (size_t)cut->count * sizeof *plan->partitions);
  }
  for (uint32_t p = 0; p < cut->count; ++p) {
    CLV__TRY(set_partition(plan, p, types_of(plan, cut->devices[p], streamed, by_device), typical, error));
  }
  CLV__TRY(clv__plan_name_hosted(plan, error));
  return clv__reader_counts_make(plan->problem, plan->problem_devices, &plan->arena, &plan->readers, error);
}

bool clv__plan_move_price(const clv_plan *plan, clv_node_id node, uint32_t device, int64_t *delta_ns) {
  uint32_t at = plan->problem_nodes[node];
  if (at == CLV__NONE || !clv__can_run(plan->problem, at, device)) return false;
  *delta_ns = clv__price_move(plan->problem, plan->problem_devices, &plan->readers, at, device);
  return true;
}

bool clv__plan_has_open_inputs(const clv_plan *plan) {
  for (uint32_t i = 0; i < plan->graph->input_count; ++i) {
    if (!clv__tensor_is_static(&plan->shapes->types[plan->graph->inputs[i]])) return true;
  }
  return false;
}

double clv__plan_gap(const clv_plan *plan) {
  if (plan->lower_bound_ns == 0) return plan->predicted_ns == 0 ? 0 : -1;
  return ((double)plan->predicted_ns - (double)plan->lower_bound_ns) / (double)plan->lower_bound_ns;
}

/* A value between the partition's nodes needs memory from the node that computes it, in node order, to its last reader. Inputs
 * need memory throughout, outputs from the node that computes them to the end. */
uint64_t clv__view_peak_bytes(const clv_allocator *allocator, const clv_graph_view *view) {
  uint32_t *last = clv__allocate_zero(allocator, (size_t)view->value_count * sizeof *last);
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
      last[value] = UINT32_MAX; /* subtract it only once, even if a node reads it twice */
    }
  }
  clv__release(allocator, last);
  return peak;
}

uint64_t clv__partition_peak_bytes(const clv_plan *plan, const clv__partition *partition) {
  return clv__view_peak_bytes(plan->graph->allocator, clv__partition_sized(partition));
}
