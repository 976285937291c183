/* Finds the initial candidates of a search, and the best one. See choose_own.h. */
#include <math.h>
#include <string.h>

#include "gnn/plan/choose_own.h"

/* ---- Candidates ---- */

static bool same_choices(const clv__candidate *a, const clv__candidate *b) {
  return memcmp(a->choices, b->choices, a->count * sizeof *a->choices) == 0;
}

void clv__choosing_keep_best(clv__choosing *c, const clv__candidate *candidate, const char *from) {
  if (!(candidate->makespan_ns < c->best.makespan_ns)) return;
  clv__candidate_copy(&c->best, candidate);
  c->best_from = from;
}

/* Keeps the trial if it is among the best starts. */
static void keep_start(clv__choosing *c, const char *from) {
  uint32_t worst = 0;
  for (uint32_t s = 0; s < c->start_count; ++s) {
    if (same_choices(&c->starts[s], &c->trial)) return;
    if (c->starts[s].makespan_ns > c->starts[worst].makespan_ns) worst = s;
  }
  if (c->start_count < CLV__CHOOSING_STARTS)
    worst = c->start_count++;
  else if (c->starts[worst].makespan_ns <= c->trial.makespan_ns)
    return;
  clv__candidate_copy(&c->starts[worst], &c->trial);
  c->start_from[worst] = from;
}

static void try_trial(clv__choosing *c, const char *from) {
  if (c->options->effort == CLV__EFFORT_QUICK)
    clv__search_order(&c->search, &c->trial);
  else
    clv__search_begin(&c->search, &c->trial); /* an initial sequence suffices: the search improves the best starts later */
  clv__choosing_keep_best(c, &c->trial, from);
  keep_start(c, from);
}

/* Returns whether the plan runs on this device alone. True also for a plan that runs nothing, of a subgraph without vertices. */
static bool runs_on(const clv__pep *pep, uint32_t device) {
  return clv__pep_single(pep) == device || pep->time_ns <= 0;
}

static void try_singles(clv__choosing *c) {
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

/* Tries plans of the same form for all subgraphs (the same blocks, devices and shares), for each form of the first subgraph. A
 * subgraph that has no plan of the form uses its fastest plan. */
static void try_one_form_for_all(clv__choosing *c) {
  for (uint32_t form = 0; form < c->lists[0].count && c->k > 1; ++form) {
    for (uint32_t i = 0; i < c->k; ++i) {
      c->trial.choices[i] = 0;
      for (uint32_t o = 0; o < c->lists[i].count; ++o) {
        if (!clv__choosing_same_form(&c->lists[0].items[form], &c->lists[i].items[o])) continue;
        c->trial.choices[i] = o;
        break;
      }
    }
    for (uint32_t i = 0; i < c->k; ++i) c->trial.sequence[i] = i;
    try_trial(c, "one plan for all");
  }
}

/* Measures how high and uneven the loads are if the plan with loads `without` (NULL: none) is replaced by `option`. Unlike the
 * largest load, this measure falls if the load of any device falls. */
static double imbalance(const double *loads, const double *without, const clv__option *option, uint32_t devices) {
  double sum = 0;
  for (uint32_t d = 0; d < devices; ++d) {
    double load = loads[d] - (without != NULL ? without[d] : 0) + option->load[d];
    sum += load * load * load * load;
  }
  return sum * sum;
}

/* Changes the plan of one subgraph after the other to the one that minimises imbalance(), until no plan changes. */
static void try_balanced(clv__choosing *c) {
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

void clv__choosing_try_pairs(clv__choosing *c) {
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
  const clv__choosing *c = user;
  if (c->options->moves == NULL) return;
  c->options->moves(c->options->user, c->k, c->layer, move, &c->lists[move->subgraph].items[move->from],
                    &c->lists[move->subgraph].items[move->to]);
}

void clv__choosing_start(clv__choosing *c) {
  try_singles(c);
  clv__assign_greedy(&c->assign, c->trial.choices, tell_move, c);
  try_trial(c, "greedy");
  if (c->options->effort == CLV__EFFORT_QUICK) return;
  try_one_form_for_all(c);
  try_balanced(c);
}
