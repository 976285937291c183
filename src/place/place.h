/* Placement strategies. Each chooses, for every node, the device that runs it and a cause. */
#ifndef CLEAVE_PLACE_PLACE_H
#define CLEAVE_PLACE_PLACE_H

#include "split/split.h"

/* The state after one pass of `propagate`, for --explain-passes. */
typedef struct clv__pass {
  const char *name;          /* of the pass: "1", "2a", "2b", "2c", "2d", "3", "4", "5" */
  const uint32_t *devices;   /* by node: CLV__NONE is printed as -1 */
  const char *const *causes; /* by node: "" while it has no device */
  const uint32_t *value_devices;
  const char *const *value_causes;
  const uint32_t *weight_devices;
  const char *const *weight_causes;
  const uint32_t *partition_of; /* by node: its partition; NULL before pass 5, which cuts the list */
  const clv__cut *cut;          /* NULL before pass 5 */
  const clv__copies *copies;    /* the copies into the partitions of `cut`; NULL in earlier passes */
} clv__pass;

typedef struct clv__place_input {
  const clv__problem *problem;
  clv__objective objective;
  clv__split_mode split; /* how the placement will be cut */
  bool split_is_given;   /* the user chose `split`; otherwise it is the strategy's default */
  bool record_passes;
  /* The groups that delegates claimed: by device, then by node, a group number of at most node_count, or CLV__NONE. The array of
   * a device that did not choose groups is NULL. NULL: no device chose groups. */
  const uint32_t *const *claims;
} clv__place_input;

/* The result of a strategy. Arrays by node, in the arena that the caller passes. */
typedef struct clv__placing {
  uint32_t *devices;
  const char **causes; /* static texts */
  uint32_t *groups;    /* NULL, or by node: nodes of different groups must not share a partition */
  bool has_cut;        /* the strategy has also cut the placement; then `cut` is valid */
  clv__cut cut;
  uint16_t *streamed; /* by weight: bits of the devices to which it is streamed; NULL: none */
  bool is_fitted;     /* `groups` and `streamed` serve only to fit the devices' memories: planning may replace them */
  uint32_t pass_count;
  const clv__pass *passes;
  const char *note; /* NULL, or a sentence that reports show with the plan, allocated in the arena */
} clv__placing;

typedef clv_status (*clv__place_fn)(const clv__place_input *input, clv__arena *arena, clv__placing *placing, clv_error *error);

/* A cause of a placement, with its explanation for reports. In plans, a number replaces a final `#` of the name. */
typedef struct clv__cause {
  const char *name, *meaning;
} clv__cause;

/* A strategy. Each is defined in a file of its own. */
typedef struct clv__strategy {
  const char *name;
  const char *summary; /* one line, for help texts */
  clv__place_fn place;
  clv__split_mode split; /* the default split mode */
  uint32_t copy_limit; /* for a linear cut: the most values copied for a partition whose device states no limit; 0: any number */
  const clv__cause *causes; /* its causes, except the common ones; the last has the name NULL */
} clv__strategy;

extern const clv__strategy clv__strategy_optimal, clv__strategy_contiguous, clv__strategy_propagate,
    clv__strategy_propagate_graph, clv__strategy_delegate, clv__strategy_ready;

/* All strategies; the last entry is NULL. */
extern const clv__strategy *const clv__strategies[];
const clv__strategy *clv__strategy_find(const char *name);

/* The meaning of a cause that some strategy, or planning itself, gives; NULL if there is no such cause. */
const char *clv__cause_meaning(const char *cause);

/* If no placement fits the devices' memories, clv__place_optimal() returns one that exceeds them least. */
clv_status clv__place_optimal(const clv__place_input *input, clv__arena *arena, clv__placing *placing, clv_error *error);
clv_status clv__place_contiguous(const clv__place_input *input, clv__arena *arena, clv__placing *placing, clv_error *error);
clv_status clv__place_propagate(const clv__place_input *input, clv__arena *arena, clv__placing *placing, clv_error *error);
clv_status clv__place_propagate_graph(const clv__place_input *input, clv__arena *arena, clv__placing *placing, clv_error *error);
clv_status clv__place_delegate(const clv__place_input *input, clv__arena *arena, clv__placing *placing, clv_error *error);
clv_status clv__place_ready(const clv__place_input *input, clv__arena *arena, clv__placing *placing, clv_error *error);

/* A placement, cut into partitions, with the copies between memories and the predicted cost. */
typedef struct clv__candidate {
  clv__placing placing;
  clv__cut cut;
  clv__copies copies;
  clv__price price;
} clv__candidate;
/* Runs the strategy `place`, cuts the placement into partitions, plans the copies between memories and predicts the cost. */
clv_status clv__place_candidate(const clv__place_input *input, clv__place_fn place, clv__arena *arena, clv__candidate *candidate,
                                clv_error *error);

/* Cuts, plans and predicts like clv__place_candidate(), but for the existing placement candidate->placing. */
clv_status clv__place_price(const clv__place_input *input, clv__arena *arena, clv__candidate *candidate, clv_error *error);

/* Allocates the arrays of a placing. All causes are "" and all devices CLV__NONE. */
clv_status clv__placing_init(const clv__problem *problem, clv__arena *arena, clv__placing *placing, clv_error *error);

#endif
