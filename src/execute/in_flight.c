/* Computes the share of the devices' memory that each request in flight gets. Weights and executables are shared; each request
 * has its own values between partitions and its own scratch. */
#include <inttypes.h>

#include "execute/session_own.h"

static uint64_t limit_of(const clv_plan *plan, uint32_t space) {
  for (uint32_t d = 0; d < plan->devices->count && space != CLV__SPACE_HOST; ++d) {
    if (plan->devices->items[d].space == space && plan->devices->items[d].info.memory_limit_bytes > 0)
      return plan->devices->items[d].info.memory_limit_bytes;
  }
  return 0;
}

/* Returns how many bytes, according to the plan, weights and executables take in the space. */
static uint64_t shared_bytes(const clv_plan *plan, uint32_t space) {
  uint64_t total = 0;
  for (uint32_t d = 0; d < plan->devices->count; ++d) {
    if (plan->devices->items[d].space == space) total += plan->needs[d].weight_bytes + plan->needs[d].held_bytes;
  }
  return total;
}

/* The scratch of one request. Instances of a device share one block, whose size is the largest need among them. */
static uint64_t scratch_bytes(const clv__request *request, uint32_t space) {
  const clv_plan *plan = clv__request_plan(request);
  uint64_t most[CLV__MAX_DEVICES] = {0}, total = 0;
  for (uint32_t p = 0; p < plan->partition_count; ++p) {
    const uint32_t d = plan->partitions[p].device;
    const uint64_t bytes = request->engine->executables.partitions[p].info.scratch_bytes;
    if (plan->devices->items[d].space == space && bytes > most[d]) most[d] = bytes;
  }
  for (uint32_t d = 0; d < plan->devices->count; ++d) total += most[d];
  return total;
}

uint64_t clv__request_value_room(const clv__request *request, uint32_t space) {
  const clv_plan *plan = clv__request_plan(request);
  const uint64_t limit = limit_of(plan, space), shared = shared_bytes(plan, space), scratch = scratch_bytes(request, space);
  if (limit == 0) return UINT64_MAX;
  const uint64_t share = limit > shared ? (limit - shared) / request->session->options.in_flight : 0;
  return share > scratch ? share - scratch : 0;
}

clv_status clv__request_check_share(const clv__request *request, clv_error *error) {
  const clv_plan *plan = clv__request_plan(request);
  const uint32_t in_flight = request->session->options.in_flight;
  for (uint32_t space = 0; in_flight > 1 && space < plan->devices->space_count; ++space) {
    const uint64_t limit = limit_of(plan, space), shared = shared_bytes(plan, space);
    const uint64_t own = request->arenas[space].size_bytes + scratch_bytes(request, space);
    if (limit == 0 || own == 0 || (shared <= limit && own <= (limit - shared) / in_flight)) continue;
    return clv__error_set(error, CLV_TOO_LARGE,
                          "%s: %u requests in flight need %" PRIu64 " bytes of memory, but it has %" PRIu64 "; at most %" PRIu64
                          " fit",
                          plan->devices->spaces[space], in_flight, shared + own * in_flight, limit,
                          shared + own <= limit ? (limit - shared) / own : 1);
  }
  return CLV_OK;
}
