/* A table of the verdicts that were found by trial. It maps the signature of a node to yes, or to no with the reason. The host
 * keeps them across processes, under a key that contains the device's fingerprint. A stored table is validated when it is read.
 * Only one thread at a time may use it. */
#ifndef CLEAVE_BACKENDS_FRAMEWORK_VERDICTS_H
#define CLEAVE_BACKENDS_FRAMEWORK_VERDICTS_H

#include "base/hash.h"
#include "cleave/plugin/backend.h"

typedef struct clv__verdict_entry {
  clv__hash signature;
  char *reason; /* why the node is not supported; NULL if it is */
} clv__verdict_entry;

typedef struct clv__verdicts {
  const clv_host *host;
  const char *backend; /* the backend's name, part of the storage key */
  const char *key;     /* see clv_device.verdicts_key */
  clv__verdict_entry *entries;
  size_t count, capacity;
  uint32_t *slots; /* hash table, keyed by the signature's first bytes: index of the entry + 1; 0 if the slot is free */
  size_t slot_count;
  size_t new_count; /* number of entries added since the table was last stored */
  bool is_recalled;
} clv__verdicts;

/* Keeps the pointers to `backend` and `key`; does not copy the texts. */
void clv__verdicts_init(clv__verdicts *verdicts, const clv_host *host, const char *backend, const char *key);
/* Stores new entries, and frees the table. */
void clv__verdicts_finish(clv__verdicts *verdicts);

/* Finds the verdict with this signature. Returns false if the table has none. */
bool clv__verdicts_find(clv__verdicts *verdicts, const clv__hash *signature, clv_verdict *verdict);
/* Adds a verdict. Does nothing if memory runs out or the table is full. */
void clv__verdicts_add(clv__verdicts *verdicts, const clv__hash *signature, const clv_verdict *verdict);

/* Computes a hash. Nodes with the same hash have the same verdict. The hash covers the operator, its version and attributes,
 * the dtypes and ranks of inputs and outputs (with `with_shapes`, also their shapes), which inputs are constant, and the values
 * of small constants. */
void clv__verdict_signature(const clv_host *host, const clv_graph_view *graph, uint32_t node, bool with_shapes,
                            clv__hash *signature);

#endif
