/* Finds changes of a placement that are worth trying: for whole partitions, for nodes between two partitions of one device, for
 * nodes at boundaries, and for pairs of nodes in small problems. The estimated changes of the cost are exact, except that
 * launches are estimated from the neighbours in the graph of partitions. */
#include <stdlib.h>
#include <string.h>

#include "place/optimal/optimal.h"

#define PAIR_WORK 64u /* work limit for all pairs, as a multiple of the number of nodes and reads */

typedef struct maker {
  clv__state *state;
  const clv__problem *problem;
  const clv__cut *cut;
  clv__changes *changes;
  uint32_t *below, *above; /* by node: `stamp` if close_gap() has found it below `first`, or above `last` */
  uint64_t *degrees;       /* by node */
  uint32_t stamp;
  size_t start; /* where the nodes of the current change begin in changes->nodes */
  bool is_full;
  clv_error *error;
} maker;

static uint32_t device_of(const maker *m, uint32_t node) {
  return m->cut->devices[m->cut->partition_of[node]];
}

static bool can_go(const clv__problem *problem, uint32_t node, uint32_t device) {
  uint32_t pin = problem->pins[node];
  return clv__can_run(problem, node, device) && (pin == CLV__NONE || pin == device);
}

/* ---- One change ---- */

static void begin(maker *m) {
  m->start = m->changes->node_count;
}

static clv_status push(maker *m, uint32_t node) {
  clv__changes *c = m->changes;
  if (!clv__array_reserve(c->allocator, (void **)&c->nodes, &c->node_capacity, c->node_count + 1, sizeof *c->nodes,
                          c->node_count)) {
    return clv__error_memory(m->error, (c->node_count + 1) * sizeof *c->nodes);
  }
  c->nodes[c->node_count++] = node;
  return CLV_OK;
}

/* Keeps the nodes pushed since begin() as a change. `launch_ns` estimates its effect on launches. */
static clv_status keep(maker *m, uint32_t device, int64_t launch_ns) {
  clv__changes *c = m->changes;
  if (c->node_count == m->start) return CLV_OK;
  if (!clv__array_reserve(c->allocator, (void **)&c->items, &c->capacity, c->count + 1, sizeof *c->items, c->count)) {
    return clv__error_memory(m->error, (c->count + 1) * sizeof *c->items);
  }
  uint64_t delta = (uint64_t)launch_ns; /* unsigned: a negative value wraps around, and the final sum wraps back */
  for (size_t i = m->start; i < c->node_count; ++i) delta += (uint64_t)clv__state_move(m->state, c->nodes[i], device);
  for (size_t i = c->node_count; i-- > m->start;) (void)clv__state_move(m->state, c->nodes[i], device_of(m, c->nodes[i]));
  c->items[c->count++] = (clv__change){(uint32_t)m->start, (uint32_t)(c->node_count - m->start), device, (int64_t)delta};
  c->effort += c->node_count - m->start;
  m->is_full = c->node_count >= c->node_limit;
  return CLV_OK;
}

static void drop(maker *m) {
  m->changes->node_count = m->start;
}

/* ---- Neighbours ---- */

static bool reads_from(const maker *m, uint32_t node, uint32_t device) {
  const clv__problem *problem = m->problem;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    uint32_t producer = problem->producers[problem->reads[r]];
    if (producer != CLV__NONE && device_of(m, producer) == device) return true;
  }
  return false;
}

static bool is_read_on(const maker *m, uint32_t node, uint32_t device) {
  const clv__problem *problem = m->problem;
  for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
    uint32_t value = problem->writes[w];
    for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
      if (device_of(m, problem->readers[i]) == device) return true;
    }
  }
  return false;
}

/* ---- Kinds of changes. These functions only propose changes (see keep()). ---- */

/* Proposes to move the nodes of a partition to `device`, as far as it can run them. The moved nodes need a launch of their own
 * unless they can join neighbours on `device`. */
static clv_status move_partition(maker *m, uint32_t partition, uint32_t device) {
  const clv__cut *cut = m->cut;
  uint32_t size = cut->offsets[partition + 1] - cut->offsets[partition];
  bool above = false, below = false, works = false;
  begin(m);
  for (uint32_t i = cut->offsets[partition]; i < cut->offsets[partition + 1]; ++i) {
    uint32_t node = cut->nodes[i];
    if (!can_go(m->problem, node, device)) continue;
    CLV__TRY(push(m, node));
    works |= (m->problem->flags[node] & CLV__NODE_VIEW) == 0;
    above = above || reads_from(m, node, device);
    below = below || is_read_on(m, node, device);
  }
  bool whole = m->changes->node_count - m->start == size;
  int64_t launch = whole && works ? -(int64_t)m->problem->launch_ns[cut->devices[partition]] : 0;
  if (!above && !below && works) launch += (int64_t)m->problem->launch_ns[device];
  if (above && below && whole) launch -= (int64_t)m->problem->launch_ns[device];
  return keep(m, device, launch);
}

static clv_status move_partitions(maker *m) {
  for (uint32_t p = 0; p < m->cut->count && !m->is_full; ++p) {
    for (uint32_t d = 0; d < m->problem->device_count && !m->is_full; ++d) {
      if (d != m->cut->devices[p]) CLV__TRY(move_partition(m, p, d));
    }
  }
  return CLV_OK;
}

static bool is_below(const maker *m, uint32_t node, uint32_t partition) {
  const clv__problem *problem = m->problem;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    uint32_t producer = problem->producers[problem->reads[r]];
    if (producer == CLV__NONE) continue;
    if (m->cut->partition_of[producer] == partition || m->below[producer] == m->stamp) return true;
  }
  return false;
}

static bool is_above(const maker *m, uint32_t node, uint32_t partition) {
  const clv__problem *problem = m->problem;
  for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
    uint32_t value = problem->writes[w];
    for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
      uint32_t reader = problem->readers[i];
      if (m->cut->partition_of[reader] == partition || m->above[reader] == m->stamp) return true;
    }
  }
  return false;
}

/* Proposes to move all nodes on paths from partition `first` to partition `last`, both on one device, to that device. The two
 * partitions then become one. */
static clv_status close_gap(maker *m, uint32_t first, uint32_t last) {
  const clv__cut *cut = m->cut;
  uint32_t device = cut->devices[first];
  int64_t launch = -(int64_t)m->problem->launch_ns[device];
  m->changes->effort += cut->offsets[last] - cut->offsets[first + 1];
  ++m->stamp;
  for (uint32_t i = cut->offsets[first + 1]; i < cut->offsets[last]; ++i) {
    if (is_below(m, cut->nodes[i], first)) m->below[cut->nodes[i]] = m->stamp;
  }
  begin(m);
  for (uint32_t p = last - 1; p > first; --p) {
    size_t before = m->changes->node_count;
    for (uint32_t i = cut->offsets[p + 1]; i-- > cut->offsets[p];) {
      uint32_t node = cut->nodes[i];
      if (!is_above(m, node, last)) continue;
      m->above[node] = m->stamp;
      if (m->below[node] != m->stamp || cut->devices[p] == device) continue;
      if (!can_go(m->problem, node, device)) {
        drop(m);
        return CLV_OK;
      }
      CLV__TRY(push(m, node));
    }
    if (m->changes->node_count - before == cut->offsets[p + 1] - cut->offsets[p])
      launch -= (int64_t)m->problem->launch_ns[cut->devices[p]];
  }
  return keep(m, device, launch);
}

/* Proposes to close the gaps between each partition and up to `span` partitions before it on the same device. */
static clv_status close_gaps(maker *m, uint32_t span) {
  uint32_t recent[16][4], seen[16] = {0};
  for (uint32_t p = 0; p < m->cut->count && !m->is_full; ++p) {
    uint32_t d = m->cut->devices[p];
    for (uint32_t back = 1; back <= span && back <= seen[d] && !m->is_full; ++back) {
      CLV__TRY(close_gap(m, recent[d][(seen[d] - back) % 4], p));
    }
    recent[d][seen[d]++ % 4] = p;
  }
  return CLV_OK;
}

/* Proposes to move each node alone to a device that one of its neighbours is on (or, if `anywhere`, to any device). */
static clv_status move_nodes(maker *m, bool anywhere) {
  const clv__problem *problem = m->problem;
  for (uint32_t n = 0; n < problem->node_count && !m->is_full; ++n) {
    uint32_t p = m->cut->partition_of[n];
    if (m->cut->offsets[p + 1] - m->cut->offsets[p] == 1) continue; /* move_partition() moves whole partitions */
    for (uint32_t d = 0; d < problem->device_count && !m->is_full; ++d) {
      if (d == m->cut->devices[p] || !can_go(problem, n, d)) continue;
      bool touches = reads_from(m, n, d) || is_read_on(m, n, d);
      if (!touches && !anywhere) continue;
      begin(m);
      CLV__TRY(push(m, n));
      CLV__TRY(keep(m, d, touches ? 0 : (int64_t)problem->launch_ns[d]));
    }
  }
  return CLV_OK;
}

static clv_status move_pair(maker *m, uint32_t a, uint32_t b) {
  for (uint32_t d = 0; d < m->problem->device_count && !m->is_full; ++d) {
    if ((d == device_of(m, a) && d == device_of(m, b)) || !can_go(m->problem, a, d) || !can_go(m->problem, b, d)) continue;
    begin(m);
    if (d != device_of(m, a)) CLV__TRY(push(m, a));
    if (d != device_of(m, b)) CLV__TRY(push(m, b));
    CLV__TRY(keep(m, d, 0));
  }
  return CLV_OK;
}

/* Sets each node's degree, which estimates the work of moving it: the number of values that it reads, of values that it writes,
 * and of reads of the values that it writes. */
static void count_degrees(const maker *m) {
  const clv__problem *problem = m->problem;
  for (uint32_t n = 0; n < problem->node_count; ++n) m->degrees[n] = problem->read_offsets[n + 1] - problem->read_offsets[n];
  for (uint32_t v = 0; v < problem->value_count; ++v) {
    uint32_t readers = problem->reader_offsets[v + 1] - problem->reader_offsets[v];
    if (problem->producers[v] != CLV__NONE) m->degrees[problem->producers[v]] += 1 + (uint64_t)readers;
  }
}

/* Proposes to move pairs of nodes together: a producer and a reader of one value, or two readers that follow each other in the
 * value's list. A node with very many neighbours would pair with each of them, so the work is limited. */
static clv_status move_pairs(maker *m) {
  const clv__problem *problem = m->problem;
  count_degrees(m);
  uint64_t work = PAIR_WORK * ((uint64_t)problem->node_count + problem->read_offsets[problem->node_count]);
  for (uint32_t v = 0; v < problem->value_count && !m->is_full; ++v) {
    uint32_t previous = problem->producers[v];
    for (uint32_t i = problem->reader_offsets[v]; i < problem->reader_offsets[v + 1] && !m->is_full; ++i) {
      uint64_t edges = m->degrees[problem->readers[i]] + (previous != CLV__NONE ? m->degrees[previous] : 0);
      if (edges > work) return CLV_OK;
      work -= edges;
      if (previous != CLV__NONE) CLV__TRY(move_pair(m, previous, problem->readers[i]));
      if (problem->producers[v] != CLV__NONE && previous != problem->producers[v]) {
        CLV__TRY(move_pair(m, problem->producers[v], problem->readers[i]));
      }
      previous = problem->readers[i];
    }
  }
  return CLV_OK;
}

/* ---- All changes ---- */

static int compare_changes(const void *a, const void *b) {
  const clv__change *x = a, *y = b;
  if (x->estimate_ns != y->estimate_ns) return x->estimate_ns < y->estimate_ns ? -1 : 1;
  return x->first < y->first ? -1 : x->first > y->first;
}

static clv_status make_all(maker *m, bool deep) {
  CLV__TRY(move_partitions(m));
  CLV__TRY(close_gaps(m, deep ? 3 : 1));
  CLV__TRY(move_nodes(m, deep));
  return deep ? move_pairs(m) : CLV_OK;
}

clv_status clv__changes_make(clv__state *state, const clv__cut *cut, bool deep, clv__changes *changes, clv_error *error) {
  const clv__problem *problem = state->problem;
  changes->count = changes->node_count = 0;
  changes->effort = (uint64_t)problem->node_count + problem->value_count;
  changes->node_limit = (size_t)problem->node_count * (deep ? 24 : 4) * problem->device_count + 64;
  maker m = {.state = state, .problem = problem, .cut = cut, .changes = changes, .error = error};
  m.below = clv__allocate_zero(changes->allocator, (size_t)problem->node_count * sizeof *m.below);
  m.above = clv__allocate_zero(changes->allocator, (size_t)problem->node_count * sizeof *m.above);
  clv_status status = CLV_OK;
  m.degrees = clv__allocate(changes->allocator, (size_t)problem->node_count * sizeof *m.degrees);
  if (m.below == NULL || m.above == NULL || m.degrees == NULL)
    status = clv__error_memory(error, (size_t)problem->node_count * sizeof *m.degrees);
  else
    status = make_all(&m, deep);
  clv__release(changes->allocator, m.below);
  clv__release(changes->allocator, m.above);
  clv__release(changes->allocator, m.degrees);
  if (status == CLV_OK && changes->count > 1) qsort(changes->items, changes->count, sizeof *changes->items, compare_changes);
  return status;
}

void clv__changes_finish(clv__changes *changes) {
  clv__release(changes->allocator, changes->items);
  clv__release(changes->allocator, changes->nodes);
}
