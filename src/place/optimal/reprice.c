/* The same problem at other prices. The prices represent costs that the minimum cut does not model: launches per partition (as a
 * price of every boundary), loads to balance, memory to save. */
#include <string.h>

#include "place/optimal/optimal.h"

static uint64_t scale(uint64_t time_ns, uint32_t share) {
  if (time_ns == CLV__NO_TIME || share == 1024) return time_ns;
  unsigned __int128 scaled = (unsigned __int128)time_ns * share / 1024;
  return scaled > CLV__MAX_TIME_NS ? CLV__MAX_TIME_NS : (uint64_t)scaled;
}

static uint64_t scale_byte(uint64_t bytes, uint64_t price) {
  unsigned __int128 scaled = (unsigned __int128)bytes * price / 1024;
  return scaled > CLV__MAX_TIME_NS ? CLV__MAX_TIME_NS : (uint64_t)scaled;
}

/* Returns the price of the memory for the node's weights. The readers of a weight share its price. */
static uint64_t memory_ns(const clv__problem *problem, uint32_t node, uint64_t price, const uint32_t *weight_readers) {
  uint64_t time = 0;
  if (price == 0) return 0;
  for (uint32_t k = problem->weight_offsets[node]; k < problem->weight_offsets[node + 1]; ++k) {
    uint32_t weight = problem->weights[k];
    time += scale_byte(problem->weight_bytes[weight] / weight_readers[weight] + 1, price);
  }
  return time > CLV__MAX_TIME_NS ? CLV__MAX_TIME_NS : time;
}

static clv_status reprice_nodes(const clv__problem *problem, const clv__reprice *prices, clv__arena *arena, uint64_t *node_ns,
                                clv_error *error) {
  uint32_t devices = problem->device_count;
  uint32_t *weight_readers = clv__arena_allocate_zero(arena, problem->weight_count, sizeof *weight_readers);
  if (weight_readers == NULL) return clv__error_memory(error, problem->weight_count * sizeof *weight_readers);
  for (uint32_t k = 0; k < problem->weight_offsets[problem->node_count]; ++k) ++weight_readers[problem->weights[k]];
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    for (uint32_t d = 0; d < devices; ++d) {
      uint64_t time = clv__node_ns(problem, n, d);
      if (time != CLV__NO_TIME) time = scale(time, prices->load[d]) + memory_ns(problem, n, prices->byte[d], weight_readers);
      node_ns[(size_t)n * devices + d] = time;
    }
  }
  return CLV_OK;
}

/* Sets the savings, and a price `parting_ns` for every read whose two nodes are on different devices of one memory space,
 * because there is no transfer to which it could be added. Adding `parting_ns` to the times of both nodes on all devices, and
 * twice that to their saving on all devices, adds 2 * `parting_ns` to the cost of a placement that separates the two, and
 * nothing to that of others. */
static void reprice_reads(const clv__problem *problem, const clv__reprice *prices, uint64_t parting_ns, uint64_t *node_ns,
                          uint64_t *saving_ns) {
  uint32_t devices = problem->device_count;
  for (uint32_t n = 0; n < problem->node_count; ++n) {
    for (uint32_t r = problem->read_offsets[n]; r < problem->read_offsets[n + 1]; ++r) {
      uint32_t producer = problem->producers[problem->reads[r]];
      for (uint32_t d = 0; d < devices; ++d) {
        uint64_t *saving = &saving_ns[(size_t)r * devices + d];
        *saving = scale(clv__saving_ns(problem, r, d), prices->load[d]);
        if (producer == CLV__NONE || parting_ns == 0) continue;
        *saving += 2 * parting_ns;
        if (clv__can_run(problem, n, d)) node_ns[(size_t)n * devices + d] += parting_ns;
        if (clv__can_run(problem, producer, d)) node_ns[(size_t)producer * devices + d] += parting_ns;
      }
    }
  }
}

static void reprice_values(const clv__problem *problem, const clv__reprice *prices, const uint64_t *space_launch, uint64_t *in_ns,
                           uint64_t *out_ns) {
  uint32_t spaces = problem->space_count;
  for (size_t i = 0; i < (size_t)problem->value_count * spaces; ++i) {
    uint32_t s = (uint32_t)(i % spaces);
    in_ns[i] = scale(problem->in_ns[i], prices->copies);
    out_ns[i] = scale(problem->out_ns[i], prices->copies);
    if (s == 0) continue;
    in_ns[i] += scale(space_launch[s], prices->boundary);
    out_ns[i] += scale(space_launch[0], prices->boundary);
  }
}

clv_status clv__reprice_make(const clv__problem *problem, const clv__reprice *prices, clv__arena *arena, clv__problem *repriced,
                             clv_error *error) {
  size_t values = (size_t)problem->value_count * problem->space_count, reads = problem->read_offsets[problem->node_count];
  uint32_t devices = problem->device_count;
  uint64_t *node_ns = clv__arena_allocate(arena, (size_t)problem->node_count * devices * sizeof *node_ns);
  uint64_t *in_ns = clv__arena_allocate(arena, values * sizeof *in_ns);
  uint64_t *out_ns = clv__arena_allocate(arena, values * sizeof *out_ns);
  uint64_t *launch_ns = clv__arena_allocate(arena, devices * sizeof *launch_ns);
  uint64_t *saving_ns = NULL, space_launch[32] = {0}, parting_ns = 0;
  if (node_ns == NULL || in_ns == NULL || out_ns == NULL || launch_ns == NULL) {
    return clv__error_memory(error, values * sizeof *in_ns);
  }
  bool shared = false;
  for (uint32_t d = 0; d < devices; ++d) {
    uint32_t s = problem->spaces[d];
    launch_ns[d] = scale(problem->launch_ns[d], prices->load[d]);
    for (uint32_t e = 0; e < d; ++e) shared |= problem->spaces[e] == s;
    if (space_launch[s] == 0 || launch_ns[d] < space_launch[s]) space_launch[s] = launch_ns[d];
    if (parting_ns == 0 || launch_ns[d] < parting_ns) parting_ns = launch_ns[d];
  }
  parting_ns = shared ? scale(parting_ns, prices->boundary) / 2 : 0;
  CLV__TRY(reprice_nodes(problem, prices, arena, node_ns, error));
  if (problem->saving_ns != NULL || parting_ns > 0) {
    saving_ns = clv__arena_allocate(arena, reads * devices * sizeof *saving_ns);
    if (saving_ns == NULL) return clv__error_memory(error, reads * devices * sizeof *saving_ns);
    reprice_reads(problem, prices, parting_ns, node_ns, saving_ns);
  }
  reprice_values(problem, prices, space_launch, in_ns, out_ns);
  *repriced = *problem;
  repriced->node_ns = node_ns;
  repriced->saving_ns = saving_ns;
  repriced->in_ns = in_ns;
  repriced->out_ns = out_ns;
  repriced->launch_ns = launch_ns;
  return CLV_OK;
}
