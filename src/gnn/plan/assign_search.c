/* Searches the lower part of the tree, subgraph by subgraph. Several fixed sets of multipliers bound it at once. The remaining
 * subgraphs must meet each need of the frame that is still unmet, at its cost there. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gnn/plan/assign_tree.h"

#define MOVED 0.15

enum { LEAF_STEPS = 8 }; /* per subgraph: the cost of examining an assignment */

/* ---- The lower part: subgraph by subgraph ---- */

static double *weights_of(clv__bounding *b, uint32_t index) {
  return b->multipliers[index];
}

static double *rest_of(clv__bounding *b, uint32_t multiplier, uint32_t depth) {
  return b->rests[multiplier] + ((size_t)depth << CLV__MOST_NEEDS);
}

/* Computes the minimum cost of the subgraphs from each depth on, for each set of needs that they must meet. */
static void set_rests(clv__bounding *b, uint32_t multiplier) {
  uint32_t needs = 1u << b->need_count;
  for (uint32_t open = 0; open < needs; ++open) rest_of(b, multiplier, b->assign->count)[open] = open == 0 ? 0 : INFINITY;
  for (uint32_t depth = b->assign->count; depth-- > 0;) {
    uint32_t i = b->order[depth];
    const double *behind = rest_of(b, multiplier, depth + 1);
    double *rest = rest_of(b, multiplier, depth);
    for (uint32_t open = 0; open < needs; ++open) {
      rest[open] = INFINITY;
      for (uint32_t o = b->live_offsets[i]; o < b->live_offsets[i + 1]; ++o)
        rest[open] = clv__smaller(rest[open], b->costs[multiplier][o] + behind[open & ~b->met[o]]);
    }
  }
}

static void prepare_search(clv__bounding *b, const clv__frame *f) {
  const clv__assign *assign = b->assign;
  uint32_t devices = assign->device_count;
  b->multiplier_count = 0;
  for (uint32_t o = 0; o < b->live_offsets[assign->count]; ++o) b->met[o] = (uint8_t)clv__option_meets(b, f, b->live[o]);
  memcpy(weights_of(b, b->multiplier_count++), f->weights, sizeof f->weights);
  for (uint32_t d = 0; d < devices && b->multiplier_count < CLV__MOST_MULTIPLIERS; ++d) {
    double *alone = weights_of(b, b->multiplier_count++);
    for (uint32_t e = 0; e < devices; ++e) alone[e] = e == d ? 1 : 0;
  }
  for (uint32_t d = 0; d < devices; ++d) { /* earlier decisions may overload a device: shift some weight */
    for (uint32_t e = 0; e < devices && b->multiplier_count < CLV__MOST_MULTIPLIERS; ++e) {
      if (e == d || f->weights[d] <= 0) continue;
      double *moved = weights_of(b, b->multiplier_count++);
      memcpy(moved, f->weights, sizeof f->weights);
      moved[d] *= 1 - MOVED, moved[e] += f->weights[d] * MOVED;
    }
  }
  for (uint32_t l = 0; l < b->multiplier_count; ++l) {
    double ends[CLV__SIDES] = {INFINITY, INFINITY};
    for (uint32_t o = 0; o < b->live_offsets[assign->count]; ++o) {
      b->costs[l][o] = clv__option_weigh(b->live[o], b->multipliers[l], devices);
      for (int side = CLV__HEAD; side < CLV__SIDES && b->live[o]->devices != 0; ++side)
        ends[side] = clv__smaller(ends[side], clv__bounding_weigh_end(b, b->live[o], side, b->multipliers[l]));
    }
    b->constants[l] = assign->count > 1 && isfinite(ends[CLV__HEAD]) ? ends[CLV__HEAD] + ends[CLV__TAIL] : 0;
    set_rests(b, l);
  }
  b->used += (uint64_t)b->multiplier_count * b->live_offsets[assign->count];
}

void clv__bounding_try(clv__bounding *b) {
  double value = clv__assign_value(b->assign, b->choices), proven = 0;
  b->used += LEAF_STEPS * (uint64_t)b->assign->count;
  if (value >= clv__bounding_goal(b)) return;
  if (b->attempt != NULL) b->upper = clv__smaller(b->upper, b->attempt(b->user, b->choices, clv__bounding_goal(b), &proven));
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

/* `open`: the needs not met so far. */
static void search(clv__bounding *b, uint32_t depth, uint32_t open, const double *partial, uint64_t limit) {
  const clv__assign *assign = b->assign;
  if (depth == assign->count) {
    clv__bounding_try(b);
    return;
  }
  uint32_t i = b->order[depth], count = 0, twin = assign->twins[i], rest = 0;
  branch branches[MOST_BRANCHES];
  for (uint32_t o = b->live_offsets[i]; o < b->live_offsets[i + 1]; ++o) {
    if (twin != CLV__NO_ID && b->live[o]->index < b->choices[twin])
      continue; /* skip: equals the same assignment with the twins swapped */
    double bound = 0;
    for (uint32_t l = 0; l < b->multiplier_count; ++l)
      bound = clv__larger(bound, partial[l] + b->costs[l][o] + rest_of(b, l, depth + 1)[open & ~b->met[o]] + b->constants[l]);
    if (bound >= clv__bounding_goal(b)) continue;
    if (count == MOST_BRANCHES) { /* leave the rest open */
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
    if (branches[k].bound >= clv__bounding_goal(b)) return; /* the following branches reach the goal too */
    if (b->used >= limit) {
      b->open = clv__smaller(b->open, branches[k].bound);
      return;
    }
    double below[CLV__MOST_MULTIPLIERS];
    for (uint32_t l = 0; l < b->multiplier_count; ++l) below[l] = partial[l] + b->costs[l][branches[k].live];
    b->choices[i] = b->live[branches[k].live]->index;
    search(b, depth + 1, open & ~b->met[branches[k].live], below, limit);
  }
}

void clv__frame_search(clv__bounding *b, const clv__frame *f, uint64_t limit) {
  double none[CLV__MOST_MULTIPLIERS] = {0};
  prepare_search(b, f);
  search(b, 0, (1u << b->need_count) - 1, none, limit);
}
