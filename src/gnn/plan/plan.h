/* A plan of GNN inference and its file. It contains everything that a run needs. The file is readable JSON; the same plan
 * gives the same bytes. */
#ifndef CLEAVE_GNN_PLAN_PLAN_H
#define CLEAVE_GNN_PLAN_PLAN_H

#include "gnn/data/partition.h"
#include "gnn/plan/choose.h"

enum { CLV__GNN_PLAN_VERSION = 1 };

typedef struct clv__gnn_plan_layer {
  const char *layer; /* the layer's key in the tables */
  uint32_t stage_count;
  clv__pep *peps;     /* [k]: one per subgraph */
  uint32_t *sequence; /* [k]: subgraphs in the order that every device follows */
  uint32_t cluster_count;
  clv__cluster *clusters;
  clv__timeline timeline; /* predicted */
  double bound_ns, bound_all_ns, rounding_ns;
  const char *from;
  uint32_t merge_count;
  clv__bucket_merge *merges; /* merged executables */
} clv__gnn_plan_layer;

/* The memory of a device: its limit, the most that the run takes, and the least that the run needs, which is the need of its
 * largest block. All are 0 if the device has no limit. */
typedef struct clv__gnn_plan_memory {
  uint64_t limit_bytes, taken_bytes, least_bytes;
} clv__gnn_plan_memory;

/* Work beyond the graph itself: rows that parts gather in addition to those that they compute, and the padding for devices
 * that need fixed shapes. Sums over all layers and parts. */
typedef struct clv__gnn_overhead {
  uint64_t halo_rows, padding_rows, padding_edges;
} clv__gnn_overhead;

void clv__gnn_overhead_add(clv__gnn_overhead *overhead, clv__layer_sizes sizes, clv__layer_sizes padded);

typedef struct clv__gnn_plan_k {
  uint32_t k;
  const char *reason; /* why there is no plan; NULL: there is one */
  double makespan_ns, bound_ns;
  double busy_ns[CLV__PEP_DEVICES], idle_ns[CLV__PEP_DEVICES], single_ns[CLV__PEP_DEVICES]; /* single: INFINITY if not possible */
  uint32_t switches;
  clv__gnn_overhead overhead;
} clv__gnn_plan_k;

typedef struct clv__gnn_plan {
  clv__arena arena;
  /* The inputs that the plan was made for. */
  const char *model, *model_hash, *graph, *graph_hash, *membership_key, *tables_hash;
  const char *membership; /* the file beside the plan that has the part of each vertex; "": none */
  uint64_t seed;
  clv__table_origin origin;
  clv__machine machine; /* names, memory spaces, is_static, padding, queues, merge and switch costs */
  double exchange_ns;
  clv__gnn_plan_memory memory[CLV__PEP_DEVICES];
  /* The decisions. */
  uint32_t k, layer_count;
  clv__gnn_plan_layer *layers;
  double makespan_ns, bound_ns, best_single_ns; /* best_single_ns INFINITY: no device runs everything */
  const char *best_single_device, *why;         /* best_single_device "": there is none */
  uint32_t best_single_k, per_k_count;
  clv__gnn_plan_k *per_k;
} clv__gnn_plan;

/* A plan's information about its inputs. NULL texts become "". */
typedef struct clv__gnn_plan_names {
  const char *model, *model_hash, *graph, *graph_hash, *membership_key, *tables_hash;
  uint64_t seed;
} clv__gnn_plan_names;

/* Copies the choice into a plan. The plan outlives choice, costs and tables. */
clv_status clv__gnn_plan_make(const clv_allocator *allocator, const clv__gnn_plan_names *names, const clv__costs *costs,
                              const clv__choice *choice, double exchange_ns, clv__gnn_plan **plan, clv_error *error);
void clv__gnn_plan_destroy(clv__gnn_plan *plan); /* accepts NULL */
double clv__gnn_plan_gap(const clv__gnn_plan *plan);
double clv__gnn_plan_k_gap(const clv__gnn_plan_k *item);

clv_status clv__gnn_plan_print(const clv__gnn_plan *plan, clv__text *text, clv_error *error);
clv_status clv__gnn_plan_write(const clv__gnn_plan *plan, const char *path, clv_error *error);
/* Like clv__gnn_plan_write(), with the membership in a file beside it: plan.membership.npy for plan.json. For k = 1 no such file
 * is written. */
clv_status clv__gnn_plan_write_with(clv__gnn_plan *plan, const clv__membership *membership, const char *path, clv_error *error);
/* Reads the membership from the file that plan->membership names, which must not be "". `path` is the plan's own file; the
 * membership's file is in the same folder. Callers compare the membership with the plan (clv__gnn_plan_subgraphs()). Returns
 * CLV_NOT_FOUND if the file is not there, and CLV_INVALID_MODEL if it is damaged. */
clv_status clv__gnn_plan_read_membership(const clv__gnn_plan *plan, const char *path, const clv_allocator *allocator,
                                         clv__membership *membership, clv_error *error);
/* Parses a plan. Rejects inconsistent plans: blocks that omit stages, devices in two blocks, sequences that omit subgraphs.
 * Simulates the timelines from the parts' times, so that an edited file stays consistent. */
clv_status clv__gnn_plan_parse(const clv_allocator *allocator, const char *text, size_t size_bytes, const char *name,
                               clv__gnn_plan **plan, clv_error *error);
clv_status clv__gnn_plan_read(const clv_allocator *allocator, const char *path, clv__gnn_plan **plan, clv_error *error);

/* Computes a layer's clusters and timeline from its plans and sequence. Called when a plan is made and when it is read. */
clv_status clv__gnn_plan_layer_simulate(clv__gnn_plan *plan, clv__gnn_plan_layer *layer, clv_error *error);

#endif
