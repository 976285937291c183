/* Unstable: may change until 1.0. Which devices can run which nodes of a graph, without a plan: for programs that give Cleave
 * only a part of their model. clv_plan_make() fails if no device can run some node; this lists such nodes. */
#ifndef CLEAVE_SUPPORT_H
#define CLEAVE_SUPPORT_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_support clv_support;

/* Asks every device for its verdict on every node, with the sizes and the support callback of `options`, whose other fields are
 * ignored. `options` may be NULL. The graph and the devices must outlive the result. Any thread may call it.
 * Errors: CLV_INVALID_ARGUMENT for a NULL, for contradictory sizes, and if the contexts of the graph and the devices have
 * different allocators; CLV_INVALID_MODEL if the sizes do not fit the graph's nodes; CLV_CANCELLED by options->go_on();
 * CLV_OUT_OF_MEMORY. */
CLV_API CLV_MUST_USE clv_status clv_support_ask(const clv_graph *graph, clv_devices *devices, const clv_plan_options *options,
                                                clv_support **support, clv_error *error);
/* Accepts NULL. */
CLV_API void clv_support_destroy(clv_support *support);

typedef struct clv_node_support {
  uint32_t struct_size;
  bool is_folded;   /* its value is known before the run, so no device has to run it */
  bool can_run;     /* folded, or some device can run it */
  const char *name; /* never empty: `Op#index` if the model has no name for the node, or repeats it */
  const char *op;
} clv_node_support;

/* The number of nodes of the graph. Their order is that of the model if that order is topological, as ONNX requires. */
CLV_API uint32_t clv_support_node_count(const clv_support *support);
/* Fills as many bytes of `info` as its struct_size says. Its strings are valid as long as the graph. Returns false, and fills it
 * with zeros, for an index beyond the count. Any thread may call it. */
CLV_API bool clv_support_node(const clv_support *support, uint32_t index, clv_node_support *info);
/* Why a device cannot run a node. NULL if it can, or if the node is folded or an index is beyond its count. Valid as long as
 * `support`. Any thread may call it. */
CLV_API const char *clv_support_refusal(const clv_support *support, uint32_t node, uint32_t device);

#ifdef __cplusplus
}
#endif
#endif
