/* Makes a plan again for other weights of the same graph: with the same partitions, and with new folded values. */
#include <string.h>

#include "plan/make.h"

/* Checks that the types are those of the old plan, and that the same values are known. Partitions, transfers and prices depend
 * on both. */
static clv_status check_types(const clv_plan *old, const clv_plan *plan, clv_error *error) {
  const clv_graph *graph = plan->graph;
  for (clv_value_id v = 0; v < graph->value_count; ++v) {
    const clv_tensor *was = &old->shapes->types[v], *is = &plan->shapes->types[v];
    if (!clv__tensor_same_type(was, is)) {
      char before[160], now[160];
      clv__graph_type_text(graph, was, before, sizeof before);
      clv__graph_type_text(graph, is, now, sizeof now);
      return clv__error_set(error, CLV_NOT_SUPPORTED,
                            "with these weights '%s' is %s, but the plan was made for %s: load the model with these weights, and "
                            "plan again",
                            graph->values[v].name, now, before);
    }
    if ((was->data == NULL) == (is->data == NULL)) continue;
    return clv__error_set(
        error, CLV_NOT_SUPPORTED,
        "with these weights '%s' is %s when planning, but the plan was made otherwise: load the model with these "
        "weights, and plan again",
        graph->values[v].name, is->data != NULL ? "known" : "not known");
  }
  for (clv_node_id n = 0; n < graph->node_count; ++n) {
    if (old->shapes->node_folded[n] == plan->shapes->node_folded[n]) continue;
    return clv__error_set(
        error, CLV_NOT_SUPPORTED,
        "with these weights node '%s' (%s) is %s when planning, but the plan was made otherwise: load the model "
        "with these weights, and plan again",
        graph->nodes[n].name, graph->nodes[n].op, plan->shapes->node_folded[n] ? "computed" : "not computed");
  }
  return CLV_OK;
}

/* Asks the devices again, because a verdict may depend on the value of a constant. A node stays where it is, or the weights are
 * refused. Elsewhere both the old and the new reasons count. */
static clv_status ask_again(const clv_plan *old, clv_plan *plan, uint32_t gone, clv_error *error) {
  clv_graph_view *whole;
  CLV__TRY(clv__view_create_whole(plan->graph, plan->shapes->types, &plan->arena, &whole, error));
  CLV__TRY(clv__capability_ask(plan->devices, whole, plan->shapes->node_folded, plan->open, NULL, NULL, NULL, &plan->capability,
                               error));
  CLV__TRY(clv__plan_host_views(plan, error));
  clv__problem *problem = clv__arena_copy(&plan->arena, old->problem, sizeof *problem);
  uint16_t *supports = clv__arena_copy(&plan->arena, old->problem->supports, old->problem->node_count * sizeof *supports);
  if (problem == NULL || supports == NULL) return clv__error_memory(error, sizeof *problem);
  problem->supports = supports;
  plan->problem = problem;
  for (uint32_t at = 0; at < problem->node_count; ++at) {
    clv_node_id n = problem->node_ids[at];
    for (uint32_t d = 0; d < plan->devices->count; ++d) {
      const char *reason = clv__capability_reason(&plan->capability, n, d), *was = clv__capability_reason(&old->capability, n, d);
      if (reason == NULL && was != NULL) plan->capability.reasons[(size_t)n * plan->capability.device_count + d] = was;
      if (reason == NULL) continue;
      supports[at] &= (uint16_t) ~(1u << d);
      if (old->placement.devices[n] != d || (gone >> d & 1u) != 0) continue;
      return clv__error_set(error, CLV_NOT_SUPPORTED, "node '%s' (%s): with these weights %s cannot run it: %s",
                            plan->graph->nodes[n].name, plan->graph->nodes[n].op, plan->devices->items[d].name, reason);
    }
  }
  return CLV_OK;
}

static clv_status fill(const clv_plan *old, clv_plan *plan, uint32_t gone, clv_error *error) {
  const clv_graph *graph = plan->graph;
  CLV__TRY(clv__graph_check_files(graph, error));
  CLV__TRY(clv__shapes_infer(graph, plan->sizes, plan->size_count, clv__plan_fold_limit(plan->devices), &plan->shapes, error));
  CLV__TRY(check_types(old, plan, error));
  CLV__TRY(clv__open_find(graph, plan->shapes, plan->sizes, plan->size_count, &plan->arena, &plan->open, error));
  plan->placement.devices =
      clv__arena_copy(&plan->arena, old->placement.devices, graph->node_count * sizeof *plan->placement.devices);
  if (plan->placement.devices == NULL) return clv__error_memory(error, graph->node_count * sizeof *plan->placement.devices);
  clv__devices_lock(plan->devices);
  clv_status status = ask_again(old, plan, gone, error);
  if (status == CLV_OK) status = clv__plan_set_cut(plan, &old->cut, old->streamed, error);
  clv__devices_unlock(plan->devices);
  return status == CLV_OK ? clv__graph_check_files(graph, error) : status;
}

clv_status clv__plan_with_weights(const clv_plan *old, const clv_graph *graph, uint32_t gone, clv_plan **out, clv_error *error) {
  *out = NULL;
  clv_plan *plan = clv__allocate_zero(graph->allocator, sizeof *plan);
  if (plan == NULL) return clv__error_memory(error, sizeof *plan);
  *plan = *old; /* what stays, such as transfers and prices, is in the old plan's memory */
  plan->graph = graph;
  plan->origin = NULL;
  plan->same_partitions = NULL;
  plan->has_other_weights = true;
  plan->shapes = NULL;
  plan->open = NULL;
  plan->capability = (clv__capability){0};
  clv__arena_init(&plan->arena, graph->allocator);
  clv__arena_init(&plan->capability.arena, graph->allocator);
  clv_status status = fill(old, plan, gone, error);
  if (status == CLV_OK)
    *out = plan;
  else
    clv_plan_destroy(plan);
  return status;
}
