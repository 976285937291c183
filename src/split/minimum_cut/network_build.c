/* Builds the network of a two-sided placement. Every cost is a function of the side of one node, or of the sides of the nodes
 * of one value:
 *
 *   a node      its time on either side: terminals
 *   a fusion    -s if both nodes are on the side: the producer pays s to leave that side, and cutting the edge costs s
 *   a copy      paid if the producer is on one side (or elsewhere) and any reader on the other: an auxiliary vertex between the
 *               producer and the readers, all edges of the same capacity. Cutting the edge before this vertex never costs
 *               more than cutting the edges behind it, and serves all readers
 *   an output   the copy from either side's memory to the host's: terminals
 *   a launch    charged along the path: an edge from each node of the path to the next
 *
 * Nodes that are not free are constants: costs that they share with free nodes become terminals of the free nodes. */
#include "split/minimum_cut/network_own.h"

/* The inputs that determine the copies of one value. */
typedef struct copies {
  uint32_t producer;
  network_place from; /* the side in whose memory the value is computed; a third device may share a side's memory */
  bool is_read[2];    /* a node that is not free reads it on that side */
  uint32_t free_count, free_reader;
  uint32_t third_spaces; /* bits of the memory spaces of readers that are in neither side's memory */
} copies;

static network_place opposite(network_place side) {
  return side == PLACE_ONE ? PLACE_OTHER : PLACE_ONE;
}

static void add_constant(clv__network *n, uint64_t cost, bool is_saved) {
  bool overflow = cost > INT64_MAX;
  if (!overflow) {
    overflow = is_saved ? __builtin_sub_overflow(n->constant, (int64_t)cost, &n->constant)
                        : __builtin_add_overflow(n->constant, (int64_t)cost, &n->constant);
  }
  n->overflow = n->overflow || overflow;
}

static int64_t to_capacity(uint64_t cost) {
  return cost < (uint64_t)CLV__FLOW_LIMIT ? (int64_t)cost : CLV__FLOW_INFINITE;
}

/* Charges `cost` if the vertex is on `side`. */
static void charge_vertex(clv__network *n, uint32_t vertex, network_place side, uint64_t cost) {
  if (n->flow == NULL || cost == 0) return;
  int64_t capacity = to_capacity(cost);
  clv__flow_terminal(n->flow, vertex, side == PLACE_ONE ? capacity : 0, side == PLACE_ONE ? 0 : capacity);
}

/* Charges `cost` if `node` is on `side`. The node may be free, fixed to a side, or on neither side. */
static void charge(clv__network *n, uint32_t node, network_place side, uint64_t cost) {
  network_place place = clv__network_place(n, node);
  if (place == PLACE_FREE) {
    charge_vertex(n, n->vertices[node], side, cost);
  } else if (place == side && n->flow == NULL) {
    add_constant(n, cost, false);
  }
}

static void add_edge(clv__network *n, uint32_t a, uint32_t b, int64_t to_one, int64_t to_other) {
  if (to_one == 0 && to_other == 0) return;
  if (n->flow == NULL) {
    ++n->edge_count;
  } else {
    clv__flow_edge(n->flow, a, b, to_one, to_other);
  }
}

/* ---- Prices of a side: the best of its devices ---- */

static inline uint64_t weighted(const uint32_t *weights, uint32_t index, uint64_t time_ns) {
  uint64_t product;
  if (weights == NULL) return time_ns;
  return __builtin_mul_overflow(time_ns, weights[index], &product) ? CLV__NO_TIME : product;
}

static uint64_t side_node_ns(const clv__network *n, uint32_t node, network_place place) {
  const network_side *side = &n->sides[place];
  uint64_t least = side->is_nothing ? 0 : CLV__NO_TIME;
  for (uint32_t left = side->is_nothing ? 0 : side->devices & clv__node_devices(n->problem, node); left != 0; left &= left - 1) {
    uint32_t device = (uint32_t)__builtin_ctz(left);
    uint64_t time_ns = weighted(n->device_weights, device, clv__node_ns(n->problem, node, device));
    if (time_ns < least) least = time_ns;
  }
  return least;
}

static uint64_t side_saving_ns(const clv__network *n, uint32_t read, network_place place) {
  const network_side *side = &n->sides[place];
  uint64_t most = 0;
  if (n->problem->saving_ns == NULL || side->is_nothing) return 0;
  for (uint32_t left = side->devices; left != 0; left &= left - 1) {
    uint32_t device = (uint32_t)__builtin_ctz(left);
    uint64_t time_ns = weighted(n->device_weights, device, clv__saving_ns(n->problem, read, device));
    if (time_ns > most) most = time_ns;
  }
  return most;
}

/* Returns the time of the cheapest copy between host memory and any of the memory spaces `spaces` (bits), in or out. */
static uint64_t least_copy_ns(const clv__network *n, uint32_t value, uint32_t spaces, bool is_in) {
  uint64_t least = UINT64_MAX;
  if ((spaces & 1u) != 0) return 0;
  for (; spaces != 0; spaces &= spaces - 1) {
    uint32_t space = (uint32_t)__builtin_ctz(spaces);
    uint64_t time_ns = is_in ? clv__in_ns(n->problem, value, space) : clv__out_ns(n->problem, value, space);
    time_ns = weighted(n->space_weights, space, time_ns);
    if (time_ns < least) least = time_ns;
  }
  return least;
}

static uint64_t side_in_ns(const clv__network *n, uint32_t value, network_place place) {
  return n->sides[place].is_nothing ? 0 : least_copy_ns(n, value, n->sides[place].spaces, true);
}
static uint64_t side_out_ns(const clv__network *n, uint32_t value, network_place place) {
  return n->sides[place].is_nothing ? 0 : least_copy_ns(n, value, n->sides[place].spaces, false);
}

static uint64_t side_launch_ns(const clv__network *n, network_place place) {
  const network_side *side = &n->sides[place];
  uint64_t least = side->is_nothing ? 0 : UINT64_MAX;
  for (uint32_t left = side->is_nothing ? 0 : side->devices; left != 0; left &= left - 1) {
    uint32_t device = (uint32_t)__builtin_ctz(left);
    uint64_t time_ns = weighted(n->device_weights, device, n->problem->launch_ns[device]);
    if (time_ns < least) least = time_ns;
  }
  return least;
}

/* ---- Copies ---- */

static network_place place_of_space(const clv__network *n, uint32_t space) {
  if ((n->sides[PLACE_ONE].spaces >> space & 1u) != 0) return PLACE_ONE;
  return (n->sides[PLACE_OTHER].spaces >> space & 1u) != 0 ? PLACE_OTHER : PLACE_THIRD;
}

static network_place place_in_memory(const clv__network *n, uint32_t node) {
  network_place place = clv__network_place(n, node);
  return place == PLACE_THIRD ? place_of_space(n, n->problem->spaces[n->fixed[node]]) : place;
}

static void look_at_readers(const clv__network *n, uint32_t value, copies *c) {
  const clv__problem *problem = n->problem;
  for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
    uint32_t reader = problem->readers[i];
    network_place place = place_in_memory(n, reader);
    if (place == PLACE_FREE) {
      ++c->free_count;
      c->free_reader = reader;
    } else if (place == PLACE_THIRD) {
      c->third_spaces |= 1u << problem->spaces[n->fixed[reader]];
    } else {
      c->is_read[place] = true;
    }
  }
}

/* Charges `cost` if any of several free readers is on `side` and the producer is not, through an auxiliary vertex. */
static void charge_copy_once(clv__network *n, uint32_t value, const copies *c, network_place side, uint64_t cost) {
  const clv__problem *problem = n->problem;
  int64_t capacity = to_capacity(cost);
  uint32_t between = n->vertex_count++;
  bool is_one = side == PLACE_ONE;
  if (c->from == PLACE_FREE) {
    add_edge(n, n->vertices[c->producer], between, is_one ? capacity : 0, is_one ? 0 : capacity);
  } else {
    charge_vertex(n, between, side, cost);
  }
  for (uint32_t i = problem->reader_offsets[value]; i < problem->reader_offsets[value + 1]; ++i) {
    uint32_t reader = problem->readers[i];
    if (clv__network_place(n, reader) != PLACE_FREE) continue;
    add_edge(n, between, n->vertices[reader], is_one ? capacity : 0, is_one ? 0 : capacity);
  }
}

/* Charges `cost` if any reader is on `side` and the producer is not, for any number of free readers and any place of the
 * producer. If `pair` is not NULL, adds to it the cost of the edge between the producer and the only reader. */
static void charge_copy(clv__network *n, uint32_t value, const copies *c, network_place side, uint64_t cost, int64_t pair[2]) {
  if (cost == 0 || c->from == side) return;
  if (c->is_read[side]) {
    if (c->from == PLACE_FREE) {
      charge(n, c->producer, opposite(side), cost);
    } else if (n->flow == NULL) {
      add_constant(n, cost, false);
    }
  } else if (c->free_count > 1) {
    charge_copy_once(n, value, c, side, cost);
  } else if (c->free_count == 1 && c->from != PLACE_FREE) {
    charge(n, c->free_reader, side, cost);
  } else if (c->free_count == 1) {
    int64_t own[2] = {0}, *edge = pair == NULL ? own : pair;
    edge[side] += to_capacity(cost);
    if (pair == NULL) add_edge(n, n->vertices[c->producer], n->vertices[c->free_reader], own[PLACE_ONE], own[PLACE_OTHER]);
  }
}

/* Charges the copies from host memory to third devices that read the value. They are constant, because they do not depend on
 * where the free nodes go. */
static void add_third_copies(clv__network *n, uint32_t value, uint32_t spaces) {
  if (n->flow != NULL) return;
  for (spaces &= ~1u; spaces != 0; spaces &= spaces - 1) {
    add_constant(n, clv__in_ns(n->problem, value, (uint32_t)__builtin_ctz(spaces)), false);
  }
}

/* Charges the copies of a value whose producer is in neither side's memory: from its memory space `home` to the host (0), and
 * from there to each side that reads it. One copy suffices if both sides share a memory. */
static void add_copies_from_third(clv__network *n, uint32_t value, const copies *c, uint32_t home) {
  uint32_t elsewhere = c->third_spaces & ~(1u << home), one = n->sides[PLACE_ONE].spaces, other = n->sides[PLACE_OTHER].spaces;
  bool on_sides = c->free_count > 0 || c->is_read[PLACE_ONE] || c->is_read[PLACE_OTHER];
  add_third_copies(n, value, elsewhere);
  if (n->flow == NULL && home != 0 && (on_sides || elsewhere != 0 || n->problem->is_output[value])) {
    add_constant(n, clv__out_ns(n->problem, value, home), false);
  }
  if ((one & other) == 0) {
    charge_copy(n, value, c, PLACE_ONE, side_in_ns(n, value, PLACE_ONE), NULL);
    charge_copy(n, value, c, PLACE_OTHER, side_in_ns(n, value, PLACE_OTHER), NULL);
  } else if (one == other && (one & (one - 1)) == 0) { /* the same memory: one copy serves readers on both sides */
    if (on_sides && n->flow == NULL) add_constant(n, side_in_ns(n, value, PLACE_ONE), false);
  } else { /* the sides may share memory: charge only copies to `one`, to stay a lower bound */
    charge_copy(n, value, c, PLACE_ONE, side_in_ns(n, value, PLACE_ONE), NULL);
  }
}

static void add_copies(clv__network *n, uint32_t value, int64_t pair[2]) {
  const clv__problem *problem = n->problem;
  copies c = {.producer = problem->producers[value], .from = PLACE_THIRD};
  look_at_readers(n, value, &c);
  if (c.producer != CLV__NONE) c.from = place_in_memory(n, c.producer);
  if (c.from == PLACE_THIRD) {
    uint32_t home = c.producer == CLV__NONE ? 0 : problem->spaces[n->fixed[c.producer]];
    add_copies_from_third(n, value, &c, home);
    return;
  }
  bool in_host =
      problem->is_output[value] || c.third_spaces != 0; /* host memory needs the value wherever the free nodes are placed */
  uint64_t out[2] = {side_out_ns(n, value, PLACE_ONE), side_out_ns(n, value, PLACE_OTHER)};
  add_third_copies(n, value, c.third_spaces);
  if (in_host && c.from == PLACE_FREE) {
    charge(n, c.producer, PLACE_ONE, out[PLACE_ONE]);
    charge(n, c.producer, PLACE_OTHER, out[PLACE_OTHER]);
  } else if (in_host && n->flow == NULL) {
    add_constant(n, out[c.from], false);
  }
  /* The sides share a memory space, or might: charge no copies between them. */
  if ((n->sides[PLACE_ONE].spaces & n->sides[PLACE_OTHER].spaces) != 0) return;
  charge_copy(n, value, &c, PLACE_ONE, (in_host ? 0 : out[PLACE_OTHER]) + side_in_ns(n, value, PLACE_ONE), pair);
  charge_copy(n, value, &c, PLACE_OTHER, (in_host ? 0 : out[PLACE_ONE]) + side_in_ns(n, value, PLACE_OTHER), pair);
}

/* ---- Nodes and fusions ---- */

static void add_node(clv__network *n, uint32_t node) {
  network_place place = clv__network_place(n, node);
  if (place == PLACE_THIRD) {
    if (n->flow == NULL) add_constant(n, clv__node_ns(n->problem, node, n->fixed[node]), false);
    return;
  }
  for (network_place side = PLACE_ONE; side <= PLACE_OTHER; ++side) {
    if (place != PLACE_FREE && place != side) continue;
    charge(n, node, side, side_node_ns(n, node, side));
    if (n->sides[side].penalty != NULL) charge(n, node, side, n->sides[side].penalty[node]);
  }
}

/* Subtracts the saving of a fusion if its two nodes are on one side. Adds to `pair` the cost of the edge between two free
 * nodes. */
static void add_saving(clv__network *n, uint32_t read, uint32_t producer, uint32_t reader, int64_t pair[2]) {
  network_place from = clv__network_place(n, producer), to = clv__network_place(n, reader);
  if (n->problem->saving_ns == NULL) return;
  if (from == PLACE_THIRD || to == PLACE_THIRD) {
    if (from != to || n->fixed[producer] != n->fixed[reader] || n->flow != NULL) return;
    add_constant(n, clv__saving_ns(n->problem, read, n->fixed[reader]), true);
    return;
  }
  for (network_place side = PLACE_ONE; side <= PLACE_OTHER; ++side) {
    if ((from != PLACE_FREE && from != side) || (to != PLACE_FREE && to != side)) continue;
    uint64_t saving = side_saving_ns(n, read, side);
    if (saving == 0) continue;
    if (n->flow == NULL) add_constant(n, saving, true);
    if (from == PLACE_FREE && to == PLACE_FREE) {
      charge(n, producer, opposite(side), saving);
      pair[opposite(side)] +=
          to_capacity(saving); /* charged if the reader is on the opposite side and the producer on this one */
    } else if (from == PLACE_FREE) {
      charge(n, producer, opposite(side), saving);
    } else if (to == PLACE_FREE) {
      charge(n, reader, opposite(side), saving);
    }
  }
}

static void add_reads(clv__network *n, uint32_t node) {
  const clv__problem *problem = n->problem;
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r) {
    uint32_t value = problem->reads[r], producer = problem->producers[value];
    int64_t pair[2] = {0};
    if (producer != CLV__NONE) add_saving(n, r, producer, node, pair);
    if (problem->reader_offsets[value + 1] - problem->reader_offsets[value] == 1) add_copies(n, value, pair);
    if (pair[PLACE_ONE] != 0 || pair[PLACE_OTHER] != 0) {
      add_edge(n, n->vertices[producer], n->vertices[node], pair[PLACE_ONE], pair[PLACE_OTHER]);
    }
  }
}

/* ---- Launches along a path ---- */

static void add_path(clv__network *n) {
  for (uint32_t i = 0; i < n->path.count; ++i) {
    uint32_t node = n->path.nodes[i], before = i == 0 ? CLV__NONE : n->path.nodes[i - 1];
    network_place to = clv__network_place(n, node), from = before == CLV__NONE ? to : clv__network_place(n, before);
    int64_t pair[2] = {0};
    if (to == PLACE_THIRD || from == PLACE_THIRD) continue;
    for (network_place side = PLACE_ONE; side <= PLACE_OTHER; ++side) {
      uint64_t launch = side_launch_ns(n, side);
      if (before == CLV__NONE || (from != PLACE_FREE && from != side)) {
        charge(n, node, side, launch);
      } else if (from == PLACE_FREE && to == PLACE_FREE) {
        pair[side] = to_capacity(launch);
      } else if (from == PLACE_FREE && to == side) {
        charge(n, before, opposite(side), launch);
      }
    }
    if (from == PLACE_FREE && to == PLACE_FREE && before != CLV__NONE) {
      add_edge(n, n->vertices[before], n->vertices[node], pair[PLACE_ONE], pair[PLACE_OTHER]);
    }
  }
}

void clv__network_build(clv__network *n) {
  const clv__problem *problem = n->problem;
  n->vertex_count = n->free_count;
  for (uint32_t node = 0; node < problem->node_count; ++node) {
    add_node(n, node);
    add_reads(n, node);
  }
  for (uint32_t value = 0; value < problem->value_count; ++value) {
    if (problem->reader_offsets[value + 1] - problem->reader_offsets[value] != 1) add_copies(n, value, NULL);
  }
  add_path(n);
}
