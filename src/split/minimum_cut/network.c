/* Two-sided placements by minimum cut: finds the free nodes, solves the network, and adds the launches. */
#include <string.h>

#include "split/minimum_cut/network_own.h"

/* Numbers the free nodes and records the sides of the others. `kept` is the side on which all nodes except views are kept
 * (PLACE_ONE, PLACE_OTHER; PLACE_FREE: none). Returns false, with the node in `lost`, if a node may be on neither side, or not
 * on the side `kept`. */
static bool number(clv__network *n, network_place kept, uint32_t *lost) {
  const clv__problem *problem = n->problem;
  n->free_count = 0;
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    bool is_fixed = n->fixed != NULL && n->fixed[node] != CLV__NONE;
    uint32_t devices = is_fixed ? problem->supports[node] & 1u << n->fixed[node] : clv__node_devices(problem, node);
    bool one = (devices & n->sides[PLACE_ONE].devices) != 0, other = (devices & n->sides[PLACE_OTHER].devices) != 0;
    *lost = node;
    if (devices == 0 || (!one && !other && !is_fixed)) return false;
    if (kept != PLACE_FREE && (one || other) && (problem->flags[node] & CLV__NODE_VIEW) == 0) {
      if (kept == PLACE_ONE ? !one : !other) return false;
      one = kept == PLACE_ONE, other = !one;
    }
    n->vertices[node] = one && other ? n->free_count++ : one ? VERTEX_ON_ONE : other ? VERTEX_ON_OTHER : VERTEX_THIRD;
  }
  return true;
}

/* Solves the network of the numbered nodes: sets their places and the cost of the placement. */
static clv_status cut(clv__network *n, const clv_allocator *allocator, uint8_t *places, int64_t *cost, clv_error *error) {
  n->flow = NULL;
  n->edge_count = 0;
  n->constant = 0;
  n->overflow = false;
  clv__network_build(n);
  clv_status status = CLV_OK;
  clv__flow *flow = NULL;
  CLV__TRY(clv__flow_create(allocator, n->vertex_count, n->edge_count, &flow, error));
  n->flow = flow;
  clv__network_build(n);
  n->flow = NULL;
  CLV__TRY_GOTO(clv__flow_solve(flow, cost, error));
  if (n->overflow || __builtin_add_overflow(*cost, n->constant, cost) || *cost >= CLV__FLOW_LIMIT) {
    status = clv__error_set(error, CLV_INVALID_ARGUMENT,
                            "the times of this graph add up to %lld ns or more: correct the profile's prices",
                            (long long)CLV__FLOW_LIMIT);
    goto cleanup;
  }
  for (uint32_t node = 0; node < n->problem->node_count; ++node) {
    network_place place = clv__network_place(n, node);
    if (place == PLACE_FREE) place = clv__flow_on_sink_side(flow, n->vertices[node]) ? PLACE_ONE : PLACE_OTHER;
    places[node] = (uint8_t)place;
  }
cleanup:
  clv__flow_destroy(flow);
  return status;
}

/* Returns the sum of the launches of the sides that have a node other than a view. */
static int64_t launches_of(const clv__problem *problem, const uint8_t *places, const uint64_t launches[2], bool used[2]) {
  used[PLACE_ONE] = used[PLACE_OTHER] = false;
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    if ((problem->flags[node] & CLV__NODE_VIEW) == 0 && places[node] <= PLACE_OTHER) used[places[node]] = true;
  }
  uint64_t sum = 0;
  for (int side = 0; side < 2; ++side)
    sum += !used[side] ? 0 : launches[side] < CLV__FLOW_LIMIT ? launches[side] : CLV__FLOW_LIMIT;
  return (int64_t)sum;
}

/* Adds a launch for each side in use. This needs no vertex, because all placements that use both sides pay both launches. So the
 * best placement is either the cut without launches or one that uses a single side. There are only two single-sided placements,
 * if the sides of views are ignored. `trial` is room for another placement. */
static clv_status cut_with_launches(clv__network *n, const uint64_t launches[2], const clv_allocator *allocator, uint8_t *places,
                                    uint8_t *trial, int64_t *cost, clv_error *error) {
  bool used[2], used_alone[2];
  uint32_t lost;
  CLV__TRY(cut(n, allocator, places, cost, error));
  *cost += launches_of(n->problem, places, launches, used);
  if (launches[PLACE_ONE] == 0 && launches[PLACE_OTHER] == 0) return CLV_OK;
  for (network_place side = PLACE_ONE; side <= PLACE_OTHER; ++side) {
    bool is_alone = used[side] && !used[side == PLACE_ONE];
    int64_t alone;
    if (is_alone || !number(n, side, &lost)) continue;
    CLV__TRY(cut(n, allocator, trial, &alone, error));
    alone += launches_of(n->problem, trial, launches, used_alone);
    if (alone > *cost || (alone == *cost && side == PLACE_OTHER)) continue;
    *cost = alone;
    memcpy(places, trial, n->problem->node_count);
  }
  return CLV_OK;
}

static uint32_t spaces_of(const clv__problem *problem, uint16_t devices) {
  uint32_t spaces = 0;
  for (uint32_t left = devices; left != 0; left &= left - 1) spaces |= 1u << problem->spaces[__builtin_ctz(left)];
  return spaces;
}

/* Allocates room for the placement and numbers the nodes. `places` has twice as many entries as there are nodes. */
static clv_status begin(clv__network *n, const clv_allocator *allocator, uint8_t **places, clv_error *error) {
  const clv__problem *problem = n->problem;
  size_t bytes = (size_t)problem->node_count * (sizeof *n->vertices + 2);
  uint32_t lost;
  if (problem->space_count > 32) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "there are %u memory spaces; the maximum is 32", problem->space_count);
  }
  n->sides[PLACE_ONE].spaces = spaces_of(problem, n->sides[PLACE_ONE].devices);
  n->sides[PLACE_OTHER].spaces = spaces_of(problem, n->sides[PLACE_OTHER].devices);
  n->vertices = clv__allocate(allocator, bytes);
  if (n->vertices == NULL) return clv__error_memory(error, bytes);
  *places = (uint8_t *)(n->vertices + problem->node_count);
  if (number(n, PLACE_FREE, &lost)) return CLV_OK;
  clv__release(allocator, n->vertices);
  return clv__error_set(error, CLV_NOT_SUPPORTED,
                        "node %u is not supported by any of the devices that it may be on (device masks 0x%x and 0x%x)", lost,
                        n->sides[PLACE_ONE].devices, n->sides[PLACE_OTHER].devices);
}

clv_status clv__network_solve(const clv__problem *problem, const clv__network_options *options, const clv_allocator *allocator,
                              uint32_t *devices, uint64_t *cost_ns, clv_error *error) {
  clv__network n = {.problem = problem,
                    .sides = {{.devices = (uint16_t)(1u << options->one), .penalty = options->penalty_one},
                              {.devices = (uint16_t)(1u << options->other), .penalty = options->penalty_other}},
                    .fixed = options->fixed,
                    .path = options->path};
  const uint64_t launches[2] = {problem->launch_ns[options->one], problem->launch_ns[options->other]};
  clv_status status = CLV_OK;
  uint8_t *places;
  int64_t cost;
  CLV__TRY(begin(&n, allocator, &places, error));
  if (options->launches && options->path.count == 0) {
    CLV__TRY_GOTO(cut_with_launches(&n, launches, allocator, places, places + problem->node_count, &cost, error));
  } else {
    CLV__TRY_GOTO(cut(&n, allocator, places, &cost, error));
  }
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    devices[node] = places[node] == PLACE_ONE     ? options->one
                    : places[node] == PLACE_OTHER ? options->other
                                                  : options->fixed[node];
  }
  *cost_ns = cost > 0 ? (uint64_t)cost : 0;
cleanup:
  clv__release(allocator, n.vertices);
  return status;
}

clv_status clv__network_bound(const clv__problem *problem, const clv__network_sides *sides, const clv_allocator *allocator,
                              uint8_t *on_other, uint64_t *cost_ns, clv_error *error) {
  clv__network n = {.problem = problem,
                    .sides = {{.devices = sides->one},
                              {.devices = sides->other, .is_nothing = sides->other_is_nothing, .penalty = sides->penalty_other}},
                    .path = sides->path,
                    .device_weights = sides->device_weights,
                    .space_weights = sides->space_weights};
  clv_status status = CLV_OK;
  uint8_t *places;
  int64_t cost;
  CLV__TRY(begin(&n, allocator, &places, error));
  CLV__TRY_GOTO(cut(&n, allocator, places, &cost, error));
  for (uint32_t node = 0; node < problem->node_count && on_other != NULL; ++node) on_other[node] = places[node] == PLACE_OTHER;
  *cost_ns = cost > 0 ? (uint64_t)cost : 0;
cleanup:
  clv__release(allocator, n.vertices);
  return status;
}
