/* Which plan each subgraph gets, before anything is put in order: min over assignments of the largest, over devices, of
 *
 *   load + smallest head + smallest tail
 *
 * A device's first task cannot begin before the shortest of what precedes its tasks has run, and nothing is over before the
 * shortest of what follows them has (as in flow shops): no schedule of the assignment is shorter. Nor is any shorter than its
 * longest plan. The bound further uses that all devices keep to one sequence (simulate.h): one
 * subgraph is the first on all of its devices, one the last. */
#ifndef CLEAVE_GNN_PLAN_ASSIGN_H
#define CLEAVE_GNN_PLAN_ASSIGN_H

#include "gnn/plan/pep.h"

typedef struct clv__option {
  double load[CLV__PEP_DEVICES], head[CLV__PEP_DEVICES], tail[CLV__PEP_DEVICES];
  double time;
  uint32_t devices; /* a bit for each that it uses */
  uint32_t index;   /* in its subgraph's list */
} clv__option;

typedef struct clv__assign {
  clv__arena *arena;
  uint32_t device_count, count;
  const uint32_t *offsets; /* [count + 1] */
  clv__option *options;
  uint32_t *twins; /* [count]: the subgraph before with the very same options, or CLV__NO_ID: their plans may change places */
} clv__assign;

/* Every list has a plan. */
clv_status clv__assign_init(clv__assign *assign, clv__arena *arena, uint32_t device_count, const clv__pep_list *lists,
                            uint32_t count, clv_error *error);

/* The value above of one assignment; stronger still: over any of a device's tasks, not only all of them. */
double clv__assign_value(const clv__assign *assign, const uint32_t *choices);
/* The largest load: what the greedy lowers. */
double clv__assign_largest_load(const clv__assign *assign, const uint32_t *choices, uint32_t *device);

/* A move of the greedy: this subgraph to this plan. */
typedef struct clv__assign_move {
  uint32_t piece, from, to, bottleneck;
  double before_ns, after_ns;
} clv__assign_move;

/* The quick mode: every subgraph's fastest plan; then, as long as it helps, of the bottleneck device's subgraphs the one whose
 * other plan lowers the largest load most takes it. `moves` (may be NULL) is told of each. */
void clv__assign_greedy(const clv__assign *assign, uint32_t *choices, void (*moves)(void *user, const clv__assign_move *move),
                        void *user);

/* For each subgraph its plans by the weighted sum of their loads, least first: what each costs the machine where the devices are
 * worth what they are in the relaxation. `ranked` is as long as all lists. */
clv_status clv__assign_rank(const clv__assign *assign, double upper_ns, uint32_t *ranked, clv_error *error);

/* Gets assignments that may be better than what there is, in order of discovery; answers the best makespan known by now.
 * `proven_ns` may be set to what no schedule of the assignment is below, as far as that matters: up to goal_ns. */
typedef double (*clv__assign_try)(void *user, const uint32_t *choices, double goal_ns, double *proven_ns);

typedef struct clv__assign_result {
  double bound_ns; /* no schedule with these plans is shorter */
  uint64_t nodes;  /* of the tree */
  uint64_t steps;  /* of the budget that was used; a little more than there were at most */
  bool is_closed;  /* the bound is as close as was asked for, or exact */
} clv__assign_result;

/* Branch and bound on the value, until the bound is within `tolerance` (relative) of `upper_ns`, the makespan of a schedule that
 * there is, or `budget` steps, each some operations, are spent. What is open then counts with its own bound, so that the bound
 * always holds. */
clv_status clv__assign_bound(const clv__assign *assign, double upper_ns, double tolerance, uint64_t budget,
                             clv__assign_try attempt, void *user, clv__assign_result *result, clv_error *error);

#endif
