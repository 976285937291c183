/* Reading a plan: its steps, partitions, transfers and nodes, with their prices.
 *
 * Functions that fill a struct copy as many bytes as its struct_size says, which the caller sets first. They return false, and
 * fill it with zeros, for an index beyond the count. Strings and arrays are valid as long as the plan. All times are predictions
 * in whole nanoseconds, from the plan's profile. Any thread may call these functions.
 *
 * Unstable: may change until 1.0. */
#ifndef CLEAVE_PLAN_CONTENTS_H
#define CLEAVE_PLAN_CONTENTS_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CLV_NO_INDEX UINT32_MAX /* in place of an index: there is none */

/* A predicted time, and a lower bound on the time of every plan that computes each node once. */
typedef struct clv_time_bound {
  uint64_t predicted_ns;
  uint64_t bound_ns;
} clv_time_bound;

typedef struct clv_plan_info {
  uint32_t struct_size;
  uint32_t step_count;
  uint32_t partition_count;
  uint32_t transfer_count;
  uint32_t node_count;       /* of the graph; some are folded and do not run */
  const char *strategy;      /* "optimal" */
  const char *split;         /* "convex" */
  const char *objective;     /* which of the three times below the plan minimises: "latency", for example */
  clv_time_bound latency;    /* all steps one after the other */
  clv_time_bound overlap;    /* one run with devices and copies working at the same time */
  clv_time_bound throughput; /* with many runs in flight: the time per run of the busiest device, or of one device's copies if
                                these take longer */
  double gap;                /* (predicted - bound) / bound of the objective; negative: unknown */
} clv_plan_info;
CLV_API void clv_plan_get_info(const clv_plan *plan, clv_plan_info *info);

/* A step is a partition or a transfer. Steps are in an order in which they can run. */
typedef struct clv_plan_step_info {
  uint32_t struct_size;
  bool is_transfer;
  uint32_t index;               /* of the transfer or the partition */
  uint32_t dependency_count;    /* steps that must complete first */
  const uint32_t *dependencies; /* their indices, ascending */
} clv_plan_step_info;
CLV_API bool clv_plan_step(const clv_plan *plan, uint32_t index, clv_plan_step_info *info);

typedef struct clv_partition_info {
  uint32_t struct_size;
  uint32_t device; /* index into the devices that the plan was made for */
  uint32_t node_count;
  const uint32_t *nodes; /* their indices in the graph, ascending */
  uint32_t input_count;  /* values that it reads from outside, constants not included; see clv_plan_partition_input() */
  uint32_t output_count;
  uint64_t weight_bytes; /* of the constants that it reads */
  uint64_t predicted_ns; /* launch included */
} clv_partition_info;
CLV_API bool clv_plan_partition(const clv_plan *plan, uint32_t index, clv_partition_info *info);
/* The name of a value that a partition reads or computes. NULL for an index beyond a count. */
CLV_API const char *clv_plan_partition_input(const clv_plan *plan, uint32_t partition, uint32_t index);
CLV_API const char *clv_plan_partition_output(const clv_plan *plan, uint32_t partition, uint32_t index);

typedef enum clv_transfer_kind {
  CLV_TRANSFER_INNER = 0,  /* a value between two partitions */
  CLV_TRANSFER_INPUT = 1,  /* a graph input, to a device */
  CLV_TRANSFER_OUTPUT = 2, /* a graph output or a kept value, to the host */
  CLV_TRANSFER_WEIGHT = 3  /* a weight that is streamed to a device in every run */
} clv_transfer_kind;

typedef struct clv_transfer_info {
  uint32_t struct_size;
  clv_transfer_kind kind;
  const char *value; /* its name */
  const char *from;  /* memory spaces: "host" and others, see clv_device_info */
  const char *to;
  uint64_t size_bytes; /* 0 if it is known only at run time */
  uint64_t predicted_ns;
} clv_transfer_info;
CLV_API bool clv_plan_transfer(const clv_plan *plan, uint32_t index, clv_transfer_info *info);

typedef struct clv_placed_node_info {
  uint32_t struct_size;
  uint32_t device;    /* CLV_NO_INDEX: folded, because its value is known before the run */
  uint32_t partition; /* CLV_NO_INDEX: folded */
  const char *name;   /* never empty: `Op#index` if the model has no name for the node, or repeats it */
  const char *op;
  const char *cause; /* the rule that chose the device; docs/placement.md lists them */
  const char *note;  /* a sentence that explains the cause; NULL: none */
} clv_placed_node_info;
CLV_API bool clv_plan_node(const clv_plan *plan, uint32_t index, clv_placed_node_info *info);
/* Why a device cannot run a node. NULL if it can, or if the node is folded or an index is beyond its count. */
CLV_API const char *clv_plan_node_refusal(const clv_plan *plan, uint32_t node, uint32_t device);
/* Computes by how many nanoseconds the plan's time would grow if only this node moved to `device`. Negative: it would shrink.
 * Only the times of nodes and transfers count, with the time that fused nodes save; launches and memory do not. Returns false
 * if the device cannot run the node, or if the node is folded or an index is beyond its count. */
CLV_API bool clv_plan_move_ns(const clv_plan *plan, uint32_t node, uint32_t device, int64_t *delta_ns);

/* ---- The values of runs ---- */

/* The type of a graph input in runs of this plan; sizes that the plan leaves open are negative. NULL for an index beyond the
 * count of inputs. Valid as long as the plan. */
CLV_API const clv_tensor *clv_plan_input_type(const clv_plan *plan, uint32_t index);
/* The outputs of a run: those of the graph, then the values that clv_plan_options.keeps names. NULL for an index beyond the
 * count. Valid as long as the plan. */
CLV_API uint32_t clv_plan_output_count(const clv_plan *plan);
CLV_API const char *clv_plan_output_name(const clv_plan *plan, uint32_t index);
CLV_API const clv_tensor *clv_plan_output_type(const clv_plan *plan, uint32_t index);
/* Computes to which sizes devices with fixed shapes pad the sizes of a run that the plan leaves open. `sizes` has the size of
 * each symbol of the graph, `symbol_count` of them, and receives the padded sizes; negative sizes stay as they are. `multiple` is
 * that of clv_session_options.bucket_multiple. Sets `pads` to whether any partition pads; otherwise the sizes stay as they are.
 * Errors: CLV_INVALID_ARGUMENT for a wrong count; CLV_OUT_OF_MEMORY. */
CLV_API CLV_MUST_USE clv_status clv_plan_pad_sizes(const clv_plan *plan, uint32_t multiple, int64_t *sizes, uint32_t symbol_count,
                                                   bool *pads, clv_error *error);

/* Makes the text of the plan file, which docs/plan-file.md describes, without writing a file: JSON, terminated by a zero byte.
 * Free it with clv_text_free().
 * Errors: CLV_OUT_OF_MEMORY; CLV_IO_ERROR if the model's file changed after it was loaded. */
CLV_API CLV_MUST_USE clv_status clv_plan_json(const clv_plan *plan, char **text, clv_error *error);

#ifdef __cplusplus
}
#endif
#endif
