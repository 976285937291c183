/* Chooses k, and for that k a plan for every subgraph and layer. Each layer is planned separately; a barrier separates layers. */
#ifndef CLEAVE_GNN_PLAN_CHOOSE_H
#define CLEAVE_GNN_PLAN_CHOOSE_H

#include "gnn/plan/assign.h"
#include "gnn/plan/simulate.h"

typedef enum clv__effort { CLV__EFFORT_FULL, CLV__EFFORT_QUICK } clv__effort;

/* One partitioning to plan for: the same subgraphs in every layer. */
typedef struct clv__choose_cut {
  uint32_t k;
  const clv__subgraph_sizes *subgraphs; /* [k]; must outlive the choice */
} clv__choose_cut;

typedef struct clv__choose_options {
  clv__effort effort;
  clv__pep_options peps;
  double tolerance;   /* relative tolerance of the bound; the search stops when it is reached */
  uint64_t budget;    /* steps of the bound and of the search, per k and layer; 0: the effort's default */
  double exchange_ns; /* the time between the end of a layer and the start of the next */
  bool keeps_buckets; /* never merge buckets: pad each part no more than its own size requires, however long compiling takes */
  /* Called for each move of the quick mode; may be NULL. */
  void (*moves)(void *user, uint32_t k, uint32_t layer, const clv__assign_move *move, const clv__pep *from, const clv__pep *to);
  void *user;
} clv__choose_options;
#define CLV__CHOOSE_OPTIONS_INIT \
  { CLV__EFFORT_FULL, CLV__PEP_OPTIONS_INIT, 0.009, 0, 0, false, NULL, NULL }

/* Consecutive subgraphs with the same PEP key. */
typedef struct clv__cluster {
  uint32_t first, count; /* the first position in the sequence; the number of subgraphs */
} clv__cluster;

/* Two merged executables of a device that needs fixed shapes: the parts of both are padded to the merged size. */
typedef struct clv__bucket_merge {
  uint32_t device, first, last, parts; /* parts: the number of parts that receive more padding */
  clv__layer_sizes from[2], into;
  double added_ns, saved_ns; /* time added by the padding over all parts; compile time saved */
} clv__bucket_merge;

typedef struct clv__chosen_layer {
  const clv__pep **peps; /* [k]: one per subgraph */
  uint32_t *sequence;    /* [k]: subgraphs in execution order */
  uint32_t cluster_count;
  clv__cluster *clusters; /* in sequence order */
  clv__timeline timeline;
  double bound_ns;                    /* lower bound on all schedules at this k with the kept plans (Top-K) */
  double bound_all_ns;                /* lower bound with any plans, and therefore looser */
  double single_ns[CLV__PEP_DEVICES]; /* the makespan with everything on that device; INFINITY: not possible */
  double rounding_ns;                 /* sum of the time that rounding the shares adds to the subgraphs */
  const char *from;                   /* how the schedule was found: "greedy", "annealing", … */
  uint32_t merge_count;
  const clv__bucket_merge *merges; /* in the order of merging */
} clv__chosen_layer;

typedef struct clv__chosen_k {
  uint32_t k;
  bool has_plan;
  char reason[256];          /* why there is no plan */
  clv__least_memory least;   /* the least memory with which there would be a plan; size 0: a lack of memory is not the reason */
  clv__chosen_layer *layers; /* [layer_count] */
  double makespan_ns, bound_ns, bound_all_ns, gap; /* gap: by how much makespan_ns exceeds bound_ns, relative to bound_ns */
  double single_ns[CLV__PEP_DEVICES];              /* the time of all layers on that device alone; INFINITY: not possible */
  double busy_ns[CLV__PEP_DEVICES], idle_ns[CLV__PEP_DEVICES];
  uint32_t switches;
} clv__chosen_k;

typedef struct clv__choice {
  uint32_t layer_count, k_count, chosen;
  clv__chosen_k *items;  /* [k_count], sorted by k; 1 is always included */
  double best_single_ns; /* over all k; INFINITY: no device runs everything */
  uint32_t best_single_device, best_single_k;
  double gain;              /* best_single_ns / makespan_ns; 0 if no device can run everything */
  clv__table_origin origin; /* the least trusted origin among the tables used */
  char why[512];
} clv__choice;

/* Chooses k, and a plan for every subgraph and layer. `costs` has one entry per layer, all for one machine. The arena owns
 * everything in the choice. If no k has a plan, returns CLV_TOO_LARGE if more memory would help, otherwise CLV_NOT_SUPPORTED;
 * both with the reason of every k. The same inputs give the same choice. */
clv_status clv__choose(clv__arena *arena, const clv__costs *costs, uint32_t layer_count, const clv__choose_cut *cuts,
                       uint32_t cut_count, const clv__choose_options *options, clv__choice *choice, clv_error *error);

#endif
