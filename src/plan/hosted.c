/* Hosted views: views that a device rejects, but that may be placed on it all the same, because there is nothing to compute.
 * The bytes of the source, in the device's memory, are also the result. The host only renames them: it passes them on as the
 * view's value, and no executable of the device contains the view. */
#include <string.h>

#include "operators/infer.h"
#include "plan/plan.h"

bool clv__plan_is_view(const clv_plan *plan, const clv__node *node) {
  const clv__op *op = clv__op_find(node->domain, node->op);
  if (op == NULL || (op->flags & CLV__OP_VIEW) == 0 || node->input_count == 0 || node->inputs[0] == CLV__NO_ID) return false;
  if (clv__value_is_constant(plan->graph, plan->shapes->types, node->inputs[0])) return false;
  for (uint32_t i = 1; i < node->output_count; ++i) {
    if (node->outputs[i] != CLV__NO_ID) return false; /* a node with a mask output is not a view */
  }
  return true;
}

/* Returns whether the host can rename the view: it knows both types, and nothing of the result depends on another value. */
static bool can_rename(const clv_plan *plan, const clv__node *node) {
  const clv_tensor *types = plan->shapes->types;
  size_t from_bytes, to_bytes;
  if (!clv__plan_is_view(plan, node) || node->outputs[0] == CLV__NO_ID) return false;
  for (uint32_t i = 1; i < node->input_count; ++i) {
    if (node->inputs[i] != CLV__NO_ID && !clv__value_is_constant(plan->graph, types, node->inputs[i])) return false;
  }
  const clv_tensor *from = &types[node->inputs[0]], *to = &types[node->outputs[0]];
  if (from->dtype != to->dtype || from->dtype == CLV_STRING) return false; /* strings are in host memory only */
  return clv__tensor_size_bytes(from, &from_bytes) && clv__tensor_size_bytes(to, &to_bytes) && from_bytes == to_bytes;
}

clv_status clv__plan_host_views(clv_plan *plan, clv_error *error) {
  clv__capability *capability = &plan->capability;
  const clv_graph *graph = plan->graph;
  capability->hosted = clv__arena_allocate_zero(&capability->arena, graph->node_count, sizeof *capability->hosted);
  if (capability->hosted == NULL) return clv__error_memory(error, graph->node_count * sizeof *capability->hosted);
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    if (plan->shapes->node_folded[n] || !can_rename(plan, &graph->nodes[n])) continue;
    for (uint32_t d = 0; d < capability->device_count; ++d) {
      const clv__device *device = &plan->devices->items[d];
      if (clv__device_is_lost(device) || (plan->gone >> d & 1u) != 0 || device->info.computes_views) continue;
      if (clv__capability_answer(capability, n, d) != NULL) capability->hosted[n] |= (uint16_t)(1u << d);
    }
  }
  return CLV_OK;
}

clv_status clv__plan_name_hosted(clv_plan *plan, clv_error *error) {
  const clv__problem *problem = plan->problem;
  plan->sources = NULL;
  plan->hosted_count = 0;
  for (uint32_t p = 0; p < plan->cut.count; ++p) {
    if (!clv__cut_is_hosted(problem, &plan->cut, p)) continue;
    if (plan->sources == NULL) {
      size_t count = plan->graph->value_count;
      clv_value_id *sources = clv__arena_allocate(&plan->arena, count * sizeof *sources);
      if (sources == NULL) return clv__error_memory(error, count * sizeof *sources);
      memset(sources, 0xff, count * sizeof *sources); /* CLV__NO_ID */
      plan->sources = sources;
    }
    const clv__partition *partition = &plan->partitions[p];
    for (uint32_t i = 0; i < partition->node_count; ++i) { /* in topological order, so the source of a source is known */
      const clv__node *node = &plan->graph->nodes[partition->nodes[i]];
      plan->sources[node->outputs[0]] = clv__plan_storage(plan, node->inputs[0], problem->spaces[partition->device]);
    }
    ++plan->hosted_count;
  }
  return CLV_OK;
}
