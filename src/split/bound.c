/* Lower bounds on the times of all plans that run each node once. Memory, limits of partitions and streamed weights only add to
 * the time of a plan, so the bounds ignore them. The serial time of a plan is the node + transfer + fusion cost of its placement
 * plus its launches. Each of the following is a lower bound on that:
 *
 *   sums     every node at its least reduced cost (bound_own.h), and one launch
 *   cuts     a minimum cut between a group of devices and all others. Each group acts as one device that has, for each node,
 *            copy, fusion and launch, the best price among its devices, and copies within a group are free. So no plan costs
 *            less. With two devices only the launches are not exact
 *   prices   for several groups, one per memory space: the space that a copy goes to or comes from pays all of it, because every
 *            copy passes through host memory. So the cost of a placement is a sum over groups, and each term depends only on the
 *            set of nodes in that group; the constraint is that every node is in exactly one group. Each node gets a price for
 *            that constraint, and each group then chooses its nodes alone, by a minimum cut (A. M. Geoffrion, "Lagrangean
 *            relaxation for integer programming", Math. Programming Study 2, 1974). Any prices give a bound; better prices give
 *            a better bound
 *
 * The last two charge launches along one path (network.h). */
#include "split/bound_own.h"

#include <string.h>

enum { MOST_GROUPS = 16 };

#define PRICE_STEPS 24u

typedef struct serial {
  const clv__reduced *reduced;
  const clv_allocator *allocator;
  clv__network_path path;
  uint64_t bound;
} serial;

static void improve(serial *s, uint64_t bound) {
  if (bound > s->bound) s->bound = bound;
}

/* ---- Reduced costs ---- */

static void take_off(uint64_t *halves, uint64_t saving) {
  if (*halves != CLV__NO_TIME) *halves -= saving < *halves ? saving : *halves;
}

static clv_status reduce(clv__reduced *reduced, clv_error *error) {
  const clv__problem *problem = reduced->problem;
  uint32_t device_count = problem->device_count;
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    uint32_t devices = clv__node_devices(problem, node) & ((1u << device_count) - 1);
    if (devices == 0) return clv__error_set(error, CLV_NOT_SUPPORTED, "no device can run node %u", node);
    if ((problem->flags[node] & CLV__NODE_VIEW) == 0) {
      reduced->any_work = true;
      if ((devices & (devices - 1)) == 0) reduced->forced |= devices;
    }
    for (uint32_t d = 0; d < device_count; ++d) {
      uint64_t time_ns = clv__node_ns(problem, node, d);
      reduced->halves[(size_t)node * device_count + d] = (devices >> d & 1u) == 0     ? CLV__NO_TIME
                                                         : time_ns < CLV__NO_TIME / 2 ? 2 * time_ns
                                                                                      : CLV__NO_TIME - 1;
    }
  }
  for (uint32_t node = 0; node < problem->node_count && problem->saving_ns != NULL; ++node) {
    for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer == CLV__NONE) continue;
      for (uint32_t d = 0; d < device_count; ++d) {
        uint64_t saving = clv__saving_ns(problem, r, d);
        take_off(&reduced->halves[(size_t)node * device_count + d], saving);
        take_off(&reduced->halves[(size_t)producer * device_count + d], saving);
      }
    }
  }
  return CLV_OK;
}

/* ---- Sums and cuts ---- */

static void bound_by_sums(serial *s) {
  const clv__problem *problem = s->reduced->problem;
  uint64_t sum = 0, launch = CLV__NO_TIME;
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    uint64_t least = CLV__NO_TIME;
    for (uint32_t d = 0; d < problem->device_count; ++d) {
      uint64_t halves = s->reduced->halves[(size_t)node * problem->device_count + d];
      if (halves < least) least = halves;
    }
    sum = clv__bound_add(sum, least);
  }
  for (uint32_t d = 0; d < problem->device_count; ++d) launch = problem->launch_ns[d] < launch ? problem->launch_ns[d] : launch;
  improve(s, clv__bound_add(clv__bound_whole(sum), s->reduced->any_work ? launch : 0));
}

/* With one device there is only one placement: its cost and one launch are the bound. */
static clv_status bound_one(serial *s, clv_error *error) {
  const clv__problem *problem = s->reduced->problem;
  uint64_t price;
  size_t size_bytes = (size_t)problem->node_count * sizeof(uint32_t);
  uint32_t *devices = clv__allocate_zero(s->allocator, size_bytes);
  if (devices == NULL) return clv__error_memory(error, size_bytes);
  clv_status status = clv__price_placement(problem, devices, &price, error);
  if (status == CLV_OK) improve(s, clv__bound_add(price, s->reduced->any_work ? problem->launch_ns[0] : 0));
  clv__release(s->allocator, devices);
  return status;
}

/* With two devices the minimum cut is exact except for launches. It is solved with one launch for each device in use, and again
 * with the launches along the path. */
static clv_status bound_two(serial *s, clv_error *error) {
  const clv__problem *problem = s->reduced->problem;
  clv__network_options options = {.one = 0, .other = 1, .launches = true};
  size_t size_bytes = (size_t)problem->node_count * sizeof(uint32_t);
  clv_status status = CLV_OK;
  uint64_t cost = 0;
  uint32_t *devices = clv__allocate(s->allocator, size_bytes);
  if (devices == NULL) return clv__error_memory(error, size_bytes);
  CLV__TRY_GOTO(clv__bound_tolerate(clv__network_solve(problem, &options, s->allocator, devices, &cost, error)));
  improve(s, cost);
  if (s->path.count > 0) {
    options.path = s->path;
    CLV__TRY_GOTO(clv__bound_tolerate(clv__network_solve(problem, &options, s->allocator, devices, &cost, error)));
    improve(s, cost);
  }
cleanup:
  clv__release(s->allocator, devices);
  return status;
}

static clv_status bound_group(serial *s, uint32_t group, clv_error *error) {
  uint32_t all = (1u << s->reduced->problem->device_count) - 1;
  clv__network_sides sides = {.one = (uint16_t)group, .other = (uint16_t)(all & ~group), .path = s->path};
  uint64_t cost = 0;
  CLV__TRY(clv__bound_tolerate(clv__network_bound(s->reduced->problem, &sides, s->allocator, NULL, &cost, error)));
  improve(s, cost);
  return CLV_OK;
}

/* ---- Prices ---- */

typedef struct pricing {
  uint32_t group_count;
  uint16_t groups[MOST_GROUPS]; /* the devices of each memory space in use, as bits */
  uint64_t *prices;             /* by node: the price that each group that leaves it out pays */
  uint64_t *reach;              /* by node: how far its price moves in the first step */
  uint8_t *takers, *is_other;   /* by node: how many groups took the node; whether the group solved last left it out */
} pricing;

/* The initial price of a node is halfway between its costs in its best and its second-best group. */
static void start_prices(const clv__reduced *reduced, pricing *p) {
  const clv__problem *problem = reduced->problem;
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    uint64_t best = CLV__NO_TIME, second = CLV__NO_TIME;
    for (uint32_t g = 0; g < p->group_count; ++g) {
      uint64_t least = CLV__NO_TIME;
      for (uint32_t left = p->groups[g]; left != 0; left &= left - 1) {
        uint64_t halves = reduced->halves[(size_t)node * problem->device_count + (uint32_t)__builtin_ctz(left)];
        if (halves < least) least = halves;
      }
      if (least < best) {
        second = best;
        best = least;
      } else if (least < second) {
        second = least;
      }
    }
    if (second == CLV__NO_TIME) second = best;
    if (second > 2 * CLV__MAX_TIME_NS) second = 2 * CLV__MAX_TIME_NS;
    if (best > second) best = second;
    p->prices[node] = (best / 2 + second / 2) / 2;
    p->reach[node] = (second - best) / 4 + second / 16 + 1;
  }
}

/* Lets each group choose its nodes. In a real placement all groups but one leave a node out, and each of them pays its price. So
 * the bound is the cost of all groups, minus the sum of all prices times (number of groups - 1). */
static clv_status choose(serial *s, pricing *p, uint64_t *bound, clv_error *error) {
  const clv__problem *problem = s->reduced->problem;
  uint32_t all = (1u << problem->device_count) - 1;
  unsigned __int128 cost = 0, paid = 0;
  memset(p->takers, 0, problem->node_count);
  for (uint32_t g = 0; g < p->group_count; ++g) {
    clv__network_sides sides = {.one = p->groups[g],
                                .other = (uint16_t)(all & ~(uint32_t)p->groups[g]),
                                .other_is_nothing = true,
                                .penalty_other = p->prices,
                                .path = s->path};
    uint64_t own = 0;
    CLV__TRY(clv__network_bound(problem, &sides, s->allocator, p->is_other, &own, error));
    cost += own;
    for (uint32_t node = 0; node < problem->node_count; ++node) p->takers[node] += !p->is_other[node];
  }
  for (uint32_t node = 0; node < problem->node_count; ++node) paid += p->prices[node];
  paid *= p->group_count - 1;
  *bound = cost > paid ? (uint64_t)(cost - paid) : 0;
  return CLV_OK;
}

/* Raises the price of leaving out a node that no group took, and lowers it for a node that several groups took. */
static void adjust(const clv__problem *problem, pricing *p, uint32_t step) {
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    uint64_t change = p->reach[node] / (1 + step / 2);
    if (p->takers[node] == 0 && p->prices[node] < 2 * CLV__MAX_TIME_NS) p->prices[node] += change;
    if (p->takers[node] > 1) p->prices[node] -= change < p->prices[node] ? change : p->prices[node];
  }
}

static clv_status bound_by_prices(serial *s, pricing *p, clv_error *error) {
  const clv__problem *problem = s->reduced->problem;
  size_t count = problem->node_count, size_bytes = count * (2 * sizeof(uint64_t) + 2);
  uint32_t steps = clv__bound_steps(problem->node_count, p->group_count, PRICE_STEPS), idle_steps = 0;
  uint64_t best = 0;
  p->prices = clv__allocate(s->allocator, size_bytes);
  if (p->prices == NULL) return clv__error_memory(error, size_bytes);
  p->reach = p->prices + count;
  p->takers = (uint8_t *)(p->reach + count);
  p->is_other = p->takers + count;
  clv_status status = CLV_OK;
  start_prices(s->reduced, p);
  for (uint32_t step = 0; step < steps; ++step) {
    uint64_t bound;
    CLV__TRY_GOTO(choose(s, p, &bound, error));
    if (!clv__bound_grows(bound, &best, &idle_steps)) break;
    adjust(problem, p, step);
  }
cleanup:
  improve(s, best);
  clv__release(s->allocator, p->prices);
  return clv__bound_tolerate(status);
}

static clv_status bound_many(serial *s, clv_error *error) {
  const clv__problem *problem = s->reduced->problem;
  pricing p = {0};
  uint32_t all = (1u << problem->device_count) - 1;
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    uint32_t group = 0;
    for (uint32_t other = 0; other < problem->device_count; ++other) {
      if (problem->spaces[other] == problem->spaces[d]) group |= 1u << other;
    }
    CLV__TRY(bound_group(s, 1u << d, error));
    if ((group & ((1u << d) - 1)) != 0) continue; /* an earlier device has added this space */
    p.groups[p.group_count++] = (uint16_t)group;
    if (group != 1u << d && group != all) CLV__TRY(bound_group(s, group, error));
  }
  return p.group_count > 2 ? bound_by_prices(s, &p, error) : CLV_OK;
}

static clv_status bound_serial(serial *s, clv_error *error) {
  bound_by_sums(s);
  uint32_t device_count = s->reduced->problem->device_count;
  return device_count == 1 ? bound_one(s, error) : device_count == 2 ? bound_two(s, error) : bound_many(s, error);
}

static clv_status find_path(const clv__problem *problem, const clv_allocator *allocator, uint32_t **nodes, uint32_t *count,
                            clv_error *error) {
  uint64_t launches = 0;
  for (uint32_t d = 0; d < problem->device_count; ++d) launches |= problem->launch_ns[d];
  if (launches == 0 || problem->device_count == 1) return CLV_OK;
  return clv__network_path_find(problem, allocator, nodes, count, error);
}

clv_status clv__bound(const clv__problem *problem, const clv_allocator *allocator, clv__bounds *bounds, clv_error *error) {
  size_t size_bytes = (size_t)problem->node_count * problem->device_count * sizeof(uint64_t);
  clv__reduced reduced = {.problem = problem, .halves = clv__allocate(allocator, size_bytes)};
  if (reduced.halves == NULL) return clv__error_memory(error, size_bytes);
  serial s = {.reduced = &reduced, .allocator = allocator};
  clv_status status = CLV_OK;
  uint64_t way, work, balance;
  uint32_t *path = NULL;
  CLV__TRY_GOTO(reduce(&reduced, error));
  CLV__TRY_GOTO(find_path(problem, allocator, &path, &s.path.count, error));
  s.path.nodes = path;
  CLV__TRY_GOTO(clv__bound_way(&reduced, allocator, &way, error));
  work = clv__bound_work(&reduced);
  CLV__TRY_GOTO(clv__bound_balance(&reduced, s.path, allocator, &balance, error));
  if (balance > work) work = balance;
  improve(&s, way);
  improve(&s, work);
  CLV__TRY_GOTO(bound_serial(&s, error));
  *bounds = (clv__bounds){.serial_ns = s.bound, .overlapped_ns = way > work ? way : work, .throughput_ns = work};
cleanup:
  clv__release(allocator, path);
  clv__release(allocator, reduced.halves);
  return status;
}
