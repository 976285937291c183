/* Places everything on one device: the baseline with which plans are compared. */
#include "place/place.h"

clv_status clv__place_single(const clv__place_input *input, uint32_t device, clv__arena *arena, clv__placing *placing,
                             clv_error *error) {
  const clv__problem *problem = input->problem;
  char text[16], of[16], there[16];
  CLV__TRY(clv__placing_init(problem, arena, placing, error));
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    if (!clv__can_run(problem, n, device)) {
      return clv__error_set(error, CLV_NOT_SUPPORTED, "node '%s' cannot run on %s, so not all nodes can be there",
                            clv__problem_node_name(problem, n, text), clv__problem_device_name(problem, device, of));
    }
    if (problem->pins[n] != CLV__NONE && problem->pins[n] != device) {
      return clv__error_set(error, CLV_NOT_SUPPORTED, "node '%s' is pinned to %s, so not all nodes can be on %s",
                            clv__problem_node_name(problem, n, text), clv__problem_device_name(problem, problem->pins[n], there),
                            clv__problem_device_name(problem, device, of));
    }
    placing->devices[n] = device;
    placing->causes[n] = problem->pins[n] != CLV__NONE ? "usr" : "single";
  }
  return CLV_OK;
}
