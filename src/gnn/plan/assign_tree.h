/* What the files of the tree behind clv__assign_bound() share: assign_bound.c has the upper part of it, assign_relax.c the bound
 * of a frame, assign_loads.c a closer one, assign_search.c the lower part. */
#ifndef CLEAVE_GNN_PLAN_ASSIGN_TREE_H
#define CLEAVE_GNN_PLAN_ASSIGN_TREE_H

#include "gnn/plan/assign.h"

enum { CLV__HEAD, CLV__TAIL, CLV__SIDES, CLV__MOST_MULTIPLIERS = 16, CLV__MOST_NEEDS = 3 };
typedef enum clv__frame_use { CLV__USE_OPEN, CLV__USE_MUST, CLV__USE_NEVER } clv__frame_use;

typedef struct clv__frame {
  double low[CLV__SIDES][CLV__PEP_DEVICES],
      high[CLV__SIDES][CLV__PEP_DEVICES]; /* the smallest head or tail lies in [low, high) */
  uint8_t use[CLV__PEP_DEVICES];
  double bound, weights[CLV__PEP_DEVICES];
  bool is_leaf; /* nothing is left but to search it */
} clv__frame;

/* What a frame says must be there: a subgraph that uses the device and whose head or tail there is below the frame's. */
typedef struct clv__frame_need {
  uint32_t device;
  int side;
} clv__frame_need;

typedef struct clv__bounding {
  const clv__assign *assign;
  const clv_allocator *allocator;
  double upper, tolerance, best_value;
  uint64_t budget, used, nodes;
  double open; /* the least bound of what was left open */
  clv__assign_try attempt;
  void *user;
  clv__frame *frames; /* a heap */
  size_t frame_count, frame_capacity;
  /* The frame at work: its options, of subgraph i from live_offsets[i] on. */
  const clv__option **live;
  double *scratch; /* weighted loads of the live ones */
  uint32_t *live_offsets;
  double bonus[CLV__SIDES][CLV__PEP_DEVICES]; /* of devices that the first or last subgraph does not use */
  double ends[CLV__SIDES];                    /* the cheapest first and last, as of the last weighted_bound() */
  double sum;                                 /* and the rest of it */
  clv__frame_need needs[CLV__MOST_NEEDS];     /* those that cost something, see clv__frame_needs() */
  uint32_t need_count;
  /* The lower part. */
  double multipliers[CLV__MOST_MULTIPLIERS][CLV__PEP_DEVICES], constants[CLV__MOST_MULTIPLIERS];
  uint32_t multiplier_count, *order, *choices;
  uint8_t *met;                                                        /* needs that live options meet */
  double *costs[CLV__MOST_MULTIPLIERS], *rests[CLV__MOST_MULTIPLIERS]; /* of live options; see assign_search.c */
} clv__bounding;

/* What a bound must reach to be enough. */
static inline double clv__bounding_goal(const clv__bounding *b) {
  return clv__smaller(b->best_value, b->upper / (1 + b->tolerance));
}

static inline double clv__option_side(const clv__option *option, int side, uint32_t device) {
  return side == CLV__HEAD ? option->head[device] : option->tail[device];
}

static inline bool clv__option_uses(const clv__option *option, uint32_t device) {
  return (option->devices >> device & 1u) != 0;
}

static inline double clv__option_weigh(const clv__option *option, const double *weights, uint32_t devices) {
  double sum = 0;
  for (uint32_t d = 0; d < devices; ++d) sum += weights[d] * option->load[d];
  return sum;
}

/* Weighted heads (tails) where this is the first (the last) subgraph. */
static inline double clv__bounding_weigh_end(const clv__bounding *b, const clv__option *option, int side, const double *weights) {
  double sum = 0;
  for (uint32_t d = 0; d < b->assign->device_count; ++d)
    sum += weights[d] * (clv__option_uses(option, d) ? clv__option_side(option, side, d) : b->bonus[side][d]);
  return sum;
}

/* ---- assign_relax.c ---- */

/* Puts a frame to work: its options become the live ones. False: a subgraph has none. */
bool clv__frame_fill(clv__bounding *b, const clv__frame *f);
/* The bound by multipliers; the best of them stay in the frame. */
double clv__frame_relax(clv__bounding *b, clv__frame *f);
/* The bound with what the frame says must be there. */
double clv__frame_demand(clv__bounding *b, const clv__frame *f);
/* Takes out options that no assignment below the goal has; false: none was. Behind clv__frame_demand(). */
bool clv__frame_shrink(clv__bounding *b, const clv__frame *f);

/* Finds the needs of the frame at work. */
void clv__frame_needs(clv__bounding *b, const clv__frame *f);
/* A bit for each of them that the option meets. */
uint32_t clv__option_meets(const clv__bounding *b, const clv__frame *f, const clv__option *option);

/* ---- assign_loads.c ---- */

/* The least of the larger of two loads, that of one device and the weighted sum of the others', over all assignments of the
 * frame; the assignment that has it is tried. False: no memory. */
bool clv__frame_loads(clv__bounding *b, const clv__frame *f, double *bound);

/* ---- assign_search.c ---- */

/* Subgraph by subgraph, until `limit` is used. What is left open counts in `open`. */
void clv__frame_search(clv__bounding *b, const clv__frame *f, uint64_t limit);
/* Tries the assignment in `choices`. */
void clv__bounding_try(clv__bounding *b);

#endif
