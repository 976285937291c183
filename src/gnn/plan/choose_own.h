/* What the files of the choice share. choose.c chooses k; for the plans of one layer choose_lists.c has the plans there are to
 * choose from, choose_start.c where the search begins, choose_layer.c the search. */
#ifndef CLEAVE_GNN_PLAN_CHOOSE_OWN_H
#define CLEAVE_GNN_PLAN_CHOOSE_OWN_H

#include "gnn/plan/choose.h"

enum { CLV__CHOOSING_STARTS = 4 };

typedef struct clv__choosing {
  clv__arena *arena;
  const clv__costs *costs;
  const clv__choose_options *options;
  uint32_t k, layer;
  clv__pep_list *lists;
  clv__pep_works works;
  clv__search search;
  clv__assign assign;
  clv__candidate best, trial, starts[CLV__CHOOSING_STARTS];
  const char *best_from, *start_from[CLV__CHOOSING_STARTS];
  uint32_t start_count, attempts, sequence_nodes, seed;
  uint32_t *ranked; /* plans of each subgraph, see clv__assign_rank() */
  clv__chosen_layer *chosen;
  uint64_t *reserve; /* steps of the bound that all k and layers share */
} clv__choosing;

/* ---- choose_lists.c ---- */

/* All plans of all subgraphs, and what the search needs of them. */
clv_status clv__choosing_make_lists(clv__choosing *c, const clv__choose_cut *cut, clv_error *error);
/* Keeps of each subgraph's plans the forms that the schedules found so far use, those on one device, and, up to top_k, those that
 * load the machine least. The bound is then about these. */
clv_status clv__choosing_narrow(clv__choosing *c, clv_error *error);
/* The key without padded sizes: what subgraphs of different sizes can have in common. */
bool clv__choosing_same_form(const clv__pep *a, const clv__pep *b);

/* ---- choose_start.c ---- */

void clv__choosing_keep_best(clv__choosing *c, const clv__candidate *candidate, const char *from);
/* Each device alone, the greedy's assignment; unless quick, one plan for all, and balanced loads. The best are kept as starts. */
void clv__choosing_start(clv__choosing *c);
/* Two subgraphs: all plans in both orders, so that what is best is known. */
void clv__choosing_try_pairs(clv__choosing *c);

/* ---- choose_layer.c ---- */

/* Steps of the bound for what stays open otherwise: one number for all that is chosen together. */
#define CLV__CHOOSE_RESERVE UINT64_C(40000000)

clv_status clv__choose_layer(clv__arena *arena, const clv__costs *costs, uint32_t layer, const clv__choose_cut *cut,
                             const clv__choose_options *options, uint64_t *reserve, clv__chosen_layer *chosen, clv_error *error);

#endif
