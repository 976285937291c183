/* What a captured graph is of: operators, dtypes, shapes, attributes, edges by index, alias relations, device; never raw pointers.
 * Made once a plan, device and set of shapes; its hash finds it, its text confirms a hit and names the first difference. */
#ifndef CLEAVE_EXECUTE_GRAPH_KEY_H
#define CLEAVE_EXECUTE_GRAPH_KEY_H

#include "base/hash.h"
#include "split/plan.h"

typedef struct clv__graph_key {
  clv__hash hash;
  size_t size_bytes;
  const uint8_t *bytes; /* records of varying length, see graph_key.c; in the arena it was made in */
} clv__graph_key;

/* The key of all partitions of the plan on `device` whose bit in `captured` (by partition) is set, with values of `types` (by
 * graph value). */
clv_status clv__graph_key_make(const clv_plan *plan, uint32_t device, const bool *captured, const clv_tensor *types,
                               clv__arena *arena, clv__graph_key *key, clv_error *error);
bool clv__graph_key_equal(const clv__graph_key *a, const clv__graph_key *b);
/* Where `now` first differs from `before`: the count of nodes, an operator, an attribute, a dtype or shape, an edge, the device. */
void clv__graph_key_difference(const clv__graph_key *now, const clv__graph_key *before, char *text, size_t size_bytes);

#endif
