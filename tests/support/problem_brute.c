/* Exhaustive search: see problem_brute.h. A set of nodes is a bit mask. */
#include "problem_brute.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { MAX_NODES = 16, MAX_SPACES = 5, MAX_DEVICES = 4 };

static bool in(uint32_t set, uint32_t node) {
  return (set >> node & 1u) != 0;
}

static void *allocate(size_t count, size_t element_bytes) {
  void *memory = calloc(count + 1, element_bytes);
  if (memory == NULL) abort();
  return memory;
}

/* The time to copy all values, which does not depend on the grouping. Also adds the time of the copies from and to each memory
 * space to the entries of `by_space`; the entry of space 0, the host, stays 0. */
static uint64_t copies_ns(const clv__problem *problem, const uint32_t *devices, uint64_t by_space[MAX_SPACES]) {
  uint64_t total = 0;
  for (uint32_t v = 0; v < problem->value_count; ++v) {
    uint32_t producer = problem->producers[v], home = producer == CLV__NONE ? 0 : problem->spaces[devices[producer]];
    uint32_t wanted = problem->is_output[v] ? 1u : 0u; /* one bit per memory space */
    for (uint32_t i = problem->reader_offsets[v]; i < problem->reader_offsets[v + 1]; ++i) {
      wanted |= 1u << problem->spaces[devices[problem->readers[i]]];
    }
    wanted &= ~(1u << home);
    if (wanted != 0 && home != 0) by_space[home] += clv__out_ns(problem, v, home);
    for (uint32_t s = 1; s < problem->space_count; ++s) {
      if ((wanted >> s & 1u) != 0) by_space[s] += clv__in_ns(problem, v, s);
    }
  }
  for (uint32_t s = 0; s < problem->space_count; ++s) total += by_space[s];
  return total;
}

uint64_t test_placement_ns(const clv__problem *problem, const uint32_t *devices) {
  uint64_t copies[MAX_SPACES] = {0}, time = copies_ns(problem, devices, copies);
  for (uint32_t n = 0; n < problem->node_count; ++n) time += clv__node_ns(problem, n, devices[n]);
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer != CLV__NONE && devices[producer] == devices[n]) time -= clv__saving_ns(problem, r, devices[n]);
    }
  }
  return time;
}

/* Whether the verdicts and pins allow the node on the device. */
static bool may_be(const clv__problem *problem, uint32_t node, uint32_t device) {
  return clv__can_run(problem, node, device) && (problem->pins[node] == CLV__NONE || problem->pins[node] == device);
}

static bool advance(const clv__problem *problem, uint32_t *devices, uint32_t node) {
  for (uint32_t d = devices[node] + 1; d < problem->device_count; ++d) { /* CLV__NONE + 1 is 0 */
    if (!may_be(problem, node, d)) continue;
    devices[node] = d;
    return true;
  }
  return false;
}

/* Advances to the next allowed placement. Returns false after the last one. All nodes are on CLV__NONE before the first. */
static bool next_placement(const clv__problem *problem, uint32_t *devices) {
  uint32_t n = 0;
  if (devices[0] == CLV__NONE) {
    for (; n < problem->node_count; ++n) advance(problem, devices, n);
    return true;
  }
  for (; n < problem->node_count && !advance(problem, devices, n); ++n) {
    devices[n] = CLV__NONE;
    advance(problem, devices, n);
  }
  return n < problem->node_count;
}

static uint32_t *first_placement(const clv__problem *problem) {
  uint32_t *devices = allocate(problem->node_count, sizeof *devices);
  memset(devices, 0xff, problem->node_count * sizeof *devices);
  return devices;
}

uint64_t test_launches_once(const clv__problem *problem, const uint32_t *devices) {
  uint64_t time = 0;
  uint32_t used = 0;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    if ((problem->flags[n] & CLV__NODE_VIEW) == 0) used |= 1u << devices[n];
  }
  for (uint32_t d = 0; d < problem->device_count; ++d) time += in(used, d) ? problem->launch_ns[d] : 0;
  return time;
}

uint64_t test_brute_placement(const clv__problem *problem, bool launches, uint32_t *best) {
  uint32_t *devices = first_placement(problem);
  uint64_t least = UINT64_MAX;
  while (next_placement(problem, devices)) {
    uint64_t time = test_placement_ns(problem, devices) + (launches ? test_launches_once(problem, devices) : 0);
    if (time >= least) continue;
    least = time;
    if (best != NULL) memcpy(best, devices, problem->node_count * sizeof *devices);
  }
  free(devices);
  return least;
}

/* ---- Groupings ---- */

/* For every set of nodes: its time as a partition on each device, and the number of its inputs. */
typedef struct sets {
  const clv__problem *problem;
  uint32_t before[MAX_NODES];          /* indexed by node: the set of nodes it reads from */
  uint32_t views, hosted[MAX_DEVICES]; /* by device: its hosted views */
  uint64_t *times; /* [set * device_count + device]; meaningless if the device cannot run all nodes of the set */
  uint8_t *inputs; /* indexed by set: number of values read from outside */
} sets;

static uint32_t count_inputs(const clv__problem *problem, uint32_t set) {
  uint32_t inputs = 0;
  for (uint32_t v = 0; v < problem->value_count; ++v) {
    uint32_t producer = problem->producers[v];
    bool read = false;
    if (producer != CLV__NONE && in(set, producer)) continue;
    for (uint32_t i = problem->reader_offsets[v]; i < problem->reader_offsets[v + 1]; ++i)
      read = read || in(set, problem->readers[i]);
    inputs += read;
  }
  return inputs;
}

static void sets_init(sets *s, const clv__problem *problem) {
  uint32_t count = problem->node_count, devices = problem->device_count;
  bool limited = false;
  *s = (sets){.problem = problem,
              .times = allocate((size_t)devices << count, sizeof *s->times),
              .inputs = allocate((size_t)1 << count, 1)};
  for (uint32_t d = 0; d < devices; ++d) limited = limited || problem->limits[d].max_inputs > 0;
  for (uint32_t n = 0; n < count; ++n) {
    s->views |= ((problem->flags[n] & CLV__NODE_VIEW) != 0 ? 1u : 0u) << n;
    for (uint32_t d = 0; d < devices; ++d) s->hosted[d] |= (clv__is_hosted(problem, n, d) ? 1u : 0u) << n;
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer != CLV__NONE) s->before[n] |= 1u << producer;
    }
  }
  for (uint32_t set = 1; set < 1u << count; ++set) {
    uint32_t n = 31 - (uint32_t)__builtin_clz(set), rest = set & ~(1u << n);
    if (limited) s->inputs[set] = (uint8_t)count_inputs(problem, set);
    for (uint32_t d = 0; d < devices; ++d) {
      if (!clv__can_run(problem, n, d)) continue;
      uint64_t time = s->times[(size_t)rest * devices + d] + clv__node_ns(problem, n, d);
      for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
        uint32_t producer = problem->producers[problem->reads[r]];
        if (producer != CLV__NONE && in(rest, producer)) time -= clv__saving_ns(problem, r, d);
      }
      s->times[(size_t)set * devices + d] = time;
    }
  }
}

static void sets_finish(sets *s) {
  free(s->times);
  free(s->inputs);
}

static uint64_t set_time(const sets *s, uint32_t set, uint32_t device) {
  uint64_t launch = (set & ~s->views) == 0 ? 0 : s->problem->launch_ns[device];
  return s->times[(size_t)set * s->problem->device_count + device] + launch;
}

static bool in_limits(const sets *s, uint32_t set, uint32_t device) {
  const clv__limits *limits = &s->problem->limits[device];
  if ((set & s->hosted[device]) != 0) return true;
  return (limits->max_nodes == 0 || (uint32_t)__builtin_popcount(set) <= limits->max_nodes) &&
         (limits->max_inputs == 0 || s->inputs[set] <= limits->max_inputs);
}

/* Whether the set may be a partition on the device: all or none of its nodes are hosted views. */
static bool is_uniform(const sets *s, uint32_t set, uint32_t device) {
  return (set & s->hosted[device]) == 0 || (set & ~s->hosted[device]) == 0;
}

/* Whether `set` can run after `done`: each node it reads from is in `set` or in `done`. */
static bool can_follow(const sets *s, uint32_t done, uint32_t set) {
  for (uint32_t left = set; left != 0; left &= left - 1) {
    if ((s->before[__builtin_ctz(left)] & ~(done | set)) != 0) return false;
  }
  return true;
}

/* Finds the best grouping of a placement, by dynamic programming over the sets of completed nodes: best[done | set] is reached
 * from best[done] if `set` can run as the next partition. The times do not include copies. */
static test_best_groups best_groups(const sets *s, const uint32_t *devices, test_best_groups *best) {
  uint32_t count = s->problem->node_count, end = 1u << count, on[MAX_DEVICES] = {0};
  for (uint32_t n = 0; n < count; ++n) on[devices[n]] |= 1u << n;
  for (uint32_t set = 1; set < end; ++set) best[set] = (test_best_groups){UINT64_MAX, CLV__NONE, CLV__NONE};
  best[0] = (test_best_groups){0};
  for (uint32_t done = 0; done + 1 < end; ++done) {
    if (best[done].fewest == CLV__NONE) continue;
    for (uint32_t d = 0; d < s->problem->device_count; ++d) {
      uint32_t left = on[d] & ~done;
      for (uint32_t set = left; set != 0; set = (set - 1) & left) {
        if (!can_follow(s, done, set) || !is_uniform(s, set, d)) continue;
        test_best_groups *to = &best[done | set], *from = &best[done];
        if (from->fewest + 1 < to->fewest) to->fewest = from->fewest + 1;
        if (from->serial_ns == UINT64_MAX || !in_limits(s, set, d)) continue;
        uint64_t time = from->serial_ns + set_time(s, set, d);
        if (time < to->serial_ns) to->serial_ns = time;
        if (from->fewest_in_limits + 1 < to->fewest_in_limits) to->fewest_in_limits = from->fewest_in_limits + 1;
      }
    }
  }
  return best[end - 1];
}

test_best_groups test_brute_groups(const clv__problem *problem, const uint32_t *devices) {
  uint64_t copies[MAX_SPACES] = {0};
  test_best_groups *best = allocate((size_t)1 << problem->node_count, sizeof *best);
  sets s;
  sets_init(&s, problem);
  test_best_groups result = best_groups(&s, devices, best);
  if (result.serial_ns != UINT64_MAX) result.serial_ns += copies_ns(problem, devices, copies);
  sets_finish(&s);
  free(best);
  return result;
}

uint64_t test_brute_serial(const clv__problem *problem, uint32_t *placement) {
  test_best_groups *best = allocate((size_t)1 << problem->node_count, sizeof *best);
  uint32_t *devices = first_placement(problem);
  uint64_t least = UINT64_MAX;
  sets s;
  sets_init(&s, problem);
  while (next_placement(problem, devices)) {
    /* This sum is a lower bound of the serial time of every grouping. */
    if (test_placement_ns(problem, devices) + test_launches_once(problem, devices) >= least) continue;
    uint64_t copies[MAX_SPACES] = {0}, time = best_groups(&s, devices, best).serial_ns;
    if (time == UINT64_MAX) continue;
    time += copies_ns(problem, devices, copies);
    if (time >= least) continue;
    least = time;
    if (placement != NULL) memcpy(placement, devices, problem->node_count * sizeof *devices);
  }
  sets_finish(&s);
  free(devices);
  free(best);
  return least;
}

/* ---- Lanes ---- */

/* The schedule of the partitions chosen so far. */
typedef struct schedule {
  /* One lane per device, then one per memory space for its copies. */
  uint64_t free_at[MAX_DEVICES + MAX_SPACES], used[MAX_DEVICES + MAX_SPACES];
  uint64_t ready[3 * MAX_NODES][MAX_SPACES]; /* when the value is in the memory space; UINT64_MAX: it is not */
  uint64_t end;
} schedule;

typedef struct search {
  const sets *s;
  const uint32_t *devices;
  test_best_lanes best;
} search;

static uint64_t occupy(schedule *at, uint32_t lane, uint64_t from, uint64_t time) {
  uint64_t start = at->free_at[lane] > from ? at->free_at[lane] : from;
  at->free_at[lane] = start + time;
  at->used[lane] += time;
  if (start + time > at->end) at->end = start + time;
  return start + time;
}

/* Returns the time at which the value is in the memory space. Copies it there first if necessary. */
static uint64_t bring(const clv__problem *problem, schedule *at, uint32_t value, uint32_t space) {
  uint64_t *ready = at->ready[value];
  if (ready[space] != UINT64_MAX) return ready[space];
  if (ready[0] == UINT64_MAX) {
    uint32_t from = 1;
    while (ready[from] == UINT64_MAX) ++from;
    ready[0] = occupy(at, problem->device_count + from, ready[from], clv__out_ns(problem, value, from));
  }
  if (space != 0) ready[space] = occupy(at, problem->device_count + space, ready[0], clv__in_ns(problem, value, space));
  return ready[space];
}

static void run_set(const sets *s, schedule *at, uint32_t set, uint32_t device) {
  const clv__problem *problem = s->problem;
  uint32_t space = problem->spaces[device];
  uint64_t from = 0;
  for (uint32_t left = set; left != 0; left &= left - 1) {
    uint32_t n = (uint32_t)__builtin_ctz(left);
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer != CLV__NONE && in(set, producer)) continue;
      uint64_t ready = bring(problem, at, problem->reads[r], space);
      if (ready > from) from = ready;
    }
  }
  uint64_t end = (set & s->hosted[device]) != 0 ? from : occupy(at, device, from, set_time(s, set, device));
  for (uint32_t left = set; left != 0; left &= left - 1) {
    uint32_t n = (uint32_t)__builtin_ctz(left);
    for (uint32_t w = problem->write_offsets[n]; w < problem->write_offsets[n + 1]; ++w)
      at->ready[problem->writes[w]][space] = end;
  }
}

static void try_all(search *q, const schedule *at, uint32_t done) {
  const clv__problem *problem = q->s->problem;
  uint32_t all = (1u << problem->node_count) - 1;
  if (done == all) {
    schedule last = *at;
    for (uint32_t v = 0; v < problem->value_count; ++v) {
      if (problem->is_output[v]) bring(problem, &last, v, 0);
    }
    uint64_t fullest = 0;
    for (uint32_t i = 0; i < MAX_DEVICES + MAX_SPACES; ++i) fullest = last.used[i] > fullest ? last.used[i] : fullest;
    if (fullest < q->best.throughput_ns) q->best.throughput_ns = fullest;
    if (last.end < q->best.overlapped_ns) q->best.overlapped_ns = last.end;
    return;
  }
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    uint32_t left = 0;
    for (uint32_t n = 0; n < problem->node_count; ++n) left |= (q->devices[n] == d && !in(done, n) ? 1u : 0u) << n;
    for (uint32_t set = left; set != 0; set = (set - 1) & left) {
      if (!can_follow(q->s, done, set) || !in_limits(q->s, set, d) || !is_uniform(q->s, set, d)) continue;
      schedule next = *at;
      run_set(q->s, &next, set, d);
      try_all(q, &next, done | set);
    }
  }
}

test_best_lanes test_brute_lanes(const clv__problem *problem) {
  uint32_t *devices = first_placement(problem);
  sets s;
  sets_init(&s, problem);
  search q = {&s, devices, {UINT64_MAX, UINT64_MAX}};
  while (next_placement(problem, devices)) {
    schedule start = {0};
    memset(start.ready, 0xff, sizeof start.ready);
    for (uint32_t v = 0; v < problem->value_count; ++v) {
      if (problem->producers[v] == CLV__NONE) start.ready[v][0] = 0;
    }
    try_all(&q, &start, 0);
  }
  sets_finish(&s);
  free(devices);
  return q.best;
}
