/* What a device was found to be able to do, by trying: signature of a node -> yes, or no and why. Kept across processes by the
 * host, under the device's fingerprint; what comes back is read with doubt. Used by one thread at a time. */
#ifndef CLEAVE_BACKENDS_FRAMEWORK_VERDICTS_H
#define CLEAVE_BACKENDS_FRAMEWORK_VERDICTS_H

#include "base/hash.h"
#include "cleave/plugin/backend.h"

typedef struct clv__verdict_entry {
  clv__hash signature;
  char *reason; /* why not; NULL: it can */
} clv__verdict_entry;

typedef struct clv__verdicts {
  const clv_host *host;
  const char *backend; /* under which name they are kept */
  const char *key;     /* the device's fingerprint */
  clv__verdict_entry *entries;
  size_t count, capacity;
  uint32_t *slots; /* by the signature's first bytes; entry + 1, 0: free */
  size_t slot_count;
  size_t new_count; /* since they were last kept */
  bool is_recalled;
} clv__verdicts;

/* The texts are borrowed. */
void clv__verdicts_init(clv__verdicts *verdicts, const clv_host *host, const char *backend, const char *key);
/* Keeps what is new. */
void clv__verdicts_finish(clv__verdicts *verdicts);

/* False: not known. */
bool clv__verdicts_find(clv__verdicts *verdicts, const clv__hash *signature, clv_verdict *verdict);
/* Does nothing where memory is out, or too much is known already. */
void clv__verdicts_add(clv__verdicts *verdicts, const clv__hash *signature, const clv_verdict *verdict);

/* What two nodes have in common when one's verdict is the other's: operator, version, attributes, dtypes, ranks (shapes where
 * `with_shapes`), which inputs are constant, and what small constants say. */
void clv__verdict_signature(const clv_host *host, const clv_graph_view *graph, uint32_t node, bool with_shapes,
                            clv__hash *signature);

#endif
