/* The section `timing` of the conformance kit (check.h): the steps that a device reports contain only nodes of the partition,
 * each at most once, and their times do not exceed the elapsed time. Timing does not change the results. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "check/scene.h"
#include "check/sections.h"
#include "cost/measure.h"

enum { EXECUTIONS = 3, MOST_NODES = 64 };

typedef struct listing {
  clv__check *check;
  const char *what;
  uint32_t node_count;
  uint8_t seen[MOST_NODES];
  uint32_t step_count, timed_count; /* timed: steps with a time above 0 */
  uint64_t sum_ns;
  uint32_t wrong;    /* number of steps that failed a check */
  clv_status answer; /* the status that list_step() returns at step `answer_at` */
  uint32_t answer_at;
} listing;

static bool check_step(listing *l, const clv_step_info *step) {
  clv__check *check = l->check;
  bool is_right =
      clv__check_that(check, step->what != NULL && step->what[0] != '\0', l->what, "step %u has no name", l->step_count);
  is_right = clv__check_that(check, step->executions == EXECUTIONS, l->what, "step %u reports %llu executions; expected %d",
                             l->step_count, (unsigned long long)step->executions, EXECUTIONS) &&
             is_right;
  for (uint32_t i = 0; i < step->node_count; ++i) {
    const uint32_t node = step->nodes[i];
    const bool is_there = node < l->node_count && node < MOST_NODES;
    is_right = clv__check_that(check, is_there, l->what, "step %u names node %u, but there are %u nodes", l->step_count, node,
                               l->node_count) &&
               is_right;
    if (!is_there) continue;
    is_right = clv__check_that(check, l->seen[node]++ == 0, l->what, "node %u is in step %u and in an earlier one", node,
                               l->step_count) &&
               is_right;
  }
  return is_right;
}

static clv_status list_step(void *cookie, const clv_step_info *step) {
  listing *l = cookie;
  if (l->step_count == l->answer_at) return l->answer;
  if (!check_step(l, step)) ++l->wrong;
  ++l->step_count;
  l->sum_ns += step->time_ns;
  if (step->time_ns > 0) ++l->timed_count;
  return CLV_OK;
}

static clv_status time_steps(clv__check *check, const clv__check_job *job, bool on, clv_error *error) {
  clv__error_clear(error);
  return check->backend->timing->enable(check->handle, job->instance, on, error);
}

static clv_status list(clv__check *check, const clv__check_job *job, listing *l, clv_error *error) {
  clv__error_clear(error);
  return check->backend->timing->steps(check->handle, job->instance, list_step, l, error);
}

/* Times executions of the instance and checks the steps that the device reports. Returns false if the device cannot time this
 * instance; the caller then reports a skip. */
static bool check_executions(clv__check *check, clv__check_scene *scene, clv__check_job *job) {
  char text[1024];
  clv_error error = {0};
  listing l = {.check = check, .what = scene->what, .node_count = scene->program.view->node_count, .answer_at = UINT32_MAX};
  clv_status status = time_steps(check, job, true, &error);
  if (status == CLV_NOT_SUPPORTED) {
    clv__check_that(check, error.message[0] != '\0', scene->what,
                    "timing->enable returned 'not supported' without an error text");
    return false;
  }
  const uint64_t begin_ns = clv__clock_ns();
  for (uint32_t i = 0; i < EXECUTIONS && status == CLV_OK; ++i) {
    if (!clv__check_that(check, clv__check_job_run(job, scene->truth.values, text, sizeof text), scene->what,
                         "a timed execution: %s", text))
      return true;
  }
  const uint64_t taken_ns = clv__clock_ns() - begin_ns;
  if (status == CLV_OK) status = list(check, job, &l, &error);
  if (status != CLV_OK) {
    clv__check_failed_call(check, scene->what, "timing->enable or timing->steps", status, &error);
    return true;
  }
  clv__check_that(check, l.sum_ns <= taken_ns, scene->what, "the times of the steps add up to %.3f ms, but only %.3f ms passed",
                  (double)l.sum_ns / 1e6, (double)taken_ns / 1e6);
  clv__check_that(check, l.step_count == 0 || l.timed_count > 0, scene->what, "the times of all %u steps are 0", l.step_count);
  /* If the callback returns an error, steps() must stop and return it. */
  listing stopped = {.check = check, .what = scene->what, .answer = CLV_CANCELLED, .answer_at = 0};
  if (l.step_count > 0) {
    status = list(check, job, &stopped, &error);
    clv__check_that(check, status == CLV_CANCELLED, scene->what,
                    "the callback returned 'cancelled', but timing->steps returned '%s'", clv_status_name(status));
  }
  /* Starting again must reset the times. After timing has stopped, executions must work as before. */
  listing anew = {.check = check, .what = scene->what, .node_count = l.node_count, .answer_at = UINT32_MAX};
  status = time_steps(check, job, true, &error);
  for (uint32_t i = 0; i < EXECUTIONS && status == CLV_OK; ++i) {
    if (!clv__check_job_run(job, scene->truth.values, text, sizeof text)) break; /* list() then finds too few executions */
  }
  if (status == CLV_OK) status = list(check, job, &anew, &error);
  if (status != CLV_OK)
    clv__check_failed_call(check, scene->what, "timing->enable or timing->steps, after restarting timing", status, &error);
  else
    clv__check_that(check, anew.step_count == l.step_count, scene->what,
                    "after restarting timing, %u steps are reported, but %u before", anew.step_count, l.step_count);
  status = time_steps(check, job, false, &error);
  clv__check_that(check, status == CLV_OK && clv__check_job_run(job, scene->truth.values, text, sizeof text), scene->what,
                  "after timing ended: %s", status == CLV_OK ? text : error.message);
  return true;
}

void clv__check_timing(clv__check *check) {
  uint32_t looked = 0, refused = 0;
  if (check->backend->timing == NULL) {
    clv__check_skip(check, "times of steps", "the backend lacks the optional slots of 'timing'");
    return;
  }
  for (uint32_t i = 0; i < clv__check_thin(check, 6); ++i) {
    clv__check_scene scene;
    clv__check_job job = {0};
    if (!clv__scene_plain(check, check->seed + 7u * i, &scene)) return;
    clv__check_at(check, "%s", scene.what);
    if (clv__scene_start(&scene, &job)) {
      ++looked;
      refused += !check_executions(check, &scene, &job);
      clv__check_job_finish(&job);
    }
    clv__scene_finish(&scene);
  }
  if (looked > 0 && refused == looked) clv__check_skip(check, "times of steps", "the device does not report times");
}
