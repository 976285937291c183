/* What a captured graph is of: operators, dtypes, shapes, attributes, edges by index, alias relations, device; never raw
 * pointers. Made once a plan, device and set of shapes; its hash finds it, its bytes confirm a hit and tell the first difference.
 *
 * Strides need no place in it: what crosses a boundary is dense. Neither has the content of constants above a few elements, but
 * for those inside attributes: a graph belongs to one session, whose weights do not change. Names are for messages: graphs that
 * differ in nothing else have equal keys. */
#ifndef CLEAVE_EXECUTE_CAPTURE_KEY_H
#define CLEAVE_EXECUTE_CAPTURE_KEY_H

#include "base/hash.h"
#include "plan/plan.h"

typedef struct clv__graph_key {
  clv__hash hash;
  size_t size_bytes;
  const uint8_t *bytes;     /* records of varying length, see key.c; in the arena it was made in */
  const char *const *nodes; /* names, by the key's numbers; the graph's own. NULL: not known */
  const char *const *values;
} clv__graph_key;

/* The key of all partitions of the plan on `device` whose bit in `captured` (by partition) is set, with values of `types` (by
 * graph value). `aliases` (by graph value, may be NULL) says whose memory a value lies in: the same value's id for all that share
 * it; itself or CLV__NO_ID for none. Errors: CLV_OUT_OF_MEMORY. */
clv_status clv__graph_key_make(const clv_plan *plan, uint32_t device, const bool *captured, const clv_tensor *types,
                               const clv_value_id *aliases, clv__arena *arena, clv__graph_key *key, clv_error *error);
bool clv__graph_key_equal(const clv__graph_key *a, const clv__graph_key *b);
/* Where `now` first differs from `before`: the device, the count of partitions or nodes, an operator, an attribute, an edge, a
 * dtype or shape, a parameter's content, shared memory: "node 3 'act': Mul, was Add", "value 'x': f32[1,4], was f32[1,3]";
 * "nothing differs". Names are those of `now`. */
void clv__graph_key_difference(const clv__graph_key *now, const clv__graph_key *before, char *text, size_t size_bytes);

#endif
