/* `contiguous`: each node goes to the first device, in order of priority, that supports it. Views go to the device of their
 * source, so they cause no boundary. */
#include "place/list_cut.h"
#include "place/views.h"

/* Returns the device of a view's source. Returns CLV__NONE if the node is not a view, if the source is a graph input, or if
 * that device cannot run the node. */
static uint32_t source_device(const clv__problem *problem, uint32_t node, const uint32_t *devices) {
  if ((problem->flags[node] & CLV__NODE_VIEW) == 0) return CLV__NONE;
  uint32_t producer = problem->producers[problem->reads[problem->read_offsets[node]]];
  if (producer == CLV__NONE || !clv__can_run(problem, node, devices[producer])) return CLV__NONE;
  return devices[producer];
}

clv_status clv__place_contiguous(const clv__place_input *input, clv__arena *arena, clv__placing *placing, clv_error *error) {
  const clv__problem *problem = input->problem;
  CLV__TRY(clv__placing_init(problem, arena, placing, error));
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    uint32_t *device = &placing->devices[n];
    if (problem->pins[n] != CLV__NONE) {
      *device = problem->pins[n];
      placing->causes[n] = "usr";
      continue;
    }
    *device = source_device(problem, n, placing->devices);
    placing->causes[n] = "view";
    if (*device != CLV__NONE) continue;
    *device = (uint32_t)__builtin_ctz(problem->supports[n]);
    placing->causes[n] = *device == 0 ? "first" : "supported";
  }
  const clv__list_cut options = {.joined = "view"};
  if (input->split == CLV__SPLIT_LINEAR) return clv__place_cut_list(problem, &options, arena, placing, error);
  const clv__view_options view_options = {.joined = "view"};
  clv__views views;
  return clv__place_views(problem, &view_options, arena, placing, &views, error);
}

static const clv__cause causes[] = {
    {"first", "the first device in --devices supports it"},
    {"supported", "no device before this one in --devices supports it"},
    {NULL, NULL},
};

const clv__strategy clv__strategy_contiguous = {
    .name = "contiguous",
    .summary = "each node on the first device in --devices that supports it; consecutive nodes on one device form a partition",
    .place = clv__place_contiguous,
    .split = CLV__SPLIT_LINEAR,
    .causes = causes,
};
