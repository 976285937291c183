/* Assigns a plan to each subgraph, before any ordering. Minimises over assignments the maximum over devices of
 *
 *   load + smallest head + smallest tail
 *
 * Heads and tails are the times of a plan's blocks before and after a device's task (pep.h). A device's first task cannot
 * start before the smallest head has passed, and the schedule cannot end before the smallest tail has followed the device's
 * last task (as in flow shops). So no schedule of the assignment is shorter than this value, or than the assignment's longest
 * plan. The bound also uses the fact that all devices follow one sequence (simulate.h): one subgraph is first on all of its
 * devices, and one is last. */
#ifndef CLEAVE_GNN_PLAN_ASSIGN_H
#define CLEAVE_GNN_PLAN_ASSIGN_H

#include "gnn/plan/pep.h"

typedef struct clv__option {
  double load[CLV__PEP_DEVICES], head[CLV__PEP_DEVICES], tail[CLV__PEP_DEVICES];
  double time;
  uint32_t devices; /* one bit per device used */
  uint32_t index;   /* the plan's index in its subgraph's list */
} clv__option;

typedef struct clv__assign {
  clv__arena *arena;
  uint32_t device_count, count;
  const uint32_t *offsets; /* [count + 1] */
  clv__option *options;
  uint32_t *twins; /* [count]: the previous subgraph with identical options, or CLV__NO_ID; twins can swap plans */
} clv__assign;

/* Every list must have at least one plan. */
clv_status clv__assign_init(clv__assign *assign, clv__arena *arena, uint32_t device_count, const clv__pep_list *lists,
                            uint32_t count, clv_error *error);

/* Computes the value of one assignment, as defined at the top of this file. The result may be larger than that formula gives,
 * and is still a lower bound: it takes the maximum over subsets of a device's tasks, not only over all tasks. */
double clv__assign_value(const clv__assign *assign, const uint32_t *choices);
/* Returns the largest load of a device, and that device. */
double clv__assign_largest_load(const clv__assign *assign, const uint32_t *choices, uint32_t *device);

/* A move of the greedy algorithm: a subgraph changes to another plan. */
typedef struct clv__assign_move {
  uint32_t subgraph, from, to, bottleneck;
  double before_ns, after_ns;
} clv__assign_move;

/* Runs the quick mode. It starts with every subgraph's fastest plan. Then it repeatedly changes the plan of one subgraph on
 * the bottleneck device, by the change that lowers the largest load most, until none lowers it. It calls `moves` (may be NULL)
 * for each move. */
void clv__assign_greedy(const clv__assign *assign, uint32_t *choices, void (*moves)(void *user, const clv__assign_move *move),
                        void *user);

/* Ranks each subgraph's plans by the weighted sum of their loads, lowest first. The weights are those of the relaxation
 * (assign_bound.c): the busier a device, the larger its weight. `ranked` is as long as all lists together. */
clv_status clv__assign_rank(const clv__assign *assign, double upper_ns, uint32_t *ranked, clv_error *error);

/* Called by clv__assign_bound() for each assignment that may be better than the best so far, in order of discovery. Returns the
 * best makespan known so far. May set `proven_ns` to a lower bound on every schedule of the assignment; proving more than
 * goal_ns is useless. */
typedef double (*clv__assign_try)(void *user, const uint32_t *choices, double goal_ns, double *proven_ns);

typedef struct clv__assign_result {
  double bound_ns; /* lower bound on every schedule with these plans */
  uint64_t nodes;  /* nodes of the tree */
  uint64_t steps;  /* budget steps used; may slightly exceed the budget */
  bool is_closed;  /* the bound is exact or within the tolerance */
} clv__assign_result;

/* Runs branch and bound on the value. It stops when the bound is within `tolerance` (relative) of `upper_ns`, the makespan of
 * an existing schedule, or when it has used `budget` steps of several operations each. Open nodes then contribute their own
 * bounds, so the result is always a valid bound. */
clv_status clv__assign_bound(const clv__assign *assign, double upper_ns, double tolerance, uint64_t budget,
                             clv__assign_try attempt, void *user, clv__assign_result *result, clv_error *error);

#endif
