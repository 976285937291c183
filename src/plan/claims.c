/* The groups of nodes that devices choose themselves (claim()), for the strategy `delegate`. */
#include <stdio.h>
#include <string.h>

#include "plan/make.h"

typedef struct claiming {
  const clv_plan *plan;
  uint32_t device, group;
  uint32_t *groups; /* by problem node: the group in which the device claims it, or CLV__NONE */
} claiming;

/* Records a group that a device claims. A group is claimed as a whole or not at all. Empty groups are skipped, so there are never
 * more groups than nodes. */
static clv_status add_claim(void *cookie, const uint32_t *nodes, uint32_t count) {
  claiming *c = cookie;
  if (count == 0) return CLV_OK;
  if (nodes == NULL) return CLV_INVALID_ARGUMENT;
  for (uint32_t i = 0; i < count; ++i) {
    if (nodes[i] >= c->plan->graph->node_count || (i > 0 && nodes[i] <= nodes[i - 1])) return CLV_INVALID_ARGUMENT;
    uint32_t at = c->plan->problem_nodes[nodes[i]];
    if (at == CLV__NONE || !clv__can_run(c->plan->problem, at, c->device) || c->groups[at] != CLV__NONE ||
        clv__is_hosted(c->plan->problem, at, c->device))
      return CLV_INVALID_ARGUMENT;
  }
  for (uint32_t i = 0; i < count; ++i) c->groups[c->plan->problem_nodes[nodes[i]]] = c->group;
  ++c->group;
  return CLV_OK;
}

/* Takes the device out of the plan, because it failed to choose its groups. */
static clv_status take_out(clv_plan *plan, uint32_t device, const char *message, clv_error *error) {
  const char *name = plan->devices->items[device].name;
  char text[640];
  snprintf(text, sizeof text, "%s: removed: it could not choose its node groups: %.500s", name, message);
  plan->note = clv__arena_string(&plan->arena, text, strlen(text));
  if (plan->note == NULL) return clv__error_memory(error, strlen(text));
  clv__context_log(plan->devices->context, 1, "%s", plan->note);
  plan->gone |= 1u << device;
  plan->gone_why[device] = plan->note + strlen(name) + 2;
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) {
    if (plan->shapes->node_folded[n]) continue;
    plan->capability.reasons[(size_t)n * plan->capability.device_count + device] = plan->gone_why[device];
    plan->capability.hosted[n] &= (uint16_t) ~(1u << device);
  }
  return CLV_OK;
}

clv_status clv__plan_ask_claims(clv_plan *plan, const clv_graph_view *whole, bool *is_complete, clv_error *error) {
  plan->claims = NULL;
  *is_complete = true;
  const clv_graph *graph = plan->graph;
  claiming c = {.plan = plan};
  uint32_t **all = clv__arena_allocate_zero(&plan->arena, plan->devices->count, sizeof *all);
  bool *is_free = clv__arena_allocate_zero(&plan->arena, graph->node_count, sizeof *is_free);
  if (all == NULL || is_free == NULL) return clv__error_memory(error, graph->node_count);
  for (c.device = 0; c.device < plan->devices->count; ++c.device) {
    const clv__device *device = &plan->devices->items[c.device];
    if (device->backend->claim == NULL || (plan->gone >> c.device & 1u) != 0) continue;
    for (clv_node_id n = 0; n < graph->node_count; ++n) {
      uint32_t at = plan->problem_nodes[n];
      is_free[n] = at != CLV__NONE && clv__can_run(plan->problem, at, c.device) && !clv__is_hosted(plan->problem, at, c.device);
    }
    c.groups = clv__arena_allocate(&plan->arena, plan->problem->node_count * sizeof *c.groups);
    if (c.groups == NULL) return clv__error_memory(error, plan->problem->node_count * sizeof *c.groups);
    memset(c.groups, 0xff, plan->problem->node_count * sizeof *c.groups); /* CLV__NONE */
    c.group = 0;
    clv_error refused = {0};
    clv_status status = CLV__CALL(device, &refused, claim, whole, is_free, add_claim, &c);
    if (status != CLV_OK) {
      *is_complete = false;
      return take_out(plan, c.device, refused.message, error);
    }
    all[c.device] = c.groups;
    plan->claims = (const uint32_t *const *)all;
  }
  return CLV_OK;
}
