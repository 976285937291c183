/* Passes 3 and 4 of `propagate`. A node that no device has spread to goes to the device that can read most of its inputs. A node
 * on a device that shares its memory space with one of higher priority moves to the latter. Views follow their source. */
#include <string.h>

#include "place/propagate/propagate.h"

enum { MAX_SPACES = 17 }; /* one memory space per device, and the host's */

typedef struct third_pass {
  clv__propagation *p;
  uint32_t better[16]; /* by device: those of higher priority in the same memory space */
} third_pass;

/* The supported device that can read the most inputs of the node. Ties, or no readable inputs, go to the first. */
static uint32_t most_readable(const clv__propagation *p, uint32_t node) {
  const clv__problem *problem = p->problem;
  uint32_t counts[MAX_SPACES] = {0}, best = CLV__NONE;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    ++counts[problem->spaces[clv__propagate_value_device(p, problem->reads[r])]];
  }
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    uint32_t device = clv__propagate_weight_device(p, node, problem->weights[k]);
    if (device != CLV__NONE) ++counts[problem->spaces[device]];
  }
  for (uint32_t mask = problem->supports[node]; mask != 0; mask &= mask - 1) {
    uint32_t d = (uint32_t)__builtin_ctz(mask);
    if (best == CLV__NONE || counts[problem->spaces[d]] > counts[problem->spaces[best]]) best = d;
  }
  return best;
}

/* Returns whether all inputs of the node are in the memory space of its device. */
static bool all_readable(const clv__propagation *p, uint32_t node) {
  const clv__problem *problem = p->problem;
  uint32_t space = problem->spaces[p->devices[node]];
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    if (problem->spaces[clv__propagate_value_device(p, problem->reads[r])] != space) return false;
  }
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    uint32_t device = clv__propagate_weight_device(p, node, problem->weights[k]);
    if (device != CLV__NONE && problem->spaces[device] != space) return false;
  }
  return true;
}

/* Nodes come in the order of the list, so every producer of a node's inputs already has its device. */
static clv_status assign_best(const third_pass *s, uint32_t node, clv_error *error) {
  clv__propagation *p = s->p;
  const clv__problem *problem = p->problem;
  if (p->devices[node] == CLV__NONE && clv__node_is_view(problem, node)) {
    uint32_t device = clv__propagate_value_device(p, problem->reads[problem->read_offsets[node]]);
    if (clv__can_run(problem, node, device)) {
      p->devices[node] = device; /* pass 4 sets its cause */
      return CLV_OK;
    }
  }
  if (p->devices[node] == CLV__NONE) {
    p->devices[node] = most_readable(p, node);
    p->causes[node] = "3.best";
    return p->devices[node] == CLV__NONE ? clv__node_unsupported(problem, node, error) : CLV_OK;
  }
  uint32_t better = problem->supports[node] & s->better[p->devices[node]];
  if (better == 0 || problem->pins[node] != CLV__NONE || !all_readable(p, node)) return CLV_OK;
  p->devices[node] = (uint32_t)__builtin_ctz(better);
  p->causes[node] = "3.upg";
  return CLV_OK;
}

clv_status clv__propagate_best(clv__propagation *p, clv_error *error) {
  const clv__problem *problem = p->problem;
  third_pass s = {.p = p};
  bool any_better = false;
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    for (uint32_t b = 0; b < d; ++b) {
      if (problem->spaces[b] == problem->spaces[d]) s.better[d] |= 1u << b;
    }
    any_better = any_better || s.better[d] != 0;
  }
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    if (any_better || p->devices[n] == CLV__NONE) CLV__TRY(assign_best(&s, n, error));
  }
  p->left = 0;
  return CLV_OK;
}

void clv__propagate_views(clv__propagation *p) {
  for (uint32_t n = 0; n < p->problem->node_count; ++n) {
    if (p->causes[n][0] == '\0') p->causes[n] = "4.vsrc";
  }
}
