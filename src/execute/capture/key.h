/* Identifies a capture: operators, dtypes, shapes, attributes, edges by index, alias relations and the device, but never
 * raw pointers. A key is computed once per plan, device and set of shapes. Its hash finds an entry; its bytes confirm a hit and
 * locate the first difference.
 *
 * Strides are left out, because values at a boundary are dense. The content of constants above CLV__KEY_SMALL_BYTES is left out
 * too, except inside attributes: only the session that made a capture uses it, and a session's weights do not change. Names are
 * only for messages: graphs that differ only in names have equal keys. */
#ifndef CLEAVE_EXECUTE_CAPTURE_KEY_H
#define CLEAVE_EXECUTE_CAPTURE_KEY_H

#include "base/hash.h"
#include "plan/plan.h"

typedef struct clv__capture_key {
  clv__hash hash;
  size_t size_bytes;
  const uint8_t *bytes;     /* records of varying length, see key.c; in the arena of the key */
  const char *const *nodes; /* names by the key's numbers; the graph owns them. NULL: not known */
  const char *const *values;
} clv__capture_key;

/* Makes the key of all partitions of the plan on `device` for which `captured` (by partition) is true, with values of `types` (by
 * graph value). `aliases` (by graph value, may be NULL) says which values share memory: those that do have the same id, which is
 * one of theirs; any other value has its own id or CLV__NO_ID. Errors: CLV_OUT_OF_MEMORY. */
clv_status clv__capture_key_make(const clv_plan *plan, uint32_t device, const bool *captured, const clv_tensor *types,
                                 const clv_value_id *aliases, clv__arena *arena, clv__capture_key *key, clv_error *error);
bool clv__capture_key_equal(const clv__capture_key *a, const clv__capture_key *b);
/* Describes the first difference of `now` from `before`: the device, the count of partitions or nodes, an operator, an attribute,
 * an edge, a dtype or shape, a parameter's content, or shared memory: "node 3 'act': Mul, was Add", "value 'x': f32[1,4], was
 * f32[1,3]"; or "no difference". Names are those of `now`. */
void clv__capture_key_difference(const clv__capture_key *now, const clv__capture_key *before, char *text, size_t size_bytes);

#endif
