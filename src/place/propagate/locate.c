/* Pass 1 of `propagate`: nodes whose place is fixed before anything spreads. A node runs where the user pinned it, where the
 * memory of its outputs is, or where its weights are. The exception to the last: a device of higher priority wants the node
 * although its weights are in host memory. */
#include <string.h>

#include "place/propagate/propagate.h"

#define WEIGHT_CAUSES(tens)                                                                                         \
  "1.wgt" #tens "0", "1.wgt" #tens "1", "1.wgt" #tens "2", "1.wgt" #tens "3", "1.wgt" #tens "4", "1.wgt" #tens "5", \
      "1.wgt" #tens "6", "1.wgt" #tens "7", "1.wgt" #tens "8", "1.wgt" #tens "9"

static const char *const weight_causes[] = {WEIGHT_CAUSES(),  WEIGHT_CAUSES(1), WEIGHT_CAUSES(2), WEIGHT_CAUSES(3),
                                            WEIGHT_CAUSES(4), WEIGHT_CAUSES(5), WEIGHT_CAUSES(6), WEIGHT_CAUSES(7),
                                            WEIGHT_CAUSES(8), WEIGHT_CAUSES(9)};

typedef struct locating {
  clv__propagation *p;
  const uint32_t *homes; /* by value, NULL: none; the home of a view is also the home of its source */
  uint32_t host;         /* bit d: d works in host memory, or is the last */
} locating;

static bool has_homes(const uint32_t *homes, uint32_t count) {
  for (uint32_t i = 0; homes != NULL && i < count; ++i) {
    if (homes[i] != CLV__NONE) return true;
  }
  return false;
}

/* Finds the homes of values that the user placed and of the sources of their views: these are the same bytes. */
static clv_status find_homes(locating *l, clv__arena *arena, clv_error *error) {
  const clv__problem *problem = l->p->problem;
  if (!has_homes(problem->value_homes, problem->value_count)) return CLV_OK;
  uint32_t *homes = clv__arena_copy(arena, problem->value_homes, (size_t)problem->value_count * sizeof *homes);
  if (homes == NULL) return clv__error_memory(error, (size_t)problem->value_count * sizeof *homes);
  for (uint32_t n = problem->node_count; n-- > 0;) {
    if (!clv__node_is_view(problem, n) || problem->pins[n] != CLV__NONE) continue;
    uint32_t source = problem->reads[problem->read_offsets[n]];
    uint32_t home = homes[problem->writes[problem->write_offsets[n]]];
    if (homes[source] == CLV__NONE) homes[source] = home;
  }
  l->homes = homes;
  return CLV_OK;
}

/* Devices that work in the memory of `device`. */
static uint32_t mates(const clv__problem *problem, uint32_t device) {
  uint32_t mask = 0;
  for (uint32_t d = 0; d < problem->device_count; ++d) mask |= problem->spaces[d] == problem->spaces[device] ? 1u << d : 0;
  return mask;
}

/* Among the devices that can read what is at `home`, returns the one that runs the node: `home` itself, or the first. */
static uint32_t runs_at(const clv__problem *problem, uint32_t node, uint32_t home) {
  if (clv__can_run(problem, node, home)) return home;
  uint32_t able = problem->supports[node] & mates(problem, home);
  return able == 0 ? CLV__NONE : (uint32_t)__builtin_ctz(able);
}

static bool locate_by_buffers(const locating *l, uint32_t node) {
  const clv__problem *problem = l->p->problem;
  for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
    uint32_t home = l->homes[problem->writes[w]];
    uint32_t device = home == CLV__NONE ? CLV__NONE : runs_at(problem, node, home);
    if (device == CLV__NONE) continue;
    l->p->devices[node] = device;
    l->p->causes[node] = "1.dst";
    return true;
  }
  return false;
}

/* The first weight in a place where the node can run decides. */
static bool locate_by_weights(const locating *l, uint32_t node) {
  const clv__problem *problem = l->p->problem;
  uint32_t supports = problem->supports[node],
           wants = problem->prefers == NULL ? 0 : problem->prefers[node] & supports & ~l->host;
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    uint32_t home = problem->weight_homes == NULL ? CLV__NONE : problem->weight_homes[problem->weights[k]], device;
    if (home != CLV__NONE)
      device = runs_at(problem, node, home);
    else
      device = (supports & l->host) == 0 ? CLV__NONE : (uint32_t)__builtin_ctz(supports & l->host);
    /* For weights in host memory, every device before the one located there may claim the node, or every device if none located
     * there can run it. */
    if (home == CLV__NONE || (l->host >> home & 1u) != 0) {
      uint32_t before = device == CLV__NONE ? wants : wants & ((1u << device) - 1);
      if (before != 0) {
        l->p->devices[node] = (uint32_t)__builtin_ctz(before);
        l->p->causes[node] = "1.off";
        return true;
      }
    }
    if (device == CLV__NONE) continue;
    uint32_t operand = problem->weight_operands == NULL ? k - problem->weight_offsets[node] : problem->weight_operands[k];
    l->p->devices[node] = device;
    l->p->causes[node] = operand < sizeof weight_causes / sizeof *weight_causes ? weight_causes[operand] : "1.wgt";
    return true;
  }
  return false;
}

clv_status clv__propagate_locate(clv__propagation *p, clv__arena *arena, clv_error *error) {
  const clv__problem *problem = p->problem;
  locating l = {.p = p, .host = 1u << p->last};
  for (uint32_t d = 0; d < problem->device_count; ++d) l.host |= problem->spaces[d] == 0 ? 1u << d : 0;
  CLV__TRY(find_homes(&l, arena, error));
  p->left = 0;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    if (problem->pins[n] != CLV__NONE) {
      p->devices[n] = problem->pins[n];
      p->causes[n] = "usr";
      continue;
    }
    if (clv__node_is_view(problem, n)) continue;
    if (l.homes != NULL && locate_by_buffers(&l, n)) continue;
    if ((problem->flags[n] & CLV__NODE_LIGHT_WEIGHT) == 0 && locate_by_weights(&l, n)) continue;
    ++p->left;
  }
  return CLV_OK;
}
