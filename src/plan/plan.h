/* The plan: partitions, transfers and the steps that order them. */
#ifndef CLEAVE_PLAN_PLAN_H
#define CLEAVE_PLAN_PLAN_H

#include "analysis/open.h"
#include "cost/cost.h"
#include "device/device.h"
#include "split/split.h"

/* Which node runs where, and why. Folded nodes have device CLV__NO_ID and cause "const". */
typedef struct clv__placement {
  const char *strategy;
  uint32_t *devices;   /* by node */
  const char **causes; /* by node: a short word ("supported", "usr", "memory", "const") */
  const char **notes;  /* by node: NULL, or a sentence for --explain */
} clv__placement;

typedef struct clv__partition {
  uint32_t device;
  uint32_t node_count;
  const clv_node_id *nodes; /* ascending */
  const clv_graph_view *view;
  /* Sizes are open, and the device takes fixed ones: it is compiled for a bucket at a time (compile/bucket.h). */
  bool is_bucketed;
  const clv_graph_view *typical; /* where it is: the same at typical sizes, to be compiled and counted before any is known */
  uint64_t weight_bytes;         /* of the constants it reads */
} clv__partition;

typedef enum clv__boundary {
  CLV__BOUNDARY_INNER,  /* between partitions */
  CLV__BOUNDARY_INPUT,  /* a graph input on its way to a device */
  CLV__BOUNDARY_OUTPUT, /* a graph output (or kept value) on its way to the host */
  CLV__BOUNDARY_WEIGHT  /* a streamed weight: copied again before every partition that reads it */
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
  const clv__open *open; /* NULL: every size is known */
  clv__capability capability;
  bool is_supposed; /* some verdict was turned into a yes to see what it would bring: no session can be made */
  clv__placement placement;
  uint32_t size_count; /* sizes given by the user */
  const clv__shape_given *sizes;
  uint32_t kept_count;
  const clv_value_id *kept;
  const bool *is_kept; /* by value, NULL when none is */

  /* What placing and splitting worked on (problem.c), and what they came to. */
  clv__cost_model *costs;
  const char *profile;      /* hash of the profile's content, NULL: none */
  const char *profile_path; /* NULL: none, or not from a file */
  const clv__problem *problem;
  const uint32_t *problem_nodes; /* by graph node: its number there, CLV__NONE for folded ones */
  uint32_t *problem_devices;     /* by problem node */
  clv__reader_counts readers;    /* of that placement */
  clv__cut cut;
  const uint16_t *streamed; /* by weight: bits of devices that it is streamed to; NULL: none */
  clv__moves moves;
  const uint32_t *const *claims; /* as for clv__place_input */
  const char *note;              /* of the strategy: NULL, or a sentence */
  uint32_t pass_count;           /* of `propagate`, where they were asked for */
  const struct clv__pass *passes;

  uint32_t partition_count;
  clv__partition *partitions; /* in execution order: those of `cut` */
  uint32_t transfer_count;
  clv__transfer *transfers; /* in execution order: those of `moves` */
  uint32_t step_count;
  clv__step *steps;

  clv__split_mode split;
  bool split_is_given; /* by the user or the file: not the strategy's own */
  clv__objective objective;

  uint32_t gone;                          /* bits of devices that were taken out, or given up before it was made */
  const char *gone_why[CLV__MAX_DEVICES]; /* by device: "taken out: …" */
  /* Of a plan made from another one without some devices (plan/without.c). Shapes, prices and what the options said are the
   * first one's, which must outlive it. */
  const clv_plan *origin;          /* the first one; NULL: it is one itself */
  const uint32_t *same_partitions; /* by partition: the one of the plan before whose executable it can use, or CLV__NO_ID */

  clv__price price;
  clv__bounds bounds;
  uint64_t predicted_ns, lower_bound_ns;                                               /* of the objective */
  double time_load_ms, time_capability_ms, time_cost_ms, time_place_ms, time_split_ms; /* of making it; not in the file */
};

/* By value: types as far as planning can tell sizes, typical ones where they are open. */
static inline const clv_tensor *clv__plan_sized_types(const clv_plan *plan) {
  return plan->open != NULL && plan->open->typical != NULL ? plan->open->typical : plan->shapes->types;
}

/* Whether the size of a graph input is left to the run. */
bool clv__plan_has_open_inputs(const clv_plan *plan);

/* A partition with its sizes as far as planning can tell: typical ones where it is bucketed. */
static inline const clv_graph_view *clv__partition_sized(const clv__partition *partition) {
  return partition->is_bucketed ? partition->typical : partition->view;
}

/* What the user fixed, by graph node or value: a device, or CLV__NO_ID. Values are inputs, outputs, state and weights. */
typedef struct clv__fixed {
  const uint32_t *nodes, *values;
} clv__fixed;

/* Works out prices and fills plan->problem (problem.c). `fixed` may be NULL, and so may its arrays. */
clv_status clv__plan_set_problem(clv_plan *plan, const clv__fixed *fixed, const clv__profile *profile, clv_error *error);

/* Which weights its devices take as inputs (streams.c): fills problem->streams, and is part of the above. */
clv_status clv__plan_ask_streams(clv_plan *plan, clv__problem *problem, clv_error *error);

/* Takes a cut of plan->problem as the plan's partitions (plan.c): their views, and plan->placement by the cut. `streamed` as for
 * clv__split_moves(); it and the cut live in the plan's arena. */
clv_status clv__plan_set_cut(clv_plan *plan, const clv__cut *cut, const uint16_t *streamed, clv_error *error);
/* Then the transfers, the steps, the price and the bounds (steps.c). */
clv_status clv__plan_set_steps(clv_plan *plan, clv_error *error);

/* By how much node + transfer + fusion cost changes where a node alone moves to `device`. False where the device cannot run it,
 * or the node runs nowhere. */
bool clv__plan_move_price(const clv_plan *plan, clv_node_id node, uint32_t device, int64_t *delta_ns);
/* (predicted - bound) / bound; negative where it cannot be said. */
double clv__plan_gap(const clv_plan *plan);

/* Bytes that a device needs for a partition: its weights are counted apart; here inputs, outputs and the peak of what lives
 * between, 64-byte aligned. 0 when shapes are unknown. */
uint64_t clv__partition_peak_bytes(const clv_plan *plan, const clv__partition *partition);

/* The plan as JSON (file_write.c); `timings` adds what differs between runs. The text is allocated with the graph's allocator. */
clv_status clv__plan_to_json(const clv_plan *plan, bool timings, char **text, clv_error *error);

/* clv_plan_write() as a plan of `graph`, which is the same model loaded from another file; `profile`: the file of measured costs
 * that it names, or NULL. */
clv_status clv__plan_write_for(const clv_plan *plan, const clv_graph *graph, const char *profile, const char *path,
                               clv_error *error);

/* clv_plan_read() of a text in memory; `profile` may be NULL (file_read.c). */
clv_status clv__plan_parse(const clv_graph *graph, clv_devices *devices, const char *text, size_t size_bytes,
                           const clv__profile *profile, clv_plan **plan, clv_error *error);

/* An empty plan over graph and devices, with shapes inferred for the sizes and kept values resolved. */
clv_status clv__plan_create(const clv_graph *graph, clv_devices *devices, const clv_size *sizes, uint32_t size_count,
                            const char *const *keeps, uint32_t keep_count, clv_plan **plan, clv_error *error);

#endif
