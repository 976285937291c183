/* Computes a lower bound on the time of a placement, however it is cut into partitions. This bound is cheap compared to cutting,
 * and suffices to discard most placements. */
#include "place/optimal/optimal.h"

/* Returns the sum of one launch on each device that has any node other than a view. */
static uint64_t launches_by_device(const clv__problem *problem, const uint32_t *devices) {
  uint64_t time_ns = 0;
  uint32_t used = 0;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    if ((problem->flags[n] & CLV__NODE_VIEW) == 0) used |= 1u << devices[n];
  }
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    if ((used >> d & 1u) != 0) time_ns = clv__add_ns(time_ns, problem->launch_ns[d]);
  }
  return time_ns;
}

/* Returns the launches along the most expensive path through the graph: every change of device along a path begins another
 * partition. Views are left out, because their partition may have only views, and then has no launch. `launches` and `last` are
 * by node: the launches of the most expensive path to it, and the last device on that path. */
static uint64_t launches_along(const clv__problem *problem, const uint32_t *devices, uint64_t *launches, uint8_t *last) {
  uint64_t most = 0;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    bool is_view = (problem->flags[n] & CLV__NODE_VIEW) != 0;
    launches[n] = is_view ? 0 : problem->launch_ns[devices[n]];
    last[n] = is_view ? UINT8_MAX : (uint8_t)devices[n];
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer == CLV__NONE) continue;
      uint64_t time = launches[producer];
      if (!is_view && last[producer] != devices[n]) time = clv__add_ns(time, problem->launch_ns[devices[n]]);
      if (time <= launches[n]) continue;
      launches[n] = time;
      if (is_view) last[n] = last[producer];
    }
    if (launches[n] > most) most = launches[n];
  }
  return most;
}

/* Returns a lower bound on the load of the busiest device: the time of its nodes, minus all savings that they may have. */
static uint64_t busiest_ns(const clv__problem *problem, const uint32_t *devices) {
  uint64_t load[16] = {0}, saved[16] = {0}, most = 0;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    uint32_t d = devices[n];
    load[d] = clv__add_ns(load[d], clv__node_ns(problem, n, d));
    for (uint32_t r = problem->read_offsets[n]; problem->saving_ns != NULL && r < problem->read_offsets[n + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer != CLV__NONE && devices[producer] == d) saved[d] += clv__saving_ns(problem, r, d);
    }
  }
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    uint64_t least = load[d] - (saved[d] < load[d] ? saved[d] : load[d]);
    if (least > most) most = least;
  }
  return most;
}

clv_status clv__is_hopeless(const clv__evaluator *evaluator, const uint32_t *devices, const clv__score *score, bool *hopeless,
                            clv_error *error) {
  const clv__problem *problem = evaluator->problem;
  const clv_allocator *allocator = evaluator->arena.allocator;
  *hopeless = false;
  if (score->excess_bytes > 0) return CLV_OK;
  if (evaluator->objective != CLV__LATENCY) {
    *hopeless = busiest_ns(problem, devices) > score->time_ns;
    return CLV_OK;
  }
  uint64_t placed, once = launches_by_device(problem, devices);
  CLV__TRY(clv__price_placement(problem, devices, &placed, error));
  *hopeless = clv__add_ns(placed, once) > score->time_ns;
  if (*hopeless) return CLV_OK;
  uint64_t *launches = clv__allocate(allocator, problem->node_count * (sizeof *launches + 1));
  if (launches == NULL) return clv__error_memory(error, problem->node_count * (sizeof *launches + 1));
  uint64_t along = launches_along(problem, devices, launches, (uint8_t *)(launches + problem->node_count));
  *hopeless = clv__add_ns(placed, along) > score->time_ns;
  clv__release(allocator, launches);
  return CLV_OK;
}
