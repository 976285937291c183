/* Finds the plans and the schedule of one layer at one k. Searches shorten the simulated makespan of the candidates. Further
 * candidates come from the branch-and-bound search, and from plans with only pipelines or only shared blocks. */

#include <assert.h>
#include <math.h>
#include <string.h>

#include "gnn/plan/buckets.h"
#include "gnn/plan/choose_own.h"

enum {
  MOST_ATTEMPTS = 24,
  MOST_SEQUENCED = 20,
  MOST_NODES = 100000,
  ALL_NODES = 300000,
  MOST_WHOLE = 4,
  ROUNDS = 10,
  MOST_STALE = 2,
  ANNEALING_STEPS = 30000,
  LONGER = 3, /* multiplies the annealing steps if the bound is still not close */
  LARGE = 20
};
#define FULL_BUDGET 8000000u
#define LARGE_BUDGET 4000000u /* for k above LARGE, because then many assignments are almost equally good */
#define LAST_BUDGET 40000000u /* the largest part of the reserve that a layer may use */
#define GLANCE_BUDGET 300000u
#define QUICK_BUDGET 1000000u

/* Handles an assignment that branch and bound found (clv__assign_try). With few subgraphs, first searches all sequences, within
 * a budget of nodes. If that proves nothing, improves the sequence step by step. Trying other plans takes long, so it does that
 * only if the makespan is then close to the best. */
static double attempt(void *user, const uint32_t *choices, double goal_ns, double *proven_ns) {
  clv__choosing *c = user;
  memcpy(c->trial.choices, choices, c->k * sizeof *choices);
  if (c->k <= MOST_SEQUENCED && c->sequence_nodes > 0) {
    uint32_t nodes = c->sequence_nodes < MOST_NODES ? c->sequence_nodes : MOST_NODES, given = nodes;
    for (uint32_t i = 0; i < c->k; ++i) c->trial.sequence[i] = i;
    c->trial.makespan_ns = c->best.makespan_ns;
    *proven_ns = clv__search_sequences(&c->search, &c->trial, goal_ns, &nodes);
    c->sequence_nodes -= given - nodes;
    clv__choosing_keep_best(c, &c->trial, "branch and bound");
    if (*proven_ns > 0) return c->best.makespan_ns;
  }
  if (c->attempts >= MOST_ATTEMPTS) return c->best.makespan_ns;
  ++c->attempts;
  clv__search_order(&c->search, &c->trial);
  if (c->trial.makespan_ns < 1.05 * c->best.makespan_ns) clv__search_plans(&c->search, &c->trial);
  clv__choosing_keep_best(c, &c->trial, "branch and bound");
  return c->best.makespan_ns;
}

/* Anneals each start with its own seed. Later calls use new seeds. */
static clv_status anneal(clv__choosing *c, uint32_t steps, clv_error *error) {
  assert(c->search.works == &c->works);
  CLV__TRY(clv__assign_rank(&c->assign, c->best.makespan_ns, c->ranked, error));
  for (uint32_t s = 0; s < c->start_count && c->k > 1; ++s) {
    clv__search_anneal(&c->search, &c->starts[s], c->ranked, c->seed++, steps);
    clv__search_plans(&c->search, &c->starts[s]);
    clv__choosing_keep_best(c, &c->starts[s], "annealing");
  }
  return CLV_OK;
}

static bool is_close(const clv__choosing *c, double bound) {
  return c->k < 2 || c->best.makespan_ns <= bound * (1 + c->options->tolerance) * (1 + 1e-9);
}

/* Replaces every start by the best schedule, so that the following steps search only around its plans. */
static void keep_only_best(clv__choosing *c) {
  for (uint32_t s = 0; s < c->start_count; ++s) clv__candidate_copy(&c->starts[s], &c->best);
}

/* The result of a pass over all plans, or over some of them. */
typedef struct outcome {
  double bound_ns, bound_all_ns;
} outcome;

/* Narrows the lists of plans and computes the bound again, until the bound is close or nothing changes. Stops if the result
 * cannot become shorter than `cutoff_ns`. */
static clv_status close_in(clv__choosing *c, uint64_t budget, uint32_t steps, double cutoff_ns, outcome *out, clv_error *error) {
  bool is_quick = c->options->effort == CLV__EFFORT_QUICK;
  uint32_t rounds = is_quick || c->k > LARGE ? 1 : ROUNDS, stale = 0, options = 0;
  double before = INFINITY;
  clv__assign_result result = {0};
  for (uint32_t round = 0; round < rounds && stale < MOST_STALE && !is_close(c, out->bound_ns) && out->bound_ns < cutoff_ns;
       ++round) {
    if (round > 0) keep_only_best(c);
    CLV__TRY(clv__assign_rank(&c->assign, c->best.makespan_ns, c->ranked, error));
    CLV__TRY(clv__choosing_narrow(c, error));
    c->search.budget = 2 * budget;
    c->sequence_nodes = ALL_NODES;
    if (!is_quick) CLV__TRY(anneal(c, steps, error));
    bool is_same = c->best.makespan_ns == before && c->assign.offsets[c->k] == options;
    stale = is_same ? stale + 1 : 0;
    before = c->best.makespan_ns, options = c->assign.offsets[c->k];
    if (is_same) continue; /* the makespan and the number of options have not changed, so the bound would not either */
    CLV__TRY(clv__assign_bound(&c->assign, c->best.makespan_ns, c->options->tolerance, budget / 2, is_quick ? NULL : attempt, c,
                               &result, error));
    out->bound_ns = fmax(out->bound_ns, result.bound_ns); /* there are fewer plans than before, so earlier bounds remain valid */
  }
  return CLV_OK;
}

/* If the bound is still not close, tries once more with the reserve that all k and layers share. */
static clv_status try_last(clv__choosing *c, outcome *out, clv_error *error) {
  clv__assign_result result;
  uint64_t budget = *c->reserve < LAST_BUDGET ? *c->reserve : LAST_BUDGET;
  bool is_wanted = c->options->effort != CLV__EFFORT_QUICK && c->options->budget == 0 && c->k <= LARGE;
  if (!is_wanted || is_close(c, out->bound_ns) || budget == 0) return CLV_OK;
  keep_only_best(c);
  c->search.budget = 2 * FULL_BUDGET;
  CLV__TRY(anneal(c, LONGER * ANNEALING_STEPS, error));
  CLV__TRY(clv__assign_bound(&c->assign, c->best.makespan_ns, c->options->tolerance, budget, attempt, c, &result, error));
  *c->reserve -= result.steps < *c->reserve ? result.steps : *c->reserve;
  out->bound_ns = fmax(out->bound_ns, result.bound_ns);
  return CLV_OK;
}

/* Sets `can` to whether a schedule shorter than `time_ns` may exist: false if the bound rules it out. */
static clv_status can_beat(clv__choosing *c, double time_ns, bool *can, clv_error *error) {
  clv__assign_result result;
  double tolerance = c->options->tolerance;
  CLV__TRY(clv__assign_bound(&c->assign, time_ns * (1 + tolerance), tolerance, GLANCE_BUDGET, NULL, NULL, &result, error));
  *can = result.bound_ns < time_ns * (1 - 1e-9);
  return CLV_OK;
}

static clv_status choose_among(clv__choosing *c, const clv__choose_cut *cut, double cutoff_ns, outcome *out, clv_error *error) {
  const clv__choose_options *options = c->options;
  bool is_quick = options->effort == CLV__EFFORT_QUICK;
  bool is_large = c->k > LARGE;
  uint64_t budget = options->budget > 0 ? options->budget : is_quick ? QUICK_BUDGET : is_large ? LARGE_BUDGET : FULL_BUDGET;
  uint32_t steps = is_large ? ANNEALING_STEPS * LARGE / c->k / 2 : ANNEALING_STEPS;
  clv__assign_result all;
  bool can = true;
  CLV__TRY(clv__choosing_make_lists(c, cut, error));
  *out = (outcome){cutoff_ns, cutoff_ns};
  if (isfinite(cutoff_ns)) CLV__TRY(can_beat(c, cutoff_ns, &can, error));
  if (!can) return CLV_OK;
  c->search.budget = 2 * budget;
  clv__choosing_start(c);
  if (!is_quick) CLV__TRY(anneal(c, steps, error));
  bool is_small = c->k <= MOST_WHOLE && !is_quick; /* few enough subgraphs to try all plans in all sequences */
  c->sequence_nodes = ALL_NODES;
  CLV__TRY(clv__assign_bound(&c->assign, c->best.makespan_ns, options->tolerance, is_small ? budget : budget / 16,
                             is_small ? attempt : NULL, c, &all, error));
  if (c->k == 2 && !is_quick) { /* few enough subgraphs to try every pair of plans in both orders */
    clv__choosing_try_pairs(c);
    all.bound_ns = c->best.makespan_ns;
  }
  out->bound_ns = out->bound_all_ns = all.bound_ns;
  return close_in(c, budget, steps, cutoff_ns, out, error);
}

/* Chooses among the plans of one kind only, because the narrowed lists may omit them. A better result replaces the current
 * one. The bound then refers to the kept plans of this kind. */
static clv_status try_apart(clv__choosing *c, const clv__choose_cut *cut, const clv__pep_options *peps, const char *from,
                            outcome *out, clv_error *error) {
  clv__choose_options options = *c->options;
  clv__chosen_layer ignored = {0};
  clv__choosing apart = {.arena = c->arena,
                         .costs = c->costs,
                         .options = &options,
                         .k = c->k,
                         .layer = c->layer,
                         .chosen = &ignored,
                         .reserve = c->reserve};
  outcome found;
  options.peps = *peps;
  options.moves = NULL;
  clv_status status = choose_among(&apart, cut, c->best.makespan_ns, &found, error);
  if (status == CLV_NOT_SUPPORTED || status == CLV_TOO_LARGE) { /* no plans of this kind */
    clv__error_clear(error);
    return CLV_OK;
  }
  if (status != CLV_OK || !(apart.best.makespan_ns < c->best.makespan_ns)) return status;
  out->bound_ns = found.bound_ns;
  apart.chosen = c->chosen;
  apart.options = c->options;
  apart.best_from = from;
  *c = apart;
  c->search.works = &c->works; /* works of `apart` must not be used any more: `apart` goes out of scope */
  return CLV_OK;
}

/* ---- The result ---- */

/* Brings all subgraphs with the same PEP key into one cluster, which saves switches, unless that lengthens the makespan: some
 * pipelines are faster with split clusters. */
static void cluster(clv__choosing *c) {
  clv__candidate_copy(&c->trial, &c->best);
  clv__search_cluster(&c->search, &c->trial);
  if (c->trial.makespan_ns <= c->best.makespan_ns * (1 + 1e-9)) clv__candidate_copy(&c->best, &c->trial);
  for (uint32_t s = 0; s < c->start_count; ++s) {
    clv__candidate_copy(&c->trial, &c->starts[s]);
    clv__search_cluster(&c->search, &c->trial);
    clv__choosing_keep_best(c, &c->trial, c->start_from[s]);
  }
}

static clv_status give(clv__choosing *c, clv_error *error) {
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
    uint32_t subgraph = c->best.sequence[at];
    c->search.sequence[at] = &c->works.items[c->works.offsets[subgraph] + c->best.choices[subgraph]];
    if (at == 0 || !clv__pep_same(chosen->peps[c->best.sequence[at - 1]], chosen->peps[subgraph]))
      chosen->clusters[chosen->cluster_count++].first = at;
    ++chosen->clusters[chosen->cluster_count - 1].count;
  }
  clv__simulate(c->costs->machine, c->search.sequence, c->k, &chosen->timeline, NULL, &tasks);
  return CLV_OK;
}

clv_status clv__choose_layer(clv__arena *arena, const clv__costs *costs, uint32_t layer, const clv__choose_cut *cut,
                             const clv__choose_options *options, uint64_t *reserve, clv__chosen_layer *chosen, clv_error *error) {
  clv__choosing c = {
      .arena = arena, .costs = costs, .options = options, .k = cut->k, .layer = layer, .chosen = chosen, .reserve = reserve};
  outcome out;
  *chosen = (clv__chosen_layer){0};
  CLV__TRY(choose_among(&c, cut, INFINITY, &out, error));
  if (c.k > 1 && options->effort != CLV__EFFORT_QUICK) {
    clv__pep_options pipelines = options->peps, shares = options->peps;
    pipelines.most_parts = shares.most_blocks = 1;
    if (options->peps.most_parts != 1) CLV__TRY(try_apart(&c, cut, &pipelines, "pipelines", &out, error));
    if (options->peps.most_blocks != 1) CLV__TRY(try_apart(&c, cut, &shares, "shares", &out, error));
  }
  CLV__TRY(try_last(&c, &out, error));
  cluster(&c);
  /* whole nanoseconds, like all times */
  chosen->bound_all_ns = floor(fmin(out.bound_all_ns, c.best.makespan_ns));
  chosen->bound_ns = fmax(floor(fmin(out.bound_ns, c.best.makespan_ns)), chosen->bound_all_ns);
  CLV__TRY(give(&c, error));
  return options->keeps_buckets ? CLV_OK : clv__choose_buckets(arena, costs, cut, c.lists, chosen, error);
}
