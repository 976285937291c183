/* Brings subgraphs with the same PEP key together, wherever they stand in the sequence, and then shortens the makespan by moves
 * that keep them together. */
#include <string.h>

#include "gnn/plan/simulate.h"

enum { MOST_ROUNDS = 8 };
#define LEAST_GAIN 1e-9 /* relative; ignores gains from rounding */

static uint64_t key_of(const clv__search *search, const clv__candidate *candidate, uint32_t subgraph) {
  return search->works->items[search->works->offsets[subgraph] + candidate->choices[subgraph]].key;
}

/* Writes the sequence to `grouped`, with the subgraphs of each key together. Keys are in the order of their first subgraphs;
 * subgraphs with the same key keep their order. */
static void group(const clv__search *search, const clv__candidate *candidate, uint32_t *grouped) {
  const uint32_t *sequence = candidate->sequence;
  uint32_t used = 0;
  for (uint32_t i = 0; i < candidate->count; ++i) {
    uint64_t key = key_of(search, candidate, sequence[i]);
    bool is_first = true;
    for (uint32_t k = 0; k < i && is_first; ++k) is_first = key_of(search, candidate, sequence[k]) != key;
    for (uint32_t k = i; k < candidate->count && is_first; ++k) {
      if (key_of(search, candidate, sequence[k]) == key) grouped[used++] = sequence[k];
    }
  }
}

static double time_of(clv__search *search, const clv__candidate *candidate, const uint32_t *sequence) {
  for (uint32_t i = 0; i < candidate->count; ++i)
    search->sequence[i] = &search->works->items[search->works->offsets[sequence[i]] + candidate->choices[sequence[i]]];
  return clv__simulate_time(search->works->machine, search->sequence, candidate->count);
}

/* Returns the end of the cluster that begins at `from`. */
static uint32_t end_of(const clv__search *search, const clv__candidate *candidate, uint32_t from) {
  uint64_t key = key_of(search, candidate, candidate->sequence[from]);
  uint32_t to = from + 1;
  while (to < candidate->count && key_of(search, candidate, candidate->sequence[to]) == key) ++to;
  return to;
}

/* Moves [from, from + length) behind the next `by` subgraphs if that shortens the makespan. */
static bool try_move(clv__search *search, clv__candidate *candidate, uint32_t from, uint32_t length, uint32_t by) {
  uint32_t *trial = search->trial;
  memcpy(trial, candidate->sequence, candidate->count * sizeof *trial);
  memcpy(trial + from, candidate->sequence + from + length, by * sizeof *trial);
  memcpy(trial + from + by, candidate->sequence + from, length * sizeof *trial);
  double time = time_of(search, candidate, trial);
  if (!(time < candidate->makespan_ns * (1 - LEAST_GAIN))) return false;
  memcpy(candidate->sequence, trial, candidate->count * sizeof *trial);
  candidate->makespan_ns = time;
  return true;
}

/* Moves each cluster behind following clusters, and each subgraph behind following subgraphs of its cluster, where that
 * shortens the makespan. Returns whether anything was moved. */
static bool improve(clv__search *search, clv__candidate *candidate) {
  bool improved = false;
  for (uint32_t from = 0; from < candidate->count; from = end_of(search, candidate, from)) {
    uint32_t end = end_of(search, candidate, from);
    for (uint32_t to = end; to < candidate->count;) {
      to = end_of(search, candidate, to);
      if (!try_move(search, candidate, from, end - from, to - end)) continue;
      improved = true;
      break; /* the cluster has moved away: another one begins at `from` now */
    }
    end = end_of(search, candidate, from);
    for (uint32_t at = from; at + 1 < end; ++at) {
      for (uint32_t by = 1; at + by < end; ++by) improved |= try_move(search, candidate, at, 1, by);
    }
  }
  return improved;
}

void clv__search_cluster(clv__search *search, clv__candidate *candidate) {
  group(search, candidate, search->best);
  memcpy(candidate->sequence, search->best, candidate->count * sizeof *search->best);
  candidate->makespan_ns = time_of(search, candidate, candidate->sequence);
  for (int round = 0; round < MOST_ROUNDS; ++round) {
    if (!improve(search, candidate)) break;
  }
}
