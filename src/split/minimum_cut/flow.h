/* Maximum flow and minimum cut between two terminals, on sparse graphs of some 100,000 vertices with integer capacities. */
#ifndef CLEAVE_SPLIT_MINIMUM_CUT_FLOW_H
#define CLEAVE_SPLIT_MINIMUM_CUT_FLOW_H

#include "base/error.h"
#include "base/memory.h"

typedef struct clv__flow clv__flow;

/* Never cut. Any capacity from CLV__FLOW_LIMIT on is as good as that; the others must stay below it all together. */
#define CLV__FLOW_INFINITE ((int64_t)1 << 61)
#define CLV__FLOW_LIMIT ((int64_t)1 << 58)

/* A network of `vertex_count` inner vertices; room for `edge_count` edges (both directions of one count once). */
clv_status clv__flow_create(const clv_allocator *allocator, uint32_t vertex_count, uint32_t edge_count, clv__flow **flow,
                            clv_error *error);
void clv__flow_destroy(clv__flow *flow); /* accepts NULL */
/* Adds to the capacities source -> vertex and vertex -> sink: what is cut when the vertex ends on the sink's, the source's side.
 */
void clv__flow_terminal(clv__flow *flow, uint32_t vertex, int64_t from_source, int64_t to_sink);
/* An edge: `forward` is cut when `a` is on the source's side and `b` on the sink's, `backward` the other way round. Edges from a
 * vertex to itself and edges without capacity are never cut and take no room. */
void clv__flow_edge(clv__flow *flow, uint32_t a, uint32_t b, int64_t forward, int64_t backward);
/* Solves, once. `cost` is the value of the minimum cut; then clv__flow_on_sink_side() tells the sides (of the minimum cut nearest
 * to the source: what may be on the sink's side is). Deterministic. CLV_INVALID_ARGUMENT where the finite capacities together
 * reach CLV__FLOW_LIMIT, where one is negative, and where every cut is infinite. Work is limited to a multiple of the network's
 * size, which large networks of few shapes reach: `cost` is then what no cut is below, and the sides are those of some cut. */
clv_status clv__flow_solve(clv__flow *flow, int64_t *cost, clv_error *error);
bool clv__flow_is_exact(const clv__flow *flow); /* the limit was not met */
bool clv__flow_on_sink_side(const clv__flow *flow, uint32_t vertex);

#endif
