/* Shrinks a network without changing its minimum cuts. Applies three rules until none applies to any vertex. A vertex with a
 * terminal that outweighs its edges is put on the side of that terminal. A vertex with one neighbour becomes part of that
 * neighbour's terminals. A vertex with two neighbours becomes an edge between them: the least cost over its two sides is a
 * submodular function of their sides, and every such function of two is an edge plus terminals. Chains, trees and
 * series-parallel graphs vanish entirely. */
#include "split/minimum_cut/flow_own.h"

#define SCAN_DEGREE 16u /* a vertex with more neighbours is visited at the start, then only once it has at most this many */
#define MERGE_DEGREE 8u /* number of arcs to search for an existing edge that a new one can be merged into */

void clv__flow_feed(clv__flow *flow, clv__flow_vertex *vertex, int64_t plus, int64_t minus) {
  if (vertex->excess >= 0) {
    plus = clv__flow_plus(plus, vertex->excess);
  } else {
    minus = clv__flow_plus(minus, -vertex->excess);
  }
  int64_t through = plus < minus ? plus : minus;
  flow->cost = clv__flow_plus(flow->cost, through);
  vertex->excess = plus - minus;
}

typedef struct reduction {
  clv__flow *flow;
  uint32_t queue; /* the first of the vertices to visit, a stack linked by `next` */
} reduction;

static void enqueue(reduction *r, uint32_t v) {
  clv__flow_vertex *vertex = &r->flow->vertices[v];
  if (vertex->state & VERTEX_QUEUED) return;
  bool is_decided = vertex->excess >= CLV__FLOW_LIMIT || vertex->excess <= -CLV__FLOW_LIMIT;
  if (vertex->label > SCAN_DEGREE && !is_decided) return;
  vertex->state |= VERTEX_QUEUED;
  vertex->next = r->queue;
  r->queue = v;
}

static void decide(reduction *r, uint32_t v, uint8_t side) {
  clv__flow *flow = r->flow;
  flow->vertices[v].state = side;
  for (uint32_t a = flow->vertices[v].first; a != NO_ARC; a = flow->arcs[a].next) {
    uint32_t u = flow->arcs[a].head;
    clv__flow_vertex *neighbour = &flow->vertices[u];
    if (!clv__flow_is_live(neighbour)) continue;
    if (side == VERTEX_KEEPS) {
      clv__flow_feed(flow, neighbour, flow->arcs[a].capacity, 0);
    } else {
      clv__flow_feed(flow, neighbour, 0, flow->arcs[a ^ 1].capacity);
    }
    --neighbour->label;
    enqueue(r, u);
  }
}

/* Returns the cost of `v` on its better side, given the sides of `u` and `w`. If both sides cost the same, `v` keeps its
 * excess. */
static int64_t least_cost(const clv__flow *flow, uint32_t v, uint32_t a, bool u_drains, uint32_t b, bool w_drains, bool *drains) {
  const clv__flow_arc *arcs = flow->arcs;
  int64_t excess = flow->vertices[v].excess;
  int64_t keep = excess < 0 ? -excess : 0, drain = excess > 0 ? excess : 0;
  if (u_drains) {
    keep += arcs[a].capacity;
  } else {
    drain += arcs[a ^ 1].capacity;
  }
  if (b != NO_ARC) {
    if (w_drains) {
      keep += arcs[b].capacity;
    } else {
      drain += arcs[b ^ 1].capacity;
    }
  }
  *drains = drain < keep;
  return *drains ? drain : keep;
}

/* Adds a cost to the terminals of a vertex. `difference`: its cost if it keeps its excess, minus its cost if it drains. */
static int64_t feed_difference(clv__flow *flow, uint32_t v, int64_t difference) {
  clv__flow_feed(flow, &flow->vertices[v], difference < 0 ? -difference : 0, difference > 0 ? difference : 0);
  return difference > 0 ? difference : 0;
}

static void mark_eliminated(clv__flow *flow, uint32_t v, uint32_t u, uint32_t w, uint8_t choices) {
  clv__flow_vertex *vertex = &flow->vertices[v];
  vertex->state = (uint8_t)(VERTEX_ELIMINATED | choices << 4);
  vertex->first = u;
  vertex->current = w;
  vertex->next = flow->eliminated;
  flow->eliminated = v;
}

static void eliminate_leaf(reduction *r, uint32_t v, uint32_t a) {
  clv__flow *flow = r->flow;
  uint32_t u = flow->arcs[a].head;
  bool keep, drain;
  int64_t kept = least_cost(flow, v, a, false, NO_ARC, false, &keep);
  int64_t drained = least_cost(flow, v, a, true, NO_ARC, false, &drain);
  mark_eliminated(flow, v, u, NO_VERTEX, (uint8_t)((keep ? 1 : 0) | (drain ? 4 : 0)));
  int64_t of_u = feed_difference(flow, u, kept - drained);
  flow->cost = clv__flow_plus(flow->cost, kept - of_u);
  --flow->vertices[u].label;
  enqueue(r, u);
}

static uint32_t find_arc(const clv__flow *flow, uint32_t from, uint32_t to) {
  uint32_t left = MERGE_DEGREE;
  for (uint32_t a = flow->vertices[from].first; a != NO_ARC && left > 0; a = flow->arcs[a].next, --left) {
    if (flow->arcs[a].head == to) return a;
  }
  return NO_ARC;
}

/* Joins u and w by an edge that replaces arc `a` (v -> u) and its reverse; v is removed. */
static void join(reduction *r, uint32_t a, uint32_t u, uint32_t w, int64_t forward, int64_t backward) {
  clv__flow *flow = r->flow;
  clv__flow_arc *arcs = flow->arcs;
  bool is_lost = forward == 0 && backward == 0;
  if (!is_lost) {
    uint32_t old = find_arc(flow, u, w);
    if (old == NO_ARC && (old = find_arc(flow, w, u)) != NO_ARC) old ^= 1;
    if (old == NO_ARC) {
      arcs[a ^ 1].head = w;
      arcs[a ^ 1].capacity = forward;
      arcs[a].capacity = backward;
      arcs[a].next = flow->vertices[w].first;
      flow->vertices[w].first = a;
    } else {
      arcs[old].capacity = clv__flow_plus(arcs[old].capacity, forward);
      arcs[old ^ 1].capacity = clv__flow_plus(arcs[old ^ 1].capacity, backward);
      is_lost = true;
    }
  }
  if (is_lost) {
    --flow->vertices[u].label;
    --flow->vertices[w].label;
  }
  enqueue(r, u);
  enqueue(r, w);
}

/* Eliminates `v`, which has two neighbours u and w. Its least cost is a function f of their sides, which equals an edge between
 * them plus terminals. Only the sum of the edge's two capacities is determined. It is divided so that no negative constant
 * remains. */
static void eliminate_link(reduction *r, uint32_t v, uint32_t a, uint32_t b) {
  clv__flow *flow = r->flow;
  uint32_t u = flow->arcs[a].head, w = flow->arcs[b].head;
  int64_t f[2][2];
  uint8_t choices = 0;
  for (int i = 0; i < 4; ++i) {
    bool drains;
    f[i >> 1][i & 1] = least_cost(flow, v, a, (i & 2) != 0, b, (i & 1) != 0, &drains);
    if (drains) choices |= (uint8_t)(1 << i);
  }
  mark_eliminated(flow, v, u, w, choices);
  int64_t forward = f[0][1] + f[1][0] - f[0][0] - f[1][1], backward = 0;
  int64_t more_u = f[0][0] - f[1][0], more_w = f[1][0] - f[1][1];
  if (more_u < 0 && more_w > 0) {
    backward = -more_u < more_w ? -more_u : more_w;
    if (backward > forward) backward = forward;
    forward -= backward;
    more_u += backward;
    more_w -= backward;
  }
  int64_t constant = f[0][0] - feed_difference(flow, u, more_u);
  constant -= feed_difference(flow, w, more_w);
  flow->cost = clv__flow_plus(flow->cost, constant);
  join(r, a, u, w, clv__flow_plus(forward, 0), clv__flow_plus(backward, 0));
}

static void look_at(reduction *r, uint32_t v) {
  clv__flow *flow = r->flow;
  clv__flow_arc *arcs = flow->arcs;
  clv__flow_vertex *vertex = &flow->vertices[v];
  int64_t out = 0, in = 0;
  uint32_t live[2] = {NO_ARC, NO_ARC}, count = 0;
  for (uint32_t *link = &vertex->first; *link != NO_ARC;) {
    uint32_t a = *link;
    if (!clv__flow_is_live(&flow->vertices[arcs[a].head])) {
      *link = arcs[a].next;
      continue;
    }
    if (count < 2) live[count] = a;
    ++count;
    out = clv__flow_plus(out, arcs[a].capacity);
    in = clv__flow_plus(in, arcs[a ^ 1].capacity);
    link = &arcs[a].next;
  }
  int64_t excess = vertex->excess;
  if (excess >= CLV__FLOW_LIMIT || excess >= out) {
    decide(r, v, VERTEX_KEEPS);
  } else if (excess <= -CLV__FLOW_LIMIT || -excess > in) {
    decide(r, v, VERTEX_DRAINS);
  } else if (count == 1) {
    eliminate_leaf(r, v, live[0]);
  } else if (count == 2 && arcs[live[0]].head == arcs[live[1]].head) {
    arcs[live[0]].capacity = clv__flow_plus(arcs[live[0]].capacity, arcs[live[1]].capacity);
    arcs[live[0] ^ 1].capacity = clv__flow_plus(arcs[live[0] ^ 1].capacity, arcs[live[1] ^ 1].capacity);
    --flow->vertices[arcs[live[0]].head].label;
    eliminate_leaf(r, v, live[0]);
  } else if (count == 2) {
    eliminate_link(r, v, live[0], live[1]);
  }
}

void clv__flow_reduce(clv__flow *flow) {
  reduction r = {flow, NO_VERTEX};
  for (uint32_t v = flow->vertex_count; v-- > 0;) {
    flow->vertices[v].state |= VERTEX_QUEUED;
    flow->vertices[v].next = r.queue;
    r.queue = v;
  }
  while (r.queue != NO_VERTEX) {
    uint32_t v = r.queue;
    r.queue = flow->vertices[v].next;
    if (flow->vertices[v].state != VERTEX_QUEUED) continue;
    flow->vertices[v].state = VERTEX_LIVE;
    look_at(&r, v);
  }
}

void clv__flow_expand(clv__flow *flow) {
  for (uint32_t v = flow->eliminated; v != NO_VERTEX; v = flow->vertices[v].next) {
    clv__flow_vertex *vertex = &flow->vertices[v];
    uint32_t at = flow->vertices[vertex->first].state == VERTEX_DRAINS ? 2 : 0;
    if (vertex->current != NO_VERTEX && flow->vertices[vertex->current].state == VERTEX_DRAINS) at += 1;
    vertex->state = vertex->state >> (4 + at) & 1 ? VERTEX_DRAINS : VERTEX_KEEPS;
  }
}
