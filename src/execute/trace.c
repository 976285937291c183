/* The trace of a session: see session.h. Events are added to the session under its lock: steps at the end of each run, with the
 * times in their marks; all others as they happen. */
#include <string.h>

#include "execute/session_own.h"

void clv__session_trace(clv_session *session, bool on) {
  session->is_traced = on;
}

void clv__session_trace_discard(clv_session *session) {
  pthread_mutex_lock(&session->lock);
  session->trace_count = 0;
  pthread_mutex_unlock(&session->lock);
}

const clv__trace_event *clv__session_trace_events(const clv_session *session, size_t *count) {
  *count = session->trace_count;
  return session->trace;
}

/* Drops events if out of memory: a trace must not make a run fail. */
void clv__trace_add(clv__request *request, clv__trace_event event) {
  clv_session *session = request->session;
  if (!session->is_traced) return;
  event.request = request->index;
  pthread_mutex_lock(&session->lock);
  bool is_current = request->engine == session->engine; /* do not mix in steps of a replaced plan */
  if (is_current && clv__array_reserve(session->allocator, (void **)&session->trace, &session->trace_capacity,
                                       session->trace_count + 1, sizeof *session->trace, session->trace_count)) {
    session->trace[session->trace_count++] = event;
  }
  pthread_mutex_unlock(&session->lock);
}

/* Returns the earliest time at which a step can have begun on its device: the latest of its issue, the end of the step before it
 * in its lane, and the ends of its predecessors. (The device's own clock is not available.) */
static uint64_t begin_of(const clv__request *request, uint32_t step) {
  const clv__schedule *schedule = &request->prepared->schedule;
  const clv__track *track = &schedule->tracks[step];
  uint64_t begin_ns = request->marks[step].issued_ns;
  if (track->position > 0) {
    uint64_t before_ns = request->marks[schedule->lane_steps[track->lane][track->position - 1]].over_ns;
    if (before_ns > begin_ns) begin_ns = before_ns;
  }
  for (uint32_t i = 0; i < track->wait_count; ++i) {
    uint64_t over_ns = request->marks[track->waits[i]].over_ns;
    if (over_ns > begin_ns) begin_ns = over_ns;
  }
  return begin_ns;
}

static bool is_replayed(const clv__request *request, uint32_t step) {
  const clv__step *s = &clv__request_plan(request)->steps[step];
  return !s->is_transfer && request->prepared->partitions[s->index].issue == CLV__ISSUE_REPLAYED;
}

void clv__trace_steps(clv__request *request) {
  if (!request->session->is_traced) return;
  const clv__schedule *schedule = &request->prepared->schedule;
  for (uint32_t s = 0; s < schedule->step_count; ++s) {
    const clv__mark *mark = &request->marks[s];
    if (mark->over_ns == 0) continue; /* part of a capture, but not its last step: the last step has the time of all */
    uint64_t begin_ns = begin_of(request, s);
    if (mark->over_ns < begin_ns) begin_ns = mark->over_ns; /* its completion was reported before its issue time was taken */
    clv__trace_add(request, (clv__trace_event){.kind = CLV__TRACE_STEP,
                                               .lane = schedule->tracks[s].lane,
                                               .step = s,
                                               .begin_ns = begin_ns,
                                               .end_ns = mark->over_ns,
                                               .is_replay = is_replayed(request, s)});
  }
}
