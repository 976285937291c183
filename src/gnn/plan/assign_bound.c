/* Implements clv__assign_bound(): a relaxation, and if that is not enough a tree that branches on the plan of one subgraph after
 * the other.
 *
 * For any device weights that sum to 1, the weighted load of every assignment is at least the sum of each subgraph's minimum
 * (Lagrangian relaxation; the best weights give the value of the linear program). All devices follow one sequence, so some
 * subgraph is first on all of its devices, and one is last. The bound therefore adds the cheapest way to be first and to be last,
 * in reduced cost and weighted heads or tails. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gnn/plan/assign.h"

enum { HEAD, TAIL, SIDES };
enum {
  STEPS = 120,                       /* steps of the ascent in relax() */
  WEIGHTINGS = CLV__PEP_DEVICES + 1, /* sets of weights for bounds in the tree: each device alone, then the best weights */
  MOST_BRANCHES = 128,
  LEAF_STEPS = 8 /* budget steps, per subgraph, that examining a complete assignment takes */
};

typedef struct bounding {
  const clv__assign *assign;
  double upper, tolerance, best_value;
  uint64_t budget, used, nodes;
  double open; /* the smallest bound among the nodes of the tree that were not searched */
  clv__assign_try attempt;
  void *user;
  const clv__option **live; /* options whose time is below the goal; those of subgraph i start at live_offsets[i] */
  uint32_t *live_offsets;
  double *scratch; /* weighted loads of the live options */
  double weights[CLV__PEP_DEVICES];
  /* The tree. */
  /* constants: what the heads and tails add to the bound. */
  double weightings[WEIGHTINGS][CLV__PEP_DEVICES], constants[WEIGHTINGS];
  /* costs: weighted loads of the live options; rests[depth]: the least sum of the costs of the subgraphs from `depth` on. */
  double *costs[WEIGHTINGS], *rests[WEIGHTINGS];
  uint32_t *order, *choices;
} bounding;

/* A node of the tree with this bound or a larger one need not be searched: its assignments are no better than the best known, or
 * better only within the tolerance. */
static double goal_of(const bounding *b) {
  return clv__smaller(b->best_value, b->upper / (1 + b->tolerance));
}

static double weigh(const clv__option *option, const double *weights, uint32_t devices) {
  double sum = 0;
  for (uint32_t d = 0; d < devices; ++d) sum += weights[d] * option->load[d];
  return sum;
}

static double side_of(const clv__option *option, int side, uint32_t device) {
  if ((option->devices >> device & 1u) == 0) return 0;
  return side == HEAD ? option->head[device] : option->tail[device];
}

/* Returns the weighted sum of the option's heads (`side` HEAD) or tails. The bound adds the heads of the subgraph that is first
 * in the sequence, and the tails of the one that is last. */
static double weigh_side(const clv__option *option, int side, const double *weights, uint32_t devices) {
  double sum = 0;
  for (uint32_t d = 0; d < devices; ++d) sum += weights[d] * side_of(option, side, d);
  return sum;
}

/* ---- The relaxation ---- */

/* Selects the options that are shorter than the goal as live. Returns false if a subgraph has no such option. */
static bool fill(bounding *b) {
  const clv__assign *assign = b->assign;
  uint32_t used = 0;
  for (uint32_t i = 0; i < assign->count; ++i) {
    b->live_offsets[i] = used;
    for (uint32_t o = assign->offsets[i]; o < assign->offsets[i + 1]; ++o) {
      if (assign->options[o].time < goal_of(b)) b->live[used++] = &assign->options[o];
    }
    if (used == b->live_offsets[i]) return false;
  }
  b->live_offsets[assign->count] = used;
  b->used += assign->offsets[assign->count];
  return true;
}

/* Computes the bound for these weights. `slope` is its derivative with respect to them. */
static double weighted_bound(bounding *b, const double *weights, double *slope) {
  uint32_t devices = b->assign->device_count;
  const clv__option *end[SIDES] = {NULL, NULL}, *instead[SIDES] = {NULL, NULL};
  double sum = 0, ends[SIDES] = {INFINITY, INFINITY};
  for (uint32_t d = 0; d < devices; ++d) slope[d] = 0;
  for (uint32_t i = 0; i < b->assign->count; ++i) {
    const clv__option *best = NULL;
    double least = INFINITY;
    for (uint32_t o = b->live_offsets[i]; o < b->live_offsets[i + 1]; ++o) {
      double cost = b->scratch[o] = weigh(b->live[o], weights, devices);
      if (cost < least) least = cost, best = b->live[o];
    }
    sum += least;
    for (uint32_t d = 0; d < devices; ++d) slope[d] += best->load[d];
    for (uint32_t o = b->live_offsets[i]; o < b->live_offsets[i + 1] && b->assign->count > 1; ++o) {
      if (b->live[o]->devices == 0) continue; /* runs nothing: neither first nor last */
      for (int side = HEAD; side < SIDES; ++side) {
        double more = b->scratch[o] - least;
        if (more >= ends[side]) continue;
        more += weigh_side(b->live[o], side, weights, devices);
        if (more < ends[side]) ends[side] = more, end[side] = b->live[o], instead[side] = best;
      }
    }
  }
  for (int side = HEAD; side < SIDES; ++side) {
    if (end[side] == NULL) ends[side] = 0;
    for (uint32_t d = 0; d < devices && end[side] != NULL; ++d)
      slope[d] += end[side]->load[d] - instead[side]->load[d] + side_of(end[side], side, d);
  }
  b->used += b->live_offsets[b->assign->count];
  return sum + ends[HEAD] + ends[TAIL];
}

/* Projects onto the nearest point whose coordinates are non-negative and sum to 1. */
static void project(double *weights, uint32_t count) {
  bool is_out[CLV__PEP_DEVICES] = {false};
  for (uint32_t round = 0; round <= count; ++round) {
    double sum = 0;
    uint32_t in = 0;
    for (uint32_t d = 0; d < count; ++d) sum += is_out[d] ? 0 : weights[d], in += !is_out[d];
    double shift = in > 0 ? (1 - sum) / in : 0;
    bool good = true;
    for (uint32_t d = 0; d < count; ++d) {
      if (is_out[d]) continue;
      weights[d] += shift;
      if (weights[d] < 0) good = false;
    }
    if (good) return;
    for (uint32_t d = 0; d < count; ++d) {
      if (!is_out[d] && weights[d] < 0) weights[d] = 0, is_out[d] = true;
    }
  }
}

/* Ascends by subgradients with Polyak's step sizes towards the goal. Keeps the best weights. */
static double relax(bounding *b) {
  uint32_t devices = b->assign->device_count;
  double weights[CLV__PEP_DEVICES], slope[CLV__PEP_DEVICES], best = -INFINITY, scale = 1;
  int stale = 0;
  memcpy(weights, b->weights, sizeof weights);
  for (int step = 0; step < STEPS; ++step) {
    double value = weighted_bound(b, weights, slope), mean = 0, square = 0;
    if (value > best) {
      stale = value > best * (1 + 1e-5) ? 0 : stale + 1;
      best = value;
      memcpy(b->weights, weights, sizeof weights);
    } else if (++stale % 6 == 0) {
      scale /= 2;
      memcpy(weights, b->weights, sizeof weights);
      (void)weighted_bound(b, weights, slope);
    }
    if (best >= goal_of(b) || stale > 40) break;
    for (uint32_t d = 0; d < devices; ++d) mean += slope[d] / devices;
    for (uint32_t d = 0; d < devices; ++d) square += (slope[d] - mean) * (slope[d] - mean);
    if (!(square > 0)) break;
    double far = scale * clv__larger(goal_of(b) - value, 1e-3 * fabs(value)) / square;
    for (uint32_t d = 0; d < devices; ++d) weights[d] += far * (slope[d] - mean);
    project(weights, devices);
  }
  return best;
}

/* ---- The tree ---- */

/* Computes the minimum cost of the subgraphs from each depth on. */
static void set_rests(bounding *b, uint32_t weighting) {
  double *rests = b->rests[weighting];
  for (uint32_t depth = b->assign->count; depth-- > 0;) {
    uint32_t i = b->order[depth];
    double least = INFINITY;
    for (uint32_t o = b->live_offsets[i]; o < b->live_offsets[i + 1]; ++o) least = clv__smaller(least, b->costs[weighting][o]);
    rests[depth] = rests[depth + 1] + least;
  }
}

/* Orders the subgraphs by their largest load, largest first. Twins keep their order. */
static void order_subgraphs(bounding *b) {
  const clv__assign *assign = b->assign;
  for (uint32_t i = 0; i < assign->count; ++i) {
    double most = 0;
    for (uint32_t o = assign->offsets[i]; o < assign->offsets[i + 1]; ++o) {
      for (uint32_t d = 0; d < assign->device_count; ++d) most = clv__larger(most, assign->options[o].load[d]);
    }
    uint32_t at = i;
    for (; at > 0 && b->rests[0][b->order[at - 1]] < most; --at) b->order[at] = b->order[at - 1];
    b->order[at] = i;
    b->rests[0][i] = most; /* temporary: rests[0] is the sort key here; set_rests() overwrites it */
  }
}

static void prepare_tree(bounding *b) {
  const clv__assign *assign = b->assign;
  uint32_t devices = assign->device_count;
  order_subgraphs(b);
  memcpy(b->weightings[devices], b->weights, sizeof b->weights);
  for (uint32_t d = 0; d < devices; ++d) b->weightings[d][d] = 1;
  for (uint32_t l = 0; l <= devices; ++l) {
    double ends[SIDES] = {INFINITY, INFINITY};
    for (uint32_t o = 0; o < b->live_offsets[assign->count]; ++o) {
      b->costs[l][o] = weigh(b->live[o], b->weightings[l], devices);
      for (int side = HEAD; side < SIDES && b->live[o]->devices != 0; ++side)
        ends[side] = clv__smaller(ends[side], weigh_side(b->live[o], side, b->weightings[l], devices));
    }
    b->constants[l] = assign->count > 1 && isfinite(ends[HEAD]) ? ends[HEAD] + ends[TAIL] : 0;
    b->rests[l][assign->count] = 0;
    set_rests(b, l);
  }
  b->used += (uint64_t)(devices + 1ul) * b->live_offsets[assign->count];
}

static void try_choices(bounding *b) {
  double value = clv__assign_value(b->assign, b->choices), proven = 0;
  b->used += LEAF_STEPS * (uint64_t)b->assign->count;
  if (value >= goal_of(b)) return;
  if (b->attempt != NULL) b->upper = clv__smaller(b->upper, b->attempt(b->user, b->choices, goal_of(b), &proven));
  b->best_value = clv__smaller(b->best_value, clv__larger(value, proven));
}

typedef struct branch {
  double bound;
  uint32_t live;
} branch;

static int compare_branches(const void *a, const void *b) {
  const branch *x = a, *y = b;
  if (x->bound != y->bound) return (x->bound > y->bound) - (x->bound < y->bound);
  return (x->live > y->live) - (x->live < y->live);
}

static void search(bounding *b, uint32_t depth, const double *partial) {
  const clv__assign *assign = b->assign;
  if (depth == assign->count) {
    try_choices(b);
    return;
  }
  const uint32_t i = b->order[depth], twin = assign->twins[i], devices = assign->device_count;
  uint32_t count = 0;
  branch branches[MOST_BRANCHES];
  for (uint32_t o = b->live_offsets[i]; o < b->live_offsets[i + 1]; ++o) {
    if (twin != CLV__NO_ID && b->live[o]->index < b->choices[twin])
      continue; /* skip: equals the same assignment with the twins swapped */
    double bound = 0;
    for (uint32_t l = 0; l <= devices; ++l)
      bound = clv__larger(bound, partial[l] + b->costs[l][o] + b->rests[l][depth + 1] + b->constants[l]);
    if (bound >= goal_of(b)) continue;
    if (count == MOST_BRANCHES) { /* no room for this branch: leave it open */
      b->open = clv__smaller(b->open, bound);
      continue;
    }
    branches[count++] = (branch){bound, o};
  }
  b->used += (b->live_offsets[i + 1] - b->live_offsets[i]) * 2ul + 1;
  ++b->nodes;
  if (count > 1) qsort(branches, count, sizeof *branches, compare_branches);
  for (uint32_t k = 0; k < count; ++k) {
    /* The branches are sorted by bound, so the remaining ones need not be searched either. */
    if (branches[k].bound >= goal_of(b)) return;
    if (b->used >= b->budget) {
      b->open = clv__smaller(b->open, branches[k].bound);
      return;
    }
    double below[WEIGHTINGS];
    for (uint32_t l = 0; l <= devices; ++l) below[l] = partial[l] + b->costs[l][branches[k].live];
    b->choices[i] = b->live[branches[k].live]->index;
    search(b, depth + 1, below);
  }
}

/* ---- The results ---- */

static bool start(bounding *b, const clv__assign *assign, clv__arena *arena, double upper_ns) {
  uint32_t count = assign->count, total = assign->offsets[count];
  *b = (bounding){.assign = assign, .upper = upper_ns, .best_value = upper_ns, .open = INFINITY};
  for (uint32_t d = 0; d < assign->device_count; ++d) b->weights[d] = 1.0 / assign->device_count;
  b->live = clv__arena_allocate_zero(arena, total, sizeof *b->live);
  b->scratch = clv__arena_allocate_zero(arena, total, sizeof *b->scratch);
  b->live_offsets = clv__arena_allocate_zero(arena, count + 1u, sizeof *b->live_offsets);
  b->order = clv__arena_allocate_zero(arena, count + 1u, sizeof *b->order);
  b->choices = clv__arena_allocate_zero(arena, count + 1u, sizeof *b->choices);
  bool good = b->live != NULL && b->live_offsets != NULL && b->order != NULL && b->choices != NULL && b->scratch != NULL;
  for (uint32_t l = 0; l < WEIGHTINGS && good; ++l) {
    b->costs[l] = clv__arena_allocate_zero(arena, total, sizeof **b->costs);
    b->rests[l] = clv__arena_allocate_zero(arena, count + 1u, sizeof **b->rests);
    good = b->costs[l] != NULL && b->rests[l] != NULL;
  }
  return good;
}

typedef struct rank {
  double cost;
  uint32_t index;
} rank;

static int compare_ranks(const void *a, const void *b) {
  const rank *x = a, *y = b;
  if (x->cost != y->cost) return (x->cost > y->cost) - (x->cost < y->cost);
  return (x->index > y->index) - (x->index < y->index);
}

clv_status clv__assign_rank(const clv__assign *assign, double upper_ns, uint32_t *ranked, clv_error *error) {
  clv__arena arena;
  clv__arena_init(&arena, assign->arena->allocator);
  bounding b;
  uint32_t total = assign->offsets[assign->count];
  rank *ranks = clv__arena_allocate_zero(&arena, total, sizeof *ranks);
  bool good = ranks != NULL && start(&b, assign, &arena, upper_ns);
  if (good) {
    if (fill(&b)) (void)relax(&b);
    for (uint32_t i = 0; i < assign->count; ++i) {
      uint32_t from = assign->offsets[i], count = assign->offsets[i + 1] - from;
      for (uint32_t o = 0; o < count; ++o)
        ranks[o] = (rank){weigh(&assign->options[from + o], b.weights, assign->device_count), o};
      if (count > 1) qsort(ranks, count, sizeof *ranks, compare_ranks);
      for (uint32_t o = 0; o < count; ++o) ranked[from + o] = ranks[o].index;
    }
  }
  clv__arena_finish(&arena);
  return good ? CLV_OK : clv__error_memory(error, total * sizeof *ranks);
}

clv_status clv__assign_bound(const clv__assign *assign, double upper_ns, double tolerance, uint64_t budget,
                             clv__assign_try attempt, void *user, clv__assign_result *result, clv_error *error) {
  clv__arena arena;
  bounding b = {0};
  *result = (clv__assign_result){.is_closed = true};
  if (assign->count == 0) return CLV_OK;
  clv__arena_init(&arena, assign->arena->allocator);
  bool good = start(&b, assign, &arena, upper_ns);
  if (good) {
    b.tolerance = tolerance, b.budget = budget, b.attempt = attempt, b.user = user;
    const double none[WEIGHTINGS] = {0}, bound = fill(&b) ? relax(&b) : INFINITY;
    if (bound < goal_of(&b)) {
      prepare_tree(&b);
      search(&b, 0, none);
      b.open = clv__larger(b.open, bound);
    }
    result->bound_ns = clv__smaller(goal_of(&b), b.open);
    result->is_closed = b.open >= goal_of(&b);
    result->nodes = b.nodes;
    result->steps = b.used;
  }
  clv__arena_finish(&arena);
  return good ? CLV_OK : clv__error_memory(error, assign->offsets[assign->count] * sizeof *b.live);
}
