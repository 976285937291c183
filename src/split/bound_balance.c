/* A lower bound on the load of the fullest lane for two devices, including copies. Each device is a lane, and so are the copies
 * of every memory space except the host's. The weighted mean of all lanes is at most the fullest lane. Its minimum over all
 * placements is a minimum cut in which every time is multiplied by the weight of its lane. Each step raises the weights of lanes
 * whose load is above the mean, and every step gives a bound. */
#include <string.h>

#include "split/bound_own.h"

enum { LANES = 4, BALANCE_STEPS = 16 }; /* two devices, and for each its memory's copies */

typedef struct balance {
  const clv__problem *problem;
  const uint8_t *on_other; /* by node */
  double weights[LANES], loads[LANES];
} balance;

static uint32_t device_of(const balance *b, uint32_t node) {
  return b->on_other[node] ? 1 : 0;
}

/* Adds the copies of a value to the lanes of the spaces they come from or lead to. */
static void load_copies(balance *b, uint32_t value) {
  const clv__problem *problem = b->problem;
  uint32_t producer = problem->producers[value], home = CLV__NONE;
  bool is_read[2] = {false, false}, in_host = problem->is_output[value];
  if (producer != CLV__NONE) home = device_of(b, producer);
  for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
    is_read[device_of(b, problem->readers[i])] = true;
  }
  for (uint32_t d = 0; d < 2; ++d) {
    uint32_t space = problem->spaces[d];
    if (space == 0) continue;
    if (home == d && (in_host || is_read[1 - d])) b->loads[2 + d] += (double)clv__out_ns(problem, value, space);
    if (home != d && is_read[d]) b->loads[2 + d] += (double)clv__in_ns(problem, value, space);
  }
}

static void load(balance *b) {
  const clv__problem *problem = b->problem;
  memset(b->loads, 0, sizeof b->loads);
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    uint32_t device = device_of(b, node);
    b->loads[device] += (double)clv__node_ns(problem, node, device);
    for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer != CLV__NONE && device_of(b, producer) == device) {
        b->loads[device] -= (double)clv__saving_ns(problem, r, device);
      }
    }
  }
  for (uint32_t value = 0; value < problem->value_count; ++value) load_copies(b, value);
}

static void reweigh(balance *b, uint32_t step) {
  double fullest = 0, mean = 0, total = 0;
  for (int i = 0; i < LANES; ++i) {
    fullest = b->loads[i] > fullest ? b->loads[i] : fullest;
    mean += b->weights[i] * b->loads[i];
  }
  if (fullest == 0) return;
  for (int i = 0; i < LANES; ++i) {
    b->weights[i] *= 1 + (b->loads[i] - mean) / fullest / (1 + 0.25 * step);
    if (b->weights[i] < 0.01) b->weights[i] = 0.01;
    total += b->weights[i];
  }
  for (int i = 0; i < LANES; ++i) b->weights[i] /= total;
}

/* Computes the bound for the current weights, and the placement that reaches it. */
static clv_status bound_now(const balance *b, clv__network_path path, const clv_allocator *allocator, uint8_t *on_other,
                            uint32_t *space_weights, uint64_t *bound, clv_error *error) {
  uint32_t device_weights[2], total = 0;
  clv__network_sides sides = {
      .one = 1, .other = 2, .path = path, .device_weights = device_weights, .space_weights = space_weights};
  for (uint32_t d = 0; d < 2; ++d) {
    uint32_t space = b->problem->spaces[d];
    device_weights[d] = (uint32_t)(b->weights[d] * CLV__NETWORK_WEIGHT);
    space_weights[space] = space == 0 ? 0 : (uint32_t)(b->weights[2 + d] * CLV__NETWORK_WEIGHT);
    total += device_weights[d] + space_weights[space];
  }
  uint64_t cost;
  CLV__TRY(clv__network_bound(b->problem, &sides, allocator, on_other, &cost, error));
  *bound = total == 0 ? 0 : cost / total + (cost % total != 0);
  return CLV_OK;
}

clv_status clv__bound_balance(const clv__reduced *reduced, clv__network_path path, const clv_allocator *allocator,
                              uint64_t *time_ns, clv_error *error) {
  const clv__problem *problem = reduced->problem;
  *time_ns = 0;
  if (problem->device_count != 2 || problem->spaces[0] == problem->spaces[1])
    return CLV_OK; /* this bound is only for two devices with separate memories */
  size_t size_bytes = problem->space_count * sizeof(uint32_t) + problem->node_count;
  uint32_t *space_weights = clv__allocate_zero(allocator, size_bytes);
  if (space_weights == NULL) return clv__error_memory(error, size_bytes);
  uint8_t *on_other = (uint8_t *)(space_weights + problem->space_count);
  balance b = {.problem = problem, .on_other = on_other, .weights = {0.35, 0.35, 0.15, 0.15}};
  uint32_t steps = clv__bound_steps(problem->node_count, 1, BALANCE_STEPS), idle_steps = 0;
  clv_status status = CLV_OK;
  for (uint32_t step = 0; step < steps; ++step) {
    uint64_t bound;
    CLV__TRY_GOTO(bound_now(&b, path, allocator, on_other, space_weights, &bound, error));
    if (!clv__bound_grows(bound, time_ns, &idle_steps)) break;
    load(&b);
    reweigh(&b, step);
  }
cleanup:
  clv__release(allocator, space_weights);
  return clv__bound_tolerate(status);
}
