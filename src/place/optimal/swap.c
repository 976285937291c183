/* Swap moves: redistributes the nodes of two devices at a time by a minimum cut, which is exact however many other devices there
 * are. */
#include <string.h>

#include "place/optimal/optimal.h"
#include "split/minimum_cut/network.h"

/* Returns the sum of one launch on each device that has a node. */
static uint64_t launches_ns(const clv__problem *problem, const uint32_t *devices) {
  uint64_t time_ns = 0;
  uint32_t used = 0;
  for (uint32_t n = 0; n < problem->node_count; ++n) used |= 1u << devices[n];
  for (uint32_t d = 0; d < problem->device_count; ++d) time_ns += (used >> d & 1u) * problem->launch_ns[d];
  return time_ns;
}

/* Redistributes the nodes that are on `one` or `other` over these two devices, if that reduces `cost_ns`, the cost of
 * `devices`. */
static clv_status swap_pair(const clv__problem *problem, uint32_t one, uint32_t other, const clv_allocator *allocator,
                            uint32_t *fixed, uint32_t *trial, uint32_t *devices, uint64_t *cost_ns, clv_error *error) {
  uint32_t moved = 0;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    bool is_free = devices[n] == one || devices[n] == other;
    fixed[n] = is_free ? CLV__NONE : devices[n];
    moved += is_free;
  }
  if (moved == 0) return CLV_OK;
  clv__network_options options = {
      .one = one, .other = other, .fixed = problem->device_count > 2 ? fixed : NULL, .launches = true};
  uint64_t cut_ns, price_ns;
  CLV__TRY(clv__network_solve(problem, &options, allocator, trial, &cut_ns, error));
  CLV__TRY(clv__price_placement(problem, trial, &price_ns, error));
  price_ns = clv__add_ns(price_ns, launches_ns(problem, trial));
  if (price_ns >= *cost_ns) return CLV_OK;
  *cost_ns = price_ns;
  memcpy(devices, trial, problem->node_count * sizeof *devices);
  return CLV_OK;
}

clv_status clv__swap(const clv__problem *problem, uint32_t rounds, const clv_allocator *allocator, uint32_t *devices,
                     clv_error *error) {
  uint32_t *fixed = clv__allocate(allocator, (size_t)problem->node_count * 2 * sizeof *fixed);
  if (fixed == NULL) return clv__error_memory(error, (size_t)problem->node_count * 2 * sizeof *fixed);
  clv_status status = CLV_OK;
  uint64_t cost_ns, before = UINT64_MAX;
  CLV__TRY_GOTO(clv__price_placement(problem, devices, &cost_ns, error));
  cost_ns = clv__add_ns(cost_ns, launches_ns(problem, devices));
  for (uint32_t round = 0; round < rounds && cost_ns != before; ++round) {
    before = cost_ns;
    for (uint32_t one = 0; one < problem->device_count; ++one) {
      for (uint32_t other = one + 1; other < problem->device_count; ++other) {
        CLV__TRY_GOTO(swap_pair(problem, one, other, allocator, fixed, fixed + problem->node_count, devices, &cost_ns, error));
      }
    }
  }
cleanup:
  clv__release(allocator, fixed);
  return status;
}
