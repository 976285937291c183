/* Maximum flow and minimum cut between two terminals, on sparse graphs of about 100,000 vertices with integer capacities. */
#ifndef CLEAVE_SPLIT_MINIMUM_CUT_FLOW_H
#define CLEAVE_SPLIT_MINIMUM_CUT_FLOW_H

#include "base/error.h"
#include "base/memory.h"

typedef struct clv__flow clv__flow;

/* The capacity of an edge that is never cut. Any capacity of at least CLV__FLOW_LIMIT counts as infinite; the sum of all others
 * must stay below that limit. */
#define CLV__FLOW_INFINITE ((int64_t)1 << 61)
#define CLV__FLOW_LIMIT ((int64_t)1 << 58)

/* Creates a network of `vertex_count` inner vertices with room for `edge_count` edges. Both directions of an edge count as
 * one. */
clv_status clv__flow_create(const clv_allocator *allocator, uint32_t vertex_count, uint32_t edge_count, clv__flow **flow,
                            clv_error *error);
void clv__flow_destroy(clv__flow *flow); /* accepts NULL */
/* Adds to the capacities source -> vertex and vertex -> sink. The first is cut if the vertex ends on the sink's side, the second
 * if it ends on the source's. */
void clv__flow_terminal(clv__flow *flow, uint32_t vertex, int64_t from_source, int64_t to_sink);
/* Adds an edge. `forward` is cut if `a` is on the source's side and `b` on the sink's, `backward` in the opposite case. Edges
 * from a vertex to itself and edges without capacity are never cut and take no room. */
void clv__flow_edge(clv__flow *flow, uint32_t a, uint32_t b, int64_t forward, int64_t backward);
/* Solves the network; call it once. `cost` is the value of the minimum cut; afterwards clv__flow_on_sink_side() returns the sides
 * of the minimum cut nearest to the source, which puts as many vertices as possible on the sink's side. Deterministic. Returns
 * CLV_INVALID_ARGUMENT if the finite capacities together reach CLV__FLOW_LIMIT, if a capacity is negative, or if every cut is
 * infinite. The work is limited to a multiple of the network's size; only a few kinds of large networks reach that limit. `cost`
 * is then a lower bound on every cut, and the sides are those of some cut. */
clv_status clv__flow_solve(clv__flow *flow, int64_t *cost, clv_error *error);
bool clv__flow_is_exact(const clv__flow *flow); /* true if the work limit was not reached */
bool clv__flow_on_sink_side(const clv__flow *flow, uint32_t vertex);

#endif
