/* Schedules one layer over the devices' timelines. Subgraphs run in one sequence that every device follows. Consecutive
 * subgraphs with the same PEP key form a cluster. There is no barrier between clusters: a device goes on to the next as soon
 * as its own work is done, and pays its switch_ns. Blocks are pipeline stages. A task starts when its device is free and the
 * previous block is done. Within a cluster, it also waits until the next block has finished the subgraph queue_depth positions
 * earlier, whose buffer it fills. */
#ifndef CLEAVE_GNN_PLAN_SIMULATE_H
#define CLEAVE_GNN_PLAN_SIMULATE_H

#include "gnn/plan/pep.h"

enum { CLV__QUEUE_DEPTH = 8 }; /* the largest supported queue_depth */

/* The data of a plan that scheduling needs. */
typedef struct clv__pep_work {
  uint64_t key;
  uint8_t block_count, part_counts[CLV__PEP_BLOCKS], devices[CLV__PEP_BLOCKS][CLV__PEP_DEVICES];
  double times_ns[CLV__PEP_BLOCKS][CLV__PEP_DEVICES], merge_ns[CLV__PEP_BLOCKS];
} clv__pep_work;

void clv__pep_work_of(const clv__pep *pep, clv__pep_work *work);

/* Adds `sign` times each device's work in the plan to `loads`. No schedule is shorter than a device's sum over its plans. */
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
  uint32_t turn, block, device; /* turn: position in the sequence */
  double start_ns, end_ns;
} clv__task_time;

typedef struct clv__timeline {
  double makespan_ns;
  double busy_ns[CLV__PEP_DEVICES]; /* time that each device works, including switches */
  double idle_ns[CLV__PEP_DEVICES]; /* time up to the makespan in which the device does not work */
  /* Number of clusters; number of times that a device switches to another cluster, which costs its switch_ns. */
  uint32_t cluster_count, switches;
} clv__timeline;

/* Returns the makespan of a sequence: `sequence[i]` runs at position i. */
double clv__simulate_time(const clv__machine *machine, const clv__pep_work *const *sequence, uint32_t count);
/* Like clv__simulate_time(), but may stop early and return INFINITY once the time is known to exceed limit_ns. `loads` is the
 * sum of clv__pep_work_add() over the sequence. */
double clv__simulate_within(const clv__machine *machine, const clv__pep_work *const *sequence, uint32_t count,
                            const double loads[CLV__PEP_DEVICES], double limit_ns);
/* Like clv__simulate_time(), but with the full timeline. `tasks` (may be NULL) must have room for count * CLV__PEP_DEVICES
 * tasks and receives them in sequence order. */
void clv__simulate(const clv__machine *machine, const clv__pep_work *const *sequence, uint32_t count, clv__timeline *timeline,
                   clv__task_time *tasks, uint32_t *task_count);

/* A candidate of the search: each subgraph's plan, and the sequence. */
typedef struct clv__candidate {
  uint32_t count;
  uint32_t *choices;  /* [count]: each subgraph's plan, as an index among its works */
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

/* Scratch memory of the search, `count` elements each. */
typedef struct clv__search_place clv__search_place;
typedef struct clv__search_memory clv__search_memory;
typedef struct clv__search {
  const clv__pep_works *works;
  const clv__pep_work **sequence;
  uint32_t *trial, *best;
  clv__search_place *places;
  clv__arena *arena;
  clv__search_memory *memory; /* of clv__search_sequences(); allocated on first use */
  uint32_t generation, turn;
  uint64_t budget; /* remaining simulated tasks */
} clv__search;

clv_status clv__search_init(clv__search *search, clv__arena *arena, const clv__pep_works *works, clv_error *error);
clv_status clv__candidate_init(clv__candidate *candidate, clv__arena *arena, uint32_t count, clv_error *error);
void clv__candidate_copy(clv__candidate *to, const clv__candidate *from);

/* Sets an initial sequence for the chosen plans: clusters, each ordered by Johnson's rule (first block against the rest). Sets
 * makespan_ns. */
void clv__search_begin(clv__search *search, clv__candidate *candidate);
/* Like clv__search_begin(), then improves the sequence by moving clusters and subgraphs. */
void clv__search_order(clv__search *search, clv__candidate *candidate);
/* Brings subgraphs with the same PEP key together, so that each key has one cluster, and then moves clusters, and subgraphs
 * within them, as long as the makespan falls. The result may be longer than the candidate was. */
void clv__search_cluster(clv__search *search, clv__candidate *candidate);
/* Searches all sequences of the chosen plans that may be below `goal_ns`. A better sequence replaces the candidate's. Returns
 * a lower bound on all sequences of these plans: at most goal_ns, and 0 if `nodes` ran out before anything was proven. On
 * return, `nodes` holds the remaining budget. The bound ignores switches and queue limits, so it may be slightly below the
 * best sequence. */
double clv__search_sequences(clv__search *search, clv__candidate *candidate, double goal_ns, uint32_t *nodes);
/* Changes plans and the sequence, one subgraph at a time, as long as the simulated makespan falls. Never makes it worse. */
void clv__search_plans(clv__search *search, clv__candidate *candidate);
/* Changes plans and the sequence by simulated annealing from the candidate. ranked[offsets[i] + r] is subgraph i's plan of
 * rank r. Low ranks are tried most often. */
void clv__search_anneal(clv__search *search, clv__candidate *candidate, const uint32_t *ranked, uint64_t seed, uint32_t steps);

#endif
