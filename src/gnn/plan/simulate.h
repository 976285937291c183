/* The schedule of one layer over the timelines of the devices. Subgraphs come in one sequence, which every device keeps to; runs
 * of it with the same PEP key are clusters. Between clusters there is no barrier: a device goes on to the next as soon as its own
 * work is done, and pays its switch_ns. Blocks are stages of a pipeline: a task begins when its device is free, the block
 * before it done, and, within a cluster, the block behind it done with the subgraph queue_depth places earlier, whose buffer it
 * fills. */
#ifndef CLEAVE_GNN_PLAN_SIMULATE_H
#define CLEAVE_GNN_PLAN_SIMULATE_H

#include "gnn/plan/pep.h"

enum { CLV__QUEUE_DEPTH = 8 }; /* at most */

/* What a schedule needs of a plan. */
typedef struct clv__pep_work {
  uint64_t key;
  uint8_t block_count, part_counts[CLV__PEP_BLOCKS], devices[CLV__PEP_BLOCKS][CLV__PEP_DEVICES];
  double times_ns[CLV__PEP_BLOCKS][CLV__PEP_DEVICES], merge_ns[CLV__PEP_BLOCKS];
} clv__pep_work;

void clv__pep_work_of(const clv__pep *pep, clv__pep_work *work);

/* What each device does of it: no schedule is shorter than the sum over its plans. */
static inline void clv__pep_work_add(const clv__pep_work *work, double sign, double loads[CLV__PEP_DEVICES]) {
  for (uint32_t b = 0; b < work->block_count; ++b) {
    for (uint32_t i = 0; i < work->part_counts[b]; ++i) loads[work->devices[b][i]] += sign * work->times_ns[b][i];
  }
}

static inline double clv__most_loaded(const double loads[CLV__PEP_DEVICES]) {
  double most = 0;
  for (uint32_t d = 0; d < CLV__PEP_DEVICES; ++d) most = loads[d] > most ? loads[d] : most;
  return most;
}

typedef struct clv__task_time {
  uint32_t place, block, device; /* of the sequence */
  double start_ns, end_ns;
} clv__task_time;

typedef struct clv__timeline {
  double makespan_ns;
  double busy_ns[CLV__PEP_DEVICES]; /* with switches */
  double idle_ns[CLV__PEP_DEVICES]; /* up to the makespan */
  uint32_t cluster_count, switches; /* clusters after the first; a device's changes, each paid for */
} clv__timeline;

/* `sequence[i]` runs at place i. */
double clv__simulate_time(const clv__machine *machine, const clv__pep_work *const *sequence, uint32_t count);
/* The same; where it is above limit_ns it may be INFINITY instead, as soon as that shows. `loads`: clv__pep_work_add() of all. */
double clv__simulate_within(const clv__machine *machine, const clv__pep_work *const *sequence, uint32_t count,
                            const double loads[CLV__PEP_DEVICES], double limit_ns);
/* The same with all that can be said; `tasks`, which may be NULL, has room for count * CLV__PEP_DEVICES and gets them in the
 * order of the sequence. */
void clv__simulate(const clv__machine *machine, const clv__pep_work *const *sequence, uint32_t count, clv__timeline *timeline,
                   clv__task_time *tasks, uint32_t *task_count);

/* What is searched: which plan each subgraph has, and the sequence. */
typedef struct clv__candidate {
  uint32_t count;
  uint32_t *choices;  /* [count]: of subgraph i's works */
  uint32_t *sequence; /* [count]: subgraphs */
  double makespan_ns;
} clv__candidate;

/* All plans of all subgraphs: works[offsets[i] + choice]. */
typedef struct clv__pep_works {
  const clv__machine *machine;
  uint32_t count;
  const uint32_t *offsets; /* [count + 1] */
  const clv__pep_work *items;
} clv__pep_works;

/* Room for the search, of count each. */
typedef struct clv__search_place clv__search_place;
typedef struct clv__search_memory clv__search_memory;
typedef struct clv__search {
  const clv__pep_works *works;
  const clv__pep_work **sequence;
  uint32_t *trial, *best;
  clv__search_place *places;
  clv__arena *arena;
  clv__search_memory *memory; /* of clv__search_sequences(): made when first needed */
  uint32_t generation, turn;
  uint64_t budget; /* simulated tasks that are left */
} clv__search;

clv_status clv__search_init(clv__search *search, clv__arena *arena, const clv__pep_works *works, clv_error *error);
clv_status clv__candidate_init(clv__candidate *candidate, clv__arena *arena, uint32_t count, clv_error *error);
void clv__candidate_copy(clv__candidate *to, const clv__candidate *from);

/* A sequence for what has been chosen: clusters, each by Johnson's rule (first block against the rest). Sets makespan_ns. */
void clv__search_begin(clv__search *search, clv__candidate *candidate);
/* The same, then whatever moving clusters and subgraphs about brings. */
void clv__search_order(clv__search *search, clv__candidate *candidate);
/* Sequences for what has been chosen, all that can be below `goal_ns`; what is better than the candidate becomes it. Answers what
 * no sequence of these plans is below: up to goal_ns, and 0 where `nodes` were spent before anything was known; what is left of
 * them stays there. It is found without switches and with long queues, and so may be a little less than the best sequence. */
double clv__search_sequences(clv__search *search, clv__candidate *candidate, double goal_ns, uint32_t *nodes);
/* Changes plans too, one subgraph at a time, as long as the simulated makespan falls. Never makes it worse. */
void clv__search_plans(clv__search *search, clv__candidate *candidate);
/* The same by simulated annealing from where the candidate is. ranked[offsets[i] + r] is subgraph i's plan of rank r: the first
 * are tried most. */
void clv__search_anneal(clv__search *search, clv__candidate *candidate, const uint32_t *ranked, uint64_t seed, uint32_t steps);

#endif
