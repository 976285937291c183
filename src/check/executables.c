/* The section `executables` of the conformance kit (check.h): an executable does not need the view that it was compiled from,
 * and several can coexist. If the backend can save executables, a loaded one gives the same results, also on a reopened device.
 * Damaged bytes are rejected or do no harm. */
#include <stdio.h>
#include <string.h>

#include "check/scene.h"
#include "check/sections.h"

enum { FLIPS = 48, CUTS = 12 };

typedef struct blob {
  const clv_allocator *allocator;
  uint8_t *bytes;
  size_t size_bytes, capacity;
  bool refuses; /* write_blob() fails, as if the disk were full */
} blob;

static clv_status write_blob(void *cookie, const void *data, size_t size_bytes) {
  blob *b = cookie;
  void *bytes = b->bytes;
  if (b->refuses) return CLV_IO_ERROR;
  bool room = clv__array_reserve(b->allocator, &bytes, &b->capacity, b->size_bytes + size_bytes, 1, b->size_bytes);
  b->bytes = bytes;
  if (!room) return CLV_OUT_OF_MEMORY;
  if (size_bytes > 0) memcpy(b->bytes + b->size_bytes, data, size_bytes);
  b->size_bytes += size_bytes;
  return CLV_OK;
}

/* ---- Independence of executables ---- */

static void check_independence(clv__check *check, uint64_t seed) {
  clv__check_scene scene;
  clv__check_job first = {0}, second = {0};
  clv__check_program other = {0};
  clv_error error = {0};
  char text[1024];
  if (!clv__scene_plain(check, seed, &scene)) return;
  clv_status status = clv__check_program_view(check, scene.graph, scene.inputs, NULL, 0, &other, &error);
  if (status == CLV_OK) status = clv__check_program_compile(&other, &error);
  if (status == CLV_OK) status = clv__check_job_open(&other, scene.truth.values, &second, &error);
  if (status != CLV_OK) {
    clv__scene_failed(&scene, "compiling the graph twice", status, &error);
  } else if (clv__scene_start(&scene, &first)) {
    clv__check_that(check, clv__check_job_run(&first, scene.truth.values, text, sizeof text), scene.what,
                    "run while another executable of the same graph exists: %s", text);
    clv__check_job_finish(&first);
    clv__check_program_finish(&scene.program);
    clv__check_that(check, clv__check_job_run(&second, scene.truth.values, text, sizeof text), scene.what,
                    "run after another executable of the same graph was destroyed: %s", text);
  }
  clv__check_job_finish(&second);
  clv__check_program_finish(&other);
  clv__scene_finish(&scene);
}

/* A view is valid only during the call that receives it, so an executable must work after its view is destroyed. The weights are
 * uploaded before the view is destroyed. */
static void check_without_view(clv__check *check, uint64_t seed) {
  clv__check_scene scene;
  clv__check_job job = {0};
  clv__check_program without = {0};
  clv_error error = {0};
  char text[1024];
  if (!clv__scene_plain(check, seed, &scene)) return;
  clv_status status = clv__check_program_compile(&scene.program, &error);
  if (status == CLV_OK) status = clv__check_program_view(check, scene.graph, scene.inputs, NULL, 0, &without, &error);
  if (status == CLV_OK) {
    clv_weight **weights =
        clv__arena_copy(&without.arena, scene.program.weights, scene.program.info.weight_count * sizeof *scene.program.weights);
    without.executable = scene.program.executable;
    without.info = scene.program.info;
    without.weights = weights;
    scene.program.executable = NULL;
    scene.program.weights = NULL;
    clv__check_program_finish(&scene.program);
    clv__check_at(check, "an executable whose view was destroyed, %s", scene.what);
    status = weights == NULL ? clv__error_memory(&error, 1) : clv__check_job_open(&without, scene.truth.values, &job, &error);
  }
  if (status == CLV_OK) {
    clv__check_that(check, clv__check_job_run(&job, scene.truth.values, text, sizeof text), scene.what,
                    "run after the view that it was compiled from was destroyed: %s", text);
  } else {
    clv__scene_failed(&scene, "an executable whose view was destroyed", status, &error);
  }
  clv__check_job_finish(&job);
  clv__check_program_finish(&without);
  clv__scene_finish(&scene);
}

/* ---- Bytes ---- */

/* Loads an executable from the bytes and runs it. If `must`, all calls must succeed and the result must be right. Otherwise a
 * call may fail with an error text. */
static void check_bytes(clv__check_scene *scene, const void *bytes, size_t size_bytes, bool must, const char *how) {
  clv__check *check = scene->check;
  clv__check_program program = {0};
  clv__check_job job = {0};
  clv_error error = {0};
  clv_executable *loaded = NULL;
  char text[1024], what[320];
  snprintf(what, sizeof what, "%s, %s", how, scene->what);
  clv__check_at(check, "%s", what);
  clv_status status = clv__check_program_view(check, scene->graph, scene->inputs, NULL, 0, &program, &error);
  clv__error_clear(&error);
  if (status == CLV_OK) status = check->backend->save->load(check->handle, bytes, size_bytes, &loaded, &error);
  bool is_loaded = status == CLV_OK;
  if (is_loaded) status = clv__check_program_take(&program, loaded, &error);
  if (status == CLV_OK) status = clv__check_job_open(&program, scene->truth.values, &job, &error);
  if (status == CLV_OK) status = clv__check_job_load(&job, scene->truth.values, CLV__CHECK_POISON, &error);
  if (status == CLV_OK) status = clv__check_job_execute(&job, &error);
  if (status == CLV_OK) status = clv__check_job_wait(&job, &error);
  if (status != CLV_OK && must)
    clv__check_failed_call(check, what, is_loaded ? "running the loaded executable" : "save->load", status, &error);
  else if (status != CLV_OK)
    clv__check_that(check, error.message[0] != '\0', what, "loading or running it returned '%s' without an error text",
                    clv_status_name(status));
  else
    clv__check_that(check, clv__check_job_agrees(&job, scene->truth.values, text, sizeof text), what,
                    must ? "%s" : "it was loaded, but computes wrong results: %s", text);
  clv__check_job_finish(&job);
  clv__check_program_finish(&program);
}

static void check_damage(clv__check_scene *scene, const blob *saved) {
  clv__check *check = scene->check;
  uint64_t dice = check->seed + 99;
  uint8_t *bytes = clv__allocate(check->allocator, saved->size_bytes + 1);
  char how[96];
  if (bytes == NULL) return;
  memcpy(bytes, saved->bytes, saved->size_bytes);
  for (uint32_t i = 0; i < clv__check_thin(check, CUTS); ++i) {
    size_t size_bytes = i == 0   ? 0
                        : i == 1 ? 1
                        : i == 2 ? saved->size_bytes - 1
                                 : clv__check_below(&dice, (uint32_t)saved->size_bytes);
    snprintf(how, sizeof how, "truncated to %zu of %zu bytes", size_bytes, saved->size_bytes);
    /* A separate allocation, so that a sanitizer detects reads beyond its end. */
    uint8_t *cut = clv__allocate(check->allocator, size_bytes);
    if (cut == NULL) continue;
    if (size_bytes > 0) memcpy(cut, bytes, size_bytes);
    check_bytes(scene, cut, size_bytes, false, how);
    clv__release(check->allocator, cut);
  }
  for (uint32_t i = 0; i < clv__check_thin(check, FLIPS); ++i) {
    size_t at = clv__check_below(&dice, (uint32_t)saved->size_bytes);
    uint8_t bit = (uint8_t)(1u << clv__check_below(&dice, 8));
    snprintf(how, sizeof how, "bit %u of byte %zu of %zu flipped", (unsigned)__builtin_ctz(bit), at, saved->size_bytes);
    bytes[at] ^= bit;
    check_bytes(scene, bytes, saved->size_bytes, false, how);
    bytes[at] ^= bit;
  }
  bytes[saved->size_bytes] = 0;
  check_bytes(scene, bytes, saved->size_bytes + 1, false, "with one byte too many");
  for (size_t i = 0; i < saved->size_bytes; ++i) bytes[i] = (uint8_t)clv__check_random(&dice);
  check_bytes(scene, bytes, saved->size_bytes, false, "random bytes");
  clv__release(check->allocator, bytes);
}

static void check_refused_write(clv__check_scene *scene) {
  clv__check *check = scene->check;
  blob full = {.allocator = check->allocator, .refuses = true};
  clv_error error = {0};
  clv_status status = check->backend->save->save(check->handle, scene->program.executable, write_blob, &full, &error);
  clv__check_that(check, status != CLV_OK, "save->save to a full disk", "the write failed, but save->save returned 'ok'");
  clv__release(check->allocator, full.bytes);
}

/* Saves an executable, loads it, loads damaged copies of it if `with_damage`, and finally loads it on the reopened device. */
static void check_saved(clv__check *check, uint64_t seed, bool with_damage) {
  clv__check_scene scene;
  blob saved = {.allocator = check->allocator};
  clv_error error = {0};
  if (!clv__scene_plain(check, seed, &scene)) return;
  clv_status status = clv__check_program_compile(&scene.program, &error);
  clv__error_clear(&error);
  if (status == CLV_OK) {
    status = check->backend->save->save(check->handle, scene.program.executable, write_blob, &saved, &error);
  }
  if (status == CLV_NOT_SUPPORTED) {
    clv__check_skip(check, scene.what, "save->save: %s", error.message);
  } else if (status != CLV_OK) {
    clv__check_failed_call(check, scene.what, "save->save", status, &error);
  } else if (saved.size_bytes == 0) {
    clv__check_fail(check, scene.what, "save->save returned 'ok', but wrote nothing");
  } else {
    check_refused_write(&scene);
    check_bytes(&scene, saved.bytes, saved.size_bytes, true, "saved and loaded");
    if (with_damage) check_damage(&scene, &saved);
    clv__check_program_finish(&scene.program);
    clv__check_at(check, "opening the device again");
    status = clv__check_reopen(check, &error);
    if (status == CLV_OK)
      check_bytes(&scene, saved.bytes, saved.size_bytes, true, "loaded by the reopened device");
    else
      clv__check_failed_call(check, scene.what, "opening the device again", status, &error);
  }
  clv__release(check->allocator, saved.bytes);
  if (check->devices != NULL) clv__check_program_finish(&scene.program);
  clv__scene_finish(&scene);
}

void clv__check_executables(clv__check *check) {
  for (uint32_t i = 0; i < clv__check_thin(check, 3); ++i) {
    check_independence(check, check->seed + 41u * i);
    check_without_view(check, check->seed + 43u * i);
  }
  if (check->backend->save == NULL) {
    clv__check_skip(check, "saving and loading", "the backend lacks the optional slots of 'save': it cannot save executables");
    return;
  }
  for (uint32_t i = 0; i < clv__check_thin(check, 4) && check->devices != NULL; ++i) {
    check_saved(check, check->seed + 47u * i, i < 2);
    clv__check_progress(check, i + 1, 4);
  }
}
