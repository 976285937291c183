/* The plan: partitions, transfers and the steps that order them. */
#ifndef CLEAVE_SPLIT_PLAN_H
#define CLEAVE_SPLIT_PLAN_H

#include "device/device.h"
#include "ops/shapes.h"

/* Which node runs where, and why. Folded nodes have device CLV__NO_ID and cause "const". */
typedef struct clv__placement {
  const char *strategy;
  uint32_t *devices;   /* by node */
  const char **causes; /* by node: a short word ("supported", "pin", "memory", "const") */
  const char **notes;  /* by node: NULL, or a sentence for --explain */
} clv__placement;

typedef struct clv__partition {
  uint32_t device;
  uint32_t node_count;
  const clv_node_id *nodes; /* ascending */
  const clv_graph_view *view;
  uint64_t weight_bytes; /* of the constants it reads */
} clv__partition;

typedef enum clv__boundary {
  CLV__BOUNDARY_INNER, /* between partitions */
  CLV__BOUNDARY_INPUT, /* a graph input on its way to a device */
  CLV__BOUNDARY_OUTPUT /* a graph output (or kept value) on its way to the host */
} clv__boundary;

typedef struct clv__transfer {
  clv_value_id value;
  uint32_t from, to;   /* memory spaces; one of them is the host's */
  uint32_t device;     /* that does the copy: one that works in the space that is not the host's */
  uint64_t size_bytes; /* 0 when unknown until run time */
  bool size_known;
  clv__boundary boundary;
} clv__transfer;

typedef struct clv__step {
  bool is_transfer;
  uint32_t index;            /* of the partition or transfer */
  uint32_t dependency_count; /* earlier steps that must be done */
  const uint32_t *dependencies;
} clv__step;

struct clv_plan {
  clv__arena arena;
  const clv_graph *graph;
  clv_devices *devices;
  clv__shapes *shapes;
  clv__capability capability;
  clv__placement placement;
  uint32_t size_count; /* sizes given by the user */
  const clv__shape_given *sizes;
  uint32_t partition_count;
  clv__partition *partitions; /* in execution order */
  uint32_t transfer_count;
  clv__transfer *transfers; /* in execution order */
  uint32_t step_count;
  clv__step *steps;
  uint32_t kept_count;
  const clv_value_id *kept;
  const bool *is_kept;                                                   /* by value, NULL when none is */
  double time_load_ms, time_capability_ms, time_place_ms, time_split_ms; /* of making it; not in the file */
};

/* Linear cut (linear.c): runs of the node order on one device become partitions. Fills plan->partitions from plan->placement. */
clv_status clv__split_linear(clv_plan *plan, clv_error *error);

/* Fills transfers and steps from the partitions in their order (transfers.c): a value is copied at most once to a memory space.
 */
clv_status clv__split_transfers(clv_plan *plan, clv_error *error);

/* Makes the view of a partition and its byte counts; `nodes` lives in plan->arena. */
clv_status clv__partition_init(clv_plan *plan, clv__partition *partition, uint32_t device, const clv_node_id *nodes,
                               uint32_t node_count, clv_error *error);

/* Bytes that a device needs for a partition: its weights are counted apart; here inputs, outputs and the peak of what lives
 * between, 64-byte aligned. 0 when shapes are unknown. */
uint64_t clv__partition_peak_bytes(const clv_plan *plan, const clv__partition *partition);

/* The plan as JSON (plan_write.c); `timings` adds what differs between runs. The text is allocated with the graph's allocator. */
clv_status clv__plan_to_json(const clv_plan *plan, bool timings, char **text, clv_error *error);

/* An empty plan over graph and devices, with shapes inferred for the sizes and kept values resolved. */
clv_status clv__plan_create(const clv_graph *graph, clv_devices *devices, const clv_size *sizes, uint32_t size_count,
                            const char *const *keeps, uint32_t keep_count, clv_plan **plan, clv_error *error);

#endif
