/* The table of strategies, how each begins, and its result as a comparable candidate: placed and cut, with its moves and its
 * price. */
#include <string.h>

#include "place/list_cut.h"

const clv__strategy clv__strategies[] = {
    {"optimal", "minimise the predicted time, with a lower bound: exact minimum cut, then local search", clv__place_optimal,
     CLV__SPLIT_CONVEX, 0},
    {"contiguous",
     "each node on the first device of --devices that supports it; consecutive nodes on one device form a partition",
     clv__place_contiguous, CLV__SPLIT_LINEAR, 0},
    {"propagate",
     "start at the devices where weights and inputs live, and spread along the node list, down and up; then the best supported "
     "device",
     clv__place_propagate, CLV__SPLIT_LINEAR, CLV__PROPAGATE_COPIES},
    {"propagate-graph", "like propagate, but spread along the edges of the graph", clv__place_propagate_graph, CLV__SPLIT_LINEAR,
     CLV__PROPAGATE_COPIES},
    {"delegate", "each device but the last takes the runs of consecutive nodes that it supports", clv__place_delegate,
     CLV__SPLIT_LINEAR, 0},
    {"ready", "run all ready nodes on one device, then all ready nodes on the next, in turn", clv__place_ready, CLV__SPLIT_CONVEX,
     0},
    {NULL, NULL, NULL, CLV__SPLIT_LINEAR, 0},
};

const clv__strategy *clv__strategy_find(const char *name) {
  for (const clv__strategy *strategy = clv__strategies; strategy->name != NULL; ++strategy) {
    if (strcmp(strategy->name, name) == 0) return strategy;
  }
  return NULL;
}

clv_status clv__placing_init(const clv__problem *problem, clv__arena *arena, clv__placing *placing, clv_error *error) {
  size_t count = problem->node_count;
  *placing = (clv__placing){.devices = clv__arena_allocate(arena, count * sizeof *placing->devices),
                            .causes = clv__arena_allocate(arena, count * sizeof *placing->causes)};
  if (placing->devices == NULL || placing->causes == NULL) return clv__error_memory(error, count * sizeof *placing->causes);
  memset(placing->devices, 0xff, count * sizeof *placing->devices); /* CLV__NONE */
  for (size_t n = 0; n < count; ++n) placing->causes[n] = "";
  return CLV_OK;
}

clv_status clv__place_candidate(const clv__place_input *input, clv__place_fn place, clv__arena *arena, clv__candidate *candidate,
                                clv_error *error) {
  *candidate = (clv__candidate){0};
  CLV__TRY(place(input, arena, &candidate->placing, error));
  return clv__place_price(input, arena, candidate, error);
}

clv_status clv__place_price(const clv__place_input *input, clv__arena *arena, clv__candidate *candidate, clv_error *error) {
  const clv__placing *placing = &candidate->placing;
  if (placing->has_cut)
    candidate->cut = placing->cut;
  else
    CLV__TRY(clv__split(input->problem, placing->devices, placing->groups, input->split, arena, &candidate->cut, error));
  CLV__TRY(clv__split_moves(input->problem, &candidate->cut, placing->streamed, arena, &candidate->moves, error));
  return clv__price_cut(input->problem, &candidate->cut, &candidate->moves, arena, &candidate->price, error);
}
