/* The plans and the schedule of one layer at one k. Candidates: each device alone, the greedy's assignment, one plan for all
 * subgraphs; the best of them improved by the simulation; then whatever the tree behind the bound comes upon. */
#include "gnn/choose_layer.h"

#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

enum { STARTS = 4, MOST_ATTEMPTS = 24 };
#define FULL_BUDGET 12000000u
#define QUICK_BUDGET 1000000u

typedef struct choosing {
  clv__arena *arena;
  const clv__costs *costs;
  const clv__choose_options *options;
  uint32_t k, layer;
  clv__pep_list *lists;
  clv__pep_works works;
  clv__search search;
  clv__assign assign;
  clv__candidate best, trial, starts[STARTS];
  const char *best_from, *start_from[STARTS];
  uint32_t start_count, attempts;
  clv__chosen_layer *chosen;
} choosing;

/* ---- Candidates ---- */

static bool same_choices(const clv__candidate *a, const clv__candidate *b) {
  return memcmp(a->choices, b->choices, a->count * sizeof *a->choices) == 0;
}

static void keep_best(choosing *c, const clv__candidate *candidate, const char *from) {
  if (!(candidate->makespan_ns < c->best.makespan_ns)) return;
  clv__candidate_copy(&c->best, candidate);
  c->best_from = from;
}

/* Remembers the trial if it is among the best to start from. */
static void keep_start(choosing *c, const char *from) {
  uint32_t worst = 0;
  for (uint32_t s = 0; s < c->start_count; ++s) {
    if (same_choices(&c->starts[s], &c->trial)) return;
    if (c->starts[s].makespan_ns > c->starts[worst].makespan_ns) worst = s;
  }
  if (c->start_count < STARTS)
    worst = c->start_count++;
  else if (c->starts[worst].makespan_ns <= c->trial.makespan_ns)
    return;
  clv__candidate_copy(&c->starts[worst], &c->trial);
  c->start_from[worst] = from;
}

static void try_trial(choosing *c, const char *from) {
  clv__search_order(&c->search, &c->trial);
  keep_best(c, &c->trial, from);
  keep_start(c, from);
}

/* Alone on the device; of a subgraph without vertices there is nothing to run anywhere. */
static bool runs_on(const clv__pep *pep, uint32_t device) {
  return clv__pep_single(pep) == device || pep->time_ns <= 0;
}

static void try_singles(choosing *c) {
  for (uint32_t d = 0; d < c->costs->machine->device_count; ++d) {
    uint32_t found = 0;
    c->chosen->single_ns[d] = INFINITY;
    for (uint32_t i = 0; i < c->k; ++i) {
      uint32_t o = 0;
      while (o < c->lists[i].count && !runs_on(&c->lists[i].items[o], d)) ++o;
      if (o == c->lists[i].count) break;
      c->trial.choices[i] = o;
      ++found;
    }
    if (found != c->k) continue;
    try_trial(c, "one device");
    c->chosen->single_ns[d] = c->trial.makespan_ns;
  }
}

/* The key without padded sizes: what subgraphs of different sizes can have in common. */
static bool same_form(const clv__pep *a, const clv__pep *b) {
  if (a->block_count != b->block_count) return false;
  for (uint32_t k = 0; k < a->block_count; ++k) {
    const clv__pep_block *x = &a->blocks[k], *y = &b->blocks[k];
    if (x->first != y->first || x->last != y->last || x->part_count != y->part_count) return false;
    for (uint32_t i = 0; i < x->part_count; ++i) {
      if (x->parts[i].device != y->parts[i].device || x->parts[i].from != y->parts[i].from || x->parts[i].to != y->parts[i].to)
        return false;
    }
  }
  return true;
}

/* One form for all; a subgraph that does not have it takes its fastest plan. */
static void try_forms(choosing *c) {
  for (uint32_t form = 0; form < c->lists[0].count && c->k > 1; ++form) {
    for (uint32_t i = 0; i < c->k; ++i) {
      c->trial.choices[i] = 0;
      for (uint32_t o = 0; o < c->lists[i].count; ++o) {
        if (!same_form(&c->lists[0].items[form], &c->lists[i].items[o])) continue;
        c->trial.choices[i] = o;
        break;
      }
    }
    for (uint32_t i = 0; i < c->k; ++i) c->trial.sequence[i] = i;
    try_trial(c, "one plan for all");
  }
}

static void tell_move(void *user, const clv__assign_move *move) {
  const choosing *c = user;
  if (c->options->moves == NULL) return;
  c->options->moves(c->options->user, c->k, c->layer, move, &c->lists[move->piece].items[move->from],
                    &c->lists[move->piece].items[move->to]);
}

/* What the tree finds. Searching all plans around takes long: only from what is near enough. */
static double attempt(void *user, const uint32_t *choices) {
  choosing *c = user;
  if (c->attempts >= MOST_ATTEMPTS) return c->best.makespan_ns;
  ++c->attempts;
  memcpy(c->trial.choices, choices, c->k * sizeof *choices);
  clv__search_order(&c->search, &c->trial);
  if (c->trial.makespan_ns < 1.05 * c->best.makespan_ns) clv__search_plans(&c->search, &c->trial);
  keep_best(c, &c->trial, "branch and bound");
  return c->best.makespan_ns;
}

/* ---- The answer ---- */

static clv_status give(choosing *c, clv_error *error) {
  clv__chosen_layer *chosen = c->chosen;
  uint32_t tasks;
  chosen->peps = clv__arena_allocate_zero(c->arena, c->k, sizeof *chosen->peps);
  chosen->clusters = clv__arena_allocate_zero(c->arena, c->k, sizeof *chosen->clusters);
  chosen->sequence = c->best.sequence;
  chosen->from = c->best_from;
  if (chosen->peps == NULL || chosen->clusters == NULL) return clv__error_memory(error, c->k * sizeof *chosen->clusters);
  for (uint32_t i = 0; i < c->k; ++i) {
    chosen->peps[i] = &c->lists[i].items[c->best.choices[i]];
    chosen->rounding_ns += chosen->peps[i]->time_ns - chosen->peps[i]->ideal_ns;
  }
  for (uint32_t at = 0; at < c->k; ++at) {
    uint32_t piece = c->best.sequence[at];
    c->search.sequence[at] = &c->works.items[c->works.offsets[piece] + c->best.choices[piece]];
    if (at == 0 || !clv__pep_same(chosen->peps[c->best.sequence[at - 1]], chosen->peps[piece]))
      chosen->clusters[chosen->cluster_count++].first = at;
    ++chosen->clusters[chosen->cluster_count - 1].count;
  }
  clv__simulate(c->costs->machine, c->search.sequence, c->k, &chosen->timeline, NULL, &tasks);
  return CLV_OK;
}

static clv_status prepare(choosing *c, const clv__choose_cut *cut, clv_error *error) {
  size_t total = 0;
  uint32_t *offsets = clv__arena_allocate_zero(c->arena, c->k + 1u, sizeof *offsets);
  c->lists = clv__arena_allocate_zero(c->arena, c->k, sizeof *c->lists);
  if (offsets == NULL || c->lists == NULL) return clv__error_memory(error, c->k * sizeof *c->lists);
  for (uint32_t i = 0; i < c->k; ++i) {
    clv_status status = clv__peps_make(c->arena, c->costs, &cut->pieces[i], &c->options->peps, &c->lists[i], error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "subgraph %u of %u", i, c->k);
    total += c->lists[i].count;
    offsets[i + 1] = (uint32_t)total;
  }
  clv__pep_work *items = clv__arena_allocate_zero(c->arena, total, sizeof *items);
  if (items == NULL) return clv__error_memory(error, total * sizeof *items);
  for (uint32_t i = 0; i < c->k; ++i) {
    for (uint32_t o = 0; o < c->lists[i].count; ++o) clv__pep_work_of(&c->lists[i].items[o], &items[offsets[i] + o]);
  }
  c->works = (clv__pep_works){c->costs->machine, c->k, offsets, items};
  CLV__TRY(clv__search_init(&c->search, c->arena, &c->works, error));
  CLV__TRY(clv__candidate_init(&c->best, c->arena, c->k, error));
  CLV__TRY(clv__candidate_init(&c->trial, c->arena, c->k, error));
  for (uint32_t s = 0; s < STARTS; ++s) CLV__TRY(clv__candidate_init(&c->starts[s], c->arena, c->k, error));
  return clv__assign_init(&c->assign, c->arena, c->costs->machine->device_count, c->lists, c->k, error);
}

clv_status clv__choose_layer(clv__arena *arena, const clv__costs *costs, uint32_t layer, const clv__choose_cut *cut,
                             const clv__choose_options *options, clv__chosen_layer *chosen, clv_error *error) {
  choosing c = {.arena = arena, .costs = costs, .options = options, .k = cut->k, .layer = layer, .chosen = chosen};
  bool is_quick = options->effort == CLV__EFFORT_QUICK;
  uint64_t budget = options->budget > 0 ? options->budget : is_quick ? QUICK_BUDGET : FULL_BUDGET;
  clv__assign_result result;
  *chosen = (clv__chosen_layer){0};
  CLV__TRY(prepare(&c, cut, error));
  c.search.budget = 100*budget;
  try_singles(&c);
  clv__assign_greedy(&c.assign, c.trial.choices, tell_move, &c);
  try_trial(&c, "greedy");
  if (!is_quick) {
    try_forms(&c);
    uint32_t *ranked = clv__arena_allocate_zero(c.arena, c.works.offsets[c.k], sizeof *ranked);
    if (ranked == NULL) return clv__error_memory(error, c.works.offsets[c.k] * sizeof *ranked);
    CLV__TRY(clv__assign_rank(&c.assign, c.best.makespan_ns, ranked, error));
    for (uint32_t s = 0; s < c.start_count && c.k > 1; ++s) {
      clv__search_anneal(&c.search, &c.starts[s], ranked, s, 30000);
      keep_best(&c, &c.starts[s], "annealing");
    if(getenv("DBG")) fprintf(stderr,"  start %u %s annealed %.2f\n",s,c.start_from[s],c.starts[s].makespan_ns/1e6);
      clv__search_plans(&c.search, &c.starts[s]);
      keep_best(&c, &c.starts[s], c.start_from[s]);
    }
  }
  CLV__TRY(clv__assign_bound(&c.assign, c.best.makespan_ns, options->tolerance, budget, is_quick ? NULL : attempt, &c, &result, error));
  chosen->bound_ns = fmin(result.bound_ns, c.best.makespan_ns);
  return give(&c, error);
}
