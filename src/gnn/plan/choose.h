/* The choice of k, and for it of a plan for every subgraph and layer. Layers are planned apart; between them lies a barrier. */
#ifndef CLEAVE_GNN_PLAN_CHOOSE_H
#define CLEAVE_GNN_PLAN_CHOOSE_H

#include "gnn/plan/assign.h"
#include "gnn/plan/simulate.h"

typedef enum clv__effort { CLV__EFFORT_FULL, CLV__EFFORT_QUICK } clv__effort;

/* What is planned for: the same subgraphs in every layer. */
typedef struct clv__choose_cut {
  uint32_t k;
  const clv__piece *pieces; /* [k]; they outlive the choice */
} clv__choose_cut;

typedef struct clv__choose_options {
  clv__effort effort;
  clv__pep_options peps;
  double tolerance;   /* how close, relative, the bound should come; it stops there */
  uint64_t budget;    /* of steps of the bound and of the search, for each k and layer; 0: as many as the effort has */
  double exchange_ns; /* between two layers */
  bool keeps_buckets; /* no padding beyond what each part needs, however long compiling takes */
  /* The quick mode's moves, as they are made; may be NULL. */
  void (*moves)(void *user, uint32_t k, uint32_t layer, const clv__assign_move *move, const clv__pep *from, const clv__pep *to);
  void *user;
} clv__choose_options;
#define CLV__CHOOSE_OPTIONS_INIT \
  { CLV__EFFORT_FULL, CLV__PEP_OPTIONS_INIT, 0.009, 0, 0, false, NULL, NULL }

/* Subgraphs of one PEP key, one after the other. */
typedef struct clv__cluster {
  uint32_t first, count; /* places of the sequence */
} clv__cluster;

/* Two executables of a device of fixed shapes that became one: both blocks' parts are padded to its size. */
typedef struct clv__bucket_merge {
  uint32_t device, first, last, parts; /* parts: that are padded further than they were */
  clv__layer_sizes from[2], into;
  double added_ns, saved_ns; /* by the padding, over all parts; of compiling */
} clv__bucket_merge;

typedef struct clv__chosen_layer {
  const clv__pep **peps; /* [k]: of each subgraph */
  uint32_t *sequence;    /* [k]: subgraphs in the order in which they run */
  uint32_t cluster_count;
  clv__cluster *clusters; /* in order */
  clv__timeline timeline;
  double bound_ns;                    /* no schedule at this k of the plans that were kept (Top-K) is shorter */
  double bound_all_ns;                /* nor of any of the others, with this bound, which is looser */
  double single_ns[CLV__PEP_DEVICES]; /* all of it on one device; INFINITY: it cannot */
  double rounding_ns;                 /* what the rounding of shares adds to the subgraphs' times, summed */
  const char *from;                   /* which candidate it came of */
  uint32_t merge_count;
  const clv__bucket_merge *merges; /* in the order in which they were made */
} clv__chosen_layer;

typedef struct clv__chosen_k {
  uint32_t k;
  bool has_plan;
  char reason[256];          /* where it has none */
  clv__chosen_layer *layers; /* [layer_count] */
  double makespan_ns, bound_ns, bound_all_ns, gap;
  double single_ns[CLV__PEP_DEVICES]; /* all layers */
  double busy_ns[CLV__PEP_DEVICES], idle_ns[CLV__PEP_DEVICES];
  uint32_t switches;
} clv__chosen_k;

typedef struct clv__choice {
  uint32_t layer_count, k_count, chosen;
  clv__chosen_k *items;  /* [k_count], by k; 1 is always there */
  double best_single_ns; /* over all k; INFINITY: no device runs everything */
  uint32_t best_single_device, best_single_k;
  double gain;              /* best_single_ns / makespan_ns; 0 where there is no single device */
  clv__table_origin origin; /* the least trusted of the tables that were used */
  char why[512];
} clv__choice;

/* `costs` are of the layers, on one machine. Everything in the choice lives in the arena. CLV_NOT_SUPPORTED with the reason where
 * no k has a plan. The same inputs give the same choice. */
clv_status clv__choose(clv__arena *arena, const clv__costs *costs, uint32_t layer_count, const clv__choose_cut *cuts,
                       uint32_t cut_count, const clv__choose_options *options, clv__choice *choice, clv_error *error);

#endif
