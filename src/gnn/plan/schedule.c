/* Searches for a sequence and for plans that minimise the simulated makespan. Starts with Johnson's rule and clusters, then
 * applies moves that shorten it. See simulate.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gnn/plan/simulate.h"

enum { MOST_ROUNDS = 64, MOST_ENUMERATED = 32 };

struct clv__search_place {
  uint32_t subgraph;
  uint64_t key;
  double first_ns, rest_ns;
};

#define LEAST_GAIN 1e-9 /* relative; ignores gains from rounding */

clv_status clv__search_init(clv__search *search, clv__arena *arena, const clv__pep_works *works, clv_error *error) {
  uint32_t count = works->count;
  *search = (clv__search){.works = works, .arena = arena, .budget = UINT64_MAX};
  search->sequence = clv__arena_allocate_zero(arena, count + 1u, sizeof *search->sequence);
  search->trial = clv__arena_allocate_zero(arena, count + 1u, sizeof *search->trial);
  search->best = clv__arena_allocate_zero(arena, count + 1u, sizeof *search->best);
  search->places = clv__arena_allocate_zero(arena, count + 1u, sizeof *search->places);
  if (search->sequence != NULL && search->trial != NULL && search->best != NULL && search->places != NULL) return CLV_OK;
  return clv__error_memory(error, count * sizeof *search->sequence);
}

clv_status clv__candidate_init(clv__candidate *candidate, clv__arena *arena, uint32_t count, clv_error *error) {
  *candidate = (clv__candidate){.count = count, .makespan_ns = INFINITY};
  candidate->choices = clv__arena_allocate_zero(arena, count + 1u, sizeof *candidate->choices);
  candidate->sequence = clv__arena_allocate_zero(arena, count + 1u, sizeof *candidate->sequence);
  for (uint32_t i = 0; i < count && candidate->sequence != NULL; ++i) candidate->sequence[i] = i;
  if (candidate->choices != NULL && candidate->sequence != NULL) return CLV_OK;
  return clv__error_memory(error, count * sizeof *candidate->choices);
}

void clv__candidate_copy(clv__candidate *to, const clv__candidate *from) {
  memcpy(to->choices, from->choices, from->count * sizeof *from->choices);
  memcpy(to->sequence, from->sequence, from->count * sizeof *from->sequence);
  to->makespan_ns = from->makespan_ns;
}

static const clv__pep_work *chosen(const clv__search *search, const clv__candidate *candidate, uint32_t subgraph) {
  return &search->works->items[search->works->offsets[subgraph] + candidate->choices[subgraph]];
}

static double price(clv__search *search, const clv__candidate *candidate, const uint32_t *sequence) {
  for (uint32_t i = 0; i < candidate->count; ++i) search->sequence[i] = chosen(search, candidate, sequence[i]);
  search->budget -= search->budget < candidate->count ? search->budget : candidate->count;
  return clv__simulate_time(search->works->machine, search->sequence, candidate->count);
}

/* Like price(), but returns INFINITY unless the result is shorter than the candidate's makespan. */
static double price_shorter(clv__search *search, const clv__candidate *candidate, const uint32_t *sequence, const double *loads) {
  for (uint32_t i = 0; i < candidate->count; ++i) search->sequence[i] = chosen(search, candidate, sequence[i]);
  search->budget -= search->budget < candidate->count ? search->budget : candidate->count;
  return clv__simulate_within(search->works->machine, search->sequence, candidate->count, loads, candidate->makespan_ns);
}

static void add_loads(const clv__search *search, const clv__candidate *candidate, double loads[CLV__PEP_DEVICES]) {
  for (uint32_t i = 0; i < candidate->count; ++i) clv__pep_work_add(chosen(search, candidate, i), 1, loads);
}

/* ---- The initial sequence ---- */

static double longest(const clv__pep_work *work, uint32_t block) {
  double most = 0;
  for (uint32_t i = 0; i < work->part_counts[block]; ++i) most = clv__larger(most, work->times_ns[block][i]);
  return most + work->merge_ns[block];
}

/* Johnson's rule (1954) for two machines. It is optimal for a cluster of two blocks on one device each, if the queue has room.
 * Subgraphs with the shorter first block come first, in increasing order of it. The others follow, in decreasing order of
 * their second block. With three blocks, the first two and the last two take the place of the two machines. */
static int compare_places(const void *a, const void *b) {
  const clv__search_place *x = a, *y = b;
  if (x->key != y->key) return (x->key > y->key) - (x->key < y->key);
  bool x_early = x->first_ns < x->rest_ns, y_early = y->first_ns < y->rest_ns;
  if (x_early != y_early) return x_early ? -1 : 1;
  double p = x_early ? x->first_ns : y->rest_ns, q = x_early ? y->first_ns : x->rest_ns;
  if (p != q) return (p > q) - (p < q);
  return (x->subgraph > y->subgraph) - (x->subgraph < y->subgraph);
}

static void begin_by_rule(clv__search *search, clv__candidate *candidate) {
  clv__search_place *places = search->places;
  for (uint32_t i = 0; i < candidate->count; ++i) {
    const clv__pep_work *work = chosen(search, candidate, i);
    uint32_t last = work->block_count - 1u;
    places[i] = (clv__search_place){.subgraph = i, .key = work->key};
    for (uint32_t b = 0; b < work->block_count; ++b) {
      if (b < last || last == 0) places[i].first_ns += longest(work, b);
      if (b > 0) places[i].rest_ns += longest(work, b);
    }
  }
  if (candidate->count > 1) qsort(places, candidate->count, sizeof *places, compare_places);
  for (uint32_t i = 0; i < candidate->count; ++i) candidate->sequence[i] = places[i].subgraph;
}

/* ---- Moves ---- */

/* Copies `sequence` to `trial`, moving the `length` subgraphs at `from` so that they start at position `to` among the rest. */
static void move_run(const uint32_t *sequence, uint32_t count, uint32_t from, uint32_t length, uint32_t to, uint32_t *trial) {
  uint32_t used = 0;
  for (uint32_t i = 0; i <= count; ++i) {
    if (used == to) {
      memcpy(trial + used, sequence + from, length * sizeof *trial);
      used += length;
      to = CLV__NO_ID;
    }
    if (i < count && (i < from || i >= from + length)) trial[used++] = sequence[i];
  }
}

static uint32_t run_length(const clv__search *search, const clv__candidate *candidate, uint32_t from) {
  uint64_t key = chosen(search, candidate, candidate->sequence[from])->key;
  uint32_t to = from + 1;
  while (to < candidate->count && chosen(search, candidate, candidate->sequence[to])->key == key) ++to;
  return to - from;
}

/* Finds the best position for a run of the sequence. Returns true if the makespan falls. */
static bool improve_run(clv__search *search, clv__candidate *candidate, uint32_t from, uint32_t length) {
  bool improved = false;
  double loads[CLV__PEP_DEVICES] = {0};
  add_loads(search, candidate, loads);
  for (uint32_t to = 0; to + length <= candidate->count && search->budget > 0; ++to) {
    if (to == from) continue;
    move_run(candidate->sequence, candidate->count, from, length, to, search->trial);
    double time = price_shorter(search, candidate, search->trial, loads);
    if (!(time < candidate->makespan_ns * (1 - LEAST_GAIN))) continue;
    memcpy(search->best, search->trial, candidate->count * sizeof *search->best);
    candidate->makespan_ns = time;
    improved = true;
  }
  if (improved) memcpy(candidate->sequence, search->best, candidate->count * sizeof *search->best);
  return improved;
}

static bool improve_order(clv__search *search, clv__candidate *candidate) {
  bool improved = false;
  for (uint32_t from = 0; from < candidate->count; from += run_length(search, candidate, from)) {
    improved |= improve_run(search, candidate, from, run_length(search, candidate, from));
  }
  for (uint32_t from = 0; from < candidate->count; ++from) improved |= improve_run(search, candidate, from, 1);
  return improved;
}

void clv__search_begin(clv__search *search, clv__candidate *candidate) {
  begin_by_rule(search, candidate);
  candidate->makespan_ns = price(search, candidate, candidate->sequence);
}

void clv__search_order(clv__search *search, clv__candidate *candidate) {
  clv__search_begin(search, candidate);
  for (int round = 0; round < MOST_ROUNDS && search->budget > 0; ++round) {
    if (!improve_order(search, candidate)) break;
  }
}

/* ---- All sequences ---- */

/* The state after the first subgraphs of a sequence, without switches and with unlimited queues. This relaxation lengthens no
 * schedule. Only the set of subgraphs and the times when each device becomes free then matter. */
typedef struct beginning {
  double free_ns[CLV__PEP_DEVICES], makespan_ns;
} beginning;

struct clv__search_memory {
  uint32_t subset, generation;
  beginning at;
};

typedef struct enumeration {
  clv__search *search;
  clv__candidate *candidate; /* holds the best known sequence and makespan */
  double goal_ns;            /* prune sequences whose makespan, without switches and queue limits, is not below it */
  uint32_t nodes;
  bool is_spent;
} enumeration;

enum { MEMORY_SLOTS = 1 << 14, MEMORY_PROBES = 12 };

static void step(const clv__pep_work *work, beginning *at) {
  double ready = 0;
  for (uint32_t b = 0; b < work->block_count; ++b) {
    double end = 0;
    for (uint32_t p = 0; p < work->part_counts[b]; ++p) {
      double *free_ns = &at->free_ns[work->devices[b][p]];
      *free_ns = clv__larger(*free_ns, ready) + work->times_ns[b][p];
      end = clv__larger(end, *free_ns);
    }
    ready = end + work->merge_ns[b];
  }
  at->makespan_ns = clv__larger(at->makespan_ns, ready);
}

static bool is_no_later(const beginning *a, const beginning *b) {
  bool good = a->makespan_ns <= b->makespan_ns;
  for (uint32_t d = 0; d < CLV__PEP_DEVICES; ++d) good = good && a->free_ns[d] <= b->free_ns[d];
  return good;
}

/* Returns whether an earlier state with the same subgraphs has no later time, on any device or in its makespan. Otherwise stores
 * this state. */
static bool was_seen(clv__search *search, uint32_t subset, const beginning *at) {
  uint32_t slot = subset * 2654435761u >> 18, place = CLV__NO_ID;
  for (uint32_t probe = 0; probe < MEMORY_PROBES; ++probe) {
    clv__search_memory *memory = &search->memory[(slot + probe) % MEMORY_SLOTS];
    bool is_old = memory->generation != search->generation;
    if (!is_old && memory->subset == subset && is_no_later(&memory->at, at)) return true;
    if (is_old || (memory->subset == subset && is_no_later(at, &memory->at))) place = (slot + probe) % MEMORY_SLOTS;
    if (is_old) break;
  }
  if (place == CLV__NO_ID) place = (slot + search->turn++ % MEMORY_PROBES) % MEMORY_SLOTS;
  search->memory[place] = (clv__search_memory){subset, search->generation, *at};
  return false;
}

/* Computes the time after each device's task in a plan. INFINITY: the device has no task. */
static void tails_of(const clv__pep_work *work, double *tails) {
  double after = 0;
  for (uint32_t d = 0; d < CLV__PEP_DEVICES; ++d) tails[d] = INFINITY;
  for (uint32_t b = work->block_count; b-- > 0;) {
    for (uint32_t p = 0; p < work->part_counts[b]; ++p) tails[work->devices[b][p]] = after + work->merge_ns[b];
    after += longest(work, b);
  }
}

/* A device's remaining task: it starts no earlier than `start`, and `tail` follows it. */
typedef struct rest {
  double start, time, tail;
} rest;

/* Computes the maximum, over subsets of tasks, of earliest start + all times + shortest tail. It suffices to consider subsets
 * defined by a minimum start and tail. `tasks` must be sorted by decreasing tail. */
static double worst_set(const rest *tasks, uint32_t count) {
  double worst = 0;
  for (uint32_t i = 0; i < count; ++i) {
    double sum = tasks[i].start;
    for (uint32_t k = 0; k < count; ++k) {
      if (tasks[k].start < tasks[i].start) continue;
      sum += tasks[k].time;
      worst = clv__larger(worst, sum + tasks[k].tail);
    }
  }
  return worst;
}

static void insert_rest(rest *tasks, uint32_t *count, rest made) {
  uint32_t at = (*count)++;
  for (; at > 0 && tasks[at - 1].tail < made.tail; --at) tasks[at] = tasks[at - 1];
  tasks[at] = made;
}

/* A lower bound on all sequences that start with the first `depth` subgraphs of `trial`. Each device runs its remaining tasks,
 * no earlier than the first of them can start, followed by the shortest of their tails. One of the remaining subgraphs is the
 * last on all of its devices. On these devices, its own tail counts instead of the shortest. */
static double bound_rest(const enumeration *e, uint32_t depth, const double *free_ns) {
  const clv__search *search = e->search;
  rest tasks[CLV__PEP_DEVICES][MOST_ENUMERATED];
  uint32_t counts[CLV__PEP_DEVICES] = {0};
  double loads[CLV__PEP_DEVICES] = {0}, starts[CLV__PEP_DEVICES], tails[CLV__PEP_DEVICES], own[CLV__PEP_DEVICES],
         least = INFINITY;
  for (uint32_t d = 0; d < CLV__PEP_DEVICES; ++d) tails[d] = starts[d] = INFINITY;
  for (uint32_t i = depth; i < e->candidate->count; ++i) {
    const clv__pep_work *work = chosen(search, e->candidate, search->trial[i]);
    double ready = 0;
    tails_of(work, own);
    for (uint32_t b = 0; b < work->block_count; ++b) {
      double end = 0;
      for (uint32_t p = 0; p < work->part_counts[b]; ++p) {
        uint32_t d = work->devices[b][p];
        double start = clv__larger(ready, free_ns[d]);
        loads[d] += work->times_ns[b][p];
        starts[d] = clv__smaller(starts[d], start), tails[d] = clv__smaller(tails[d], own[d]);
        insert_rest(tasks[d], &counts[d], (rest){start, work->times_ns[b][p], own[d]});
        end = clv__larger(end, start + work->times_ns[b][p]);
      }
      ready = end + work->merge_ns[b];
    }
  }
  for (uint32_t i = depth; i < e->candidate->count; ++i) { /* assume that this subgraph is last */
    double bound = 0;
    tails_of(chosen(search, e->candidate, search->trial[i]), own);
    for (uint32_t d = 0; d < CLV__PEP_DEVICES; ++d) {
      if (counts[d] > 0) bound = clv__larger(bound, starts[d] + loads[d] + (isfinite(own[d]) ? own[d] : tails[d]));
    }
    least = clv__smaller(least, bound);
  }
  if (depth == e->candidate->count) return 0;
  for (uint32_t d = 0; d < CLV__PEP_DEVICES; ++d) least = clv__larger(least, worst_set(tasks[d], counts[d]));
  return least;
}

static void enumerate(enumeration *e, uint32_t depth, uint32_t subset, const beginning *at) {
  clv__search *search = e->search;
  uint32_t count = e->candidate->count;
  if (at->makespan_ns >= e->goal_ns) return;
  if (depth == count) {
    e->goal_ns = at->makespan_ns;
    double time = price(search, e->candidate, search->trial);
    if (time >= e->candidate->makespan_ns) return;
    e->candidate->makespan_ns = time;
    memcpy(e->candidate->sequence, search->trial, count * sizeof *search->trial);
    return;
  }
  if (was_seen(search, subset, at) || bound_rest(e, depth, at->free_ns) >= e->goal_ns) return;
  for (uint32_t i = depth; i < count; ++i) {
    if (e->nodes == 0) {
      e->is_spent = true;
      return;
    }
    --e->nodes;
    uint32_t subgraph = search->trial[i];
    beginning next = *at;
    search->trial[i] = search->trial[depth], search->trial[depth] = subgraph;
    step(chosen(search, e->candidate, subgraph), &next);
    enumerate(e, depth + 1, subset | 1u << subgraph, &next);
    search->trial[depth] = search->trial[i], search->trial[i] = subgraph;
  }
}

double clv__search_sequences(clv__search *search, clv__candidate *candidate, double goal_ns, uint32_t *nodes) {
  if (candidate->count > MOST_ENUMERATED) return 0;
  if (search->memory == NULL) search->memory = clv__arena_allocate_zero(search->arena, MEMORY_SLOTS, sizeof *search->memory);
  if (search->memory == NULL) return 0; /* nothing is proven */
  enumeration e = {search, candidate, goal_ns, *nodes, false};
  beginning none = {.makespan_ns = 0};
  ++search->generation;
  memcpy(search->trial, candidate->sequence, candidate->count * sizeof *search->trial);
  enumerate(&e, 0, 0, &none);
  *nodes = e.nodes;
  return e.is_spent ? 0 : e.goal_ns;
}

/* ---- Plans ---- */

/* The subgraph at position `at` has a new plan. Tries it at its present position, at both ends of the sequence, and directly
 * before and after each subgraph with the same key. Keeps the best position, and returns whether it shortens the makespan. */
static bool try_places(clv__search *search, clv__candidate *candidate, uint32_t at, const double *loads) {
  uint32_t count = candidate->count, subgraph = candidate->sequence[at];
  uint64_t key = chosen(search, candidate, subgraph)->key;
  bool improved = false;
  for (uint32_t to = 0; to < count && search->budget > 0; ++to) {
    uint32_t before = to > 0 ? candidate->sequence[to - 1 >= at ? to : to - 1] : subgraph;
    uint32_t after = to + 1 < count ? candidate->sequence[to >= at ? to + 1 : to] : subgraph;
    bool touches = (before != subgraph && chosen(search, candidate, before)->key == key) ||
                   (after != subgraph && chosen(search, candidate, after)->key == key);
    if (to != at && to != 0 && to + 1 != count && !touches) continue;
    move_run(candidate->sequence, count, at, 1, to, search->trial);
    double time = price_shorter(search, candidate, search->trial, loads);
    if (!(time < candidate->makespan_ns * (1 - LEAST_GAIN))) continue;
    memcpy(search->best, search->trial, count * sizeof *search->best);
    candidate->makespan_ns = time;
    improved = true;
  }
  if (improved) memcpy(candidate->sequence, search->best, count * sizeof *search->best);
  return improved;
}

void clv__search_plans(clv__search *search, clv__candidate *candidate) {
  const uint32_t *offsets = search->works->offsets;
  double loads[CLV__PEP_DEVICES] = {0};
  bool improved = true;
  add_loads(search, candidate, loads);
  for (int round = 0; round < MOST_ROUNDS && improved && search->budget > 0; ++round) {
    improved = false;
    for (uint32_t subgraph = 0; subgraph < candidate->count; ++subgraph) {
      uint32_t kept = candidate->choices[subgraph], at = 0;
      clv__pep_work_add(chosen(search, candidate, subgraph), -1, loads);
      while (candidate->sequence[at] != subgraph) ++at;
      for (uint32_t choice = 0; choice < offsets[subgraph + 1] - offsets[subgraph] && search->budget > 0; ++choice) {
        if (choice == kept) continue;
        candidate->choices[subgraph] = choice;
        double with[CLV__PEP_DEVICES];
        memcpy(with, loads, sizeof with);
        clv__pep_work_add(chosen(search, candidate, subgraph), 1, with);
        if (clv__most_loaded(with) >= candidate->makespan_ns) continue; /* no sequence is shorter */
        if (try_places(search, candidate, at, with)) {
          kept = choice;
          improved = true;
          for (at = 0; candidate->sequence[at] != subgraph;) ++at;
        }
      }
      candidate->choices[subgraph] = kept;
      clv__pep_work_add(chosen(search, candidate, subgraph), 1, loads);
    }
    improved |= improve_order(search, candidate);
  }
}
