/* The driver: one thread walks all lanes of a request. It enqueues a step of an asynchronous device as soon as the steps that the
 * host must wait for are complete. When nothing can be enqueued, it runs a step of a device that works in the caller's thread. */
#include <string.h>

#include "base/clock.h"
#include "execute/session_own.h"

typedef struct drive {
  clv__request *request;
  const clv__order *order;
  const clv__schedule *schedule;
  uint64_t news;                      /* the board's `news` when look() last read the board */
  uint32_t completed[CLV__MAX_LANES]; /* indexed by lane: steps known to be complete */
  uint32_t steps_told;                /* steps reported to the progress callback */
  uint32_t here;                      /* the step that was stopped because its device exceeded its time limit */
} drive;

static bool is_synchronous(const clv__request *request, uint32_t lane) {
  return clv__request_device(request, clv__lane_device(lane))->info.is_synchronous;
}

/* A completed step implies that all its predecessors completed. */
static void imply(drive *d) {
  const clv__schedule *s = d->schedule;
  for (uint32_t i = 0; i < s->lane_count; ++i) {
    uint32_t lane = s->lanes[i], over = d->completed[lane];
    if (over == 0) continue;
    const uint32_t *clock = &s->clocks[(size_t)s->lane_steps[lane][over - 1] * s->lane_count];
    for (uint32_t k = 0; k < s->lane_count; ++k) {
      if (clock[k] > d->completed[s->lanes[k]]) d->completed[s->lanes[k]] = clock[k];
    }
  }
}

static void look(drive *d) {
  clv__board *board = &d->request->board;
  pthread_mutex_lock(&board->lock);
  d->news = board->news;
  memcpy(d->completed, board->completed, sizeof d->completed);
  pthread_mutex_unlock(&board->lock);
  imply(d);
}

static bool can_issue(const drive *d, const clv__track *track) {
  for (uint32_t i = 0; i < track->wait_count; ++i) {
    const clv__track *other = &d->schedule->tracks[track->waits[i]];
    uint32_t reached = i < track->device_waits ? d->request->issued[other->lane] : d->completed[other->lane];
    if (reached <= other->position) return false;
  }
  return true;
}

/* ---- Issuing ---- */

/* If a backend call for the step's events failed: records the device as failed, and prefixes the error with the step. */
static clv_status event_status(const drive *d, uint32_t step, clv_status status, clv_error *error) {
  if (status == CLV_OK) return status;
  clv__request_blame(d->request, clv__lane_device(d->schedule->tracks[step].lane), status);
  return clv__request_step_failed(d->request, step, status, error);
}

static clv_status wait_on_device(drive *d, const clv__track *track, clv_error *error) {
  clv__request *request = d->request;
  const clv__device *device = clv__request_device(request, clv__lane_device(track->lane));
  for (uint32_t i = 0; i < track->device_waits; ++i) {
    clv_stream *stream;
    CLV__TRY(clv__request_stream(request, track->lane, &stream, error));
    CLV__TRY(CLV__CALL(device, error, event_wait, stream, request->marks[track->waits[i]].event));
  }
  return CLV_OK;
}

static bool is_watched(const drive *d, const clv__track *track) {
  return track->is_watched || d->request->session->is_traced;
}

/* Records the step's event. If the host must see the step's completion, also requests a notification. */
static clv_status record(drive *d, uint32_t step, const clv__track *track, clv_error *error) {
  clv__request *request = d->request;
  uint32_t index = clv__lane_device(track->lane);
  const clv__device *device = clv__request_device(request, index);
  clv__mark *mark = &request->marks[step];
  clv_stream *stream;
  CLV__TRY(clv__request_stream(request, track->lane, &stream, error));
  mark->request = request;
  mark->lane = track->lane;
  mark->position = track->position;
  mark->device = index;
  if (mark->event == NULL) CLV__TRY(CLV__CALL(device, error, event_create, &mark->event));
  CLV__TRY(CLV__CALL(device, error, event_record, mark->event, stream));
  return is_watched(d, track) ? clv__request_watch(request, mark, error) : CLV_OK;
}

static clv_status ask_event(const clv__request *request, uint32_t step, clv_error *error) {
  const clv__mark *mark = &request->marks[step];
  const clv__device *device = clv__request_device(request, mark->device);
  return CLV__CALL(device, error, event_synchronize, mark->event);
}

/* Names the step that failed if the event of `step` reports a failure. Events and streams pass failures on, so the failed step
 * is the first one whose event reports a failure, or one of the steps without an event before it in its lane. */
static clv_status name_failure(const drive *d, uint32_t step, clv_status status, clv_error *error) {
  const clv__track *tracks = d->schedule->tracks;
  uint32_t first = 0;
  clv_error its;
  for (uint32_t device = clv__lane_device(tracks[step].lane); first < step; ++first) {
    const clv__track *track = &tracks[first];
    if (!track->is_recorded || clv__lane_device(track->lane) != device) continue;
    if (!clv__schedule_is_before(d->schedule, first, step) || ask_event(d->request, first, &its) == CLV_OK) continue;
    if (error != NULL) *error = its;
    break;
  }
  const uint32_t *steps = d->schedule->lane_steps[tracks[first].lane];
  uint32_t end = tracks[first].position + 1, begin = end - 1;
  while (begin > 0 && !tracks[steps[begin - 1]].is_recorded) --begin;
  return clv__request_steps_failed_later(d->request, &steps[begin], end - begin, status, error);
}

/* Checks whether a completed step failed. */
static clv_status check_step(const drive *d, uint32_t step, clv_error *error) {
  clv__request *request = d->request;
  const clv__track *track = &d->schedule->tracks[step];
  if (is_synchronous(request, track->lane)) return CLV_OK;
  clv_status status = ask_event(request, step, error);
  if (status == CLV_OK) return status;
  uint32_t device = clv__lane_device(track->lane);
  clv__request_blame(request, device, status);
  if (clv__device_is_lost(clv__request_device(request, device))) /* all of its events fail */
    return clv__request_steps_failed_later(request, &step, 1, status, error);
  return name_failure(d, step, status, error);
}

static clv_status check_waits(const drive *d, const clv__track *track, clv_error *error) {
  for (uint32_t i = track->device_waits; i < track->wait_count; ++i) CLV__TRY(check_step(d, track->waits[i], error));
  return CLV_OK;
}

/* Traces the time of this thread from `begin_ns` until now. */
static void trace_span(clv__request *request, clv__trace_kind kind, uint32_t step, uint64_t begin_ns) {
  clv__trace_add(request, (clv__trace_event){.kind = kind, .step = step, .begin_ns = begin_ns, .end_ns = clv__clock_ns()});
}

/* Issues a step, and with it the steps captured in the same capture. */
static clv_status issue(drive *d, uint32_t step, clv_error *error) {
  clv__request *request = d->request;
  const clv__track *track = &d->schedule->tracks[step];
  bool is_now = is_synchronous(request, track->lane);
  bool is_traced = request->session->is_traced;
  CLV__TRY(check_waits(d, track, error));
  uint64_t begin_ns = is_traced ? clv__clock_ns() : 0;
  request->marks[step].issued_ns = begin_ns;
  if (!is_now) CLV__TRY(event_status(d, step, wait_on_device(d, track, error), error));
  request->leap = 0;
  CLV__TRY(clv__request_step(request, step, track->lane, &request->marks[step].is_uncut, error));
  step = d->schedule->lane_steps[track->lane][track->position + request->leap];
  track = &d->schedule->tracks[step];
  request->marks[step].issued_ns = begin_ns;
  request->issued[track->lane] = track->position + 1;
  if (!is_now) {
    if (track->is_recorded || is_traced) CLV__TRY(event_status(d, step, record(d, step, track, error), error));
    if (is_traced) trace_span(request, CLV__TRACE_ISSUE, step, begin_ns);
    return CLV_OK;
  }
  if (is_traced) request->marks[step].over_ns = clv__clock_ns();
  pthread_mutex_lock(&request->board.lock);
  request->board.completed[track->lane] = track->position + 1;
  pthread_mutex_unlock(&request->board.lock);
  return CLV_OK;
}

/* Issues a step. The alarm watches the call: it stops a device that works in this thread at the time limits, and tells the
 * program if any device does not return. */
static clv_status issue_in_time(drive *d, uint32_t step, clv_error *error) {
  clv__request *request = d->request;
  const bool is_now = is_synchronous(request, d->schedule->tracks[step].lane);
  uint64_t device_ns = clv__request_device_deadline_ns(request), order_ns = is_now ? d->order->deadline_ns : UINT64_MAX;
  if (device_ns == UINT64_MAX && order_ns == UINT64_MAX) return issue(d, step, error);
  clv__alarm_set(request, step, device_ns < order_ns ? device_ns : order_ns, device_ns < order_ns, is_now);
  clv_status status = issue(d, step, error);
  clv__alarm_clear(request);
  if (!request->stopping.is_late) return status;
  request->failed_device = clv__lane_device(d->schedule->tracks[step].lane); /* not a device that was stopped with it */
  d->here = step;
  return CLV_CANCELLED;
}

/* Issues a step on a device that works in this thread. Such a device serves one request of the session at a time. */
static clv_status issue_here(drive *d, uint32_t step, clv_error *error) {
  uint32_t device = clv__lane_device(d->schedule->tracks[step].lane);
  bool in_turn = d->request->session->options.in_flight > 1;
  if (in_turn) CLV__TRY(clv__turn_begin(d->request, device, d->order, error));
  clv_status status = issue_in_time(d, step, error);
  if (in_turn) clv__turn_end(d->request, device);
  return status;
}

/* Issues all steps that can begin now. Sets *any if there was at least one. */
static clv_status issue_ready(drive *d, bool *any, clv_error *error) {
  const clv__schedule *schedule = d->schedule;
  *any = false;
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < schedule->lane_count; ++i) {
      uint32_t lane = schedule->lanes[i], *issued = &d->request->issued[lane];
      if (is_synchronous(d->request, lane)) continue;
      while (*issued < schedule->lane_ends[lane]) {
        uint32_t step = schedule->lane_steps[lane][*issued];
        if (!can_issue(d, &schedule->tracks[step])) break;
        CLV__TRY(issue_in_time(d, step, error));
        more = *any = true;
      }
    }
  }
  for (uint32_t i = 0; i < schedule->lane_count; ++i) {
    uint32_t lane = schedule->lanes[i], issued = d->request->issued[lane];
    if (!is_synchronous(d->request, lane) || issued == schedule->lane_ends[lane]) continue;
    uint32_t step = schedule->lane_steps[lane][issued];
    if (!can_issue(d, &schedule->tracks[step])) continue;
    *any = true;
    return issue_here(d, step, error); /* issue only one step: while it ran, asynchronous steps may have become ready */
  }
  return CLV_OK;
}

/* ---- Waiting ---- */

/* Returns the oldest watched step that has not completed; CLV__NO_ID if there is none. Its device is blamed if no notification
 * arrives in time. (Unwatched steps send no notification.) */
static uint32_t oldest_step(const drive *d) {
  uint32_t oldest = CLV__NO_ID;
  for (uint32_t i = 0; i < d->schedule->lane_count; ++i) {
    uint32_t lane = d->schedule->lanes[i];
    if (is_synchronous(d->request, lane)) continue;
    if (clv__device_is_lost(clv__request_device(d->request, clv__lane_device(lane)))) continue;
    for (uint32_t k = d->completed[lane]; k < d->request->issued[lane]; ++k) {
      uint32_t step = d->schedule->lane_steps[lane][k];
      if (!is_watched(d, &d->schedule->tracks[step])) continue;
      if (step < oldest) oldest = step;
      break;
    }
  }
  return oldest;
}

/* The notification of `step` did not arrive. Adds to the error the device's partitions up to `step` that are not known to be
 * complete, because one of them may hang. If there are none, names `step`. */
static clv_status name_late(const drive *d, uint32_t step, clv_status status, clv_error *error) {
  const clv_plan *plan = clv__request_plan(d->request);
  uint32_t device = clv__lane_device(d->schedule->tracks[step].lane), ends[2] = {CLV__NO_ID, CLV__NO_ID};
  for (uint32_t s = 0; s <= step; ++s) {
    const clv__track *track = &d->schedule->tracks[s];
    if (plan->steps[s].is_transfer || clv__lane_device(track->lane) != device) continue;
    if (track->position < d->completed[track->lane] || track->position >= d->request->issued[track->lane]) continue;
    if (ends[0] == CLV__NO_ID) ends[0] = s;
    ends[1] = s;
  }
  if (ends[0] == CLV__NO_ID) return clv__request_steps_failed_later(d->request, &step, 1, status, error);
  return clv__request_steps_failed_later(d->request, ends, 2, status, error);
}

/* Fails if the run waits for a device that another run has marked as lost. */
static clv_status check_lost(drive *d, clv_error *error) {
  for (uint32_t i = 0; i < d->schedule->lane_count; ++i) {
    uint32_t lane = d->schedule->lanes[i], index = clv__lane_device(lane);
    if (d->completed[lane] >= d->request->issued[lane]) continue;
    clv_status status = clv__device_check(clv__request_device(d->request, index), error);
    if (status == CLV_OK) continue;
    clv__request_blame(d->request, index, status);
    return name_late(d, d->schedule->lane_steps[lane][d->completed[lane]], status, error);
  }
  return CLV_OK;
}

static clv_status give_up(drive *d, clv_error *error) {
  uint32_t step = oldest_step(d);
  if (step != CLV__NO_ID) {
    clv_status status = clv__request_lose(d->request, clv__lane_device(d->schedule->tracks[step].lane), error);
    return name_late(d, step, status, error);
  }
  CLV__TRY(check_lost(d, error)); /* another run may have marked the device as lost just now */
  return clv__error_set(error, CLV_INTERNAL_ERROR, "the run cannot continue, although no device has unfinished steps");
}

static clv_status wait(drive *d, clv_error *error) {
  uint64_t device_ns = clv__request_device_deadline_ns(d->request), order_ns = d->order->deadline_ns;
  uint64_t begin_ns = d->request->session->is_traced ? clv__clock_ns() : 0, seen = d->news;
  bool is_new = clv__board_wait(d->request, seen, device_ns < order_ns ? device_ns : order_ns);
  trace_span(d->request, CLV__TRACE_WAIT, CLV__NO_ID, begin_ns);
  look(d);
  CLV__TRY(check_lost(d, error));
  return !is_new && d->news == seen && device_ns <= order_ns ? give_up(d, error) : CLV_OK;
}

/* ---- The end ---- */

/* Returns, as bits, the devices that are not lost and have not sent all requested notifications. Sets `news` to the board's. */
static uint32_t find_expected(clv__request *request, uint64_t *news) {
  const clv_devices *devices = request->session->devices;
  uint32_t expected = 0;
  pthread_mutex_lock(&request->board.lock);
  *news = request->board.news;
  for (uint32_t d = 0; d < devices->count; ++d) {
    if (request->board.watched[d] > 0 && !clv__device_is_lost(&devices->items[d])) expected |= 1u << d;
  }
  pthread_mutex_unlock(&request->board.lock);
  return expected;
}

/* Waits until all requested notifications have arrived, because the next run would mistake late ones for its own. Marks a
 * device as lost if its notifications do not arrive within the device time limit. */
static void hear_all(clv__request *request) {
  uint64_t news;
  for (uint32_t expected; (expected = find_expected(request, &news)) != 0;) {
    if (clv__board_wait(request, news, clv__request_device_deadline_ns(request))) continue;
    for (uint32_t k = 0; k < request->session->devices->count; ++k) {
      if ((expected >> k & 1u) != 0) (void)clv__request_lose(request, k, NULL);
    }
  }
}

/* Makes failed and stopped streams usable again. */
static void synchronize_all(clv__request *request) {
  for (uint32_t lane = 0; lane < CLV__MAX_LANES; ++lane) {
    if (request->streams[lane] != NULL) (void)clv__request_synchronize(request, lane, NULL);
  }
}

/* After a failure: stops what was enqueued and waits for its end, but not beyond the device's time limit, so that nothing
 * accesses the caller's memory any more. Also makes failed streams usable again. */
static void drain(drive *d) {
  clv__request *request = d->request;
  const clv__schedule *schedule = d->schedule;
  clv__request_stop(request, NULL, false);
  for (uint32_t i = 0; i < schedule->lane_count; ++i) { /* watch the last issued step of each lane, if it is not watched yet */
    uint32_t lane = schedule->lanes[i], issued = request->issued[lane];
    if (is_synchronous(request, lane) || issued == 0) continue;
    uint32_t step = schedule->lane_steps[lane][issued - 1];
    if (schedule->tracks[step].is_watched) continue;
    clv__track track = schedule->tracks[step];
    track.is_watched = true;
    (void)record(d, step, &track, NULL);
  }
  hear_all(request);
  synchronize_all(request);
}

static clv_status finish(const drive *d, uint32_t step, clv_error *error) {
  clv_session *session = d->request->session;
  uint32_t lane = d->schedule->tracks[step].lane;
  bool in_turn = session->options.in_flight > 1 && is_synchronous(d->request, lane);
  if (in_turn) CLV__TRY(clv__turn_begin(d->request, clv__lane_device(lane), d->order, error));
  clv_status status = clv__request_finish_step(d->request, step, error);
  if (in_turn) clv__turn_end(d->request, clv__lane_device(lane));
  return status;
}

/* Cuts the padding from the outputs of completed steps, before any other step reads them. */
static clv_status cut(const drive *d, clv_error *error) {
  clv__request *request = d->request;
  for (uint32_t t = 0; t < d->schedule->step_count && request->engine->buckets != NULL; ++t) {
    clv__mark *mark = &request->marks[t];
    const clv__track *track = &d->schedule->tracks[t];
    if (!mark->is_uncut || d->completed[track->lane] <= track->position) continue;
    mark->is_uncut = false;
    if (track->is_recorded) CLV__TRY(check_step(d, t, error));
    CLV__TRY(finish(d, t, error));
  }
  return CLV_OK;
}

static bool is_over(const drive *d) {
  for (uint32_t i = 0; i < d->schedule->lane_count; ++i) {
    uint32_t lane = d->schedule->lanes[i];
    if (d->completed[lane] < d->schedule->lane_ends[lane]) return false;
  }
  return true;
}

static clv_status tell_progress(drive *d, clv_error *error) {
  if (d->order->options.progress == NULL) return CLV_OK;
  uint32_t done = 0;
  for (uint32_t i = 0; i < d->schedule->lane_count; ++i) done += d->completed[d->schedule->lanes[i]];
  if (done <= d->steps_told) return CLV_OK; /* nothing new, or the run is being repeated and has not got that far yet */
  d->steps_told = done;
  if (d->order->options.progress(d->order->options.user_data, done, d->schedule->step_count)) return CLV_OK;
  return clv__error_set(error, CLV_CANCELLED, "the run was cancelled by its progress callback");
}

static clv_status walk(drive *d, clv_error *error) {
  for (look(d); !is_over(d); look(d)) {
    bool any;
    CLV__TRY(cut(d, error));
    CLV__TRY(clv__order_check(d->order, error));
    CLV__TRY(tell_progress(d, error));
    CLV__TRY(issue_ready(d, &any, error));
    if (!any) CLV__TRY(wait(d, error));
  }
  CLV__TRY(cut(d, error));
  CLV__TRY(tell_progress(d, error));
  for (uint32_t i = 0; i < d->schedule->lane_count; ++i) {
    uint32_t lane = d->schedule->lanes[i];
    CLV__TRY(check_step(d, d->schedule->lane_steps[lane][d->schedule->lane_ends[lane] - 1], error));
  }
  hear_all(d->request); /* including notifications of steps that imply() found to be complete */
  return CLV_OK;
}

/* Returns why the run ended early: it was cancelled, its time limit passed, or a device or the progress callback ended it. */
static clv_status explain_stop(const drive *d, clv_error *error) {
  clv__request *request = d->request;
  uint32_t device = request->failed_device;
  CLV__TRY(clv__order_check(d->order, error));
  if (device == CLV__NO_ID) return CLV_CANCELLED; /* the progress callback cancelled the run */
  const char *name = clv__request_device(request, device)->name;
  if (!request->stopping.is_late) return clv__error_prefix(error, CLV_DEVICE_ERROR, "%s: it ended its work unasked", name);
  clv_status status = clv__error_set(error, CLV_DEVICE_ERROR, "it did not finish within %g s, and was stopped",
                                     request->session->options.device_time_limit_s);
  return clv__request_steps_failed_later(request, &d->here, 1, status, error);
}

static void begin(clv__request *request) {
  memset(request->issued, 0, sizeof request->issued);
  memset(request->board.completed, 0, sizeof request->board.completed); /* needs no lock: no notification is pending */
  request->pending_first = CLV__NO_ID;
  clv__prepared_discard(request->prepared);
  for (uint32_t s = 0; s < clv__request_plan(request)->step_count; ++s) {
    request->marks[s].is_uncut = false;
    request->marks[s].over_ns = 0;
  }
}

clv_status clv__request_drive(clv__request *request, const clv__order *order, clv_error *error) {
  drive d = {.request = request, .order = order, .schedule = &request->prepared->schedule};
  clv_status status;
  do {
    begin(request);
    request->failed_device = CLV__NO_ID;
    clv__error_clear(error);
    clv__stopping_begin(request, order);
    clv__capture_begin_run(request);
    request->is_driven = true;
    status = walk(&d, error);
    if (status == CLV_CANCELLED) status = explain_stop(&d, error);
    request->is_driven = false;
    if (status != CLV_OK) drain(&d);
    bool is_stopped = clv__stopping_end(request);
    if (status == CLV_OK && is_stopped) synchronize_all(request); /* the run succeeded, but was stopped at its very end */
    if (status == CLV_OK) clv__trace_steps(request);
  } while (clv__capture_end_run(request, status, error));
  return status;
}

clv_status clv__request_drive_timed(clv__request *request, uint64_t *times_ns, clv_error *error) {
  const clv__schedule *schedule = &request->prepared->schedule;
  begin(request);
  for (uint32_t s = 0; s < schedule->step_count; ++s) {
    uint32_t lane = schedule->tracks[s].lane;
    uint64_t start = clv__clock_ns();
    bool is_uncut;
    clv_status status = clv__request_step(request, s, lane, &is_uncut, error);
    clv_status waited = clv__request_synchronize(request, lane, status == CLV_OK ? error : NULL);
    if (status == CLV_OK) status = waited;
    if (status != CLV_OK) return status;
    if (is_uncut) CLV__TRY(clv__request_finish_step(request, s, error));
    request->pending_first = CLV__NO_ID;
    times_ns[s] = clv__clock_ns() - start;
  }
  return CLV_OK;
}
