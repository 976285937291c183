/* Minimum cuts. flow_reduce.c first shrinks the network. The rest is solved by the push-relabel method of A. V. Goldberg and R.
 * E. Tarjan, "A new approach to the maximum-flow problem" (J. ACM 35, 1988): highest label first, with gap relabelling and
 * periodic exact labels, which B. V. Cherkassky and Goldberg found best ("On implementing the push-relabel method for the maximum
 * flow problem", Algorithmica 19, 1997). Only its first phase is needed, because the result is a cut, not a flow. Unlike
 * augmenting paths, the method moves much flow over a long distance at once. If the work limit stops it, the flow that has
 * arrived by then is a feasible value, so it is below every cut. */
#include "split/minimum_cut/flow_own.h"

#include <assert.h>

#define RELABEL_WORK 12u /* cost of a relabelling, in arcs visited */
#define SEARCH_WORK 4u   /* recompute exact labels after this many times the work of computing them */
/* The work limit of a solution, as a multiple of the work of exact labels, and its minimum for small networks. Long ladder-shaped
 * networks take time that grows with the square of their length. */
#define MOST_SEARCHES 64u
#define LEAST_LIMIT 4000000u

clv_status clv__flow_create(const clv_allocator *allocator, uint32_t vertex_count, uint32_t edge_count, clv__flow **flow,
                            clv_error *error) {
  if (edge_count >= NO_ARC / 2 || vertex_count >= NO_VERTEX) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "a network of %u vertices and %u edges is too large; the maximum is %u edges", vertex_count, edge_count,
                          NO_ARC / 2 - 1);
  }
  clv__flow *made = clv__allocate_zero(allocator, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  made->allocator = allocator;
  made->vertex_count = vertex_count;
  made->arc_room = 2 * edge_count;
  made->eliminated = NO_VERTEX;
  size_t vertex_bytes, arc_bytes;
  if (!clv__multiply(vertex_count, sizeof *made->vertices, &vertex_bytes)) vertex_bytes = SIZE_MAX;
  if (!clv__multiply(made->arc_room, sizeof *made->arcs, &arc_bytes)) arc_bytes = SIZE_MAX;
  made->vertices = clv__allocate_zero(allocator, vertex_bytes);
  made->arcs = clv__allocate(allocator, arc_bytes);
  if (made->vertices == NULL || made->arcs == NULL) {
    clv__flow_destroy(made);
    return clv__error_memory(error, vertex_bytes + arc_bytes);
  }
  for (uint32_t v = 0; v < vertex_count; ++v) made->vertices[v].first = NO_ARC;
  *flow = made;
  return CLV_OK;
}

void clv__flow_destroy(clv__flow *flow) {
  if (flow == NULL) return;
  clv__release(flow->allocator, flow->arcs);
  clv__release(flow->allocator, flow->vertices);
  clv__release(flow->allocator, flow);
}

/* Replaces an infinite capacity by ENDLESS, and adds a finite one to the sum of finite capacities. */
static int64_t limit_capacity(clv__flow *flow, int64_t capacity) {
  if (capacity >= CLV__FLOW_LIMIT) return ENDLESS;
  if (capacity < 0) {
    flow->refused = true;
    return 0;
  }
  flow->finite = clv__flow_plus(flow->finite, capacity);
  return capacity;
}

void clv__flow_terminal(clv__flow *flow, uint32_t vertex, int64_t from_source, int64_t to_sink) {
  assert(vertex < flow->vertex_count);
  from_source = limit_capacity(flow, from_source);
  to_sink = limit_capacity(flow, to_sink);
  clv__flow_feed(flow, &flow->vertices[vertex], to_sink, from_source);
}

void clv__flow_edge(clv__flow *flow, uint32_t a, uint32_t b, int64_t forward, int64_t backward) {
  if (a == b) return;
  forward = limit_capacity(flow, forward);
  backward = limit_capacity(flow, backward);
  if (forward == 0 && backward == 0) return;
  assert(a < flow->vertex_count && b < flow->vertex_count && flow->arc_count < flow->arc_room);
  uint32_t arc = flow->arc_count;
  flow->arc_count += 2;
  flow->arcs[arc] = (clv__flow_arc){backward, b, flow->vertices[a].first};
  flow->arcs[arc ^ 1] = (clv__flow_arc){forward, a, flow->vertices[b].first};
  flow->vertices[a].first = arc;
  flow->vertices[b].first = arc ^ 1;
  ++flow->vertices[a].label;
  ++flow->vertices[b].label;
}

/* ---- Push and relabel ---- */

/* Vertices by label. Those with excess that may still reach the source wait in `active`, a stack through `next`. The others are
 * in `idle`, a list through `next` and `prior`. Vertices with label `end` can no longer reach the source and are in no list. */
typedef struct levels {
  clv__flow *flow;
  uint32_t *active, *idle; /* by label: the first vertex of the list */
  uint32_t end, highest_active, highest;
  uint64_t work;
} levels;

static void list_idle(levels *l, uint32_t v) {
  clv__flow_vertex *vertices = l->flow->vertices;
  uint32_t label = vertices[v].label, first = l->idle[label];
  vertices[v].next = first;
  vertices[v].prior = NO_VERTEX;
  if (first != NO_VERTEX) vertices[first].prior = v;
  l->idle[label] = v;
  if (label > l->highest) l->highest = label;
}

static void unlist_idle(levels *l, uint32_t v) {
  clv__flow_vertex *vertices = l->flow->vertices;
  if (vertices[v].next != NO_VERTEX) vertices[vertices[v].next].prior = vertices[v].prior;
  if (vertices[v].prior != NO_VERTEX) {
    vertices[vertices[v].prior].next = vertices[v].next;
  } else {
    l->idle[vertices[v].label] = vertices[v].next;
  }
}

static void list_active(levels *l, uint32_t v) {
  clv__flow_vertex *vertices = l->flow->vertices;
  uint32_t label = vertices[v].label;
  vertices[v].next = l->active[label];
  l->active[label] = v;
  if (label > l->highest_active) l->highest_active = label;
  if (label > l->highest) l->highest = label;
}

static void list_by_excess(levels *l, uint32_t v) {
  if (l->flow->vertices[v].excess > 0) {
    list_active(l, v);
  } else {
    list_idle(l, v);
  }
}

/* One step of label_exactly(): labels the unlabelled vertices that have a residual arc to `v`. */
static void search_from(levels *l, uint32_t v) {
  clv__flow *flow = l->flow;
  clv__flow_arc *arcs = flow->arcs;
  uint32_t label = flow->vertices[v].label + 1;
  for (uint32_t a = flow->vertices[v].first; a != NO_ARC; a = arcs[a].next) {
    if (arcs[a ^ 1].capacity == 0) continue;
    clv__flow_vertex *other = &flow->vertices[arcs[a].head];
    if (other->label != l->end) continue;
    other->label = label;
    other->current = other->first;
    list_by_excess(l, arcs[a].head);
  }
}

/* Computes exact labels, the distances to the vertices that drain into the source, by breadth-first search. Puts each layer of
 * the search into the lists of its label. */
static void label_exactly(levels *l) {
  clv__flow *flow = l->flow;
  for (uint32_t i = 0; i <= l->highest; ++i) l->active[i] = l->idle[i] = NO_VERTEX;
  l->highest = l->highest_active = 0;
  l->work = 0;
  for (uint32_t v = 0; v < flow->vertex_count; ++v) {
    clv__flow_vertex *vertex = &flow->vertices[v];
    if (vertex->state != VERTEX_LIVE) continue;
    vertex->label = l->end;
    if (vertex->excess >= 0) continue;
    vertex->label = 1;
    vertex->current = vertex->first;
    list_idle(l, v);
  }
  for (uint32_t label = 1; label <= l->highest && label + 1 < l->end; ++label) {
    for (uint32_t v = l->active[label]; v != NO_VERTEX; v = flow->vertices[v].next) search_from(l, v);
    for (uint32_t v = l->idle[label]; v != NO_VERTEX; v = flow->vertices[v].next) search_from(l, v);
  }
}

/* Gives the label `end` to all vertices above `gap`: no vertex has label `gap`, so they cannot reach the source. */
static void close_gap(levels *l, uint32_t gap) {
  clv__flow_vertex *vertices = l->flow->vertices;
  for (uint32_t label = gap + 1; label <= l->highest; ++label) {
    for (uint32_t v = l->active[label]; v != NO_VERTEX; v = vertices[v].next) vertices[v].label = l->end;
    for (uint32_t v = l->idle[label]; v != NO_VERTEX; v = vertices[v].next) vertices[v].label = l->end;
    l->active[label] = l->idle[label] = NO_VERTEX;
  }
  l->highest = gap - 1;
  if (l->highest_active > l->highest) l->highest_active = l->highest;
}

static void receive(levels *l, uint32_t u, int64_t amount) {
  clv__flow *flow = l->flow;
  clv__flow_vertex *vertex = &flow->vertices[u];
  int64_t before = vertex->excess;
  vertex->excess = before + amount;
  if (before < 0) flow->cost = clv__flow_plus(flow->cost, -before < amount ? -before : amount);
  if (before <= 0 && vertex->excess > 0) {
    unlist_idle(l, u);
    list_active(l, u);
  }
}

/* Gives `v` the least label at which it has an arc to push along, and makes that its current arc. */
static void relabel(levels *l, uint32_t v) {
  clv__flow *flow = l->flow;
  clv__flow_vertex *vertex = &flow->vertices[v];
  uint32_t least = l->end;
  l->work += RELABEL_WORK;
  vertex->current = vertex->first;
  for (uint32_t a = vertex->first; a != NO_ARC; a = flow->arcs[a].next) {
    ++l->work;
    if (flow->arcs[a].capacity == 0) continue;
    uint32_t label = flow->vertices[flow->arcs[a].head].label + 1;
    if (label < least) {
      least = label;
      vertex->current = a;
    }
  }
  vertex->label = least;
}

/* Pushes the excess of `v`, which is in no list, to lower neighbours, and raises `v` if there is none. */
static void discharge(levels *l, uint32_t v) {
  clv__flow *flow = l->flow;
  clv__flow_arc *arcs = flow->arcs;
  clv__flow_vertex *vertex = &flow->vertices[v];
  while (vertex->label < l->end) {
    for (uint32_t a = vertex->current; a != NO_ARC; a = arcs[a].next) {
      vertex->current = a;
      if (arcs[a].capacity == 0) continue;
      uint32_t u = arcs[a].head;
      if (flow->vertices[u].label + 1 != vertex->label) continue;
      int64_t amount = vertex->excess < arcs[a].capacity ? vertex->excess : arcs[a].capacity;
      arcs[a].capacity -= amount;
      arcs[a ^ 1].capacity += amount;
      vertex->excess -= amount;
      receive(l, u, amount);
      if (vertex->excess == 0) {
        list_idle(l, v);
        return;
      }
    }
    uint32_t label = vertex->label;
    relabel(l, v);
    if (l->active[label] == NO_VERTEX && l->idle[label] == NO_VERTEX) {
      close_gap(l, label);
      vertex->label = l->end;
    }
  }
}

/* Removes the arcs of all vertices that the reduction decided or eliminated. Returns the number of the others. Sets `arc_count`
 * to the number of their arcs, and adds their positive excesses to `excess`. */
static uint32_t prune(clv__flow *flow, uint32_t *arc_count, int64_t *excess) {
  uint32_t count = 0;
  *arc_count = 0;
  for (uint32_t v = 0; v < flow->vertex_count; ++v) {
    clv__flow_vertex *vertex = &flow->vertices[v];
    if (vertex->state != VERTEX_LIVE) continue;
    ++count;
    if (vertex->excess > 0) *excess = clv__flow_plus(*excess, vertex->excess);
    for (uint32_t *link = &vertex->first; *link != NO_ARC;) {
      if (flow->vertices[flow->arcs[*link].head].state == VERTEX_LIVE) {
        link = &flow->arcs[*link].next;
        ++*arc_count;
      } else {
        *link = flow->arcs[*link].next;
      }
    }
  }
  return count;
}

static clv_status solve_rest(clv__flow *flow, clv_error *error) {
  uint32_t arc_count;
  int64_t excess = 0;
  uint32_t count = prune(flow, &arc_count, &excess);
  if (count == 0) return CLV_OK;
  if (excess >= ENDLESS) return clv__error_set(error, CLV_INVALID_ARGUMENT, "the times of this graph are too large to add up");
  levels l = {.flow = flow, .end = count + 1};
  size_t size_bytes = 2 * ((size_t)count + 2) * sizeof *l.active;
  uint32_t *lists = clv__allocate(flow->allocator, size_bytes);
  if (lists == NULL) return clv__error_memory(error, size_bytes);
  l.active = lists;
  l.idle = lists + count + 2;
  l.highest = count + 1;
  label_exactly(&l);
  uint64_t search = 6 * (uint64_t)count + arc_count, often = SEARCH_WORK * search, spent = 0;
  uint64_t limit = MOST_SEARCHES * search < LEAST_LIMIT ? LEAST_LIMIT : MOST_SEARCHES * search;
  while (l.highest_active > 0) {
    uint32_t v = l.active[l.highest_active];
    if (v == NO_VERTEX) {
      --l.highest_active;
      continue;
    }
    l.active[l.highest_active] = flow->vertices[v].next;
    discharge(&l, v);
    if (l.work <= often) continue;
    spent += l.work;
    label_exactly(&l);
    if (spent <= limit || l.highest_active == 0) continue;
    flow->is_cut_short = true; /* `cost` is below any cut; vertices that can still reach the source drain */
    break;
  }
  label_exactly(&l); /* vertices that now have a label below `end` can reach the source, and drain */
  for (uint32_t v = 0; v < flow->vertex_count; ++v) {
    clv__flow_vertex *vertex = &flow->vertices[v];
    if (vertex->state == VERTEX_LIVE) vertex->state = vertex->label < l.end ? VERTEX_DRAINS : VERTEX_KEEPS;
  }
  clv__release(flow->allocator, lists);
  return CLV_OK;
}

clv_status clv__flow_solve(clv__flow *flow, int64_t *cost, clv_error *error) {
  if (flow->refused) return clv__error_set(error, CLV_INVALID_ARGUMENT, "a time of this graph is negative");
  if (flow->finite >= CLV__FLOW_LIMIT) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT,
                          "the times of this graph add up to %lld ns or more: correct the profile's prices",
                          (long long)CLV__FLOW_LIMIT);
  }
  clv__flow_reduce(flow);
  CLV__TRY(solve_rest(flow, error));
  clv__flow_expand(flow);
  if (flow->cost >= CLV__FLOW_LIMIT) return clv__error_set(error, CLV_INVALID_ARGUMENT, "no cut of this network is finite");
  *cost = flow->cost;
  return CLV_OK;
}

bool clv__flow_is_exact(const clv__flow *flow) {
  return !flow->is_cut_short;
}

bool clv__flow_on_sink_side(const clv__flow *flow, uint32_t vertex) {
  assert(vertex < flow->vertex_count);
  return flow->vertices[vertex].state == VERTEX_KEEPS;
}
