/* What the files of `optimal` share: scores, solutions, the evaluator that prices a placement in full, the state that prices a
 * single node's move at once, moves of the local search, and problems made coarser. Nothing outside src/place/optimal*.c needs
 * it. */
#ifndef CLEAVE_PLACE_OPTIMAL_OPTIMAL_H
#define CLEAVE_PLACE_OPTIMAL_OPTIMAL_H

#include "place/place.h"

/* Times from files may be large: sums stop instead of running over, so that what is later never seems earlier. */
static inline uint64_t clv__add_ns(uint64_t a, uint64_t b) {
  uint64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* ---- Scores ---- */

/* What candidates are compared by, in this order. */
typedef struct clv__score {
  uint64_t excess_bytes; /* above the devices' memories: 0 in any plan that is given out */
  uint64_t time_ns;      /* of the objective */
  uint64_t serial_ns;    /* where that is equal: less work */
  uint32_t partitions;   /* then fewer partitions */
  uint64_t priority;     /* then devices earlier in the list: the sum of their indices */
} clv__score;

#define CLV__SCORE_WORST ((clv__score){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT64_MAX})

bool clv__score_less(const clv__score *a, const clv__score *b);

/* ---- The evaluator: analysis/evaluate.c ---- */

/* Prices placements of one problem in full: cut, moves, price, memory. */
typedef struct clv__evaluator {
  const clv__problem *problem;
  clv__objective objective;
  clv__split_mode split;
  const uint32_t *groups;   /* NULL, or what must not share a partition */
  const uint16_t *streamed; /* by weight; NULL: none */
  bool has_limits;          /* some device's memory is limited */
  clv__arena arena;         /* of the last evaluation */
  clv__cut cut;             /* of the last evaluation; lives in `arena` */
  uint64_t effort;          /* of one evaluation: nodes, values and readings, and a little for itself */
  uint64_t spent;           /* over all evaluations */
} clv__evaluator;

void clv__evaluator_init(clv__evaluator *evaluator, const clv__problem *problem, clv__objective objective, clv__split_mode split,
                         const clv_allocator *allocator);
void clv__evaluator_finish(clv__evaluator *evaluator);
/* A placement that the split refuses (a device's limit) has the worst score; only what is no property of the placement fails. */
clv_status clv__evaluate(clv__evaluator *evaluator, const uint32_t *devices, clv__score *score, clv_error *error);
clv__score clv__score_make(const clv__problem *problem, const uint32_t *devices, const clv__cut *cut, const clv__price *price,
                           clv__objective objective, uint64_t excess_bytes);

/* hopeless.c. Whether the placement, however it is cut, is worse than `score`. */
clv_status clv__is_hopeless(const clv__evaluator *evaluator, const uint32_t *devices, const clv__score *score, bool *hopeless,
                            clv_error *error);

clv_status clv__cut_copy(const clv__cut *cut, uint32_t node_count, clv__arena *arena, clv__cut *copy, clv_error *error);

/* order.c. Puts the partitions that the longest ways lead from first. */
clv_status clv__urgent_order(const clv__problem *problem, clv__cut *cut, clv__arena *arena, clv_error *error);
/* Groups of nodes that wait for equally many changes of the device before them (`above`), or have equally many after them: a
 * partition of one group begins as early, or is waited for as briefly, as can be. */
clv_status clv__wait_groups(const clv__problem *problem, const uint32_t *devices, bool above, bool below, clv__arena *arena,
                            uint32_t *groups, clv_error *error);

/* excess.c. Bytes by which the devices' memories are exceeded, summed: on each, the weights that are resident there and
 * the boundary values and streamed weights of the partition that has most of them. `device` (may be NULL) is the one that lacks
 * most, `needed` what it needs in all. */
clv_status clv__memory_excess(const clv__problem *problem, const clv__cut *cut, const uint16_t *streamed,
                              const clv_allocator *allocator, uint64_t *excess_bytes, uint32_t *device, uint64_t *needed,
                              clv_error *error);

/* ---- The state: state.c ---- */

/* A placement under change, with what moves of single nodes do to its node + transfer + fusion cost. */
typedef struct clv__state {
  const clv__problem *problem;
  uint32_t *devices;
  uint32_t *reader_counts; /* [value * space_count + space] */
  uint32_t *reader_reads;  /* by entry of `readers`: the index into `reads` that is this reading */
} clv__state;

clv_status clv__state_create(const clv__problem *problem, clv__arena *arena, clv__state *state, clv_error *error);
void clv__state_load(clv__state *state, const uint32_t *devices);
/* Moves the node and returns by how much the cost changes. Time grows with what the node reads and with the readers of what it
 * writes, not with the readers of what it reads. */
int64_t clv__state_move(clv__state *state, uint32_t node, uint32_t device);

/* ---- Moves: moves.c ---- */

typedef struct clv__change {
  uint32_t first, count; /* into clv__changes.nodes */
  uint32_t device;       /* where they go */
  int64_t estimate_ns;   /* what that changes: exact but for launches, which are guessed */
} clv__change;

typedef struct clv__changes {
  const clv_allocator *allocator;
  clv__change *items;
  uint32_t *nodes;
  size_t count, capacity, node_count, node_capacity, node_limit;
  uint64_t effort; /* that making them took, in what evaluations are counted in */
} clv__changes;

/* Changes worth trying from the placement that `state` holds and `cut` cuts, the most promising first: whole partitions, what
 * lies between two partitions of a device, nodes at boundaries, and, where `deep`, parts of partitions and pairs of nodes. */
clv_status clv__changes_make(clv__state *state, const clv__cut *cut, bool deep, clv__changes *changes, clv_error *error);
void clv__changes_finish(clv__changes *changes);

/* ---- The search: search.c ---- */

typedef struct clv__search_options {
  uint64_t budget;     /* effort, see clv__evaluator */
  bool deep;           /* all kinds of changes, and starts again from kicked placements */
  const clv__cut *cut; /* of the placement to begin with, where `score` is its score already; NULL: not known */
} clv__search_options;

/* Improves `devices` and `score` by changes priced in full, until none helps or the budget is spent. */
clv_status clv__search(clv__evaluator *evaluator, const clv__search_options *options, uint32_t *devices, clv__score *score,
                       clv_error *error);

/* ---- Coarser problems: coarse.c ---- */

typedef struct clv__coarse {
  clv__problem problem;
  uint32_t *fragment_of; /* by node of the finer problem */
} clv__coarse;

/* Joins nodes that `keys` (key_count arrays by node; partition numbers of cuts, all of them acyclic) do not tell apart, in pieces
 * of at most `most` nodes. What the new problem costs is what the finer one costs where each fragment stays in one piece. */
clv_status clv__coarse_make(const clv__problem *problem, const uint32_t *const *keys, uint32_t key_count, uint32_t most,
                            clv__arena *arena, clv__coarse *coarse, clv_error *error);

/* ---- The same problem at other prices: reprice.c ---- */

/* Each in 1024ths. What the minimum cut knows nothing of (launches a partition, loads, memory) it is told through prices. */
typedef struct clv__reprice {
  uint32_t boundary; /* of a launch, added wherever a value crosses from one device to another */
  uint32_t load[16]; /* by device: of the time of its nodes and launches */
  uint32_t copies;   /* of the time of transfers */
  uint64_t byte[16]; /* by device: nanoseconds a byte of weights, added to the nodes that read them */
} clv__reprice;

#define CLV__REPRICE_AS_IS \
  ((clv__reprice){0, {1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024}, 1024, {0}})

/* `problem` but for its prices, which live in the arena. */
clv_status clv__reprice_make(const clv__problem *problem, const clv__reprice *prices, clv__arena *arena, clv__problem *repriced,
                             clv_error *error);

/* ---- Exact for two devices at a time: swap.c ---- */

/* Improves `devices` on node + transfer + fusion cost: for every pair of devices the nodes on either are placed anew, exactly,
 * the others staying where they are; until nothing improves, `rounds` times at most. With two devices one round is the optimum.
 */
clv_status clv__swap(const clv__problem *problem, uint32_t rounds, const clv_allocator *allocator, uint32_t *devices,
                     clv_error *error);

/* ---- List scheduling: list.c ---- */

/* Each node, the most urgent first, on the device that finishes it earliest when devices and copies work at the same time. */
clv_status clv__list_schedule(const clv__problem *problem, const clv_allocator *allocator, uint32_t *devices, clv_error *error);

/* ---- Candidates: pool.c ---- */

enum { CLV__POOL_SIZE = 8 };

/* A placement that was priced in full. */
typedef struct clv__solution {
  uint32_t *devices, *partition_of;
  uint64_t hash;
  clv__score score;
} clv__solution;

/* The best placements met so far, ascending by score, each once. */
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
/* Prices `devices` and keeps it where it is among the best. What clv__pool_is_hopeless() is not cut at all. */
clv_status clv__pool_add(clv__pool *pool, const uint32_t *devices, clv_error *error);
/* Whether the placement, however it is cut, is worse than the best of the pool. */
clv_status clv__pool_is_hopeless(const clv__pool *pool, const uint32_t *devices, bool *hopeless, clv_error *error);

/* What `optimal` works with. */
typedef struct clv__optimal {
  const clv__place_input *input;
  const clv__problem *problem;
  const clv_allocator *allocator;
  clv__arena arena;
  clv__evaluator evaluator;
  clv__pool pool;
  uint32_t *reference; /* where the cut at the true prices put the nodes: what causes are told from */
  uint32_t *scratch;   /* by node */
  bool reference_fits; /* the devices' memories */
  clv_error *error;
} clv__optimal;

/* How often something that is as dear as `evaluations` evaluations may be done within `effort`; `most` times at most. */
static inline uint32_t clv__optimal_times(const clv__optimal *o, uint64_t effort, uint32_t evaluations, uint32_t most) {
  uint64_t times = effort / (o->evaluator.effort * evaluations);
  return times > most ? most : (uint32_t)times;
}

/* Everything on `device` as far as it goes; the rest on the fastest other. */
void clv__optimal_prefer(const clv__problem *problem, uint32_t device, uint32_t *devices);
/* Fills the pool: cuts at several prices, single devices, list schedules. */
clv_status clv__optimal_start(clv__optimal *o);

/* ---- Memory: plan/memory.c ---- */

/* Where weights exceed a device's memory: prices a byte, until a cut fits. */
clv_status clv__optimal_fit(clv__optimal *o);
/* stream.c. Chooses weights of the placement to be streamed, and groups of nodes that use the buffer's room in turn. All
 * in the arena; `score` has an excess where it does not help. */
clv_status clv__optimal_stream(clv__optimal *o, const uint32_t *devices, clv__arena *arena, clv__placing *placing,
                               clv__score *score);

/* ---- Causes: cause.c ---- */

void clv__optimal_causes(const clv__optimal *o, const uint32_t *devices, const char **causes);

#endif
