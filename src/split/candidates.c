/* Forms slots (convex.h) in several ways and keeps the best result: with each colour first, with every rule for the next colour
 * (rounds.h), from either end of the graph, with an earlier result as the guide, and with fused pairs kept together. */
#include <stdlib.h>
#include <string.h>

#include "split/rounds.h"

static bool keep_better(const clv__convex *c, clv__slots *best, clv__slots *other, bool *has_best) {
  if (*has_best && !clv__slots_better(c, other, best)) return false;
  clv__slots swapped = *best;
  *best = *other, *other = swapped;
  *has_best = true;
  return true;
}

static uint32_t work_of(const clv__convex *c) {
  return c->problem->node_count + c->in.offsets[c->problem->node_count] + 1;
}

/* Runs the rounds again with the slots of `best` as the guide, from either end. Nodes that now run earlier may leave later slots
 * empty. In small graphs it also tries to skip each slot in turn. */
static void squeeze(clv__rounds *r, clv__slots *best, clv__slots *other, uint32_t *guide, uint64_t budget) {
  enum { MOST_SQUEEZES = 4 };
  clv__convex *c = r->c;
  uint32_t work = work_of(c);
  bool has_best = true;
  for (uint32_t i = 0, failed = 0; i < MOST_SQUEEZES && failed < 2; ++i) {
    memcpy(guide, best->colors, (size_t)best->count * sizeof *guide);
    clv__rounds_way way = {(i & 1u) == 0, CLV__ROUNDS_LONGEST, CLV__NONE, guide, best->count, CLV__NONE};
    failed = clv__rounds_run(r, &way, other) && keep_better(c, best, other, &has_best) ? 0 : failed + 1;
  }
  for (uint32_t i = 0; i < best->count && budget > work;) {
    memcpy(guide, best->colors, (size_t)best->count * sizeof *guide);
    clv__rounds_way way = {false, CLV__ROUNDS_LONGEST, CLV__NONE, guide, best->count, i};
    budget -= work;
    if (!clv__rounds_run(r, &way, other) || !keep_better(c, best, other, &has_best)) ++i;
  }
}

/* Tries every rule in both directions, and squeezes the best results. */
static clv_status many_colors(clv__rounds *r, clv__slots *best, clv__slots *other, clv_error *error) {
  enum { SMALL = 1024, MOST_STARTS = 8, MOST_WORK = 1 << 17 };
  clv__convex *c = r->c;
  size_t bytes = ((size_t)c->problem->node_count + 1) * sizeof(uint32_t);
  uint32_t *guide = clv__arena_allocate(&c->scratch, bytes);
  if (guide == NULL) return clv__error_memory(error, bytes);
  bool is_small = c->problem->node_count <= SMALL, has_best = false;
  uint32_t starts = !is_small ? 0 : c->color_count < MOST_STARTS ? c->color_count : MOST_STARTS;
  for (uint32_t k = 0; k < (c->fewest ? 4 : 6); ++k) {
    for (uint32_t i = 0; i <= starts; ++i) {
      clv__rounds_way way = {.backward = (k & 1u) != 0,
                             .rule = (clv__rounds_rule)(k / 2),
                             .start = i == starts ? CLV__NONE : i,
                             .left_out = CLV__NONE};
      if (clv__rounds_run(r, &way, other)) keep_better(c, best, other, &has_best);
    }
  }
  squeeze(r, best, other, guide, is_small ? MOST_WORK : 0);
  return CLV_OK;
}

/* Tries both colours as the first. */
static void two_colors(clv__rounds *r, clv__slots *best, clv__slots *other, bool *has_best) {
  for (uint32_t start = 0; start < 2; ++start) {
    clv__rounds_way way = {false, CLV__ROUNDS_LONGEST, start, NULL, 0, CLV__NONE};
    if (clv__rounds_run(r, &way, other)) keep_better(r->c, best, other, has_best);
  }
}

clv_status clv__slots_rounds(clv__convex *c, clv__slots *best, clv_error *error) {
  clv__rounds r;
  clv__slots other;
  bool has_best = false;
  CLV__TRY(clv__rounds_init(&r, c, error));
  CLV__TRY(clv__slots_init(c, &other, error));
  if (c->color_count > 2) return many_colors(&r, best, &other, error);
  two_colors(&r, best, &other, &has_best);
  return CLV_OK;
}

/* ---- Pairs ---- */

typedef struct pair {
  uint64_t saving_ns;
  uint32_t producer, reader;
} pair;

static int compare_pairs(const void *a, const void *b) {
  const pair *x = a, *y = b;
  if (x->saving_ns != y->saving_ns) return x->saving_ns > y->saving_ns ? -1 : 1;
  if (x->reader != y->reader) return x->reader < y->reader ? -1 : 1;
  return (x->producer > y->producer) - (x->producer < y->producer);
}

/* Collects the fused pairs whose two nodes `slots` puts into different slots, in descending order of their savings. */
static uint32_t find_pairs(const clv__convex *c, const clv__slots *slots, pair *pairs) {
  uint32_t count = 0;
  for (uint32_t node = 0; node < c->problem->node_count; ++node) {
    for (uint32_t i = c->in.offsets[node]; i < c->in.offsets[node + 1]; ++i) {
      uint32_t producer = c->in.nodes[i];
      if (c->in.savings[i] == 0 || slots->of_node[producer] == slots->of_node[node]) continue;
      pairs[count++] = (pair){c->in.savings[i], producer, node};
    }
  }
  qsort(pairs, count, sizeof *pairs, compare_pairs);
  return count;
}

clv_status clv__slots_keep_pairs(clv__convex *c, clv__slots *best, clv_error *error) {
  enum { MOST_WORK = 1 << 18, LEAST_TRIALS = 16 }; /* if MOST_WORK allows fewer than LEAST_TRIALS trials, none is made */
  CLV__TRY(clv__convex_edges(c, error));
  uint32_t n = c->problem->node_count;
  uint64_t work = 2 * (uint64_t)work_of(c), trials = MOST_WORK / work;
  if (trials < LEAST_TRIALS) return CLV_OK;
  clv__rounds r;
  clv__slots other;
  size_t bytes = (size_t)n * sizeof(uint32_t);
  pair *pairs = clv__arena_allocate(&c->scratch, (size_t)c->in.offsets[n] * sizeof *pairs);
  uint32_t *root = clv__arena_allocate(&c->scratch, bytes), *next = clv__arena_allocate(&c->scratch, bytes);
  if (pairs == NULL || root == NULL || next == NULL) return clv__error_memory(error, (size_t)c->in.offsets[n] * sizeof *pairs);
  CLV__TRY(clv__rounds_init(&r, c, error));
  CLV__TRY(clv__slots_init(c, &other, error));
  uint32_t count = find_pairs(c, best, pairs);
  for (uint32_t i = 0; i < count && i < trials; ++i) {
    if (best->of_node[pairs[i].producer] == best->of_node[pairs[i].reader]) continue; /* an earlier trial joined them */
    bool has_best = true;
    uint64_t cost_ns = best->cost_ns;
    memcpy(root, r.sets.root, bytes);
    memcpy(next, r.sets.next, bytes);
    clv__node_sets_join(c, &r.sets, pairs[i].producer, pairs[i].reader);
    two_colors(&r, best, &other, &has_best);
    if (best->cost_ns < cost_ns) continue;
    memcpy(r.sets.root, root, bytes);
    memcpy(r.sets.next, next, bytes);
  }
  return CLV_OK;
}
