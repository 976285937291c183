/* `optimal`: the least predicted time. It computes the full price of the exact minimum cut of node, transfer and fusion times (of
 * each pair of devices in turn if there are more than two), of the result of every other strategy, and of every single device. A
 * local search continues from the best of these. The result is the best placement seen, so it is never worse than another
 * strategy under the same prices. Effort is counted in operations, not measured in time, so that the result is deterministic. */
#include "place/optimal/optimal.h"

#include <string.h>

/* The effort of each step (see clv__evaluator); then the most evaluations of a search, the least of the shallow search, and the
 * number of placements from which the deep search starts. */
#define DEEP_EFFORT ((uint64_t)600000)
#define SWAP_EFFORT ((uint64_t)300000)
#define SHALLOW_EFFORT ((uint64_t)220000)
enum { DEEP_TIMES = 1200, SHALLOW_TIMES = 2, SEARCH_STARTS = 3 };

/* The best of the results that the pool would cut differently than their strategy does, because the strategy has a cut, groups,
 * streamed weights or a split mode of its own. They are priced with the strategy's cut. */
typedef struct rival {
  const clv__strategy *strategy;
  clv__score score;
} rival;

/* ---- Other strategies ---- */

static clv_status score_candidate(clv__optimal *o, const clv__candidate *candidate, clv__score *score) {
  uint64_t excess = 0;
  if (o->evaluator.has_limits) {
    clv__memory memory;
    CLV__TRY(clv__memory_excess(o->problem, &candidate->cut, &candidate->copies, candidate->placing.streamed, o->allocator,
                                &memory, &excess, o->error));
  }
  *score =
      clv__score_make(o->problem, candidate->placing.devices, &candidate->cut, &candidate->price, o->input->objective, excess);
  return CLV_OK;
}

static clv__place_input input_of(const clv__place_input *input, const clv__strategy *strategy) {
  clv__place_input its = *input;
  its.record_passes = false;
  if (!its.split_is_given) its.split = strategy->split;
  return its;
}

static clv_status try_strategy(clv__optimal *o, const clv__strategy *strategy, clv__arena *arena, rival *best) {
  clv__place_input its = input_of(o->input, strategy);
  clv__candidate candidate = {0};
  bool hopeless = false;
  clv_status status = strategy->place(&its, arena, &candidate.placing, o->error);
  if (status == CLV_OK) status = clv__pool_is_hopeless(&o->pool, candidate.placing.devices, &hopeless, o->error);
  /* The strategy cannot place this problem, or its placement is hopeless. */
  if (status == CLV_NOT_SUPPORTED || hopeless) return CLV_OK;
  if (status != CLV_OK) return status;
  const clv__placing *placing = &candidate.placing;
  if (!placing->has_cut && placing->groups == NULL && placing->streamed == NULL && its.split == o->evaluator.split) {
    return clv__pool_add(&o->pool, placing->devices, o->error); /* the pool would cut the placement in the same way */
  }
  clv__score score;
  status = clv__place_price(&its, arena, &candidate, o->error);
  if (status == CLV_NOT_SUPPORTED) return CLV_OK;
  if (status != CLV_OK) return status;
  CLV__TRY(score_candidate(o, &candidate, &score));
  if (clv__score_less(&score, &best->score)) *best = (rival){strategy, score};
  return clv__pool_add(&o->pool, candidate.placing.devices, o->error);
}

static clv_status try_strategies(clv__optimal *o, rival *best) {
  *best = (rival){NULL, CLV__SCORE_WORST};
  for (uint32_t i = 0; clv__strategies[i] != NULL; ++i) {
    const clv__strategy *strategy = clv__strategies[i];
    if (strategy->place == clv__place_optimal) continue;
    clv__arena arena;
    clv__arena_init(&arena, o->allocator);
    clv_status status = try_strategy(o, strategy, &arena, best);
    clv__arena_finish(&arena);
    if (status != CLV_OK) return status;
  }
  return CLV_OK;
}

/* With more than two devices: improves the best placements, by an exact minimum cut for each pair of devices in turn. */
static clv_status swap_best(clv__optimal *o) {
  uint32_t times = 1 + clv__optimal_times(o, SWAP_EFFORT, 10, 3);
  for (uint32_t i = 0; i < times && i < o->pool.count; ++i) {
    memcpy(o->scratch, o->pool.solutions[i].devices, o->problem->node_count * sizeof *o->scratch);
    CLV__TRY(clv__swap(o->problem, 4, o->allocator, o->scratch, o->error));
    CLV__TRY(clv__pool_add(&o->pool, o->scratch, o->error));
  }
  return CLV_OK;
}

/* ---- Local search ---- */

static clv_status search_from(clv__optimal *o, uint32_t solution, uint64_t budget, bool deep) {
  clv__search_options options = {budget, deep, solution == 0 ? &o->pool.best_cut : NULL};
  clv__score score = o->pool.solutions[solution].score;
  memcpy(o->scratch, o->pool.solutions[solution].devices, o->problem->node_count * sizeof *o->scratch);
  CLV__TRY(clv__search(&o->evaluator, &options, o->scratch, &score, o->error));
  return clv__pool_add(&o->pool, o->scratch, o->error);
}

/* For small problems: searches deeply, from several starts. */
static clv_status search_deep(clv__optimal *o) {
  uint32_t count = o->pool.count < SEARCH_STARTS ? o->pool.count : SEARCH_STARTS;
  uint64_t effort = o->input->objective == CLV__OVERLAP ? 3 * DEEP_EFFORT : DEEP_EFFORT; /* an evaluation then tries 7 cuts */
  uint64_t budget = clv__optimal_times(o, effort, 1, DEEP_TIMES) * o->evaluator.effort;
  uint64_t hashes[SEARCH_STARTS];
  for (uint32_t i = 0; i < count; ++i) hashes[i] = o->pool.solutions[i].hash;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t at = 0;
    while (at < o->pool.count && o->pool.solutions[at].hash != hashes[i]) ++at;
    if (at < o->pool.count) CLV__TRY(search_from(o, at, budget / count, true));
  }
  return CLV_OK;
}

static clv_status search_large(clv__optimal *o) {
  uint32_t times = SHALLOW_TIMES + clv__optimal_times(o, SHALLOW_EFFORT, 1, DEEP_TIMES);
  return search_from(o, 0, times * o->evaluator.effort, false);
}

/* ---- The result ---- */

/* Reports, as the error, why the split rejects the placement in o->scratch. Called if it rejects every placement. */
static clv_status refuse_split(clv__optimal *o) {
  clv__cut cut;
  clv__arena arena;
  clv__arena_init(&arena, o->allocator);
  clv_status status = clv__split(o->problem, o->scratch, NULL, o->input->split, &arena, &cut, o->error);
  clv__arena_finish(&arena);
  if (status != CLV_OK) return status;
  return clv__error_set(o->error, CLV_INTERNAL_ERROR, "the split accepts a placement that it rejected before");
}

static clv_status give_rival(clv__optimal *o, const clv__strategy *strategy, clv__arena *arena, clv__placing *placing) {
  clv__place_input its = input_of(o->input, strategy);
  clv__candidate candidate;
  CLV__TRY(clv__place_candidate(&its, strategy->place, arena, &candidate, o->error));
  *placing = candidate.placing;
  placing->cut = candidate.cut;
  placing->has_cut = true;
  return CLV_OK;
}

/* The causes of `optimal`. If the placement comes from another strategy, its nodes have that strategy's causes.
 *   usr      fixed by the user
 *   only     the only device that can run it
 *   single   everything on one device is cheapest
 *   view     moves no data: it stays with its source, or with its reader
 *   cut      the minimum cut of node, transfer and fusion times puts it there
 *   back     moved from its device in the cut: with launches, the partition boundary there costs more than it gains
 *   load     moved from its device in the cut, so that devices work at the same time
 *   memory   moved from its device in the cut, because the cut does not fit the devices' memories */
static const char *cause_of(const clv__optimal *o, const uint32_t *devices, uint32_t node, bool is_single) {
  const clv__problem *problem = o->problem;
  if (problem->pins[node] != CLV__NONE) return "usr";
  if (clv__is_hosted(problem, node, devices[node])) return "view";
  if ((problem->supports[node] & (problem->supports[node] - 1u)) == 0) return "only";
  if (is_single) return "single";
  if ((problem->flags[node] & CLV__NODE_VIEW) != 0) return "view";
  if (devices[node] == o->reference[node]) return "cut";
  if (!o->reference_fits) return "memory";
  return o->input->objective == CLV__LATENCY ? "back" : "load";
}

static void set_causes(const clv__optimal *o, const uint32_t *devices, const char **causes) {
  bool is_single = true;
  for (uint32_t n = 1; n < o->problem->node_count; ++n) is_single &= devices[n] == devices[0];
  for (uint32_t n = 0; n < o->problem->node_count; ++n) causes[n] = cause_of(o, devices, n, is_single);
}

static clv_status give(clv__optimal *o, const uint32_t *devices, const clv__placing *streaming, clv__arena *arena,
                       clv__placing *placing) {
  CLV__TRY(clv__placing_init(o->problem, arena, placing, o->error));
  memcpy(placing->devices, devices, o->problem->node_count * sizeof *devices);
  set_causes(o, devices, placing->causes);
  if (streaming != NULL) {
    placing->streamed = clv__arena_copy(arena, streaming->streamed, o->problem->weight_count * sizeof *placing->streamed);
    placing->is_fitted = true;
    placing->groups = clv__arena_copy(arena, streaming->groups, o->problem->node_count * sizeof *placing->groups);
    if (placing->streamed == NULL || placing->groups == NULL) return clv__error_memory(o->error, o->problem->node_count);
  }
  placing->has_cut = true;
  if (devices == o->pool.solutions[0].devices && streaming == NULL) {
    return clv__cut_copy(&o->pool.best_cut, o->problem->node_count, arena, &placing->cut, o->error);
  }
  clv__score score;
  o->evaluator.groups = placing->groups;
  o->evaluator.streamed = placing->streamed;
  CLV__TRY(clv__evaluate(&o->evaluator, devices, &score, o->error));
  return clv__cut_copy(&o->evaluator.cut, o->problem->node_count, arena, &placing->cut, o->error);
}

static clv_status choose(clv__optimal *o, const rival *best, clv__arena *arena, clv__placing *placing) {
  clv__fitted fitted;
  const clv__solution *own = &o->pool.solutions[0];
  CLV__TRY(clv__optimal_fitted(o, &fitted));
  clv__score least = o->pool.count > 0 ? own->score : CLV__SCORE_WORST;
  if (clv__score_less(&best->score, &least)) least = best->score;
  if (clv__score_less(&fitted.score, &least)) least = fitted.score;
  if (least.time_ns == UINT64_MAX) return refuse_split(o);
  if (o->pool.count > 0 && !clv__score_less(&least, &own->score)) return give(o, own->devices, NULL, arena, placing);
  if (!clv__score_less(&least, &best->score)) return give_rival(o, best->strategy, arena, placing);
  return give(o, fitted.devices, &fitted.placing, arena, placing);
}

/* Sets `enough` if a search cannot help: there is one device or no placement, or the time equals a lower bound. The bound is
 * computed only if the search would take longer than computing it. Another placement of equal time might have fewer partitions,
 * but this one already has the fewest that its split can find. */
static clv_status is_least(clv__optimal *o, bool *enough) {
  clv__bounds bounds;
  *enough = o->pool.count == 0 || o->problem->device_count == 1;
  if (*enough || o->input->objective != CLV__LATENCY || o->problem->node_count > CLV__DEEP_NODES) return CLV_OK;
  CLV__TRY(clv__bound(o->problem, o->allocator, &bounds, o->error));
  const clv__score *score = &o->pool.solutions[0].score;
  *enough = score->excess_bytes == 0 && score->time_ns <= bounds.serial_ns;
  return CLV_OK;
}

static clv_status place(clv__optimal *o, clv__arena *arena, clv__placing *placing) {
  rival best;
  size_t size_bytes = o->problem->node_count * sizeof *o->scratch;
  o->scratch = clv__arena_allocate(&o->arena, size_bytes);
  o->reference = clv__arena_allocate(&o->arena, size_bytes);
  if (o->scratch == NULL || o->reference == NULL) return clv__error_memory(o->error, size_bytes);
  CLV__TRY(clv__optimal_start(o));
  CLV__TRY(try_strategies(o, &best));
  if (o->problem->device_count > 2) CLV__TRY(swap_best(o));
  CLV__TRY(clv__optimal_fit(o));
  bool enough;
  CLV__TRY(is_least(o, &enough));
  if (!enough) CLV__TRY(o->problem->node_count <= CLV__DEEP_NODES ? search_deep(o) : search_large(o));
  return choose(o, &best, arena, placing);
}

clv_status clv__place_optimal(const clv__place_input *input, clv__arena *arena, clv__placing *placing, clv_error *error) {
  if (input->problem->node_count == 0) return clv__placing_init(input->problem, arena, placing, error);
  clv__optimal o = {.input = input, .problem = input->problem, .allocator = arena->allocator, .error = error};
  clv__arena_init(&o.arena, o.allocator);
  clv__evaluator_init(&o.evaluator, o.problem, input->objective, input->split, o.allocator);
  clv__pool_init(&o.pool, &o.evaluator, &o.arena);
  clv_status status = place(&o, arena, placing);
  clv__pool_finish(&o.pool);
  clv__evaluator_finish(&o.evaluator);
  clv__arena_finish(&o.arena);
  return status;
}

static const clv__cause causes[] = {
    {"cut", "placed by the minimum cut of the predicted times of nodes, transfers and fusion"},
    {"back", "moved from its device in the minimum cut: with launch costs, a partition boundary here costs more than it gains"},
    {"load", "moved from its device in the minimum cut, so that devices work at the same time"},
    {NULL, NULL},
};

const clv__strategy clv__strategy_optimal = {
    .name = "optimal",
    .summary = "minimise the predicted time, with a lower bound: exact minimum cut, then local search",
    .place = clv__place_optimal,
    .split = CLV__SPLIT_CONVEX,
    .causes = causes,
};
