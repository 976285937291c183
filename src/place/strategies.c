/* The table of strategies, and their common initialisation. */
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
