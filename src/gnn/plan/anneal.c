/* Simulated annealing over plans and sequence together. A makespan is a maximum, so most single moves do not change it and a
 * descent stops early. The seed makes the result reproducible. */
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "gnn/plan/simulate.h"

#define WARMEST 0.03      /* temperature of the first moves, relative to the makespan */
#define COOLEST 0.0003    /* temperature of the last moves */
#define LEAST_EXCESS 1e-9 /* relative tolerance of loads, which are summed in another order than in a schedule */

/* The state to restore if a move is rejected. */
typedef struct move {
  uint32_t subgraph, choice; /* the subgraph, and its plan before the move */
  uint32_t from, to;         /* positions of the subgraph in the sequence, before and after the move */
} move;

static void relocate(uint32_t *sequence, uint32_t from, uint32_t to) {
  uint32_t subgraph = sequence[from];
  if (from < to)
    memmove(sequence + from, sequence + from + 1, (to - from) * sizeof *sequence);
  else
    memmove(sequence + to + 1, sequence + to, (from - to) * sizeof *sequence);
  sequence[to] = subgraph;
}

void clv__search_anneal(clv__search *search, clv__candidate *candidate, const uint32_t *ranked, uint64_t seed, uint32_t steps) {
  const clv__pep_works *works = search->works;
  const uint32_t *offsets = works->offsets;
  uint32_t count = candidate->count;
  uint64_t state = seed;
  uint32_t *choices = search->trial, *sequence = search->best; /* the current state; the candidate holds the best state so far */
  double now = candidate->makespan_ns;
  memcpy(choices, candidate->choices, count * sizeof *choices);
  memcpy(sequence, candidate->sequence, count * sizeof *sequence);
  double warm = WARMEST * now, cooling = steps > 1 ? pow(COOLEST / WARMEST, 1.0 / steps) : 1, loads[CLV__PEP_DEVICES] = {0};
  for (uint32_t i = 0; i < count; ++i) clv__pep_work_add(&works->items[offsets[i] + choices[i]], 1, loads);
  for (uint32_t step = 0; step < steps && search->budget > 0; ++step, warm *= cooling) {
    uint32_t from = clv__random_below(&state, count), kind = clv__random_below(&state, 8), subgraph = sequence[from];
    move made = {subgraph, choices[subgraph], from, from};
    if (kind < 5) { /* tries another plan; plans with the least load are tried most often */
      uint32_t plans = offsets[subgraph + 1] - offsets[subgraph];
      double where = clv__random_real(&state);
      choices[subgraph] = ranked[offsets[subgraph] + (uint32_t)(where * where * where * plans)];
    }
    if (kind >= 3) made.to = clv__random_below(&state, count);
    double most = now - warm * log(1 - clv__random_real(&state)); /* accepts all shorter makespans and some longer ones */
    double changed[CLV__PEP_DEVICES];
    memcpy(changed, loads, sizeof changed);
    if (choices[subgraph] != made.choice) {
      clv__pep_work_add(&works->items[offsets[subgraph] + made.choice], -1, changed);
      clv__pep_work_add(&works->items[offsets[subgraph] + choices[subgraph]], 1, changed);
    }
    /* No schedule is shorter than the largest load, so the simulation can be skipped. */
    if (clv__most_loaded(changed) > most * (1 + LEAST_EXCESS)) {
      --search->budget;
      choices[subgraph] = made.choice;
      continue;
    }
    relocate(sequence, made.from, made.to);
    for (uint32_t i = 0; i < count; ++i) search->sequence[i] = &works->items[offsets[sequence[i]] + choices[sequence[i]]];
    search->budget -= search->budget < count ? search->budget : count;
    double time = clv__simulate_within(works->machine, search->sequence, count, changed, most);
    if (time <= most) {
      now = time;
      memcpy(loads, changed, sizeof loads);
      if (time >= candidate->makespan_ns) continue;
      candidate->makespan_ns = time;
      memcpy(candidate->choices, choices, count * sizeof *choices);
      memcpy(candidate->sequence, sequence, count * sizeof *sequence);
    } else {
      relocate(sequence, made.to, made.from);
      choices[made.subgraph] = made.choice;
    }
  }
}
