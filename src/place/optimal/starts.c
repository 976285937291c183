/* Initial placements: the minimum cut, minimum cuts at prices that represent launches and loads, single devices, list
 * schedules. */
#include <string.h>

#include "place/optimal/optimal.h"

/* The effort of minimum cuts at other prices; one costs as much as about three evaluations. */
#define CUT_EFFORT ((uint64_t)200000)
enum { SWAP_ROUNDS = 4 };

void clv__optimal_prefer(const clv__problem *problem, uint32_t device, uint32_t *devices) {
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    uint32_t best = problem->pins[n];
    if (best == CLV__NONE && clv__can_run(problem, n, device)) best = device;
    for (uint32_t d = 0; problem->pins[n] == CLV__NONE && best != device && d < problem->device_count; ++d) {
      if (!clv__can_run(problem, n, d)) continue;
      if (best == CLV__NONE || clv__node_ns(problem, n, d) < clv__node_ns(problem, n, best)) best = d;
    }
    devices[n] = best;
  }
}

/* Improves the best placement so far by minimum cuts at other prices, and adds the result to the pool. */
static clv_status cut_at(clv__optimal *o, const clv__reprice *prices) {
  clv__arena arena;
  clv__problem repriced;
  clv__arena_init(&arena, o->allocator);
  clv_status status = clv__reprice_make(o->problem, prices, &arena, &repriced, o->error);
  memcpy(o->scratch, o->pool.solutions[0].devices, o->problem->node_count * sizeof *o->scratch);
  if (status == CLV_OK) status = clv__swap(&repriced, SWAP_ROUNDS, o->allocator, o->scratch, o->error);
  clv__arena_finish(&arena);
  return status == CLV_OK ? clv__pool_add(&o->pool, o->scratch, o->error) : status;
}

static clv_status cut_at_boundaries(clv__optimal *o) {
  static const uint32_t shares[] = {1024, 512, 256, 1536};
  uint32_t times = clv__optimal_times(o, CUT_EFFORT, 3, 4);
  for (uint32_t i = 0; i < times; ++i) {
    clv__reprice prices = CLV__REPRICE_AS_IS;
    prices.boundary = shares[i];
    CLV__TRY(cut_at(o, &prices));
  }
  return CLV_OK;
}

/* Sets `loads` to the load of each device in the placement in `scratch`, without launches. */
static void measure_loads(const clv__optimal *o, uint64_t *loads) {
  const clv__problem *problem = o->problem;
  memset(loads, 0, problem->device_count * sizeof *loads);
  for (uint32_t n = 0; n < problem->node_count; ++n) loads[o->scratch[n]] += clv__node_ns(problem, n, o->scratch[n]);
}

/* Balances the loads in several rounds: raises the prices of devices with more than their share of the load and lowers those of
 * the others, by less in each round. */
static clv_status cut_at_loads(clv__optimal *o) {
  uint32_t devices = o->problem->device_count, times = 2 + clv__optimal_times(o, CUT_EFFORT, 3, 10);
  clv__reprice prices = CLV__REPRICE_AS_IS;
  uint64_t loads[16];
  for (uint32_t i = 0; i < times; ++i) {
    prices.copies = i % 2 == 0 ? 512 : 128;
    prices.boundary = i % 4 < 2 ? 512 : 0;
    CLV__TRY(cut_at(o, &prices));
    measure_loads(o, loads);
    uint64_t total = 0;
    for (uint32_t d = 0; d < devices; ++d) total += loads[d] / devices;
    for (uint32_t d = 0; d < devices; ++d) {
      uint64_t step = 512 / (1 + i / 2), price = prices.load[d];
      price = loads[d] > total ? price + price * step / 1024 : price - price * step / 2048;
      prices.load[d] = price < 64 ? 64 : price > 16384 ? 16384 : (uint32_t)price;
    }
  }
  return CLV_OK;
}

/* Checks whether the minimum cut fits the devices' memories. */
static clv_status check_fit(clv__optimal *o) {
  clv__score score;
  o->reference_fits = true;
  if (!o->evaluator.has_limits) return CLV_OK;
  CLV__TRY(clv__evaluate(&o->evaluator, o->reference, &score, o->error));
  o->reference_fits = score.excess_bytes == 0;
  return CLV_OK;
}

clv_status clv__optimal_start(clv__optimal *o) {
  const clv__problem *problem = o->problem;
  clv__optimal_prefer(problem, 0, o->reference);
  if (problem->device_count > 1) CLV__TRY(clv__swap(problem, SWAP_ROUNDS, o->allocator, o->reference, o->error));
  CLV__TRY(clv__pool_add(&o->pool, o->reference, o->error));
  CLV__TRY(check_fit(o));
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    clv__optimal_prefer(problem, d, o->scratch);
    CLV__TRY(clv__pool_add(&o->pool, o->scratch, o->error));
  }
  if (problem->device_count == 1 || o->pool.count == 0) return CLV_OK;
  CLV__TRY(cut_at_boundaries(o));
  if (o->input->objective == CLV__LATENCY) return CLV_OK;
  CLV__TRY(clv__list_schedule(problem, o->allocator, o->scratch, o->error));
  CLV__TRY(clv__pool_add(&o->pool, o->scratch, o->error));
  return cut_at_loads(o);
}
