/* The section `resize` of the conformance kit (check.h): after instance_resize(), an instance must compute correctly with the
 * new shapes. If the call returned CLV_NOT_SUPPORTED, the instance must still compute correctly with the old shapes. */
#include <stdio.h>
#include <string.h>

#include "check/scene.h"
#include "check/sections.h"

typedef struct resizing {
  clv__check *check;
  clv__check_scene *scene;
  clv__check_job *job;
  int64_t rows; /* the instance's current number of rows */
  uint32_t refusals;
} resizing;

static clv_status resize_to(resizing *r, int64_t rows, clv_error *error) {
  clv__check *check = r->check;
  clv_tensor *types;
  CLV__TRY(clv__scene_feed(r->scene, &rows, check->seed + (uint64_t)rows, error));
  CLV__TRY(clv__check_job_types(r->job, r->scene->truth.values, &r->scene->arena, &types, error));
  clv__error_clear(error);
  return check->backend->instance_resize(check->handle, r->job->instance, types, r->job->input_count, error);
}

static void check_step(resizing *r, int64_t rows) {
  clv__check *check = r->check;
  clv_error error = {0};
  char text[1024], what[256];
  snprintf(what, sizeof what, "resized from %lld rows to %lld, %s", (long long)r->rows, (long long)rows, r->scene->what);
  clv__check_at(check, "%s", what);
  clv_status status = resize_to(r, rows, &error);
  if (status == CLV_NOT_SUPPORTED) {
    ++r->refusals;
    if (!clv__check_that(check, error.message[0] != '\0', what, "instance_resize returned 'not supported' without an error text"))
      return;
    status = clv__scene_feed(r->scene, &r->rows, check->seed + 1, &error);
    if (status == CLV_OK) {
      clv__check_that(check, clv__check_job_run(r->job, r->scene->truth.values, text, sizeof text), what,
                      "run with its old shapes after instance_resize returned 'not supported': %s", text);
      return;
    }
  }
  if (status == CLV_OK) {
    r->rows = rows;
    status = clv__check_job_scratch(r->job, &error);
    if (status == CLV_OK) status = clv__check_job_place(r->job, r->scene->truth.values, &error);
  }
  if (status != CLV_OK) {
    clv__check_failed_call(check, what, "instance_resize, or a call after it", status, &error);
    return;
  }
  clv__check_that(check, clv__check_job_run(r->job, r->scene->truth.values, text, sizeof text), what, "%s", text);
}

static void check_count(resizing *r) {
  clv__check *check = r->check;
  clv_error error = {0};
  clv_tensor *types;
  if (clv__check_job_types(r->job, r->scene->truth.values, &r->scene->arena, &types, &error) != CLV_OK) return;
  clv_status status = check->backend->instance_resize(check->handle, r->job->instance, types, 0, &error);
  if (status == CLV_OK) { /* allowed if the instance does not depend on the shapes of its inputs */
    char text[1024];
    clv__check_that(check, clv__check_job_run(r->job, r->scene->truth.values, text, sizeof text), "resize with no inputs",
                    "it returned 'ok', but the next execution was wrong: %s", text);
    return;
  }
  clv__check_that(check, error.message[0] != '\0', "resize with no inputs", "it returned '%s' without an error text",
                  clv_status_name(status));
}

void clv__check_resize(clv__check *check) {
  static const int64_t rows[] = {7, 1, 16, 0, 4, 4, 33, 4}, dims[] = {-1, 8}, first = 4;
  clv__menu menu;
  if (check->backend->instance_resize == NULL) {
    clv__check_skip(check, "instance_resize", "the backend lacks this optional slot");
    return;
  }
  if (!clv__menu_find(check, false, false, &menu)) {
    clv__check_skip(check, "instance_resize", "the device supports none of the operators of the kit's random graphs");
    return;
  }
  uint32_t refusals = 0, steps = 0;
  for (uint32_t i = 0; i < clv__check_thin(check, 4); ++i) {
    clv__check_scene scene;
    clv__check_job job = {0};
    const int64_t sizes[] = {first, 8};
    if (!clv__scene_draw(check, &menu, 3 + i, dims, sizes, check->device->info.static_shapes_only, 40, check->seed + 11u * i,
                         &scene)) {
      continue;
    }
    if (clv__scene_start(&scene, &job)) {
      resizing r = {.check = check, .scene = &scene, .job = &job, .rows = first};
      for (size_t k = 0; k < sizeof rows / sizeof *rows; ++k, ++steps) check_step(&r, rows[k]);
      check_count(&r);
      refusals += r.refusals;
      clv__check_job_finish(&job);
    }
    clv__scene_finish(&scene);
  }
  if (steps > 0 && refusals == steps) clv__check_skip(check, "other shapes", "the device does not support resizing");
}
