/* Dispatches to the split modes, and defines the names of modes and objectives. */
#include "split/split.h"

const char *clv__split_name(clv__split_mode mode) {
  static const char *const names[] = {"linear", "convex", "fewest"};
  return names[mode];
}

const char *clv__objective_name(clv__objective objective) {
  static const char *const names[] = {"latency", "overlap", "throughput"};
  return names[objective];
}

clv_status clv__split(const clv__problem *problem, const uint32_t *devices, const uint32_t *groups, clv__split_mode mode,
                      clv__arena *arena, clv__cut *cut, clv_error *error) {
  if (clv__poll_stops(problem->poll)) return clv__error_set(error, CLV_CANCELLED, "planning was cancelled");
  if (mode == CLV__SPLIT_LINEAR) return clv__split_linear(problem, devices, groups, arena, cut, error);
  return clv__split_convex(problem, devices, groups, mode == CLV__SPLIT_FEWEST, arena, cut, error);
}

clv_status clv__split_too_many_inputs(const clv__problem *problem, uint32_t node, uint32_t device, uint32_t inputs,
                                      clv_error *error) {
  char text[16], device_text[16];
  return clv__error_set(error, CLV_NOT_SUPPORTED,
                        "node '%s' reads %u value%s from outside its partition; %s supports at most %u per partition",
                        clv__problem_node_name(problem, node, text), inputs, CLV__S(inputs),
                        clv__problem_device_name(problem, device, device_text), problem->limits[device].max_inputs);
}
