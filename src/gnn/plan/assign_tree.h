/* Shared by the files of the tree behind clv__assign_bound(): assign_bound.c has the upper part of the tree, assign_relax.c
 * the bound of a frame, assign_loads.c a tighter bound, and assign_search.c the lower part. */
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
  bool is_leaf; /* cannot be split further, only searched */
} clv__frame;

/* A requirement of a frame: some subgraph uses the device, and its head or tail there is below the frame's upper limit. */
typedef struct clv__frame_need {
  uint32_t device;
  int side;
} clv__frame_need;

typedef struct clv__bounding {
  const clv__assign *assign;
  const clv_allocator *allocator;
  double upper, tolerance, best_value;
  uint64_t budget, used, nodes;
  double open; /* the smallest bound among nodes left open */
  clv__assign_try attempt;
  void *user;
  clv__frame *frames; /* a heap */
  size_t frame_count, frame_capacity;
  /* The current frame: its live options; those of subgraph i start at live_offsets[i]. */
  const clv__option **live;
  double *scratch; /* weighted loads of the live options */
  uint32_t *live_offsets;
  double bonus[CLV__SIDES][CLV__PEP_DEVICES]; /* for devices that the first or last subgraph does not use */
  double ends[CLV__SIDES];                    /* the cheapest first and last, from the last weighted_bound() */
  double sum;                                 /* the remaining part of that bound */
  clv__frame_need needs[CLV__MOST_NEEDS];     /* the needs with a cost, see clv__frame_needs() */
  uint32_t need_count;
  /* State of the lower part. */
  double multipliers[CLV__MOST_MULTIPLIERS][CLV__PEP_DEVICES], constants[CLV__MOST_MULTIPLIERS];
  uint32_t multiplier_count, *order, *choices;
  uint8_t *met;                                                        /* the needs that each live option meets */
  double *costs[CLV__MOST_MULTIPLIERS], *rests[CLV__MOST_MULTIPLIERS]; /* of live options; see assign_search.c */
} clv__bounding;

/* The value at which a bound is high enough. */
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

/* The weighted heads (tails) if this subgraph is the first (last). */
static inline double clv__bounding_weigh_end(const clv__bounding *b, const clv__option *option, int side, const double *weights) {
  double sum = 0;
  for (uint32_t d = 0; d < b->assign->device_count; ++d)
    sum += weights[d] * (clv__option_uses(option, d) ? clv__option_side(option, side, d) : b->bonus[side][d]);
  return sum;
}

/* ---- assign_relax.c ---- */

/* Makes a frame current: its options become the live ones. Returns false if a subgraph has none. */
bool clv__frame_fill(clv__bounding *b, const clv__frame *f);
/* Computes the bound by multipliers. Keeps the best multipliers in the frame. */
double clv__frame_relax(clv__bounding *b, clv__frame *f);
/* Computes the bound with the frame's requirements. */
double clv__frame_demand(clv__bounding *b, const clv__frame *f);
/* Removes options that occur in no assignment below the goal. Returns false if there were none. Call after
 * clv__frame_demand(). */
bool clv__frame_shrink(clv__bounding *b, const clv__frame *f);

/* Finds the needs of the current frame. */
void clv__frame_needs(clv__bounding *b, const clv__frame *f);
/* Returns one bit for each need that the option meets. */
uint32_t clv__option_meets(const clv__bounding *b, const clv__frame *f, const clv__option *option);

/* ---- assign_loads.c ---- */

/* Computes a tighter bound: the minimum, over all assignments of the frame, of the larger of two loads, one device's and the
 * weighted sum of the others'. Tries the assignment that attains it. Returns false if memory runs out. */
bool clv__frame_loads(clv__bounding *b, const clv__frame *f, double *bound);

/* ---- assign_search.c ---- */

/* Searches subgraph by subgraph until `limit` steps are used. The unsearched rest lowers `open`. */
void clv__frame_search(clv__bounding *b, const clv__frame *f, uint64_t limit);
/* Tries the assignment in `choices`. */
void clv__bounding_try(clv__bounding *b);

#endif
