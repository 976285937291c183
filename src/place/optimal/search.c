/* Local search on the full price. Estimates only order the changes; the full price of the changed placement decides. The search
 * applies many independent changes at once while that helps, then one at a time. Effort is counted in operations, not measured
 * in time, so the same inputs give the same plan. */
#include <string.h>

#include "base/random.h"
#include "place/optimal/optimal.h"

/* The search of a small problem ends after FRUITLESS + FRUITLESS_A_NODE * nodes random restarts without a gain. */
enum { SEEN_SLOTS = 8192, MOST_KICKS = 3, FRUITLESS = 8, FRUITLESS_A_NODE = 4 };

typedef struct search {
  clv__evaluator *evaluator;
  const clv__problem *problem;
  const clv__search_options *options;
  clv__state state;
  clv__changes changes;
  clv__cut cut; /* the cut of `devices` */
  clv__arena cut_arena;
  uint32_t *devices, *trial;
  clv__score score;
  uint64_t *seen;   /* a hash table, indexed by the low bits: the hashes of placements that were evaluated */
  uint8_t *touched; /* by partition: a change of the current batch affects it */
  uint64_t limit;   /* the search ends when evaluator->spent reaches it */
  uint64_t random;
  clv_error *error;
} search;

static uint64_t hash_devices(const uint32_t *devices, uint32_t count) {
  uint64_t hash = 1;
  for (uint32_t n = 0; n < count; ++n) hash = (hash ^ devices[n]) * 0x100000001b3u + (hash >> 29);
  return clv__mix64(hash) | 1; /* 0 is an empty slot */
}

static bool is_spent(const search *s) {
  return s->evaluator->spent + s->evaluator->effort > s->limit;
}

/* Evaluates `trial`, unless it was evaluated before. If it is better than the current placement, it replaces that placement. */
static clv_status try_trial(search *s, bool *better) {
  *better = false;
  uint64_t hash = hash_devices(s->trial, s->problem->node_count), *slot = &s->seen[hash % SEEN_SLOTS];
  if (*slot == hash) return CLV_OK;
  *slot = hash;
  clv__score score;
  bool hopeless;
  CLV__TRY(clv__is_hopeless(s->evaluator, s->trial, &s->score, &hopeless, s->error));
  s->evaluator->spent += s->evaluator->effort / 8;
  if (hopeless) return CLV_OK;
  CLV__TRY(clv__evaluate(s->evaluator, s->trial, &score, s->error));
  if (!clv__score_less(&score, &s->score)) return CLV_OK;
  *better = true;
  s->score = score;
  clv__arena arena = s->cut_arena; /* the new cut is in the evaluator's arena: swap the arenas */
  s->cut_arena = s->evaluator->arena;
  s->evaluator->arena = arena;
  s->cut = s->evaluator->cut;
  memcpy(s->devices, s->trial, s->problem->node_count * sizeof *s->devices);
  return CLV_OK;
}

static void apply(search *s, const clv__change *change) {
  for (uint32_t i = 0; i < change->count; ++i) s->trial[s->changes.nodes[change->first + i]] = change->device;
}

/* Marks the partitions of the nodes that the change moves, and of the producers of their inputs. Returns false and marks nothing
 * if a partition of a moved node is already marked. */
static bool touch(search *s, const clv__change *change) {
  const clv__problem *problem = s->problem;
  const uint32_t *nodes = &s->changes.nodes[change->first], *partition_of = s->cut.partition_of;
  for (int pass = 0; pass < 2; ++pass) {
    for (uint32_t i = 0; i < change->count; ++i) {
      uint32_t node = nodes[i];
      if (pass == 0 && s->touched[partition_of[node]]) return false;
      s->touched[partition_of[node]] |= (uint8_t)pass;
    }
  }
  /* Several changes may read from the same partition, so marked producers are no conflict. But once they are marked, no later
   * change of the batch moves nodes of their partitions. This separates the changes along a chain. */
  for (uint32_t i = 0; i < change->count; ++i) {
    for (uint32_t r = problem->read_offsets[nodes[i]]; r < problem->read_offsets[nodes[i] + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      if (producer != CLV__NONE) s->touched[partition_of[producer]] = 1;
    }
  }
  return true;
}

/* Applies, in one step, all promising changes that are independent of each other. While that does not help, tries again with
 * only the best quarter of them. */
static clv_status try_batch(search *s, bool *better) {
  *better = false;
  uint32_t most = UINT32_MAX;
  while (most > 1 && !is_spent(s)) {
    uint32_t taken = 0;
    memset(s->touched, 0, s->cut.count);
    memcpy(s->trial, s->devices, s->problem->node_count * sizeof *s->trial);
    for (size_t i = 0; i < s->changes.count && s->changes.items[i].estimate_ns < 0 && taken < most; ++i) {
      if (!touch(s, &s->changes.items[i])) continue;
      apply(s, &s->changes.items[i]);
      ++taken;
    }
    if (taken < 2) return CLV_OK;
    CLV__TRY(try_trial(s, better));
    if (*better) return CLV_OK;
    most = taken / 4;
  }
  return CLV_OK;
}

static clv_status try_singly(search *s, bool *better) {
  *better = false;
  for (size_t i = 0; i < s->changes.count && !is_spent(s) && !*better; ++i) {
    memcpy(s->trial, s->devices, s->problem->node_count * sizeof *s->trial);
    apply(s, &s->changes.items[i]);
    CLV__TRY(try_trial(s, better));
  }
  return CLV_OK;
}

static clv_status make_changes(search *s) {
  clv__state_load(&s->state, s->devices);
  CLV__TRY(clv__changes_make(&s->state, &s->cut, s->options->deep, &s->changes, s->error));
  s->evaluator->spent += s->changes.effort;
  return CLV_OK;
}

/* Applies changes until none improves the placement, or the budget is spent. */
static clv_status descend(search *s) {
  bool better = true;
  while (better && !is_spent(s)) {
    CLV__TRY(make_changes(s));
    CLV__TRY(try_batch(s, &better));
    if (!better) CLV__TRY(try_singly(s, &better));
  }
  return CLV_OK;
}

/* Makes the placement in `trial` the current one, better or not. Returns CLV_NOT_SUPPORTED, without an error text, if the split
 * rejects it. */
static clv_status set_placement(search *s) {
  bool better;
  s->score = CLV__SCORE_WORST;
  s->seen[hash_devices(s->trial, s->problem->node_count) % SEEN_SLOTS] = 0;
  CLV__TRY(try_trial(s, &better));
  return better ? CLV_OK : CLV_NOT_SUPPORTED; /* the split rejects this placement */
}

/* Applies a few random changes to the best placement, whether they help or not, and searches from there. */
static clv_status perturb(search *s, uint32_t *best, clv__score *best_score) {
  memcpy(s->trial, best, s->problem->node_count * sizeof *best);
  clv_status status = set_placement(s);
  if (status != CLV_OK) return status == CLV_NOT_SUPPORTED ? CLV_OK : status;
  CLV__TRY(make_changes(s));
  if (s->changes.count == 0) {
    s->limit = 0; /* no change is possible: end the search */
    return CLV_OK;
  }
  s->random = clv__mix64(s->random);
  uint32_t kicks = 1 + (uint32_t)(s->random % MOST_KICKS);
  for (uint32_t k = 0; k < kicks; ++k) {
    s->random = clv__mix64(s->random);
    apply(s, &s->changes.items[s->random % s->changes.count]);
  }
  status = set_placement(s);
  if (status != CLV_OK) return status == CLV_NOT_SUPPORTED ? CLV_OK : status;
  CLV__TRY(descend(s));
  if (clv__score_less(&s->score, best_score)) {
    *best_score = s->score;
    memcpy(best, s->devices, s->problem->node_count * sizeof *best);
  }
  return CLV_OK;
}

static clv_status run(search *s, uint32_t *devices, clv__score *score) {
  if (s->options->cut != NULL) {
    memcpy(s->devices, devices, s->problem->node_count * sizeof *devices);
    s->score = *score;
    CLV__TRY(clv__cut_copy(s->options->cut, s->problem->node_count, &s->cut_arena, &s->cut, s->error));
  } else {
    memcpy(s->trial, devices, s->problem->node_count * sizeof *devices);
    clv_status status = set_placement(s);
    if (status != CLV_OK) return status == CLV_NOT_SUPPORTED ? CLV_OK : status;
  }
  CLV__TRY(descend(s));
  *score = s->score;
  memcpy(devices, s->devices, s->problem->node_count * sizeof *devices);
  uint32_t most = FRUITLESS + FRUITLESS_A_NODE * s->problem->node_count;
  for (uint32_t fruitless = 0; s->options->deep && !is_spent(s) && fruitless < most; ++fruitless) {
    clv__score before = *score;
    CLV__TRY(perturb(s, devices, score));
    if (clv__score_less(score, &before)) fruitless = 0;
  }
  return CLV_OK;
}

clv_status clv__search(clv__evaluator *evaluator, const clv__search_options *options, uint32_t *devices, clv__score *score,
                       clv_error *error) {
  const clv__problem *problem = evaluator->problem;
  const clv_allocator *allocator = evaluator->arena.allocator;
  search s = {.evaluator = evaluator,
              .problem = problem,
              .options = options,
              .changes = {.allocator = allocator},
              .limit = evaluator->spent + options->budget,
              .error = error};
  clv__arena arena;
  clv__arena_init(&arena, allocator);
  clv__arena_init(&s.cut_arena, allocator);
  clv_status status;
  s.devices = clv__arena_allocate(&arena, problem->node_count * sizeof *s.devices);
  s.trial = clv__arena_allocate(&arena, problem->node_count * sizeof *s.trial);
  s.touched = clv__arena_allocate(&arena, problem->node_count);
  s.seen = clv__arena_allocate_zero(&arena, SEEN_SLOTS, sizeof *s.seen);
  if (s.devices == NULL || s.trial == NULL || s.touched == NULL || s.seen == NULL) {
    status = clv__error_memory(error, SEEN_SLOTS * sizeof *s.seen);
    goto cleanup;
  }
  CLV__TRY_GOTO(clv__state_create(problem, &arena, &s.state, error));
  status = run(&s, devices, score);
cleanup:
  clv__changes_finish(&s.changes);
  clv__arena_finish(&s.cut_arena);
  clv__arena_finish(&arena);
  return status;
}
