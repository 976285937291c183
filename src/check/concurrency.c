/* The section `concurrency` of the conformance kit (check.h): results must be right while instances of the same executable or
 * of different ones execute at the same time, each on its own stream and thread; if an instance is enqueued again before its
 * last execution completed; and while another thread allocates and frees buffers. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "check/scene.h"
#include "check/sections.h"

enum { THREADS = 3, ROUNDS = 24, IN_FLIGHT = 6 };

/* The state of a thread. `text` holds its first error. */
typedef struct worker {
  clv__check_job job;
  clv__check_truth truth; /* expected results for the thread's own data */
  clv_tensor *inputs;
  pthread_barrier_t *start;
  bool failed;
  char text[1024];
} worker;

static void *work(void *self) {
  worker *w = self;
  pthread_barrier_wait(w->start);
  for (uint32_t round = 0; round < ROUNDS && !w->failed; ++round) {
    w->failed = !clv__check_job_run(&w->job, w->truth.values, w->text, sizeof w->text);
    clv__check_beat(w->job.check);
  }
  return NULL;
}

/* The state of a thread that allocates and frees buffers while other threads execute. */
typedef struct taker {
  const clv__check *check;
  bool stop; /* atomic */
  bool failed;
  char text[1024];
} taker;

static void *take_buffers(void *self) {
  taker *t = self;
  const clv__check *check = t->check;
  for (uint32_t i = 0; !__atomic_load_n(&t->stop, __ATOMIC_ACQUIRE) && !t->failed; ++i) {
    clv_buffer *buffer = NULL;
    clv_error error = {0};
    clv_status status = check->backend->buffer_alloc(check->handle, 64 + i % 7 * 1000, &buffer, &error);
    t->failed = status != CLV_OK;
    if (t->failed)
      clv__check_call_text("buffer_alloc", status, &error, t->text, sizeof t->text);
    else
      check->backend->buffer_free(check->handle, buffer);
  }
  return NULL;
}

static void run_threads(clv__check *check, const char *what, worker *workers, uint32_t count) {
  pthread_t threads[THREADS], taking;
  pthread_barrier_t start;
  taker t = {.check = check};
  clv__check_at(check, "%s", what);
  pthread_barrier_init(&start, NULL, count);
  bool is_taking = pthread_create(&taking, NULL, take_buffers, &t) == 0;
  uint32_t started = 0;
  for (uint32_t i = 0; i < count; ++i) workers[i].start = &start;
  while (started < count && pthread_create(&threads[started], NULL, work, &workers[started]) == 0) ++started;
  if (started < count) { /* the barrier waits for `count` threads, so this thread does the work of those that are missing */
    clv__check_fail(check, what, "the kit could not start %u threads", count);
    for (uint32_t i = started; i < count; ++i) work(&workers[i]);
  }
  for (uint32_t i = 0; i < started; ++i) pthread_join(threads[i], NULL);
  __atomic_store_n(&t.stop, true, __ATOMIC_RELEASE);
  if (is_taking) pthread_join(taking, NULL);
  pthread_barrier_destroy(&start);
  for (uint32_t i = 0; i < count; ++i) {
    clv__check_that(check, !workers[i].failed, what, "thread %u of %u: %s", i + 1, count, workers[i].text);
  }
  clv__check_that(check, !t.failed, "buffers allocated while others execute", "%s", t.text);
}

static bool begin_worker(clv__check_scene *scene, clv__check_program *program, uint64_t seed, worker *w) {
  clv__check *check = scene->check;
  clv_error error = {0};
  memset(w, 0, sizeof *w);
  clv_status status = clv__sketch_data(scene->graph, NULL, seed, &scene->arena, &w->inputs, &error);
  if (status == CLV_OK) status = clv__check_truth_make(check, scene->graph, w->inputs, &w->truth, &error);
  if (status == CLV_OK) status = clv__check_job_open(program, w->truth.values, &w->job, &error);
  if (status == CLV_OK) return true;
  clv__check_failed_call(check, scene->what, "opening another instance", status, &error);
  return false;
}

static void finish_workers(worker *workers, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    clv__check_job_finish(&workers[i].job);
    clv__check_truth_finish(&workers[i].truth);
  }
}

static bool compile_scene(clv__check_scene *scene) {
  clv_error error = {0};
  clv_status status = clv__check_program_compile(&scene->program, &error);
  if (status != CLV_OK) clv__scene_failed(scene, "compile", status, &error);
  return status == CLV_OK;
}

static void check_one_executable(clv__check *check, uint64_t seed) {
  clv__check_scene scene;
  worker workers[THREADS];
  char what[256];
  if (!clv__scene_plain(check, seed, &scene)) return;
  uint32_t begun = 0;
  memset(workers, 0, sizeof workers);
  if (compile_scene(&scene)) {
    while (begun < THREADS && begin_worker(&scene, &scene.program, seed + begun, &workers[begun])) ++begun;
  }
  snprintf(what, sizeof what, "%d instances of one executable, %s", THREADS, scene.what);
  if (begun == THREADS) run_threads(check, what, workers, THREADS);
  finish_workers(workers, THREADS);
  clv__scene_finish(&scene);
}

static void check_two_executables(clv__check *check, uint64_t seed) {
  clv__check_scene scenes[2] = {{0}};
  worker workers[2];
  char what[512];
  memset(workers, 0, sizeof workers);
  uint32_t begun = 0;
  while (begun < 2 && clv__scene_plain(check, seed + 1000u * begun, &scenes[begun])) {
    if (!compile_scene(&scenes[begun])) break;
    if (!begin_worker(&scenes[begun], &scenes[begun].program, seed + begun, &workers[begun])) break;
    ++begun;
  }
  if (begun == 2) {
    snprintf(what, sizeof what, "two executables, %s and %s", scenes[0].what, scenes[1].what);
    run_threads(check, what, workers, 2);
  }
  finish_workers(workers, 2);
  clv__scene_finish(&scenes[0]);
  clv__scene_finish(&scenes[1]);
}

/* Enqueues one instance several times before waiting, each time with other operands. */
static void check_in_flight(clv__check *check, uint64_t seed) {
  clv__check_scene scene;
  worker workers[IN_FLIGHT];
  char text[1024], what[256];
  clv_error error = {0};
  clv_status status = CLV_OK;
  memset(workers, 0, sizeof workers);
  if (!clv__scene_plain(check, seed, &scene)) return;
  uint32_t begun = 0;
  if (compile_scene(&scene)) {
    while (begun < IN_FLIGHT && begin_worker(&scene, &scene.program, seed + begun, &workers[begun])) ++begun;
  }
  snprintf(what, sizeof what, "one instance enqueued %d times, %s", IN_FLIGHT, scene.what);
  clv__check_at(check, "%s", what);
  for (uint32_t round = 0; begun == IN_FLIGHT && round < 4; ++round) {
    for (uint32_t i = 0; status == CLV_OK && i < begun; ++i) {
      status = clv__check_job_load(&workers[i].job, workers[i].truth.values, CLV__CHECK_POISON, &error);
    }
    const clv__check_job *first = &workers[0].job;
    for (uint32_t i = 0; status == CLV_OK && i < begun; ++i) {
      clv__error_clear(&error);
      status = check->backend->execute(check->handle, first->instance, first->stream, &workers[i].job.args, &error);
    }
    if (status == CLV_OK) status = clv__check_job_wait(&workers[0].job, &error);
    if (status != CLV_OK) {
      clv__check_failed_call(check, what, "enqueuing", status, &error);
      break;
    }
    for (uint32_t i = 0; i < begun; ++i) {
      bool agrees = clv__check_job_agrees(&workers[i].job, workers[i].truth.values, text, sizeof text);
      clv__check_that(check, agrees, what, "execution %u: %s", i + 1, text);
    }
  }
  finish_workers(workers, IN_FLIGHT);
  clv__scene_finish(&scene);
}

void clv__check_concurrency(clv__check *check) {
  for (uint32_t i = 0; i < clv__check_thin(check, 3); ++i) {
    check_one_executable(check, check->seed + 3u * i);
    check_two_executables(check, check->seed + 3u * i + 1);
    check_in_flight(check, check->seed + 3u * i + 2);
    clv__check_progress(check, i + 1, 3);
  }
}
