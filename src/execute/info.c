/* Lets programs read a session: see cleave/session_info.h. */
#include "cleave/session_info.h"

#include "base/options.h"
#include "base/trim.h"
#include "execute/capture/capture.h"
#include "execute/session_own.h"

_Static_assert((int)CLV_EXECUTABLE_FROM_MEMORY == (int)CLV__SOURCE_MEMORY &&
                   (int)CLV_EXECUTABLE_FROM_FOLDER == (int)CLV__SOURCE_FOLDER &&
                   (int)CLV_EXECUTABLE_FROM_DISK == (int)CLV__SOURCE_DISK &&
                   (int)CLV_EXECUTABLE_COMPILED == (int)CLV__SOURCE_COMPILED &&
                   (int)CLV_EXECUTABLE_NOT_KEPT == (int)CLV__SOURCE_NOT_KEPT &&
                   (int)CLV_EXECUTABLE_HOSTED == (int)CLV__SOURCE_HOSTED,
               "sources of executables must be numbered as inside the library");
_Static_assert((int)CLV_LAUNCH_UNKNOWN == (int)CLV__ISSUE_NONE && (int)CLV_LAUNCH_EAGER == (int)CLV__ISSUE_EAGER &&
                   (int)CLV_LAUNCH_CAPTURED == (int)CLV__ISSUE_CAPTURED && (int)CLV_LAUNCH_REPLAYED == (int)CLV__ISSUE_REPLAYED,
               "states of launches must be numbered as inside the library");

const clv_plan *clv_session_current_plan(clv_session *session) {
  return clv__session_plan(session);
}

bool clv_session_fallback(clv_session *session, uint32_t index, clv_fallback_info *info) {
  clv_fallback_info filled = {0};
  clv__incident incident;
  const bool exists = clv__session_incident(session, index, &incident);
  if (exists) {
    filled = (clv_fallback_info){.device = incident.device,
                                 .status = incident.status,
                                 .reason = session->incidents[index].text, /* does not change any more */
                                 .partition_count = incident.partition_count,
                                 .onto = incident.onto,
                                 .cost_ms = incident.cost_ms};
  }
  clv__info_fill(info, &filled, sizeof filled);
  return exists;
}

bool clv_session_executable(clv_session *session, uint32_t partition, clv_executable_origin *origin) {
  clv_executable_origin filled = {0};
  const bool exists = partition < clv__session_plan(session)->partition_count;
  if (exists) {
    const clv__origin *found = clv__session_origin(session, partition);
    filled = (clv_executable_origin){.source = (clv_executable_source)found->source,
                                     .is_missed = found->is_missed,
                                     .reason = found->reason,
                                     .time_ms = found->ms};
  }
  clv__info_fill(origin, &filled, sizeof filled);
  return exists;
}

bool clv_session_launch(clv_session *session, uint32_t partition, clv_launch_info *info) {
  clv_launch_info filled = {0};
  const bool exists = partition < clv__session_plan(session)->partition_count;
  if (exists) {
    clv__issue_info issue;
    clv__session_issue(session, partition, &issue);
    filled.state = (clv_launch_state)issue.issue;
    filled.reason = issue.issue == CLV__ISSUE_EAGER ? issue.why : NULL;
  }
  clv__info_fill(info, &filled, sizeof filled);
  return exists;
}

bool clv_session_captures(const clv_session *session, uint32_t device, clv_capture_info *info) {
  clv_capture_info filled = {0};
  clv__capture_counters c;
  const bool exists = device < session->devices->count && clv__session_captures(session, device, &c);
  if (exists) {
    filled = (clv_capture_info){.hits = c.hits,
                                .misses = c.misses,
                                .captures = c.captures,
                                .failures = c.failures,
                                .evictions = c.evictions,
                                .entries = c.entries,
                                .size_bytes = c.bytes,
                                .patches = c.patches,
                                .recaptures = c.recaptures,
                                .saved_ns = c.saved_ns,
                                .knows_saved = !session->devices->items[device].info.is_synchronous};
  }
  clv__info_fill(info, &filled, sizeof filled);
  return exists;
}

void clv_session_get_stats(clv_session *session, clv_session_stats *stats) {
  clv__session_stats s;
  clv__session_stats_get(session, &s);
  const clv_session_stats filled = {.space_count = s.space_count,
                                    .compile_ms = s.compile_ms,
                                    .executables_ms = s.executables.executables_ms,
                                    .weights_ms = s.executables.weights_ms,
                                    .weight_bytes = s.weight_bytes,
                                    .shared_bytes = s.executables.shared_bytes,
                                    .resident_bytes = s.resident_bytes,
                                    .from_memory = s.executables.from_memory,
                                    .from_folder = s.executables.from_folder,
                                    .from_disk = s.executables.from_disk,
                                    .compiled = s.executables.compiled,
                                    .not_kept = s.executables.not_kept};
  clv__info_fill(stats, &filled, sizeof filled);
}

bool clv_session_space(clv_session *session, uint32_t index, clv_space_info *info) {
  clv_space_info filled = {0};
  clv__session_stats s;
  clv__session_stats_get(session, &s);
  const bool exists = index < s.space_count;
  if (exists) {
    const clv__space_stats *of = &s.spaces[index];
    filled = (clv_space_info){.name = of->name,
                              .planned_bytes = of->planned_bytes,
                              .bound_bytes = of->bound_bytes,
                              .scratch_bytes = of->scratch_bytes,
                              .peak_bytes = of->peak_bytes,
                              .need_bytes = of->limit_bytes == 0 ? 0 : of->need_bytes,
                              .limit_bytes = of->limit_bytes};
  }
  clv__info_fill(info, &filled, sizeof filled);
  return exists;
}

size_t clv_memory_trim(void) {
  return clv__memory_trim();
}
