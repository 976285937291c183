/* Finds placements if the weights do not fit. Tries prices per byte on the devices that lack memory (Lagrange multipliers, found
 * by doubling and bisection), and tries to fill devices one after the other. */
#include <string.h>

#include "place/optimal/optimal.h"

#define FIT_EFFORT ((uint64_t)250000)

static uint64_t add_capped(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Returns the price, in nanoseconds per 1,024 bytes, at which all weights together cost as much as all nodes. */
static uint64_t unit_price(const clv__problem *problem) {
  uint64_t time = 0, bytes = 1;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    uint64_t most = 0;
    for (uint32_t d = 0; d < problem->device_count; ++d) {
      uint64_t here = clv__node_ns(problem, n, d);
      if (here != CLV__NO_TIME && here > most) most = here;
    }
    time = add_capped(time, most);
  }
  for (uint32_t w = 0; w < problem->weight_count; ++w) bytes = add_capped(bytes, problem->weight_bytes[w]);
  unsigned __int128 price = (unsigned __int128)time * 1024 / bytes;
  return price == 0 ? 1 : price > CLV__MAX_TIME_NS ? CLV__MAX_TIME_NS : (uint64_t)price;
}

static clv_status cut_at_price(clv__optimal *o, uint64_t price, bool *fits) {
  clv__arena arena;
  clv__problem repriced;
  clv__score score;
  clv__reprice prices = CLV__REPRICE_AS_IS;
  for (uint32_t d = 0; d < o->problem->device_count; ++d) prices.byte[d] = o->problem->limits[d].memory_bytes > 0 ? price : 0;
  memcpy(o->scratch, o->reference, o->problem->node_count * sizeof *o->scratch);
  clv__arena_init(&arena, o->allocator);
  clv_status status = clv__reprice_make(o->problem, &prices, &arena, &repriced, o->error);
  if (status == CLV_OK) status = clv__swap(&repriced, 2, o->allocator, o->scratch, o->error);
  clv__arena_finish(&arena);
  if (status != CLV_OK) return status;
  CLV__TRY(clv__evaluate(&o->evaluator, o->scratch, &score, o->error));
  *fits = score.excess_bytes == 0;
  return clv__pool_add(&o->pool, o->scratch, o->error);
}

/* Keeps each node on its device in `from` while the weights there take at most `share` sixteenths of the memory, in the order of
 * the list or `backwards`. Nodes that no longer fit go to the next device that can run them. */
static void fill(const clv__optimal *o, const uint32_t *from, bool backwards, uint32_t share, uint64_t *used, uint32_t *seen) {
  const clv__problem *problem = o->problem;
  memset(used, 0, problem->device_count * sizeof *used);
  for (uint32_t i = 0; i < problem->node_count; ++i) {
    uint32_t n = backwards ? problem->node_count - 1 - i : i, device = from[n];
    for (uint32_t tried = 0; tried < problem->device_count; ++tried) {
      uint32_t d = (from[n] + tried) % problem->device_count;
      if (!clv__can_run(problem, n, d) || (problem->pins[n] != CLV__NONE && problem->pins[n] != d)) continue;
      uint64_t bytes = 0, limit = problem->limits[d].memory_bytes;
      for (uint32_t k = problem->weight_offsets[n]; k < problem->weight_offsets[n + 1]; ++k) {
        if ((seen[problem->weights[k]] >> d & 1u) == 0) bytes += problem->weight_bytes[problem->weights[k]];
      }
      if (limit > 0 && bytes > 0 && used[d] + bytes > limit / 16 * share) continue;
      used[d] += bytes;
      for (uint32_t k = problem->weight_offsets[n]; k < problem->weight_offsets[n + 1]; ++k) {
        seen[problem->weights[k]] |= 1u << d;
      }
      device = d;
      break;
    }
    o->scratch[n] = device;
  }
}

static clv_status fill_in_order(clv__optimal *o) {
  uint64_t used[16];
  uint32_t *seen = clv__allocate(o->allocator, o->problem->weight_count * sizeof *seen);
  if (seen == NULL) return clv__error_memory(o->error, o->problem->weight_count * sizeof *seen);
  clv_status status = CLV_OK;
  for (uint32_t kind = 0; kind < 4 && status == CLV_OK; ++kind) {
    memset(seen, 0, o->problem->weight_count * sizeof *seen);
    fill(o, o->reference, kind % 2 == 1, kind < 2 ? 15 : 12, used, seen);
    status = clv__pool_add(&o->pool, o->scratch, o->error);
  }
  clv__release(o->allocator, seen);
  return status;
}

clv_status clv__optimal_fit(clv__optimal *o) {
  if (!o->evaluator.has_limits || o->reference_fits || o->problem->weight_count == 0) return CLV_OK;
  CLV__TRY(fill_in_order(o));
  uint32_t times = 3 + clv__optimal_times(o, FIT_EFFORT, 2, 9);
  uint64_t price = unit_price(o->problem) / 8 + 1, low = 0, high = 0;
  for (uint32_t i = 0; i < times; ++i) {
    bool fits;
    CLV__TRY(cut_at_price(o, price, &fits));
    if (fits)
      high = price;
    else
      low = price;
    price = high > 0 ? low + (high - low) / 2 : price * 4;
    if (price == low || price > CLV__MAX_TIME_NS) break;
  }
  return CLV_OK;
}
