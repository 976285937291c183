/* Shared by the files of `optimal`: scores, solutions, the evaluator that prices a placement in full, the state that keeps the
 * cost up to date while single nodes move, and the moves of the local search. Only files in src/place/optimal include it. */
#ifndef CLEAVE_PLACE_OPTIMAL_OPTIMAL_H
#define CLEAVE_PLACE_OPTIMAL_OPTIMAL_H

#include "place/place.h"

/* Adds times; saturates instead of overflowing, because times from files may be large. */
static inline uint64_t clv__add_ns(uint64_t a, uint64_t b) {
  uint64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* ---- Scores ---- */

/* Candidates are compared by these fields, in this order. In each field, less is better. */
typedef struct clv__score {
  uint64_t excess_bytes; /* bytes by which the devices' memory limits are exceeded: 0 if the placement fits */
  uint64_t time_ns;      /* predicted time by the objective */
  uint64_t serial_ns;    /* sum of the times of all steps */
  uint32_t partitions;   /* number of partitions */
  uint64_t priority;     /* sum of the device indices of all nodes: devices earlier in the list are preferred */
} clv__score;

#define CLV__SCORE_WORST ((clv__score){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT64_MAX})

bool clv__score_less(const clv__score *a, const clv__score *b);

/* ---- The evaluator: evaluate.c ---- */

/* Prices placements of one problem in full: cuts them into partitions, plans the transfers, and computes the time and the
 * memory. */
typedef struct clv__evaluator {
  const clv__problem *problem;
  clv__objective objective;
  clv__split_mode split;
  const uint32_t *groups;   /* NULL, or by node: nodes of different groups must not share a partition */
  const uint16_t *streamed; /* by weight: bits of the devices to which it is streamed; NULL: none */
  bool has_limits;          /* some device's memory is limited */
  bool has_exceeded;        /* some placement so far exceeds a limit */
  clv__arena arena;         /* holds the results of the last evaluation */
  clv__cut cut;             /* the cut of the last evaluation; lives in `arena` */
  clv__memory memory;       /* of the last evaluation, if a device's memory is limited */
  uint64_t effort; /* of one evaluation: (nodes + values + reads + a constant) * the number of cuts that the evaluation tries */
  uint64_t spent;  /* the effort of all evaluations so far */
} clv__evaluator;

void clv__evaluator_init(clv__evaluator *evaluator, const clv__problem *problem, clv__objective objective, clv__split_mode split,
                         const clv_allocator *allocator);
void clv__evaluator_finish(clv__evaluator *evaluator);
/* Returns CLV_OK also for a placement that the split rejects because of a device's limit: it gets the worst score. Errors have
 * other causes, such as lack of memory. */
clv_status clv__evaluate(clv__evaluator *evaluator, const uint32_t *devices, clv__score *score, clv_error *error);
clv__score clv__score_make(const clv__problem *problem, const uint32_t *devices, const clv__cut *cut, const clv__price *price,
                           clv__objective objective, uint64_t excess_bytes);

/* hopeless.c. Returns in `hopeless` whether the placement, however it is cut, is worse than `score`. */
clv_status clv__is_hopeless(const clv__evaluator *evaluator, const uint32_t *devices, const clv__score *score, bool *hopeless,
                            clv_error *error);

clv_status clv__cut_copy(const clv__cut *cut, uint32_t node_count, clv__arena *arena, clv__cut *copy, clv_error *error);

/* order.c. Orders the partitions by the length of the longest path from each to the end of the graph, longest first. */
clv_status clv__urgent_order(const clv__problem *problem, clv__cut *cut, clv__arena *arena, clv_error *error);
/* Groups nodes that have equally many changes of device before them (`above`) or after them (`below`). A cut that keeps these
 * groups apart has more partitions, but they start as early as possible (`above`), or delay their readers as little as possible
 * (`below`). If both are set, the nodes of a group agree in both numbers. If the pairs of numbers do not fit into 32 bits, they
 * agree only in the number above. */
clv_status clv__wait_groups(const clv__problem *problem, const uint32_t *devices, bool above, bool below, clv__arena *arena,
                            uint32_t *groups, clv_error *error);

/* excess.c. Sums the bytes by which the devices' memories are exceeded, counting as scratch only clv__memory.inner_bytes
 * (split/split.h). `memory` receives the counted bytes; weights that the user placed in a device's memory count there. */
clv_status clv__memory_excess(const clv__problem *problem, const clv__cut *cut, const clv__copies *copies,
                              const uint16_t *streamed, const clv_allocator *allocator, clv__memory *memory,
                              uint64_t *excess_bytes, clv_error *error);

/* ---- The state: state.c ---- */

/* A placement that is changed one node at a time, with the counts from which the change of its cost (nodes, transfers and
 * fusions) is computed. */
typedef struct clv__state {
  const clv__problem *problem;
  uint32_t *devices;
  uint32_t *reader_counts; /* [value * space_count + space]: how many nodes read the value in that space */
  uint32_t *reader_reads;  /* by entry of `readers`: the index of that read in `reads` */
} clv__state;

clv_status clv__state_create(const clv__problem *problem, clv__arena *arena, clv__state *state, clv_error *error);
void clv__state_load(clv__state *state, const uint32_t *devices);
/* Moves the node and returns the change of the cost. The time grows with the reads of the node and with the readers of its
 * outputs, not with the readers of its inputs. */
int64_t clv__state_move(clv__state *state, uint32_t node, uint32_t device);

/* ---- Moves: moves.c ---- */

typedef struct clv__change {
  uint32_t first, count; /* the range of its nodes in clv__changes.nodes */
  uint32_t device;       /* the device that the nodes move to */
  int64_t estimate_ns;   /* the change of the cost (negative: less): exact except for launches, which are estimated */
} clv__change;

typedef struct clv__changes {
  const clv_allocator *allocator;
  clv__change *items;
  uint32_t *nodes;
  size_t count, capacity, node_count, node_capacity, node_limit;
  uint64_t effort; /* the effort of finding the changes, in the unit of clv__evaluator.effort */
} clv__changes;

/* Finds changes worth trying from the placement in `state`, cut by `cut`, the most promising first: whole partitions, nodes
 * between two partitions of one device, nodes at boundaries, and, if `deep`, pairs of nodes. */
clv_status clv__changes_make(clv__state *state, const clv__cut *cut, bool deep, clv__changes *changes, clv_error *error);
void clv__changes_finish(clv__changes *changes);

/* ---- The search: search.c ---- */

typedef struct clv__search_options {
  uint64_t budget;     /* the most effort to spend, in the unit of clv__evaluator.effort */
  bool deep;           /* tries all kinds of changes, and restarts from placements with random changes */
  const clv__cut *cut; /* the cut of the initial placement, if `score` already holds its score; NULL: not known */
} clv__search_options;

/* Improves `devices` and `score` by changes that are priced in full, until none helps or the budget is spent. */
clv_status clv__search(clv__evaluator *evaluator, const clv__search_options *options, uint32_t *devices, clv__score *score,
                       clv_error *error);

/* ---- The same problem at other prices: reprice.c ---- */

/* Factors and prices, all in 1024ths. They represent costs that the minimum cut does not model: launches per partition, loads,
 * memory. */
typedef struct clv__reprice {
  uint32_t boundary; /* share of a launch, added wherever a value crosses from one device to another */
  uint32_t load[16]; /* by device: factor for the time of its nodes and launches */
  uint32_t copies;   /* factor for the time of transfers */
  uint64_t byte[16]; /* by device: price per byte of weights, in 1024ths of a nanosecond, for nodes that read them */
} clv__reprice;

#define CLV__REPRICE_AS_IS \
  ((clv__reprice){0, {1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024}, 1024, {0}})

/* Copies `problem` with new prices, which live in the arena. */
clv_status clv__reprice_make(const clv__problem *problem, const clv__reprice *prices, clv__arena *arena, clv__problem *repriced,
                             clv_error *error);

/* ---- Exact for two devices at a time: swap.c ---- */

/* Improves the node + transfer + fusion cost of `devices`. For every pair of devices, it computes the optimal
 * assignment of their nodes to the two, while the other nodes stay. Stops when nothing improves, or after `rounds` rounds. With
 * two devices one round is the optimum. */
clv_status clv__swap(const clv__problem *problem, uint32_t rounds, const clv_allocator *allocator, uint32_t *devices,
                     clv_error *error);

/* ---- List scheduling: list.c ---- */

/* Places each node, the most urgent first, on the device that finishes it earliest. Assumes that devices and copies work at the
 * same time. */
clv_status clv__list_schedule(const clv__problem *problem, const clv_allocator *allocator, uint32_t *devices, clv_error *error);

/* ---- Candidates: pool.c ---- */

enum { CLV__POOL_SIZE = 8, CLV__DEEP_NODES = 320 /* larger problems are searched less thoroughly */ };

/* A placement that was priced in full. */
typedef struct clv__solution {
  uint32_t *devices, *partition_of;
  uint64_t hash;
  clv__score score;
} clv__solution;

/* The best placements found so far, without duplicates, in ascending order of their scores. */
typedef struct clv__pool {
  clv__evaluator *evaluator;
  clv__arena *arena;
  uint32_t count;
  clv__solution solutions[CLV__POOL_SIZE];
  clv__arena best_arena;
  clv__cut best_cut; /* of the first solution; lives in `best_arena` */
} clv__pool;

void clv__pool_init(clv__pool *pool, clv__evaluator *evaluator, clv__arena *arena);
void clv__pool_finish(clv__pool *pool);
/* Prices `devices` and keeps it if it is among the best. Skips the cut if clv__pool_is_hopeless(). */
clv_status clv__pool_add(clv__pool *pool, const uint32_t *devices, clv_error *error);
/* Returns in `hopeless` whether the placement, however it is cut, is worse than the best of the pool; false if the pool is
 * empty. */
clv_status clv__pool_is_hopeless(const clv__pool *pool, const uint32_t *devices, bool *hopeless, clv_error *error);

/* The working state of `optimal`. */
typedef struct clv__optimal {
  const clv__place_input *input;
  const clv__problem *problem;
  const clv_allocator *allocator;
  clv__arena arena;
  clv__evaluator evaluator;
  clv__pool pool;
  uint32_t *reference; /* by node: its device in the minimum cut at the true prices; the causes derive from it */
  uint32_t *scratch;   /* by node: room for a placement */
  bool reference_fits; /* `reference` fits the devices' memories */
  clv_error *error;
} clv__optimal;

/* How often a step that costs as much as `evaluations` evaluations fits into `effort`; at most `most` times. */
static inline uint32_t clv__optimal_times(const clv__optimal *o, uint64_t effort, uint32_t evaluations, uint32_t most) {
  uint64_t times = effort / (o->evaluator.effort * evaluations);
  return times > most ? most : (uint32_t)times;
}

/* Puts every pinned node on its pinned device, every other node that `device` can run on `device`, and the remaining ones on
 * their fastest device. */
void clv__optimal_prefer(const clv__problem *problem, uint32_t device, uint32_t *devices);
/* Fills the pool: minimum cuts at several prices, single devices, list schedules. */
clv_status clv__optimal_start(clv__optimal *o);

/* ---- Memory: memory.c ---- */

/* If weights exceed a device's memory: adds to the pool placements that use less of this memory. They come from minimum cuts at
 * rising prices per byte, and from filling one device after the other. */
clv_status clv__optimal_fit(clv__optimal *o);
/* stream.c. Chooses which weights of the placement to stream, and the groups of nodes that use the buffer one after the other.
 * Allocates everything in the arena. `score` has an excess if the placement does not fit even so. */
clv_status clv__optimal_stream(clv__optimal *o, const uint32_t *devices, clv__arena *arena, clv__placing *placing,
                               clv__score *score);

/* A placement, and the streamed weights and groups with which it fits. */
typedef struct clv__fitted {
  uint32_t *devices;
  clv__placing placing; /* only `streamed` and `groups` */
  clv__score score;
} clv__fitted;

/* fitted.c. Finds the best placement with streamed weights and groups, in the arena of `o`. `best` has the worst score if there
 * is nothing to fit: no placement so far exceeds a limit, or there is only one device. */
clv_status clv__optimal_fitted(clv__optimal *o, clv__fitted *best);
/* refine.c. Improves `best` by moving nodes and joining groups, until no change helps or the effort is spent. */
clv_status clv__optimal_refine(clv__optimal *o, clv__fitted *best);

#endif
