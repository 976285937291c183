/* Properties of a node that several strategies need. */
#ifndef CLEAVE_PLACE_NODE_H
#define CLEAVE_PLACE_NODE_H

#include "split/problem.h"

/* Bit d: device d may run the node. If the node is pinned, only the pinned device may. */
static inline uint32_t clv__node_choices(const clv__problem *problem, uint32_t node) {
  return problem->pins[node] == CLV__NONE ? problem->supports[node] : 1u << problem->pins[node];
}

static inline bool clv__node_is_view(const clv__problem *problem, uint32_t node) {
  return (problem->flags[node] & CLV__NODE_VIEW) != 0 && problem->read_offsets[node] < problem->read_offsets[node + 1];
}

/* Returns the node that computes the source of a view; CLV__NONE if the source is a graph input. */
static inline uint32_t clv__node_source(const clv__problem *problem, uint32_t view) {
  return problem->producers[problem->reads[problem->read_offsets[view]]];
}

static inline clv_status clv__node_unsupported(const clv__problem *problem, uint32_t node, clv_error *error) {
  char text[16];
  return clv__error_set(error, CLV_NOT_SUPPORTED, "node '%s': no device can run it", clv__problem_node_name(problem, node, text));
}

#endif
