/* Computes the full price of a placement: cuts it into partitions as in the final plan, and counts transfers, launches and
 * memory. */
#include "place/optimal/optimal.h"

bool clv__score_less(const clv__score *a, const clv__score *b) {
  if (a->excess_bytes != b->excess_bytes) return a->excess_bytes < b->excess_bytes;
  if (a->time_ns != b->time_ns) return a->time_ns < b->time_ns;
  if (a->serial_ns != b->serial_ns) return a->serial_ns < b->serial_ns;
  if (a->partitions != b->partitions) return a->partitions < b->partitions;
  return a->priority < b->priority;
}

clv__score clv__score_make(const clv__problem *problem, const uint32_t *devices, const clv__cut *cut, const clv__price *price,
                           clv__objective objective, uint64_t excess_bytes) {
  clv__score score = {excess_bytes, clv__price_of(price, objective), price->serial_ns, cut->count, 0};
  for (uint32_t n = 0; n < problem->node_count; ++n) score.priority += devices[n];
  return score;
}

void clv__evaluator_init(clv__evaluator *evaluator, const clv__problem *problem, clv__objective objective, clv__split_mode split,
                         const clv_allocator *allocator) {
  *evaluator = (clv__evaluator){.problem = problem, .objective = objective, .split = split};
  evaluator->effort = 60 + (uint64_t)problem->node_count + problem->value_count + problem->read_offsets[problem->node_count];
  if (objective == CLV__OVERLAP && split == CLV__SPLIT_CONVEX)
    evaluator->effort *= 7; /* try_orders() makes each evaluation try seven cuts in all */
  for (uint32_t d = 0; d < problem->device_count; ++d) evaluator->has_limits |= problem->limits[d].memory_bytes != 0;
  clv__arena_init(&evaluator->arena, allocator);
}

void clv__evaluator_finish(clv__evaluator *evaluator) {
  clv__arena_finish(&evaluator->arena);
}

/* Cuts the placement into partitions and computes its score, in `arena`. A placement that the split rejects gets the worst
 * score. */
static clv_status cut_and_price(clv__evaluator *evaluator, const uint32_t *devices, const uint32_t *groups, bool reorder,
                                clv__arena *arena, clv__cut *cut, clv__score *score, clv_error *error) {
  const clv__problem *problem = evaluator->problem;
  clv__copies copies;
  clv__price price;
  uint64_t excess = 0;
  *score = CLV__SCORE_WORST;
  clv_status status = clv__split(problem, devices, groups, evaluator->split, arena, cut, error);
  if (status == CLV_NOT_SUPPORTED) return CLV_OK;
  if (status != CLV_OK) return status;
  if (reorder) CLV__TRY(clv__urgent_order(problem, cut, arena, error));
  CLV__TRY(clv__split_copies(problem, cut, evaluator->streamed, arena, &copies, error));
  CLV__TRY(clv__price_cut(problem, cut, &copies, arena, &price, error));
  if (evaluator->has_limits) {
    CLV__TRY(
        clv__memory_excess(problem, cut, &copies, evaluator->streamed, arena->allocator, &evaluator->memory, &excess, error));
    evaluator->has_exceeded = evaluator->has_exceeded || excess > 0;
  }
  *score = clv__score_make(problem, devices, cut, &price, evaluator->objective, excess);
  return CLV_OK;
}

static void start_anew(clv__arena *arena) {
  clv__arena_finish(arena);
  clv__arena_init(arena, arena->allocator);
}

/* If devices work at the same time, more partitions may be better than fewer, and so may another order. So this also tries cuts
 * that separate nodes by how many changes of device come before them on a path, by how many follow, and by both; each with the
 * partitions in the given order, and with the most urgent ones first. */
static clv_status try_orders(clv__evaluator *evaluator, const uint32_t *devices, clv__score *score, clv_error *error) {
  const clv__problem *problem = evaluator->problem;
  clv__arena arena = {evaluator->arena.allocator, NULL}, groups_arena;
  clv_status status = CLV_OK;
  clv__arena_init(&groups_arena, arena.allocator);
  uint32_t *groups = clv__arena_allocate(&groups_arena, problem->node_count * sizeof *groups);
  if (groups == NULL) status = clv__error_memory(error, problem->node_count * sizeof *groups);
  for (uint32_t kind = 0; kind < 4 && status == CLV_OK; ++kind) {
    if (kind > 0) status = clv__wait_groups(problem, devices, (kind & 1u) != 0, (kind & 2u) != 0, &groups_arena, groups, error);
    for (uint32_t reorder = kind == 0; reorder < 2 && status == CLV_OK; ++reorder) {
      clv__cut cut;
      clv__score fresh;
      start_anew(&arena);
      status = cut_and_price(evaluator, devices, kind > 0 ? groups : NULL, reorder == 1, &arena, &cut, &fresh, error);
      if (status != CLV_OK || !clv__score_less(&fresh, score)) continue;
      clv__arena kept = evaluator->arena;
      evaluator->arena = arena;
      arena = kept;
      evaluator->cut = cut;
      *score = fresh;
    }
  }
  clv__arena_finish(&arena);
  clv__arena_finish(&groups_arena);
  return status;
}

clv_status clv__evaluate(clv__evaluator *evaluator, const uint32_t *devices, clv__score *score, clv_error *error) {
  start_anew(&evaluator->arena);
  evaluator->spent += evaluator->effort;
  CLV__TRY(cut_and_price(evaluator, devices, evaluator->groups, false, &evaluator->arena, &evaluator->cut, score, error));
  if (evaluator->objective != CLV__OVERLAP || evaluator->split != CLV__SPLIT_CONVEX || evaluator->groups != NULL) return CLV_OK;
  return try_orders(evaluator, devices, score, error);
}

clv_status clv__cut_copy(const clv__cut *cut, uint32_t node_count, clv__arena *arena, clv__cut *copy, clv_error *error) {
  size_t nodes = node_count * sizeof(uint32_t), partitions = cut->count * sizeof(uint32_t);
  *copy = (clv__cut){.count = cut->count,
                     .devices = clv__arena_copy(arena, cut->devices, partitions),
                     .offsets = clv__arena_copy(arena, cut->offsets, partitions + sizeof(uint32_t)),
                     .nodes = clv__arena_copy(arena, cut->nodes, nodes),
                     .partition_of = clv__arena_copy(arena, cut->partition_of, nodes)};
  if (copy->devices != NULL && copy->offsets != NULL && copy->nodes != NULL && copy->partition_of != NULL) return CLV_OK;
  return clv__error_memory(error, nodes);
}
