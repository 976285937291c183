/* Statistics of a session. */
#include "execute/session_own.h"

static void add_request(const clv__request *request, clv__session_stats *stats) {
  const clv_devices *devices = request->session->devices;
  for (uint32_t s = 0; s < devices->space_count; ++s) {
    stats->spaces[s].planned_bytes += request->arenas[s].size_bytes;
    if (request->prepared != NULL) stats->spaces[s].bound_bytes += request->prepared->space_bound_bytes[s];
  }
  for (uint32_t d = 0; d < devices->count; ++d) {
    stats->spaces[devices->items[d].space].scratch_bytes += request->scratch[d].size_bytes;
  }
  for (uint32_t i = 0; i < CLV__HELD_SCRATCH; ++i) {
    const clv__memory_block *block = &request->held_scratch[i];
    if (block->generation != 0) stats->spaces[block->space].scratch_bytes += block->size_bytes;
  }
}

const clv__origin *clv__session_origin(const clv_session *session, uint32_t index) {
  return &session->engine->executables.partitions[index].origin;
}

void clv__session_forget(clv_session *session) {
  pthread_mutex_lock(&session->lock);
  const clv__engine *engine = session->engine;
  for (uint32_t p = 0; p < engine->plan->partition_count; ++p) {
    const clv__compiled *compiled = &engine->executables.partitions[p];
    if (compiled->origin.source == CLV__SOURCE_COMPILED && compiled->use != NULL)
      clv__executable_forget(session->devices, compiled->use->of);
  }
  pthread_mutex_unlock(&session->lock);
}

void clv__session_stats_get(clv_session *session, clv__session_stats *stats) {
  clv_devices *devices = session->devices;
  pthread_mutex_lock(&session->lock);
  const clv__engine *engine = session->engine;
  *stats = (clv__session_stats){.compile_ms = session->compile_ms,
                                .weight_bytes = engine->executables.counters.uploaded_bytes,
                                .executables = engine->executables.counters,
                                .space_count = devices->space_count};
  for (uint32_t p = 0; p < engine->plan->partition_count; ++p) {
    stats->resident_bytes += engine->executables.partitions[p].info.resident_bytes;
  }
  for (uint32_t d = 0; d < devices->count; ++d)
    stats->spaces[devices->items[d].space].need_bytes = engine->plan->needs[d].total_bytes;
  for (uint32_t i = 0; i < CLV_MAX_IN_FLIGHT; ++i) {
    if (session->requests[i] != NULL) add_request(session->requests[i], stats);
  }
  pthread_mutex_unlock(&session->lock);
  for (uint32_t s = 0; s < devices->space_count; ++s) {
    clv__memory_pool_counters counters;
    clv__memory_pool_counters_get(devices, s, &counters);
    stats->spaces[s].name = devices->spaces[s];
    stats->spaces[s].peak_bytes = counters.peak_bytes;
    stats->spaces[s].limit_bytes = counters.limit_bytes;
  }
}
