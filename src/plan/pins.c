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

/* The state of applying the assignments of one option (pins or forces). Those with a pattern are applied first, then those with
 * a plain name, which override them. */
typedef struct fixing {
  const clv_plan *plan;
  const clv__map *names; /* the nodes by name; NULL: assignments name operators */
  const clv_assignment *items;
  uint32_t count;
  uint32_t *pinned;
  uint32_t *by; /* by node: the assignment of the kind being applied (pattern or plain name) that fixed it, or CLV__NO_ID */
} fixing;

/* Pins the nodes that the assignment matches. Uses a map for plain names, because a caller may pin every node of a large graph.
 */
static clv_status fix_by_name(const fixing *f, uint32_t item, uint32_t device, uint32_t *hits, clv_error *error) {
  const clv_plan *plan = f->plan;
  const clv_assignment *pin = &f->items[item];
  const clv__map *names = f->names;
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
      return clv__error_set(error, CLV_NOT_SUPPORTED, "node '%s' (%s) is %s to %s, which cannot run it: %s", node->name, node->op,
                            names != NULL ? "pinned" : "forced", pin->device, reason);
    }
    if (f->by[n] != CLV__NO_ID && f->pinned[n] != device) {
      const clv_assignment *other = &f->items[f->by[n]];
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "node '%s' (%s): '%s=%s' and '%s=%s' contradict each other", node->name,
                            node->op, other->pattern, other->device, pin->pattern, pin->device);
    }
    f->pinned[n] = device;
    f->by[n] = item;
  }
  return CLV_OK;
}

/* Applies the assignments with a plain name, or those with a pattern. */
static clv_status fix_kind(const fixing *f, bool plain, clv_error *error) {
  const clv_plan *plan = f->plan;
  const clv_assignment *items = f->items;
  memset(f->by, 0xff, plan->graph->node_count * sizeof *f->by); /* CLV__NO_ID */
  for (uint32_t i = 0; i < f->count; ++i) {
    if (is_plain(items[i].pattern) != plain) continue;
    uint32_t device = clv__devices_find(plan->devices, items[i].device);
    if (device == CLV__NO_ID) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s=%s': device '%s' is not in the list of devices", items[i].pattern,
                            items[i].device, items[i].device);
    }
    uint32_t hits;
    CLV__TRY(fix_by_name(f, i, device, &hits, error));
    if (hits == 0) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "'%s=%s' matches no %s of the model", items[i].pattern, items[i].device,
                            f->names != NULL ? "node" : "operator");
    }
  }
  return CLV_OK;
}

static clv_status fix_all(const fixing *f, clv_error *error) {
  CLV__TRY(fix_kind(f, false, error));
  return fix_kind(f, true, error);
}

static clv_status fix_nodes(const clv_plan *plan, const clv_plan_options *options, uint32_t *pinned, clv_error *error) {
  const clv_graph *graph = plan->graph;
  clv__map names;
  clv__map_init(&names, graph->allocator);
  clv_status status = CLV_OK;
  fixing forces = {.plan = plan, .items = options->forces, .count = options->force_count, .pinned = pinned};
  fixing pins = {.plan = plan, .names = &names, .items = options->pins, .count = options->pin_count, .pinned = pinned};
  forces.by = pins.by = clv__allocate(graph->allocator, (graph->node_count + 1) * sizeof *pins.by);
  if (pins.by == NULL) {
    status = clv__error_memory(error, graph->node_count * sizeof *pins.by);
    goto cleanup;
  }
  for (clv_node_id n = 0; options->pin_count > 0 && n < graph->node_count; ++n) {
    if (clv__map_set(&names, graph->nodes[n].name, n)) continue;
    status = clv__error_memory(error, sizeof(clv__map_slot));
    goto cleanup;
  }
  CLV__TRY_GOTO(fix_all(&forces, error));
  CLV__TRY_GOTO(fix_all(&pins, error)); /* pins override forces */
cleanup:
  clv__release(graph->allocator, pins.by);
  clv__map_finish(&names);
  return status;
}

/* Finds the homes of values from assignments by name. With `weights`, the names match only values known before the graph runs
 * (initializers and folded values); otherwise only inputs, outputs and values between nodes. */
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
