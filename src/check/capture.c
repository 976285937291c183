/* The section `capture` of the conformance kit (check.h): an execution does not run while it is recorded. Every launch of the
 * capture has the effect of the recorded executions, on the current contents of their memory. A capture can be bound to other
 * memory. */
#include <stdio.h>
#include <string.h>

#include "check/scene.h"
#include "check/sections.h"

typedef struct recording {
  clv__check *check;
  clv__check_scene scene;
  clv__check_job job;
  clv_capture_mode mode;
  clv_captured *captured;
} recording;

/* Records `times` executions of the job. If a call fails, reports a skip for CLV_NOT_SUPPORTED or a failure for any other
 * status, and returns false. */
static bool record(recording *r, uint32_t times) {
  clv__check *check = r->check;
  const clv_backend *b = check->backend;
  clv_error error = {0};
  clv__check_at(check, "recording, %s", r->scene.what);
  clv_status status = clv__check_job_load(&r->job, r->scene.truth.values, CLV__CHECK_POISON, &error);
  clv__error_clear(&error);
  if (status == CLV_OK) status = b->capture->begin(check->handle, r->job.stream, r->mode, &error);
  if (status == CLV_OK) {
    for (uint32_t i = 0; status == CLV_OK && i < times; ++i) status = clv__check_job_execute(&r->job, &error);
    clv_status ended = b->capture->end(check->handle, r->job.stream, status == CLV_OK ? &r->captured : NULL, &error);
    if (status == CLV_OK) status = ended;
  }
  if (status == CLV_OK && r->captured != NULL) return true;
  if (status == CLV_NOT_SUPPORTED)
    clv__check_skip(check, r->scene.what, "capturing: %s", error.message[0] != '\0' ? error.message : "(no text)");
  else if (status == CLV_OK)
    clv__check_fail(check, r->scene.what, "capture->end returned 'ok', but no capture");
  else
    clv__check_failed_call(check, r->scene.what, "capture->begin, execute or capture->end", status, &error);
  r->captured = NULL;
  return false;
}

static void forget(recording *r) {
  if (r->captured != NULL) r->check->backend->capture->destroy(r->check->handle, r->captured);
  r->captured = NULL;
}

static bool open_recording(clv__check *check, uint64_t seed, clv_capture_mode mode, recording *r) {
  *r = (recording){.check = check, .mode = mode};
  if (!clv__scene_plain(check, seed, &r->scene)) return false;
  if (clv__scene_start(&r->scene, &r->job)) return true;
  clv__scene_finish(&r->scene);
  return false;
}

static void close_recording(recording *r) {
  (void)clv__check_job_wait(&r->job, NULL);
  forget(r);
  clv__check_job_finish(&r->job);
  clv__scene_finish(&r->scene);
}

/* Launches the capture and compares the outputs. */
static void check_launch(recording *r, clv_stream *stream, const char *how) {
  clv__check *check = r->check;
  clv_error error = {0};
  char text[1024], what[320];
  snprintf(what, sizeof what, "%s, %s", how, r->scene.what);
  clv__check_at(check, "%s", what);
  clv_status status = check->backend->capture->launch(check->handle, r->captured, stream, &error);
  if (status == CLV_OK) status = check->backend->stream_synchronize(check->handle, stream, &error);
  if (status != CLV_OK)
    clv__check_failed_call(check, what, "capture->launch", status, &error);
  else
    clv__check_that(check, clv__check_job_agrees(&r->job, r->scene.truth.values, text, sizeof text), what, "%s", text);
}

/* Writes new inputs to the same memory, and computes the expected results. If that fails, reports it and returns false. */
static bool feed(recording *r, uint64_t seed) {
  clv_error error = {0};
  clv_status status = clv__scene_feed(&r->scene, NULL, seed, &error);
  if (status == CLV_OK) status = clv__check_job_load(&r->job, r->scene.truth.values, CLV__CHECK_POISON, &error);
  if (status != CLV_OK) clv__check_failed_call(r->check, r->scene.what, "writing inputs", status, &error);
  return status == CLV_OK;
}

/* Checks that nothing ran during recording: the outputs are unchanged. */
static void check_nothing_ran(recording *r) {
  clv__check *check = r->check;
  clv_error error = {0};
  clv_status status = clv__check_job_wait(&r->job, &error);
  for (uint32_t i = 0; status == CLV_OK && i < r->job.output_count; ++i) {
    const clv__check_operand *operand = &r->job.operands[r->job.input_count + i];
    uint8_t *bytes = clv__allocate(check->allocator, operand->size_bytes);
    if (bytes == NULL) return;
    status = clv__check_operand_read(check, r->job.stream, operand, bytes, &error);
    size_t changed = 0;
    for (size_t k = 0; k < operand->size_bytes; ++k) changed += bytes[k] != CLV__CHECK_POISON;
    clv__release(check->allocator, bytes);
    if (status == CLV_OK) {
      clv__check_that(check, changed == 0, r->scene.what, "%zu bytes of output %u were written during capture", changed, i);
    }
  }
  if (status != CLV_OK) clv__check_failed_call(check, r->scene.what, "reading the outputs after the capture", status, &error);
}

/* Binds the captured execution to other memory. If bind() returns CLV_NOT_SUPPORTED, it must not have changed anything. */
static void check_bind(recording *r, uint64_t seed) {
  clv__check *check = r->check;
  clv__check_job other = {0};
  clv_error error = {0};
  char text[1024], what[320];
  if (check->backend->capture->bind == NULL) {
    clv__check_skip(check, "capture->bind", "the backend lacks this optional slot, so the host captures again for other memory");
    return;
  }
  clv_status status = clv__scene_feed(&r->scene, NULL, seed, &error);
  if (status == CLV_OK) status = clv__check_job_open(&r->scene.program, r->scene.truth.values, &other, &error);
  if (status == CLV_OK) status = clv__check_job_load(&other, r->scene.truth.values, CLV__CHECK_POISON, &error);
  if (status != CLV_OK) {
    clv__check_failed_call(check, r->scene.what, "preparing other memory", status, &error);
    clv__check_job_finish(&other);
    return;
  }
  snprintf(what, sizeof what, "capture->bind, %s", r->scene.what);
  clv__check_at(check, "%s", what);
  clv__error_clear(&error);
  status = check->backend->capture->bind(check->handle, r->captured, 0, &other.args, &error);
  if (status == CLV_NOT_SUPPORTED) {
    clv__check_skip(check, what, "capture->bind: %s", error.message);
  } else if (status != CLV_OK) {
    clv__check_failed_call(check, what, "capture->bind", status, &error);
  } else {
    status = check->backend->capture->launch(check->handle, r->captured, r->job.stream, &error);
    if (status == CLV_OK) status = clv__check_job_wait(&r->job, &error);
    if (status != CLV_OK)
      clv__check_failed_call(check, what, "capture->launch", status, &error);
    else
      clv__check_that(check, clv__check_job_agrees(&other, r->scene.truth.values, text, sizeof text), what,
                      "launched after capture->bind to other memory: %s", text);
    /* Binds the captured execution to its first memory again. */
    if (feed(r, seed + 1)) status = check->backend->capture->bind(check->handle, r->captured, 0, &r->job.args, &error);
    if (status != CLV_OK) clv__check_failed_call(check, what, "capture->bind to the first memory again", status, &error);
  }
  if (status == CLV_OK || status == CLV_NOT_SUPPORTED) {
    const char *how = status == CLV_OK ? "launched after capture->bind to the first memory again"
                                       : "launched after capture->bind returned 'not supported'";
    if (feed(r, seed + 2)) check_launch(r, r->job.stream, how);
  }
  clv__check_job_finish(&other);
}

static void check_graph(clv__check *check, uint64_t seed, clv_capture_mode mode) {
  recording r;
  if (!open_recording(check, seed, mode, &r)) return;
  if (record(&r, 1 + (uint32_t)(seed % 2))) {
    check_nothing_ran(&r);
    check_launch(&r, r.job.stream, "launched");
    for (uint32_t i = 0; i < 6; ++i) {
      if (feed(&r, seed + 10 + i)) check_launch(&r, r.job.stream, "launched with other data");
    }
    clv_stream *stream = NULL;
    clv_error error = {0};
    clv_status status = check->backend->stream_create(check->handle, &stream, &error);
    if (status != CLV_OK) {
      clv__check_failed_call(check, r.scene.what, "stream_create", status, &error);
    } else {
      if (feed(&r, seed + 30)) check_launch(&r, stream, "launched on another stream");
      check->backend->stream_destroy(check->handle, stream);
    }
    (void)check->backend->capture->size_bytes(check->handle, r.captured);
    check_bind(&r, seed + 40);
  }
  close_recording(&r);
}

/* Checks that a discarded recording leaves the stream unchanged. */
static void check_dropped(clv__check *check, uint64_t seed, clv_capture_mode mode) {
  recording r;
  clv_error error = {0};
  char text[1024];
  if (!open_recording(check, seed, mode, &r)) return;
  clv_status status = clv__check_job_load(&r.job, r.scene.truth.values, CLV__CHECK_POISON, &error);
  clv__error_clear(&error);
  if (status == CLV_OK) status = check->backend->capture->begin(check->handle, r.job.stream, r.mode, &error);
  if (status == CLV_OK) {
    (void)clv__check_job_execute(&r.job, &error);
    clv__check_at(check, "capture->end with a NULL output");
    status = check->backend->capture->end(check->handle, r.job.stream, NULL, &error);
    clv__check_that(check, status == CLV_OK, "a discarded capture", "capture->end answered '%s': %s", clv_status_name(status),
                    error.message);
    clv__check_that(check, clv__check_job_run(&r.job, r.scene.truth.values, text, sizeof text),
                    "an execution after a discarded capture", "%s", text);
  } else if (status == CLV_NOT_SUPPORTED) {
    clv__check_skip(check, "a discarded capture", "capturing: %s", error.message);
  } else {
    clv__check_failed_call(check, "a discarded capture", "capture->begin", status, &error);
  }
  close_recording(&r);
}

void clv__check_capture(clv__check *check) {
  const clv_backend *b = check->backend;
  if (b->capture == NULL) {
    clv__check_skip(check, "captures", "the backend lacks the optional slots of 'capture'");
    return;
  }
  for (uint32_t i = 0; i < clv__check_thin(check, 6); ++i) {
    const clv_capture_mode mode = i % 2 == 0 ? CLV_CAPTURE_THREAD : CLV_CAPTURE_GLOBAL; /* sessions use THREAD */
    check_graph(check, check->seed + 53u * i, mode);
    check_dropped(check, check->seed + 59u * i, mode);
    clv__check_progress(check, i + 1, 6);
  }
}
