/* Determines whether an attention node reads a cache of keys and values, and whether its mask is causal. Used by phase.c. */
#ifndef CLEAVE_EXECUTE_CAPTURE_ATTENTION_H
#define CLEAVE_EXECUTE_CAPTURE_ATTENTION_H

#include "graph/graph.h"

enum { CLV__ATTENTION_VISITS = 256 }; /* a search gives up after this many nodes */

typedef struct clv__attention_search {
  const clv_graph *graph;
  const clv_tensor *types; /* indexed by value: the types of the run */
  uint32_t visits;
} clv__attention_search;

/* Returns whether the value is neither absent nor a constant. */
static inline bool clv__attention_is_computed(const clv__attention_search *s, clv_value_id value) {
  return value != CLV__NO_ID && !clv__value_is_constant(s->graph, s->types, value);
}

/* Returns whether the node is a standard operator in the list, which ends with NULL. */
bool clv__attention_is_one_of(const clv__node *node, const char *const *ops);

/* `keys` is the keys or the values of an attention. Returns whether they come from a cache: a graph input reaches them by being
 * joined, transposed, updated or scaled, and it is not the graph input that the queries come from. */
bool clv__attention_has_cache(clv__attention_search *s, clv_value_id queries, clv_value_id keys);

/* Returns whether a mask is causal: it derives from a constant triangle, from Trilu, or from a comparison of positions. */
bool clv__attention_is_causal(clv__attention_search *s, clv_value_id mask);

#endif
