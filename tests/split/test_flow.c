/* Tests minimum cuts: compares them with all cuts of small networks, and with the maximum flow that a simple implementation of
 * Dinic's algorithm finds in larger networks. */
#include <stdlib.h>
#include <string.h>

#include "split/minimum_cut/flow.h"
#include "support.h"

/* An edge of a random network. The networks of both solvers are built from it. */
typedef struct edge {
  uint32_t a, b;
  int64_t forward, backward;
} edge;

typedef struct network {
  uint32_t vertex_count, edge_count;
  int64_t *from_source, *to_sink; /* indexed by vertex: the capacities of its edges from the source and to the sink */
  edge *edges;
} network;

static uint32_t below(uint64_t *random, uint32_t limit) {
  return (uint32_t)(test_random(random) % limit);
}

static void *array(size_t count, size_t element_bytes) {
  void *memory = calloc(count + 1, element_bytes);
  assert_non_null(memory);
  return memory;
}

static void network_init(network *n, uint32_t vertex_count, uint32_t edge_room) {
  *n = (network){vertex_count, 0, array(vertex_count, sizeof(int64_t)), array(vertex_count, sizeof(int64_t)),
                 array(edge_room, sizeof(edge))};
}

static void network_finish(network *n) {
  free(n->from_source);
  free(n->to_sink);
  free(n->edges);
}

static void add_edge(network *n, uint32_t a, uint32_t b, int64_t forward, int64_t backward) {
  n->edges[n->edge_count++] = (edge){a, b, forward, backward};
}

static clv_status solve(const network *n, const clv_allocator *allocator, clv__flow **flow, int64_t *cost, clv_error *error) {
  CLV__TRY(clv__flow_create(allocator, n->vertex_count, n->edge_count, flow, error));
  for (uint32_t v = 0; v < n->vertex_count; ++v) clv__flow_terminal(*flow, v, n->from_source[v], n->to_sink[v]);
  for (uint32_t i = 0; i < n->edge_count; ++i) {
    clv__flow_edge(*flow, n->edges[i].a, n->edges[i].b, n->edges[i].forward, n->edges[i].backward);
  }
  return clv__flow_solve(*flow, cost, error);
}

static bool is_infinite(int64_t capacity) {
  return capacity >= CLV__FLOW_LIMIT;
}

/* Returns the value of the cut with the sides of `on_sink_side`; -1: infinite. */
static int64_t value_of(const network *n, const bool *on_sink_side) {
  int64_t value = 0;
  for (uint32_t v = 0; v < n->vertex_count; ++v) {
    int64_t cut = on_sink_side[v] ? n->from_source[v] : n->to_sink[v];
    if (is_infinite(cut)) return -1;
    value += cut;
  }
  for (uint32_t i = 0; i < n->edge_count; ++i) {
    const edge *e = &n->edges[i];
    if (on_sink_side[e->a] == on_sink_side[e->b]) continue;
    int64_t cut = on_sink_side[e->b] ? e->forward : e->backward;
    if (is_infinite(cut)) return -1;
    value += cut;
  }
  return value;
}

static int64_t draw_capacity(uint64_t *random, uint32_t scale) {
  if (below(random, 4) == 0) return 0;
  if (below(random, 12) == 0) return CLV__FLOW_INFINITE;
  return below(random, scale) + 1;
}

static void draw_small(network *n, uint64_t seed) {
  uint64_t random = seed;
  uint32_t count = 1 + below(&random, 12), edges = below(&random, 3 * count), scale = below(&random, 2) ? 4 : 1000;
  network_init(n, count, edges);
  bool endless = below(&random, 2) == 0;
  for (uint32_t v = 0; v < count; ++v) {
    n->from_source[v] = draw_capacity(&random, scale);
    n->to_sink[v] = draw_capacity(&random, scale);
    if (is_infinite(n->from_source[v]) && (!endless || below(&random, 8) > 0)) n->from_source[v] = 3;
    if (is_infinite(n->to_sink[v]) && (!endless || below(&random, 8) > 0)) n->to_sink[v] = 2;
  }
  for (uint32_t i = 0; i < edges; ++i) {
    uint32_t a = below(&random, count), b = below(&random, 3) ? below(&random, count) : (a + 1) % count;
    add_edge(n, a, b, draw_capacity(&random, scale), draw_capacity(&random, scale));
  }
}

static void check_small(uint64_t seed) {
  network n;
  draw_small(&n, seed);
  int64_t best = -1, cost = -1;
  uint32_t always_source = 0; /* vertices on the source's side in every minimum cut */
  bool sides[12];
  for (uint32_t set = 0; set < 1u << n.vertex_count; ++set) { /* the vertices on the sink's side, as bits */
    for (uint32_t v = 0; v < n.vertex_count; ++v) sides[v] = (set >> v & 1u) != 0;
    int64_t value = value_of(&n, sides);
    if (value < 0 || (best >= 0 && value > best)) continue;
    if (best < 0 || value < best) always_source = UINT32_MAX;
    best = value;
    always_source &= ~set;
  }
  clv__flow *flow = NULL;
  clv_error error = {0};
  clv_status status = solve(&n, clv__allocator_default(), &flow, &cost, &error);
  if (best < 0) {
    assert_int_equal(status, CLV_INVALID_ARGUMENT);
  } else {
    assert_ok(status, error);
    if (cost != best)
      fail_msg("seed %llu: the cut costs %lld, expected %lld", (unsigned long long)seed, (long long)cost, (long long)best);
    for (uint32_t v = 0; v < n.vertex_count; ++v) {
      if (clv__flow_on_sink_side(flow, v) == ((always_source >> v & 1u) != 0)) {
        fail_msg("seed %llu: vertex %u is on the wrong side of the cut nearest to the source", (unsigned long long)seed, v);
      }
    }
  }
  clv__flow_destroy(flow);
  network_finish(&n);
}

static void test_all_cuts(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20000; ++seed) check_small(seed);
}

/* ---- Larger networks ---- */

/* A simple implementation of Dinic's algorithm. With n vertices, the source is n and the sink n + 1. */
typedef struct plain {
  uint32_t vertex_count, arc_count;
  uint32_t *first, *next, *heads, *levels, *queue, *current, *path;
  int64_t *capacities;
} plain;

static void plain_arc(plain *p, uint32_t a, uint32_t b, int64_t forward, int64_t backward) {
  for (int i = 0; i < 2; ++i) {
    uint32_t arc = p->arc_count++, from = i == 0 ? a : b;
    p->heads[arc] = i == 0 ? b : a;
    p->capacities[arc] = i == 0 ? forward : backward;
    p->next[arc] = p->first[from];
    p->first[from] = arc;
  }
}

static bool plain_levels(plain *p, uint32_t source, uint32_t sink) {
  memset(p->levels, 0xff, p->vertex_count * sizeof *p->levels);
  uint32_t count = 0;
  p->queue[count++] = source;
  p->levels[source] = 0;
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t a = p->first[p->queue[i]]; a != UINT32_MAX; a = p->next[a]) {
      uint32_t u = p->heads[a];
      if (p->capacities[a] == 0 || p->levels[u] != UINT32_MAX) continue;
      p->levels[u] = p->levels[p->queue[i]] + 1;
      p->queue[count++] = u;
    }
  }
  return p->levels[sink] != UINT32_MAX;
}

static int64_t plain_augment(plain *p, uint32_t source, uint32_t sink) {
  uint32_t length = 0, at = source;
  while (at != sink) {
    uint32_t a = p->current[at];
    if (a == UINT32_MAX) {
      if (length == 0) return 0;
      at = p->heads[p->path[--length] ^ 1];
      p->current[at] = p->next[p->current[at]];
    } else if (p->capacities[a] > 0 && p->levels[p->heads[a]] == p->levels[at] + 1) {
      p->path[length++] = a;
      at = p->heads[a];
    } else {
      p->current[at] = p->next[a];
    }
  }
  int64_t amount = INT64_MAX;
  for (uint32_t i = 0; i < length; ++i) amount = p->capacities[p->path[i]] < amount ? p->capacities[p->path[i]] : amount;
  for (uint32_t i = 0; i < length; ++i) {
    p->capacities[p->path[i]] -= amount;
    p->capacities[p->path[i] ^ 1] += amount;
  }
  return amount;
}

static int64_t plain_cut(const network *n) {
  uint32_t vertices = n->vertex_count + 2, arcs = 2 * (n->edge_count + 2 * n->vertex_count), source = n->vertex_count;
  plain p = {.vertex_count = vertices};
  p.first = array(vertices, sizeof *p.first), p.levels = array(vertices, sizeof *p.levels);
  p.queue = array(vertices, sizeof *p.queue), p.current = array(vertices, sizeof *p.current);
  p.path = array(vertices, sizeof *p.path);
  p.next = array(arcs, sizeof *p.next), p.heads = array(arcs, sizeof *p.heads);
  p.capacities = array(arcs, sizeof *p.capacities);
  memset(p.first, 0xff, vertices * sizeof *p.first);
  for (uint32_t v = 0; v < n->vertex_count; ++v) {
    plain_arc(&p, source, v, n->from_source[v], 0);
    plain_arc(&p, v, source + 1, n->to_sink[v], 0);
  }
  for (uint32_t i = 0; i < n->edge_count; ++i) {
    plain_arc(&p, n->edges[i].a, n->edges[i].b, n->edges[i].forward, n->edges[i].backward);
  }
  int64_t total = 0, amount;
  while (plain_levels(&p, source, source + 1)) {
    memcpy(p.current, p.first, vertices * sizeof *p.first);
    while ((amount = plain_augment(&p, source, source + 1)) > 0) total += amount;
  }
  free(p.first), free(p.levels), free(p.queue), free(p.current), free(p.path), free(p.next), free(p.heads), free(p.capacities);
  return total;
}

typedef enum shape { CHAIN, LADDER, GRID, DIAMONDS, SKIPS, DAG, HUBS, SHAPES } shape;
typedef enum terminals { RANDOM, ALTERNATING, ENDS, STRONG, TERMINALS } terminals;

static void draw_terminals(network *n, uint64_t *random, terminals kind, uint32_t scale) {
  for (uint32_t v = 0; v < n->vertex_count; ++v) {
    bool near_source = kind == ALTERNATING ? v % 2 == 0 : kind == ENDS ? v < n->vertex_count / 2 : below(random, 2) == 0;
    int64_t capacity = kind == ALTERNATING ? scale : kind == ENDS ? 1 + below(random, 2) : below(random, scale);
    if (kind == STRONG) capacity = below(random, 50) == 0 ? (int64_t)scale * 1000 : below(random, 3);
    if (near_source) {
      n->from_source[v] = capacity;
    } else {
      n->to_sink[v] = capacity;
    }
  }
}

/* Makes a network of about `size` vertices, similar to those for placing graphs. */
static void draw_large(network *n, uint64_t seed, uint32_t size, shape kind, terminals terminals_kind) {
  uint64_t random = seed;
  uint32_t width = 1, scale = 100;
  while (width * width < size) ++width;
  network_init(n, size, 4 * size);
  draw_terminals(n, &random, terminals_kind, scale);
  for (uint32_t v = 1; v < size; ++v) {
    int64_t forward = below(&random, scale) + 1, backward = below(&random, scale);
    switch (kind) {
      case CHAIN:
        add_edge(n, v - 1, v, forward, backward);
        break;
      case LADDER:
        if (v >= 2) add_edge(n, v - 2, v, forward, backward);
        if (v % 2 == 1) add_edge(n, v - 1, v, below(&random, scale), below(&random, scale));
        break;
      case GRID:
        if (v % width > 0) add_edge(n, v - 1, v, forward, backward);
        if (v >= width) add_edge(n, v - width, v, below(&random, scale), below(&random, scale));
        break;
      case DIAMONDS:
        add_edge(n, v - (v % 4 == 2 ? 2 : 1), v, forward, backward);
        if (v % 4 == 3) add_edge(n, v - 2, v, forward, backward);
        break;
      case SKIPS:
        add_edge(n, v - 1, v, forward, backward);
        if (v > 9 && below(&random, 3) == 0) add_edge(n, v - 2 - below(&random, 7), v, backward, forward);
        break;
      case DAG:
        add_edge(n, below(&random, v), v, forward, backward);
        if (below(&random, 2)) add_edge(n, below(&random, v), v, backward, forward);
        break;
      default: /* HUBS: a chain whose vertices also have edges to two hubs, the vertices 0 and 1 */
        add_edge(n, v - 1, v, forward, backward);
        if (v > 2) add_edge(n, v % 2, v, CLV__FLOW_LIMIT / 1000000 * (v % 3 == 0), forward * (v % 5 == 0));
    }
  }
}

static int64_t check_large(uint64_t seed, uint32_t size, shape kind, terminals terminals_kind, bool compare) {
  network n;
  draw_large(&n, seed, size, kind, terminals_kind);
  clv__flow *flow = NULL;
  clv_error error = {0};
  int64_t cost = -1;
  assert_ok(solve(&n, clv__allocator_default(), &flow, &cost, &error), error);
  bool *sides = array(n.vertex_count, sizeof *sides);
  for (uint32_t v = 0; v < n.vertex_count; ++v) sides[v] = clv__flow_on_sink_side(flow, v);
  int64_t value = value_of(&n, sides); /* above `cost`, a lower bound, if the work limit was reached */
  if (clv__flow_is_exact(flow) ? value != cost : value < cost || value - cost > cost / 100) {
    fail_msg("seed %llu, shape %d: the edges that the cut separates cost %lld, but the reported cost is %lld",
             (unsigned long long)seed, kind, (long long)value, (long long)cost);
  }
  if (compare) assert_true(clv__flow_is_exact(flow));
  if (compare && plain_cut(&n) != cost) {
    fail_msg("seed %llu, shape %d: the cut costs %lld, expected %lld", (unsigned long long)seed, kind, (long long)cost,
             (long long)plain_cut(&n));
  }
  free(sides);
  clv__flow_destroy(flow);
  network_finish(&n);
  return cost;
}

static void test_against_blocking_flows(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    for (shape kind = 0; kind < SHAPES; ++kind) {
      for (terminals t = 0; t < TERMINALS; ++t) check_large(seed, 20 + (uint32_t)(seed * 7), kind, t, true);
    }
  }
}

/* Networks for which a quadratic algorithm would take minutes. On a grid, even an exact algorithm would take seconds. */
static void test_large(void **state) {
  (void)state;
  for (shape kind = 0; kind < SHAPES; ++kind) {
    for (terminals t = 0; t < TERMINALS; ++t) check_large(7, 100000, kind, t, false);
  }
}

/* ---- Refusals ---- */

static void refuse(const network *n, const char *what) {
  clv__flow *flow = NULL;
  clv_error error = {0};
  int64_t cost = -7;
  assert_int_equal(solve(n, clv__allocator_default(), &flow, &cost, &error), CLV_INVALID_ARGUMENT);
  assert_int_equal(cost, -7);
  assert_non_null(strstr(error.message, what));
  clv__flow_destroy(flow);
}

static void test_refusals(void **state) {
  (void)state;
  network n;
  network_init(&n, 3, 3);
  n.from_source[0] = CLV__FLOW_LIMIT - 2;
  n.to_sink[2] = 2;
  add_edge(&n, 0, 1, 5, 5);
  refuse(&n, "ns or more");
  n.from_source[0] = -1;
  refuse(&n, "negative");
  n.from_source[0] = CLV__FLOW_INFINITE;
  n.to_sink[2] = INT64_MAX;
  add_edge(&n, 1, 2, CLV__FLOW_INFINITE, 0);
  n.edges[0].forward = CLV__FLOW_LIMIT;
  refuse(&n, "no cut");
  n.edges[0].forward = 5;
  clv__flow *flow;
  clv_error error = {0};
  int64_t cost;
  assert_ok(solve(&n, clv__allocator_default(), &flow, &cost, &error), error);
  assert_int_equal(cost, 5);
  clv__flow_destroy(flow);
  network_finish(&n);
  assert_int_equal(clv__flow_create(clv__allocator_default(), 1, UINT32_MAX, &flow, &error), CLV_INVALID_ARGUMENT);
}

static void test_memory(void **state) {
  (void)state;
  network n;
  draw_large(&n, 3, 100, GRID, RANDOM);
  test_allocator counting;
  test_allocator_init(&counting);
  size_t fail_at = 0;
  clv_status status;
  do {
    counting.calls = 0;
    counting.fail_at = ++fail_at;
    clv__flow *flow = NULL;
    clv_error error = {0};
    int64_t cost;
    status = solve(&n, &counting.allocator, &flow, &cost, &error);
    assert_true(status == CLV_OK || status == CLV_OUT_OF_MEMORY);
    clv__flow_destroy(flow);
    assert_int_equal(counting.live, 0);
  } while (status != CLV_OK);
  assert_int_equal(fail_at, 5); /* four allocations, each failed once */
  network_finish(&n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_cuts), cmocka_unit_test(test_against_blocking_flows),
      cmocka_unit_test(test_large),    cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
