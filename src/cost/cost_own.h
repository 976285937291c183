/* The internals of the cost model: its tables, and the state during its construction. See cost.h for its purpose. */
#ifndef CLEAVE_COST_COST_OWN_H
#define CLEAVE_COST_COST_OWN_H

#include <stddef.h>

#include "cost/cost.h"
#include "cost/fit.h"
#include "cost/nominal.h"

/* One price per node and device, packed because a plan may have 100,000 nodes. */
typedef struct clv__model_price {
  uint64_t time_ns : 56;
  uint64_t source : 7;
  uint64_t infeasible : 1;
} clv__model_price;

/* An edge that may save time: a value that one node reads from another. */
typedef struct clv__model_edge {
  uint32_t producer, input;
  float bytes;
} clv__model_edge;

typedef struct clv__model_device {
  const clv__device *device;
  const clv__profile_device *tables; /* NULL: not in the profile. Valid only while the model is built */
  clv__fits *fits;                   /* valid only while the model is built */
  uint32_t *operators; /* by class: index in tables->operators, or CLV__MAP_NONE; valid only while the model is built */
  const clv__nominal *nominal;
  uint32_t copy_counts[2]; /* number of `copies`: [0] into the device, [1] out of the device; 0: not measured */
  const clv__profile_copy *copies[2];
  double flops_per_second, bytes_per_second;
  clv__cost_source peak_source;
  uint64_t launch_ns;
  char origin[160];
} clv__model_device;

struct clv__cost_model {
  clv__arena arena;
  uint32_t node_count, device_count;
  clv__model_device devices[CLV__MAX_DEVICES];
  clv__model_price *prices; /* [node * device_count + device] */
  uint32_t *edge_offsets;   /* by node: the start of its edges in `edges`: one per value that it reads from another node */
  clv__model_edge *edges;
  uint64_t *savings; /* [edge * device_count + device] */
};

/* Temporary state during the construction of the cost model. */
typedef struct clv__making {
  clv__cost_model *model;
  const clv_graph_view *whole;
  const bool *folded;
  clv__arena arena;
  uint32_t class_count;  /* classes of nodes with equal signatures */
  uint32_t *classes;     /* by node: its class; CLV__NO_ID: a view, a folded node, unknown sizes, or no device has tables */
  const char **families; /* by class: operator and dtype (clv__signature_family) */
  bool *is_view;         /* by node */
  float *flops, *bytes;  /* by node */
  clv_error *error;
} clv__making;

/* Rounds nanoseconds for storage; clamps them to [0, CLV__PROFILE_MAX_NS]. */
static inline uint64_t clv__cost_ns(double ns) {
  if (!(ns > 0)) return 0;
  return ns >= (double)CLV__PROFILE_MAX_NS ? CLV__PROFILE_MAX_NS : (uint64_t)(ns + 0.5);
}

/* The function in member `slot` of the device's backend. NULL if the backend's version lacks it, or if the device is lost. */
#define CLV__COST_SLOT(device, slot)                                                                                     \
  (!(device)->is_lost && (device)->backend->struct_size >= offsetof(clv_backend, slot) + sizeof((device)->backend->slot) \
       ? (device)->backend->slot                                                                                         \
       : NULL)

static inline bool clv__making_is_folded(const clv__making *m, uint32_t node) {
  return m->folded != NULL && m->folded[node];
}

/* Allocates zeroed memory. If out of memory, sets *status and the error. */
void *clv__making_allocate(clv__making *m, clv__arena *arena, size_t count, size_t element_bytes, clv_status *status);
/* Computes the work of the nodes, the classes (only if a device has tables) and the edges (model_nodes.c). */
clv_status clv__making_read(clv__making *m, bool any_tables);
/* Prices every node and edge on every device (model_prices.c). */
clv_status clv__making_price(clv__making *m);

#endif
