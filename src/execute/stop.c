/* Ends runs early: at a caller's request, at a time limit, or after a failure. The run's streams are stopped (stream_stop()),
 * so that devices skip what they have not begun. A run that waits for a free request, or for its turn on a device, stops
 * waiting. */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "execute/session_own.h"

void clv__condition_init(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

bool clv__condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_ns) {
  if (until_ns == UINT64_MAX) return pthread_cond_wait(condition, lock) == 0;
  struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
  return pthread_cond_timedwait(condition, lock, &until) != ETIMEDOUT;
}

/* ---- Orders ---- */

clv_status clv__order_check(const clv__order *order, clv_error *error) {
  if (order->is_cancelled != NULL && atomic_load(order->is_cancelled)) {
    return clv__error_set(error, CLV_CANCELLED, "the run was cancelled");
  }
  if (order->deadline_ns != UINT64_MAX && clv__clock_ns() >= order->deadline_ns) {
    return clv__error_set(error, CLV_TIMED_OUT, "the run exceeded its time limit of %g s", order->options.time_limit_s);
  }
  return CLV_OK;
}

clv_status clv__order_wait(const clv__order *order, pthread_cond_t *condition, pthread_mutex_t *lock, clv_error *error) {
  if (order == NULL) {
    pthread_cond_wait(condition, lock);
    return CLV_OK;
  }
  CLV__TRY(clv__order_check(order, error));
  (void)clv__condition_wait(condition, lock, order->deadline_ns);
  return clv__order_check(order, error);
}

/* ---- Turns ---- */

clv_status clv__turn_begin(clv__request *request, uint32_t device, const clv__order *order, clv_error *error) {
  clv_session *session = request->session;
  clv_status status = CLV_OK;
  pthread_mutex_lock(&session->turn_lock);
  while (session->has_turn[device] && status == CLV_OK) {
    status = clv__order_wait(order, &session->turn_ended, &session->turn_lock, error);
  }
  if (status == CLV_OK) session->has_turn[device] = true;
  pthread_mutex_unlock(&session->turn_lock);
  return status;
}

void clv__turn_end(clv__request *request, uint32_t device) {
  clv_session *session = request->session;
  pthread_mutex_lock(&session->turn_lock);
  session->has_turn[device] = false;
  pthread_mutex_unlock(&session->turn_lock);
  pthread_cond_broadcast(&session->turn_ended);
}

/* ---- Streams ---- */

static void stop_stream(const clv__request *request, uint32_t lane) {
  const clv__device *device = clv__request_device(request, clv__lane_device(lane));
  if (request->streams[lane] == NULL || device->backend->stream_stop == NULL) return;
  (void)device->backend->stream_stop(device->handle, request->streams[lane], NULL); /* on failure, its work runs to the end */
}

/* The caller holds stopping.lock. */
static void stop_all(clv__request *request) {
  request->stopping.is_stopped = true;
  for (uint32_t lane = 0; lane < CLV__MAX_LANES; ++lane) stop_stream(request, lane);
}

void clv__stopping_begin(clv__request *request, const clv__order *order) {
  clv__stopping *stopping = &request->stopping;
  pthread_mutex_lock(&stopping->lock);
  stopping->order = order;
  stopping->is_stopped = stopping->is_late = false;
  pthread_mutex_unlock(&stopping->lock);
}

bool clv__stopping_end(clv__request *request) {
  clv__stopping *stopping = &request->stopping;
  pthread_mutex_lock(&stopping->lock);
  stopping->order = NULL;
  bool is_stopped = stopping->is_stopped;
  pthread_mutex_unlock(&stopping->lock);
  return is_stopped;
}

void clv__request_stop(clv__request *request, const clv__order *order, bool is_late) {
  clv__stopping *stopping = &request->stopping;
  pthread_mutex_lock(&stopping->lock);
  if (stopping->order != NULL && (order == NULL || stopping->order == order)) {
    stopping->is_late |= is_late && !stopping->is_stopped;
    stop_all(request);
  }
  pthread_mutex_unlock(&stopping->lock);
}

void clv__stopping_add(clv__request *request, uint32_t lane, clv_stream *stream) {
  clv__stopping *stopping = &request->stopping;
  pthread_mutex_lock(&stopping->lock);
  request->streams[lane] = stream;
  if (stopping->is_stopped && stopping->order != NULL) stop_stream(request, lane);
  pthread_mutex_unlock(&stopping->lock);
}

void clv__session_stop(clv_session *session, const clv__order *order) {
  pthread_mutex_lock(&session->lock);
  for (uint32_t i = 0; i < CLV_MAX_IN_FLIGHT; ++i) {
    if (!session->is_busy[i] || session->requests[i] == NULL) continue;
    clv__request_stop(session->requests[i], order, false);
    clv__board *board = &session->requests[i]->board;
    pthread_mutex_lock(&board->lock);
    ++board->news;
    pthread_cond_signal(&board->changed);
    pthread_mutex_unlock(&board->lock);
  }
  pthread_cond_broadcast(&session->freed);
  pthread_mutex_unlock(&session->lock);
  pthread_mutex_lock(&session->turn_lock);
  pthread_cond_broadcast(&session->turn_ended);
  pthread_mutex_unlock(&session->turn_lock);
}
