/* Shared by the files of the choice. choose.c chooses k. For the plans of one layer, choose_lists.c lists the candidate plans,
 * choose_start.c provides the starting points, and choose_layer.c runs the search. */
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
  uint32_t *ranked; /* each subgraph's plans by rank, see clv__assign_rank() */
  clv__chosen_layer *chosen;
  uint64_t *reserve; /* the unused steps of CLV__CHOOSE_RESERVE, which all k and layers share */
} clv__choosing;

/* ---- choose_lists.c ---- */

/* Lists all plans of all subgraphs, and prepares the data that the search needs about them. */
clv_status clv__choosing_make_lists(clv__choosing *c, const clv__choose_cut *cut, clv_error *error);
/* Narrows each subgraph's plans to those whose forms occur in the schedules found so far, those on one device, and, up to
 * top_k, those with the least load. The bound then refers to the kept plans. */
clv_status clv__choosing_narrow(clv__choosing *c, clv_error *error);
/* Whether two plans have the same form: the same blocks, each divided among the same devices with the same shares. The padded
 * sizes may differ, so subgraphs of different sizes can have plans of the same form. */
bool clv__choosing_same_form(const clv__pep *a, const clv__pep *b);

/* ---- choose_start.c ---- */

void clv__choosing_keep_best(clv__choosing *c, const clv__candidate *candidate, const char *from);
/* Tries each device alone and the greedy assignment; unless the effort is quick, also the same plan for all subgraphs, and
 * balanced loads. Keeps the best as starts. */
void clv__choosing_start(clv__choosing *c);
/* For two subgraphs: tries all plans in both orders, so that the best is known exactly. */
void clv__choosing_try_pairs(clv__choosing *c);

/* ---- choose_layer.c ---- */

/* A reserve of bound steps for layers whose bound is not close. All layers of one choice share it. */
#define CLV__CHOOSE_RESERVE UINT64_C(40000000)

clv_status clv__choose_layer(clv__arena *arena, const clv__costs *costs, uint32_t layer, const clv__choose_cut *cut,
                             const clv__choose_options *options, uint64_t *reserve, clv__chosen_layer *chosen, clv_error *error);

#endif
