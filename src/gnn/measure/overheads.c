/* Measures overheads; see measure_own.h. Threads wait for each other as in run/layer.c: with one lock, and one condition that
 * wakes all of them. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "cost/measure.h"
#include "gnn/measure/measure_own.h"
#include "gnn/measure/point.h"

enum { ROUNDS = 8, MOST_ROUNDS = 64, WARM = 4 };

/* The number of rounds to measure: ROUNDS for each requested run, because a round is short, but at most MOST_ROUNDS. */
static uint32_t rounds_of(uint32_t runs) {
  return runs > MOST_ROUNDS / ROUNDS ? MOST_ROUNDS : runs * ROUNDS;
}

static clv_status put(clv__tables *tables, clv__overhead_kind kind, const char *device, uint64_t *samples, uint32_t count,
                      clv_error *error) {
  clv__measure measure = clv__measure_of(samples, count);
  const clv__table_overhead overhead = {kind, device, CLV__MEASURED, (double)measure.time_ns, 2.0 * (double)measure.spread_ns};
  return clv__tables_put_overhead(tables, &overhead, error);
}

/* ---- Threads ---- */

typedef struct court {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint32_t turn, turns; /* the thread that measures takes the even turns, the other thread the odd ones */
} court;

/* Waits for turn number `turn`, then starts the next turn. */
static void play(court *c, uint32_t turn) {
  pthread_mutex_lock(&c->lock);
  while (c->turn != turn) pthread_cond_wait(&c->changed, &c->lock);
  ++c->turn;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
}

static void *play_along(void *argument) {
  court *c = argument;
  for (uint32_t turn = 1; turn < c->turns; turn += 2) play(c, turn);
  return NULL;
}

static clv_status start(pthread_t *thread, court *c, clv_error *error) {
  int code = pthread_create(thread, NULL, play_along, c);
  return code == 0 ? CLV_OK : clv__error_set(error, CLV_OUT_OF_MEMORY, "cannot create a measuring thread: %s", strerror(code));
}

/* Measures the time of one signal between two threads: half of a round trip. */
static clv_status measure_merge(clv__tables *tables, uint32_t rounds, clv_error *error) {
  court c = {.turns = 2 * (rounds + WARM)};
  uint64_t samples[MOST_ROUNDS], before_ns = 0;
  pthread_t other;
  pthread_mutex_init(&c.lock, NULL);
  pthread_cond_init(&c.changed, NULL);
  clv_status status = start(&other, &c, error);
  for (uint32_t r = 0; status == CLV_OK && r < rounds + WARM; ++r) {
    play(&c, 2 * r);
    uint64_t now_ns = clv__clock_ns();
    if (r > WARM) samples[r - WARM - 1] = (now_ns - before_ns) / 2;
    before_ns = now_ns;
  }
  if (status == CLV_OK) pthread_join(other, NULL);
  pthread_cond_destroy(&c.changed);
  pthread_mutex_destroy(&c.lock);
  return status == CLV_OK ? put(tables, CLV__OVERHEAD_MERGE, "", samples, rounds - 1, error) : status;
}

/* Measures the time that it takes to create a layer's threads (one for each device but the first, which uses the caller's
 * thread) and to wait until the last one has ended. Each thread only acquires and releases the lock once. */
static clv_status measure_exchange(clv__tables *tables, uint32_t device_count, uint32_t rounds, clv_error *error) {
  uint64_t samples[MOST_ROUNDS];
  court courts[CLV__PEP_DEVICES];
  pthread_t threads[CLV__PEP_DEVICES];
  clv_status status = CLV_OK;
  for (uint32_t r = 0; r < rounds && status == CLV_OK; ++r) {
    uint64_t begin_ns = clv__clock_ns();
    uint32_t started = 0;
    for (uint32_t d = 0; d + 1 < device_count && status == CLV_OK; ++d) {
      courts[d] = (court){.turn = 1, .turns = 2};
      pthread_mutex_init(&courts[d].lock, NULL);
      pthread_cond_init(&courts[d].changed, NULL);
      status = start(&threads[d], &courts[d], error);
      started += status == CLV_OK;
      if (status != CLV_OK) {
        pthread_cond_destroy(&courts[d].changed);
        pthread_mutex_destroy(&courts[d].lock);
      }
    }
    for (uint32_t d = 0; d < started; ++d) {
      pthread_join(threads[d], NULL);
      pthread_cond_destroy(&courts[d].changed);
      pthread_mutex_destroy(&courts[d].lock);
    }
    samples[r] = clv__clock_ns() - begin_ns;
  }
  return status == CLV_OK ? put(tables, CLV__OVERHEAD_EXCHANGE, "", samples, rounds, error) : status;
}

clv_status clv__measure_threads(clv__tables *tables, uint32_t device_count, uint32_t runs, clv_error *error) {
  CLV__TRY(measure_merge(tables, rounds_of(runs), error));
  return measure_exchange(tables, device_count, rounds_of(runs), error);
}

/* ---- Devices ---- */

/* Finds the first block of the first layer that the device runs and that computes something. Returns false if there is none. */
static bool find_block(const clv__gnn_planning *p, uint32_t device, clv__measured_block *b) {
  for (uint32_t layer = 0; layer < p->model->layer_count; ++layer) {
    uint32_t stages = p->chains[layer].stage_count;
    for (uint32_t first = 0; first < stages; ++first) {
      for (uint32_t last = stages; last > first; --last) {
        if (!p->runs[layer]->runs[device][first][last] || p->chains[layer].blocks[first][last].is_empty) continue;
        b->layer = layer, b->device = device, b->first = first, b->last = last;
        return true;
      }
    }
  }
  return false;
}

clv_status clv__measure_switches(const clv__gnn_planning *p, const clv__gnn_measure_options *options, clv__tables *tables,
                                 clv_error *error) {
  enum { ROWS = 64, EDGES_A_ROW = 4 };
  for (uint32_t d = 0; d < p->machine.device_count; ++d) {
    clv__measured_block b = {.planning = p, .options = options, .tables = tables};
    uint64_t samples[2 * MOST_ROUNDS], step = p->machine.devices[d].is_static ? p->machine.pad_step : 1;
    uint32_t rounds = rounds_of(options->runs);
    if (!find_block(p, d, &b)) continue;
    uint64_t rows = clv__pad_up(ROWS, step);
    uint64_t edges = p->chains[b.layer].blocks[b.first][b.last].reads_edges ? clv__pad_up(EDGES_A_ROW * ROWS, step) : 0;
    const clv__layer_sizes one = {rows, rows, edges}, other = {rows + step, rows + step, edges};
    clv_status status = clv__measure_turns(&b, one, other, rounds, samples, error);
    /* The device has no room for two executables: record no switch time. */
    if (status == CLV_OUT_OF_MEMORY || status == CLV_TOO_LARGE) {
      clv__error_clear(error);
      continue;
    }
    if (status == CLV_OK) status = put(tables, CLV__OVERHEAD_SWITCH, p->machine.devices[d].name, samples, 2 * rounds, error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "switching plans on %s", p->machine.devices[d].name);
  }
  return CLV_OK;
}
