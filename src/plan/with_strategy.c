/* Makes a plan again with another strategy, or with all nodes on one device. */
#include "plan/without_device.h"

/* Returns an error that says why, if not all nodes can be on the device. */
static clv_status check_single(const clv_plan *old, uint32_t device, clv_error *error) {
  const clv__problem *problem = old->problem;
  const clv__device *devices = old->devices->items;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    const clv__node *node = &old->graph->nodes[problem->node_ids[n]];
    uint32_t pin = problem->pins[n];
    if (!clv__can_run(problem, n, device)) {
      const char *reason = clv__capability_reason(&old->capability, problem->node_ids[n], device);
      return clv__error_set(error, CLV_NOT_SUPPORTED, "node '%s' (%s) cannot run on %s%s%s", node->name, node->op,
                            devices[device].name, reason == NULL ? "" : ": ", reason == NULL ? "" : reason);
    }
    if (pin != CLV__NONE && pin != device) {
      return clv__error_set(error, CLV_NOT_SUPPORTED, "node '%s' (%s) is pinned to %s", node->name, node->op, devices[pin].name);
    }
  }
  return CLV_OK;
}

static clv_status place(clv__leaving *l, const clv__strategy *strategy, clv__poll *poll, clv_error *error) {
  clv_plan *plan = l->plan;
  CLV__TRY(clv__leaving_begin(l, "not asked", error));
  plan->split = plan->split_is_given ? plan->split : strategy->split;
  plan->problem->poll = poll;
  clv__place_input input = clv__leaving_input(plan, plan->problem);
  clv_status status = clv__plan_place(plan, strategy, &input, error);
  plan->problem->poll = NULL;
  return status;
}

clv_status clv__plan_with_strategy(const clv_plan *old, const clv__strategy *strategy, uint32_t only, clv__poll *poll,
                                   clv_plan **out, clv_error *error) {
  clv__leaving l;
  uint32_t others = 0;
  *out = NULL;
  if (only != CLV__NONE) {
    CLV__TRY(check_single(old, only, error));
    others = ~(1u << only);
  }
  CLV__TRY(clv__leaving_create(old, others, &l, error));
  clv__devices_lock(old->devices);
  clv_status status = place(&l, strategy, poll, error);
  clv__devices_unlock(old->devices);
  if (status == CLV_OK)
    *out = l.plan;
  else
    clv_plan_destroy(l.plan);
  return status;
}
