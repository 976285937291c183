/* Exhaustive search with memory limits: see problem_brute.h. All placements, all sequences of partitions, all choices of streamed
 * weights. It counts memory and copies in its own way, from the sequence of steps. */
#include <string.h>

#include "problem_brute.h"

enum { MOST_NODES = 8, MOST_VALUES = 40, MOST_WEIGHTS = 16, MOST_SPACES = 5, MOST_BITS = 7 };

typedef struct sequence {
  const clv__problem *problem;
  uint32_t devices[MOST_NODES];
  uint32_t sets[MOST_NODES], on[MOST_NODES], count; /* the partitions so far: nodes as bits, and the device */
  uint32_t bits, bit_weight[MOST_BITS], bit_device[MOST_BITS];
  uint64_t least;
} sequence;

/* A place that a value or a streamed weight has in a memory space, from its first to its last step. */
typedef struct use {
  bool is_used;
  uint32_t first, last;
} use;

typedef struct simulation {
  use values[MOST_VALUES][MOST_SPACES], weights[MOST_WEIGHTS][MOST_SPACES];
  bool is_there[MOST_VALUES][MOST_SPACES];
  uint32_t step;
  uint64_t time_ns;
} simulation;

static uint64_t rounded(uint64_t bytes) {
  return bytes == 0 ? 64 : (bytes + 63) / 64 * 64;
}

static void touch(use *u, uint32_t step) {
  if (!u->is_used) u->first = step;
  u->is_used = true;
  u->last = step;
}

static void copy_value(simulation *s, const clv__problem *p, uint32_t v, uint32_t from, uint32_t to) {
  touch(&s->values[v][from], s->step);
  touch(&s->values[v][to], s->step++);
  s->is_there[v][to] = true;
  s->time_ns += to == 0 ? clv__out_ns(p, v, from) : clv__in_ns(p, v, to);
}

static void bring(simulation *s, const clv__problem *p, uint32_t v, uint32_t space) {
  uint32_t from = 0;
  if (s->is_there[v][space]) return;
  while (!s->is_there[v][from]) ++from;
  if (from != 0) copy_value(s, p, v, from, 0);
  if (space != 0) copy_value(s, p, v, 0, space);
}

static bool is_streamed(const sequence *q, uint32_t mask, uint32_t weight, uint32_t device) {
  for (uint32_t i = 0; i < q->bits; ++i) {
    if (q->bit_weight[i] == weight && q->bit_device[i] == device) return (mask >> i & 1u) != 0;
  }
  return false;
}

static bool leaves(const clv__problem *p, uint32_t v, uint32_t set) {
  bool out = p->is_output[v] != 0;
  for (uint32_t i = p->reader_offsets[v]; i < p->reader_offsets[v + 1]; ++i) out = out || (set >> p->readers[i] & 1u) == 0;
  return out;
}

/* The most bytes of values inside the partition, which need memory from their node to their last reader. */
static uint64_t inner_bytes(const clv__problem *p, uint32_t set) {
  uint64_t most = 0;
  for (uint32_t at = 0; at < p->node_count; ++at) {
    uint64_t alive = 0;
    if ((set >> at & 1u) == 0) continue;
    for (uint32_t v = 0; v < p->value_count; ++v) {
      uint32_t made = p->producers[v], last = made;
      if (made == CLV__NONE || (set >> made & 1u) == 0 || leaves(p, v, set)) continue;
      for (uint32_t i = p->reader_offsets[v]; i < p->reader_offsets[v + 1]; ++i)
        last = p->readers[i] > last ? p->readers[i] : last;
      if (made <= at && at <= last) alive += rounded(p->value_bytes[v]);
    }
    most = alive > most ? alive : most;
  }
  return most;
}

static void run_partition(simulation *s, const sequence *q, uint32_t index, uint32_t mask) {
  const clv__problem *p = q->problem;
  uint32_t set = q->sets[index], device = q->on[index], space = p->spaces[device], streamed = 0;
  for (uint32_t n = 0; n < p->node_count; ++n) {
    for (uint32_t k = p->weight_offsets[n]; (set >> n & 1u) != 0 && k < p->weight_offsets[n + 1]; ++k) {
      uint32_t w = p->weights[k];
      if (!is_streamed(q, mask, w, device) || (streamed >> w & 1u) != 0) continue;
      streamed |= 1u << w;
      touch(&s->weights[w][space], s->step++);
      s->time_ns += p->weight_in_ns[(size_t)w * p->space_count + space];
    }
  }
  for (uint32_t n = 0; n < p->node_count; ++n) {
    for (uint32_t r = p->read_offsets[n]; (set >> n & 1u) != 0 && r < p->read_offsets[n + 1]; ++r) {
      uint32_t v = p->reads[r], made = p->producers[v];
      if (made == CLV__NONE || (set >> made & 1u) == 0) bring(s, p, v, space);
    }
  }
  bool is_view = true;
  for (uint32_t n = 0; n < p->node_count; ++n) {
    if ((set >> n & 1u) == 0) continue;
    is_view = is_view && (p->flags[n] & CLV__NODE_VIEW) != 0;
    s->time_ns += clv__node_ns(p, n, device);
    for (uint32_t r = p->read_offsets[n]; r < p->read_offsets[n + 1]; ++r) {
      uint32_t v = p->reads[r], made = p->producers[v];
      bool is_inside = made != CLV__NONE && (set >> made & 1u) != 0;
      if (is_inside)
        s->time_ns -= clv__saving_ns(p, r, device);
      else
        touch(&s->values[v][space], s->step);
    }
    for (uint32_t k = p->write_offsets[n]; k < p->write_offsets[n + 1]; ++k) {
      if (leaves(p, p->writes[k], set)) touch(&s->values[p->writes[k]][space], s->step);
      s->is_there[p->writes[k]][space] = true;
    }
  }
  for (uint32_t w = 0; w < p->weight_count; ++w) {
    if ((streamed >> w & 1u) != 0) touch(&s->weights[w][space], s->step);
  }
  if (!is_view) s->time_ns += p->launch_ns[device];
  ++s->step;
}

/* Returns the bytes of weights that stay on the device. */
static uint64_t resident_bytes(const sequence *q, uint32_t mask, uint32_t device) {
  const clv__problem *p = q->problem;
  uint64_t bytes = 0;
  for (uint32_t w = 0; w < p->weight_count; ++w) {
    bool is_read = false;
    for (uint32_t n = 0; n < p->node_count; ++n) {
      for (uint32_t k = p->weight_offsets[n]; q->devices[n] == device && k < p->weight_offsets[n + 1]; ++k)
        is_read = is_read || p->weights[k] == w;
    }
    if (is_read && !is_streamed(q, mask, w, device)) bytes += rounded(p->weight_bytes[w]);
  }
  return bytes;
}

/* Returns the need of all devices with limits in the memory space. */
static uint64_t needed(const simulation *s, const sequence *q, uint32_t mask, uint32_t space) {
  const clv__problem *p = q->problem;
  uint64_t total = 0, most = 0;
  for (uint32_t step = 0; space != 0 && step < s->step; ++step) {
    uint64_t alive = 0;
    for (uint32_t v = 0; v < p->value_count; ++v) {
      const use *u = &s->values[v][space];
      if (u->is_used && u->first <= step && step <= u->last) alive += rounded(p->value_bytes[v]);
    }
    for (uint32_t w = 0; w < p->weight_count; ++w) {
      const use *u = &s->weights[w][space];
      if (u->is_used && u->first <= step && step <= u->last) alive += rounded(p->weight_bytes[w]);
    }
    most = alive > most ? alive : most;
  }
  for (uint32_t d = 0; d < p->device_count; ++d) {
    uint64_t inner = 0;
    if (p->spaces[d] != space || p->limits[d].memory_bytes == 0) continue;
    for (uint32_t i = 0; i < q->count; ++i) {
      uint64_t bytes = q->on[i] == d ? inner_bytes(p, q->sets[i]) : 0;
      inner = bytes > inner ? bytes : inner;
    }
    total += resident_bytes(q, mask, d) + (inner + 63) / 64 * 64;
  }
  return total + most;
}

static void try_mask(sequence *q, uint32_t mask) {
  const clv__problem *p = q->problem;
  simulation s = {0};
  for (uint32_t v = 0; v < p->value_count; ++v) s.is_there[v][0] = p->producers[v] == CLV__NONE;
  for (uint32_t i = 0; i < q->count; ++i) run_partition(&s, q, i, mask);
  for (uint32_t v = 0; v < p->value_count; ++v) {
    if (p->is_output[v]) bring(&s, p, v, 0);
  }
  if (s.time_ns >= q->least) return;
  for (uint32_t d = 0; d < p->device_count; ++d) {
    if (p->limits[d].memory_bytes > 0 && needed(&s, q, mask, p->spaces[d]) > p->limits[d].memory_bytes) return;
  }
  q->least = s.time_ns;
}

static bool can_follow(const clv__problem *p, uint32_t done, uint32_t set) {
  for (uint32_t n = 0; n < p->node_count; ++n) {
    for (uint32_t r = p->read_offsets[n]; (set >> n & 1u) != 0 && r < p->read_offsets[n + 1]; ++r) {
      uint32_t made = p->producers[p->reads[r]];
      if (made != CLV__NONE && ((done | set) >> made & 1u) == 0) return false;
    }
  }
  return true;
}

static void try_sequences(sequence *q, uint32_t done) {
  const clv__problem *p = q->problem;
  if (done == (1u << p->node_count) - 1) {
    for (uint32_t mask = 0; mask < 1u << q->bits; ++mask) try_mask(q, mask);
    return;
  }
  for (uint32_t d = 0; d < p->device_count; ++d) {
    uint32_t left = 0;
    for (uint32_t n = 0; n < p->node_count; ++n) left |= (q->devices[n] == d && (done >> n & 1u) == 0 ? 1u : 0u) << n;
    for (uint32_t set = left; set != 0; set = (set - 1) & left) {
      if (!can_follow(p, done, set)) continue;
      q->sets[q->count] = set;
      q->on[q->count++] = d;
      try_sequences(q, done | set);
      --q->count;
    }
  }
}

static void try_placements(sequence *q, uint32_t node) {
  const clv__problem *p = q->problem;
  if (node == p->node_count) {
    if (test_placement_ns(p, q->devices) < q->least) try_sequences(q, 0);
    return;
  }
  for (uint32_t d = 0; d < p->device_count; ++d) {
    if ((clv__node_devices(p, node) >> d & 1u) == 0) continue;
    q->devices[node] = d;
    try_placements(q, node + 1);
  }
}

bool test_brute_budgets(const clv__problem *problem, uint64_t *least_ns) {
  sequence q = {.problem = problem, .least = UINT64_MAX};
  if (problem->node_count > MOST_NODES || problem->value_count > MOST_VALUES || problem->weight_count > MOST_WEIGHTS)
    return false;
  for (uint32_t w = 0; w < problem->weight_count; ++w) {
    for (uint32_t d = 0; d < problem->device_count; ++d) {
      if (problem->spaces[d] == 0 || problem->limits[d].memory_bytes == 0 || !clv__can_stream(problem, w, d)) continue;
      if (q.bits == MOST_BITS) return false;
      q.bit_weight[q.bits] = w;
      q.bit_device[q.bits++] = d;
    }
  }
  try_placements(&q, 0);
  *least_ns = q.least;
  return true;
}
