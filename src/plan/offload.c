/* Which devices want a node although its weights are in another memory. A device answers by what it does well (prefers() of its
 * backend); planning weighs the answer against the weights that would have to be copied in every run. */
#include "plan/plan.h"

/* Returns the time per run for copying the node's weights to the device: those that the user placed in another memory. All others
 * are uploaded once. `homes` receives the memory spaces of these weights, as bits. */
static uint64_t weights_in_ns(const clv__problem *problem, uint32_t node, uint32_t device, uint32_t *homes) {
  uint64_t total = 0;
  uint32_t space = problem->spaces[device];
  *homes = 0;
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    uint32_t weight = problem->weights[k], home = problem->weight_homes[weight];
    if (home == CLV__NONE || problem->spaces[home] == space || !clv__can_stream(problem, weight, device)) continue;
    *homes |= 1u << problem->spaces[home];
    total = clv__sum_ns(total, problem->weight_in_ns[(size_t)weight * problem->space_count + space]);
  }
  return total;
}

/* Returns the least time of the node on the devices that work in one of the memory spaces `homes` (bits), which hold its
 * weights; CLV__NO_TIME if none of them supports it. */
static uint64_t time_at_home(const clv__problem *problem, uint32_t node, uint32_t homes) {
  uint64_t least = CLV__NO_TIME;
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    if ((homes >> problem->spaces[d] & 1u) == 0 || !clv__can_run(problem, node, d)) continue;
    uint64_t time = clv__node_ns(problem, node, d);
    least = time < least ? time : least;
  }
  return least;
}

/* Returns whether the node gains more on the device than the copies of its weights take. */
static bool pays(const clv__problem *problem, uint32_t node, uint32_t device) {
  uint32_t homes;
  uint64_t copies = weights_in_ns(problem, node, device, &homes);
  return homes == 0 || clv__sum_ns(copies, clv__node_ns(problem, node, device)) < time_at_home(problem, node, homes);
}

clv_status clv__plan_ask_prefers(clv_plan *plan, const clv_graph_view *whole, clv__problem *problem, clv_error *error) {
  uint16_t *prefers = clv__arena_allocate_zero(&plan->arena, problem->node_count, sizeof *prefers);
  if (prefers == NULL) return clv__error_memory(error, problem->node_count * sizeof *prefers);
  problem->prefers = prefers;
  if (plan->offload == CLV__OFFLOAD_OFF) return CLV_OK;
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    const clv__device *device = &plan->devices->items[d];
    if (device->backend->prefers == NULL) continue;
    for (uint32_t n = 0; n < problem->node_count; ++n) {
      if (!clv__can_run(problem, n, d) || clv__is_hosted(problem, n, d)) continue;
      if (!device->backend->prefers(device->handle, whole, problem->node_ids[n])) continue;
      if (plan->offload == CLV__OFFLOAD_ON || pays(problem, n, d)) prefers[n] |= (uint16_t)(1u << d);
    }
  }
  return CLV_OK;
}
