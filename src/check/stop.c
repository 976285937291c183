/* The section `stop` of the conformance kit (check.h). A stopped stream either skips work or completes it, and reports which.
 * Once it has been synchronised, it is usable again. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "check/scene.h"
#include "check/sections.h"

enum { EXECUTIONS = 6, ROUNDS = 20 };

/* Whether a stopped stream may return this status. */
static bool is_answer(clv_status status) {
  return status == CLV_OK || status == CLV_CANCELLED;
}

static void check_next(clv__check_scene *scene, clv__check_job *job, const char *what) {
  char text[1024];
  clv__check_that(scene->check, clv__check_job_run(job, scene->truth.values, text, sizeof text), what,
                  "after stream_stop() and stream_synchronize(), an execution on the stream fails: %s", text);
}

static void check_idle(clv__check_scene *scene, clv__check_job *job) {
  const char *what = "stream_stop of an idle stream";
  clv__check *check = scene->check;
  clv_error error = {0};
  clv_status status = check->backend->stream_stop(check->handle, job->stream, &error);
  if (status != CLV_OK) {
    clv__check_failed_call(check, what, "stream_stop", status, &error);
    return;
  }
  status = check->backend->stream_synchronize(check->handle, job->stream, &error);
  clv__check_that(check, status == CLV_OK, what, "stream_synchronize() returned '%s', although no work was skipped",
                  clv_status_name(status));
  check_next(scene, job, what);
}

/* Enqueues executions; the stream may be stopped meanwhile. Returns the first status that is not CLV_OK. */
static clv_status enqueue(clv__check_job *job, clv_error *error) {
  for (uint32_t i = 0; i < EXECUTIONS; ++i) CLV__TRY(clv__check_job_execute(job, error));
  return CLV_OK;
}

/* Waits for a stopped stream and checks what its calls return. `enqueued` is the status of the calls that enqueued its work. */
static void check_end(clv__check_scene *scene, clv__check_job *job, clv_event *event, clv_status enqueued, const char *what) {
  clv__check *check = scene->check;
  const clv_backend *b = check->backend;
  clv_error error = {0};
  char text[1024];
  clv_status recorded = b->event_record(check->handle, event, job->stream, &error);
  clv_status reached = recorded == CLV_OK ? b->event_synchronize(check->handle, event, &error) : recorded;
  clv_status status = b->stream_synchronize(check->handle, job->stream, &error);
  clv__check_that(check, is_answer(enqueued) && is_answer(reached) && is_answer(status), what,
                  "execute(), the event and stream_synchronize() returned '%s', '%s' and '%s'; expected 'ok' or 'cancelled'",
                  clv_status_name(enqueued), clv_status_name(reached), clv_status_name(status));
  bool is_whole = enqueued == CLV_OK && reached == CLV_OK && status == CLV_OK;
  clv__check_that(check, !is_whole || clv__check_job_agrees(job, scene->truth.values, text, sizeof text), what,
                  "every call returned 'ok', but work was skipped: %s", text);
  check_next(scene, job, what);
}

/* The rounds stop the stream at three moments in turn: after all work was enqueued, before any was, and between two halves of
 * it. If a device executes within execute(), it has nothing left to skip at the first moment. At the second moment it may skip
 * everything, and must then report it. */
static void check_busy(clv__check_scene *scene, clv__check_job *job, clv_event *event) {
  const char *what = "stream_stop of a busy stream";
  clv__check *check = scene->check;
  clv_error error = {0};
  for (uint32_t round = 0; round < ROUNDS; ++round) {
    bool is_before = round % 3 != 1, is_after = round % 3 != 0;
    clv__check_at(check, "%s, round %u", what, round);
    clv_status status = clv__check_job_load(job, scene->truth.values, CLV__CHECK_POISON, &error);
    if (status == CLV_OK) status = clv__check_job_wait(job, &error);
    if (status == CLV_OK && is_before) status = enqueue(job, &error);
    if (status == CLV_OK) status = check->backend->stream_stop(check->handle, job->stream, &error);
    if (status != CLV_OK) {
      clv__check_failed_call(check, what, "one of the calls", status, &error);
      return;
    }
    check_end(scene, job, event, is_after ? enqueue(job, &error) : CLV_OK, what);
  }
}

/* ---- From another thread ---- */

typedef struct stopper {
  clv__check_job *job;
  atomic_uint turn; /* each time this grows, the thread yields `delay` times and then stops the stream */
  uint32_t delay;
  atomic_uint stopped; /* number of turns that are done */
  bool is_closing;
} stopper;

static void *stop_often(void *argument) {
  stopper *s = argument;
  const clv__check *check = s->job->check;
  for (uint32_t done = 0;;) {
    while (atomic_load(&s->turn) == done) sched_yield();
    if (s->is_closing) return NULL;
    for (uint32_t i = 0; i < s->delay; ++i) sched_yield();
    (void)check->backend->stream_stop(check->handle, s->job->stream, NULL);
    atomic_store(&s->stopped, ++done);
  }
}

static void check_threads(clv__check_scene *scene, clv__check_job *job, clv_event *event) {
  const char *what = "stream_stop from another thread";
  clv__check *check = scene->check;
  clv_error error = {0};
  stopper s = {.job = job};
  pthread_t thread;
  if (pthread_create(&thread, NULL, stop_often, &s) != 0) {
    clv__check_skip(check, what, "cannot create a thread");
    return;
  }
  for (uint32_t round = 0; round < ROUNDS; ++round) {
    clv__check_at(check, "%s, round %u", what, round);
    clv_status status = clv__check_job_load(job, scene->truth.values, CLV__CHECK_POISON, &error);
    if (status != CLV_OK) {
      clv__check_failed_call(check, what, "loading data", status, &error);
      break;
    }
    s.delay = round;
    atomic_store(&s.turn, round + 1);
    status = enqueue(job, &error);
    while (atomic_load(&s.stopped) != round + 1) sched_yield();
    check_end(scene, job, event, status, what);
  }
  s.is_closing = true;
  atomic_fetch_add(&s.turn, 1);
  pthread_join(thread, NULL);
}

void clv__check_stop(clv__check *check) {
  clv__check_scene scene;
  clv__check_job job = {0};
  clv_event *event = NULL;
  clv_error error = {0};
  if (check->backend->stream_stop == NULL) {
    clv__check_skip(check, "stream_stop", "the device cannot stop a stream");
    return;
  }
  if (!clv__scene_plain(check, check->seed, &scene)) return;
  if (clv__scene_start(&scene, &job)) {
    clv_status status = check->backend->event_create(check->handle, &event, &error);
    if (status != CLV_OK) clv__check_failed_call(check, "stream_stop", "event_create", status, &error);
    if (status == CLV_OK) check_idle(&scene, &job);
    if (status == CLV_OK) check_busy(&scene, &job, event);
    if (status == CLV_OK) check_threads(&scene, &job, event);
    if (event != NULL) check->backend->event_destroy(check->handle, event);
  }
  clv__check_job_finish(&job);
  clv__scene_finish(&scene);
}
