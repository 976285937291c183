/* Computes a compiled block's memory on its device, and whether it was compiled. These functions have a file of their own
 * because the headers of sessions and those of prices each define a type clv__share. */
#include <string.h>

#include "execute/session.h"
#include "gnn/model/block_memory.h"
#include "plan/plan.h"

uint64_t clv__block_peak_bytes(const clv__block_run *run, uint32_t space, clv_devices *devices) {
  clv__session_stats stats;
  clv__session_stats_get(run->session, &stats);
  uint64_t peak_bytes = stats.weight_bytes + stats.resident_bytes;
  for (uint32_t s = 0; s < stats.space_count; ++s) {
    if (strcmp(stats.spaces[s].name, devices->spaces[space]) == 0)
      peak_bytes += stats.spaces[s].planned_bytes + stats.spaces[s].scratch_bytes;
  }
  return peak_bytes;
}

void clv__block_forget(clv__block_run *run) {
  if (run->session != NULL) clv__session_forget(run->session);
}

bool clv__block_was_compiled(const clv__block_run *run) {
  for (uint32_t p = 0; p < run->plan->partition_count; ++p) {
    clv__source source = clv__session_origin(run->session, p)->source;
    if (source != CLV__SOURCE_COMPILED && source != CLV__SOURCE_NOT_KEPT) return false;
  }
  return true;
}
