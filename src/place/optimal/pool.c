/* The best placements found so far. */
#include <string.h>

#include "place/optimal/optimal.h"

static uint64_t hash_devices(const uint32_t *devices, uint32_t count) {
  uint64_t hash = 0x9e3779b97f4a7c15u;
  for (uint32_t n = 0; n < count; ++n) hash = (hash ^ devices[n]) * 0x100000001b3u + (hash >> 29);
  return hash;
}

static bool is_known(const clv__pool *pool, const uint32_t *devices, uint64_t hash) {
  size_t size_bytes = pool->evaluator->problem->node_count * sizeof *devices;
  for (uint32_t i = 0; i < pool->count; ++i) {
    if (pool->solutions[i].hash == hash && memcmp(pool->solutions[i].devices, devices, size_bytes) == 0) return true;
  }
  return false;
}

clv_status clv__pool_is_hopeless(const clv__pool *pool, const uint32_t *devices, bool *hopeless, clv_error *error) {
  *hopeless = false;
  if (pool->count == 0) return CLV_OK;
  return clv__is_hopeless(pool->evaluator, devices, &pool->solutions[0].score, hopeless, error);
}

/* Makes room for a placement with this score, and stores its position in `at`. Evicts the last placement if the pool is full.
 * If the pool is full of placements that are at least as good, `at` is CLV__NONE. */
static clv_status make_room(clv__pool *pool, const clv__score *score, uint32_t *at, clv_error *error) {
  size_t size_bytes = pool->evaluator->problem->node_count * sizeof(uint32_t);
  clv__solution fresh = {0};
  *at = pool->count;
  while (*at > 0 && clv__score_less(score, &pool->solutions[*at - 1].score)) --*at;
  if (*at == CLV__POOL_SIZE) {
    *at = CLV__NONE;
    return CLV_OK;
  }
  if (pool->count == CLV__POOL_SIZE) {
    fresh = pool->solutions[--pool->count];
  } else {
    fresh.devices = clv__arena_allocate(pool->arena, size_bytes);
    fresh.partition_of = clv__arena_allocate(pool->arena, size_bytes);
    if (fresh.devices == NULL || fresh.partition_of == NULL) return clv__error_memory(error, size_bytes);
  }
  memmove(&pool->solutions[*at + 1], &pool->solutions[*at], (pool->count - *at) * sizeof *pool->solutions);
  pool->solutions[*at] = fresh;
  ++pool->count;
  return CLV_OK;
}

clv_status clv__pool_add(clv__pool *pool, const uint32_t *devices, clv_error *error) {
  const clv__problem *problem = pool->evaluator->problem;
  uint64_t hash = hash_devices(devices, problem->node_count);
  bool hopeless;
  if (is_known(pool, devices, hash)) return CLV_OK;
  CLV__TRY(clv__pool_is_hopeless(pool, devices, &hopeless, error));
  if (hopeless) return CLV_OK;
  clv__score score;
  uint32_t at;
  CLV__TRY(clv__evaluate(pool->evaluator, devices, &score, error));
  if (score.time_ns == UINT64_MAX) return CLV_OK; /* the split rejects this placement */
  CLV__TRY(make_room(pool, &score, &at, error));
  if (at == CLV__NONE) return CLV_OK;
  clv__solution *solution = &pool->solutions[at];
  memcpy(solution->devices, devices, problem->node_count * sizeof *devices);
  memcpy(solution->partition_of, pool->evaluator->cut.partition_of, problem->node_count * sizeof *devices);
  solution->hash = hash;
  solution->score = score;
  if (at == 0) { /* the new best cut is in the evaluator's arena: swap the arenas */
    clv__arena arena = pool->best_arena;
    pool->best_arena = pool->evaluator->arena;
    pool->best_cut = pool->evaluator->cut;
    pool->evaluator->arena = arena;
  }
  return CLV_OK;
}

void clv__pool_init(clv__pool *pool, clv__evaluator *evaluator, clv__arena *arena) {
  *pool = (clv__pool){.evaluator = evaluator, .arena = arena};
  clv__arena_init(&pool->best_arena, arena->allocator);
}

void clv__pool_finish(clv__pool *pool) {
  clv__arena_finish(&pool->best_arena);
}
