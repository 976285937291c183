/* Runs one layer on all devices. Each device has a thread. Each thread runs its tasks in the order of the sequence. Tasks wait
 * for each other through counters guarded by one lock. All devices follow the same order, so the first unfinished task never
 * waits for a later one. */
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "gnn/run/own.h"

typedef struct shared {
  clv__gnn_run *run;
  clv__run_layer *layer;
  uint32_t layer_index;
  const clv__run_rows *in, *out;
  const clv__gnn_run_options *options;
  uint64_t start_ns;
  pthread_mutex_t lock, reporting; /* reporting: held while progress() is called, so that calls do not overlap */
  pthread_cond_t changed;
  clv_status status; /* the first error; guarded by the lock */
  clv_error error;
  double weight_done; /* the weight of the tasks done, over all layers; guarded by the lock */
  uint32_t done;
  uint32_t last_told; /* the number of tasks done in the last report; guarded by `reporting` */
} shared;

typedef struct worker {
  shared *shared;
  uint32_t device;
  pthread_t thread;
  bool is_started;
} worker;

/* Keeps the first error and makes every thread leave. */
static void fail(shared *s, clv_status status, const clv_error *error) {
  pthread_mutex_lock(&s->lock);
  if (s->status == CLV_OK) {
    s->status = status;
    s->error = *error;
  }
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
}

/* ---- Waiting ---- */

static bool may_begin(const shared *s, const clv__gnn_task *task) {
  const clv__run_turn *turn = &s->layer->turns[task->turn];
  uint32_t depth = s->run->schedule->machine->queue_depth;
  if (task->block > 0 && turn->left[task->block - 1] > 0) return false;
  if (task->block + 1 == turn->block_count || turn->run < depth) return true;
  /* Both turns are in the same cluster, so they have equally many blocks. */
  return s->layer->turns[task->turn - depth].left[task->block + 1] == 0;
}

/* Assigns a room to the turn: a buffer for the values that cross between its blocks. Call with the lock held. */
static clv_status take_room(shared *s, clv__run_turn *turn, clv_error *error) {
  clv__gnn_run *run = s->run;
  uint32_t room = 0;
  while (run->room_is_taken[room]) ++room; /* some room is free, because there are as many rooms as turns */
  clv__run_memory *memory = &run->rooms[room];
  if (memory->size_bytes < s->layer->room_bytes) {
    clv__release(run->allocator, memory->data);
    memory->size_bytes = 0;
    memory->data = clv__allocate(run->allocator, s->layer->room_bytes);
    if (memory->data == NULL) return clv__error_memory(error, s->layer->room_bytes);
    memory->size_bytes = s->layer->room_bytes;
  }
  run->room_is_taken[room] = true;
  turn->room = room;
  return CLV_OK;
}

/* Waits until the task may begin, and sets `room`. Returns false if the run has failed. */
static bool begin_task(shared *s, const clv__run_task *task, char **room) {
  clv__run_turn *turn = &s->layer->turns[task->said.turn];
  clv_error error = {0};
  clv_status status = CLV_OK;
  pthread_mutex_lock(&s->lock);
  while (s->status == CLV_OK && !may_begin(s, &task->said)) pthread_cond_wait(&s->changed, &s->lock);
  if (s->status == CLV_OK && turn->crossing != 0 && turn->room == CLV__NO_ID) status = take_room(s, turn, &error);
  *room = turn->room != CLV__NO_ID ? s->run->rooms[turn->room].data : NULL;
  bool goes_on = s->status == CLV_OK && status == CLV_OK;
  pthread_mutex_unlock(&s->lock);
  if (status != CLV_OK) fail(s, status, &error);
  return goes_on;
}

/* ---- Progress ---- */

static void report_progress(shared *s) {
  const clv__gnn_run *run = s->run;
  if (s->options->progress == NULL) return;
  pthread_mutex_lock(&s->reporting);
  pthread_mutex_lock(&s->lock);
  double done = s->weight_done;
  clv__gnn_progress progress = {
      .layer = s->layer_index, .layer_count = run->schedule->layer_count, .done = s->done, .of = run->task_count};
  pthread_mutex_unlock(&s->lock);
  bool goes_on = true;
  if (progress.done > s->last_told) { /* a late caller has nothing new to report */
    progress.elapsed_s = 1e-9 * (double)(clv__clock_ns() - s->start_ns);
    double mine = done - run->weight_begun; /* excludes layers of an earlier run, which say nothing about this run's pace */
    progress.left_s = mine > 0 ? progress.elapsed_s * (run->weight - done) / mine : -1;
    s->last_told = progress.done;
    goes_on = s->options->progress(s->options->user_data, &progress);
  }
  pthread_mutex_unlock(&s->reporting);
  if (goes_on) return;
  clv_error error = {0};
  clv_status status = clv__error_set(&error, CLV_CANCELLED, "the run was cancelled in layer %u", s->layer_index);
  fail(s, status, &error);
}

static void end_task(shared *s, const clv__run_task *task) {
  clv__run_turn *turn = &s->layer->turns[task->said.turn];
  uint32_t last = turn->block_count - 1;
  pthread_mutex_lock(&s->lock);
  --turn->left[task->said.block];
  if (task->said.block == last && turn->left[last] == 0 && turn->room != CLV__NO_ID) {
    s->run->room_is_taken[turn->room] = false;
    turn->room = CLV__NO_ID;
  }
  s->weight_done += task->weight;
  ++s->done;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
  report_progress(s);
}

/* ---- The threads ---- */

static bool do_task(shared *s, clv__run_task *task) {
  const clv__stages *stages = &s->layer->stages;
  const clv__gnn_task *said = &task->said;
  clv_error error = {0};
  char *room;
  if (!begin_task(s, task, &room)) return false;
  clv_status status = CLV_OK;
  if (task->portion->sizes.targets > 0)
    status = clv__run_task_execute(s->run, s->layer, task, s->in, s->out, room, s->start_ns, &error);
  if (status == CLV_OK) {
    end_task(s, task);
    return true;
  }
  clv__error_prefix(&error, status, "layer %u, subgraph %u, %s to %s on %s", said->layer, said->subgraph,
                    clv__stage_name(stages->items[said->first]), clv__stage_name(stages->items[said->last - 1]),
                    s->run->schedule->machine->devices[said->device].name);
  fail(s, status, &error);
  return false;
}

static void *work_off(void *argument) {
  worker *w = argument;
  clv__run_layer *layer = w->shared->layer;
  for (uint32_t i = 0; i < layer->task_count; ++i) {
    if (layer->tasks[i].said.device == w->device && !do_task(w->shared, &layer->tasks[i])) break;
  }
  return NULL;
}

/* The first worker runs on the caller's thread. */
static void start_and_join(shared *s, worker *workers, uint32_t count) {
  for (uint32_t i = 1; i < count; ++i) {
    int code = pthread_create(&workers[i].thread, NULL, work_off, &workers[i]);
    workers[i].is_started = code == 0;
    if (code == 0) continue;
    clv_error error = {0};
    clv_status status = clv__error_set(&error, CLV_OUT_OF_MEMORY, "cannot create a thread for %s: %s",
                                       s->run->schedule->machine->devices[workers[i].device].name, strerror(code));
    fail(s, status, &error);
  }
  work_off(&workers[0]);
  for (uint32_t i = 1; i < count; ++i) {
    if (workers[i].is_started) pthread_join(workers[i].thread, NULL);
  }
}

/* Finds the devices that have tasks. A device that works in host memory comes first, because it may need the caller's thread. */
static uint32_t find_workers(shared *s, worker *workers) {
  const clv__machine *machine = s->run->schedule->machine;
  uint32_t count = 0;
  for (uint32_t d = 0; d < machine->device_count; ++d) {
    bool works = false;
    for (uint32_t i = 0; i < s->layer->task_count && !works; ++i) works = s->layer->tasks[i].said.device == d;
    if (!works) continue;
    workers[count] = (worker){.shared = s, .device = d};
    if (machine->devices[d].space == 0 && count > 0) {
      workers[count].device = workers[0].device;
      workers[0].device = d;
    }
    ++count;
  }
  return count;
}

clv_status clv__run_layer_execute(clv__gnn_run *run, uint32_t layer, const clv__run_rows *in, const clv__run_rows *out,
                                  const clv__gnn_run_options *options, uint64_t start_ns, clv_error *error) {
  worker workers[CLV__PEP_DEVICES];
  shared s = {.run = run,
              .layer = &run->layers[layer],
              .layer_index = layer,
              .in = in,
              .out = out,
              .options = options,
              .start_ns = start_ns,
              .weight_done = run->weight_done,
              .done = run->tasks_done};
  uint32_t count = find_workers(&s, workers);
  if (count == 0) return CLV_OK;
  for (uint32_t p = 0; p < run->schedule->k; ++p) {
    clv__run_turn *turn = &s.layer->turns[p];
    turn->room = CLV__NO_ID;
    for (uint32_t b = 0; b < turn->block_count; ++b) turn->left[b] = turn->first_task[b + 1] - turn->first_task[b];
  }
  for (uint32_t r = 0; r < run->schedule->k; ++r) run->room_is_taken[r] = false;
  pthread_mutex_init(&s.lock, NULL);
  pthread_mutex_init(&s.reporting, NULL);
  pthread_cond_init(&s.changed, NULL);
  start_and_join(&s, workers, count);
  pthread_cond_destroy(&s.changed);
  pthread_mutex_destroy(&s.reporting);
  pthread_mutex_destroy(&s.lock);
  run->weight_done = s.weight_done;
  run->tasks_done = s.done;
  if (s.status != CLV_OK && error != NULL) *error = s.error;
  return s.status;
}
