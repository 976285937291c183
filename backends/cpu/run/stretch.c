/* See stretch.h. A lane walks all calls of the stretch and runs its own. A counter shows its progress to the other lanes. */
#include "stretch.h"

#include <sched.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "base/clock.h"

enum { SPINS = 2000 }; /* before a waiting lane yields its core */

typedef struct stretch_arguments {
  uint32_t lane_count;
  uint64_t calls[];
} stretch_arguments;

typedef struct wait_arguments {
  uint32_t count;
  clv__cpu_wait waits[];
} wait_arguments;

static const stretch_arguments *arguments_of(const clv__cpu_call *stretch) {
  return (const stretch_arguments *)(const void *)stretch->arguments;
}

/* ---- Making. ---- */

clv__cpu_call *clv__cpu_stretch_begin(clv__cpu_list *list, uint32_t step, uint32_t lane_count) {
  clv__cpu_call *call = clv__cpu_list_append(list, step, sizeof(stretch_arguments));
  if (call == NULL) return NULL;
  call->is_stretch = 1;
  ((stretch_arguments *)(void *)call->arguments)->lane_count = lane_count;
  return call;
}

void clv__cpu_stretch_end(clv__cpu_list *list, size_t begun) {
  clv__cpu_call *call = (clv__cpu_call *)(void *)(list->block + begun);
  call->size_bytes = (uint32_t)(list->size_bytes - begun);
}

clv_status clv__cpu_stretch_wait(clv__cpu_list *list, uint32_t step, const clv__cpu_wait *waits, uint32_t count,
                                 clv_error *error) {
  if (count == 0) return CLV_OK;
  const size_t size_bytes = sizeof(wait_arguments) + count * sizeof *waits;
  clv__cpu_call *call = clv__cpu_list_append(list, step, size_bytes);
  if (call == NULL) return clv__error_memory(error, size_bytes);
  wait_arguments *arguments = (wait_arguments *)(void *)call->arguments;
  call->is_wait = 1;
  arguments->count = count;
  memcpy(arguments->waits, waits, count * sizeof *waits);
  return CLV_OK;
}

/* ---- One lane. ---- */

uint32_t clv__cpu_stretch_lanes(const clv__cpu_call *stretch) {
  return arguments_of(stretch)->lane_count;
}

void clv__cpu_lanes_init(clv__cpu_lanes *lanes, const clv__cpu_call *stretch, uint64_t *step_ns, clv_error *error) {
  lanes->stretch = stretch;
  lanes->status = CLV_OK;
  lanes->error = error;
  lanes->step_ns = step_ns;
  atomic_init(&lanes->failed, NULL);
  for (uint32_t i = 0; i < clv__cpu_stretch_lanes(stretch); ++i) atomic_init(&lanes->progress[i].done, 0);
}

static void rest(uint32_t spins) {
  if (spins >= SPINS) {
    (void)sched_yield();
    return;
  }
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/* Returns false if another lane has failed, because the awaited step may never complete. */
static bool wait_for(clv__cpu_lanes *lanes, const clv__cpu_call *call) {
  const wait_arguments *arguments = (const wait_arguments *)(const void *)call->arguments;
  for (uint32_t i = 0; i < arguments->count; ++i) {
    const clv__cpu_wait *wait = &arguments->waits[i];
    for (uint32_t spins = 0; atomic_load_explicit(&lanes->progress[wait->lane].done, memory_order_acquire) < wait->done;
         ++spins) {
      if (atomic_load_explicit(&lanes->failed, memory_order_relaxed) != NULL) return false;
      rest(spins);
    }
  }
  return true;
}

static void fail(clv__cpu_lanes *lanes, const clv__cpu_call *call, clv_status status, const clv_error *error) {
  const clv__cpu_call *none = NULL;
  if (!atomic_compare_exchange_strong(&lanes->failed, &none, call)) return;
  lanes->status = status;
  if (lanes->error != NULL) *lanes->error = *error;
}

static clv_status run_call(const clv__cpu_call *call, clv_error *error) {
  if (!call->is_row) return call->function.run(call, error);
  call->function.row((const clv__row *)(const void *)call->arguments);
  return CLV_OK;
}

static clv_status run_timed(const clv__cpu_call *call, uint64_t *step_ns, clv_error *error) {
  const uint64_t begin = clv__clock_ns();
  const clv_status status = run_call(call, error);
  step_ns[call->step] = clv__clock_ns() - begin;
  return status;
}

static const uint8_t *calls_begin(const clv__cpu_call *stretch) {
  return (const uint8_t *)arguments_of(stretch)->calls;
}

static const uint8_t *calls_end(const clv__cpu_call *stretch) {
  return (const uint8_t *)stretch + stretch->size_bytes;
}

void clv__cpu_lane_walk(clv__cpu_lanes *lanes, uint32_t lane) {
  const uint8_t *end = calls_end(lanes->stretch);
  uint32_t done = 0;
  clv_error error;
  error.status = CLV_OK;
  error.message[0] = '\0';
  for (const uint8_t *at = calls_begin(lanes->stretch); at != end;) {
    const clv__cpu_call *call = (const clv__cpu_call *)(const void *)at;
    at += call->size_bytes;
    if (call->lane != lane) continue;
    if (call->is_wait) {
      if (!wait_for(lanes, call)) return;
      continue;
    }
    if (atomic_load_explicit(&lanes->failed, memory_order_relaxed) != NULL) return;
    const clv_status status = lanes->step_ns != NULL ? run_timed(call, lanes->step_ns, &error) : run_call(call, &error);
    if (status != CLV_OK) {
      fail(lanes, call, status, &error);
      return;
    }
    atomic_store_explicit(&lanes->progress[lane].done, ++done, memory_order_release);
  }
}

/* ---- All of them. ---- */

/* Runs on one thread: the list order is valid without waits. */
static void run_in_order(clv__cpu_lanes *lanes) {
  const uint8_t *end = calls_end(lanes->stretch);
  clv_error error;
  error.status = CLV_OK;
  error.message[0] = '\0';
  for (const uint8_t *at = calls_begin(lanes->stretch); at != end;) {
    const clv__cpu_call *call = (const clv__cpu_call *)(const void *)at;
    at += call->size_bytes;
    if (call->is_wait) continue;
    const clv_status status = lanes->step_ns != NULL ? run_timed(call, lanes->step_ns, &error) : run_call(call, &error);
    if (status == CLV_OK) continue;
    fail(lanes, call, status, &error);
    return;
  }
}

static void run_on_one(clv__cpu_lanes *lanes) {
  const int before = clv__cpu_threads_enter_one(); /* the steps were made for one thread */
  run_in_order(lanes);
  clv__cpu_threads_leave_one(before);
}

#ifdef _OPENMP
/* All threads of the team take part. Those without a lane only join at the end. A smaller team would end the other threads, and
 * the next larger team would have to restart them. */
static void run_side_by_side(clv__cpu_lanes *lanes) {
  const int lane_count = (int)clv__cpu_stretch_lanes(lanes->stretch);
  const int threads = omp_get_max_threads() > lane_count ? omp_get_max_threads() : lane_count;
  if (omp_in_parallel()) {
    run_on_one(lanes);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const int lane = omp_get_thread_num();
    omp_set_num_threads(1); /* for this thread, until the region ends */
    if (omp_get_num_threads() < lane_count) {
      if (lane == 0) run_in_order(lanes);
    } else if (lane < lane_count) {
      clv__cpu_lane_walk(lanes, (uint32_t)lane);
    }
  }
}
#else
static void run_side_by_side(clv__cpu_lanes *lanes) {
  run_on_one(lanes);
}
#endif

/* Distributes the stretch's time over its steps in proportion to their own times. All steps thus share what lanes saved. */
static void share_time(const clv__cpu_call *stretch, uint64_t total_ns, uint64_t *step_ns, const uint64_t *spare_ns) {
  const uint8_t *begin = calls_begin(stretch), *end = calls_end(stretch);
  double sum = 0.0;
  for (int turn = 0; turn < 2; ++turn) {
    for (const uint8_t *at = begin; at != end;) {
      const clv__cpu_call *call = (const clv__cpu_call *)(const void *)at;
      at += call->size_bytes;
      if (call->is_wait) continue;
      const double own = (double)spare_ns[call->step] + 1.0;
      if (turn == 0)
        sum += own;
      else
        step_ns[call->step] += (uint64_t)((double)total_ns * own / sum);
    }
  }
}

clv_status clv__cpu_stretch_run(const clv__cpu_call *stretch, uint64_t *step_ns, uint64_t *spare_ns, const clv__cpu_call **failed,
                                clv_error *error) {
  clv__cpu_lanes lanes;
  clv__cpu_lanes_init(&lanes, stretch, step_ns != NULL ? spare_ns : NULL, error);
  const uint64_t begin = step_ns != NULL ? clv__clock_ns() : 0;
  run_side_by_side(&lanes);
  *failed = atomic_load_explicit(&lanes.failed, memory_order_relaxed);
  if (*failed != NULL) return lanes.status;
  if (step_ns != NULL) share_time(stretch, clv__clock_ns() - begin, step_ns, spare_ns);
  return CLV_OK;
}
