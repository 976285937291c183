/* A plan assigns every node to a device, groups nodes into partitions, and lists the transfers between devices. It can be written
 * to a file and read back. The same inputs give the same plan. */
#ifndef CLEAVE_PLAN_H
#define CLEAVE_PLAN_H

#include "devices.h"
#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_plan clv_plan;

/* Assigns all names that match a pattern to a device, as on the command line: "layer4.*" -> "cpu". */
typedef struct clv_assignment {
  const char *pattern; /* `*` matches any run of characters, `?` any one character */
  const char *device;
} clv_assignment;

/* Fixes the shape of an input (`name`, with `rank` dims) or the size of a symbolic dimension (`is_symbol`; the size is dims[0]).
 */
typedef struct clv_size {
  const char *name;
  bool is_symbol;
  int32_t rank;
  int64_t dims[CLV_MAX_RANK];
} clv_size;

/* Called for every node that a device supports. Return false and fill `reason` to reject the node on that device. A callback
 * cannot make a device accept a node. */
typedef bool (*clv_support_fn)(void *user_data, const char *device, const clv_node_info *node, char reason[160]);

typedef struct clv_plan_options {
  uint32_t struct_size;
  const char *strategy; /* NULL: "optimal" */
  uint32_t pin_count;   /* nodes, by patterns of their names, that must run on a device; planning fails if one cannot run there */
  const clv_assignment *pins;
  uint32_t force_count; /* like pins, but with patterns of operator names; pins take precedence */
  const clv_assignment *forces;
  uint32_t size_count;
  const clv_size *sizes;
  uint32_t keep_count; /* names of inner values to return as additional outputs */
  const char *const *keeps;
  clv_support_fn support;
  void *support_user_data;
  const char *split;     /* how nodes are grouped into partitions: "linear", "convex", "fewest"; NULL: the strategy's default */
  const char *objective; /* what to minimise. "latency" (also NULL): the time of all steps in sequence; "overlap": the time with
                            devices working at the same time; "throughput": the time of the busiest device */
  const char *profile;   /* a file of measured costs; NULL: none; prices are the devices' own estimates, or round figures */
  uint32_t weight_count; /* where weights are, by patterns of initializer names: the device whose memory holds them */
  const clv_assignment *weights;
  uint32_t value_count; /* where inputs, outputs and states are, by patterns of value names: the device whose memory holds them */
  const clv_assignment *values;
  /* Patterns of operator names that a device is assumed to support, for a what-if plan, which cannot be run. */
  uint32_t suppose_count;
  const clv_assignment *supposes;
  bool record_passes;  /* record the result of each pass of the strategy `propagate` */
  bool name_others;    /* if no device supports a node, open the other devices of this machine, as "auto" does, and name those
                          that support it in the error. Opening them may take seconds */
  const char *offload; /* whether `propagate` gives a device a node that it prefers although the node's weights are in host
                          memory. "on": always; "off": never; "auto" (also NULL): always, except if `weights` placed the node's
                          weights in host memory and copying them in every run takes longer than the device saves */
  bool (*go_on)(void *user_data); /* called often while the plan is made; return false to stop: clv_plan_make() then returns
                                     CLV_CANCELLED. A device's verdict on one node is not interrupted. May be NULL */
  void *go_on_user_data;
} clv_plan_options;
#define CLV_PLAN_OPTIONS_INIT                                                                                                    \
  {                                                                                                                              \
    sizeof(clv_plan_options), NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, NULL, 0, NULL, \
        false, false, NULL, NULL, NULL                                                                                           \
  }

/* Plans `graph` for `devices`. Both must outlive the plan.
 * Errors: CLV_NOT_SUPPORTED if no device can run some node (the message has every device's reason), or if a pin cannot be
 * satisfied; CLV_CANCELLED by go_on(); CLV_INVALID_ARGUMENT for unknown names or strategies, for contradictory sizes, and if the
 * contexts of the graph and the devices have different allocators. */
CLV_API CLV_MUST_USE clv_status clv_plan_make(const clv_graph *graph, clv_devices *devices, const clv_plan_options *options,
                                              clv_plan **plan, clv_error *error);

/* Writes the plan file atomically. */
CLV_API CLV_MUST_USE clv_status clv_plan_write(const clv_plan *plan, const char *path, clv_error *error);

/* Reads a plan file for a model that is already loaded. The file may have been edited. Transfers, steps and prices are computed
 * again. `profile` is the file of measured costs for the prices, or NULL for none.
 * Errors: CLV_INVALID_MODEL, with the position in the file, if the plan does not fit: it has another model's hash, an unknown
 * node or device, a node that is missing or listed twice, or a partition that depends on a later one. */
CLV_API CLV_MUST_USE clv_status clv_plan_read(const clv_graph *graph, clv_devices *devices, const char *path, const char *profile,
                                              clv_plan **plan, clv_error *error);

/* Destroy all sessions of the plan first. Accepts NULL. */
CLV_API void clv_plan_destroy(clv_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
