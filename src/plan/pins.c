/* The user's choices: --pin by node name, --force by operator, --weights and --value by value name. */
#include <string.h>

#include "base/text.h"
#include "plan/make.h"

static bool matches(const clv_assignment *assignment, bool by_operator, const clv__node *node) {
  return by_operator ? clv__node_matches_op(node, assignment->pattern) : clv__node_matches_name(node, assignment->pattern);
}

static bool is_plain(const char *pattern) {
  return strpbrk(pattern, "*?") == NULL;
}

/* Pins the nodes that match a plain name. Uses a map, because a caller may pin every node of a large graph. */
static clv_status fix_by_name(const clv_plan *plan, const clv__map *names, const clv_assignment *pin, uint32_t device,
                              uint32_t *pinned, uint32_t *hits, clv_error *error) {
  const clv_graph *graph = plan->graph;
  *hits = 0;
  uint32_t found = names != NULL && is_plain(pin->pattern) ? clv__map_find(names, pin->pattern) : CLV__MAP_NONE;
  clv_node_id first = found != CLV__MAP_NONE ? found : 0, end = found != CLV__MAP_NONE ? found + 1 : graph->node_count;
  for (clv_node_id n = first; n < end; ++n) {
    const clv__node *node = &graph->nodes[n];
    if (!matches(pin, names == NULL, node)) continue;
    ++*hits;
    if (plan->shapes->node_folded[n]) continue;
    const char *reason = clv__capability_reason(&plan->capability, n, device);
    if (reason != NULL) {
      return clv__error_set(error, CLV_NOT_SUPPORTED, "node '%s' (%s) is pinned to %s, which cannot run it: %s", node->name,
                            node->op, pin->device, reason);
    }
    pinned[n] = device;
  }
  return CLV_OK;
}

static clv_status fix_all(const clv_plan *plan, const clv__map *names, const clv_assignment *items, uint32_t count,
                          uint32_t *pinned, clv_error *error) {
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t device = clv__devices_find(plan->devices, items[i].device);
    if (device == CLV__NO_ID) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s=%s': device '%s' is not in the list of devices", items[i].pattern,
                            items[i].device, items[i].device);
    }
    uint32_t hits;
    CLV__TRY(fix_by_name(plan, names, &items[i], device, pinned, &hits, error));
    if (hits == 0) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s=%s' matches no %s of the model", items[i].pattern, items[i].device,
                            names != NULL ? "node" : "operator");
    }
  }
  return CLV_OK;
}

static clv_status fix_nodes(const clv_plan *plan, const clv_plan_options *options, uint32_t *pinned, clv_error *error) {
  const clv_graph *graph = plan->graph;
  clv__map names;
  clv__map_init(&names, graph->allocator);
  clv_status status = CLV_OK;
  for (clv_node_id n = 0; options->pin_count > 0 && n < graph->node_count; ++n) {
    if (clv__map_set(&names, graph->nodes[n].name, n)) continue;
    status = clv__error_memory(error, sizeof(clv__map_slot));
    goto cleanup;
  }
  CLV__TRY_GOTO(fix_all(plan, NULL, options->forces, options->force_count, pinned, error));
  CLV__TRY_GOTO(fix_all(plan, &names, options->pins, options->pin_count, pinned, error)); /* pins override forces */
cleanup:
  clv__map_finish(&names);
  return status;
}

/* Finds the homes of values from assignments by name. With `weights`, the names match only initializers; otherwise only inputs,
 * outputs and values between nodes. */
static clv_status fix_values(const clv_plan *plan, const clv_assignment *items, uint32_t count, bool weights, uint32_t *homes,
                             clv_error *error) {
  const clv_graph *graph = plan->graph;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t hits = 0, device = clv__devices_find(plan->devices, items[i].device);
    if (device == CLV__NO_ID) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s=%s': device '%s' is not in the list of devices", items[i].pattern,
                            items[i].device, items[i].device);
    }
    for (clv_value_id v = 0; v < graph->value_count; ++v) {
      if (clv__value_is_constant(graph, plan->shapes->types, v) != weights) continue;
      if (!clv__pattern_match(items[i].pattern, graph->values[v].name)) continue;
      homes[v] = device;
      ++hits;
    }
    if (hits > 0) continue;
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s=%s' matches no %s of the model", items[i].pattern, items[i].device,
                          weights ? "weight" : "value");
  }
  return CLV_OK;
}

clv_status clv__fixed_resolve(clv_plan *plan, const clv_plan_options *options, clv__fixed *fixed, clv_error *error) {
  const clv_graph *graph = plan->graph;
  uint32_t *nodes = clv__arena_allocate(&plan->arena, (size_t)graph->node_count * sizeof *nodes);
  uint32_t *values = clv__arena_allocate(&plan->arena, (size_t)graph->value_count * sizeof *values);
  if (nodes == NULL || values == NULL) return clv__error_memory(error, graph->value_count * sizeof *values);
  memset(nodes, 0xff, (size_t)graph->node_count * sizeof *nodes); /* CLV__NO_ID */
  memset(values, 0xff, (size_t)graph->value_count * sizeof *values);
  CLV__TRY(fix_nodes(plan, options, nodes, error));
  CLV__TRY(fix_values(plan, options->weights, options->weight_count, true, values, error));
  CLV__TRY(fix_values(plan, options->values, options->value_count, false, values, error));
  *fixed = (clv__fixed){.nodes = nodes, .values = values};
  return CLV_OK;
}
