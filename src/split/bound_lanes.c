/* Bounds for devices that run side by side. First, no plan ends before the longest path through the graph has run, each node on
 * its best device. Second, for any weights, the load of the fullest lane is at least the weighted mean of the loads of all
 * lanes. */
#include <string.h>

#include "split/bound_own.h"

/* ---- The longest path ---- */

/* The earliest end of each node on each device, in half nanoseconds. If an input was computed on another device, the node waits
 * for the copies of that value. The node is then in another partition than the producer, and pays the launch of its partition. */
typedef struct earliest {
  const clv__reduced *reduced;
  uint64_t *ends; /* [node * device_count + device]: the earliest time at which the device can end the node */
} earliest;

static inline uint64_t sooner(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}
static inline uint64_t later(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

/* The earliest time at which the value can be in host memory. */
static uint64_t in_host_at(const earliest *e, uint32_t value) {
  const clv__problem *problem = e->reduced->problem;
  uint32_t producer = problem->producers[value];
  uint64_t at = CLV__NO_TIME;
  if (producer == CLV__NONE) return 0;
  const uint64_t *ends = &e->ends[(size_t)producer * problem->device_count];
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    uint32_t space = problem->spaces[d];
    at = sooner(at, clv__bound_add(ends[d], space == 0 ? 0 : 2 * clv__out_ns(problem, value, space)));
  }
  return at;
}

/* Raises `starts` (by device) to the earliest time at which a node on that device can read the value. `launches` (by device) is
 * the launch that the node pays if it begins a new partition. */
static void wait_for(const earliest *e, uint32_t value, const uint64_t *launches, uint64_t *starts) {
  const clv__problem *problem = e->reduced->problem;
  uint32_t producer = problem->producers[value], device_count = problem->device_count;
  const uint64_t *ends = producer == CLV__NONE ? NULL : &e->ends[(size_t)producer * device_count];
  uint64_t host = in_host_at(e, value);
  for (uint32_t d = 0; d < device_count; ++d) {
    uint32_t space = problem->spaces[d];
    uint64_t at = clv__bound_add(host, space == 0 ? 0 : 2 * clv__in_ns(problem, value, space));
    for (uint32_t other = 0; other < device_count && ends != NULL; ++other) {
      if (other != d && problem->spaces[other] == space) at = sooner(at, ends[other]);
    }
    at = clv__bound_add(at, launches[d]);
    if (ends != NULL) at = sooner(at, ends[d]);
    starts[d] = later(starts[d], at);
  }
}

clv_status clv__bound_way(const clv__reduced *reduced, const clv_allocator *allocator, uint64_t *time_ns, clv_error *error) {
  const clv__problem *problem = reduced->problem;
  uint32_t device_count = problem->device_count;
  size_t size_bytes = ((size_t)problem->node_count + 2) * device_count * sizeof(uint64_t);
  earliest e = {reduced, clv__allocate(allocator, size_bytes)};
  if (e.ends == NULL) return clv__error_memory(error, size_bytes);
  uint64_t *starts = e.ends + (size_t)problem->node_count * device_count, *launches = starts + device_count, most = 0;
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    bool is_view = (problem->flags[node] & CLV__NODE_VIEW) != 0;
    uint64_t *ends = &e.ends[(size_t)node * device_count], least = CLV__NO_TIME;
    for (uint32_t d = 0; d < device_count; ++d) starts[d] = launches[d] = is_view ? 0 : 2 * problem->launch_ns[d];
    if (problem->read_offsets[node] < problem->read_offsets[node + 1]) memset(starts, 0, device_count * sizeof *starts);
    for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
      wait_for(&e, problem->reads[r], launches, starts);
    }
    for (uint32_t d = 0; d < device_count; ++d) {
      ends[d] = clv__bound_add(starts[d], reduced->halves[(size_t)node * device_count + d]);
      least = sooner(least, ends[d]);
    }
    most = later(most, least);
  }
  for (uint32_t value = 0; value < problem->value_count; ++value) {
    if (problem->is_output[value]) most = later(most, in_host_at(&e, value));
  }
  *time_ns = clv__bound_whole(most);
  clv__release(allocator, e.ends);
  return CLV_OK;
}

/* ---- The fullest lane ---- */

enum { WEIGHT_STEPS = 32, WEIGHT_ONE = 1 << 24 };

/* The weight of each lane, and its load if every node runs where its weighted time is least. */
typedef struct lanes {
  const clv__reduced *reduced;
  double weights[16], loads[16];
} lanes;

/* For weights that sum to one, the load of the fullest lane is at least the weighted sum of all loads. That is at least the sum
 * of the least weighted times of all nodes. Returns this last sum, and stores the loads that result if every node runs where
 * its weighted time is least. */
static double weigh(lanes *l) {
  const clv__problem *problem = l->reduced->problem;
  uint32_t device_count = problem->device_count;
  double sum = 0;
  memset(l->loads, 0, sizeof l->loads);
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    const uint64_t *halves = &l->reduced->halves[(size_t)node * device_count];
    double least = 0;
    uint32_t best = CLV__NONE;
    for (uint32_t d = 0; d < device_count; ++d) {
      if (halves[d] == CLV__NO_TIME) continue;
      double time = l->weights[d] * (double)halves[d];
      if (best == CLV__NONE || time < least) best = d, least = time;
    }
    l->loads[best] += (double)halves[best];
    sum += least;
  }
  return sum;
}

/* Computes the bound of weigh() in integers, including the launches of every device that some node must be on, and at least one
 * launch if there is any work. */
static uint64_t weigh_exactly(const clv__reduced *reduced, const uint64_t *weights) {
  const clv__problem *problem = reduced->problem;
  uint32_t device_count = problem->device_count;
  unsigned __int128 sum = 0, forced = 0, any = 0, total = 0;
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    const uint64_t *halves = &reduced->halves[(size_t)node * device_count];
    unsigned __int128 least = ~(unsigned __int128)0;
    for (uint32_t d = 0; d < device_count; ++d) {
      if (halves[d] == CLV__NO_TIME) continue;
      unsigned __int128 time = (unsigned __int128)weights[d] * halves[d];
      if (time < least) least = time;
    }
    sum += least;
  }
  for (uint32_t d = 0; d < device_count; ++d) {
    unsigned __int128 launch = (unsigned __int128)weights[d] * problem->launch_ns[d] * 2;
    if ((reduced->forced >> d & 1u) != 0) forced += launch;
    if (d == 0 || launch < any) any = launch;
    total += weights[d];
  }
  if (reduced->any_work) sum += forced > any ? forced : any;
  unsigned __int128 whole = (sum + 2 * total - 1) / (2 * total);
  return whole > CLV__NO_TIME ? CLV__NO_TIME : (uint64_t)whole;
}

static uint64_t weigh_rounded(const lanes *l) {
  uint64_t weights[16], total = 0;
  for (uint32_t d = 0; d < l->reduced->problem->device_count; ++d) total += weights[d] = (uint64_t)(l->weights[d] * WEIGHT_ONE);
  return total == 0 ? 0 : weigh_exactly(l->reduced, weights);
}

/* Two lanes: as the weight of a lane grows, work only leaves it. So bisection finds the best weight. */
static void balance_two(lanes *l) {
  double low = 0, high = 1;
  for (int step = 0; step < WEIGHT_STEPS; ++step) {
    l->weights[0] = (low + high) / 2;
    l->weights[1] = 1 - l->weights[0];
    weigh(l);
    if (l->loads[0] > l->loads[1]) {
      low = l->weights[0];
    } else {
      high = l->weights[0];
    }
  }
}

/* More lanes: weights grow where the load is above the mean, in ever smaller steps. The best weights are kept. */
static void balance_many(lanes *l) {
  uint32_t device_count = l->reduced->problem->device_count;
  double best[16] = {0}, most = -1;
  for (uint32_t d = 0; d < device_count; ++d) l->weights[d] = 1.0 / device_count;
  for (int step = 0; step < WEIGHT_STEPS; ++step) {
    double sum = weigh(l), total = 0, fullest = 0;
    if (sum > most) {
      most = sum;
      memcpy(best, l->weights, sizeof best);
    }
    for (uint32_t d = 0; d < device_count; ++d) fullest = l->loads[d] > fullest ? l->loads[d] : fullest;
    if (fullest == 0) break;
    for (uint32_t d = 0; d < device_count; ++d) {
      l->weights[d] *= 1 + (l->loads[d] - sum) / fullest / (1 + 0.25 * step);
      if (l->weights[d] < 1e-6) l->weights[d] = 1e-6;
      total += l->weights[d];
    }
    for (uint32_t d = 0; d < device_count; ++d) l->weights[d] /= total;
  }
  memcpy(l->weights, best, sizeof best);
}

uint64_t clv__bound_work(const clv__reduced *reduced) {
  uint32_t device_count = reduced->problem->device_count;
  lanes l = {.reduced = reduced, .weights = {1}};
  uint64_t weights[16], best = 0;
  if (device_count == 2) balance_two(&l);
  if (device_count > 2) balance_many(&l);
  best = weigh_rounded(&l);
  for (uint32_t d = 0; d < device_count; ++d) { /* all weight on device d: bounds by the work that only it can do */
    for (uint32_t other = 0; other < device_count; ++other) weights[other] = other == d;
    best = later(best, weigh_exactly(reduced, weights));
  }
  return best;
}
