/* Checks of cuts, copies and prices: see problem_checks.h. The code is simple rather than fast. */
#include "problem_checks.h"

#include <stdlib.h>
#include <string.h>

#include "support.h"

static struct {
  const clv__problem *problem;
  uint64_t seed;
  const char *what;
} at;

void test_problem_at(const clv__problem *problem, uint64_t seed, const char *what) {
  at.problem = problem, at.seed = seed, at.what = what;
}

void test_problem_fail(const uint32_t *devices, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (at.problem != NULL) test_problem_print(stderr, at.seed, at.problem, at.problem->node_count <= 40 ? devices : NULL);
  fail_msg("%s: %s", at.what == NULL ? "" : at.what, text);
  abort(); /* not reached */
}

void test_check_placement(const clv__problem *problem, const uint32_t *devices) {
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    if (devices[n] >= problem->device_count || !clv__can_run(problem, n, devices[n])) {
      test_problem_fail(devices, "node %u is on device %d, which cannot run it", n, (int)devices[n]);
    }
    if (problem->pins[n] != CLV__NONE && devices[n] != problem->pins[n]) {
      test_problem_fail(devices, "node %u is pinned to device %u, but is on %u", n, problem->pins[n], devices[n]);
    }
  }
}

static uint32_t *allocate(size_t count) {
  uint32_t *memory = calloc(count + 1, sizeof *memory);
  if (memory == NULL) abort();
  return memory;
}

/* ---- Cuts ---- */

static void check_members(const clv__problem *problem, const uint32_t *devices, const uint32_t *groups, const clv__cut *cut) {
  uint32_t *found = allocate(problem->node_count);
  if (cut->offsets[0] != 0 || cut->offsets[cut->count] != problem->node_count) {
    test_problem_fail(devices, "%u partitions contain %u of %u nodes", cut->count, cut->offsets[cut->count], problem->node_count);
  }
  for (uint32_t p = 0; p < cut->count; ++p) {
    if (cut->offsets[p] >= cut->offsets[p + 1]) test_problem_fail(devices, "partition %u is empty", p);
    for (uint32_t i = cut->offsets[p]; i < cut->offsets[p + 1]; ++i) {
      uint32_t n = cut->nodes[i], first = cut->nodes[cut->offsets[p]];
      if (n >= problem->node_count || found[n]++ != 0)
        test_problem_fail(devices, "partition %u: node %u is invalid, or in two partitions", p, n);
      if (cut->partition_of[n] != p)
        test_problem_fail(devices, "node %u is in partition %u, but partition_of says %u", n, p, cut->partition_of[n]);
      if (devices[n] != cut->devices[p])
        test_problem_fail(devices, "node %u is in partition %u, which is on another device, %u", n, p, cut->devices[p]);
      if (i > cut->offsets[p] && cut->nodes[i - 1] >= n)
        test_problem_fail(devices, "the nodes of partition %u are not in ascending order", p);
      if (clv__is_hosted(problem, n, devices[n]) != clv__is_hosted(problem, first, devices[n]))
        test_problem_fail(devices, "partition %u: only one of the nodes %u and %u is a hosted view", p, n, first);
      if (groups != NULL && groups[n] != groups[first])
        test_problem_fail(devices, "partition %u: nodes %u and %u are of different groups", p, n, first);
    }
  }
  free(found);
}

/* Checks that partitions are convex: no path leaves a partition and returns to it. Follows all paths, in graphs of up to 64
 * nodes. The order of the partitions implies convexity; this is a direct check. */
static void check_convex(const clv__problem *problem, const uint32_t *devices, const clv__cut *cut) {
  if (problem->node_count > 64) return;
  uint64_t before[64] = {0}; /* indexed by node: the set of nodes it depends on */
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer != CLV__NONE) before[n] |= before[producer] | (uint64_t)1 << producer;
    }
  }
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    for (uint32_t m = 0; m < n; ++m) {
      if ((before[n] >> m & 1u) == 0 || cut->partition_of[m] == cut->partition_of[n]) continue;
      for (uint32_t first = 0; first < m; ++first) {
        if ((before[m] >> first & 1u) != 0 && cut->partition_of[first] == cut->partition_of[n])
          test_problem_fail(devices, "partition %u is not convex: a path leads from node %u over node %u outside it to node %u",
                            cut->partition_of[n], first, m, n);
      }
    }
  }
}

static void check_limits(const clv__problem *problem, const uint32_t *devices, const clv__cut *cut) {
  uint32_t *seen = allocate(problem->value_count);
  for (uint32_t p = 0; p < cut->count; ++p) {
    const clv__limits *limits = &problem->limits[cut->devices[p]];
    uint32_t inputs = 0, nodes = cut->offsets[p + 1] - cut->offsets[p];
    if (clv__cut_is_hosted(problem, cut, p)) continue;
    for (uint32_t i = cut->offsets[p]; i < cut->offsets[p + 1]; ++i) {
      for (uint32_t r = problem->read_offsets[cut->nodes[i]]; r < problem->read_offsets[cut->nodes[i] + 1]; ++r) {
        uint32_t value = problem->reads[r], producer = problem->producers[value];
        if ((producer != CLV__NONE && cut->partition_of[producer] == p) || seen[value] == p + 1) continue;
        seen[value] = p + 1;
        ++inputs;
      }
    }
    if (limits->max_nodes > 0 && nodes > limits->max_nodes)
      test_problem_fail(devices, "partition %u has %u nodes, the limit is %u", p, nodes, limits->max_nodes);
    if (limits->max_inputs > 0 && inputs > limits->max_inputs)
      test_problem_fail(devices, "partition %u has %u inputs, the limit is %u", p, inputs, limits->max_inputs);
  }
  free(seen);
}

void test_check_cut(const clv__problem *problem, const uint32_t *devices, const uint32_t *groups, const clv__cut *cut) {
  check_members(problem, devices, groups, cut);
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer != CLV__NONE && cut->partition_of[producer] > cut->partition_of[n]) {
        test_problem_fail(devices, "node %u of partition %u reads from node %u of partition %u, which runs later", n,
                          cut->partition_of[n], producer, cut->partition_of[producer]);
      }
    }
  }
  check_convex(problem, devices, cut);
  check_limits(problem, devices, cut);
}

/* ---- Moves ---- */

typedef struct replay {
  const clv__problem *problem;
  const clv__cut *cut;
  const clv__copies *copies;
  bool *present;           /* [value * space_count + space]: the value is in the memory space */
  uint32_t *weight_stamps; /* [weight * space_count + space]: number + 1 of the last partition for which it was streamed */
} replay;

static bool reads_value(const replay *r, uint32_t partition, uint32_t value) {
  for (uint32_t i = r->problem->reader_offsets[value]; i < r->problem->reader_offsets[value + 1]; ++i) {
    if (r->cut->partition_of[r->problem->readers[i]] == partition) return true;
  }
  return false;
}

/* Whether copy `m` of a value is needed: by the partition that follows it, as an output, or by a later copy that copies the value
 * on. */
static bool is_needed(const replay *r, uint32_t m) {
  const clv__copy *copy = &r->copies->items[m];
  if (copy->before == r->cut->count) return r->problem->is_output[copy->value] && copy->to == 0;
  bool there = r->problem->spaces[r->cut->devices[copy->before]] == copy->to;
  if (there && reads_value(r, copy->before, copy->value)) return true;
  for (uint32_t k = m + 1; k < r->copies->count && r->copies->items[k].before == copy->before; ++k) {
    const clv__copy *next = &r->copies->items[k];
    if (!next->is_weight && next->value == copy->value && next->from == copy->to) return true;
  }
  return false;
}

static void replay_value_move(const replay *r, uint32_t m) {
  const clv__copy *copy = &r->copies->items[m];
  uint32_t spaces = r->problem->space_count;
  if (copy->value >= r->problem->value_count)
    test_problem_fail(NULL, "copy %u is of value %u, which does not exist", m, copy->value);
  bool *present = &r->present[(size_t)copy->value * spaces];
  if (!present[copy->from]) test_problem_fail(NULL, "copy %u: v%u is not in space %u yet", m, copy->value, copy->from);
  if (present[copy->to]) test_problem_fail(NULL, "copy %u: v%u is in space %u already", m, copy->value, copy->to);
  if (!is_needed(r, m)) {
    test_problem_fail(NULL, "copy %u: v%u in space %u is not needed before partition %u", m, copy->value, copy->to, copy->before);
  }
  present[copy->to] = true;
}

static void replay_weight_move(const replay *r, uint32_t m, const uint16_t *streamed) {
  const clv__copy *copy = &r->copies->items[m];
  const clv__problem *problem = r->problem;
  bool read = false;
  if (copy->value >= problem->weight_count || copy->before >= r->cut->count || copy->from != 0) {
    test_problem_fail(NULL, "copy %u of weight %u from space %u before partition %u is invalid", m, copy->value, copy->from,
                      copy->before);
  }
  uint32_t device = r->cut->devices[copy->before];
  for (uint32_t i = r->cut->offsets[copy->before]; i < r->cut->offsets[copy->before + 1]; ++i) {
    for (uint32_t w = problem->weight_offsets[r->cut->nodes[i]]; w < problem->weight_offsets[r->cut->nodes[i] + 1]; ++w) {
      read = read || problem->weights[w] == copy->value;
    }
  }
  bool wanted = read && problem->spaces[device] == copy->to && streamed != NULL && (streamed[copy->value] >> device & 1u) != 0;
  if (!wanted) test_problem_fail(NULL, "copy %u: weight %u is not needed before partition %u", m, copy->value, copy->before);
  uint32_t *stamp = &r->weight_stamps[(size_t)copy->value * problem->space_count + copy->to];
  if (*stamp == copy->before + 1)
    test_problem_fail(NULL, "copy %u: weight %u is copied twice before partition %u", m, copy->value, copy->before);
  *stamp = copy->before + 1;
}

static void replay_partition(const replay *r, uint32_t p, const uint16_t *streamed) {
  const clv__problem *problem = r->problem;
  uint32_t device = r->cut->devices[p], space = problem->spaces[device], spaces = problem->space_count;
  for (uint32_t i = r->cut->offsets[p]; i < r->cut->offsets[p + 1]; ++i) {
    uint32_t n = r->cut->nodes[i];
    for (uint32_t k = problem->read_offsets[n]; k < problem->read_offsets[n + 1]; ++k) {
      if (!r->present[(size_t)problem->reads[k] * spaces + space]) {
        test_problem_fail(NULL, "partition %u: node %u reads v%u, which is not in space %u", p, n, problem->reads[k], space);
      }
    }
    for (uint32_t w = problem->weight_offsets[n]; w < problem->weight_offsets[n + 1]; ++w) {
      uint32_t weight = problem->weights[w];
      bool streams = streamed != NULL && (streamed[weight] >> device & 1u) != 0 && space != 0;
      streams = streams && !clv__is_hosted(problem, n, device);
      if (streams && r->weight_stamps[(size_t)weight * spaces + space] != p + 1) {
        test_problem_fail(NULL, "partition %u: weight %u has not been streamed", p, weight);
      }
    }
    for (uint32_t k = problem->write_offsets[n]; k < problem->write_offsets[n + 1]; ++k) {
      r->present[(size_t)problem->writes[k] * spaces + space] = true;
    }
  }
}

void test_check_moves(const clv__problem *problem, const clv__cut *cut, const uint16_t *streamed, const clv__copies *copies) {
  uint32_t spaces = problem->space_count, next = 0;
  replay r = {.problem = problem, .cut = cut, .copies = copies};
  r.present = calloc((size_t)problem->value_count * spaces + 1, 1);
  r.weight_stamps = allocate((size_t)problem->weight_count * spaces);
  if (r.present == NULL) abort();
  for (uint32_t v = 0; v < problem->value_count; ++v) r.present[(size_t)v * spaces] = problem->producers[v] == CLV__NONE;
  for (uint32_t p = 0; p <= cut->count; ++p) {
    for (; next < copies->count && copies->items[next].before == p; ++next) {
      const clv__copy *copy = &copies->items[next];
      if (copy->from >= spaces || copy->to >= spaces || (copy->from == 0) == (copy->to == 0)) {
        test_problem_fail(NULL, "copy %u goes from space %u to %u, not between the host (space 0) and another space", next,
                          copy->from, copy->to);
      }
      if (copy->is_weight)
        replay_weight_move(&r, next, streamed);
      else
        replay_value_move(&r, next);
    }
    if (p < cut->count) replay_partition(&r, p, streamed);
  }
  if (next != copies->count) test_problem_fail(NULL, "copy %u is out of order", next);
  for (uint32_t v = 0; v < problem->value_count; ++v) {
    if (problem->is_output[v] && !r.present[(size_t)v * spaces]) test_problem_fail(NULL, "output v%u is not in host memory", v);
  }
  free(r.present);
  free(r.weight_stamps);
}

/* ---- Prices ---- */

static uint64_t partition_time(const clv__problem *problem, const clv__cut *cut, uint32_t p) {
  uint32_t device = cut->devices[p];
  uint64_t time = 0, saved = 0;
  bool all_views = true;
  for (uint32_t i = cut->offsets[p]; i < cut->offsets[p + 1]; ++i) {
    uint32_t n = cut->nodes[i];
    time += clv__node_ns(problem, n, device);
    all_views = all_views && (problem->flags[n] & CLV__NODE_VIEW) != 0;
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer != CLV__NONE && cut->partition_of[producer] == p) saved += clv__saving_ns(problem, r, device);
    }
  }
  return time - saved + (all_views ? 0 : problem->launch_ns[device]);
}

static void expect_time(uint64_t is, uint64_t should, const char *what, uint32_t index) {
  if (is != should) {
    test_problem_fail(NULL, "%s %u: %llu ns, expected %llu", what, index, (unsigned long long)is, (unsigned long long)should);
  }
}

static uint64_t later(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

/* The lanes: one per device, then one per memory space for its copies. */
typedef struct lanes {
  uint64_t *free_at, *used; /* indexed by lane: when it becomes free, how long it is busy in all */
  uint64_t *ready;          /* [value * space_count + space]: when the value is in the memory space */
  uint64_t serial, end;
} lanes;

static uint64_t occupy(lanes *l, uint32_t lane, uint64_t from, uint64_t time) {
  uint64_t start = later(l->free_at[lane], from);
  l->free_at[lane] = start + time;
  l->used[lane] += time;
  l->serial += time;
  l->end = later(l->end, start + time);
  return start;
}

static void run_move(const clv__problem *problem, const clv__copy *copy, uint64_t time, lanes *l, uint64_t *start,
                     uint64_t *at_weight) {
  uint32_t spaces = problem->space_count, space = copy->from == 0 ? copy->to : copy->from;
  uint64_t from = copy->is_weight ? 0 : l->ready[(size_t)copy->value * spaces + copy->from];
  *start = occupy(l, problem->device_count + space, from, time);
  if (copy->is_weight)
    *at_weight = later(*at_weight, *start + time);
  else
    l->ready[(size_t)copy->value * spaces + copy->to] = *start + time;
}

/* Makes the result of each hosted view of partition p ready at the same time as the view's source, because the host only
 * renames memory. Returns the latest of these times. */
static uint64_t rename_views(const clv__problem *problem, const clv__cut *cut, uint32_t p, lanes *l) {
  uint32_t spaces = problem->space_count, space = problem->spaces[cut->devices[p]];
  uint64_t end = 0;
  for (uint32_t i = cut->offsets[p]; i < cut->offsets[p + 1]; ++i) {
    uint32_t from = problem->reads[problem->read_offsets[cut->nodes[i]]],
             to = problem->writes[problem->write_offsets[cut->nodes[i]]];
    uint64_t ready = l->ready[(size_t)from * spaces + space];
    l->ready[(size_t)to * spaces + space] = ready;
    end = later(end, ready);
  }
  return end;
}

static uint64_t run_partition(const clv__problem *problem, const clv__cut *cut, uint32_t p, uint64_t from, lanes *l) {
  uint32_t spaces = problem->space_count, space = problem->spaces[cut->devices[p]];
  for (uint32_t i = cut->offsets[p]; i < cut->offsets[p + 1]; ++i) {
    uint32_t n = cut->nodes[i];
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
      uint32_t value = problem->reads[r], producer = problem->producers[value];
      if (producer != CLV__NONE && cut->partition_of[producer] == p) continue;
      from = later(from, l->ready[(size_t)value * spaces + space]);
    }
  }
  uint64_t time = partition_time(problem, cut, p), start = from;
  if (clv__cut_is_hosted(problem, cut, p)) return rename_views(problem, cut, p, l);
  start = occupy(l, cut->devices[p], from, time);
  for (uint32_t i = cut->offsets[p]; i < cut->offsets[p + 1]; ++i) {
    for (uint32_t w = problem->write_offsets[cut->nodes[i]]; w < problem->write_offsets[cut->nodes[i] + 1]; ++w) {
      l->ready[(size_t)problem->writes[w] * spaces + space] = start + time;
    }
  }
  return start;
}

void test_check_price(const clv__problem *problem, const clv__cut *cut, const clv__copies *copies, const clv__price *price) {
  size_t lane_count = problem->device_count + problem->space_count;
  lanes l = {calloc(lane_count, sizeof *l.free_at), calloc(lane_count, sizeof *l.used),
             calloc((size_t)problem->value_count * problem->space_count + 1, sizeof *l.ready), 0, 0};
  if (l.free_at == NULL || l.used == NULL || l.ready == NULL) abort();
  uint32_t next = 0;
  for (uint32_t p = 0; p <= cut->count; ++p) {
    uint64_t start, weights_at = 0;
    for (; next < copies->count && copies->items[next].before == p; ++next) {
      const clv__copy *copy = &copies->items[next];
      uint64_t time = copy->is_weight   ? problem->weight_in_ns[(size_t)copy->value * problem->space_count + copy->to]
                      : copy->from == 0 ? clv__in_ns(problem, copy->value, copy->to)
                                        : clv__out_ns(problem, copy->value, copy->from);
      expect_time(price->copy_ns[next], time, "copy", next);
      run_move(problem, copy, time, &l, &start, &weights_at);
      expect_time(price->copy_start_ns[next], start, "start of copy", next);
    }
    if (p == cut->count) break;
    expect_time(price->partition_ns[p], partition_time(problem, cut, p), "partition", p);
    start = run_partition(problem, cut, p, weights_at, &l);
    expect_time(price->partition_start_ns[p], start, "start of partition", p);
  }
  uint64_t fullest = 0;
  for (size_t i = 0; i < lane_count; ++i) fullest = later(fullest, l.used[i]);
  expect_time(price->serial_ns, l.serial, "serial time of plan", 0);
  expect_time(price->overlapped_ns, l.end, "overlapped time of plan", 0);
  expect_time(price->throughput_ns, fullest, "throughput time of plan", 0);
  free(l.free_at);
  free(l.used);
  free(l.ready);
}
