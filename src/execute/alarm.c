/* A thread that ends runs at their time limits while no other thread can: the driver is inside a call of a device, or the run is
 * still queued. It is created with the first limit that needs it. If a device does not return although it was stopped, the thread
 * tells the program. */
#include <string.h>

#include "base/clock.h"
#include "execute/session_own.h"

enum { PATIENCE_NS = 1000000000 }; /* how long a stopped device may take to return before the program is told */

typedef struct setting {
  uint64_t until_ns; /* the time of the alarm; UINT64_MAX: none */
  uint32_t step;     /* the step whose device the driver has called */
  bool is_of_device; /* `until_ns` is the limit of the device, not that of the run */
  bool is_stoppable; /* at `until_ns`, the alarm stops the request */
  bool is_late;      /* the limit has passed; now `until_ns` is when the program is told, unless the call returns before */
} setting;

struct clv__alarm {
  clv_session *session;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  setting settings[CLV_MAX_IN_FLIGHT]; /* indexed by request */
  uint64_t queue_ns;                   /* the earliest limit of a queued run */
  bool is_closing;
};

/* Tells the program that a call does not return. Called with the lock held; releases it during the callback. */
static void tell_stuck(clv__alarm *alarm, uint32_t index) {
  const clv_session_options *options = &alarm->session->options;
  const clv__request *request = alarm->session->requests[index];
  clv_error text = {0};
  if (alarm->settings[index].is_of_device)
    clv__error_set(&text, CLV_DEVICE_ERROR, "the call has not returned after %g s, and cannot be interrupted",
                   options->device_time_limit_s + (double)PATIENCE_NS / 1e9);
  else
    clv__error_set(&text, CLV_DEVICE_ERROR,
                   "the call has not returned %g s after the run's time limit passed, and cannot be interrupted",
                   options->device_time_limit_s);
  clv__request_step_failed(request, alarm->settings[index].step, CLV_DEVICE_ERROR, &text);
  pthread_mutex_unlock(&alarm->lock);
  if (options->stuck != NULL)
    options->stuck(options->user_data, text.message);
  else
    clv__context_log(alarm->session->devices->context, 0, "%s", text.message);
  pthread_mutex_lock(&alarm->lock);
}

/* Stops the requests whose limit has passed, and tells the program of a device that still does not return. Called with the lock
 * held: a driver needs it to clear its request's setting, which it does before it releases the request, so the requests stay
 * valid. Returns the time of the next alarm; 0: call this again at once. */
static uint64_t stop_late(clv__alarm *alarm) {
  uint64_t now_ns = clv__clock_ns(), next_ns = alarm->queue_ns;
  for (uint32_t i = 0; i < CLV_MAX_IN_FLIGHT; ++i) {
    setting *s = &alarm->settings[i];
    if (s->until_ns <= now_ns && s->is_late) {
      s->until_ns = UINT64_MAX;
      tell_stuck(alarm, i);
      return 0; /* the settings may have changed meanwhile */
    }
    if (s->until_ns <= now_ns) {
      if (s->is_stoppable) clv__request_stop(alarm->session->requests[i], NULL, s->is_of_device);
      s->until_ns = clv__request_device_deadline_ns(alarm->session->requests[i]); /* UINT64_MAX if devices have no limit */
      if (s->is_of_device) s->until_ns = now_ns + PATIENCE_NS;
      s->is_late = true;
    }
    if (s->until_ns < next_ns) next_ns = s->until_ns;
  }
  return next_ns;
}

static void *ring(void *cookie) {
  clv__alarm *alarm = cookie;
  pthread_mutex_lock(&alarm->lock);
  while (!alarm->is_closing) {
    uint64_t next_ns = stop_late(alarm);
    if (alarm->queue_ns <= clv__clock_ns()) {
      alarm->queue_ns = UINT64_MAX;
      pthread_mutex_unlock(&alarm->lock);
      next_ns = clv__async_expire(alarm->session);
      pthread_mutex_lock(&alarm->lock);
      if (next_ns < alarm->queue_ns) alarm->queue_ns = next_ns;
      continue;
    }
    (void)clv__condition_wait(&alarm->changed, &alarm->lock, next_ns);
  }
  pthread_mutex_unlock(&alarm->lock);
  return NULL;
}

static void finish(clv__alarm *alarm) {
  pthread_cond_destroy(&alarm->changed);
  pthread_mutex_destroy(&alarm->lock);
  clv__release(alarm->session->allocator, alarm);
}

static clv_status create(clv_session *session, clv_error *error) {
  clv__alarm *alarm = clv__allocate_zero(session->allocator, sizeof *alarm);
  if (alarm == NULL) return clv__error_memory(error, sizeof *alarm);
  alarm->session = session;
  alarm->queue_ns = UINT64_MAX;
  for (uint32_t i = 0; i < CLV_MAX_IN_FLIGHT; ++i) alarm->settings[i].until_ns = UINT64_MAX;
  pthread_mutex_init(&alarm->lock, NULL);
  clv__condition_init(&alarm->changed);
  int code = pthread_create(&alarm->thread, NULL, ring, alarm);
  if (code != 0) {
    finish(alarm);
    return clv__error_set(error, CLV_OUT_OF_MEMORY, "cannot create a thread for time limits: %s", strerror(code));
  }
  session->alarm = alarm;
  return CLV_OK;
}

clv_status clv__alarm_start(clv_session *session, clv_error *error) {
  pthread_mutex_lock(&session->lock);
  clv_status status = session->alarm != NULL ? CLV_OK : create(session, error);
  pthread_mutex_unlock(&session->lock);
  return status;
}

void clv__alarm_set(clv__request *request, uint32_t step, uint64_t until_ns, bool is_of_device, bool is_stoppable) {
  clv__alarm *alarm = request->session->alarm;
  pthread_mutex_lock(&alarm->lock);
  alarm->settings[request->index] = (setting){until_ns, step, is_of_device, is_stoppable, false};
  pthread_cond_signal(&alarm->changed);
  pthread_mutex_unlock(&alarm->lock);
}

void clv__alarm_clear(clv__request *request) {
  clv__alarm *alarm = request->session->alarm;
  pthread_mutex_lock(&alarm->lock);
  alarm->settings[request->index] = (setting){.until_ns = UINT64_MAX};
  pthread_mutex_unlock(&alarm->lock);
}

void clv__alarm_set_queue(clv_session *session, uint64_t until_ns) {
  clv__alarm *alarm = session->alarm;
  pthread_mutex_lock(&alarm->lock);
  if (until_ns < alarm->queue_ns) alarm->queue_ns = until_ns;
  pthread_cond_signal(&alarm->changed);
  pthread_mutex_unlock(&alarm->lock);
}

void clv__alarm_destroy(clv__alarm *alarm) {
  if (alarm == NULL) return;
  pthread_mutex_lock(&alarm->lock);
  alarm->is_closing = true;
  pthread_cond_signal(&alarm->changed);
  pthread_mutex_unlock(&alarm->lock);
  pthread_join(alarm->thread, NULL);
  finish(alarm);
}
