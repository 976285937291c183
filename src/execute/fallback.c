/* Removes failing devices from a session: their nodes are placed again on the remaining devices, a new engine replaces the old
 * one, and the failed operation starts again. If no plan is left, the caller gets the first error. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "execute/session_own.h"
#include "plan/make.h"

/* The failures of one call so far: of a run or of a session's creation. */
typedef struct fallback {
  clv_session *session;
  clv_error first;      /* the first failure; CLV_OK: none */
  char tried[1020];     /* the later failures */
  uint32_t trimmed;     /* bits of the devices that have been out of memory once */
  clv__loaded *loaded;  /* the weights of the engines to make */
  uint64_t begin_ns;    /* start of the current attempt, for the cost of a failure */
  uint32_t taken_count; /* new items of session->incidents that its incident_count does not include yet: see take_over() */
} fallback;

static void begin(fallback *f, clv_session *session) { /* does not clear all of `tried`, because that would slow down every run */
  f->session = session;
  f->loaded = NULL;
  f->first.status = CLV_OK;
  f->tried[0] = '\0';
  f->trimmed = f->taken_count = 0;
  f->begin_ns = clv__clock_ns();
}

/* Returns whether the run may succeed without the device that failed. Returns false for errors that would occur on any device,
 * and for cancellation and time limits, which the caller requested. */
static bool is_of_device(clv_status status) {
  return status == CLV_DEVICE_ERROR || status == CLV_OUT_OF_MEMORY || status == CLV_TOO_LARGE || status == CLV_NOT_SUPPORTED ||
         status == CLV_INTERNAL_ERROR || status == CLV_IO_ERROR;
}

/* ---- Errors ---- */

static void list_devices(const clv_devices *devices, uint32_t bits, char *text, size_t size_bytes) {
  size_t used = 0;
  text[0] = '\0';
  for (uint32_t d = 0; d < devices->count; ++d) {
    if ((bits >> d & 1u) == 0) continue;
    bits &= ~(1u << d);
    const char *before = used == 0 ? "" : bits == 0 ? " and " : ", ";
    int written = snprintf(text + used, size_bytes - used, "%s%s", before, devices->items[d].name);
    used += written < 0 ? 0 : (size_t)written;
    if (used >= size_bytes) return;
  }
}

/* Records a failure of a plan that already excludes the devices of `gone` (bits). */
static void note_failure(fallback *f, clv_status status, uint32_t gone, const clv_error *error) {
  if (f->first.status == CLV_OK) {
    f->first = *error;
    f->first.status = status;
    return;
  }
  char names[128];
  size_t used = strlen(f->tried);
  list_devices(f->session->devices, gone, names, sizeof names);
  int written = snprintf(f->tried + used, sizeof f->tried - used, "; then, without %s: %s", names, error->message);
  if (written < 0 || (size_t)written >= sizeof f->tried - used) f->tried[used] = '\0';
}

/* Sets `error` to the first failure, followed by as much of the later ones as there is room for. Cancellation, time limits and
 * the caller's mistakes are returned unchanged. */
static clv_status fail(const fallback *f, clv_status status, clv_error *error) {
  if (f->first.status == CLV_OK || !is_of_device(status)) return status;
  *error = f->first;
  size_t used = strlen(error->message), room = sizeof error->message - used;
  snprintf(error->message + used, room, "%.*s", (int)room - 1, f->tried);
  return error->status;
}

/* ---- Incidents ---- */

void clv__incident_text(const clv_devices *devices, const clv__incident *incident, char *text, size_t size_bytes) {
  char onto[128];
  const char *name = devices->items[incident->device].name, *why = incident->text;
  size_t length = strlen(name);
  /* The message begins with the device's name, so skip it in the reason. */
  if (strncmp(why, name, length) == 0 && strncmp(why + length, ": ", 2) == 0) why += length + 2;
  list_devices(devices, incident->onto, onto, sizeof onto);
  if (incident->partition_count == 0) {
    snprintf(text, size_bytes, "%s was removed: %s", name, why);
  } else {
    snprintf(text, size_bytes, "%s was removed: %s: %u partition%s moved to %s", name, why, incident->partition_count,
             incident->partition_count == 1 ? " was" : "s were", onto);
  }
}

uint32_t clv__session_incident_count(clv_session *session) {
  pthread_mutex_lock(&session->lock);
  uint32_t count = session->incident_count;
  pthread_mutex_unlock(&session->lock);
  return count;
}

bool clv__session_incident(clv_session *session, uint32_t index, clv__incident *incident) {
  pthread_mutex_lock(&session->lock);
  bool is_there = index < session->incident_count;
  if (is_there) *incident = session->incidents[index];
  pthread_mutex_unlock(&session->lock);
  return is_there;
}

/* Sets the cost of the latest incident: the time since the attempt that failed began. */
static void close_incident(fallback *f) {
  uint64_t now_ns = clv__clock_ns();
  if (f->taken_count > 0) {
    clv_session *session = f->session;
    session->incidents[session->incident_count + f->taken_count - 1].cost_ms = (double)(now_ns - f->begin_ns) / 1e6;
    f->begin_ns = now_ns;
  }
}

static void note_incident(fallback *f, const clv_plan *old, const clv_plan *plan, uint32_t device, clv_status status,
                          const clv_error *error) {
  close_incident(f);
  clv_session *session = f->session; /* no other thread changes its incidents, because this one holds session->replacing */
  clv__incident *incident = &session->incidents[session->incident_count + f->taken_count++];
  *incident = (clv__incident){.device = device, .status = status};
  snprintf(incident->text, sizeof incident->text, "%.*s", (int)sizeof incident->text - 1, error->message);
  for (uint32_t p = 0; p < old->partition_count; ++p)
    incident->partition_count += old->partitions[p].device == device && !old->partitions[p].is_hosted;
  for (clv_node_id n = 0; n < old->graph->node_count; ++n) {
    if (old->placement.devices[n] == device && plan->placement.devices[n] != CLV__NO_ID)
      incident->onto |= 1u << plan->placement.devices[n];
  }
}

/* ---- Another engine ---- */

/* Returns true if the same operation may be tried again: memory was short, and cached blocks have been freed. */
static bool trim(fallback *f, clv_status status, uint32_t device, const clv_error *error) {
  if (status != CLV_OUT_OF_MEMORY || (f->trimmed >> device & 1u) != 0) return false;
  f->trimmed |= 1u << device;
  clv__context_log(f->session->devices->context, 2, "%s; repeated without memory that is kept for reuse", error->message);
  clv__memory_pool_trim(f->session->devices);
  return true;
}

/* Makes a plan without the device that failed with `error`. */
static clv_status take_out(fallback *f, const clv_plan *plan, uint32_t device, clv_status status, const clv_error *error,
                           clv_plan **next) {
  clv_error refusal = {0};
  clv_status refused = clv__plan_without_devices(plan, 1u << device, error->message, next, &refusal);
  if (refused != CLV_OK)
    note_failure(f, refused, plan->gone | 1u << device, &refusal);
  else
    note_incident(f, plan, *next, device, status, error);
  return refused;
}

bool clv__session_divide(const clv_session *session, const clv_plan *plan, const clv__engine_failure *failure, clv_status status,
                         const clv_error *error, clv_plan **next) {
  uint32_t p = failure->partition;
  if (status != CLV_TOO_LARGE || p == CLV__NO_ID || plan->partitions[p].node_count < 2) return false;
  if (clv__plan_with_halves(plan, p, error->message, next, NULL) != CLV_OK) return false;
  clv__context_log(session->devices->context, 2, "%s; the partition is divided into two", error->message);
  return true;
}

/* Makes an engine for `plan`. If a device finds a partition too large, tries again with a plan that divides this partition. If
 * a device fails, tries again with a plan without this device. `own` is `plan` or NULL: the engine takes ownership of it, or it
 * is destroyed if no engine can be made. */
static clv_status make_engine(fallback *f, const clv_plan *plan, clv_plan *own, clv__engine **engine) {
  clv_session *session = f->session;
  for (;;) {
    clv__engine_failure failure;
    clv_error error = {0};
    clv_plan *next;
    clv_status status = clv__engine_create(session, plan, own, f->loaded, engine, &failure, &error);
    if (status == CLV_OK) return status;
    if (clv__session_divide(session, plan, &failure, status, &error, &next)) {
      clv_plan_destroy(own);
      plan = own = next;
      continue;
    }
    uint32_t device = failure.device;
    bool is_one = device != CLV__NO_ID && is_of_device(status);
    if (is_one && trim(f, status, device, &error)) continue;
    note_failure(f, status, plan->gone, &error);
    if (is_one && !session->options.no_fallback && take_out(f, plan, device, status, &error, &next) == CLV_OK) {
      clv_plan_destroy(own);
      plan = own = next;
      continue;
    }
    clv_plan_destroy(own);
    return status;
  }
}

/* Makes `engine` the session's engine, and publishes and logs the new incidents. */
static void take_over(fallback *f, clv__engine *engine) {
  clv_session *session = f->session;
  close_incident(f);
  pthread_mutex_lock(&session->lock);
  uint32_t first = session->incident_count;
  clv__engine *old = session->engine;
  session->engine = engine;
  session->incident_count += f->taken_count;
  if (f->taken_count > 0) session->trace_count = 0; /* the trace's steps refer to the previous plan */
  pthread_mutex_unlock(&session->lock);
  f->taken_count = 0;
  for (uint32_t i = first; i < session->incident_count; ++i) {
    char text[640];
    clv__incident_text(session->devices, &session->incidents[i], text, sizeof text);
    clv__context_log(session->devices->context, 1, "%s; recovery took %.1f ms", text, session->incidents[i].cost_ms);
  }
  clv__engine_release(session, old);
  clv__session_sweep(session);
}

clv_status clv__session_begin(clv_session *session, clv_error *error) {
  fallback f;
  clv_error ignored;
  clv__engine *engine;
  begin(&f, session);
  pthread_mutex_lock(&session->replacing);
  clv_status status = make_engine(&f, session->plan, NULL, &engine);
  if (status == CLV_OK) take_over(&f, engine);
  pthread_mutex_unlock(&session->replacing);
  return status == CLV_OK ? status : fail(&f, status, error != NULL ? error : &ignored);
}

/* ---- Attempts ---- */

/* The failure of one attempt. */
typedef struct failure {
  clv_status status;
  uint32_t device; /* CLV__NO_ID: no device is to blame */
  uint32_t gone;   /* bits of the devices that the failed plan excluded */
} failure;

static clv_status replace(fallback *f, const failure *what, const clv_error *error) {
  clv_plan *plan;
  clv__engine *engine;
  f->taken_count = 0;
  f->loaded = f->session->engine->loaded;
  CLV__TRY(take_out(f, f->session->engine->plan, what->device, what->status, error, &plan));
  CLV__TRY(make_engine(f, plan, plan, &engine));
  take_over(f, engine);
  return CLV_OK;
}

/* Prepares the next attempt. Returns false if there is none. Requests that fail at the same time take turns: the second one
 * finds a plan without the device, and only has to run again. */
static bool fall_back(fallback *f, const failure *what, const clv_error *error) {
  clv_session *session = f->session;
  bool is_one = what->device != CLV__NO_ID && is_of_device(what->status) && (what->gone >> what->device & 1u) == 0;
  if (is_one && trim(f, what->status, what->device, error)) return true;
  if (!is_of_device(what->status) || (!is_one && f->first.status == CLV_OK)) return false;
  note_failure(f, what->status, what->gone, error);
  if (!is_one || session->options.no_fallback) return false;
  pthread_mutex_lock(&session->replacing);
  bool is_out = (session->engine->plan->gone >> what->device & 1u) != 0 || replace(f, what, error) == CLV_OK;
  pthread_mutex_unlock(&session->replacing);
  return is_out;
}

static clv_status attempt(clv_session *session, uint32_t index, const clv__order *order, clv__attempt_fn go, const void *cookie,
                          failure *what, clv_error *error) {
  clv__request *request;
  *what = (failure){.device = CLV__NO_ID};
  what->status = clv__request_acquire(session, index, order, &request, error);
  if (what->status != CLV_OK) return what->status;
  what->status = clv__engine_refill(session, request->engine, error);
  if (what->status == CLV_OK) what->status = go(request, cookie, error);
  if (what->status != CLV_OK) {
    what->device = request->failed_device;
    what->gone = clv__request_plan(request)->gone;
    if (what->status == CLV_OUT_OF_MEMORY && what->device != CLV__NO_ID && !clv__request_has_lost_device(request)) {
      clv__devices_lock(session->devices);
      clv__request_free_memory(request);
      clv__devices_unlock(session->devices);
    }
  }
  clv__request_release(request);
  return what->status;
}

clv_status clv__session_attempt_at(clv_session *session, uint32_t index, const clv__order *order, clv__attempt_fn go,
                                   const void *cookie, clv_error *given) {
  fallback f;
  failure what;
  clv_error own, *error = given != NULL ? given : &own;
  own.status = CLV_OK;
  own.message[0] = '\0';
  begin(&f, session);
  while (attempt(session, index, order, go, cookie, &what, error) != CLV_OK) {
    if (!fall_back(&f, &what, error)) return fail(&f, what.status, error);
    clv__error_clear(error);
    f.begin_ns = clv__clock_ns();
  }
  return CLV_OK;
}

clv_status clv__session_attempt(clv_session *session, clv__attempt_fn go, const void *cookie, clv_error *error) {
  return clv__session_attempt_at(session, CLV__NO_ID, NULL, go, cookie, error);
}
