/* `contiguous`: each node goes to the first device, in order of priority, that supports it. Views go where their source is, so
 * that no boundary is made for them. */
#include "place/place.h"

static uint32_t first_supporting(const clv_plan *plan, clv_node_id node) {
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    if (clv__capability_reason(&plan->capability, node, d) == NULL) return d;
  }
  return CLV__NO_ID;
}

/* The device of a view's source; CLV__NO_ID where the node is no view, or nothing on a device made the source. */
static uint32_t source_device(const clv_plan *plan, clv_node_id node) {
  const clv__node *at = &plan->graph->nodes[node];
  const clv__op *op = clv__op_find(at->domain, at->op);
  if (op == NULL || (op->flags & CLV__OP_VIEW) == 0 || at->input_count == 0 || at->inputs[0] == CLV__NO_ID) return CLV__NO_ID;
  clv_node_id producer = plan->graph->values[at->inputs[0]].producer;
  if (producer == CLV__NO_ID) return CLV__NO_ID;
  uint32_t device = plan->placement.devices[producer];
  if (device == CLV__NO_ID || clv__capability_reason(&plan->capability, node, device) != NULL) return CLV__NO_ID;
  return device;
}

clv_status clv__place_contiguous(const clv__place_input *input, clv_error *error) {
  (void)error;
  clv_plan *plan = input->plan;
  for (clv_node_id n = 0; n < plan->graph->node_count; ++n) {
    if (plan->shapes->node_folded[n]) continue;
    uint32_t *device = &plan->placement.devices[n];
    if (input->pinned[n] != CLV__NO_ID) {
      *device = input->pinned[n];
      plan->placement.causes[n] = "usr";
      continue;
    }
    *device = source_device(plan, n);
    plan->placement.causes[n] = "view";
    if (*device != CLV__NO_ID) continue;
    *device = first_supporting(plan, n);
    plan->placement.causes[n] = *device == 0 ? "first" : "supported";
  }
  return CLV_OK;
}
