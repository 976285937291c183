/* Pass 2 of `propagate-graph`: devices spread along the edges of the graph.
 *
 * A downward sweep goes from producers to readers in the order of the list, an upward sweep from readers to producers in the
 * reverse order. Every node passes on one device: its own or, while it has none, the one that reached it. If several devices
 * reach it, the one that arrives on the most edges wins; among ties, the one of highest priority. */
#include "place/propagate/propagate.h"

enum { NOTHING = 0xff, MAX_DEVICES = 16 };

/* The number of edges on which each device arrives, and the devices that arrive, as bits. */
typedef struct arrivals {
  uint32_t counts[MAX_DEVICES];
  uint32_t mask;
} arrivals;

static inline void arrive(arrivals *a, uint8_t device) {
  if (device == NOTHING) return;
  if ((a->mask >> device & 1u) == 0) a->counts[device] = 0;
  a->mask |= 1u << device;
  ++a->counts[device];
}

/* Returns the device of `mask` that arrives on the most edges. */
static uint8_t strongest(const arrivals *a, uint32_t mask) {
  uint8_t best = NOTHING;
  for (; mask != 0; mask &= mask - 1) {
    uint8_t d = (uint8_t)__builtin_ctz(mask);
    if (best == NOTHING || a->counts[d] > a->counts[best]) best = d;
  }
  return best;
}

static void arrive_from_producers(const clv__problem *problem, uint32_t node, const uint8_t *flows, arrivals *a) {
  /* A view passes on the device of its first input alone. */
  uint32_t end = clv__node_is_view(problem, node) ? problem->read_offsets[node] + 1 : problem->read_offsets[node + 1];
  for (uint32_t r = problem->read_offsets[node]; r < end; ++r) {
    uint32_t producer = problem->producers[problem->reads[r]];
    if (producer != CLV__NONE) arrive(a, flows[producer]);
  }
}

static void arrive_from_readers(const clv__problem *problem, uint32_t node, const uint8_t *flows, arrivals *a) {
  for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
    uint32_t value = problem->writes[w];
    for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
      uint32_t reader = problem->readers[i];
      /* A view passes its device upwards only to its source, not to its other operands. */
      if (clv__node_is_view(problem, reader) && problem->reads[problem->read_offsets[reader]] != value) continue;
      arrive(a, flows[reader]);
    }
  }
}

void clv__propagate_along_edges(clv__propagation *p, const clv__sweep *sweep, uint8_t *flows) {
  const clv__problem *problem = p->problem;
  if (p->left == 0) return;
  for (uint32_t i = 0; i < problem->node_count; ++i) {
    uint32_t n = sweep->up ? problem->node_count - 1 - i : i;
    bool is_view = clv__node_is_view(problem, n);
    if (!is_view && p->devices[n] != CLV__NONE) {
      flows[n] = !sweep->host && p->devices[n] == p->last ? NOTHING : (uint8_t)p->devices[n];
      continue;
    }
    arrivals a;
    a.mask = 0;
    if (sweep->up)
      arrive_from_readers(problem, n, flows, &a);
    else
      arrive_from_producers(problem, n, flows, &a);
    uint32_t able = a.mask & problem->supports[n];
    if (is_view || able == 0) {
      flows[n] = strongest(&a, a.mask);
      continue;
    }
    flows[n] = strongest(&a, able);
    p->devices[n] = flows[n];
    p->causes[n] = sweep->cause;
    --p->left;
  }
}
