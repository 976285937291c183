/* A plan: which node runs where, in which partitions, with which transfers. Serialisable; the same inputs give the same plan. */
#ifndef CLEAVE_PLAN_H
#define CLEAVE_PLAN_H

#include "devices.h"
#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_plan clv_plan;

/* A pair of the command line's kind: "layer4.*" -> "cpu". */
typedef struct clv_assignment {
  const char *pattern; /* `*` any run, `?` any character */
  const char *device;
} clv_assignment;

/* A size: of a whole input (`name` an input, `rank` dims), or of a symbolic dimension (`is_symbol`, dims[0]). */
typedef struct clv_size {
  const char *name;
  bool is_symbol;
  int32_t rank;
  int64_t dims[CLV_MAX_RANK];
} clv_size;

/* Asked for every node a device says yes to. May turn the yes into a no: return false and fill `reason`. Never the reverse. */
typedef bool (*clv_support_fn)(void *user_data, const char *device, const clv_node_info *node, char reason[160]);

typedef struct clv_plan_options {
  uint32_t struct_size;
  const char *strategy; /* NULL: "optimal" */
  uint32_t pin_count;   /* node name patterns: these nodes run there, or the plan is refused */
  const clv_assignment *pins;
  uint32_t force_count; /* operator name patterns */
  const clv_assignment *forces;
  uint32_t size_count;
  const clv_size *sizes;
  uint32_t keep_count; /* names of inner values to be read after a run, as further outputs */
  const char *const *keeps;
  clv_support_fn support;
  void *support_user_data;
  const char *split;     /* "linear", "convex", "fewest"; NULL: the strategy's own */
  const char *objective; /* what is minimised: "latency" (NULL): steps one after the other; "overlap": devices at the same time;
                            "throughput": the busiest device */
  const char *profile;   /* a file of measured costs; NULL: none, and prices are nominal */
  uint32_t weight_count; /* where weights live: initializer name patterns */
  const clv_assignment *weights;
  uint32_t value_count; /* where the user has put inputs, outputs and state: value name patterns */
  const clv_assignment *values;
  uint32_t suppose_count; /* operators that a device is supposed to run too: what if? Such a plan cannot be run */
  const clv_assignment *supposes;
  bool record_passes; /* keep what every pass of `propagate` left */
} clv_plan_options;
#define CLV_PLAN_OPTIONS_INIT                                                                                                    \
  {                                                                                                                              \
    sizeof(clv_plan_options), NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, NULL, 0, NULL, \
        false                                                                                                                    \
  }

/* Plans `graph` for `devices`, which must both outlive the plan. Errors: CLV_NOT_SUPPORTED when some node runs on no device (with
 * every device's reason) or a pin cannot hold; CLV_INVALID_ARGUMENT for unknown names, strategies, sizes that contradict, and
 * for a graph and devices whose contexts have different allocators. */
CLV_API CLV_MUST_USE clv_status clv_plan_make(const clv_graph *graph, clv_devices *devices, const clv_plan_options *options,
                                              clv_plan **plan, clv_error *error);

/* Writes the plan file: whole, or not at all. */
CLV_API CLV_MUST_USE clv_status clv_plan_write(const clv_plan *plan, const char *path, clv_error *error);

/* Reads a plan file (it may have been edited) for a model that is already loaded. Transfers, steps and prices are worked out
 * again: with the file of measured costs `profile`, NULL for none. CLV_INVALID_MODEL, with the place, for what does not fit:
 * another model's hash, unknown nodes or devices, nodes missing or twice, partitions that wait for a later one. */
CLV_API CLV_MUST_USE clv_status clv_plan_read(const clv_graph *graph, clv_devices *devices, const char *path, const char *profile,
                                              clv_plan **plan, clv_error *error);

/* Accepts NULL. Sessions made from it must have been destroyed before. */
CLV_API void clv_plan_destroy(clv_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
