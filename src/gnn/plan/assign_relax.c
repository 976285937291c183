/* Bounds a frame by multipliers. For any device weights that sum to 1, the weighted load of every assignment is at least the
 * sum of each subgraph's minimum (Lagrangian relaxation; the best weights give the value of the linear program). All devices
 * follow one sequence, so some subgraph is first on all of its devices, and one is last. The bound therefore adds the cheapest
 * way to be first and to be last, in reduced cost and weighted heads or tails. Options whose reduced cost is too high are
 * removed. */
#include <math.h>
#include <string.h>

#include "gnn/plan/assign_tree.h"

enum { STEPS = 120 };
#define LEAST_COST 1e-4 /* of a need, relative to the goal */

/* ---- Frames ---- */

static bool is_allowed(const clv__bounding *b, const clv__frame *f, const clv__option *option) {
  if (option->time >= clv__bounding_goal(b)) return false;
  for (uint32_t d = 0; d < b->assign->device_count; ++d) {
    if (!clv__option_uses(option, d)) continue;
    if (f->use[d] == CLV__USE_NEVER || option->head[d] < f->low[CLV__HEAD][d] || option->tail[d] < f->low[CLV__TAIL][d])
      return false;
  }
  return true;
}

/* Sets the gains of used devices. */
static void set_bonus(clv__bounding *b, const clv__frame *f) {
  for (uint32_t d = 0; d < b->assign->device_count; ++d) {
    double head = INFINITY, tail = INFINITY;
    for (uint32_t o = 0; o < b->live_offsets[b->assign->count]; ++o) {
      if (!clv__option_uses(b->live[o], d)) continue;
      head = clv__smaller(head, b->live[o]->head[d]), tail = clv__smaller(tail, b->live[o]->tail[d]);
    }
    b->bonus[CLV__HEAD][d] = f->use[d] == CLV__USE_MUST && isfinite(head) ? head : 0;
    b->bonus[CLV__TAIL][d] = f->use[d] == CLV__USE_MUST && isfinite(head) ? tail : 0;
  }
}

/* Returns false if a subgraph has no options left. */
bool clv__frame_fill(clv__bounding *b, const clv__frame *f) {
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

/* Computes the bound for these weights. `slope` is its derivative with respect to them. */
static double weighted_bound(clv__bounding *b, const double *weights, double *slope) {
  uint32_t devices = b->assign->device_count;
  const clv__option *end[CLV__SIDES] = {NULL, NULL}, *instead[CLV__SIDES] = {NULL, NULL};
  double sum = 0;
  b->ends[CLV__HEAD] = b->ends[CLV__TAIL] = INFINITY;
  for (uint32_t d = 0; d < devices; ++d) slope[d] = 0;
  for (uint32_t i = 0; i < b->assign->count; ++i) {
    const clv__option *best = NULL;
    double least = INFINITY;
    for (uint32_t o = b->live_offsets[i]; o < b->live_offsets[i + 1]; ++o) {
      double cost = b->scratch[o] = clv__option_weigh(b->live[o], weights, devices);
      if (cost < least) least = cost, best = b->live[o];
    }
    sum += least;
    for (uint32_t d = 0; d < devices; ++d) slope[d] += best->load[d];
    for (uint32_t o = b->live_offsets[i]; o < b->live_offsets[i + 1] && b->assign->count > 1; ++o) {
      if (b->live[o]->devices == 0) continue; /* nothing to run: cannot be first */
      for (int side = CLV__HEAD; side < CLV__SIDES; ++side) {
        double more = b->scratch[o] - least;
        if (more >= b->ends[side]) continue;
        more += clv__bounding_weigh_end(b, b->live[o], side, weights);
        if (more < b->ends[side]) b->ends[side] = more, end[side] = b->live[o], instead[side] = best;
      }
    }
  }
  for (int side = CLV__HEAD; side < CLV__SIDES; ++side) {
    if (end[side] == NULL) b->ends[side] = 0;
    for (uint32_t d = 0; d < devices && end[side] != NULL; ++d)
      slope[d] += end[side]->load[d] - instead[side]->load[d] +
                  (clv__option_uses(end[side], d) ? clv__option_side(end[side], side, d) : b->bonus[side][d]);
  }
  b->used += b->live_offsets[b->assign->count];
  b->sum = sum;
  return sum + b->ends[CLV__HEAD] + b->ends[CLV__TAIL];
}

/* The bound if a subgraph takes an option that costs `more` than its cheapest. The subgraph may itself be first or last. */
static double bound_with(const clv__bounding *b, const clv__option *option, double more, const double *weights) {
  double bound = b->sum + more;
  for (int side = CLV__HEAD; side < CLV__SIDES && b->assign->count > 1; ++side)
    bound +=
        option->devices == 0 ? b->ends[side] : clv__smaller(b->ends[side], clv__bounding_weigh_end(b, option, side, weights));
  return bound;
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

/* Ascends by subgradients with Polyak's step sizes towards the goal. Keeps the best weights in the frame. */
double clv__frame_relax(clv__bounding *b, clv__frame *f) {
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
    if (best >= clv__bounding_goal(b) || stale > 40) break;
    for (uint32_t d = 0; d < devices; ++d) mean += slope[d] / devices;
    for (uint32_t d = 0; d < devices; ++d) square += (slope[d] - mean) * (slope[d] - mean);
    if (!(square > 0)) break;
    double far = scale * clv__larger(clv__bounding_goal(b) - value, 1e-3 * fabs(value)) / square;
    for (uint32_t d = 0; d < devices; ++d) weights[d] += far * (slope[d] - mean);
    project(weights, devices);
  }
  return best;
}

/* Computes the bound from the frame's requirements: if a device must be used, or must have a head or tail below some value,
 * the bound includes the cheapest such option. Uses the frame's weights. */
double clv__frame_demand(clv__bounding *b, const clv__frame *f) {
  const clv__assign *assign = b->assign;
  double cheapest[3][CLV__PEP_DEVICES], slope[CLV__PEP_DEVICES], worst = 0;
  (void)weighted_bound(b, f->weights, slope);
  for (uint32_t d = 0; d < assign->device_count; ++d) cheapest[0][d] = cheapest[1][d] = cheapest[2][d] = INFINITY;
  for (uint32_t i = 0; i < assign->count; ++i) {
    double least = INFINITY;
    for (uint32_t o = b->live_offsets[i]; o < b->live_offsets[i + 1]; ++o) least = clv__smaller(least, b->scratch[o]);
    for (uint32_t o = b->live_offsets[i]; o < b->live_offsets[i + 1]; ++o) {
      double with = bound_with(b, b->live[o], b->scratch[o] - least, f->weights);
      for (uint32_t d = 0; d < assign->device_count; ++d) {
        if (!clv__option_uses(b->live[o], d)) continue;
        cheapest[2][d] = clv__smaller(cheapest[2][d], with);
        for (int side = CLV__HEAD; side < CLV__SIDES; ++side) {
          if (clv__option_side(b->live[o], side, d) < f->high[side][d]) cheapest[side][d] = clv__smaller(cheapest[side][d], with);
        }
      }
    }
  }
  for (uint32_t d = 0; d < assign->device_count; ++d) {
    if (f->use[d] != CLV__USE_MUST) continue;
    worst = clv__larger(worst, cheapest[2][d]);
    for (int side = CLV__HEAD; side < CLV__SIDES; ++side) worst = clv__larger(worst, cheapest[side][d]);
  }
  return worst;
}

/* Removes options that occur in no assignment below the goal. Returns false if there were none. */
bool clv__frame_shrink(clv__bounding *b, const clv__frame *f) {
  const clv__assign *assign = b->assign;
  uint32_t used = 0, before = b->live_offsets[assign->count];
  for (uint32_t i = 0, from = 0; i < assign->count; ++i) {
    uint32_t to = b->live_offsets[i + 1];
    double least = INFINITY;
    for (uint32_t o = from; o < to; ++o) least = clv__smaller(least, b->scratch[o]);
    b->live_offsets[i] = used;
    for (uint32_t o = from; o < to; ++o) {
      if (bound_with(b, b->live[o], b->scratch[o] - least, f->weights) < clv__bounding_goal(b)) b->live[used++] = b->live[o];
    }
    from = to;
  }
  b->live_offsets[assign->count] = used;
  set_bonus(b, f);
  return used < before;
}

/* ---- Needs ---- */

static bool meets(const clv__frame *f, const clv__frame_need *need, const clv__option *option) {
  if (!clv__option_uses(option, need->device)) return false;
  return clv__option_side(option, need->side, need->device) < f->high[need->side][need->device];
}

uint32_t clv__option_meets(const clv__bounding *b, const clv__frame *f, const clv__option *option) {
  uint32_t met = 0;
  for (uint32_t n = 0; n < b->need_count; ++n) met |= (uint32_t)meets(f, &b->needs[n], option) << n;
  return met;
}

/* The extra cost of the cheapest option that meets this need over its subgraph's cheapest option. */
static double cost_of(const clv__bounding *b, const clv__frame *f, const clv__frame_need *need) {
  double cost = INFINITY;
  for (uint32_t i = 0; i < b->assign->count; ++i) {
    double least = INFINITY, with = INFINITY;
    for (uint32_t o = b->live_offsets[i]; o < b->live_offsets[i + 1]; ++o) {
      double weighed = clv__option_weigh(b->live[o], f->weights, b->assign->device_count);
      least = clv__smaller(least, weighed);
      if (meets(f, need, b->live[o])) with = clv__smaller(with, weighed);
    }
    cost = clv__smaller(cost, with - least);
  }
  return cost;
}

void clv__frame_needs(clv__bounding *b, const clv__frame *f) {
  b->need_count = 0;
  for (uint32_t d = 0; d < b->assign->device_count; ++d) {
    for (int side = CLV__HEAD; side < CLV__SIDES && f->use[d] == CLV__USE_MUST; ++side) {
      const clv__frame_need need = {d, side};
      if (!isfinite(f->high[side][d]) || b->need_count == CLV__MOST_NEEDS) continue;
      if (cost_of(b, f, &need) > LEAST_COST * clv__bounding_goal(b)) b->needs[b->need_count++] = need;
    }
  }
}
