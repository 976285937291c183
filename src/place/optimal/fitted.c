/* Finds the best placement that fits the devices' memories with streamed weights (stream.c) or further cuts. Starts from the
 * minimum cut, from single devices and from the candidates of the pool. */
#include <string.h>

#include "place/optimal/optimal.h"

#define FITTED_EFFORT ((uint64_t)2000000)
enum { MOST_SHED = 16 };

static uint64_t bytes_of(const clv__problem *problem, uint32_t node) {
  uint64_t bytes = 0;
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k)
    bytes = clv__add_ns(bytes, problem->weight_bytes[problem->weights[k]]);
  for (uint32_t r = problem->read_offsets[node]; r < problem->read_offsets[node + 1]; ++r)
    bytes = clv__add_ns(bytes, problem->value_bytes[problem->reads[r]]);
  for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w)
    bytes = clv__add_ns(bytes, problem->value_bytes[problem->writes[w]]);
  return bytes;
}

/* Returns the fastest device without a limit that can run the node, or CLV__NONE. */
static uint32_t unlimited_device(const clv__problem *problem, uint32_t node) {
  uint32_t best = CLV__NONE;
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    if (problem->limits[d].memory_bytes > 0 || (clv__node_devices(problem, node) >> d & 1u) == 0) continue;
    if (best == CLV__NONE || clv__node_ns(problem, node, d) < clv__node_ns(problem, node, best)) best = d;
  }
  return best;
}

/* Moves the node that takes the most bytes from its device to one without a limit. Returns false if no node can move. */
static bool shed(const clv__problem *problem, uint32_t *devices) {
  uint32_t largest = CLV__NONE;
  uint64_t most = 0;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    if (problem->limits[devices[n]].memory_bytes == 0 || unlimited_device(problem, n) == CLV__NONE) continue;
    uint64_t bytes = bytes_of(problem, n);
    if (largest == CLV__NONE || bytes > most) largest = n, most = bytes;
  }
  if (largest != CLV__NONE) devices[largest] = unlimited_device(problem, largest);
  return largest != CLV__NONE;
}

/* Fits the placement in o->scratch. While it does not fit, moves the node that takes the most bytes to a device without a
 * limit, and tries again. */
static clv_status try_from(clv__optimal *o, clv__fitted *best) {
  uint32_t most = clv__optimal_times(o, FITTED_EFFORT, 24, MOST_SHED);
  for (uint32_t moves = 0;; ++moves) {
    clv__fitted fresh;
    CLV__TRY(clv__optimal_stream(o, o->scratch, &o->arena, &fresh.placing, &fresh.score));
    if (clv__score_less(&fresh.score, &best->score)) {
      fresh.devices = clv__arena_copy(&o->arena, o->scratch, o->problem->node_count * sizeof *o->scratch);
      if (fresh.devices == NULL) return clv__error_memory(o->error, o->problem->node_count * sizeof *o->scratch);
      *best = fresh;
    }
    if (fresh.score.excess_bytes == 0 || moves == most || !shed(o->problem, o->scratch)) return CLV_OK;
  }
}

clv_status clv__optimal_fitted(clv__optimal *o, clv__fitted *best) {
  *best = (clv__fitted){.score = CLV__SCORE_WORST};
  if (!o->evaluator.has_exceeded || o->problem->device_count == 1) return CLV_OK; /* plan/memory.c fits one device as well */
  uint32_t singles = o->problem->device_count, times = 1 + clv__optimal_times(o, FITTED_EFFORT, 24, UINT16_MAX);
  for (uint32_t i = 0; i < 1 + singles + o->pool.count; ++i) {
    bool fits = best->score.excess_bytes == 0 || (o->pool.count > 0 && o->pool.solutions[0].score.excess_bytes == 0);
    if (i >= times && fits) break; /* the effort is spent: the larger the problem, the fewer tries it pays for */
    const uint32_t *from = i > singles ? o->pool.solutions[i - 1 - singles].devices : o->reference;
    if (i > 0 && i <= singles)
      clv__optimal_prefer(o->problem, i - 1, o->scratch);
    else
      memcpy(o->scratch, from, o->problem->node_count * sizeof *from);
    CLV__TRY(try_from(o, best));
  }
  if (best->devices == NULL || o->problem->node_count > CLV__DEEP_NODES) return CLV_OK;
  return clv__optimal_refine(o, best);
}
