/* Implements the tree behind clv__assign_bound(). Its upper part branches on the minimum heads and tails of a device. A
 * *frame* states which devices are used and the minimum values on each. Options below the minimum drop out, and the value
 * gains head and tail for free. The frame with the smallest bound comes next. If splitting no longer helps, assign_loads.c
 * bounds the frame by loads. assign_search.c searches it once its bound is the smallest of all. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gnn/plan/assign_tree.h"

enum { ROUNDS = 4 };
#define LEAST_GAIN 5e-4 /* relative gain of a split */

/* ---- The upper part ---- */

static bool push(clv__bounding *b, const clv__frame *f) {
  if (!clv__array_reserve(b->allocator, (void **)&b->frames, &b->frame_capacity, b->frame_count + 1, sizeof *f, b->frame_count))
    return false;
  size_t at = b->frame_count++;
  for (; at > 0 && b->frames[(at - 1) / 2].bound > f->bound; at = (at - 1) / 2) b->frames[at] = b->frames[(at - 1) / 2];
  b->frames[at] = *f;
  return true;
}

static clv__frame pop(clv__bounding *b) {
  clv__frame top = b->frames[0], last = b->frames[--b->frame_count];
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

/* Finds where to split the values that the smallest head or tail may have: the median of those above the minimum. Returns
 * false if there is only one value. */
static bool middle_value(clv__bounding *b, const clv__frame *f, uint32_t device, int side, double *values, double *least,
                         double *middle) {
  uint32_t count = 0, above = 0;
  *least = INFINITY, *middle = 0;
  for (uint32_t o = 0; o < b->live_offsets[b->assign->count]; ++o) {
    if (clv__option_uses(b->live[o], device)) values[count++] = clv__option_side(b->live[o], side, device);
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

/* Splits a frame into two halves by the most promising criterion. Returns false if no split gains enough. `values` must have
 * room for all options. */
static bool split(clv__bounding *b, const clv__frame *f, double *values, clv__frame halves[2]) {
  double most = LEAST_GAIN * f->bound, value = 0;
  uint32_t device = CLV__NO_ID;
  int side = CLV__SIDES;
  for (uint32_t d = 0; d < b->assign->device_count; ++d) {
    for (int s = CLV__HEAD; s < CLV__SIDES && f->use[d] != CLV__USE_NEVER; ++s) {
      double least, middle;
      bool differs = middle_value(b, f, d, s, values, &least, &middle);
      double gain = f->weights[d] * (f->use[d] == CLV__USE_OPEN ? (differs ? middle : least) : differs ? middle - least : 0);
      if (!isfinite(gain) || gain <= most) continue;
      most = gain, device = d, side = f->use[d] == CLV__USE_OPEN ? CLV__SIDES : s, value = middle;
    }
  }
  if (device == CLV__NO_ID) return false;
  halves[0] = halves[1] = *f;
  if (side == CLV__SIDES) {
    halves[0].use[device] = CLV__USE_MUST, halves[1].use[device] = CLV__USE_NEVER;
  } else {
    halves[0].low[side][device] = value;
    halves[1].high[side][device] = clv__smaller(value, f->high[side][device]);
  }
  return true;
}

static void order_pieces(clv__bounding *b, double *values) {
  const clv__assign *assign = b->assign;
  for (uint32_t i = 0; i < assign->count; ++i) {
    double most = 0;
    for (uint32_t o = assign->offsets[i]; o < assign->offsets[i + 1]; ++o) {
      for (uint32_t d = 0; d < assign->device_count; ++d) most = clv__larger(most, assign->options[o].load[d]);
    }
    uint32_t at = i; /* insertion sort, largest first; twins keep their order */
    for (; at > 0 && values[b->order[at - 1]] < most; --at) b->order[at] = b->order[at - 1];
    b->order[at] = i;
    values[i] = most;
  }
}

/* Tightens the frame's bound and options as far as multipliers can. Returns false if the frame has nothing below the goal. */
static bool tighten(clv__bounding *b, clv__frame *f) {
  if (!clv__frame_fill(b, f)) return false;
  for (int round = 0; round < ROUNDS; ++round) {
    f->bound = clv__larger(f->bound, clv__frame_relax(b, f));
    if (f->bound >= clv__bounding_goal(b)) return false;
    f->bound = clv__larger(f->bound, clv__frame_demand(b, f));
    if (f->bound >= clv__bounding_goal(b)) return false;
    if (!clv__frame_shrink(b, f)) break;
    for (uint32_t i = 0; i < b->assign->count; ++i) {
      if (b->live_offsets[i] == b->live_offsets[i + 1]) return false;
    }
  }
  return true;
}

static void search_frame(clv__bounding *b, const clv__frame *f) {
  uint64_t left = b->budget > b->used ? b->budget - b->used : 0;
  double before = b->open;
  b->open = INFINITY;
  clv__frame_search(b, f, b->used + left / 2);
  b->open = clv__smaller(before, clv__larger(b->open, f->bound));
}

/* Processes a frame. If splitting no longer helps, pushes the frame back once with a tighter bound, so that the search handles
 * only the frame that limits the overall bound. Returns false if memory runs out. */
static bool process_frame(clv__bounding *b, clv__frame *f, double *values) {
  clv__frame halves[2];
  double closer;
  if (!tighten(b, f)) return true;
  clv__frame_needs(b, f);
  if (f->is_leaf) {
    search_frame(b, f);
    return true;
  }
  if (split(b, f, values, halves)) return push(b, &halves[0]) && push(b, &halves[1]);
  if (!clv__frame_loads(b, f, &closer)) return false;
  f->bound = clv__larger(f->bound, closer);
  f->is_leaf = true;
  return f->bound >= clv__bounding_goal(b) || push(b, f);
}

static bool reserve(clv__bounding *b, clv__arena *arena) {
  uint32_t count = b->assign->count, total = b->assign->offsets[count];
  b->live = clv__arena_allocate_zero(arena, total, sizeof *b->live);
  b->scratch = clv__arena_allocate_zero(arena, total, sizeof *b->scratch);
  b->live_offsets = clv__arena_allocate_zero(arena, count + 1u, sizeof *b->live_offsets);
  b->order = clv__arena_allocate_zero(arena, count + 1u, sizeof *b->order);
  b->choices = clv__arena_allocate_zero(arena, count + 1u, sizeof *b->choices);
  b->met = clv__arena_allocate_zero(arena, total, sizeof *b->met);
  bool good = b->live != NULL && b->live_offsets != NULL && b->order != NULL && b->choices != NULL && b->scratch != NULL &&
              b->met != NULL;
  for (uint32_t l = 0; l < CLV__MOST_MULTIPLIERS && good; ++l) {
    b->costs[l] = clv__arena_allocate_zero(arena, total, sizeof **b->costs);
    b->rests[l] = clv__arena_allocate_zero(arena, (count + 1u) << CLV__MOST_NEEDS, sizeof **b->rests);
    good = b->costs[l] != NULL && b->rests[l] != NULL;
  }
  return good;
}

static bool start(clv__bounding *b, const clv__assign *assign, clv__arena *arena, double upper_ns, clv__frame *root) {
  *b = (clv__bounding){.assign = assign, .allocator = assign->arena->allocator, .upper = upper_ns, .open = INFINITY};
  *root = (clv__frame){.bound = 0};
  for (uint32_t d = 0; d < assign->device_count; ++d) {
    root->weights[d] = 1.0 / assign->device_count;
    root->high[CLV__HEAD][d] = root->high[CLV__TAIL][d] = INFINITY;
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
  clv__bounding b;
  clv__frame root;
  uint32_t total = assign->offsets[assign->count];
  rank *ranks = clv__arena_allocate_zero(&arena, total, sizeof *ranks);
  bool good = ranks != NULL && start(&b, assign, &arena, upper_ns, &root);
  if (good) {
    if (clv__frame_fill(&b, &root)) (void)clv__frame_relax(&b, &root);
    for (uint32_t i = 0; i < assign->count; ++i) {
      uint32_t from = assign->offsets[i], count = assign->offsets[i + 1] - from;
      for (uint32_t o = 0; o < count; ++o)
        ranks[o] = (rank){clv__option_weigh(&assign->options[from + o], root.weights, assign->device_count), o};
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
  clv__bounding b = {0};
  clv__frame f;
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
  while (good && b.frame_count > 0 && b.used < b.budget && b.frames[0].bound < clv__bounding_goal(&b)) {
    f = pop(&b);
    good = process_frame(&b, &f, values);
  }
  if (good) {
    double open = b.frame_count > 0 ? clv__smaller(b.open, b.frames[0].bound) : b.open;
    result->bound_ns = clv__smaller(clv__bounding_goal(&b), open);
    result->is_closed = open >= clv__bounding_goal(&b);
    result->nodes = b.nodes;
    result->steps = b.used;
  }
  clv__release(assign->arena->allocator, b.frames);
  clv__arena_finish(&arena);
  return good ? CLV_OK : clv__error_memory(error, sizeof(clv__frame));
}
