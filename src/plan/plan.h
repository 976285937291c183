/* The plan: partitions, transfers and the steps that order them. */
#ifndef CLEAVE_PLAN_PLAN_H
#define CLEAVE_PLAN_PLAN_H

#include "analysis/open.h"
#include "cost/cost.h"
#include "device/device.h"
#include "split/split.h"

/* The device and the cause of each node. Folded nodes have device CLV__NO_ID and cause "const". */
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
  /* Some sizes are known only at run time but the device needs fixed sizes, so the partition is compiled separately for each
   * bucket (compile/bucket.h). */
  bool is_bucketed;
  bool is_hosted;                /* it has only views that the host renames (hosted.c): no executable, and no step of the plan */
  const clv_graph_view *typical; /* if bucketed: the view at typical sizes, used before the sizes are known */
  uint64_t weight_bytes;         /* size of the constants that it reads */
} clv__partition;

typedef enum clv__boundary {
  CLV__BOUNDARY_INNER,  /* a value that is copied for a partition on another device */
  CLV__BOUNDARY_INPUT,  /* a graph input that is copied to a device */
  CLV__BOUNDARY_OUTPUT, /* a graph output (or kept value) that is copied to the host */
  CLV__BOUNDARY_WEIGHT  /* a streamed weight: copied again before every partition that reads it */
} clv__boundary;

typedef struct clv__transfer {
  clv_value_id value;
  uint32_t from, to;   /* memory spaces; one of them is the host's */
  uint32_t device;     /* the device that performs the copy; it works in the space that is not the host's */
  uint64_t size_bytes; /* 0 when unknown until run time */
  bool size_known;
  clv__boundary boundary;
} clv__transfer;

/* Whether a device gets nodes that it prefers although their weights are in another memory. */
typedef enum clv__offload {
  CLV__OFFLOAD_AUTO, /* only if the node gains more time per run than the copies of its weights take */
  CLV__OFFLOAD_ON,
  CLV__OFFLOAD_OFF
} clv__offload;

typedef struct clv__step {
  bool is_transfer;
  uint32_t index;            /* index of the partition or transfer */
  uint32_t dependency_count; /* number of earlier steps that must complete first */
  const uint32_t *dependencies;
} clv__step;

/* The memory that a device with a limit needs (memory_need.c). All 0 for other devices. */
typedef struct clv__memory_need {
  uint64_t weight_bytes;  /* resident weights that executables do not hold themselves */
  uint64_t value_bytes;   /* boundary values and streamed weights in the device's memory space */
  uint64_t scratch_bytes; /* one block that all partitions use in turn, as large as the most that one of them needs */
  uint64_t held_bytes;    /* memory that executables hold, including the weights that are part of them */
  uint64_t total_bytes;   /* the need of this device and of all that share its memory */
  bool is_guessed;        /* there is so much memory that the compiler was not asked: scratch_bytes is a generous guess */
  uint32_t too_large;     /* a partition that the compiler rejects as too large; CLV__NONE: there is none */
} clv__memory_need;

/* The compiler's answer about a partition (memory_need.c), found by the partition's device, nodes and streamed weights. */
typedef struct clv__scratch_answer clv__scratch_answer;
enum { CLV__ANSWER_SLOTS = 256 };

struct clv_plan {
  clv__arena arena;
  const clv_graph *graph;
  clv_devices *devices;
  clv__shapes *shapes;
  const clv__open *open; /* NULL: every size is known */
  clv__capability capability;
  bool is_supposed; /* a what-if plan: some rejected operators count as supported, so it cannot make a session */
  clv__placement placement;
  uint32_t size_count; /* number of sizes that the user gave */
  const clv__shape_given *sizes;
  uint32_t kept_count;
  const clv_value_id *kept;
  const bool *is_kept; /* by value; NULL if no value is kept */

  /* The input of placing and splitting (problem.c), and the results. */
  clv__cost_model *costs;
  const char *profile;      /* hash of the profile's content, NULL: none */
  const char *profile_path; /* NULL: none, or not from a file */
  clv__problem *problem;
  const uint32_t *problem_nodes; /* by graph node: its number in the problem, CLV__NONE for folded nodes */
  uint32_t *problem_devices;     /* by problem node */
  clv__reader_counts readers;    /* for the placement `problem_devices` */
  clv__cut cut;
  const uint16_t *streamed; /* by weight: bits of the devices it is streamed to; NULL: none */
  clv__copies copies;
  uint32_t hosted_count; /* partitions of hosted views */
  clv_value_id *sources; /* by value: the source of a hosted view, see clv__plan_storage(); NULL: there is no hosted view */
  const uint32_t *const *claims; /* see clv__place_input */
  const char *note;              /* from the strategy: NULL, or a sentence */
  uint32_t pass_count;           /* number of recorded passes of `propagate`; 0 unless requested */
  const struct clv__pass *passes;

  uint32_t partition_count;   /* those of hosted views included */
  clv__partition *partitions; /* in execution order: the partitions of `cut` */
  uint32_t transfer_count;
  clv__transfer *transfers; /* in execution order: the transfers of `copies` */
  uint32_t step_count;
  clv__step *steps;

  clv__split_mode split;
  bool split_is_given; /* the user or the file chose `split`; otherwise it is the strategy's default */
  clv__objective objective;
  clv__offload offload;

  uint32_t gone;                          /* bits of the devices that were removed, before the plan was made or later */
  const char *gone_why[CLV__MAX_DEVICES]; /* by device: "removed: …" */

  /* For a plan derived from another one: without devices, with a divided partition or with another strategy (plan/make.h).
   * Shapes, prices and the user's options belong to the original plan, which must outlive this one. */
  const clv_plan *origin; /* the original plan; NULL: this is an original */
  bool has_other_weights; /* an original that belongs to another one: clv__plan_with_weights() */
  const uint32_t
      *same_partitions; /* by partition: that of the plan it was made from whose executable it can reuse, or CLV__NO_ID */

  clv__memory_need needs[CLV__MAX_DEVICES];        /* by device */
  uint64_t unforeseen_bytes[CLV__MAX_DEVICES];     /* by device: most bytes compilers needed beyond what strategies count */
  clv__scratch_answer *answers[CLV__ANSWER_SLOTS]; /* hash table, by the low bits */

  clv__price price;
  clv__bounds bounds;
  uint64_t predicted_ns, lower_bound_ns;                                               /* by the objective */
  double time_load_ms, time_capability_ms, time_cost_ms, time_place_ms, time_split_ms; /* of making the plan; not in the file */
};

/* Returns the size up to which plans for these devices fold constants: see clv__shapes_infer(). */
size_t clv__plan_fold_limit(const clv_devices *devices);

/* Returns the types, by value, with their sizes as far as planning knows them, and with typical sizes otherwise. */
static inline const clv_tensor *clv__plan_sized_types(const clv_plan *plan) {
  return plan->open != NULL && plan->open->typical != NULL ? plan->open->typical : plan->shapes->types;
}

/* Returns the value in whose memory `value` is stored in the memory space: normally `value` itself; if it is a hosted view in
 * that space, its source, whose bytes it shares. */
static inline clv_value_id clv__plan_storage(const clv_plan *plan, clv_value_id value, uint32_t space) {
  clv_value_id source = plan->sources == NULL ? CLV__NO_ID : plan->sources[value];
  if (source == CLV__NO_ID) return value;
  uint32_t device = plan->placement.devices[plan->graph->values[value].producer];
  return plan->devices->items[device].space == space ? source : value;
}
/* Returns whether the node is a view: its only output has the bytes of its first input, which is not a constant. */
bool clv__plan_is_view(const clv_plan *plan, const clv__node *node);
/* Finds the views that a device rejects, but that need no work of the device: the bytes of their source in its memory are also
 * theirs, and only the host knows them under another type (hosted.c). From then on clv__capability_reason() returns NULL, which
 * means yes, for such a view on this device. */
clv_status clv__plan_host_views(clv_plan *plan, clv_error *error);
/* Sets plan->sources and plan->hosted_count from the partitions. */
clv_status clv__plan_name_hosted(clv_plan *plan, clv_error *error);

/* Returns whether some graph input has a size that is known only at run time. */
bool clv__plan_has_open_inputs(const clv_plan *plan);

/* Returns the view of a partition with sizes as far as planning knows them, and with typical sizes if the partition is
 * bucketed. */
static inline const clv_graph_view *clv__partition_sized(const clv__partition *partition) {
  return partition->is_bucketed ? partition->typical : partition->view;
}

/* The user's choices, by graph node or value: a device, or CLV__NO_ID. Values of every kind can have one: weights, graph
 * inputs, outputs, and values between nodes. */
typedef struct clv__fixed {
  const uint32_t *nodes, *values;
  bool is_grouped; /* a plan file gives the partitions. So a node that alone reads more values than the device allows is valid:
                      its partition may read fewer */
} clv__fixed;

/* Computes prices and fills plan->problem (problem.c). `fixed` may be NULL, and so may its arrays. */
clv_status clv__plan_set_problem(clv_plan *plan, const clv__fixed *fixed, const clv__profile *profile, clv_error *error);

/* Asks devices which weights they accept as inputs (streams.c) and fills problem->streams. clv__plan_set_problem() calls it. */
clv_status clv__plan_ask_streams(clv_plan *plan, clv__problem *problem, clv_error *error);
/* A generous guess of the memory that the kernels of a partition need in addition to values and weights. */
#define CLV__SCRATCH_GUESS_BYTES ((uint64_t)16 << 20)

/* Returns, as bits, the devices with memory of their own whose limit may be too small. The limit of every other such device
 * leaves room for all values and weights twice, and for all of them once together with a guess of the scratch. */
uint32_t clv__plan_small_devices(const clv__problem *problem);
/* Asks the compilers of small devices for the scratch of each node alone (scratch.c), and replaces plan->problem by a copy with
 * scratch_bytes. Does nothing if plan->problem has them already. The caller holds the devices' lock. */
clv_status clv__plan_ask_scratch(clv_plan *plan, clv_error *error);
/* Asks devices which nodes they prefer to run although the weights are elsewhere, and fills problem->prefers (offload.c).
 * clv__plan_set_problem() calls it; everything else of `problem` must be filled. */
clv_status clv__plan_ask_prefers(clv_plan *plan, const clv_graph_view *whole, clv__problem *problem, clv_error *error);

/* Adopts a cut of plan->problem (plan.c): builds the views of its partitions and sets plan->placement from it. `streamed`: see
 * clv__split_copies(). The cut and `streamed` must live in the plan's arena. */
clv_status clv__plan_set_cut(clv_plan *plan, const clv__cut *cut, const uint16_t *streamed, clv_error *error);
/* Sets plan->needs from the cut and the streamed weights (memory_need.c). The caller holds the devices' lock. */
clv_status clv__plan_memory_need(clv_plan *plan, clv_error *error);
/* Returns whether the need of the device is within its limit. */
bool clv__plan_fits(const clv_plan *plan, uint32_t device);

/* Adds the transfers, the steps, the price, the bounds and the memory (steps.c). */
clv_status clv__plan_set_steps(clv_plan *plan, clv_error *error);

/* Computes the change of the node + transfer + fusion cost if a single node moves to `device`. Returns false if the device
 * cannot run it, or if no device runs the node because its outputs are known at planning time. */
bool clv__plan_move_price(const clv_plan *plan, clv_node_id node, uint32_t device, int64_t *delta_ns);
/* Returns (predicted - bound) / bound, or a negative number if that is unknown. */
double clv__plan_gap(const clv_plan *plan);

/* Returns the bytes that a device needs for a partition without its weights: its inputs, its outputs and the peak of the values
 * between them, 64-byte aligned. Values of unknown size count as 0 bytes. Returns 0 if memory runs out. */
uint64_t clv__view_peak_bytes(const clv_allocator *allocator, const clv_graph_view *view);
uint64_t clv__partition_peak_bytes(const clv_plan *plan, const clv__partition *partition);

/* Writes the plan as JSON (file_write.c). `timings` adds how long the parts of planning took, which differs each time. The text
 * is allocated with the graph's allocator. */
clv_status clv__plan_to_json(const clv_plan *plan, bool timings, char **text, clv_error *error);

/* Works like clv_plan_write(), but for `graph`, the same model loaded from another file. `profile` is the path of the profile to
 * write into the plan file, or NULL. */
clv_status clv__plan_write_for(const clv_plan *plan, const clv_graph *graph, const char *profile, const char *path,
                               clv_error *error);

/* Works like clv_plan_read(), but reads from memory (file_read.c). `profile` may be NULL. */
clv_status clv__plan_parse(const clv_graph *graph, clv_devices *devices, const char *text, size_t size_bytes,
                           const clv__profile *profile, clv_plan **plan, clv_error *error);

/* Creates an empty plan for a graph and devices. Infers the shapes for the given sizes, and looks up the values to keep by
 * their names. */
clv_status clv__plan_create(const clv_graph *graph, clv_devices *devices, const clv_size *sizes, uint32_t size_count,
                            const char *const *keeps, uint32_t keep_count, clv_plan **plan, clv_error *error);

#endif
