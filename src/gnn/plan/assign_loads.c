/* Computes a tighter bound of a frame than its multipliers do, because it considers single assignments rather than mixtures.
 * It sets the load of one device against the weighted sum of the others', as in a knapsack: for each load of the first, in
 * cells, it finds the minimum of the others', subgraph by subgraph. Loads are rounded down, so that the result remains a
 * bound. The state includes the frame's needs that are met. */
#include <math.h>
#include <string.h>

#include "gnn/plan/assign_tree.h"

enum { CELLS = 128, FINER = 6, CELLS_A_STEP = 128 }; /* CELLS: per subgraph */
#define LEAST_WEIGHT 1e-3
#define MOST_ROOM ((size_t)48 << 20) /* bytes; limits the resolution */

typedef struct loads {
  clv__bounding *b;
  const clv__frame *f;
  uint32_t device, cells, states;
  double others[CLV__PEP_DEVICES]; /* weights, except that of `device` */
  double width, base, base_other;  /* width of a cell; the unavoidable loads, including heads and tails */
  float *layers;                   /* [count + 1][states][cells] */
} loads;

static float *layer_of(const loads *l, uint32_t piece, uint32_t state) {
  return l->layers + ((size_t)piece * l->states + state) * l->cells;
}

static double other_load(const loads *l, const clv__option *option) {
  return clv__option_weigh(option, l->others, l->b->assign->device_count);
}

/* Adds each subgraph's minimum to the bases. Returns false if that exceeds the goal. */
static bool set_bases(loads *l) {
  const clv__bounding *b = l->b;
  l->base = b->bonus[CLV__HEAD][l->device] + b->bonus[CLV__TAIL][l->device];
  l->base_other = 0;
  for (uint32_t d = 0; d < b->assign->device_count; ++d)
    l->base_other += l->others[d] * (b->bonus[CLV__HEAD][d] + b->bonus[CLV__TAIL][d]);
  for (uint32_t i = 0; i < b->assign->count; ++i) {
    double least = INFINITY, least_other = INFINITY;
    for (uint32_t o = b->live_offsets[i]; o < b->live_offsets[i + 1]; ++o) {
      least = clv__smaller(least, b->live[o]->load[l->device]);
      least_other = clv__smaller(least_other, other_load(l, b->live[o]));
    }
    l->base += least, l->base_other += least_other;
  }
  l->width = (clv__bounding_goal(b) - l->base) / l->cells;
  return l->width > 0 && l->base_other < clv__bounding_goal(b);
}

/* An option's addition to the bases. */
typedef struct step {
  uint32_t cells, met;
  float other;
} step;

static step step_of(const loads *l, const clv__option *option, double least, double least_other) {
  step s = {.met = clv__option_meets(l->b, l->f, option)};
  double cells = floor((option->load[l->device] - least) / l->width * (1 - 1e-12));
  s.cells = cells < l->cells ? (uint32_t)cells : l->cells;
  s.other = (float)((other_load(l, option) - least_other) * (1 - 1e-7)); /* never above the true value */
  return s;
}

static void leasts_of(const loads *l, uint32_t piece, double *least, double *least_other) {
  *least = *least_other = INFINITY;
  for (uint32_t o = l->b->live_offsets[piece]; o < l->b->live_offsets[piece + 1]; ++o) {
    *least = clv__smaller(*least, l->b->live[o]->load[l->device]);
    *least_other = clv__smaller(*least_other, other_load(l, l->b->live[o]));
  }
}

static void take_smaller(float *restrict to, const float *restrict from, float more, uint32_t count) {
  for (uint32_t c = 0; c < count; ++c) {
    float with = from[c] + more;
    to[c] = with < to[c] ? with : to[c];
  }
}

static void add_piece(const loads *l, uint32_t piece) {
  const clv__bounding *b = l->b;
  double least, least_other;
  leasts_of(l, piece, &least, &least_other);
  for (size_t c = 0; c < (size_t)l->states * l->cells; ++c) layer_of(l, piece + 1, 0)[c] = INFINITY;
  for (uint32_t o = b->live_offsets[piece]; o < b->live_offsets[piece + 1]; ++o) {
    const step s = step_of(l, b->live[o], least, least_other);
    for (uint32_t state = 0; state < l->states; ++state)
      take_smaller(layer_of(l, piece + 1, state | s.met) + s.cells, layer_of(l, piece, state), s.other, l->cells - s.cells);
  }
}

/* Reconstructs the assignment that ends in this cell: for each subgraph, an option that leads there. */
static void trace(const loads *l, uint32_t cell, uint32_t *choices) {
  const clv__bounding *b = l->b;
  uint32_t state = l->states - 1;
  for (uint32_t piece = b->assign->count; piece-- > 0;) {
    double least, least_other;
    leasts_of(l, piece, &least, &least_other);
    bool found = false;
    for (uint32_t o = b->live_offsets[piece]; o < b->live_offsets[piece + 1] && !found; ++o) {
      const step s = step_of(l, b->live[o], least, least_other);
      for (uint32_t before = 0; before < l->states && !found; ++before) {
        if (s.cells > cell || (before | s.met) != state) continue;
        if (layer_of(l, piece, before)[cell - s.cells] + s.other != layer_of(l, piece + 1, state)[cell]) continue;
        choices[piece] = b->live[o]->index;
        cell -= s.cells, state = before;
        found = true;
      }
    }
    if (!found)
      choices[piece] = b->live[b->live_offsets[piece]]->index; /* rounding: any option will do, as the assignment is only tried */
  }
}

/* Computes the bound with `device` as the single device. */
static double bound_by(loads *l, uint32_t *choices, double *least) {
  const clv__bounding *b = l->b;
  uint32_t count = b->assign->count, best = CLV__NO_ID;
  double total = 0, bound = clv__bounding_goal(b);
  for (uint32_t d = 0; d < b->assign->device_count; ++d) total += l->others[d] = d == l->device ? 0 : l->f->weights[d];
  if (!(total > LEAST_WEIGHT)) return 0;
  for (uint32_t d = 0; d < b->assign->device_count; ++d) l->others[d] /= total;
  if (!set_bases(l)) return bound;
  for (size_t c = 0; c < (size_t)l->states * l->cells; ++c) l->layers[c] = INFINITY;
  l->layers[0] = 0;
  for (uint32_t i = 0; i < count; ++i) add_piece(l, i);
  const float *last = layer_of(l, count, l->states - 1);
  for (uint32_t c = 0; c < l->cells; ++c) {
    double mine = l->base + l->width * c, others = l->base_other + (double)last[c] * (1 - 1e-6);
    if (clv__larger(mine, others) < bound) bound = clv__larger(mine, others), best = c;
  }
  if (best != CLV__NO_ID && bound < *least) trace(l, best, choices);
  *least = clv__smaller(*least, bound);
  return bound;
}

/* Computes the bound with `cells` cells. `error` is the most that more cells could add. Returns false if memory runs out. */
static bool bound_with(loads *l, uint32_t cells, double *bound, double *error) {
  clv__bounding *b = l->b;
  double least = INFINITY;
  uint32_t weighty = 0;
  l->cells = cells;
  l->layers = clv__allocate(b->allocator, ((size_t)b->assign->count + 1) * l->states * cells * sizeof *l->layers);
  if (l->layers == NULL) return false;
  *error = 0;
  for (uint32_t d = 0; d < b->assign->device_count; ++d) weighty += l->f->weights[d] >= LEAST_WEIGHT;
  for (uint32_t d = 0; d < b->assign->device_count && *bound < clv__bounding_goal(b); ++d) {
    if (l->f->weights[d] < LEAST_WEIGHT) continue;
    l->device = d;
    *bound = clv__larger(*bound, bound_by(l, b->choices, &least));
    *error = clv__larger(*error, l->width * b->assign->count);
    b->used += (uint64_t)cells * l->states * b->live_offsets[b->assign->count] / CELLS_A_STEP;
    if (weighty == 2) break; /* with two devices, the reverse gives the same bound */
  }
  clv__release(b->allocator, l->layers);
  if (isfinite(least) && *bound < clv__bounding_goal(b)) clv__bounding_try(b);
  return true;
}

/* Returns whether memory and budget suffice for this many cells. */
static bool is_affordable(const loads *l, uint64_t cells) {
  const clv__bounding *b = l->b;
  uint64_t steps = cells * l->states * b->live_offsets[b->assign->count] / CELLS_A_STEP;
  uint64_t size_bytes = ((uint64_t)b->assign->count + 1) * l->states * cells * sizeof *l->layers;
  return size_bytes <= MOST_ROOM && b->used < b->budget && steps <= (b->budget - b->used) / 2;
}

bool clv__frame_loads(clv__bounding *b, const clv__frame *f, double *bound) {
  loads l = {.b = b, .f = f, .states = 1u << b->need_count};
  uint64_t few = (uint64_t)CELLS * b->assign->count;
  double error;
  *bound = 0;
  if (!is_affordable(&l, few)) return true;
  if (!bound_with(&l, (uint32_t)few, bound, &error)) return false;
  if (*bound >= clv__bounding_goal(b) || *bound + error < clv__bounding_goal(b)) return true;
  return !is_affordable(&l, FINER * few) || bound_with(&l, (uint32_t)(FINER * few), bound, &error);
}
