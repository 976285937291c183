/* See capture.h. cache.h explains which captures are kept.
 *
 * An entry is all captured partitions of a prepared set of shapes on one device. It belongs to the set, because its captures
 * refer to the set's instances and memory. The set enters the entry at the beginning of a run and leaves it at the end. */
#include "execute/capture/capture.h"
#include "base/clock.h"

#include <string.h>

#include "execute/capture/own.h"

void clv__capture_drop(clv__prepared *prepared, uint32_t device) {
  clv__capture *capture = prepared->captures[device];
  if (capture == NULL) return;
  clv__capture_entry_remove(capture->cache, capture->entry);
  capture->entry = NULL;
}

bool clv__capture_holds(const clv__prepared *prepared, uint32_t device) {
  const clv__capture *capture = prepared->captures[device];
  if (capture == NULL || capture->entry == NULL) return false;
  return capture->recorded != NULL ||
         clv__capture_entry_is_kept(capture->entry); /* a run keeps `recorded` even after an eviction */
}

/* ---- During a run ---- */

/* Makes the rest of this run issue its partitions launch by launch. The captures are released when the run ends. */
static void stop(clv__capture *capture, const char *why) {
  capture->is_over = true;
  capture->issue = CLV__ISSUE_EAGER;
  capture->why = why;
}

void clv__capture_forget(clv__prepared *prepared, uint32_t partition) {
  uint32_t device = clv__request_plan(prepared->request)->partitions[partition].device;
  clv__capture *capture = prepared->captures[device];
  if (capture == NULL) return;
  if (capture->recorded == NULL) {
    clv__capture_drop(prepared, device);
    return;
  }
  clv__recorded_drop(capture->recorded, prepared->partitions[partition].first);
  stop(capture, "its memory changed during the run");
}

/* Decides what to do in this run if there is no capture. */
static void decide(clv__request *request, uint32_t device, clv__capture *capture) {
  const clv_context *context = request->session->devices->context;
  bool is_logged = clv__context_is_logged(context); /* describing a difference costs a comparison of keys */
  char difference[256] = "";
  capture->issue = CLV__ISSUE_EAGER;
  if (capture->is_unconfirmed) {
    capture->is_unconfirmed = false;
    capture->why = "sizes differ from those of the previous run";
    return;
  }
  if (capture->is_key_stale && clv__capture_make_key(request->prepared, device, NULL) != CLV_OK) {
    capture->why = "out of memory";
    return;
  }
  clv__capture_verdict verdict =
      clv__capture_cache_ask(capture->cache, &capture->key, is_logged ? difference : NULL, sizeof difference);
  capture->why = clv__capture_verdict_text(verdict);
  if (verdict != CLV__CAPTURE_NOW) return;
  clv__context_log(context, 3, "%s: captured: %s", clv__request_device(request, device)->name, difference);
  clv__capture_join(request->prepared, device);
  if (clv__recorded_create(request, device, &capture->recorded, NULL) == CLV_OK)
    capture->issue = CLV__ISSUE_CAPTURED;
  else
    capture->why = "out of memory";
}

void clv__capture_begin_run(clv__request *request) {
  clv__prepared *prepared = request->prepared;
  bool prefill_too = clv__context_settings(request->session->devices->context)->capture_prefill;
  for (uint32_t d = 0; d < request->session->devices->count; ++d) {
    clv__capture *capture = prepared->captures[d];
    if (capture == NULL) continue;
    capture->recorded = NULL;
    capture->is_over = capture->is_used = capture->is_broken = false;
    capture->run_ns = 0;
    const char *why = capture->is_suspected                  ? clv__capture_verdict_text(CLV__CAPTURE_EAGER_FAILED)
                      : prepared->is_prefill && !prefill_too ? "prefill"
                                                             : NULL;
    if (why != NULL) {
      capture->issue = CLV__ISSUE_EAGER;
      capture->why = why;
      continue;
    }
    if (capture->entry != NULL) capture->recorded = clv__capture_entry_enter(capture->cache, capture->entry);
    if (capture->recorded != NULL) {
      capture->issue = CLV__ISSUE_REPLAYED;
      continue;
    }
    clv__capture_drop(prepared, d); /* if there is an entry, it was evicted */
    decide(request, d, capture);
  }
}

/* ---- The partitions of a capture ---- */

/* Makes the capture, or updates it to the current locations of its bindings. Sets `issue` to how to issue its partitions. */
static clv_status ready(clv__request *request, clv__capture *capture, uint32_t first, clv_stream *stream, clv__issue *issue,
                        clv_error *error) {
  uint64_t execute_ns = 0, patches = 0;
  *issue = capture->issue;
  if (capture->issue == CLV__ISSUE_CAPTURED) {
    for (uint32_t p = request->prepared->partitions[first].next; p != CLV__NO_ID; p = request->prepared->partitions[p].next) {
      CLV__TRY(clv__request_bind(request, p, error));
    }
  } else {
    clv__follow how;
    clv_status status = clv__recorded_follow(capture->recorded, request, first, &how, &patches, error);
    clv__capture_cache_add(capture->cache, patches, how == CLV__FOLLOW_RECAPTURE, 0);
    CLV__TRY(status);
    if (how == CLV__FOLLOW_NEITHER) *issue = CLV__ISSUE_EAGER;
    if (how == CLV__FOLLOW_RECAPTURE) *issue = CLV__ISSUE_CAPTURED;
  }
  if (capture->is_over) *issue = CLV__ISSUE_EAGER; /* an instance had to be replaced */
  if (*issue != CLV__ISSUE_CAPTURED) return CLV_OK;
  CLV__TRY(clv__recorded_capture(capture->recorded, request, first, stream, &execute_ns, error));
  if (capture->issue == CLV__ISSUE_CAPTURED) capture->run_ns += execute_ns;
  return CLV_OK;
}

/* Makes or updates the capture that begins with partition `first`, and launches it. If it decides not to launch the capture, it
 * returns CLV_OK and leaves the `issue` of that partition's state at CLV__ISSUE_EAGER. */
static clv_status replay(clv__request *request, clv__capture *capture, uint32_t first, clv_stream *stream, clv_error *error) {
  clv__partition_state *states = request->prepared->partitions;
  clv__issue issue;
  CLV__TRY(ready(request, capture, first, stream, &issue, error));
  states[first].why = "its memory moved, and the device cannot change the bindings of a capture";
  if (issue == CLV__ISSUE_EAGER) return CLV_OK;
  clv_status status = clv__recorded_launch(capture->recorded, first, stream, error);
  /* Some partitions of the capture may have run and overwritten inputs of earlier ones. Then the whole run must be
   * repeated. */
  capture->is_broken = status != CLV_OK && states[first].next != CLV__NO_ID;
  if (status != CLV_OK) return status;
  capture->is_used = true;
  states[first].issue = issue;
  for (uint32_t p = states[first].next; p != CLV__NO_ID; p = states[p].next) {
    states[p].issue = issue;
    request->pending_last = p;
    ++request->leap;
  }
  return CLV_OK;
}

static clv_status execute(clv__request *request, const clv__device *device, uint32_t partition, clv_stream *stream,
                          clv_error *error) {
  clv_execute_args args = clv__request_args(request, partition);
  clv_instance *instance = request->prepared->partitions[partition].instance;
  return CLV__CALL(device, error, execute, instance, stream, &args);
}

/* Executes launch by launch after a capture failed. If that works, the key is never captured again. If it fails too, the capture
 * is not the cause. */
static clv_status do_without(clv__request *request, clv__capture *capture, const clv__device *device, uint32_t index,
                             clv_stream *stream, clv_error *error) {
  uint32_t step = request->prepared->partitions[index].step;
  clv_error why = error != NULL ? *error : (clv_error){0};
  clv__request_steps_failed(request, &step, 1, why.status, &why);
  clv__context_log(request->session->devices->context, 2, "not captured: %s", why.message);
  stop(capture, clv__capture_verdict_text(CLV__CAPTURE_EAGER_FAILED));
  clv_status status = execute(request, device, index, stream, error);
  if (status == CLV_OK)
    clv__capture_cache_fail(capture->cache, &capture->key);
  else
    capture->is_over = false;
  return status;
}

static clv_status issue(clv__request *request, clv__capture *capture, const clv__device *device, uint32_t index,
                        clv_stream *stream, clv_error *error) {
  clv__partition_state *state = &request->prepared->partitions[index];
  clv_status status = CLV_OK;
  /* A partition that is not the first of its capture gets here only if the capture was not launched. Then it is executed. */
  if (capture->issue != CLV__ISSUE_EAGER && state->first == index) status = replay(request, capture, index, stream, error);
  if (capture->is_broken) return status;
  if (status != CLV_OK)
    status = do_without(request, capture, device, index, stream, error);
  else if (state->issue == CLV__ISSUE_EAGER)
    status = execute(request, device, index, stream, error);
  state->why = capture->issue == CLV__ISSUE_EAGER ? capture->why : request->prepared->partitions[state->first].why;
  return status;
}

clv_status clv__capture_execute(clv__request *request, uint32_t index, clv_stream *stream, clv_error *error) {
  clv__prepared *prepared = request->prepared;
  clv__partition_state *state = &prepared->partitions[index];
  uint32_t d = clv__request_plan(request)->partitions[index].device;
  const clv__device *device = clv__request_device(request, d);
  clv__capture *capture = state->is_fixed ? prepared->captures[d] : NULL;
  if (!request->is_driven) return execute(request, device, index, stream, error);
  state->issue = CLV__ISSUE_EAGER;
  state->why = NULL;
  if (capture == NULL) return execute(request, device, index, stream, error);
  /* On a synchronous device, the time would include the kernels. ready() measures the time of a capture. */
  bool is_timed = !device->info.is_synchronous && capture->issue != CLV__ISSUE_CAPTURED;
  uint64_t begin_ns = is_timed ? clv__clock_ns() : 0;
  clv_status status = issue(request, capture, device, index, stream, error);
  if (is_timed) capture->run_ns += clv__clock_ns() - begin_ns;
  return status;
}

/* ---- The end of a run: everything enqueued has completed ---- */

static void keep(clv__capture *capture) {
  clv_status status =
      clv__capture_cache_insert(capture->cache, &capture->key, capture->recorded, clv__recorded_bytes(capture->recorded),
                                clv__recorded_destroy, &capture->entry, NULL);
  if (status == CLV_OK && capture->entry != NULL) {
    clv__capture_entry_leave(capture->entry);
  } else {
    capture->entry = NULL;
    clv__recorded_destroy(capture->recorded);
  }
}

/* Adds the host time that a replay saved, compared with a run that issued all launches one by one. If there was no such run,
 * compares with the capturing run, because recording a launch takes the host about as long as issuing it. */
static void count_time(const clv__device *device, clv__capture *capture) {
  if (device->info.is_synchronous || capture->is_over || capture->run_ns == 0) return;
  if (capture->issue != CLV__ISSUE_REPLAYED) {
    if (capture->eager_ns == 0 || capture->run_ns < capture->eager_ns) capture->eager_ns = capture->run_ns;
  } else if (capture->run_ns < capture->eager_ns) {
    clv__capture_cache_add(capture->cache, 0, 0, capture->eager_ns - capture->run_ns);
  }
}

/* Returns whether to repeat a run without the captures on `device`, because it failed on this device and the captures may be
 * the cause. If the repeated run succeeds, the key is never captured again. */
static bool is_to_be_repeated(const clv__request *request, uint32_t device, clv_status status) {
  const clv__capture *capture = request->prepared->captures[device];
  if (status == CLV_OK || status == CLV_CANCELLED || status == CLV_TIMED_OUT || request->failed_device != device ||
      clv__device_is_lost(clv__request_device(request, device)))
    return false;
  return capture->is_used || capture->is_broken;
}

static void close_recording(clv__prepared *prepared, uint32_t device, clv_status status) {
  clv__capture *capture = prepared->captures[device];
  clv__recorded *recorded = capture->recorded;
  if (recorded != NULL && capture->entry != NULL) {
    clv__capture_entry_leave(capture->entry);
    if (capture->is_over) clv__capture_drop(prepared, device);
  } else if (recorded != NULL && status == CLV_OK && !capture->is_over) {
    keep(capture);
  } else {
    clv__recorded_destroy(recorded);
  }
  capture->recorded = NULL;
}

bool clv__capture_end_run(clv__request *request, clv_status status, const clv_error *error) {
  clv__prepared *prepared = request->prepared;
  uint32_t count = request->session->devices->count;
  bool again = false;
  for (uint32_t d = 0; d < count; ++d) {
    clv__capture *capture = prepared->captures[d];
    if (capture == NULL) continue;
    const clv__device *device = clv__request_device(request, d);
    if (is_to_be_repeated(request, d, status)) {
      clv__context_log(request->session->devices->context, 2, "a run with captures failed and was repeated without them: %s",
                       error != NULL ? error->message : device->name);
      capture->is_suspected = capture->is_over = again = true;
    }
    if (status == CLV_OK) count_time(device, capture);
    close_recording(prepared, d, status);
  }
  for (uint32_t d = 0; d < count && !again; ++d) {
    clv__capture *capture = prepared->captures[d];
    if (capture == NULL || !capture->is_suspected) continue;
    if (status == CLV_OK) clv__capture_cache_fail(capture->cache, &capture->key);
    capture->is_suspected = false;
  }
  return again;
}

/* ---- For reports ---- */

static const char *why_eager(const clv__prepared *prepared, const clv__partition_state *state) {
  const clv_session *session = prepared->request->session;
  uint32_t device = clv__request_plan(prepared->request)->partitions[state->index].device;
  const char *off = clv__capture_is_off(clv__context_settings(session->devices->context));
  if (state->why != NULL) return state->why;
  if (off != NULL) return off;
  return clv__capture_is_possible(&session->devices->items[device]) ? "sizes depend on data" : "the device cannot capture";
}

void clv__session_issue(clv_session *session, uint32_t index, clv__issue_info *info) {
  *info = (clv__issue_info){CLV__ISSUE_NONE, ""};
  pthread_mutex_lock(&session->lock);
  const clv__request *request = session->requests[session->last_request];
  if (request != NULL && request->prepared != NULL && index < clv__request_plan(request)->partition_count) {
    const clv__partition_state *state = &request->prepared->partitions[index];
    info->issue = state->issue;
    if (info->issue == CLV__ISSUE_EAGER) info->why = why_eager(request->prepared, state);
  }
  pthread_mutex_unlock(&session->lock);
}

bool clv__session_captures(const clv_session *session, uint32_t device, clv__capture_counters *counters) {
  clv__capture_cache *cache = clv__capture_cache_of(session, device);
  if (cache != NULL) clv__capture_cache_counters(cache, counters);
  return cache != NULL;
}
