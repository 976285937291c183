/* The tree behind clv__assign_bound(). Its upper part branches on what the heads and tails of a device are at least: a *frame*
 * says which devices are used and from what values on, so that options below fall away and the value gains head and tail for
 * free. In a frame the largest load is bounded by multipliers: for any weights of the devices that sum to 1, the weighted load of
 * every assignment is at least the sum of each subgraph's least (Lagrange's relaxation; its best weights give what the linear
 * program gives). Since all devices keep to one sequence, some subgraph is first on all of its devices, and one last: the
 * cheapest way to be that is added, in reduced cost and weighted heads or tails. What the weights leave open is settled subgraph
 * by subgraph below. Options whose reduced cost is too high fall away. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gnn/assign.h"

#define MOVED 0.15

enum { HEAD, TAIL, SIDES, OPEN = 0, MUST, NEVER, STEPS = 120, MOST_MULTIPLIERS = 16, ROUNDS = 4 };

typedef struct frame {
  double low[SIDES][CLV__PEP_DEVICES], high[SIDES][CLV__PEP_DEVICES]; /* the smallest head or tail lies in [low, high) */
  uint8_t use[CLV__PEP_DEVICES];
  double bound, weights[CLV__PEP_DEVICES];
} frame;

typedef struct bounding {
  const clv__assign *assign;
  const clv_allocator *allocator;
  double upper, tolerance, best_value;
  uint64_t budget, used, nodes;
  double open; /* the least bound of what was left open */
  clv__assign_try attempt;
  void *user;
  frame *frames; /* a heap */
  size_t frame_count, frame_capacity;
  /* The frame at work: its options, of subgraph i from live_offsets[i] on. */
  const clv__option **live;
  double *scratch; /* weighted loads of the live ones */
  uint32_t *live_offsets;
  double bonus[SIDES][CLV__PEP_DEVICES]; /* of devices that the first or last subgraph does not use */
  double ends[SIDES];                    /* the cheapest first and last, as of the last weighted_bound() */
  double sum;                            /* and the rest of it */
  /* The lower part. */
  double multipliers[MOST_MULTIPLIERS][CLV__PEP_DEVICES], constants[MOST_MULTIPLIERS];
  uint32_t multiplier_count, *order, *choices;
  double *costs[MOST_MULTIPLIERS], *rests[MOST_MULTIPLIERS]; /* of live options; of the subgraphs from a depth on */
} bounding;

/* What a bound must reach to be enough. */
static double goal(const bounding *b) {
  return clv__smaller(b->best_value, b->upper / (1 + b->tolerance));
}

static double side_of(const clv__option *option, int side, uint32_t device) {
  return side == HEAD ? option->head[device] : option->tail[device];
}

static bool uses(const clv__option *option, uint32_t device) {
  return (option->devices >> device & 1u) != 0;
}

static double weigh(const clv__option *option, const double *weights, uint32_t devices) {
  double sum = 0;
  for (uint32_t d = 0; d < devices; ++d) sum += weights[d] * option->load[d];
  return sum;
}

/* ---- Frames ---- */

static bool is_allowed(const bounding *b, const frame *f, const clv__option *option) {
  if (option->time >= goal(b)) return false;
  for (uint32_t d = 0; d < b->assign->device_count; ++d) {
    if (!uses(option, d)) continue;
    if (f->use[d] == NEVER || option->head[d] < f->low[HEAD][d] || option->tail[d] < f->low[TAIL][d]) return false;
  }
  return true;
}

/* What used devices gain. */
static void set_bonus(bounding *b, const frame *f) {
  for (uint32_t d = 0; d < b->assign->device_count; ++d) {
    double head = INFINITY, tail = INFINITY;
    for (uint32_t o = 0; o < b->live_offsets[b->assign->count]; ++o) {
      if (!uses(b->live[o], d)) continue;
      head = clv__smaller(head, b->live[o]->head[d]), tail = clv__smaller(tail, b->live[o]->tail[d]);
    }
    b->bonus[HEAD][d] = f->use[d] == MUST && isfinite(head) ? head : 0;
    b->bonus[TAIL][d] = f->use[d] == MUST && isfinite(head) ? tail : 0;
  }
}

/* False: a subgraph has none left. */
static bool fill(bounding *b, const frame *f) {
  const clv__assign *assign = b->assign;
  uint32_t used = 0;
  for (uint32_t i = 0; i < assign->count; ++i) {
    b->live_offsets[i] = used;
    for (uint32_t o = assign->offsets[i]; o < assign->offsets[i + 1]; ++o) {
      if (is_allowed(b, f, &assign->options[o])) b->live[used++] = &assign->options[o];
    }
    if (used == b->live_offsets[i]) return false;
  }
  b->live_offsets[assign->count] = used;
  b->used += assign->offsets[assign->count];
  set_bonus(b, f);
  return true;
}

/* Weighted heads (tails) where this is the first (the last) subgraph. */
static double weigh_end(const bounding *b, const clv__option *option, int side, const double *weights) {
  double sum = 0;
  for (uint32_t d = 0; d < b->assign->device_count; ++d)
    sum += weights[d] * (uses(option, d) ? side_of(option, side, d) : b->bonus[side][d]);
  return sum;
}

/* The bound that these weights give; `slope` is how it changes with them. */
static double weighted_bound(bounding *b, const double *weights, double *slope) {
  uint32_t devices = b->assign->device_count;
  const clv__option *end[SIDES] = {NULL, NULL}, *instead[SIDES] = {NULL, NULL};
  double sum = 0;
  b->ends[HEAD] = b->ends[TAIL] = INFINITY;
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
      if (b->live[o]->devices == 0) continue; /* nothing to run: first is another */
      for (int side = HEAD; side < SIDES; ++side) {
        double more = b->scratch[o] - least;
        if (more >= b->ends[side]) continue;
        more += weigh_end(b, b->live[o], side, weights);
        if (more < b->ends[side]) b->ends[side] = more, end[side] = b->live[o], instead[side] = best;
      }
    }
  }
  for (int side = HEAD; side < SIDES; ++side) {
    if (end[side] == NULL) b->ends[side] = 0;
    for (uint32_t d = 0; d < devices && end[side] != NULL; ++d)
      slope[d] +=
          end[side]->load[d] - instead[side]->load[d] + (uses(end[side], d) ? side_of(end[side], side, d) : b->bonus[side][d]);
  }
  b->used += b->live_offsets[b->assign->count];
  b->sum = sum;
  return sum + b->ends[HEAD] + b->ends[TAIL];
}

/* The bound where a subgraph takes an option that costs `more` than its cheapest: it may be the first or the last itself. */
static double bound_with(const bounding *b, const clv__option *option, double more, const double *weights) {
  double bound = b->sum + more;
  for (int side = HEAD; side < SIDES && b->assign->count > 1; ++side)
    bound += option->devices == 0 ? b->ends[side] : clv__smaller(b->ends[side], weigh_end(b, option, side, weights));
  return bound;
}

/* The nearest point whose coordinates are not negative and sum to 1. */
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

/* Climbs by subgradients with Polyak's steps towards the goal. The best weights stay in the frame. */
static double relax(bounding *b, frame *f) {
  uint32_t devices = b->assign->device_count;
  double weights[CLV__PEP_DEVICES], slope[CLV__PEP_DEVICES], best = -INFINITY, scale = 1;
  int stale = 0;
  memcpy(weights, f->weights, sizeof weights);
  for (int step = 0; step < STEPS; ++step) {
    double value = weighted_bound(b, weights, slope), mean = 0, square = 0;
    if (value > best) {
      stale = value > best * (1 + 1e-5) ? 0 : stale + 1;
      best = value;
      memcpy(f->weights, weights, sizeof weights);
    } else if (++stale % 6 == 0) {
      scale /= 2;
      memcpy(weights, f->weights, sizeof weights);
      (void)weighted_bound(b, weights, slope);
    }
    if (best >= goal(b) || stale > 40) break;
    for (uint32_t d = 0; d < devices; ++d) mean += slope[d] / devices;
    for (uint32_t d = 0; d < devices; ++d) square += (slope[d] - mean) * (slope[d] - mean);
    if (!(square > 0)) break;
    double far = scale * clv__larger(goal(b) - value, 1e-3 * fabs(value)) / square;
    for (uint32_t d = 0; d < devices; ++d) weights[d] += far * (slope[d] - mean);
    project(weights, devices);
  }
  return best;
}

/* The bound by what must be there: where a device must be used, or have a head or a tail below some value, the cheapest such
 * option. The frame's weights are in force. */
static double demand(const bounding *b, const frame *f) {
  const clv__assign *assign = b->assign;
  double cheapest[3][CLV__PEP_DEVICES], worst = 0;
  for (uint32_t d = 0; d < assign->device_count; ++d) cheapest[0][d] = cheapest[1][d] = cheapest[2][d] = INFINITY;
  for (uint32_t i = 0; i < assign->count; ++i) {
    double least = INFINITY;
    for (uint32_t o = b->live_offsets[i]; o < b->live_offsets[i + 1]; ++o) least = clv__smaller(least, b->scratch[o]);
    for (uint32_t o = b->live_offsets[i]; o < b->live_offsets[i + 1]; ++o) {
      double with = bound_with(b, b->live[o], b->scratch[o] - least, f->weights);
      for (uint32_t d = 0; d < assign->device_count; ++d) {
        if (!uses(b->live[o], d)) continue;
        cheapest[2][d] = clv__smaller(cheapest[2][d], with);
        for (int side = HEAD; side < SIDES; ++side) {
          if (side_of(b->live[o], side, d) < f->high[side][d]) cheapest[side][d] = clv__smaller(cheapest[side][d], with);
        }
      }
    }
  }
  for (uint32_t d = 0; d < assign->device_count; ++d) {
    if (f->use[d] != MUST) continue;
    worst = clv__larger(worst, cheapest[2][d]);
    for (int side = HEAD; side < SIDES; ++side) worst = clv__larger(worst, cheapest[side][d]);
  }
  return worst;
}

/* Takes out options that no assignment below the goal has. False: none was. */
static bool shrink(bounding *b, const frame *f) {
  const clv__assign *assign = b->assign;
  uint32_t used = 0, before = b->live_offsets[assign->count];
  for (uint32_t i = 0, from = 0; i < assign->count; ++i) {
    uint32_t to = b->live_offsets[i + 1];
    double least = INFINITY;
    for (uint32_t o = from; o < to; ++o) least = clv__smaller(least, b->scratch[o]);
    b->live_offsets[i] = used;
    for (uint32_t o = from; o < to; ++o) {
      if (bound_with(b, b->live[o], b->scratch[o] - least, f->weights) < goal(b)) b->live[used++] = b->live[o];
    }
    from = to;
  }
  b->live_offsets[assign->count] = used;
  set_bonus(b, f);
  return used < before;
}

/* ---- The lower part: subgraph by subgraph ---- */

static double *weights_of(bounding *b, uint32_t index) {
  return b->multipliers[index];
}

static void prepare_search(bounding *b, const frame *f) {
  const clv__assign *assign = b->assign;
  uint32_t devices = assign->device_count;
  b->multiplier_count = 0;
  memcpy(weights_of(b, b->multiplier_count++), f->weights, sizeof f->weights);
  for (uint32_t d = 0; d < devices && b->multiplier_count < MOST_MULTIPLIERS; ++d) {
    double *alone = weights_of(b, b->multiplier_count++);
    for (uint32_t e = 0; e < devices; ++e) alone[e] = e == d ? 1 : 0;
  }
  for (uint32_t d = 0; d < devices;
       ++d) { /* what has been decided may load one device more than another: some of its worth moved */
    for (uint32_t e = 0; e < devices && b->multiplier_count < MOST_MULTIPLIERS; ++e) {
      if (e == d || f->weights[d] <= 0) continue;
      double *moved = weights_of(b, b->multiplier_count++);
      memcpy(moved, f->weights, sizeof f->weights);
      moved[d] *= 1 - MOVED, moved[e] += f->weights[d] * MOVED;
    }
  }
  for (uint32_t l = 0; l < b->multiplier_count; ++l) {
    double ends[SIDES] = {INFINITY, INFINITY};
    for (uint32_t o = 0; o < b->live_offsets[assign->count]; ++o) {
      b->costs[l][o] = weigh(b->live[o], b->multipliers[l], devices);
      for (int side = HEAD; side < SIDES && b->live[o]->devices != 0; ++side)
        ends[side] = clv__smaller(ends[side], weigh_end(b, b->live[o], side, b->multipliers[l]));
    }
    b->constants[l] = assign->count > 1 && isfinite(ends[HEAD]) ? ends[HEAD] + ends[TAIL] : 0;
    b->rests[l][assign->count] = 0;
    for (uint32_t depth = assign->count; depth-- > 0;) {
      uint32_t i = b->order[depth];
      double least = INFINITY;
      for (uint32_t o = b->live_offsets[i]; o < b->live_offsets[i + 1]; ++o) least = clv__smaller(least, b->costs[l][o]);
      b->rests[l][depth] = b->rests[l][depth + 1] + least;
    }
  }
  b->used += (uint64_t)b->multiplier_count * b->live_offsets[assign->count];
}

static void reach_leaf(bounding *b) {
  double value = clv__assign_value(b->assign, b->choices), proven = 0;
  if (value >= goal(b)) return;
  if (b->attempt != NULL) b->upper = clv__smaller(b->upper, b->attempt(b->user, b->choices, goal(b), &proven));
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

enum { MOST_BRANCHES = 128 };

static void search(bounding *b, uint32_t depth, const double *partial, uint64_t limit) {
  const clv__assign *assign = b->assign;
  if (depth == assign->count) {
    reach_leaf(b);
    return;
  }
  uint32_t i = b->order[depth], count = 0, twin = assign->twins[i], rest = 0;
  branch branches[MOST_BRANCHES];
  for (uint32_t o = b->live_offsets[i]; o < b->live_offsets[i + 1]; ++o) {
    if (twin != CLV__NO_ID && b->live[o]->index < b->choices[twin]) continue; /* the same with both changed over */
    double bound = 0;
    for (uint32_t l = 0; l < b->multiplier_count; ++l)
      bound = clv__larger(bound, partial[l] + b->costs[l][o] + b->rests[l][depth + 1] + b->constants[l]);
    if (bound >= goal(b)) continue;
    if (count == MOST_BRANCHES) { /* left open */
      b->open = clv__smaller(b->open, bound);
      ++rest;
      continue;
    }
    branches[count++] = (branch){bound, o};
  }
  b->used += (b->live_offsets[i + 1] - b->live_offsets[i]) * 2ul + 1;
  ++b->nodes;
  if (count > 1) qsort(branches, count, sizeof *branches, compare_branches);
  for (uint32_t k = 0; k < count; ++k) {
    if (branches[k].bound >= goal(b)) return; /* so are the others */
    if (b->used >= limit) {
      b->open = clv__smaller(b->open, branches[k].bound);
      return;
    }
    double below[MOST_MULTIPLIERS];
    for (uint32_t l = 0; l < b->multiplier_count; ++l) below[l] = partial[l] + b->costs[l][branches[k].live];
    b->choices[i] = b->live[branches[k].live]->index;
    search(b, depth + 1, below, limit);
  }
}

/* ---- The upper part ---- */

static bool push(bounding *b, const frame *f) {
  if (!clv__array_reserve(b->allocator, (void **)&b->frames, &b->frame_capacity, b->frame_count + 1, sizeof *f, b->frame_count))
    return false;
  size_t at = b->frame_count++;
  for (; at > 0 && b->frames[(at - 1) / 2].bound > f->bound; at = (at - 1) / 2) b->frames[at] = b->frames[(at - 1) / 2];
  b->frames[at] = *f;
  return true;
}

static frame pop(bounding *b) {
  frame top = b->frames[0], last = b->frames[--b->frame_count];
  size_t at = 0;
  for (size_t child; (child = 2 * at + 1) < b->frame_count; at = child) {
    if (child + 1 < b->frame_count && b->frames[child + 1].bound < b->frames[child].bound) ++child;
    if (b->frames[child].bound >= last.bound) break;
    b->frames[at] = b->frames[child];
  }
  b->frames[at] = last;
  return top;
}

static int compare_reals(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Where to part the values that the smallest of a side may have: at the middle one of those over the least. False: there is but
 * one. */
static bool middle_value(bounding *b, const frame *f, uint32_t device, int side, double *values, double *least, double *middle) {
  uint32_t count = 0, above = 0;
  *least = INFINITY, *middle = 0;
  for (uint32_t o = 0; o < b->live_offsets[b->assign->count]; ++o) {
    if (uses(b->live[o], device)) values[count++] = side_of(b->live[o], side, device);
  }
  for (uint32_t v = 0; v < count; ++v) *least = clv__smaller(*least, values[v]);
  for (uint32_t v = 0; v < count; ++v) {
    if (values[v] > *least * (1 + 1e-9) && values[v] < f->high[side][device]) values[above++] = values[v];
  }
  if (above == 0) return false;
  qsort(values, above, sizeof *values, compare_reals);
  *middle = values[above / 2];
  return true;
}

/* The two halves of a frame, by what promises most; false: nothing does. `values` has room for all options. */
static bool split(bounding *b, const frame *f, double bound, double *values, frame halves[2]) {
  double most = 5e-4 * bound, value = 0;
  uint32_t device = CLV__NO_ID;
  int side = SIDES;
  for (uint32_t d = 0; d < b->assign->device_count; ++d) {
    for (int s = HEAD; s < SIDES && f->use[d] != NEVER; ++s) {
      double least, middle;
      bool differs = middle_value(b, f, d, s, values, &least, &middle);
      double gain = f->weights[d] * (f->use[d] == OPEN ? (differs ? middle : least) : differs ? middle - least : 0);
      if (!isfinite(gain) || gain <= most) continue;
      most = gain, device = d, side = f->use[d] == OPEN ? SIDES : s, value = middle;
    }
  }
  if (device == CLV__NO_ID) return false;
  halves[0] = halves[1] = *f;
  halves[0].bound = halves[1].bound = bound;
  if (side == SIDES) {
    halves[0].use[device] = MUST, halves[1].use[device] = NEVER;
  } else {
    halves[0].low[side][device] = value;
    halves[1].high[side][device] = clv__smaller(value, f->high[side][device]);
  }
  return true;
}

static void order_pieces(bounding *b, double *values) {
  const clv__assign *assign = b->assign;
  for (uint32_t i = 0; i < assign->count; ++i) {
    double most = 0;
    for (uint32_t o = assign->offsets[i]; o < assign->offsets[i + 1]; ++o) {
      for (uint32_t d = 0; d < assign->device_count; ++d) most = clv__larger(most, assign->options[o].load[d]);
    }
    uint32_t at = i; /* by insertion, the largest first; twins stay in their order */
    for (; at > 0 && values[b->order[at - 1]] < most; --at) b->order[at] = b->order[at - 1];
    b->order[at] = i;
    values[i] = most;
  }
}

static bool settle(bounding *b, frame *f, double *values) {
  frame halves[2];
  double bound = f->bound;
  if (!fill(b, f)) return true;
  for (int round = 0; round < ROUNDS; ++round) {
    double slope[CLV__PEP_DEVICES];
    bound = clv__larger(bound, relax(b, f));
    if (bound >= goal(b)) return true;
    (void)weighted_bound(b, f->weights, slope);
    bound = clv__larger(bound, demand(b, f));
    if (bound >= goal(b)) return true;
    if (!shrink(b, f)) break;
    for (uint32_t i = 0; i < b->assign->count; ++i) {
      if (b->live_offsets[i] == b->live_offsets[i + 1]) return true;
    }
  }
  if (split(b, f, bound, values, halves)) return push(b, &halves[0]) && push(b, &halves[1]);
  double none[MOST_MULTIPLIERS] = {0};
  prepare_search(b, f);
  uint64_t left = b->budget > b->used ? b->budget - b->used : 0;
  double before = b->open;
  b->open = INFINITY;
  search(b, 0, none, b->used + left / 2);
  b->open = clv__smaller(before, clv__larger(b->open, bound));
  return true;
}

static bool reserve(bounding *b, clv__arena *arena) {
  uint32_t count = b->assign->count, total = b->assign->offsets[count];
  b->live = clv__arena_allocate_zero(arena, total, sizeof *b->live);
  b->scratch = clv__arena_allocate_zero(arena, total, sizeof *b->scratch);
  b->live_offsets = clv__arena_allocate_zero(arena, count + 1u, sizeof *b->live_offsets);
  b->order = clv__arena_allocate_zero(arena, count + 1u, sizeof *b->order);
  b->choices = clv__arena_allocate_zero(arena, count + 1u, sizeof *b->choices);
  bool good = b->live != NULL && b->live_offsets != NULL && b->order != NULL && b->choices != NULL && b->scratch != NULL;
  for (uint32_t l = 0; l < MOST_MULTIPLIERS && good; ++l) {
    b->costs[l] = clv__arena_allocate_zero(arena, total, sizeof **b->costs);
    b->rests[l] = clv__arena_allocate_zero(arena, count + 1u, sizeof **b->rests);
    good = b->costs[l] != NULL && b->rests[l] != NULL;
  }
  return good;
}

static bool start(bounding *b, const clv__assign *assign, clv__arena *arena, double upper_ns, frame *root) {
  *b = (bounding){.assign = assign, .allocator = assign->arena->allocator, .upper = upper_ns, .open = INFINITY};
  *root = (frame){.bound = 0};
  for (uint32_t d = 0; d < assign->device_count; ++d) {
    root->weights[d] = 1.0 / assign->device_count;
    root->high[HEAD][d] = root->high[TAIL][d] = INFINITY;
  }
  if (!reserve(b, arena)) return false;
  b->best_value = upper_ns;
  return true;
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
  frame root;
  uint32_t total = assign->offsets[assign->count];
  rank *ranks = clv__arena_allocate_zero(&arena, total, sizeof *ranks);
  bool good = ranks != NULL && start(&b, assign, &arena, upper_ns, &root);
  if (good) {
    if (fill(&b, &root)) (void)relax(&b, &root);
    for (uint32_t i = 0; i < assign->count; ++i) {
      uint32_t from = assign->offsets[i], count = assign->offsets[i + 1] - from;
      for (uint32_t o = 0; o < count; ++o)
        ranks[o] = (rank){weigh(&assign->options[from + o], root.weights, assign->device_count), o};
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
  frame f;
  *result = (clv__assign_result){.is_closed = true};
  if (assign->count == 0) return CLV_OK;
  clv__arena_init(&arena, assign->arena->allocator);
  uint32_t most = assign->offsets[assign->count] > assign->count ? assign->offsets[assign->count] : assign->count;
  double *values = clv__arena_allocate_zero(&arena, most, sizeof *values);
  bool good = values != NULL && start(&b, assign, &arena, upper_ns, &f);
  if (good) {
    b.tolerance = tolerance, b.budget = budget, b.attempt = attempt, b.user = user;
    order_pieces(&b, values);
    good = push(&b, &f);
  }
  while (good && b.frame_count > 0 && b.used < b.budget && b.frames[0].bound < goal(&b)) {
    f = pop(&b);
    good = settle(&b, &f, values);
  }
  if (good) {
    double open = b.frame_count > 0 ? clv__smaller(b.open, b.frames[0].bound) : b.open;
    result->bound_ns = clv__smaller(goal(&b), open);
    result->is_closed = open >= goal(&b);
    result->nodes = b.nodes;
  }
  clv__release(assign->arena->allocator, b.frames);
  clv__arena_finish(&arena);
  return good ? CLV_OK : clv__error_memory(error, sizeof(frame));
}
