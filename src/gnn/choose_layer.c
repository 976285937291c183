/* The plans and the schedule of one layer at one k. Candidates: each device alone, the greedy's assignment, one plan for all
 * subgraphs; the best of them improved by the simulation; then whatever the tree behind the bound comes upon. */
#include "gnn/choose_layer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gnn/buckets.h"

enum {
  STARTS = 4,
  MOST_ATTEMPTS = 24,
  MOST_SEQUENCED = 20,
  MOST_NODES = 100000,
  ALL_NODES = 300000,
  MOST_WHOLE = 4,
  ROUNDS = 10,
  ANNEALING_STEPS = 30000,
  LARGE = 20
};
#define FULL_BUDGET 72000000u
#define LARGE_BUDGET 4000000u /* single subgraphs matter less there: many are near any split */
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
  uint32_t start_count, attempts, sequence_nodes, seed;
  uint32_t *ranked; /* plans of each subgraph, see clv__assign_rank() */
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
  if (c->options->effort == CLV__EFFORT_QUICK)
    clv__search_order(&c->search, &c->trial);
  else
    clv__search_begin(&c->search, &c->trial); /* the best of them are searched later */
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

/* Smooth where the largest load is not: each change for the better counts, on whichever device. */
static double imbalance(const double *loads, const double *without, const clv__option *option, uint32_t devices) {
  double sum = 0;
  for (uint32_t d = 0; d < devices; ++d) {
    double load = loads[d] - (without != NULL ? without[d] : 0) + option->load[d];
    sum += load * load * load * load;
  }
  return sum * sum;
}

/* Each subgraph in turn takes the plan that leaves the loads most even and low, until none changes. */
static void try_balanced(choosing *c) {
  uint32_t devices = c->costs->machine->device_count;
  double loads[CLV__PEP_DEVICES] = {0};
  bool changes = true;
  for (uint32_t round = 0; round < 32 && changes; ++round) {
    changes = false;
    for (uint32_t i = 0; i < c->k; ++i) {
      const clv__option *options = &c->assign.options[c->assign.offsets[i]];
      const double *without = round > 0 ? options[c->trial.choices[i]].load : NULL;
      uint32_t best = round > 0 ? c->trial.choices[i] : 0;
      double least = imbalance(loads, without, &options[best], devices);
      for (uint32_t o = 0; o < c->lists[i].count; ++o) {
        double value = imbalance(loads, without, &options[o], devices);
        if (value < least * (1 - 1e-9)) least = value, best = o;
      }
      changes = changes || round == 0 || best != c->trial.choices[i];
      for (uint32_t d = 0; d < devices; ++d) loads[d] += options[best].load[d] - (without != NULL ? without[d] : 0);
      c->trial.choices[i] = best;
    }
  }
  try_trial(c, "balanced loads");
}

/* Two subgraphs: all plans in both orders, so that what is best is known. */
static void try_pairs(choosing *c) {
  const clv__pep_work *first = c->works.items, *second = c->works.items + c->works.offsets[1];
  for (uint32_t a = 0; a < c->lists[0].count; ++a) {
    for (uint32_t b = 0; b < c->lists[1].count; ++b) {
      for (uint32_t order = 0; order < 2; ++order) {
        const clv__pep_work *sequence[2] = {order == 0 ? &first[a] : &second[b], order == 0 ? &second[b] : &first[a]};
        double time = clv__simulate_time(c->costs->machine, sequence, 2);
        if (time >= c->best.makespan_ns) continue;
        c->best.makespan_ns = time;
        c->best.choices[0] = a, c->best.choices[1] = b;
        c->best.sequence[0] = order, c->best.sequence[1] = 1 - order;
        c->best_from = "all pairs";
      }
    }
  }
}

static void tell_move(void *user, const clv__assign_move *move) {
  const choosing *c = user;
  if (c->options->moves == NULL) return;
  c->options->moves(c->options->user, c->k, c->layer, move, &c->lists[move->piece].items[move->from],
                    &c->lists[move->piece].items[move->to]);
}

/* What the tree finds: all sequences where they are few; a search of all plans around, which takes long, only from what is near
 * enough. */
static double attempt(void *user, const uint32_t *choices, double goal_ns, double *proven_ns) {
  choosing *c = user;
  memcpy(c->trial.choices, choices, c->k * sizeof *choices);
  if (c->k <= MOST_SEQUENCED && c->sequence_nodes > 0) {
    uint32_t nodes = c->sequence_nodes < MOST_NODES ? c->sequence_nodes : MOST_NODES, given = nodes;
    for (uint32_t i = 0; i < c->k; ++i) c->trial.sequence[i] = i;
    c->trial.makespan_ns = c->best.makespan_ns;
    *proven_ns = clv__search_sequences(&c->search, &c->trial, goal_ns, &nodes);
    c->sequence_nodes -= given - nodes;
    keep_best(c, &c->trial, "branch and bound");
    if (*proven_ns > 0) return c->best.makespan_ns;
  }
  if (c->attempts >= MOST_ATTEMPTS) return c->best.makespan_ns;
  ++c->attempts;
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

/* What is made from the lists. */
static clv_status prepare(choosing *c, clv_error *error) {
  size_t total = 0;
  uint32_t *offsets = clv__arena_allocate_zero(c->arena, c->k + 1u, sizeof *offsets);
  if (offsets == NULL) return clv__error_memory(error, c->k * sizeof *offsets);
  for (uint32_t i = 0; i < c->k; ++i) {
    total += c->lists[i].count;
    offsets[i + 1] = (uint32_t)total;
  }
  clv__pep_work *items = clv__arena_allocate_zero(c->arena, total, sizeof *items);
  c->ranked = clv__arena_allocate_zero(c->arena, total, sizeof *c->ranked);
  if (items == NULL || c->ranked == NULL) return clv__error_memory(error, total * sizeof *items);
  for (uint32_t i = 0; i < c->k; ++i) {
    for (uint32_t o = 0; o < c->lists[i].count; ++o) clv__pep_work_of(&c->lists[i].items[o], &items[offsets[i] + o]);
  }
  c->works = (clv__pep_works){c->costs->machine, c->k, offsets, items};
  return clv__assign_init(&c->assign, c->arena, c->costs->machine->device_count, c->lists, c->k, error);
}

static clv_status make_lists(choosing *c, const clv__choose_cut *cut, clv_error *error) {
  clv__pep_options options = c->options->peps;
  options.top_k = 0; /* which are the best is known later: narrow() */
  c->lists = clv__arena_allocate_zero(c->arena, c->k, sizeof *c->lists);
  if (c->lists == NULL) return clv__error_memory(error, c->k * sizeof *c->lists);
  for (uint32_t i = 0; i < c->k; ++i) {
    clv_status status = clv__peps_make(c->arena, c->costs, &cut->pieces[i], &options, &c->lists[i], error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "subgraph %u of %u", i, c->k);
  }
  CLV__TRY(prepare(c, error));
  CLV__TRY(clv__search_init(&c->search, c->arena, &c->works, error));
  CLV__TRY(clv__candidate_init(&c->best, c->arena, c->k, error));
  CLV__TRY(clv__candidate_init(&c->trial, c->arena, c->k, error));
  for (uint32_t s = 0; s < STARTS; ++s) CLV__TRY(clv__candidate_init(&c->starts[s], c->arena, c->k, error));
  return CLV_OK;
}

/* ---- Top-K ---- */

/* Whether a good schedule has this form somewhere. */
static bool is_useful(const choosing *c, const clv__pep *pep) {
  for (uint32_t i = 0; i < c->k; ++i) {
    if (same_form(pep, &c->lists[i].items[c->best.choices[i]])) return true;
    for (uint32_t s = 0; s < c->start_count; ++s) {
      if (same_form(pep, &c->lists[i].items[c->starts[s].choices[i]])) return true;
    }
  }
  return false;
}

/* Keeps of each subgraph's plans the forms that the schedules found so far use, those on one device, and, up to top_k, those that
 * load the machine least. The bound is then about these. */
static clv_status narrow(choosing *c, clv_error *error) {
  clv__pep_list *kept = clv__arena_allocate_zero(c->arena, c->k, sizeof *kept);
  clv__pep **items = clv__arena_allocate_zero(c->arena, c->k, sizeof *items);
  uint32_t **moved = clv__arena_allocate_zero(c->arena, c->k, sizeof *moved); /* to where each plan comes */
  if (kept == NULL || items == NULL || moved == NULL) return clv__error_memory(error, c->k * sizeof *kept);
  for (uint32_t i = 0; i < c->k; ++i) {
    const clv__pep_list *list = &c->lists[i];
    const uint32_t *ranked = c->ranked + c->works.offsets[i];
    bool *wanted = clv__arena_allocate_zero(c->arena, list->count, sizeof *wanted);
    moved[i] = clv__arena_allocate_zero(c->arena, list->count, sizeof **moved);
    kept[i] = *list;
    kept[i].count = 0;
    items[i] = kept[i].items = clv__arena_allocate_zero(c->arena, list->count, sizeof *items[i]);
    if (wanted == NULL || moved[i] == NULL || items[i] == NULL) return clv__error_memory(error, list->count * sizeof *items[i]);
    uint32_t used = 0;
    for (uint32_t o = 0; o < list->count; ++o) {
      wanted[o] = clv__pep_single(&list->items[o]) != CLV__NO_ID || is_useful(c, &list->items[o]);
      used += wanted[o];
    }
    for (uint32_t r = 0; r < list->count && used < c->options->peps.top_k; ++r) {
      used += !wanted[ranked[r]];
      wanted[ranked[r]] = true;
    }
    for (uint32_t o = 0; o < list->count; ++o) {
      moved[i][o] = kept[i].count;
      if (wanted[o]) items[i][kept[i].count++] = list->items[o];
    }
  }
  for (uint32_t i = 0; i < c->k; ++i) {
    c->best.choices[i] = moved[i][c->best.choices[i]];
    for (uint32_t s = 0; s < c->start_count; ++s) c->starts[s].choices[i] = moved[i][c->starts[s].choices[i]];
  }
  c->lists = kept;
  return prepare(c, error);
}

/* ---- The whole ---- */

/* Each start with a seed of its own, and others the next time. */
static clv_status anneal(choosing *c, uint32_t steps, clv_error *error) {
  CLV__TRY(clv__assign_rank(&c->assign, c->best.makespan_ns, c->ranked, error));
  for (uint32_t s = 0; s < c->start_count && c->k > 1; ++s) {
    clv__search_anneal(&c->search, &c->starts[s], c->ranked, c->seed++, steps);
    clv__search_plans(&c->search, &c->starts[s]);
    keep_best(c, &c->starts[s], "annealing");
  }
  return CLV_OK;
}

static bool is_pipeline(const clv__pep *pep) {
  for (uint32_t b = 0; b < pep->block_count; ++b) {
    if (pep->blocks[b].part_count > 1) return false;
  }
  return true;
}

/* Among all plans those that share no block are few, and often as good as any: by themselves. Behind anneal(), which ranks. */
static clv_status try_pipelines(choosing *c, uint32_t steps, clv_error *error) {
  const uint32_t *offsets = c->works.offsets;
  uint32_t *few = clv__arena_allocate_zero(c->arena, offsets[c->k], sizeof *few);
  if (few == NULL) return clv__error_memory(error, offsets[c->k] * sizeof *few);
  for (uint32_t i = 0; i < c->k; ++i) {
    uint32_t plans = offsets[i + 1] - offsets[i], count = 0;
    uint32_t *mine = few + offsets[i];
    for (uint32_t r = 0; r < plans; ++r) {
      uint32_t plan = c->ranked[offsets[i] + r];
      if (is_pipeline(&c->lists[i].items[plan])) mine[count++] = plan;
    }
    if (count == 0) return CLV_OK; /* not all subgraphs have one */
    c->trial.choices[i] = mine[0];
    c->trial.sequence[i] = i;
    for (uint32_t r = plans; r-- > count;) mine[r] = mine[(uint64_t)r * count / plans]; /* as many ranks, in the same order */
    for (uint32_t r = count; r-- > 0;) mine[r] = mine[(uint64_t)r * count / plans];
  }
  clv__search_begin(&c->search, &c->trial);
  clv__search_anneal(&c->search, &c->trial, few, c->seed++, steps);
  keep_best(c, &c->trial, "pipelines");
  keep_start(c, "pipelines");
  return CLV_OK;
}

static bool is_close(const choosing *c, double bound) {
  return c->k < 2 || c->best.makespan_ns <= bound * (1 + c->options->tolerance) * (1 + 1e-9);
}

/* From here on only what the best schedule uses is of interest. */
static void keep_only_best(choosing *c) {
  for (uint32_t s = 0; s < c->start_count; ++s) clv__candidate_copy(&c->starts[s], &c->best);
}

/* The plans that share no block, chosen from as if there were no others: lists are cut to their best plans, which may leave those
 * out. `taken`: it is better than what `c` has; the bound is then about the plans that either kept. */
static clv_status choose_pipelines(choosing *c, const clv__choose_cut *cut, double bound_ns, bool *taken, clv_error *error) {
  clv__choose_options options = *c->options;
  clv__chosen_layer apart;
  options.peps.most_parts = 1;
  options.moves = NULL;
  options.keeps_buckets = true; /* whatever is chosen in the end has its buckets merged */
  CLV__TRY(clv__choose_layer(c->arena, c->costs, c->layer, cut, &options, &apart, error));
  *taken = apart.timeline.makespan_ns < c->best.makespan_ns;
  if (!*taken) return CLV_OK;
  apart.bound_ns = floor(fmin(bound_ns, apart.bound_ns));
  memcpy(apart.single_ns, c->chosen->single_ns, sizeof apart.single_ns);
  apart.from = "pipelines";
  *c->chosen = apart;
  return CLV_OK;
}

clv_status clv__choose_layer(clv__arena *arena, const clv__costs *costs, uint32_t layer, const clv__choose_cut *cut,
                             const clv__choose_options *options, clv__chosen_layer *chosen, clv_error *error) {
  choosing c = {.arena = arena, .costs = costs, .options = options, .k = cut->k, .layer = layer, .chosen = chosen};
  bool is_quick = options->effort == CLV__EFFORT_QUICK;
  bool is_large = c.k > LARGE;
  uint64_t budget = options->budget > 0 ? options->budget : is_quick ? QUICK_BUDGET : is_large ? LARGE_BUDGET : FULL_BUDGET;
  uint32_t steps = is_large ? ANNEALING_STEPS * LARGE / c.k / 2 : ANNEALING_STEPS;
  clv__assign_result all, result;
  *chosen = (clv__chosen_layer){0};
  CLV__TRY(make_lists(&c, cut, error));
  c.search.budget = 2 * budget;
  try_singles(&c);
  clv__assign_greedy(&c.assign, c.trial.choices, tell_move, &c);
  try_trial(&c, "greedy");
  if (!is_quick) {
    try_forms(&c);
    try_balanced(&c);
    CLV__TRY(anneal(&c, steps, error));
    if (c.k > 1) CLV__TRY(try_pipelines(&c, steps, error));
  }
  bool is_small = c.k <= MOST_WHOLE && !is_quick; /* few enough for all plans in all sequences */
  c.sequence_nodes = ALL_NODES;
  CLV__TRY(clv__assign_bound(&c.assign, c.best.makespan_ns, options->tolerance, is_small ? budget : budget / 8,
                             is_small ? attempt : NULL, &c, &all, error));
  if (c.k == 2 && !is_quick) { /* what was tried is all that there is */
    try_pairs(&c);
    all.bound_ns = c.best.makespan_ns;
  }
  double bound = all.bound_ns;
  for (uint32_t round = 0; round < (is_quick || is_large ? 1 : ROUNDS) && !is_close(&c, bound); ++round) {
    if (round > 0) keep_only_best(&c);
    CLV__TRY(clv__assign_rank(&c.assign, c.best.makespan_ns, c.ranked, error));
    CLV__TRY(narrow(&c, error));
    c.search.budget = 2 * budget;
    c.sequence_nodes = ALL_NODES;
    if (!is_quick) CLV__TRY(anneal(&c, steps, error));
    CLV__TRY(clv__assign_bound(&c.assign, c.best.makespan_ns, options->tolerance, budget / 2, is_quick ? NULL : attempt, &c,
                               &result, error));
    bound = fmax(all.bound_ns, result.bound_ns);
  }
  bool taken = false;
  if (!is_quick && !is_large && c.k > 1 && options->peps.most_parts != 1) {
    CLV__TRY(choose_pipelines(&c, cut, bound, &taken, error));
  }
  /* whole nanoseconds, as all times */
  chosen->bound_all_ns = floor(fmin(all.bound_ns, taken ? chosen->timeline.makespan_ns : c.best.makespan_ns));
  if (taken) {
    chosen->bound_ns = fmax(chosen->bound_ns, chosen->bound_all_ns); /* which is of the pipelines too */
  } else {
    chosen->bound_ns = floor(fmin(bound, c.best.makespan_ns));
    CLV__TRY(give(&c, error));
  }
  return options->keeps_buckets ? CLV_OK : clv__choose_buckets(arena, costs, cut, c.lists, chosen, error);
}
