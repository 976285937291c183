/* See peaks.h. Several threads repeat the same work at the same time; the best time is used. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "cost/peaks.h"

#include <math.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "cost/measure.h"

enum { ATTEMPTS = 21, LONG_ATTEMPTS = 7, ATTEMPT_NS = 1500000, MOST_THREADS = 1024, FIRST_ROUNDS = 16384 };
#define LEAST_MEMORY_BYTES ((uint64_t)128 << 20)
#define MOST_MEMORY_BYTES ((uint64_t)1 << 30)

const char *clv__peak_name(clv__peak peak) {
  static const char *const names[CLV__PEAK_COUNT] = {"f64", "f32", "f16", "bf16", "int8"};
  return names[peak];
}

/* ---- Threads ---- */

/* The number of cores that this process may run on. */
static uint32_t core_count(void) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 0) return (uint32_t)CPU_COUNT(&allowed);
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return cores > 0 ? (uint32_t)cores : 1;
}

typedef struct crew crew;
/* The work of thread `index`. `warm`: the warm-up run, which is not measured. */
typedef void (*work_fn)(const crew *crew, uint32_t index, bool warm);

struct crew {
  uint32_t thread_count;
  work_fn work;
  pthread_mutex_t lock;
  pthread_cond_t decided;
  bool is_decided, is_complete; /* decided: all threads have started, or one could not be created; complete: all have started */
  pthread_barrier_t barrier;
  uint32_t attempts;
  uint64_t *begin_ns, *end_ns; /* [attempt * thread_count + thread] */
  clv__peak_loop loop;
  uint64_t rounds;
  uint8_t *data; /* memory of thread_count * share_bytes: one share per thread */
  size_t share_bytes;
  uint32_t passes;
  bool is_copy;
};

typedef struct member {
  crew *crew;
  uint32_t index;
} member;

/* Waits until all threads have started; false if one could not be created. */
static bool may_begin(crew *c) {
  pthread_mutex_lock(&c->lock);
  while (!c->is_decided) pthread_cond_wait(&c->decided, &c->lock);
  const bool is_complete = c->is_complete;
  pthread_mutex_unlock(&c->lock);
  return is_complete;
}

static void decide(crew *c, bool is_complete) {
  pthread_mutex_lock(&c->lock);
  c->is_decided = true;
  c->is_complete = is_complete;
  pthread_cond_broadcast(&c->decided);
  pthread_mutex_unlock(&c->lock);
}

static void *take_part(void *argument) {
  const member *self = argument;
  crew *c = self->crew;
  if (!may_begin(c)) return NULL;
  c->work(c, self->index, true);
  for (uint32_t a = 0; a < c->attempts; ++a) {
    const size_t at = (size_t)a * c->thread_count + self->index;
    pthread_barrier_wait(&c->barrier);
    c->begin_ns[at] = clv__clock_ns();
    c->work(c, self->index, false);
    c->end_ns[at] = clv__clock_ns();
  }
  return NULL;
}

/* Seconds of the best attempt, from the start of the first thread to the end of the last one. */
static double best_seconds(const crew *c) {
  double best = 0;
  for (uint32_t a = 0; a < c->attempts; ++a) {
    uint64_t begin = UINT64_MAX, end = 0;
    for (uint32_t t = 0; t < c->thread_count; ++t) {
      const size_t at = (size_t)a * c->thread_count + t;
      if (c->begin_ns[at] < begin) begin = c->begin_ns[at];
      if (c->end_ns[at] > end) end = c->end_ns[at];
    }
    const double seconds = (double)(end - begin) * 1e-9;
    if (seconds > 0 && (best <= 0 || seconds < best)) best = seconds;
  }
  return best;
}

/* Runs per second of all threads together, each at the speed of its own best attempt: if other programs use the machine, there
 * is hardly ever an attempt in which no thread is disturbed. Only for resources that the threads do not share. Scales the sum
 * down if there are more threads than cores. */
static double rate_apart(const crew *c) {
  double sum = 0;
  for (uint32_t t = 0; t < c->thread_count; ++t) {
    uint64_t best = UINT64_MAX;
    for (uint32_t a = 0; a < c->attempts; ++a) {
      const size_t at = (size_t)a * c->thread_count + t;
      if (c->end_ns[at] - c->begin_ns[at] < best) best = c->end_ns[at] - c->begin_ns[at];
    }
    if (best > 0) sum += 1e9 / (double)best;
  }
  const uint32_t cores = core_count();
  return cores < c->thread_count ? sum * cores / c->thread_count : sum;
}

/* Runs every member on a new thread, so that all threads start in the same state. */
static clv_status run_threads(crew *c, pthread_t *threads, member *members, clv_error *error) {
  uint32_t made = 0;
  int code = pthread_barrier_init(&c->barrier, NULL, c->thread_count);
  if (code != 0) return clv__error_set(error, CLV_OUT_OF_MEMORY, "pthread_barrier_init: %s", strerror(code));
  for (; made < c->thread_count && code == 0; ++made) {
    members[made] = (member){c, made};
    code = pthread_create(&threads[made], NULL, take_part, &members[made]);
  }
  if (code != 0) --made;
  decide(c, code == 0);
  for (uint32_t t = 0; t < made; ++t) pthread_join(threads[t], NULL);
  pthread_barrier_destroy(&c->barrier);
  return code == 0 ? CLV_OK : clv__error_set(error, CLV_OUT_OF_MEMORY, "pthread_create: %s", strerror(code));
}

/* Measures how many times per second all threads together complete their work. `apart`: from the best attempt of each thread
 * (rate_apart) instead of the best attempt of all. */
static clv_status run_crew(crew *c, bool apart, const clv_allocator *allocator, double *rate, clv_error *error) {
  const size_t count = (size_t)c->attempts * c->thread_count;
  pthread_t *threads = clv__allocate_zero(allocator, c->thread_count * sizeof *threads);
  member *members = clv__allocate_zero(allocator, c->thread_count * sizeof *members);
  clv_status status = CLV_OK;
  c->begin_ns = clv__allocate_zero(allocator, count * sizeof *c->begin_ns);
  c->end_ns = clv__allocate_zero(allocator, count * sizeof *c->end_ns);
  c->is_decided = false;
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->decided, NULL);
  if (threads == NULL || members == NULL || c->begin_ns == NULL || c->end_ns == NULL) {
    status = clv__error_memory(error, count * sizeof *c->begin_ns);
  } else {
    status = run_threads(c, threads, members, error);
  }
  if (status == CLV_OK) {
    const double seconds = best_seconds(c);
    *rate = apart ? rate_apart(c) / c->thread_count : seconds > 0 ? 1 / seconds : 0;
  }
  pthread_cond_destroy(&c->decided);
  pthread_mutex_destroy(&c->lock);
  clv__release(allocator, c->end_ns);
  clv__release(allocator, c->begin_ns);
  clv__release(allocator, members);
  clv__release(allocator, threads);
  return status;
}

/* ---- Arithmetic ---- */

static void compute(const crew *c, uint32_t index, bool warm) {
  (void)index;
  c->loop.run(warm ? c->rounds / 4 : c->rounds);
}

static clv_status measure_flops(crew *c, clv__peak peak, const clv_allocator *allocator, double *flops_per_second,
                                clv_error *error) {
  double rate = 0;
  *flops_per_second = 0;
  c->loop = clv__peak_loop_find(peak);
  if (c->loop.run == NULL) return CLV_OK;
  c->work = compute;
  c->attempts = ATTEMPTS;
  for (c->rounds = FIRST_ROUNDS; c->rounds < UINT64_C(1) << 40; c->rounds *= 2) {
    const uint64_t begin = clv__clock_ns();
    c->loop.run(c->rounds);
    if (clv__clock_ns() - begin >= ATTEMPT_NS) break;
  }
  CLV__TRY(run_crew(c, true, allocator, &rate, error));
  *flops_per_second = c->loop.flops_per_round * (double)c->rounds * c->thread_count * rate;
  return CLV_OK;
}

/* ---- Memory ---- */

static void go_through(const crew *c, uint32_t index, bool warm) {
  uint8_t *share = c->data + index * c->share_bytes;
  const size_t half = c->share_bytes / 2;
  for (uint32_t p = 0; p < (warm ? 1 : c->passes); ++p) {
    if (c->is_copy)
      memcpy(share + half, share, half);
    else
      clv__peak_read(share, c->share_bytes);
  }
}

static clv_status measure_bandwidth(crew *c, uint64_t size_bytes, bool is_copy, const clv_allocator *allocator,
                                    double *bytes_per_second, clv_error *error) {
  double rate = 0;
  c->work = go_through;
  c->is_copy = is_copy;
  c->share_bytes = (size_t)(size_bytes / c->thread_count) & ~(size_t)127;
  go_through(c, 0, true);
  const uint64_t begin = clv__clock_ns();
  c->passes = 1;
  go_through(c, 0, false);
  c->attempts = ATTEMPTS;
  const uint64_t once_ns = clv__clock_ns() - begin + 1;
  if (once_ns < ATTEMPT_NS) c->passes = (uint32_t)(ATTEMPT_NS / once_ns);
  if (once_ns > ATTEMPT_NS) c->attempts = LONG_ATTEMPTS;
  CLV__TRY(run_crew(c, false, allocator, &rate, error));
  *bytes_per_second = (double)c->share_bytes * c->thread_count * c->passes * rate;
  return CLV_OK;
}

/* A size larger than any cache: four times the largest cache, if the system reports one. */
static uint64_t memory_size(void) {
  uint64_t size_bytes = LEAST_MEMORY_BYTES;
#ifdef _SC_LEVEL3_CACHE_SIZE
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (cache > 0 && (uint64_t)cache * 4 > size_bytes) size_bytes = (uint64_t)cache * 4;
#endif
  return size_bytes < MOST_MEMORY_BYTES ? size_bytes : MOST_MEMORY_BYTES;
}

static clv_status measure_sizes(crew *c, const clv_allocator *allocator, clv__peaks *peaks, clv_error *error) {
  static const uint64_t cached[CLV__PEAK_SIZES - 1] = {(uint64_t)64 << 10, (uint64_t)256 << 10, (uint64_t)1 << 20,
                                                       (uint64_t)4 << 20, (uint64_t)16 << 20};
  const uint64_t most = memory_size();
  clv_status status = CLV_OK;
  c->data = clv__allocate(allocator, most);
  if (c->data == NULL) return clv__error_memory(error, most);
  memset(c->data, 1, most);
  for (uint32_t i = 0; i < CLV__PEAK_SIZES && status == CLV_OK; ++i) {
    peaks->sizes_bytes[i] = i + 1 < CLV__PEAK_SIZES ? cached[i] : most;
    if (peaks->sizes_bytes[i] / c->thread_count < 1024) peaks->sizes_bytes[i] = (uint64_t)c->thread_count * 1024;
    status = measure_bandwidth(c, peaks->sizes_bytes[i], false, allocator, &peaks->read_bytes_per_second[i], error);
    if (status == CLV_OK)
      status = measure_bandwidth(c, peaks->sizes_bytes[i], true, allocator, &peaks->copy_bytes_per_second[i], error);
  }
  clv__release(allocator, c->data);
  c->data = NULL;
  if (status == CLV_OK) peaks->size_count = CLV__PEAK_SIZES;
  return status;
}

clv_status clv__peaks_of_host(uint32_t thread_count, const clv_allocator *allocator, clv__peaks *peaks, clv_error *error) {
  crew c = {.thread_count = thread_count};
  if (c.thread_count == 0) c.thread_count = core_count();
  if (c.thread_count > MOST_THREADS) c.thread_count = MOST_THREADS;
  *peaks = (clv__peaks){.thread_count = c.thread_count};
  for (uint32_t p = 0; p < CLV__PEAK_COUNT; ++p) {
    CLV__TRY(measure_flops(&c, (clv__peak)p, allocator, &peaks->flops_per_second[p], error));
  }
  for (uint32_t p = 0; p < CLV__PEAK_COUNT; ++p) {
    if (clv__peak_is_f32((clv__peak)p)) peaks->flops_per_second[p] = peaks->flops_per_second[CLV__PEAK_F32];
  }
  return measure_sizes(&c, allocator, peaks, error);
}

clv_status clv__peaks_measure(clv_devices *devices, uint32_t device, uint32_t thread_count, clv__peaks *peaks, clv_error *error) {
  enum { RUNS = 5 };
  if (strcmp(devices->items[device].info.kind, "cpu") == 0) {
    return clv__peaks_of_host(thread_count, clv__context_allocator(devices->context), peaks, error);
  }
  clv__peaks_of_device(devices, device, RUNS, peaks);
  return CLV_OK;
}

/* ---- Between sizes ---- */

static double better(const clv__peaks *peaks, uint32_t index) {
  const double read = peaks->read_bytes_per_second[index], copy = peaks->copy_bytes_per_second[index];
  return read > copy ? read : copy;
}

double clv__peaks_bandwidth(const clv__peaks *peaks, double size_bytes) {
  if (peaks->size_count == 0) return 0;
  uint32_t i = 0;
  while (i < peaks->size_count && size_bytes > (double)peaks->sizes_bytes[i]) ++i;
  if (i == 0) return better(peaks, 0);
  if (i == peaks->size_count) return better(peaks, i - 1);
  const double below = (double)peaks->sizes_bytes[i - 1], above = (double)peaks->sizes_bytes[i];
  const double part = log(size_bytes / below) / log(above / below);
  return better(peaks, i - 1) + part * (better(peaks, i) - better(peaks, i - 1));
}
